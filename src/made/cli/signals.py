"""SIGINT and SIGTERM as exceptions: which signal was received, and what is printed about it.

An exception unwinds whatever is running: temporary files are removed, locks are released, and training saves its state.
This module imports next to nothing, so that signals are handled before anything heavy is loaded.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from made.display import visible
from made.errors import Interrupted

WORDS: dict[int, str] = {signal.SIGINT: "interrupted.", signal.SIGTERM: "terminated."}
_received: list[int] = []
_printed: list[str] = []


def reset() -> None:
    """Forget the signals of a previous command in this process."""
    _received.clear()
    _printed.clear()


def stopped_elsewhere() -> None:
    """Record that another process has already printed why this one stops."""
    _printed.append("")


def exit_code(code: int) -> int:
    """The exit code of a command that ended with ``code``: 128 + the signal, if one stopped it."""
    code = 128 + _received[0] if _received and code else code
    if code > 128 and not _printed:
        print_stopped(WORDS.get(code - 128, "stopped."))
    return code


def signal_of(error: BaseException) -> int:
    """The signal that caused an error, or 0. A library may have turned :class:`Interrupted` into another error."""
    if isinstance(error, Interrupted):
        return error.signal
    return _received[0] if _received else signal.SIGINT * isinstance(error, KeyboardInterrupt)


def print_stopped(text: str) -> None:
    """Print that the process was stopped, and how to resume, on standard error."""
    _printed.append(text)
    with suppress(OSError, ValueError):
        print(visible(text), file=sys.stderr, flush=True)


@contextmanager
def handled() -> Iterator[None]:
    """SIGINT and SIGTERM raise :class:`Interrupted`, unless they are ignored, as in a background process."""
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
        for number in numbers:  # nothing is left to unwind; an exception now would print a traceback
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, frame: FrameType | None) -> None:
    # Modules of torch are imported by its C++ code, too, where an exception would abort the process.
    if _imports_torch(frame) and _send_again(number):
        return
    _received.append(number)
    raise Interrupted(WORDS[number], number)


def _imports_torch(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and f"{os.sep}torch{os.sep}" in code.co_filename:
            return True
        frame = frame.f_back
    return False


def _send_again(number: int) -> bool:
    """Send a signal to the main thread again a bit later, where that is possible."""
    main = threading.main_thread().ident
    if main is None or not hasattr(signal, "pthread_kill"):
        return False
    threading.Timer(0.05, signal.pthread_kill, (main, number)).start()
    return True


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Python drops an exception raised in a callback of the garbage collector: send the signal again a bit later."""
    if not isinstance(lost.exc_value, Interrupted):
        sys.__unraisablehook__(lost)
        return
    _send_again(lost.exc_value.signal)
