"""Processes that are forked from one that has imported everything, which would take each of them seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["Forks"]

# A line of standard input is code to run in a new process, of which the number is printed, or the number of a process
# to wait for, of which the exit code is printed.
SERVER = """
import json, os, sys, traceback
import made.cli.commands, made.estimator, made.io.read, made.io.write, torch, torch._dynamo
torch.set_num_threads(1)
os.fsync = lambda file: None  # slow, and of no matter while the system runs
for line in sys.stdin:
    request = json.loads(line)
    if isinstance(request, int):
        answer = os.waitstatus_to_exitcode(os.waitpid(request, 0)[1])
    elif not (answer := os.fork()):
        code, folder, *streams = request
        os.chdir(folder)
        for number, path in enumerate(streams):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY, 0o666), number)
        status = 1
        try:
            exec(code)
            status = 0
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)  # at once: to tidy up takes seconds
    print(answer, flush=True)
"""


class Forks:
    """Starts processes in the present folder, and waits for them."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", SERVER]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.running: set[int] = set()

    def start(self, code: str, *, stdin: Path | None = None, stdout: Path | None = None, stderr: Path) -> int:
        """Run code; the streams are files. Returns the number of the process."""
        streams = [str(os.devnull if stream is None else stream) for stream in (stdin, stdout, stderr)]
        self.running.add(process := self._ask([code, os.getcwd(), *streams]))
        return process

    def command(self, *words: object, **streams: Path) -> int:
        """Run the command `made` with these words."""
        argv = ["made", *map(str, words)]
        return self.start(f"sys.argv = {argv!r}\nfrom made.cli import main\nmain()", **streams)

    def wait(self, process: int) -> int:
        """The exit code; below 0, the number of the signal that killed it."""
        self.running.discard(process)
        return self._ask(process)

    def close(self) -> None:
        for process in self.running:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.server.kill()
        self.server.communicate()

    def _ask(self, request: object) -> int:
        print(json.dumps(request), file=self.server.stdin, flush=True)
        return int(self.server.stdout.readline())
