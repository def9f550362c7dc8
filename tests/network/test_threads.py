"""One thread or all, whichever was faster lately, where results do not depend on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from made import Connectivities, Ensemble, Network, log_prob
from made.network import threads as room
from made.network.threads import Threads, single_thread
from made.training.config import TrainingConfig
from made.training.trainer import train


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Clock:
    """Time that passes only while work is done, faster or slower by the number of threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.price, self.taken = 0.0, {1: 1.0, 2: 1.0}, []
        monkeypatch.setattr(room.time, "perf_counter", lambda: self.now)

    def work(self) -> torch.Tensor:
        self.now += self.price[torch.get_num_threads()]
        self.taken.append(torch.get_num_threads())
        return torch.zeros(1)


def test_the_faster_number_is_taken_and_the_other_tried_now_and_then(monkeypatch) -> None:
    clock, threads = Clock(monkeypatch), Threads()
    clock.price = {1: 1.0, 2: 0.5}
    for _ in range(200):
        threads.run(100, clock.work)
    assert clock.taken[:4] == [2, 2, 1, 2]  # the third is done twice
    assert 2 <= clock.taken[4:].count(1) < 10
    clock.price = {1: 1.0, 2: 10.0}  # another process has come
    clock.taken.clear()
    for _ in range(2000):
        threads.run(100, clock.work)
    assert clock.taken[2:].count(2) < 20
    clock.price = {1: 1.0, 2: 0.5}  # and gone
    for _ in range(1000):
        threads.run(100, clock.work)
    assert clock.taken[-10:].count(2) >= 9
    assert torch.get_num_threads() == 2


def test_there_is_no_choice_where_results_depend_on_it_or_might(monkeypatch) -> None:
    clock, threads = Clock(monkeypatch), Threads()
    clock.price = {1: 1.0, 2: 10.0}

    def work() -> torch.Tensor:
        return clock.work() + torch.get_num_threads()

    for _ in range(20):
        threads.run(100, work)
    assert clock.taken == [2, 2, 1] + [2] * 18
    few = Threads()
    for _ in range(20):
        few.run(100, clock.work)
        clock.taken.clear()
        few.run(50, clock.work)  # fewer rows than were compared
        assert clock.taken == [2]
    with single_thread():
        clock.taken.clear()
        few.run(100, clock.work)
        assert clock.taken == [1]


@pytest.mark.parametrize("masks", [1, 3, None])
def test_training_and_answers_do_not_depend_on_the_number_of_threads(masks, monkeypatch) -> None:
    """The bits are the same, whatever the clock says. 203 rows: the last batch is smaller than was compared."""
    rows = (torch.rand(203, 60, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    results = []
    for price in ({1: 1.0, 2: 2.0}, {1: 2.0, 2: 1.0}):
        clock = Clock(monkeypatch)
        clock.price = price

        def passes(clock=clock) -> float:
            clock.now += clock.price[torch.get_num_threads()]
            return clock.now

        monkeypatch.setattr(room.time, "perf_counter", passes)
        monkeypatch.setattr("made.training.trainer.SMALL", 0)
        network = Network(60, Connectivities(60, (300, 200), masks=masks, ordering="random"), direct=True)
        train(network, rows, rows[:90], TrainingConfig(max_epochs=3, batch_size=50, clip=1.0, patience=9))
        answers = [log_prob(Ensemble(network), rows) for _ in range(4)]
        assert all(torch.equal(each, answers[0]) for each in answers)
        results.append([answers[0], *network.parameters()])
    assert all(map(torch.equal, *results))
