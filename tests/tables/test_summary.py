"""The summary of a long table: what is exact, what is a sample, and that pieces make no difference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from made.tables import summary as module
from made.tables.schema import Schema
from made.tables.summary import TableSummary
from made.tables.table import Table

ROWS = 4000


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are long from 501 rows on, and values are counted up to 100."""
    monkeypatch.setattr(module, "LEAST", 500)
    monkeypatch.setattr(module, "NUMBERS", 500)
    monkeypatch.setattr(module, "MOST_DISTINCT", 100)


def frame(rows: int = ROWS) -> pd.DataFrame:
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "real": random.normal(size=rows),
        "cents": random.integers(0, 10**6, rows) / 100,
        "few": random.integers(0, 5, rows),
        "word": random.choice(["x", "y", "z"], rows),
        "many": [f"w{number}" for number in random.geometric(0.01, rows)],
        "day": pd.Series(np.datetime64("2000-01-01") + random.integers(0, 300, rows)).dt.strftime("%Y-%m-%d"),
        "rare": np.where(np.arange(rows) % 1000 == 7, 1.5, np.nan),
    }
    return pd.DataFrame(columns)


def in_pieces(table: pd.DataFrame, *cuts: int) -> TableSummary:
    summary = TableSummary(Table.of(table))
    for begin, end in zip((0, *cuts), (*cuts, len(table)), strict=True):
        summary.add(Table.of(table.iloc[begin:end]))
    return summary


def test_the_summary_does_not_depend_on_pieces() -> None:
    table = frame()
    whole = Schema.infer(TableSummary.of(Table.of(table)), unseen="other")
    assert Schema.infer(in_pieces(table, 1, 499, 500, 501, 2222), unseen="other") == whole


def test_a_table_of_the_greatest_length_is_whole_and_one_row_more_is_a_sample() -> None:
    values = np.arange(501.0)[:, None] * math.pi
    assert np.array_equal(TableSummary.of(Table.of(values[:500])).columns[0].seen, values[:500, 0])
    sampled = TableSummary.of(Table.of(values)).columns[0]
    assert len(sampled.seen) == 500
    assert (sampled.count, sampled.numbers.low, sampled.numbers.high) == (501, 0, 500 * math.pi)


def test_ends_grids_and_rare_values_are_those_of_all_rows() -> None:
    table = frame()
    table.loc[1234, ["real", "cents", "few"]] = [-77.5, 10_000.01, 9]
    fields = {field.name: field for field in Schema.infer(Table.of(table), unseen="other").fields}
    assert fields["real"].column.extent[0] == -77.5  # type: ignore[attr-defined]
    assert fields["cents"].column.grid[1] == 0.01
    assert fields["few"].values == (0, 1, 2, 3, 4, 9)
    assert fields["rare"].values == (1.5,)
    table.loc[1234, "cents"] = 0.005
    assert Schema.infer(Table.of(table), unseen="other").fields[1].column.grid[1] == 0


def test_text_is_dates_only_if_all_of_it_is() -> None:
    table = frame()
    assert Schema.infer(Table.of(table), unseen="other").fields[5].dtype == "date"
    table.loc[3999, "day"] = "later"
    assert Schema.infer(Table.of(table), unseen="other").fields[5].dtype == "text"


def test_the_sample_is_uniform() -> None:
    """Each of 20 parts of the rows has its share, within 4 standard deviations."""
    sample = TableSummary.of(Table.of(np.arange(20_000.0)[:, None])).columns[0].seen
    counts = np.histogram(sample, bins=20, range=(0, 20_000))[0]
    assert len(sample) == 500
    assert (np.abs(counts - 25) < 4 * math.sqrt(25)).all()


def test_quantiles_are_within_the_stated_error() -> None:
    values = np.random.default_rng(1).exponential(size=20_000)
    sample = TableSummary.of(Table.of(values[:, None])).columns[0].seen
    levels = np.linspace(0.05, 0.95, 19)
    ranks = (values[:, None] <= np.quantile(sample, levels)).mean(axis=0)
    assert np.abs(ranks - levels).max() < math.sqrt(7.3 / 500)


def test_frequent_words_are_counted_in_the_sample_if_there_are_too_many() -> None:
    table = frame()
    field = Schema.infer(Table.of(table), unseen="other").fields[4]
    counts = table["many"].value_counts()
    assert set(counts.index[:20]) <= set(field.values)
    assert field.bucket


def test_a_column_that_is_empty_at_first() -> None:
    table = frame()
    table.loc[:1500, "word"] = None
    whole = Schema.infer(Table.of(table), unseen="other")
    assert whole == Schema.infer(in_pieces(table, 700, 1400), unseen="other")
    assert whole.fields[3].values == ("x", "y", "z")
