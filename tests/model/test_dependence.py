"""Mutual information of columns, from a model."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from made import MADE
from made.errors import QuestionError

TINY = {"hidden_sizes": (16,), "evaluation_masks": 4, "random_state": 0, "dtype": "float64"}


@pytest.fixture(scope="module")
def binary():
    generator = np.random.default_rng(0)
    rows = generator.integers(2, size=(200, 1)) ^ (generator.random((200, 3)) < [0.05, 0.2, 0.5])
    return MADE(**TINY, max_epochs=30).fit(rows.astype(float))


@pytest.fixture(scope="module")
def mixed():
    generator = np.random.default_rng(0)
    x = generator.normal(size=600)
    frame = {"x": x, "y": 0.6 * x + 0.8 * generator.normal(size=600), "z": generator.normal(size=600)}
    frame["sign"] = np.where(x > 0, "plus", "minus")
    return MADE(**TINY | {"hidden_sizes": (64,), "max_epochs": 60}).fit(pd.DataFrame(frame))


# Numbers that are not listed have a probability of 1e-9 in all, which the sum over values leaves out.


def summed(model, a: int, b: int) -> float:
    """I(A; B) under p(a) p(b | a), from probabilities of rows."""
    one, both = np.full((2, 3), np.nan), np.full((4, 3), np.nan)
    one[:, a], both[:, a], both[:, b] = [0, 1], [0, 0, 1, 1], [0, 1, 0, 1]
    p_a = np.exp(model.score_samples(one))
    joint = p_a[:, None] * np.exp(model.score_samples(both, given=[a])).reshape(2, 2)
    return float((joint * np.log(joint / (joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)))).sum())


@pytest.mark.parametrize(("a", "b"), [(0, 1), (0, 2), (1, 2)])
def test_of_lists_of_values_it_is_a_sum(binary, a, b) -> None:
    found = binary.mutual_information(a, b)
    assert found.nats == pytest.approx((summed(binary, a, b) + summed(binary, b, a)) / 2, abs=1e-8)
    assert (found.standard_error, found.nats > 0) == (0, True)
    assert found.disagreement == pytest.approx(abs(summed(binary, a, b) - summed(binary, b, a)) / 2, abs=1e-8)
    assert found.disagreement > 1e-5  # or the line above could not fail


def test_the_directions_of_one_distribution_agree() -> None:
    rows = np.random.default_rng(0).integers(2, size=(60, 2))
    independent = MADE(**TINY, max_epochs=0).fit(rows.astype(float))
    assert independent.mutual_information(0, 1).disagreement == pytest.approx(0, abs=1e-12)


def test_of_a_view_it_is_conditional(binary) -> None:
    given = [[a, b, 1] for a in (0, 1) for b in (0, 1)]
    view, directions = binary.condition({"x2": 1}), []
    for a in (0, 1):
        alone = np.full((2, 3), np.nan)
        alone[:, a], alone[:, 2] = [0, 1], 1
        p = np.exp(binary.score_samples(alone, given=["x2"]))
        rest = np.exp(binary.score_samples(given, given=["x2", a])).reshape(2, 2)
        joint = p[:, None] * (rest if a == 0 else rest.T)
        directions.append((joint * np.log(joint / (joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)))).sum())
    assert view.mutual_information("x0", "x1").nats == pytest.approx(np.mean(directions), abs=1e-8)


def test_of_numbers_it_is_near_that_of_the_distribution(mixed) -> None:
    expected = -0.5 * math.log(1 - 0.6**2)
    found = mixed.mutual_information("x", "y")
    assert found.standard_error < 0.03
    assert found.nats == pytest.approx(expected, abs=0.1)
    assert 0.4 < mixed.mutual_information("sign", "x").nats < math.log(2)  # of a small network, which blurs the step
    assert abs(mixed.mutual_information("x", "z").nats) < 0.05


def test_the_error_is_that_of_other_draws(mixed) -> None:
    found = [mixed.mutual_information("x", "y", samples=400, random_state=seed) for seed in range(20)]
    spread = np.std([each.nats for each in found], ddof=1)
    assert spread == pytest.approx(np.mean([each.standard_error for each in found]), rel=0.5)


def test_all_pairs(mixed) -> None:
    found = mixed.association(random_state=1)
    assert found.columns == ("x", "y", "z", "sign")
    assert np.array_equal(found.nats, found.nats.T, equal_nan=True)
    assert np.isnan(np.diag(found.nats)).all()
    first, second, strongest = found.strongest(1)[0]
    assert {first, second} == {"x", "sign"}
    assert strongest.nats == np.nanmax(found.nats)
    assert strongest.disagreement == found.disagreement[0, 3] > 0
    assert found.correlation[0, 1] == pytest.approx(0.6, abs=0.05)
    assert "± " in str(strongest)


def test_two_columns_are_needed(mixed) -> None:
    with pytest.raises(QuestionError, match="is of two columns, not of 'x' alone"):
        mixed.mutual_information("x", 0)
    with pytest.raises(ValueError, match="'samples' should be a whole number, at least 2"):
        mixed.association(samples=1)
