"""The number of threads that a computation takes."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import TypeAlias

import torch
from torch import Tensor

__all__ = ["SMALL", "Threads", "share", "single_thread", "workers"]

SMALL = 10**7  # multiply-adds of a pass, up to which a second thread costs more than it saves
RARELY = 20  # the slower number of threads is tried again after this many times its time
LATELY = 0.5  # the weight of the latest time in the mean


@contextmanager
def single_thread(condition: bool = True) -> Iterator[None]:
    """Use one thread if the condition holds: for small work, synchronising threads takes longer than computing."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if condition else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


Task: TypeAlias = Callable[[], object]


class _Helpers:
    """Threads that do tasks beside the main one. A helper whose core is busy takes fewer, or comes too late for any."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Iterator[Task], SimpleQueue[Exception | None], bool]] = SimpleQueue()
        self._count = 0

    def do(self, tasks: Sequence[Task], helpers: int) -> None:
        while self._count < helpers:
            threading.Thread(target=self._help, daemon=True, name="made").start()
            self._count += 1
        left, done, own = iter(tasks), SimpleQueue[Exception | None](), 0
        for _ in range(helpers):
            self._calls.put((left, done, torch.is_inference_mode_enabled()))
        for task in left:
            task()
            own += 1
        for _ in range(len(tasks) - own):
            if (error := done.get()) is not None:
                raise error

    def _help(self) -> None:
        torch.set_num_threads(1)
        while True:
            tasks, done, inference = self._calls.get()
            with torch.inference_mode(inference), torch.no_grad():
                for task in tasks:
                    try:
                        task()
                        done.put(None)
                    except Exception as error:
                        done.put(error)
            del tasks, done


@cache
def _helpers(process: int) -> _Helpers:
    return _Helpers()  # threads do not survive a fork


_sharing = 1


def workers() -> int:
    """The number of threads among which :func:`share` divides tasks."""
    return _sharing


def share(tasks: Sequence[Task]) -> None:
    """Do independent tasks without gradients, on several threads where :class:`Threads` says so.

    torch divides a single operation among its threads, which wait for each other after each one: small products gain
    little, and gathering nothing. Tasks of several operations each need to wait only once, and bits do not depend on
    who does them.
    """
    helpers = min(_sharing, len(tasks)) - 1
    if helpers > 0:
        _helpers(os.getpid()).do(tasks, helpers)
        return
    for task in tasks:
        task()


class Threads:
    """How work that is done again and again uses several cores, whichever way was faster lately.

    Either torch uses all threads in each operation, or only one, and :func:`share` uses the others. A second core makes
    a pass faster, but not if another process keeps it busy: threads of torch then wait for each other, often ten times
    as long as one of them would need for all the work. Only the clock tells.

    Results must not depend on the clock, so there is a choice only if :meth:`check` has found the same bits with one
    thread and with all. They differ, for example, in products with only a few rows.

    Example:
        >>> threads = Threads()
        >>> with threads.timed(100):
        ...     y = torch.ones(100, 50) @ torch.ones(50, 20)
    """

    def __init__(self) -> None:
        self._passes = 0
        self._least_rows: float | None = None
        self._seconds: dict[int, float] = {}  # for a row, by number of threads
        self._since = 0.0  # seconds of the faster one after the last try of the slower one

    def run(self, rows: int, work: Callable[[], Tensor]) -> Tensor:
        """The result of a pass over so many rows. The third one is done twice, to check it."""
        if self._least_rows is None and rows >= 16 and _may_choose():
            self._passes += 1
            if self._passes == 3:
                return self.check(rows, lambda: [work()])[0]
        with self.timed(rows):
            return work()

    def check(self, rows: int, work: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
        """Do work on so many rows with one thread and with all, compare the results, and return them."""
        results = []
        for number in (1, torch.get_num_threads()):
            begin = time.perf_counter()
            with self._taking(number):
                results.append([each.clone() for each in work()])
            self._seconds[number] = (time.perf_counter() - begin) / rows
        self._least_rows = rows if all(map(torch.equal, *results)) else math.inf
        return results[1]

    @contextmanager
    def _taking(self, number: int) -> Iterator[None]:
        global _sharing
        before, most = _sharing, torch.get_num_threads()
        with single_thread(number == 1):
            _sharing = most if number == 1 else 1
            try:
                yield
            finally:
                _sharing = before

    @contextmanager
    def preferred(self) -> Iterator[None]:
        """The number that was faster lately, for what goes with a pass and cannot depend on it."""
        with single_thread(
            _may_choose() and bool(self._seconds) and min(self._seconds, key=self._seconds.__getitem__) == 1
        ):
            yield

    @contextmanager
    def timed(self, rows: int) -> Iterator[None]:
        """Choose the number of threads for work on so many rows: all, if that many have not been checked."""
        most = torch.get_num_threads()
        if self._least_rows is None or rows < self._least_rows or most not in self._seconds or not _may_choose():
            yield
            return
        number, other = sorted((1, most), key=self._seconds.__getitem__)
        if self._since > RARELY * self._seconds[other] * rows:
            number, self._since = other, 0.0
        begin = time.perf_counter()
        with self._taking(number):
            yield
        seconds = time.perf_counter() - begin
        self._since += seconds
        self._seconds[number] += LATELY * (seconds / rows - self._seconds[number])


def _may_choose() -> bool:
    # A thread that starts while another one has set a number would keep that number.
    return torch.get_num_threads() > 1 and threading.current_thread() is threading.main_thread()
