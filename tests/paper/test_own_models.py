"""The rows of our own models, and ensembles over seeds."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from made import MADE
from made.baselines.tied import TiedMADE
from made.columns.onehot import Exclusive
from made.errors import DataError, ModelError
from made.paper import own_models
from made.paper.own_models import log_mean_prob, train_estimator, train_tied
from made.paper.results_file import FIELDS
from paper_results import WORLDS


@pytest.fixture
def chosen(monkeypatch) -> None:
    small = {"hidden_sizes": (6,), "max_epochs": 2}
    monkeypatch.setitem(own_models.CHOSEN["ours"], "toy", own_models.Choice("fixed", 2, {"masks": 2, **small}))
    monkeypatch.setitem(own_models.CHOSEN["any-order"], "toy", own_models.Choice("any-order", 1, small))


def test_our_rows_are_those_that_were_chosen(toy, search, chosen) -> None:
    result = own_models.make(search, toy)
    assert [each["row"] for each in result] == list(own_models.ROWS)
    assert [each["masks"] for each in result] == [2, "unlimited"]
    assert [each["config"]["members"] for each in result] == [2, 1]
    assert all(each[field] is not None for each in result for field in FIELDS)
    assert search.results.rows() == result


def test_our_rows_are_computed_once(toy, search, chosen, looks) -> None:
    result = own_models.make(search, toy)
    looks.clear()
    assert own_models.make(search, toy) == result
    assert looks == []


def test_a_row_of_tied_networks_is_computed_once(toy, search, monkeypatch) -> None:
    tied = own_models.Choice("tied", 2, {"hidden_size": 4, "max_epochs": 2})
    monkeypatch.setitem(own_models.CHOSEN["ours"], "toy", tied)
    (other,) = own_models.make(search, toy, ("ours",))
    assert other["config"]["name"] == "2 tied networks of 4 units for each degree, 1 masks"
    assert other["epochs"] == 4
    assert own_models.make(search, toy, ("ours",)) == [other]


def test_what_was_not_chosen_is_searched(toy, search, monkeypatch) -> None:
    """Of both recipes, the one under which validation rows are likelier."""
    pytest.importorskip("optuna")
    monkeypatch.setattr(own_models, "MEMBERS", 1)
    space = {"hidden_sizes": ["6"], "max_epochs": [1, 2], "masks": [1], "whole_rows": [0.5]}  # each for one recipe
    monkeypatch.setattr(own_models, "SPACE", space)
    assert own_models.make(search, toy, ("ours",)) == []  # not in an evening
    search = dataclasses.replace(search, budget="full")
    (result,) = own_models.make(search, toy, ("ours",), trials=2)
    best = {}
    for recipe in own_models.RECIPES:
        trials = json.loads((search.runs / "toy" / f"{recipe}-search" / "trials.json").read_text())
        best[recipe] = min(trial["valid_nll"] for trial in trials if trial["valid_nll"] is not None)
    assert result["config"]["recipe"] == min(best, key=best.__getitem__)
    assert result["config"]["parameters"]["hidden_sizes"] == [6]


def test_an_ensemble_sums_to_one_over_all_states(toy, tmp_path) -> None:
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


TIED = {"hidden_size": 8, "activation": "relu", "ordering": "random", "input_dropout": 0.1, "max_epochs": 3}


def tied(parameters, seed, data, folder):
    return train_tied(TiedMADE(**parameters, seed=seed), parameters, data, folder)


def test_tied_networks_sum_to_one_and_are_trained_once(toy, tmp_path, monkeypatch) -> None:
    members = [tied(TIED, seed, toy, tmp_path / f"seed-{seed}") for seed in range(2)]
    assert not np.array_equal(*(member.log_prob(WORLDS) for member in members))
    both = np.exp(log_mean_prob([member.log_prob(WORLDS) for member in members]))
    assert both.sum() == pytest.approx(1, abs=1e-5)
    assert members[1].facts["valid_nll"] == pytest.approx(-members[1].log_prob(toy.valid).mean())
    monkeypatch.setattr("made.baselines.tied.TiedMADE.optimize", lambda *_: pytest.fail("it is there already"))
    again = tied(TIED, 1, toy, tmp_path / "seed-1")
    assert np.array_equal(again.log_prob(WORLDS), members[1].log_prob(WORLDS))
    assert again.facts == members[1].facts


@pytest.mark.parametrize("other", [{"hidden_size": 9}, {"max_epochs": 4}, {"average": 0.5}, {}])
def test_a_tied_network_of_other_parameters_or_rows_is_refused(toy, tmp_path, other) -> None:
    tied(TIED, 1, toy, tmp_path)
    data = toy if other else dataclasses.replace(toy, train=toy.train[1:])
    with pytest.raises(ModelError, match="other rows or parameters"):
        tied(TIED | other, 1, data, tmp_path)


def test_a_scan_of_rows_that_are_no_images_is_refused(toy, tmp_path) -> None:
    with pytest.raises(DataError, match="images"):
        tied(TIED | {"ordering": "walk"}, 2, toy, tmp_path)
