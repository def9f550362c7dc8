"""Conclusions from the numbers of a report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from made.report.dependence import ColumnPair
from made.report.questions import ShortQuestion, ShortQuestions


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


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ({"finished": False}, "finish the training"),
        ({"epochs": (), "best_epoch": None}, "train for longer, max_epochs=200"),
        ({"best_epoch": 99}, "train for longer, max_epochs=200"),
        ({"best_epoch": 50}, "use a larger network, hidden_sizes=(16,)"),
        (
            {"best_epoch": 99, "settings": {"max_epochs": 500, "max_seconds": 60.0}},
            "train for longer, max_seconds=120.0",
        ),
    ],
)
def test_the_remedy_suits_how_training_ended(report, change, remedy) -> None:
    curve = tuple((i, 5.0, 5.0) for i in range(100))
    settings = {"max_epochs": 100, "hidden_sizes": [8]}
    trained = replace(report.training, epochs=curve, settings=settings)
    assert replace(trained, **change).remedy() == remedy


def test_warnings_are_of_kinds_questions_and_associations(report) -> None:
    wrong = ShortQuestions(10, 0.1, 1, (ShortQuestion("a", "x", "b", "y", 0.2, 0.5, 100),))
    pairs = replace(report.dependence, farthest=(ColumnPair("a", "b", 0.9, 0.1, 0.01),))
    bad = replace(report, kinds=("A kind.",), questions=wrong, dependence=pairs)
    first, second, third = bad.warnings()
    assert first == "A kind."
    assert "P(a = x | b = y)" in second
    assert "a and b, 0.90 in the rows and 0.10 in samples" in third
    assert bad.facts()["warnings"] == bad.warnings()
    assert bad.facts()["questions"]["worst"][0]["frequency"] == 0.5
    fine = replace(report, kinds=(), questions=ShortQuestions(), dependence=replace(report.dependence, farthest=()))
    assert fine.warnings() == []
