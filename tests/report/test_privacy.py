"""Copies, distances and membership inference, on tables where the answers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_auc_score

from browser import animals
from made import DataError
from made.report.measure import measure
from made.report.page import page
from made.report.privacy import privacy


@pytest.fixture(scope="module")
def halves(table) -> tuple[pa.Table, pa.Table]:
    return table.slice(0, len(table) // 2), table.slice(len(table) // 2)


def test_rows_of_the_same_origin_are_as_close_to_both(model, halves) -> None:
    found = privacy(model, *halves, seed=0)
    assert abs(found.closer - 0.5) < 3 * found.closer_ci95
    assert abs(found.membership_auc - 0.5) < 3 * found.membership_ci95
    assert replace(found, closer=0.5, copies=0.0, membership_auc=0.5).warning() is None


def test_copied_rows_are_found(model, halves) -> None:
    found = privacy(model, *halves, synthetic=halves[0], seed=0)
    assert found.copies == 1
    assert found.distance == 0
    assert found.closer > 0.9
    warning = found.warning()
    assert warning is not None
    assert "closer to the training rows" in warning
    assert "copy training rows" in warning


def test_distances_equal_those_of_a_slow_oracle(model, halves) -> None:
    """Without missing values, a row as numbers is one-hot categories, halved, beside places among the values."""
    train, held_out = (each.filter(_complete(each)).slice(0, 60) for each in halves)
    found = privacy(model, train, held_out, synthetic=held_out, seed=0)
    near, far = (_numbers(model, each, train) for each in (train, held_out))
    wanted = cdist(far, near, "cityblock").min(axis=1) / len(model.schema.fields)
    assert len(train) == len(held_out) == 60
    assert found.distance == pytest.approx(np.median(wanted), abs=1e-6)
    assert found.distance_to_held_out == 0


def _complete(table: pa.Table) -> pa.Array:
    return pa.array(np.all([np.array([v is not None for v in column.to_pylist()]) for column in table.columns], axis=0))


def _numbers(model, table: pa.Table, train: pa.Table):
    parts, codes, known = [], model.codes(table), model.codes(train)
    for d, field in enumerate(model.schema.fields):
        if field.listed and not field.column.ordered:
            parts.append((codes[:, [d]] == np.arange(field.column.codes)) / 2)
        else:
            below = [((known[:, d] < code).mean() + (known[:, d] <= code).mean()) / 2 for code in codes[:, d]]
            parts.append(np.array(below)[:, None])
    return np.concatenate(parts, axis=1)


def test_a_missing_value_is_as_far_as_can_be_from_a_value_and_equals_another(model, table) -> None:
    row = table.filter(_complete(table)).slice(0, 2)
    gone = pa.table({name: pa.array([None] * 2, type=row[name].type) for name in row.column_names})
    assert privacy(model, row, row, synthetic=gone).distance == pytest.approx(1)
    assert privacy(model, gone, row, synthetic=gone).distance == 0


def test_membership_is_the_auc_of_the_likelihood(model, halves) -> None:
    train, held_out = (each.slice(0, 40) for each in halves)
    found = privacy(model, train, held_out)
    log_p = np.concatenate([model.score_samples(each) for each in (train, held_out)])
    assert found.membership_auc == pytest.approx(roc_auc_score(np.repeat([1, 0], 40), log_p))


def test_a_large_table_is_sampled_with_the_seed(model, halves) -> None:
    first, second, other = (privacy(model, *halves, most_rows=30, seed=seed) for seed in (1, 1, 2))
    assert first == second != other
    assert (first.rows, first.samples) == (30, 30)


def test_too_few_rows_are_refused(model, halves) -> None:
    with pytest.raises(DataError, match="'held_out' should have at least 2 rows, not 1"):
        privacy(model, halves[0], halves[1].slice(0, 1))


def test_a_report_with_held_out_rows_has_it(model, halves) -> None:
    report = measure(model, halves[0], held_out=halves[1], name="animals", data="table.csv", top=1, seed=0)
    assert report.privacy == privacy(model, *halves, seed=0)
    assert report.privacy.sentence() in report.sentences()
    assert report.facts()["privacy"]["rows"] == report.privacy.rows
    assert '<h2 id="privacy">Privacy</h2>' in page(report)


def test_a_report_without_them_has_none(report) -> None:
    assert report.privacy is None
    assert "privacy" not in page(report).lower()


def test_animals_have_every_kind_of_distance(model) -> None:
    fields = model.schema.fields
    assert {field.listed and not field.column.ordered for field in fields} == {True, False}
    assert any(None in column.to_pylist() for column in animals().columns)
