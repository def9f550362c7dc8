"""A model as a distribution of `torch.distributions`."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from torch.distributions import Distribution

from made import MADE
from made.errors import DataError

TINY = {"hidden_sizes": (16,), "max_epochs": 20, "evaluation_masks": 4, "random_state": 0, "dtype": "float64"}
WORLDS = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)))
GENERATOR = np.random.default_rng(0)
FRAME = pd.DataFrame({"colour": GENERATOR.choice(["blue", "green"], 100), "height": GENERATOR.normal(170, 8, 100)})


@pytest.fixture(scope="module")
def binary():
    rows = np.random.default_rng(1).integers(2, size=(100, 1)) ^ (np.random.default_rng(2).random((100, 3)) < 0.2)
    return MADE(**TINY).fit(rows.astype(float))


def test_probabilities_sum_to_one(binary) -> None:
    distribution = binary.distribution()
    assert isinstance(distribution, Distribution)
    assert (distribution.batch_shape, distribution.event_shape) == ((), (3,))
    log_p = distribution.log_prob(WORLDS)
    assert log_p.exp().sum().item() == pytest.approx(1, abs=1e-8)
    assert torch.equal(distribution.log_prob(WORLDS.reshape(2, 4, 3)), log_p.reshape(2, 4))
    assert log_p.numpy() == pytest.approx(binary.score_samples(WORLDS.numpy()))


def test_samples_follow_the_probabilities(binary) -> None:
    torch.manual_seed(0)
    drawn = binary.distribution().sample((100, 200))
    assert drawn.shape == (100, 200, 3)
    counts = torch.bincount((drawn.reshape(-1, 3) @ torch.tensor([4.0, 2.0, 1.0]).double()).long(), minlength=8)
    assert (counts / 20_000).tolist() == pytest.approx(binary.distribution().log_prob(WORLDS).exp().tolist(), abs=0.015)
    assert binary.distribution().sample().shape == (3,)


def test_random_numbers_are_those_of_torch(binary) -> None:
    drawn = []
    for _ in range(2):
        torch.manual_seed(7)
        drawn.append(binary.distribution().sample((50,)))
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], binary.distribution().sample((50,)))


def test_what_is_given_is_left_out(binary) -> None:
    distribution = binary.distribution({"x1": 1})
    assert distribution.columns == ("x0", "x2")
    assert repr(distribution) == "RowDistribution(x0, x2 | x1=1.0)"
    pairs = torch.tensor(list(itertools.product([0.0, 1.0], repeat=2)))
    full = np.insert(pairs.numpy(), 1, 1, axis=1)
    assert distribution.log_prob(pairs).numpy() == pytest.approx(binary.score_samples(full, given=["x1"]))
    assert distribution.log_prob(torch.tensor([1.0, torch.nan])).shape == ()


def test_tables_are_converted() -> None:
    made = MADE(**TINY | {"max_epochs": 2}).fit(FRAME)
    distribution = made.distribution()
    codes = distribution.encode(FRAME)
    assert distribution.decode(codes).equals(FRAME)
    assert distribution.log_prob(codes).numpy() == pytest.approx(made.score_samples(FRAME))
    assert list(distribution.decode(distribution.sample((4,))).columns) == ["colour", "height"]


def test_values_of_the_wrong_shape_or_support_are_refused(binary) -> None:
    with pytest.raises(ValueError, match=r"'value' should have the shape \(\.\.\., 3\)"):
        binary.distribution().log_prob(torch.zeros(2))
    made = MADE(**TINY | {"max_epochs": 0}).fit(FRAME)
    with pytest.raises(DataError, match="colour"):
        made.distribution().log_prob(torch.tensor([7.0, 170.0]))
