"""Workers that train together have the loss curve of one process, and end together."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from made import MADE
from made.errors import DataError, QuestionError
from made.network.dropout import BatchGenerator, drop_out
from made.training.workers import ALONE, Workers

RANDOM = np.random.default_rng(0)
STATE = RANDOM.integers(0, 3, size=(61, 1))
ROWS = np.hstack([STATE, STATE + RANDOM.integers(0, 2, size=(61, 2)), STATE + RANDOM.normal(size=(61, 1))])
INCOMPLETE = np.where(RANDOM.random(ROWS.shape) < 0.1, np.nan, ROWS)


class Threads(Workers):
    """Workers that are threads of this process."""

    def __init__(self, rank: int, count: int, said: list, barrier: threading.Barrier) -> None:
        self.rank, self.count, self.said, self.barrier = rank, count, said, barrier

    def exchange(self, facts):
        self.said[self.rank] = facts
        self.barrier.wait(20)
        found = list(self.said)
        self.barrier.wait(20)
        return found

    def add(self, tensors) -> None:
        found = self.exchange([tensor.clone() for tensor in tensors])
        for tensor, *others in zip(tensors, *found, strict=True):
            tensor.copy_(sum(others))

    def total(self, number: float) -> float:
        return sum(self.exchange(number))

    def copy_first(self, tensor) -> None:
        tensor.copy_(self.exchange(tensor.clone())[0])


def together(count: int, work) -> list:
    """What ``work(workers)`` returns or raises, for each of the workers."""
    places, barrier, results = [None] * count, threading.Barrier(count), [None] * count

    def go(rank: int) -> None:
        try:
            results[rank] = work(Threads(rank, count, places, barrier))
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=go, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (INCOMPLETE, {}),
        (ROWS, {"dropout": 0.2, "input_dropout": 0.1}),
        (INCOMPLETE, {"segments": 1, "dropout": 0.1}),
        (ROWS[:20], {"masks": 2, "mask_for": "row"}),
        (ROWS, {"masks": 1, "ordering": "natural", "optimizer": "adadelta", "validation_fraction": 0.0}),
        (ROWS[:6], {"batch_size": 1}),  # a worker has no row left
    ],
    ids=["incomplete", "dropout", "masked", "mask for each row", "natural", "single rows"],
)
def test_the_loss_curve_is_that_of_one_process(rows, options, workers) -> None:
    parameters = {"hidden_sizes": (8, 8), "max_epochs": 2, "evaluation_masks": 2, "dtype": "float64"} | options

    def fit(team: Workers) -> MADE:
        return MADE(**parameters, random_state=1).fit(rows, workers=team)

    one, several = fit(ALONE), together(workers, fit)[0]
    for epoch, expected in zip(several.model_.history, one.model_.history, strict=True):
        assert epoch.train_nll == pytest.approx(expected.train_nll, rel=1e-9, nan_ok=True)
        assert epoch.valid_nll == pytest.approx(expected.valid_nll, rel=1e-9, nan_ok=True)
    assert several.score(rows) == pytest.approx(one.score(rows), rel=1e-9)


def test_early_stopping_ends_all_workers_together() -> None:
    def epochs(team: Workers) -> int:
        found = []
        options = {"patience": 1, "learning_rate": 0.5, "max_epochs": 30, "validation_masks": 1}
        MADE(hidden_sizes=(8,), random_state=0, **options).fit(ROWS, workers=team, after_epoch=found.append)
        return len(found)

    first, second = together(2, epochs)
    assert first == second < 30


def test_workers_with_other_parameters_are_refused() -> None:
    def fit(team: Workers) -> None:
        MADE(hidden_sizes=(8,), max_epochs=1, random_state=0, patience=1 + team.rank).fit(ROWS, workers=team)

    refused = together(2, fit)
    assert all(isinstance(each, QuestionError) and "patience" in str(each) for each in refused)


def test_shares_are_every_row_once() -> None:
    for rows in (1, 2, 7, 100):
        for count in (1, 2, 3, 8):
            shares = [Threads(rank, count, [], None).share(rows) for rank in range(count)]
            taken = [row for share in shares if share.counts for row in range(rows)[share.rows]]
            assert taken == list(range(rows))
            assert all(len(range(rows)[share.rows]) >= 1 for share in shares)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_row_drops_the_same_units_whoever_computes_the_others(rows) -> None:
    units = torch.ones(6, 6)
    whole = drop_out(units, 0.5, torch.Generator().manual_seed(0), rows=rows)
    generator = BatchGenerator()
    generator.manual_seed(0)
    generator.rows, generator.of = slice(2, 5), 6
    part = drop_out(units.narrow(rows, 2, 3), 0.5, generator, rows=rows)
    torch.testing.assert_close(part, whole.narrow(rows, 2, 3))


def test_dropout_with_a_mask_for_each_row_is_for_one_worker() -> None:
    model = MADE(hidden_sizes=(8,), masks=2, mask_for="row", dropout=0.1, random_state=0)
    refused = together(2, lambda team: model.fit(ROWS, workers=team))
    assert all("mask_for" in str(each) for each in refused)


def test_an_error_of_one_worker_ends_all_and_names_it() -> None:
    def work(team: Workers) -> None:
        with team.together():
            if team.rank == 1:
                raise FileNotFoundError(2, "no such file", "rows.csv")

    first, second = together(2, work)
    assert isinstance(first, DataError)
    assert "worker 1 on " in str(first)
    assert "rows.csv: no such file" in str(first)
    assert isinstance(second, FileNotFoundError)


def test_workers_with_other_rows_are_refused() -> None:
    def fit(team: Workers) -> None:
        MADE(hidden_sizes=(8,), max_epochs=1, random_state=0).fit(ROWS[team.rank :], workers=team)

    assert all("worker 1 on " in str(each) and "digest of the rows" in str(each) for each in together(2, fit))
