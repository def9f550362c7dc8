"""Rows of any type as one table."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from made import Numeric
from made.report import column, figures
from made.report.rows import arrow, infinite, numbers


def test_dates_are_shown_as_dates() -> None:
    """Whatever a model makes of them, a table of dates is drawn as one."""
    days = pa.chunked_array([pa.array([datetime.date(2020, 1, 1), None, datetime.date(2024, 1, 1)])])
    moments = pa.chunked_array([pa.array([datetime.datetime(1970, 1, 2, 0, 0, 1)], pa.timestamp("us", tz="UTC"))])
    assert numbers(days)[[0, 2]].tolist() == [1577836800.0, 1704067200.0]
    assert np.isnan(numbers(days)[1])
    assert numbers(moments).tolist() == [86401.0]
    assert numbers(pa.chunked_array([pa.array([datetime.time(0, 1)])])).tolist() == [60.0]
    assert numbers(pa.chunked_array([pa.nulls(2)])).tolist() == pytest.approx([np.nan] * 2, nan_ok=True)
    values = numbers(days)[[0, 2]]
    found = column.compare("day", Numeric(0.0, 1.0), values, values, dates=True, random=np.random.default_rng(0))
    drawn = figures.histogram(found.shares, "day", dates=True)
    assert "2020-01-01" in drawn
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
