"""One thread or all, whichever was faster lately, where results do not depend on it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial

import pytest
import torch

from made import Connectivities, Ensemble, Network, log_conditionals, log_prob
from made.network import threads as room
from made.network.threads import Threads, share, single_thread
from made.training.config import TrainingConfig
from made.training.train import train


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


def test_the_fastest_way_is_chosen_and_the_others_are_tried_occasionally(monkeypatch) -> None:
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


def test_there_is_no_choice_where_results_would_differ(monkeypatch) -> None:
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


def test_tasks_are_done_once_each_and_an_error_in_any_is_raised(monkeypatch) -> None:
    monkeypatch.setattr(room, "_sharing", 3)
    done: list[int] = []

    def task(number: int) -> None:
        time.sleep(0.001)
        done.append(number)
        assert number != 17, "seventeen"

    share([partial(task, number) for number in range(17)])
    assert sorted(done) == list(range(17))
    with pytest.raises(AssertionError, match="seventeen"):
        share([partial(task, number) for number in range(18)])


def test_helpers_share_the_mode_of_inference_and_compute_no_gradients(monkeypatch) -> None:
    monkeypatch.setattr(room, "_sharing", 2)
    weight, modes = torch.ones(3, requires_grad=True), []
    for inference in (False, True):
        with torch.inference_mode(inference), torch.no_grad():
            results = [torch.zeros(3) for _ in range(8)]

            def task(result: torch.Tensor) -> None:
                time.sleep(0.001)
                modes.append(torch.is_inference_mode_enabled())
                torch.mul(weight, 2, out=result)

            share([partial(task, result) for result in results])
        assert all(result.eq(2).all() for result in results)
    assert modes == [False] * 8 + [True] * 8


def test_a_forked_process_has_helpers_of_its_own(monkeypatch) -> None:
    monkeypatch.setattr(room, "_sharing", 2)
    share([lambda: None] * 4)
    child = os.fork()
    if child == 0:
        share([partial(time.sleep, 0.001)] * 4)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("least", [0, 2**30])
@pytest.mark.parametrize("masks", [1, 3])
def test_shared_products_have_the_same_bits(masks, least, monkeypatch) -> None:
    """Packed, gathered and compared weights; enough units for several blocks."""
    monkeypatch.setattr("made.network.layout.GATHERED", least)
    network = Network(60, Connectivities(60, (800, 500), masks=masks, ordering="random"), direct=True)
    rows = (torch.rand(50, 60, generator=torch.Generator().manual_seed(0)) < 0.3).float()
    found = []
    for sharing in (1, 3):
        monkeypatch.setattr(room, "_sharing", sharing)
        with single_thread():
            log_p = log_conditionals(network, rows, 1)
            found.append([log_p, *torch.autograd.grad(log_p.sum(), list(network.parameters()))])
    assert all(map(torch.equal, *found))


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
