"""Rows of any type as one table."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from made import MADE
from made.report import figures
from made.report.measure import measure
from made.report.rows import arrow, infinite


@pytest.mark.parametrize("kind", ["dates", "times", "text", "arrow"])
def test_dates_are_shown_as_dates(kind) -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in (np.arange(200) * 37) % 1461]
    columns = {"dates": days, "times": pd.to_datetime(days), "text": list(map(str, days))}
    rows = pa.table({"day": days}) if kind == "arrow" else pd.DataFrame({"day": columns[kind]})
    found = measure(MADE(hidden_sizes=(8,), max_epochs=1, random_state=0).fit(rows).model_, rows)
    (compared,) = found.columns
    assert (compared.dates, compared.distinct, compared.missing) == (True, 200, 0.0)
    assert compared.distance is not None
    drawn = figures.shares(compared)
    assert re.search(r"2020-\d\d-\d\d", drawn)
    assert re.search(r"202[34]-\d\d-\d\d", drawn)


def test_rows_of_any_kind_become_a_table() -> None:
    frame = pd.DataFrame({"b": ["x", None], "a": pd.Categorical(["p", "q"])})
    assert arrow(frame, ("a", "b"), named=True).to_pylist() == [{"a": "p", "b": "x"}, {"a": "q", "b": None}]
    assert arrow(np.array([[1, 2]]), ("x0", "x1"), named=False).to_pylist() == [{"x0": 1, "x1": 2}]
    assert infinite(pa.table({"a": [1.0, np.inf], "b": ["x", "y"]})).tolist() == [[False, False], [True, False]]
    with pytest.raises(ValueError, match="the table has 1 columns, but the model has 2"):
        arrow(np.array([[1]]), ("x0", "x1"), named=False)
    with pytest.raises(ValueError, match="the rows should be 2-D"):
        arrow(np.array([1]), ("x0",), named=False)
