"""The contract of all baselines with exact likelihoods: they sum to one, and samples fit."""

from __future__ import annotations

import numpy as np
import pytest

from made.baselines import SYSTEMS, Density, LogProb
from made.baselines.nade import NADE
from made.errors import DataError
from oracle import chi_square, structured
from small_baselines import COLUMNS, FAST, TRAIN, VALID, WORLDS


@pytest.fixture(scope="module", params=list(FAST))
def fitted(request) -> Density:
    return FAST[request.param]().fit(TRAIN, VALID)


def test_every_exact_system_is_tested_here() -> None:
    assert set(FAST) == {name for name, system in SYSTEMS.items() if system.exact}
    for name in FAST:
        assert type(SYSTEMS[name].factory(3)) is type(FAST[name]())
        assert SYSTEMS[name].factory(3).seed == 3  # type: ignore[attr-defined]


def test_an_exact_likelihood_sums_to_one(fitted) -> None:
    answer = fitted.log_prob(WORLDS)
    assert (answer.kind, answer.standard_error) == ("exact", 0.0)
    assert answer.values.dtype == np.float64
    assert np.exp(answer.values).sum() == pytest.approx(1, abs=2e-6)
    assert isinstance(fitted, Density)
    assert fitted.size > 0
    assert fitted.epochs > 0


def test_a_sampler_fits_its_likelihood(fitted) -> None:
    """The frequencies of all states, by the statistic of a chi-square test."""
    count = 20_000
    drawn = fitted.sample(count, seed=5)
    assert drawn.dtype == np.uint8
    assert drawn.shape == (count, COLUMNS)
    assert chi_square(drawn, np.exp(np.asarray(fitted.log_prob(WORLDS)))) < 5
    assert np.array_equal(drawn, fitted.sample(count, seed=5))
    assert not np.array_equal(drawn, fitted.sample(count, seed=6))


@pytest.mark.parametrize("name", list(FAST))
def test_a_seed_makes_the_same_model(name) -> None:
    first, again, other = (FAST[name](seed).fit(TRAIN[:100], VALID).log_prob(WORLDS).values for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert name == "bernoulli" or not np.array_equal(first, other)


@pytest.mark.parametrize("name", ["mixture", "nade", "eonade", "made", "tied"])
def test_dependence_between_columns_is_learned(name) -> None:
    """All but independence, which cannot, find that columns copy each other."""
    test, system = structured(1000, seed=2), FAST[name]()
    options = getattr(system, "training", getattr(system, "parameters", {}))
    options.update(max_epochs=4 if name == "eonade" else 40, learning_rate=0.02)
    alone = FAST["bernoulli"]().fit(TRAIN, VALID).log_prob(test).mean()
    assert system.fit(TRAIN, VALID).log_prob(test).mean() > alone + 0.3


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[0, 1, 2, 0, 0]], "row 0, column 2: 2 is not 0 or 1"),
        ([[0, 1, np.nan, 0, 0]], "row 0, column 2: NaN, but this model needs complete rows"),
        ([[0, 1]], r"shape \(rows, 5\), not \(1, 2\)"),
        (np.zeros((0, COLUMNS)), "at least one row"),
        ([["a"] * COLUMNS], "should be numbers"),
    ],
)
def test_rows_that_are_not_binary_are_refused(fitted, rows, said) -> None:
    with pytest.raises(DataError, match=said):
        fitted.log_prob(rows)


def test_validation_rows_of_other_columns_are_refused(fitted) -> None:
    with pytest.raises(DataError, match="'valid' should have the shape"):
        type(fitted)().fit(TRAIN, VALID[:, :3])


def test_no_samples_are_refused(fitted) -> None:
    with pytest.raises(ValueError, match="'n' should be a whole number, at least 1"):
        fitted.sample(0)


@pytest.mark.parametrize("name", list(FAST))
def test_the_time_limit_ends_training(name) -> None:
    """With no time at all, what there is still answers, and sums to one."""
    system = FAST[name]().fit(TRAIN, VALID, seconds=1e-9)
    assert np.exp(np.asarray(system.log_prob(WORLDS))).sum() == pytest.approx(1, abs=2e-6)


def test_an_unfitted_model_is_refused() -> None:
    with pytest.raises(ValueError, match="call 'fit' first"):
        NADE().log_prob(WORLDS)


def test_a_log_prob_is_usable_as_an_array() -> None:
    answer = LogProb(np.log([0.5, 0.25]), "bound", 0.1)
    assert answer.mean() == pytest.approx(np.log([0.5, 0.25]).mean())
    assert np.allclose(np.exp(answer), [0.5, 0.25])
    assert (len(answer), answer.kind, answer.standard_error) == (2, "bound", 0.1)
