"""The number of threads that a computation takes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["SMALL", "Threads", "single_thread"]

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


class Threads:
    """The number of threads of work that is done again and again: one, or all, whichever was faster lately.

    A second core makes a pass faster, but not if another process keeps it busy: threads then wait for each other,
    often ten times as long as one of them would need for all the work. Only the clock tells.

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
            with single_thread(number == 1):
                results.append([each.clone() for each in work()])
            self._seconds[number] = (time.perf_counter() - begin) / rows
        self._least_rows = rows if all(map(torch.equal, *results)) else math.inf
        return results[1]

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
        with single_thread(number == 1):
            yield
        seconds = time.perf_counter() - begin
        self._since += seconds
        self._seconds[number] += LATELY * (seconds / rows - self._seconds[number])


def _may_choose() -> bool:
    # A thread that starts while another one has set a number would keep that number.
    return torch.get_num_threads() > 1 and threading.current_thread() is threading.main_thread()
