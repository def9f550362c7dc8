"""One thread computes; what nobody waits for is given up, and never disturbs the next."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress

import pytest

from made.serve.problems import Problem
from made.serve.worker import Worker


async def stays() -> bool:
    return False


def soon(seconds: float = 20) -> float:
    return time.monotonic() + seconds


@pytest.fixture
def worker():
    found = Worker(3)
    yield found
    found.stop()
    found._thread.join(5)
    assert not found._thread.is_alive()


def test_one_at_a_time_and_in_order(worker) -> None:
    running, done = [], []

    def work(number: int) -> int:
        running.append(number)
        assert len(running) == 1
        time.sleep(0.02)
        running.remove(number)
        done.append(number)
        return number

    async def ask() -> list[int]:
        return await asyncio.gather(*(worker.run(lambda n=n: work(n), soon(), stays) for n in range(3)))

    assert asyncio.run(ask()) == done == [0, 1, 2]


def test_an_error_is_that_of_the_work(worker) -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(worker.run(lambda: 1 / 0, soon(), stays))


def test_what_is_late_is_interrupted(worker) -> None:
    stopped = threading.Event()

    def endless() -> None:
        try:
            while True:
                time.sleep(0.001)
        finally:
            stopped.set()

    with pytest.raises(Problem, match="time limit"):
        asyncio.run(worker.run(endless, soon(0.1), stays))
    assert stopped.wait(5)
    assert asyncio.run(worker.run(lambda: 5, soon(), stays)) == 5


def test_what_waits_too_long_is_never_computed(worker) -> None:
    computed, gate = [], threading.Event()

    async def ask() -> None:
        first = asyncio.create_task(worker.run(lambda: gate.wait(10), soon(), stays))
        await asyncio.sleep(0.05)
        with pytest.raises(Problem, match="time limit"):
            await worker.run(lambda: computed.append(1), soon(0.1), stays)
        gate.set()
        await first
        assert await worker.run(lambda: 7, soon(), stays) == 7

    asyncio.run(ask())
    assert not computed
    assert worker.waiting == 0


def test_interrupts_never_reach_the_next_work(worker) -> None:
    """Deadlines that fall on the very end of the work, many times: every other answer is right."""

    async def ask() -> None:
        for number in range(150):
            with suppress(Problem):
                await worker.run(lambda: time.sleep(0.004), soon(0.004), stays)
            assert await worker.run(lambda n=number: sum(range(n)), soon(), stays) == sum(range(number))

    asyncio.run(ask())


def test_a_queue_that_is_full(worker) -> None:
    gate = threading.Event()

    async def ask() -> None:
        tasks = []
        for _ in range(4):  # one is computed, three wait
            tasks.append(asyncio.create_task(worker.run(lambda: gate.wait(10), soon(), stays)))
            await asyncio.sleep(0.05)
        with pytest.raises(Problem) as caught:
            await worker.run(lambda: 1, soon(), stays)
        assert caught.value.kind == "busy"
        gate.set()
        assert await asyncio.gather(*tasks) == [True] * 4

    asyncio.run(ask())


def test_nothing_new_is_taken_at_the_end() -> None:
    worker = Worker(3)
    worker.stop()
    with pytest.raises(Problem) as caught:
        asyncio.run(worker.run(lambda: 1, soon(), stays))
    assert caught.value.kind == "stopping"
    assert caught.value.headers["Retry-After"]
