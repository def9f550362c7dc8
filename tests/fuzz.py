"""`make fuzz`: every target for a while, with new examples each time; what is found is printed, and ends with 1.

MADE_FUZZ_SECONDS (default: 120) is for each target; arguments are the names of targets, otherwise all are run.
"""

from __future__ import annotations

import faulthandler
import os
import secrets
import sys
import time
import traceback
import warnings
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz_targets import LIMIT, MOST_SECONDS, TARGETS, Target, bounded
from made.errors import UnseenWarning

ROUND = 200  # executions with one seed


def main(names: list[str]) -> int:
    os.environ["MADE_MAX_BYTES"] = str(LIMIT)
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
    warnings.simplefilter("ignore", UnseenWarning)
    seconds = float(os.environ.get("MADE_FUZZ_SECONDS", "120"))
    found = 0
    for name in names or TARGETS:
        found += _run(name, TARGETS[name], seconds)
    return 1 if found else 0


def _run(name: str, target: Target, seconds: float) -> int:
    findings: dict[str, tuple[str, str]] = {}
    counts = {"executions": 0, "taken": 0}

    def once(example: Any) -> None:
        counts["executions"] += 1
        faulthandler.dump_traceback_later(3 * MOST_SECONDS, exit=True)  # of what no signal reaches
        try:
            with bounded():
                counts["taken"] += target.check(example)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in where if "/made/" in frame.filename] or list(where)
            key = f"{type(error).__name__} at {ours[-1].filename}:{ours[-1].lineno}: {str(error)[:200]}"
            key = key.split("0x")[0]
            if key not in findings or len(repr(example)) < len(findings[key][0]):
                findings[key] = repr(example), "".join(traceback.format_exception(error))
        finally:
            faulthandler.cancel_dump_traceback_later()

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fuzz = settings(
            max_examples=ROUND,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(given(target.given)(once))
        seed(secrets.randbits(64))(fuzz)()
    print(f"{name}: {counts['executions']} executions, {counts['taken']} taken, {len(findings)} findings", flush=True)
    for key, (example, trace) in findings.items():
        print(f"\n{key}\n{trace}\nwith {example[:3000]}\n", flush=True)
    return len(findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
