"""Deep belief networks, and what they share with deep Boltzmann machines."""

from __future__ import annotations

import pytest

from made.baselines.bipartite import log_partition
from made.baselines.boltzmann import DBM, DBN, RBM
from small_baselines import TRAIN, VALID, WORLDS


@pytest.mark.parametrize(
    "deep",
    [
        lambda: DBM((4, 3), max_epochs=4, learning_rate=0.03, together={"learning_rate": 3.0}),
        lambda: DBN((4,), max_epochs=2, learning_rate=0.03, upper={"learning_rate": 3.0}, draws=400),
    ],
)
def test_what_learns_nothing_more_stays_an_rbm(deep) -> None:
    """At a rate that spoils everything, the upper layers keep what they began with."""
    rbm = RBM(4, max_epochs=2, learning_rate=0.03).fit(TRAIN, VALID)
    assert -deep().fit(TRAIN, VALID).log_prob(VALID).mean() == pytest.approx(-rbm.log_prob(VALID).mean(), abs=0.05)


def test_all_epochs_are_reported() -> None:
    for system in (DBM((4, 3), max_epochs=4, pretraining=0.5), DBN((4,), max_epochs=2)):
        seen = []
        system.report = lambda epoch, score, seconds, seen=seen: seen.append(epoch)
        system.fit(TRAIN, VALID)
        assert seen == [0, 1, 0, 1]


def test_a_dbn_begins_with_the_likelihood_of_its_rbm() -> None:
    """As many units above as columns, and nothing learned there: the bound is exact, whatever is drawn."""
    model = DBN((4,), max_epochs=30, learning_rate=0.03).fit(TRAIN, VALID)
    lower = model.lower_
    model.machine_, exact = lower.machine_.transposed(), lower.log_prob(WORLDS).values
    model.log_partition_ = log_partition(model.machine_, model.base_, chains=1, temperatures=1)
    model.draws = 2000
    assert model.log_prob(WORLDS).values == pytest.approx(exact, abs=0.1)
    assert model.log_prob(WORLDS).mean() == pytest.approx(exact.mean(), abs=4 * model.log_prob(WORLDS).standard_error)


@pytest.mark.parametrize("make", [lambda: DBN(()), lambda: DBN((1, 2, 3)), lambda: DBM((4,)), lambda: DBM((0, 2))])
def test_sizes_that_make_no_sense(make) -> None:
    with pytest.raises(ValueError, match="hidden_sizes"):
        make()


@pytest.mark.parametrize("wrong", [DBN((4,), upper={"rate": 1}), DBM((4, 3), together={"rate": 1})])
def test_training_that_makes_no_sense_is_refused_before_anything_learns(wrong) -> None:
    wrong.report = lambda *epoch: pytest.fail("an epoch was learned")
    with pytest.raises(TypeError, match="rate"):
        wrong.fit(TRAIN, VALID)
