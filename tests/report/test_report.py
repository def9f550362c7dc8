"""The numbers of a report, against what is known by hand."""

from __future__ import annotations

import datetime
import math
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from browser import animals, fitted, parsed
from made import MADE
from made.report import column, dependence, figures
from made.report.column import Bars
from made.report.numbers import Report, measure
from made.report.page import page
from made.report.rows import arrow, infinite, numbers, with_holes


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return animals()


@pytest.fixture(scope="module")
def model(table) -> MADE:
    return fitted(table)


@pytest.fixture(scope="module")
def report(model, table) -> Report:
    return measure(model, table, name="animals", data="table.csv", top=3)


def test_distances_are_those_of_known_shares() -> None:
    ones = column.compare(
        "a", "binary", np.array([0.0, 0, 0, 1, np.nan]), np.array([0.0, 1]), labels=("no", "yes"), random=_random()
    )
    assert (ones.holes, ones.distinct, ones.distance, ones.measure) == (0.2, 2, 0.25, "total variation")
    assert ones.shares == Bars(("no", "yes"), (0.75, 0.25), (0.5, 0.5))
    numbers = column.compare("b", "numeric", np.array([1.0, 2, 3, 4]), np.array([3.0, 4, 5, 6]), random=_random())
    assert (numbers.distance, numbers.measure, numbers.spike) == (0.5, "Kolmogorov-Smirnov", None)
    assert column.kolmogorov_smirnov(np.array([1.0, 2]), np.array([5.0])) == 1
    assert column.kolmogorov_smirnov(np.array([1.0, 1, 2]), np.array([1.0, 2, 1])) == 0


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("labels", [None, tuple("abcdef")])
def test_chance_is_what_the_same_distribution_stays_below(labels) -> None:
    """In 19 of 20 draws; of numbers that repeat, in more."""
    generator, within = np.random.default_rng(1), 0
    for _ in range(200):
        real, sampled = generator.integers(6, size=(2, 400)).astype(float)
        if labels is None:
            real, sampled = real + generator.random(400), sampled + generator.random(400)
        within += not column.compare("x", "any", real, sampled, labels=labels, random=generator).differs
    assert 180 <= within <= 199


def test_a_spike_is_named() -> None:
    real = np.concatenate([np.zeros(80), np.arange(1, 21.0)])
    found = column.compare("debt", "numeric", real, np.arange(100.0), random=_random())
    assert found.spike == column.Spike(0.0, 0.8, 0.01)
    assert column.compare("same", "numeric", np.ones(9), np.ones(9), random=_random()).spike is None


def test_whole_numbers_are_in_the_middle_of_their_bins() -> None:
    found = column.histogram(np.arange(100.0), np.array([-5.0, 3, 200]))
    assert found.edges[:3] == (-0.5, 4.5, 9.5)
    assert found.real == (0.05,) * 20
    assert found.sampled == (2 / 3, *([0.0] * 18), 1 / 3)
    assert (found.scale, found.below, found.above) == ("linear", True, True)


def test_tails_do_not_flatten_the_rest() -> None:
    real = np.concatenate([np.random.default_rng(0).normal(size=9999), [1e9]])
    found = column.histogram(real, real)
    assert found.edges[-1] < 5
    assert found.above
    assert max(found.real) < 0.2


@pytest.mark.parametrize(
    "values",
    [
        10.0 ** np.arange(-300, 301),
        np.array([-1.7e308, 0.5, 1.7e308]),
        np.array([sys.float_info.max]),
        np.array([5e-324, 1.0]),
        np.array([-1e-300, 2e-300]),
        np.array([3.5]),
        np.array([0.0]),
        np.array([2.0**60, 2.0**60 + 4096]),
        np.geomspace(5e-324, 1.79e308, 50),
    ],
)
def test_numbers_of_any_size_are_drawn(values) -> None:
    found = column.histogram(values, values[::-1])
    assert np.isfinite(found.edges).all()
    assert (np.diff(found.edges) >= 0).all()
    assert sum(found.real) == pytest.approx(1)
    assert found.real == found.sampled
    parsed(figures.histogram(found, "any"))
    assert column.kolmogorov_smirnov(values, values) == 0
    codes = dependence.binned(values, values, discrete=False)
    assert (codes[0] == codes[1]).all()


def test_a_wide_range_has_a_logarithmic_scale() -> None:
    found = column.histogram(10.0 ** np.arange(-300, 301), np.array([-1.0, 1.0]))
    assert found.scale == "log"
    assert found.edges[0] == 1e-300
    assert found.edges[-1] == 1e300
    assert max(found.real) < 0.05
    assert found.below
    assert not found.above
    marks = figures._marks(found, dates=False)
    assert [mark for _, mark in marks] == ["1e\N{MINUS SIGN}200", "1", "1e200"]
    assert [round(place, 6) for place, _ in marks] == [4, 12, 20]


def test_many_values_are_twelve_and_the_rest() -> None:
    counts = np.arange(1000)
    found = column.bars(tuple(f"v{i}" for i in range(1000)), counts, np.ones(1000, dtype=np.intp))
    assert found.labels == (*(f"v{i}" for i in range(999, 987, -1)), "988 others")
    assert found.rest == 988
    assert sum(found.real) == pytest.approx(1)
    assert found.sampled == pytest.approx((*([0.001] * 12), 0.988))
    # One more than there is room for is no rest, and numbers that are few keep their order.
    assert column.bars(tuple("abcdefghijklm"), np.ones(13, dtype=np.intp), np.ones(13, dtype=np.intp)).rest == 0
    assert column.bars((3.0, 4.0), np.array([1, 9]), np.array([5, 5])).labels == ("3", "4")
    years = column.bars(tuple(range(20)), np.arange(20), np.arange(20))
    assert years.labels == tuple(map(str, range(20)))


def test_dependence_is_that_of_known_tables() -> None:
    """Against Bergsma's formula by hand, for [[30, 10], [10, 50]]."""
    rows = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [30, 10, 10, 50], axis=0)
    square = (30 * 50 - 10 * 10) ** 2 / (40 * 60 * 40 * 60)
    expected = math.sqrt((square - 1 / 99) / (1 - 1 / 99))
    assert dependence.cramers_v(rows)[0, 1] == pytest.approx(expected)
    assert dependence.cramers_v(rows)[1, 0] == pytest.approx(expected)


def test_dependence_of_independent_columns_is_nearly_nothing() -> None:
    codes = np.random.default_rng(0).integers(8, size=(500, 20))
    found = dependence.cramers_v(codes)[np.triu_indices(20, 1)]
    assert found.mean() < 0.03  # not corrected, it would be 0.12


def test_dependence_leaves_out_what_is_not_observed_and_knows_when_it_has_no_meaning() -> None:
    rows = np.repeat([[0, 0, 0], [1, 1, 0]], 50, axis=0)
    hole = np.array([[-1, 1, 0], [0, -1, 0]] * 30)
    found = dependence.cramers_v(np.concatenate([rows, hole]))
    assert found[0, 1] == pytest.approx(1)
    assert np.isnan(found[0, 2])
    assert np.isnan(found[2, 2])
    assert np.isnan(dependence.cramers_v(np.full((5, 2), -1))).all()


def test_columns_become_few_values() -> None:
    real, sampled = dependence.binned(np.arange(800.0), np.array([-9.0, 399, 400, 9999, np.nan]), discrete=False)
    assert np.bincount(real).tolist() == [100] * 8
    assert sampled.tolist() == [0, 3, 4, 7, -1]
    spike = np.concatenate([np.zeros(90), np.arange(1, 11.0)])
    assert np.bincount(dependence.binned(spike, spike, discrete=False)[0]).tolist() == [90, 2, 1, 1, 2, 1, 1, 2]
    few = np.array([1.0, 2, 2, 3])
    assert dependence.binned(few, np.array([0.0, 2.5, 3, 9]), discrete=False)[1].tolist() == [0, 3, 4, 4]
    many = np.repeat(np.arange(20.0), np.arange(20, 0, -1))
    codes = dependence.binned(many, np.array([0.0, 10, 11, 500]), discrete=True)
    assert codes[0].max() == 11
    assert codes[1].tolist() == [0, 10, 11, 11]


def test_of_many_columns_the_most_dependent_are_shown() -> None:
    generator = np.random.default_rng(0)
    codes = generator.integers(2, size=(300, 60))
    codes[:, 50] = codes[:, 7]
    found = dependence.compare(tuple(f"c{d}" for d in range(60)), codes, codes)
    assert len(found.columns) == dependence.MOST_SHOWN
    assert {"c7", "c50"} <= set(found.columns)
    assert (found.measured, found.pairs, found.difference) == (60, 1770, 0.0)
    assert (found.strongest[0].first, found.strongest[0].second) == ("c7", "c50")
    assert found.strongest[0].real == pytest.approx(1)


def test_of_very_many_columns_the_most_varied_are_measured(monkeypatch) -> None:
    monkeypatch.setattr(dependence, "MOST_COLUMNS", 2)
    codes = np.random.default_rng(0).integers(2, size=(100, 3))
    codes[:, 0] = 0
    assert dependence.compare(("a", "b", "c"), codes, codes).columns == ("b", "c")


def test_a_report_has_the_numbers_of_the_model(report, model, table) -> None:
    log_prob = model.score_samples(table).astype(np.float64)
    assert report.likelihood.nll == pytest.approx(-log_prob.mean())
    assert report.likelihood.ci95 == pytest.approx(1.96 * log_prob.std(ddof=1) / math.sqrt(300))
    assert (report.rows, report.rows_in_data, report.samples, report.seed) == (300, 300, 300, 0)
    assert [each.name for each in report.columns] == table.column_names
    assert [each.kind for each in report.columns] == ["categorical", "numeric", "binary", "numeric", "binary"]
    assert [each.holes for each in report.columns] == [0, 0.1, 0, 0, 0]
    assert report.columns[0].distinct == 3
    drawn = model.sample(300, random_state=0)
    share = {name: drawn["kind"].to_pylist().count(name) / 300 for name in report.columns[0].shares.labels}
    assert report.columns[0].shares.sampled == pytest.approx(tuple(share.values()))
    assert report.columns[3].spike.value == 0
    assert report.columns[4].shares.labels == ("False", "True")
    assert report.training.epochs == tuple((e.number, e.train_nll, e.valid_nll) for e in model.model_.history)
    assert report.training.masks == 2
    assert report.dependence.pairs == 10
    assert len(report.dependence.real) == 5
    assert report.dependence.strongest[0].first == "kind"
    assert report.dependence.strongest[0].second == "weight"


def test_the_oddest_rows_are_the_least_likely_and_their_reasons_are_above_what_is_usual(report, model, table) -> None:
    log_prob = model.score_samples(table)
    assert [each.row for each in report.odd] == np.argsort(log_prob, kind="stable")[:3].tolist()
    surprise = model.surprise(table).to_pandas().to_numpy()
    for odd in report.odd:
        assert odd.log_prob == pytest.approx(log_prob[odd.row])
        assert odd.values == {name: value for name, value in table.to_pylist()[odd.row].items() if value is not None}
        above = [reason.surprise - reason.usual for reason in odd.reasons]
        assert above == sorted(above, reverse=True)
        for reason in odd.reasons:
            d = table.column_names.index(reason.column)
            assert reason.surprise == pytest.approx(surprise[odd.row, d], abs=1e-4)
            assert reason.usual == pytest.approx(np.nanmedian(surprise[:, d]), abs=1e-4)
            one = table.slice(odd.row, 1)
            if reason.probability is None:
                hole = with_holes(one, np.arange(5)[None] == d)
                expected = model.impute(hole, strategy="mode")[reason.column][0].as_py()
                assert reason.likeliest == pytest.approx(expected, rel=1e-4)
            else:
                probabilities = model.predict_proba(one, target=reason.column)[0]
                place = model.classes(reason.column).tolist().index(reason.value)
                assert reason.probability == pytest.approx(probabilities[place], abs=1e-5)
                assert reason.likeliest == model.classes(reason.column)[probabilities.argmax()]


def test_samples_have_the_holes_of_rows_when_they_are_scored(model, table) -> None:
    """Or a table of holes would look likelier than samples, whatever the model."""
    some = with_holes(table, np.ones((300, 5), dtype=bool) & (np.arange(5) > 0))
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
    assert "Of 300 rows, 50 are drawn at random" in found.notes[0]
    log_prob = model.score_samples(table)
    assert all(each.log_prob == pytest.approx(log_prob[each.row], abs=1e-4) for each in found.odd)
    assert "of 300" in page(found)


@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy", "objects", "torch"])
def test_whatever_the_rows_are_in(kind, table) -> None:
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
    found = column.compare("day", "numeric", values, values, dates=True, random=_random())
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


def test_what_is_concluded(report) -> None:
    found = report.likelihood
    close = replace(report, likelihood=replace(found, nll=5.0, ci95=0.1, sampled_nll=5.1, sampled_ci95=0.1))
    assert "rows look like its own samples" in close.sentences()[0]
    odd = replace(report, likelihood=replace(found, nll=6.0, ci95=0.1, sampled_nll=5.0, sampled_ci95=0.1))
    assert "has not learned" in odd.sentences()[0]
    sure = replace(report, likelihood=replace(found, nll=4.0, ci95=0.1, sampled_nll=5.0, sampled_ci95=0.1))
    assert "by heart" in sure.sentences()[0]
    curve = tuple((i, 5.0, 5.0) for i in range(100))
    trained = replace(report.training, epochs=curve, best_epoch=50, settings={"max_epochs": 100})
    assert replace(report, training=trained).sentences()[-1] == "The best epoch is 50 of 0 to 99."
    trained = replace(trained, best_epoch=98)
    assert "more epochs may help" in replace(report, training=trained).sentences()[-1]
    same = tuple(replace(each, distance=0.0) for each in report.columns)
    assert any("In no column" in each for each in replace(report, columns=same).sentences())
    # The farthest may be within chance, of which a column of many values or few rows has more.
    first, second, *_ = report.columns
    apart = [replace(first, distance=0.03, chance=0.05), replace(second, distance=0.02, chance=0.01)]
    (said,) = (each for each in replace(report, columns=apart).sentences() if "more than chance" in each)
    assert f"In 1 of 2 columns, samples differ from the rows by more than chance: the most in {second.name}" in said
