"""The process around a command: its signals, its standard streams, and its exit code.

SIGINT and SIGTERM become an exception, so that whatever is under way is unwound: temporary files are removed, locks are
released, and training saves its state. After that, the process ends with 130 or 143.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from made.display import visible
from made.errors import Interrupted

__all__ = ["WORDS", "main", "run", "signal_of", "stopped"]

WORDS: dict[int, str] = {signal.SIGINT: "interrupted.", signal.SIGTERM: "terminated."}
_received: list[int] = []
_said: list[str] = []


def main() -> None:
    """Run the command that the shell was given, and exit."""
    _open_streams()
    with _signals():
        code = run(sys.argv[1:])
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run a command line. Returns its exit code; see :data:`made.cli.common.EXIT_CODES`."""
    _received.clear()
    _said.clear()
    try:
        try:
            _run(list(words))
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
    except BaseException as error:
        code = _ended(error)
    code = 128 + _received[0] if _received and code else code
    if code > 128 and not _said:
        stopped(WORDS.get(code - 128, "stopped."))
    return code


def _run(words: list[str]) -> None:
    import typer

    from made.cli.commands import app

    path, command = ["made"], typer.main.get_command(app)
    # A command's help comes from that command itself: to parse the words before it loads pydantic, which takes longer.
    group: Any = command
    while words[-1:] == ["--help"] and words[0] in getattr(group, "commands", {}):
        group = group.commands[words[0]]
        path.append(words.pop(0))
    group.main(args=words, prog_name=" ".join(path))


def _ended(error: BaseException) -> int:
    """The exit code of an error that no command has caught, and its sentence."""
    if number := signal_of(error):
        return 128 + number
    from made.cli.common import report

    return report(error)


def stopped(text: str) -> None:
    """Say that the process was stopped, and how to go on."""
    _said.append(text)
    with suppress(OSError, ValueError):
        print(visible(text), file=sys.stderr, flush=True)


def signal_of(error: BaseException) -> int:
    """The signal that an error comes from, or 0; on its way, a library may have made another error of it."""
    if isinstance(error, Interrupted):
        return error.signal
    return _received[0] if _received else signal.SIGINT * isinstance(error, KeyboardInterrupt)


@contextmanager
def _signals() -> Iterator[None]:
    """SIGINT and SIGTERM raise an exception, unless they are ignored, as those of a background process may be."""
    numbers = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    for number in numbers:
        signal.signal(number, _stop)
    hook, sys.unraisablehook = sys.unraisablehook, _unraisable
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number in numbers:  # there is nothing left to unwind, and an exception now would be a traceback
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    raise Interrupted(WORDS[number], number)


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Python ignores an exception in a callback of the garbage collector: the signal is sent once more, a bit later."""
    if not isinstance(lost.exc_value, Interrupted):
        sys.__unraisablehook__(lost)
        return
    main, number = threading.main_thread().ident, lost.exc_value.signal
    if main is not None and hasattr(signal, "pthread_kill"):
        threading.Timer(0.05, signal.pthread_kill, (main, number)).start()


def _open_streams() -> None:
    """Give a process without standard streams empty ones, lest a file that it opens becomes its standard output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    # That standard input is closed is said by whoever reads it.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    # A name that the terminal's encoding does not have is not worth a failure.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
