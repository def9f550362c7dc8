"""Pictures say what they show."""

from __future__ import annotations

from made.columns.bins import Bars, Histogram
from made.report import figures


def test_pictures_say_what_they_show() -> None:
    drawn = figures.histogram(Histogram((0, 1, 2), (0.25, 0.75), (0.5, 0.5), above=True), "x")
    assert "<title>0 to 1: real 25 %, sampled 50 %</title>" in drawn
    assert "<title>from 1: real 75 %, sampled 50 %</title>" in drawn
    drawn = figures.bars(Bars(("a", "b"), (0.25, 0.75), ()), "x")
    assert drawn.count("<rect") == 2
    assert "75 %" in drawn
