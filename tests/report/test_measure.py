"""The numbers of a report, against those of the model."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import torch

from browser import fitted, parsed
from made.report.measure import measure
from made.report.page import page
from made.report.rows import with_missing


def test_the_likelihood_is_that_of_the_model(report, model, table) -> None:
    log_prob = model.score_samples(table).astype(np.float64)
    assert report.likelihood.nll == pytest.approx(-log_prob.mean())
    assert report.likelihood.ci95 == pytest.approx(1.96 * log_prob.std(ddof=1) / math.sqrt(300))


def test_columns_are_described_in_order(report, table) -> None:
    assert [each.name for each in report.columns] == table.column_names
    assert [each.kind for each in report.columns] == ["categorical", "numeric", "binary", "numeric", "binary"]
    assert [each.missing for each in report.columns] == [0, 0.1, 0, 0, 0]
    assert report.columns[0].distinct == 3
    assert report.columns[3].spike.value == 0
    assert report.columns[4].shares.labels == ("False", "True")


def test_sampled_shares_are_those_of_the_samples(report, model) -> None:
    assert (report.rows, report.rows_in_data, report.samples, report.seed) == (300, 300, 300, 0)
    drawn = model.sample(300, random_state=0)["kind"].to_pylist()
    expected = tuple(drawn.count(name) / 300 for name in report.columns[0].shares.labels)
    assert report.columns[0].shares.sampled == pytest.approx(expected)


def test_the_history_is_that_of_training(report, model) -> None:
    assert report.training.epochs == tuple((e.number, e.train_nll, e.valid_nll) for e in model.history)
    assert report.training.masks == 2


def test_the_strongest_association_is_found(report) -> None:
    assert report.dependence.pairs == 10
    assert len(report.dependence.real) == 5
    strongest = report.dependence.strongest[0]
    assert (strongest.first, strongest.second) == ("kind", "weight")


def test_samples_get_the_missing_values_of_rows_before_they_are_scored(model, table) -> None:
    """Otherwise rows with many missing values would look likelier than samples, whatever the model."""
    some = with_missing(table, np.ones((300, 5), dtype=bool) & (np.arange(5) > 0))
    found = measure(model, some).likelihood
    assert found.sampled_nll == pytest.approx(found.nll, abs=4 * math.hypot(found.ci95, found.sampled_ci95))
    assert found.sampled_nll < 2


def test_the_same_seed_is_the_same_report(report, model, table) -> None:
    again = measure(model, table, name="animals", data="table.csv", top=3)
    assert page(again) == page(report)
    other = measure(model, table, name="animals", data="table.csv", top=3, seed=1)
    assert other.columns != report.columns


def test_of_many_rows_some_are_drawn_and_keep_their_numbers(model, table) -> None:
    found = measure(model, table, most_rows=50, samples=20)
    assert (found.rows, found.rows_in_data, found.samples) == (50, 300, 20)
    assert "based on 50 rows, drawn at random from 300" in found.notes[0]
    log_prob = model.score_samples(table)
    assert all(each.log_prob == pytest.approx(log_prob[each.row], abs=1e-4) for each in found.odd)
    assert "of 300" in page(found)


@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy", "objects", "torch"])
def test_rows_of_any_container_give_the_same_report(kind, table) -> None:
    plain = table.to_pandas()
    numeric = plain[["weight", "debt"]].to_numpy()
    rows = {
        "pandas": plain.assign(kind=plain["kind"].astype("category")),
        "polars": pl.from_arrow(table),
        "numpy": numeric,
        "objects": plain[["kind", "weight"]].astype(object).where(plain[["kind", "weight"]].notna(), None).to_numpy(),
        "torch": torch.tensor(numeric),
    }[kind]
    found = measure(fitted(rows, max_epochs=1), rows, samples=40)
    assert found.rows == 300
    parsed(page(found))
