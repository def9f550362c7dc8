"""Restricted and deep Boltzmann machines and deep belief networks."""

from __future__ import annotations

import pytest
import torch

from made.baselines import bipartite
from made.baselines.bipartite import Bipartite, log_partition
from made.baselines.boltzmann import DBM, DBN, RBM, add_second_layer, mean_field, variational_bound
from small_baselines import SMALL, TRAIN, VALID, WORLDS, brute, random_machine, states


def test_a_large_rbm_reports_an_estimate(monkeypatch) -> None:
    model = SMALL["rbm"]()
    exact = model.fit(TRAIN, VALID).log_prob(WORLDS)
    monkeypatch.setattr(bipartite, "EXACT", 0)
    model.log_partition_ = log_partition(model.machine_, model.base_, chains=100, temperatures=300)
    answer = model.log_prob(WORLDS)
    assert answer.kind == "estimate"
    assert 0 < answer.standard_error < 0.1
    assert abs(answer.mean() - exact.mean()) < 3 * answer.standard_error


@pytest.mark.parametrize("others", [3, 300])
def test_a_dbm_starts_as_its_pretrained_rbm(others) -> None:
    """Units that join it with small weights change nothing: the bound is its likelihood, however many they are."""
    rbm = random_machine(5, 4, seed=1)
    joined, x = add_second_layer(Bipartite(*(each.float() for each in rbm)), others, seed=0).double(), states(5)
    every = states(4).double()  # log Z by all states of the first layer
    log_z = joined.transposed().neg_free_energy(every).logsumexp(dim=0)
    exact, below = rbm.neg_free_energy(x) - brute(rbm), variational_bound(joined, x, 5) - log_z
    assert torch.allclose(below, exact, atol=0.02)


def test_every_round_of_mean_field_tightens_the_bound() -> None:
    machine, x = random_machine(5 + 3, 4, seed=4), states(5)
    values = torch.stack([variational_bound(machine, x, rounds) for rounds in (0, 1, 2, 5, 50)])
    assert (values.diff(dim=0) >= -1e-10).all()
    first, second = mean_field(machine, x, 200)
    assert torch.allclose(first, machine.conditional(torch.cat([x, second], dim=1)), atol=1e-6)
    assert torch.allclose(second, machine.transposed().conditional(first)[:, 5:], atol=1e-6)


@pytest.mark.parametrize(
    "deep",
    [
        lambda: DBM((4, 3), max_epochs=4, learning_rate=0.03, together={"learning_rate": 3.0}),
        lambda: DBN((4,), max_epochs=2, learning_rate=0.03, upper={"learning_rate": 3.0}, draws=400),
    ],
)
def test_a_deep_machine_that_does_not_improve_keeps_the_weights_of_its_rbm(deep) -> None:
    """At a rate that spoils everything, the upper layers keep what they began with."""
    rbm = RBM(4, max_epochs=2, learning_rate=0.03).fit(TRAIN, VALID)
    assert -deep().fit(TRAIN, VALID).log_prob(VALID).mean() == pytest.approx(-rbm.log_prob(VALID).mean(), abs=0.05)


@pytest.mark.parametrize(
    "deep",
    [
        lambda: DBM((4, 3), max_epochs=4, learning_rate=0.03),
        lambda: DBN((4,), max_epochs=2, learning_rate=0.03, upper={"max_epochs": 20}),
    ],
)
def test_a_deep_machine_reports_the_gain_of_its_upper_layers(deep) -> None:
    rbm = RBM(4, max_epochs=2, learning_rate=0.03).fit(TRAIN, VALID)
    parts = deep().fit(TRAIN, VALID).parts_
    assert parts["rbm"] == pytest.approx(-rbm.log_prob(VALID).mean(), abs=0.05)
    assert parts["bound"] < parts["rbm"]


def test_all_epochs_are_reported() -> None:
    for system in (DBM((4, 3), max_epochs=4, pretraining=0.5), DBN((4,), max_epochs=2)):
        seen = []
        system.report = lambda epoch, score, seconds, seen=seen: seen.append(epoch)
        system.fit(TRAIN, VALID)
        assert seen == [0, 1, 0, 1]


def test_a_dbn_starts_with_the_likelihood_of_its_rbm() -> None:
    """As many units above as columns, and nothing learned there: estimate and bound are exact, whatever is drawn."""
    model = DBN((4,), max_epochs=30, learning_rate=0.03).fit(TRAIN, VALID)
    lower = model.lower_
    model.machine_, exact = lower.machine_.transposed(), lower.log_prob(WORLDS).values
    model.log_partition_ = log_partition(model.machine_, model.base_, chains=1, temperatures=1)
    model.draws = 3
    assert model.log_prob(WORLDS).values == pytest.approx(exact, abs=1e-4)
    model.draws = 2000
    bound = model.bound(WORLDS)
    assert bound.values == pytest.approx(exact, abs=0.1)
    assert bound.mean() == pytest.approx(exact.mean(), abs=4 * bound.standard_error)


@pytest.mark.parametrize("make", [lambda: DBN(()), lambda: DBN((1, 2, 3)), lambda: DBM((4,)), lambda: DBM((0, 2))])
def test_invalid_sizes_are_refused(make) -> None:
    with pytest.raises(ValueError, match="hidden_sizes"):
        make()


@pytest.mark.parametrize("wrong", [DBN((4,), upper={"rate": 1}), DBM((4, 3), together={"rate": 1})])
def test_invalid_training_parameters_are_refused_before_training(wrong) -> None:
    wrong.report = lambda *epoch: pytest.fail("an epoch was learned")
    with pytest.raises(TypeError, match="rate"):
        wrong.fit(TRAIN, VALID)
