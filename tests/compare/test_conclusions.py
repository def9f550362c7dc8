"""Statistics of a comparison, to the digit."""

from __future__ import annotations

import pytest

from made.compare.conclusions import Difference, differences, overlaps, ranked, sentences
from systems import named, said


def test_the_interval_is_of_the_mean_and_an_estimate_makes_it_wider() -> None:
    exact = said([-1, -2, -3, -4])
    assert (exact.nll, exact.kind, exact.standard_error) == (2.5, "exact", 0)
    assert exact.ci95 == pytest.approx(1.2651744, abs=1e-6)  # 1.96 sqrt(5/3) / sqrt(4)
    estimate = said([-1, -2, -3, -4], "estimate", 0.3)
    assert estimate.nll == 2.5
    assert estimate.ci95 == pytest.approx(1.3951378, abs=1e-6)  # 1.96 sqrt(5/12 + 0.09)
    assert estimate.known == "estimate (s.e. 0.3)"
    assert said([-1, -2, -3, -4], "bound").known == "upper bound"
    assert said([-1, -2, -3, -4], "bound", 0.25).known == "upper bound (s.e. 0.25)"


def test_the_interval_is_that_of_the_rest_of_the_package() -> None:
    torch = pytest.importorskip("torch")
    from made import mean_and_interval

    result = said([-1.5, -2.25, -3, -9])
    assert (result.nll, result.ci95) == pytest.approx(mean_and_interval(-torch.tensor([-1.5, -2.25, -3, -9])))


def test_paired_differences_separate_systems_whose_intervals_overlap() -> None:
    best, other = named("best", [-1, -2, -3, -4]), named("other", [-1.5, -2.5, -2.9, -4.7])
    (found,) = differences([other, best])
    assert found == Difference("other", "best", pytest.approx(0.4), pytest.approx(0.3394820, abs=1e-6), True, "worse")
    # The standard errors of both are in the interval of the difference: 1.96 sqrt(0.03 + 0.04 + 0.01).
    unsure = [
        named("best", [-1, -2, -3, -4], "estimate", 0.2),
        named("other", [-1.5, -2.5, -2.9, -4.7], "estimate", 0.1),
    ]
    (found,) = differences(unsure)
    assert (found.ci95, found.verdict) == (pytest.approx(0.5543717, abs=1e-6), "not told apart")
    text = " ".join(sentences(unsure, 4))
    assert "Not told apart from the best" in text
    assert "other by 0.40 ± 0.55" in text
    assert "Overlapping 95 % intervals: best with other." in text


def test_a_bound_that_looks_worse_is_not_known_to_be() -> None:
    best, bound = named("best", [-2, -2, -2, -2.1]), named("bound", [-9, -9, -9, -9.1], "bound")
    (found,) = differences([best, bound])
    assert (found.verdict, found.overlap) == ("unknown", True)  # it has no lower end
    assert "Not known to be worse" in " ".join(sentences([best, bound], 4))
    # One that looks better is better: the truth is lower still.
    better = named("better", [-1.9, -1.9, -1.9, -1.95], "bound")
    assert [(each.name, each.verdict) for each in differences([best, better])] == [("best", "worse")]
    assert "better, with an NLL of at most 1.9" in sentences([best, better], 4)[0]
    assert bound.facts()["direction"] == "the true NLL is this or lower"
    assert best.facts()["direction"] is None


def test_intervals_overlap_in_pairs() -> None:
    results = [
        named(name, [-m, -m - 0.1, -m + 0.1, -m]) for name, m in (("a", 4.0), ("b", 2.0), ("c", 2.1), ("d", 4.1))
    ]
    assert overlaps(results) == [("b", "c"), ("a", "d")]
    assert [each.name for each in ranked(results)] == ["b", "c", "a", "d"]
    assert "Overlapping 95 % intervals: b with c; a with d." in sentences(results, 4)
    assert "No 95 % intervals overlap." in sentences(results[:2], 4)
