"""Rows with missing values train a model, and do it better than what people do instead."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from made import MADE
from made.parameters import PLAIN

NAN = float("nan")


def people(rows: int, random: np.random.Generator) -> tuple[pd.DataFrame, float]:
    """A table in which every column hangs on the one before, and its entropy in nats."""
    values = np.empty((rows, 6), dtype=np.int64)
    values[:, 0] = random.integers(3, size=rows)
    for d in range(1, 6):
        same = random.random(rows) < 0.8
        values[:, d] = np.where(same, values[:, d - 1], random.integers(3, size=rows))
    names = np.array(["low", "mid", "high"])
    frame = pd.DataFrame({f"question {d}": names[values[:, d]] for d in range(6)})
    frame["income"] = 1000.0 * values[:, 5] + 100 * random.standard_normal(rows)
    share = np.array([0.8 + 0.2 / 3, 0.2 / 3, 0.2 / 3])
    entropy = np.log(3) - 5 * (share * np.log(share)).sum() + 0.5 * np.log(2 * np.pi * np.e * 100**2)
    return frame, float(entropy)


def test_training_with_missing_values_beats_dropping_rows_and_filling_them() -> None:
    """30 % of all entries are missing at random; judged by whole rows that no model has seen."""
    random = np.random.default_rng(0)
    train, entropy = people(600, random)
    test, _ = people(500, random)
    missing = train.mask(random.random(train.shape) < 0.3)
    common = {name: missing[name].mode()[0] for name in missing if name != "income"} | {
        "income": missing["income"].median()
    }
    ways = {"missing": missing, "dropped": missing.dropna(), "filled": missing.fillna(common)}
    assert 20 < len(ways["dropped"]) < 80
    nll = {}
    for way, rows in ways.items():
        model = MADE(hidden_sizes=(32,), max_epochs=25, learning_rate=0.01, evaluation_masks=4, random_state=0).fit(
            rows
        )
        nll[way] = -model.score(test)
    assert nll["missing"] < nll["dropped"] - 0.3, nll
    assert nll["missing"] < nll["filled"] - 0.3, nll
    assert entropy - 0.2 < nll["missing"] < entropy + 1, (nll, entropy)


def test_a_missing_value_says_nothing() -> None:
    """The likelihood of a row with a missing value is that of the rest: it does not fall."""
    train, _ = people(400, np.random.default_rng(0))
    small = {"hidden_sizes": (32,), "max_epochs": 10, "evaluation_masks": 4}
    model = MADE(**(PLAIN | small | {"learning_rate": 0.002}), random_state=0).fit(train)
    rows = train.head(3).copy()
    rows["question 3"] = None
    assert (model.score_samples(rows) > model.score_samples(train.head(3))).all()
    # In segments, what is nearly certain of a row may be less than what its orderings disagree by: so on average.
    default = MADE(hidden_sizes=(32,), max_epochs=40, random_state=0).fit(train)
    assert default.score(train.assign(**{"question 3": None})) > default.score(train) + 0.3
    assert model.score_samples(rows[:1].assign(**dict.fromkeys(rows)))[0] == pytest.approx(0, abs=1e-6)
