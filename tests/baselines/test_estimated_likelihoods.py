"""The contract of baselines with estimates and bounds, against enumeration of all states."""

from __future__ import annotations

import numpy as np
import pytest

from made import baselines
from made.baselines.boltzmann import DBM, DBN, RBM
from made.baselines.darn import DARN
from oracle import chi_square, structured
from small_baselines import COLUMNS, SMALL, TRAIN, VALID, WORLDS, truth


@pytest.fixture(scope="module", params=list(SMALL))
def fitted(request):
    return SMALL[request.param]().fit(TRAIN, VALID)


def test_every_estimated_system_is_tested_here() -> None:
    assert set(SMALL) == {name for name, system in baselines.SYSTEMS.items() if not system.exact}
    for name, small in SMALL.items():
        system = baselines.SYSTEMS[name].factory(3)
        expected = (type(small()), 3, getattr(small(), "noise", None))
        assert (type(system), system.seed, getattr(system, "noise", None)) == expected


def test_enumerated_probabilities_sum_to_one(fitted) -> None:
    assert np.exp(truth(fitted)).sum() == pytest.approx(1, abs=1e-6)


def test_estimates_and_bounds_agree_with_the_enumerated_likelihood(fitted) -> None:
    answer, exact = fitted.log_prob(WORLDS), truth(fitted)
    if answer.kind == "exact":
        assert answer.values == pytest.approx(exact, abs=1e-5)
        assert answer.standard_error == 0
    elif answer.kind == "bound":
        assert answer.mean() <= exact.mean() + 3 * answer.standard_error + 1e-6
        assert (answer.values <= exact + 1e-6).all()
        assert answer.mean() > exact.mean() - 2  # it says something
    else:
        assert abs(answer.mean() - exact.mean()) < 3 * answer.standard_error + 1e-3
        assert answer.standard_error > 0


def test_a_bound_beside_an_estimate_is_lower(fitted) -> None:
    if not isinstance(fitted, (DARN, DBN)):
        pytest.skip("it has no estimate beside a bound")
    bound, exact = fitted.bound(WORLDS), truth(fitted)
    assert bound.kind == "bound"
    assert bound.mean() <= fitted.log_prob(WORLDS).mean()
    assert exact.mean() - 2 < bound.mean() <= exact.mean() + 3 * bound.standard_error


def test_a_likelihood_has_a_kind_and_is_reproducible(fitted) -> None:
    answer = fitted.log_prob(WORLDS)
    assert answer.kind == {RBM: "exact", DBN: "estimate", DBM: "bound", DARN: "estimate"}[type(fitted)]
    assert answer.values.dtype == np.float64
    assert np.array_equal(answer.values, fitted.log_prob(WORLDS).values)


def test_a_sampler_fits_its_enumerated_distribution(fitted) -> None:
    """The frequencies of all states, by the statistic of a chi-square test."""
    count = 20_000
    drawn = fitted.sample(count, seed=5)
    assert (drawn.dtype, drawn.shape) == (np.uint8, (count, COLUMNS))
    assert chi_square(drawn, np.exp(truth(fitted))) < 5
    assert np.array_equal(drawn, fitted.sample(count, seed=5))
    assert not np.array_equal(drawn, fitted.sample(count, seed=6))


@pytest.mark.parametrize("name", list(SMALL))
def test_a_seed_makes_the_same_model(name) -> None:
    first, again, other = (SMALL[name](seed).fit(TRAIN[:100], VALID).log_prob(WORLDS).values for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", list(SMALL))
def test_dependence_between_columns_is_learned(name) -> None:
    test, mean = structured(1000, seed=2), TRAIN.mean(axis=0)
    alone = (test * np.log(mean) + (1 - test) * np.log(1 - mean)).sum(axis=1).mean()
    model = SMALL[name]()
    model.training |= {"max_epochs": 100, "learning_rate": 0.05}
    assert model.fit(TRAIN, VALID).log_prob(test).mean() > alone + 0.3


@pytest.mark.parametrize("name", list(SMALL))
def test_the_time_limit_ends_training(name) -> None:
    model = SMALL[name]()
    model.training |= {"max_epochs": 10_000, "patience": 10_000}
    assert 0 < model.fit(TRAIN, VALID, seconds=0.3).epochs < 1000
