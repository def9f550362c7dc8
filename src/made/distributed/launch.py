"""Workers on this machine: started together, and started again from the last checkpoint if one of them is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from made.distributed.environment import LAUNCHED
from made.errors import Interrupted, WorkerLost
from made.model.folder import manifest_text

LOST = 6  # the exit code of a worker that has lost another one
PERIOD = 0.05  # seconds between looks at the workers
GRACE = 10.0  # seconds for the other workers to end by themselves
MOST_RESTARTS = 3  # in a row, without a new checkpoint


def launch(
    command: Sequence[str], workers: int, folder: Path, *, note: Callable[[str], None] = lambda text: None
) -> int:
    """Run a command in several workers, and return the exit code of the first one, or of one that failed.

    Each worker finds the others by the environment variables of torchrun. If one is killed, all are started again, and
    resume the run in the folder: they end with the weights of a run that was never killed.

    Arguments:
        command: the words of the command.
        workers: the number of workers.
        folder: the folder of the model.
        note: called with a sentence when the workers are started again.
    """
    begun, restarts, vain = manifest_text(folder), 0, 0
    while True:
        before = manifest_text(folder)
        # A run that was killed before its first write has not begun: --overwrite still has to replace what was there.
        codes = _run(command, workers, restarts if begun is None or before != begun else 0)
        failed = [code for code in codes if code > 0 and code != LOST]
        if failed or not codes[0]:
            return failed[0] if failed else 0
        vain = vain + 1 if manifest_text(folder) == before else 0
        if vain > MOST_RESTARTS:
            raise WorkerLost(
                f"a worker was killed {vain} times in a row (exit codes {', '.join(map(str, codes))}) before a "
                "checkpoint was written: is there enough memory for all workers? Use fewer."
            )
        restarts += 1
        note("Note: a worker was killed; training resumes from the last checkpoint.")


def _run(command: Sequence[str], workers: int, restarts: int) -> list[int]:
    """Start the workers, wait for them, and return their exit codes, negative for signals."""
    threads = max(1, (os.cpu_count() or 1) // workers)
    shared = {
        "TORCHELASTIC_RUN_ID": LAUNCHED,
        "TORCH_CPP_LOG_LEVEL": "ERROR",  # a warning of torch is none of the run
        "TORCHELASTIC_RESTART_COUNT": str(restarts),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "WORLD_SIZE": str(workers),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
    }
    if sys.platform == "linux":
        shared["GLOO_SOCKET_IFNAME"] = "lo"
    running: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(workers):
            environment = os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            words = [sys.executable, "-m", "made", *command]
            # In their own session: Ctrl-C reaches them through this process, once.
            running.append(subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, start_new_session=True))
        return _wait(running)
    finally:
        for worker in running:
            worker.kill()
            worker.communicate()


def _free_port() -> int:
    """A port for the first worker to listen on; should another process take it first, the workers are started again."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(running: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Wait until all have ended. When one has, without success, the others hear of it and end, or are killed."""
    patience = float("inf")
    while any(worker.poll() is None for worker in running):
        try:
            time.sleep(PERIOD)
            if patience == float("inf") and any(worker.returncode for worker in running):
                patience = time.monotonic() + GRACE
            if time.monotonic() > patience:
                for worker in running:
                    worker.kill()
        except Interrupted as stopped:
            for worker in running:
                with suppress(ProcessLookupError):
                    worker.send_signal(stopped.signal)
    return [worker.returncode for worker in running]
