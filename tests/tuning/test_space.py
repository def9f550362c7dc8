"""The search space: what is valid, and what is refused."""

from __future__ import annotations

import re

import pytest

from made.errors import QuestionError
from made.tuning import default_space
from made.tuning.space import check_space

FIXED = {"max_epochs": 2, "masks": 2}


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({}, "nothing to search"),
        ({"layers": [1]}, "'layers', but the parameters are"),
        ({"columns": ["auto"]}, "'columns', which is not searched"),
        ({"random_state": [1]}, "seed"),
        ({"masks": [1]}, "both fixed and in the space"),
        ({"dropout": 0.1}, "list of choices"),
        ({"dropout": []}, "list of choices"),
        ({"dropout": [0.1, 0.1]}, "twice"),
        ({"dropout": [[0.1]]}, "a word or a number"),
        ({"dropout": [2.0]}, "'dropout' should be"),
        ({"dropout": {"low": 0.0, "high": 1.0}}, "'dropout' should be"),
        ({"dropout": {"low": 0.5, "high": 0.1}}, "should be below"),
        ({"dropout": {"low": 0.5}}, "'high' should be a number"),
        ({"dropout": {"low": 0.0, "high": 0.5, "log": True}}, "above 0"),
        ({"dropout": {"low": 0.0, "high": 0.5, "log": 1}}, "true or false"),
        ({"dropout": {"low": 0.0, "high": 0.5, "step": 0.6}}, "'step'"),
        ({"dropout": {"low": 0.0, "high": 0.5, "steps": 2}}, "'steps'"),
        ({"batch_size": {"low": 1.5, "high": 20}}, "whole number"),
        ({"activation": {"low": 1, "high": 2}}, "list of choices"),
        ({"activation": ["step"]}, "'activation' should be"),
        ({"hidden_sizes": ["many"]}, "sizes such as"),
        ({"hidden_sizes": ["0"]}, "at least 1"),
    ],
)
def test_bad_spaces_are_refused(space, said) -> None:
    with pytest.raises(QuestionError, match=re.escape(said)):
        check_space(space, FIXED)


def test_spaces_are_understood() -> None:
    assert check_space(default_space(), {}) == default_space()
    assert "masks" not in default_space(FIXED)
    space = {
        "hidden_sizes": [8, "9, 9", (10, 10), []],
        "batch_size": {"low": 16, "high": 64, "step": 16},
        "clip": [0, 1],
    }
    assert check_space(space, {}) == {
        "hidden_sizes": ["8", "9,9", "10,10", ""],
        "batch_size": {"low": 16, "high": 64, "log": False, "step": 16},
        "clip": [0, 1],
    }
