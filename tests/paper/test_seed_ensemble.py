"""Ensembles over seeds are distributions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from made import MADE
from made.baselines.tied import TiedMADE
from made.columns.onehot import Exclusive
from made.errors import DataError, ModelError
from made.paper.own_models import log_mean_prob, train_estimator, train_tied
from paper_results import WORLDS


def test_a_committee_is_a_distribution_of_all_worlds(toy, tmp_path) -> None:
    groups = Exclusive.find(toy.train)
    assert groups.sizes == (3, 1, 2)
    members = []
    for seed in range(2):
        model = MADE(hidden_sizes=(8,), masks=2, max_epochs=3, columns=groups.kinds, random_state=seed)
        members.append(train_estimator(model, groups, toy, tmp_path / f"seed-{seed}"))
    both = np.exp(log_mean_prob([member.log_prob(WORLDS) for member in members]))
    assert both.sum() == pytest.approx(1, abs=1e-5)
    each = [np.exp(member.log_prob(WORLDS)) for member in members]
    assert both == pytest.approx((each[0] + each[1]) / 2, rel=1e-5)
    apart = groups.encode(WORLDS)[1]
    assert both[~apart].sum() == pytest.approx(1 / (len(toy.train) + 2), rel=1e-6)


def tied(parameters, seed, data, folder):
    return train_tied(TiedMADE(**parameters, seed=seed), parameters, data, folder)


def test_tied_networks_are_a_distribution_and_learn_once(toy, tmp_path, monkeypatch) -> None:
    parameters = {"hidden_size": 8, "activation": "relu", "ordering": "random", "input_dropout": 0.1, "max_epochs": 3}
    members = [tied(parameters, seed, toy, tmp_path / f"seed-{seed}") for seed in range(2)]
    assert not np.array_equal(*(member.log_prob(WORLDS) for member in members))
    both = np.exp(log_mean_prob([member.log_prob(WORLDS) for member in members]))
    assert both.sum() == pytest.approx(1, abs=1e-5)
    assert members[1].facts["valid_nll"] == pytest.approx(-members[1].log_prob(toy.valid).mean())
    monkeypatch.setattr("made.baselines.tied.TiedMADE.optimize", lambda *_: pytest.fail("it is there already"))
    again = tied(parameters, 1, toy, tmp_path / "seed-1")
    assert np.array_equal(again.log_prob(WORLDS), members[1].log_prob(WORLDS))
    assert again.facts == members[1].facts
    for other in ({"hidden_size": 9}, {"max_epochs": 4}, {"average": 0.5}):
        with pytest.raises(ModelError, match="other rows or parameters"):
            tied(parameters | other, 1, toy, tmp_path / "seed-1")
    with pytest.raises(ModelError, match="other rows or parameters"):
        tied(parameters, 1, dataclasses.replace(toy, train=toy.train[1:]), tmp_path / "seed-1")
    with pytest.raises(DataError, match="images"):
        tied(parameters | {"ordering": "walk"}, 2, toy, tmp_path / "seed-2")
