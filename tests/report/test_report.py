"""Conclusions from the numbers of a report."""

from __future__ import annotations

from dataclasses import replace

import pytest


@pytest.mark.parametrize(
    ("nll", "sampled", "conclusion"),
    [(5.0, 5.1, "look like samples"), (6.0, 5.0, "has not learned"), (4.0, 5.0, "memorized")],
)
def test_the_gap_between_rows_and_samples_is_interpreted(report, nll, sampled, conclusion) -> None:
    found = replace(report.likelihood, nll=nll, ci95=0.1, sampled_nll=sampled, sampled_ci95=0.1)
    assert conclusion in found.sentence()


def test_training_that_was_still_improving_is_noticed(report) -> None:
    curve = tuple((i, 5.0, 5.0) for i in range(100))
    trained = replace(report.training, epochs=curve, best_epoch=50, settings={"max_epochs": 100})
    assert trained.sentence() == "The best epoch is 50 of 0 to 99."
    assert "longer training may help" in replace(trained, best_epoch=98).sentence()
    stopped = replace(trained, best_epoch=98, settings={"max_epochs": 1000, "max_seconds": 5.0})
    assert "longer training may help" in stopped.sentence()


def test_training_without_validation_rows_or_without_an_end_is_noticed(report) -> None:
    assert "without validation rows" in replace(report.training, best_epoch=None).sentence()
    assert "not finished" in replace(report.training, finished=False).sentence()
    assert "not trained" in replace(report.training, epochs=()).sentence()


def test_no_column_differs(report) -> None:
    same = tuple(replace(each, distance=0.0) for each in report.columns)
    assert (
        "In no column do samples differ from the rows by more than chance." in replace(report, columns=same).sentences()
    )


def test_the_column_that_differs_most_is_named(report) -> None:
    """Not one with a larger distance below its threshold, which is higher for many values or few rows."""
    first, second, *_ = report.columns
    apart = (replace(first, distance=0.03, chance=0.05), replace(second, distance=0.02, chance=0.01))
    assert replace(report, columns=apart).sentences()[1] == (
        f"In 1 of 2 columns, samples differ from the rows by more than chance, most in {second.name}: distance 0.020, "
        "threshold 0.010."
    )
