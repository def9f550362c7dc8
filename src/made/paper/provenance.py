"""The provenance of a result: the commit of the code, and the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def source_commit() -> str:
    """The commit of the running code, with a plus if it was modified; "unknown" outside of a clone."""
    folder = Path(__file__).parent

    def git(*words: str) -> str:
        run = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
        return run.stdout.strip() if run.returncode == 0 else ""

    try:
        commit = git("rev-parse", "--short=10", "HEAD")
        changed = git("status", "--porcelain", "--", str(folder.parent)) if commit else ""
    except OSError:
        return "unknown"
    return f"{commit}{'+' if changed else ''}" if commit else "unknown"


def machine_info() -> dict[str, object]:
    """Processor, system and versions, for measurements on one thread."""
    import torch

    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), model)
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads": 1,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
