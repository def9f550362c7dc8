"""Conditions counted in the rows of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from made.ask.frequency import satisfied
from made.tables.schema import Schema
from made.tables.table import Table

random = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "job": random.choice(["fixed", "free", "none"], 400),
        "age": random.integers(18, 90, 400),
        "debt": np.where(random.random(400) < 0.4, 0.0, np.exp(random.normal(6, 1, 400))),
    }
)
TABLE.loc[::9, "debt"] = np.nan
SCHEMA = Schema.infer(Table.of(TABLE))
CODES = SCHEMA.encode(Table.of(TABLE))


@pytest.mark.parametrize(
    ("question", "asked", "given"),
    [
        ("age < 30", lambda t: t.age < 30, None),
        ("age < 30 | job = fixed", lambda t: t.age < 30, lambda t: t.job == "fixed"),
        ("debt = 0 | age between 20 and 40", lambda t: t.debt == 0, lambda t: t.age.between(20, 40)),
        ("debt > 100 or job = none", lambda t: (t.debt > 100) | (t.job == "none"), None),
        ("not (age < 30 and job = free)", lambda t: ~((t.age < 30) & (t.job == "free")), None),
    ],
)
def test_rows_are_counted_as_pandas_counts_them(question, asked, given) -> None:
    known = TABLE.debt.notna() | ("debt" not in question)
    among = known if given is None else known & given(TABLE)
    expected = np.where(among, asked(TABLE).astype(float), np.nan)
    assert np.array_equal(satisfied(question, SCHEMA.fields, CODES), expected, equal_nan=True)
