"""The process around a command."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workers import free_port, worker_environment

SCRIPT = """
import atexit, sys
from made.cli import process
atexit.register(print, "finalized", file=sys.stderr)
sys.argv = ["made", *sys.argv[1:]]
process.main()
"""
FIT = ("--hidden-sizes", "4", "--max-epochs", "1", "--evaluation-masks", "1", "--json")


@pytest.mark.parametrize("worker", [False, True])
def test_a_worker_ends_without_finalizing_the_interpreter(tmp_path, worker) -> None:
    """Threads of gloo may still want it, which aborts the process."""
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n2,1\n" * 20)
    environment = os.environ | (worker_environment(0, 1, free_port()) if worker else {})
    for words, code in ((("fit", "rows.csv", "--out", "model", *FIT), 0), (("fit", "none.csv", "--out", "other"), 3)):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        assert ("finalized" in done.stderr) == (not worker)
        assert done.stdout.strip()[-1:] == ("" if code else "}")
        assert ("does not exist" in done.stderr) == bool(code)


def test_an_error_of_another_thread_ends_the_process_with_its_sentence() -> None:
    code = """
import threading, time
from made.cli import process
from made.errors import WorkerLost
threading.Thread(target=process.end_with, args=(WorkerLost("the head is gone."),)).start()
time.sleep(100)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (6, "Error: the head is gone.\n")
