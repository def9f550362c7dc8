"""The association between columns, against tables known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from made.report import dependence


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
    missing = np.array([[-1, 1, 0], [0, -1, 0]] * 30)
    found = dependence.cramers_v(np.concatenate([rows, missing]))
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


def associated(rows: int, noise: float, seed: int) -> np.ndarray:
    """Two columns that agree but for some noise, and one that is independent of both."""
    random = np.random.default_rng(seed)
    first, other = random.integers(4, size=(2, rows))
    second = np.where(random.random(rows) < noise, random.integers(4, size=rows), first)
    return np.stack([first, second, other], axis=1)


NAMES = ("a", "b", "c")


def test_an_association_that_samples_lack_is_a_warning() -> None:
    said = dependence.compare(NAMES, associated(500, 0.1, 0), associated(500, 0.6, 1)).warning("train for longer")
    assert said.startswith("Samples do not have the association between some columns: a and b, 0.9")
    assert said.endswith(" in samples. Remedy: train for longer.")
    assert "c," not in said


@pytest.mark.parametrize("rows", [60, 2000])
def test_chance_is_no_warning(rows) -> None:
    for seed in range(10):
        found = dependence.compare(NAMES, associated(rows, 0.5, seed), associated(rows, 0.5, 100 + seed))
        assert found.warning("train for longer") is None


def test_a_small_difference_is_no_warning_however_certain() -> None:
    found = dependence.compare(NAMES, associated(50_000, 0.5, 0), associated(50_000, 0.56, 1))
    far = found.farthest[0]
    assert abs(far.real - far.sampled) > 5 * far.error
    assert found.warning("train for longer") is None


def test_the_standard_error_is_that_of_repeated_tables() -> None:
    values = [dependence.cramers_v(associated(400, 0.5, seed))[0, 1] for seed in range(200)]
    found = dependence.compare(NAMES, associated(400, 0.5, 5000), associated(400, 0.5, 5001))
    pair = next(each for each in found.farthest if {each.first, each.second} == {"a", "b"})
    assert pair.error == pytest.approx(np.sqrt(2) * np.std(values), rel=0.35)
