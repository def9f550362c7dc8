"""The shares of one column and the distance between rows and samples, against values known by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from browser import parsed
from made import Binary, Numeric
from made.columns.bins import Bars, bars, histogram
from made.report import column, dependence, figures

NUMBERS = Numeric(0.0, 1.0)


def test_distances_are_those_of_known_shares() -> None:
    ones = column.compare(
        "a", Binary(), np.array([0.0, 0, 0, 1, np.nan]), np.array([0.0, 1]), labels=("no", "yes"), random=_random()
    )
    assert (ones.missing, ones.distinct, ones.distance, ones.measure) == (0.2, 2, 0.25, "total variation")
    assert ones.shares == Bars(("no", "yes"), (0.75, 0.25), (0.5, 0.5))
    numbers = column.compare("b", NUMBERS, np.array([1.0, 2, 3, 4]), np.array([3.0, 4, 5, 6]), random=_random())
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
        within += not column.compare("x", NUMBERS, real, sampled, labels=labels, random=generator).differs
    assert 180 <= within <= 199


def test_a_spike_is_named() -> None:
    real = np.concatenate([np.zeros(80), np.arange(1, 21.0)])
    found = column.compare("debt", NUMBERS, real, np.arange(100.0), random=_random())
    assert found.spike == column.Spike(0.0, 0.8, 0.01)
    assert column.compare("same", NUMBERS, np.ones(9), np.ones(9), random=_random()).spike is None


def test_whole_numbers_are_in_the_middle_of_their_bins() -> None:
    found = histogram(np.arange(100.0), np.array([-5.0, 3, 200]))
    assert found.edges[:3] == (-0.5, 4.5, 9.5)
    assert found.real == (0.05,) * 20
    assert found.sampled == (2 / 3, *([0.0] * 18), 1 / 3)
    assert (found.scale, found.below, found.above) == ("linear", True, True)


def test_tails_do_not_flatten_the_rest() -> None:
    real = np.concatenate([np.random.default_rng(0).normal(size=9999), [1e9]])
    found = histogram(real, real)
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
    found = histogram(values, values[::-1])
    assert np.isfinite(found.edges).all()
    assert (np.diff(found.edges) >= 0).all()
    assert sum(found.real) == pytest.approx(1)
    assert found.real == found.sampled
    parsed(figures.histogram(found, "any"))
    assert column.kolmogorov_smirnov(values, values) == 0
    codes = dependence.binned(values, values, discrete=False)
    assert (codes[0] == codes[1]).all()


def test_a_wide_range_has_a_logarithmic_scale() -> None:
    found = histogram(10.0 ** np.arange(-300, 301), np.array([-1.0, 1.0]))
    assert found.scale == "log"
    assert found.edges[0] == 1e-300
    assert found.edges[-1] == 1e300
    assert max(found.real) < 0.05
    assert found.below
    assert not found.above
    marks = figures.axis_marks(found, dates=False)
    assert [mark for _, mark in marks] == ["1e\N{MINUS SIGN}200", "1", "1e200"]
    assert [round(place, 6) for place, _ in marks] == [4, 12, 20]


def test_many_values_are_twelve_and_the_rest() -> None:
    counts = np.arange(1000)
    found = bars(tuple(f"v{i}" for i in range(1000)), counts, np.ones(1000, dtype=np.intp))
    assert found.labels == (*(f"v{i}" for i in range(999, 987, -1)), "988 others")
    assert found.rest == 988
    assert sum(found.real) == pytest.approx(1)
    assert found.sampled == pytest.approx((*([0.001] * 12), 0.988))
    # One more than there is room for is no rest, and numbers that are few keep their order.
    assert bars(tuple("abcdefghijklm"), np.ones(13, dtype=np.intp), np.ones(13, dtype=np.intp)).rest == 0
    assert bars((3.0, 4.0), np.array([1, 9]), np.array([5, 5])).labels == ("3", "4")
    years = bars(tuple(range(20)), np.arange(20), np.arange(20))
    assert years.labels == tuple(map(str, range(20)))
