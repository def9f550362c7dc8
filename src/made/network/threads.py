"""The number of threads that a computation takes."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from queue import SimpleQueue
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

SMALL = 10**8  # multiply-adds of a pass, up to which a second thread costs more than it saves, or saves little
RARELY = 20  # a slower alternative is tried again after this many times its time
LATELY = 0.5  # the weight of the latest time in the mean


@contextmanager
def single_thread(condition: bool = True) -> Iterator[None]:
    """Use one thread if the condition holds: for small work, synchronising threads takes longer than computing."""
    before = torch.get_num_threads()
    if not condition or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


Task: TypeAlias = Callable[[], object]


class _Helpers:
    """Threads that share tasks with the main thread. A helper on a busy core takes fewer of them, or none."""

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
_shared = False  # whether there were tasks to share


def workers() -> int:
    """The number of threads among which :func:`share` divides tasks."""
    return _sharing


def share(tasks: Sequence[Task]) -> None:
    """Do independent tasks without gradients, on several threads where :class:`Threads` says so.

    torch divides a single operation among its threads, which wait for each other after each one: small products gain
    little, and gathering nothing. Tasks of several operations each need to wait only once, and bits do not depend on
    which thread does them.
    """
    global _shared
    _shared = _shared or len(tasks) > 1
    helpers = min(_sharing, len(tasks)) - 1
    if helpers > 0:
        _helpers(os.getpid()).do(tasks, helpers)
        return
    for task in tasks:
        task()


class Parallelism(NamedTuple):
    """How work uses several cores: by the threads of torch in each operation, or by those that share tasks."""

    torch: int
    sharing: int

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Work in this context is done so."""
        global _sharing
        before = _sharing
        with single_thread(self.torch == 1):
            _sharing = self.sharing
            try:
                yield
            finally:
                _sharing = before


class Threads:
    """Chooses how repeated work uses several cores: as was fastest recently.

    The work is done by one thread, by all threads of torch in each operation, or by threads that share tasks. A second
    core makes a pass faster, but not if another process keeps it busy: threads of torch then wait for each other, often
    ten times as long as one of them would need for all the work. Only measuring tells.

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
        self._seconds: dict[Parallelism, float] = {}  # for a row
        self._since: dict[Parallelism, float] = {}  # seconds after the last try

    def run(self, rows: int, work: Callable[[], Tensor]) -> Tensor:
        """The result of a pass over ``rows`` rows. The third pass runs twice, to check it."""
        if self._least_rows is None and rows >= 16 and _may_choose():
            self._passes += 1
            if self._passes == 3:
                return self.check(rows, lambda: [work()])[0]
        with self.timed(rows):
            return work()

    def check(self, rows: int, work: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
        """Do the work with every kind of parallelism, compare the results, and return them."""
        global _shared
        most, _shared = torch.get_num_threads(), False
        expected = self._try(Parallelism(1, 1), rows, work)
        same = not _shared or all(map(torch.equal, expected, self._try(Parallelism(1, most), rows, work)))
        result = self._try(Parallelism(most, 1), rows, work)
        self._least_rows = rows if same and all(map(torch.equal, expected, result)) else math.inf
        return result

    def _try(self, way: Parallelism, rows: int, work: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
        begin = time.perf_counter()
        with way.applied():
            result = [each.clone() for each in work()]
        self._seconds[way], self._since[way] = (time.perf_counter() - begin) / rows, 0.0
        return result

    def _fastest(self) -> Parallelism:
        return min(self._seconds, key=self._seconds.__getitem__)

    def preferred(self) -> AbstractContextManager[None]:
        """The number of threads that was faster recently, for operations whose results do not depend on it."""
        return single_thread(_may_choose() and bool(self._seconds) and self._fastest().torch == 1)

    @contextmanager
    def timed(self, rows: int) -> Iterator[None]:
        """Choose the parallelism for ``rows`` rows: all threads of torch, if that number was not checked."""
        known = Parallelism(torch.get_num_threads(), 1) in self._seconds
        if self._least_rows is None or rows < self._least_rows or not known or not _may_choose():
            yield
            return
        due = [way for way in self._seconds if self._since[way] > RARELY * self._seconds[way] * rows]
        way = due[0] if due else self._fastest()
        begin = time.perf_counter()
        with way.applied():
            yield
        seconds = time.perf_counter() - begin
        self._since = {other: since + seconds for other, since in self._since.items()} | {way: 0.0}
        self._seconds[way] += LATELY * (seconds / rows - self._seconds[way])


def _may_choose() -> bool:
    # A thread that starts while another one has set a number would keep that number.
    return torch.get_num_threads() > 1 and threading.current_thread() is threading.main_thread()
