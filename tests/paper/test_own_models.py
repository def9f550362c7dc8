"""The rows of our own models."""

from __future__ import annotations

import dataclasses
import json

import pytest

from made.paper import own_models
from made.paper.results_file import FIELDS


def test_our_rows_are_made_once(toy, search, looks, monkeypatch) -> None:
    small = {"hidden_sizes": (6,), "max_epochs": 2}
    monkeypatch.setitem(own_models.CHOSEN["ours"], "toy", own_models.Choice("fixed", 2, {"masks": 2, **small}))
    monkeypatch.setitem(own_models.CHOSEN["any-order"], "toy", own_models.Choice("any-order", 1, small))
    result = own_models.make(search, toy)
    assert [each["row"] for each in result] == list(own_models.ROWS)
    assert [each["masks"] for each in result] == [2, "unlimited"]
    assert [each["config"]["members"] for each in result] == [2, 1]
    assert all(each[field] is not None for each in result for field in FIELDS)
    assert search.results.rows() == result
    looks.clear()
    assert own_models.make(search, toy) == result
    assert looks == []
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
