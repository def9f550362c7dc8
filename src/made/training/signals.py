"""Signals that end training after the present update."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from made.errors import Interrupted


@contextmanager
def signals(listen: bool) -> Iterator[list[int]]:
    """A list to which the first signal is appended; a second one raises at once."""
    asked: list[int] = []
    if not listen or threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(number: int, frame: FrameType | None) -> None:
        if asked:
            raise Interrupted("training was stopped immediately.", number)
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
