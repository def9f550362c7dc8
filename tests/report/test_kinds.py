"""Columns whose kind does not suit their values are noticed, and others are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from browser import fitted
from made.report.kinds import kind_warnings
from made.report.measure import measure

RANDOM = np.random.default_rng(0)
ROWS = 400


def warnings_of(train: pd.DataFrame, rows: pd.DataFrame | None = None, **parameters) -> tuple[str, ...]:
    return measure(fitted(train, max_epochs=1, **parameters), train if rows is None else rows, top=1).kinds


def test_ordinary_columns_give_no_warning() -> None:
    table = pd.DataFrame(
        {
            "real": RANDOM.normal(size=ROWS),
            "price": RANDOM.integers(1, 200, ROWS) * 25.0,
            "grade": RANDOM.integers(1, 6, ROWS),
            "spike": np.where(RANDOM.random(ROWS) < 0.7, 0.0, RANDOM.lognormal(3, 1, ROWS)),
            "word": RANDOM.choice(["a", "b", "c"], ROWS),
            "zip": pd.Series(RANDOM.choice([f"0{1000 + i}" for i in range(12)], ROWS)),
            "born": pd.date_range("2000-01-01", periods=ROWS),
        }
    )
    assert warnings_of(table[:300], table[300:]) == ()


def test_values_off_the_grid_are_counted() -> None:
    train = pd.DataFrame({"price": RANDOM.integers(1, 200, ROWS) * 25.0, "other": RANDOM.normal(size=ROWS)})
    rows = train.copy()
    rows.loc[:79, "price"] += 10
    (said,) = warnings_of(train, rows)
    assert said.startswith("20 % of the values of price lie between the steps of 25 of the training rows")
    assert said.endswith("columns={'price': 'real'}.")
    assert warnings_of(train, rows, columns={"price": "real"}) == ()


def test_a_list_without_most_values_is_noticed() -> None:
    train = pd.DataFrame({"city": RANDOM.choice(["a", "b"], ROWS), "code": RANDOM.integers(1, 5, ROWS)})
    rows = pd.DataFrame({"city": RANDOM.choice(["c", "d", "a"], ROWS), "code": RANDOM.integers(1, 9, ROWS)})
    said = warnings_of(train, rows)
    assert "of the values of city did not occur in training" in said[0]
    assert "columns={'city': 'drop'}" in said[0]
    assert "columns={'code': 'numeric'}" in said[1]
    rows = train.copy()
    rows.loc[:8, "city"] = "c"  # a few new values are no reason
    assert warnings_of(train, rows) == ()


def test_numbers_of_which_a_few_repeat_are_noticed_if_samples_miss_them() -> None:
    train = pd.DataFrame({"dose": RANDOM.choice(np.sqrt(np.arange(2, 12)), ROWS), "other": RANDOM.normal(size=ROWS)})
    (said,) = warnings_of(train, columns={"dose": "real"})
    assert said.startswith("10 numbers make up 100 % of dose in the rows, but only")
    assert said.endswith("Remedy: columns={'dose': 'ordinal'}.")
    assert warnings_of(train, columns={"dose": "ordinal"}) == ()


@pytest.mark.parametrize("word", ["n/a", "?"])
def test_numbers_with_a_few_words_among_them_are_noticed(word) -> None:
    values = RANDOM.integers(0, 30, ROWS).astype(str).astype(object)
    values[:12] = word
    train = pd.DataFrame({"income": values, "other": RANDOM.normal(size=ROWS)})
    (said,) = warnings_of(train)
    assert f"97 % of the values of income are numbers, but the column is categorical because of {word!r}." in said


def test_a_column_without_observed_values_gives_no_warning() -> None:
    model = fitted(
        pd.DataFrame({"price": RANDOM.integers(1, 200, ROWS) * 25.0, "word": ["a", "b"] * 200}), max_epochs=1
    )
    nothing = np.full(5, np.nan)
    for field in model.schema.fields:
        assert list(kind_warnings(field, nothing, nothing, nothing)) == []
