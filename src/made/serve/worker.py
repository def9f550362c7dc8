"""One thread that computes, so that requests do not fight for the cores, and a bounded queue before it."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

from made.serve.problems import Problem

__all__ = ["Overdue", "Worker"]

T = TypeVar("T")
GLANCE = 0.25  # seconds between two looks whether the client is still there


class Overdue(BaseException):
    """Raised in the thread, in the middle of a computation whose answer nobody waits for any more."""


class _Job(Generic[T]):
    """A computation, and who waits for it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[T] = self.loop.create_future()
        self.given_up = self.interrupted = False

    def finish(self, result: T | None, error: BaseException | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(cast(T, result))
        else:
            self.answer.set_exception(error)


class Worker:
    """A thread that computes one request at a time.

    Arguments:
        waiting: the number of requests that may wait while one is computed.

    Attributes:
        seconds: how long it has computed in all.
    """

    def __init__(self, waiting: int) -> None:
        self.most, self.waiting, self.seconds, self.stopping = waiting, 0, 0.0, False
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._now: _Job[Any] | None = None  # the one that is computed
        self._thread = threading.Thread(target=self._compute, name="made-worker", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether it computes."""
        return self._now is not None

    async def run(self, work: Callable[[], T], deadline: float, left: Callable[[], Awaitable[bool]]) -> T:
        """The result of some work, by the deadline on the clock of :func:`time.monotonic`.

        Work for a client that has ``left`` is given up, and so is what takes too long.
        """
        if self.stopping:
            raise Problem("stopping", "the server is stopping, and takes no new requests.")
        with self._lock:
            if (self.busy or self.waiting) and self.waiting >= self.most:
                raise Problem("busy", f"{self.waiting} requests are waiting, as many as may.")
            self.waiting += 1
        job = _Job(work)
        self._jobs.put(job)
        try:
            while not job.answer.done():
                rest = deadline - time.monotonic()
                if rest <= 0:
                    raise Problem("late", "the answer took longer than the time limit of the server.")
                await asyncio.wait([job.answer], timeout=min(rest, GLANCE))
                if not job.answer.done() and await left():
                    raise Problem("gone", "nobody waits for the answer any more.")
            return job.answer.result()
        finally:
            if not job.answer.done():
                self._give_up(job)

    def stop(self) -> None:
        """End the thread after the work that is waiting."""
        self.stopping = True
        self._jobs.put(None)

    def _give_up(self, job: _Job[Any]) -> None:
        with self._lock:
            job.given_up = True
            if self._now is job:
                # Computations are many short operations: the exception comes between two of them.
                thread = ctypes.c_ulong(self._thread.ident or 0)
                job.interrupted = ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Overdue)) > 0

    def _compute(self) -> None:
        while (job := self._jobs.get()) is not None:
            with self._lock:
                self.waiting -= 1
                self._now = None if job.given_up else job
            if self._now is not None:
                self._do(job)
            del job

    def _do(self, job: _Job[Any]) -> None:
        result, error, stopped, begin = None, None, False, time.perf_counter()
        try:
            result = job.work()
        except Overdue:
            stopped = True
        except BaseException as fault:
            error = fault
        # An interrupt that was sent arrives before the next job begins.
        while self._now is not None or (job.interrupted and not stopped):
            try:
                with self._lock:
                    self._now = None
            except Overdue:
                stopped = True
        self.seconds += time.perf_counter() - begin
        if not job.given_up:
            with suppress(RuntimeError):  # the loop is closed
                job.loop.call_soon_threadsafe(job.finish, result, error)
