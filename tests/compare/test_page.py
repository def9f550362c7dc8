"""The page of a comparison."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from browser import browse, in_a_browser, parsed
from made.compare.page import intervals, page
from made.compare.result import Result, Setting
from systems import named

EVIL = '<script>alert("1")</script>&\'"'


def test_the_picture_marks_estimates_and_bounds() -> None:
    exact, estimate = named("exact one", [-1, -2, -3, -4]), named("estimated", [-1, -2, -3, -5], "estimate", 0.3)
    drawn = intervals([exact, estimate, named("bounded", [-1, -2, -3, -6], "bound")])
    assert re.findall(r'<(circle|path) class="(\w+)"', drawn) == [
        ("circle", "exact"),
        ("circle", "estimate"),
        ("path", "bound"),
    ]
    assert ">2.50 ± 1.27</text>" in drawn
    assert "≈ 2.75 ± 1.77, estimate</text>" in drawn
    assert "≤ 3.00 ± 2.12, upper bound</text>" in drawn


def test_a_higher_nll_is_further_right() -> None:
    drawn = intervals([named("a", [-1, -2, -3, -4]), named("b", [-1, -2, -3, -5]), named("c", [-1, -2, -3, -9])])
    centres = [float(each) for each in re.findall(r'cx="([\d.]+)"', drawn)]
    assert len(centres) == 3
    assert all(one < other for one, other in pairwise(centres))


def test_without_an_nll_there_is_no_picture() -> None:
    assert intervals([Result("bad", "bad", error="no")]) == ""
    only = page([Result("bad", "bad", error="no")], Setting("x", 1, 2, 3, 4))
    assert "svg" not in parsed(only).tags
    assert "no limit on training time" in only


@pytest.fixture
def content() -> str:
    results = [
        named(EVIL, [-1, -2, -3, -4]),
        named("other", [-1, -2, -3, -5], "estimate", 0.3),
        Result("bad", EVIL, error=f"divided by {EVIL}"),
    ]
    return page(results, Setting(EVIL, 12, 40, 40, 4, budget=90, notes=(EVIL,)))


def test_names_and_errors_are_escaped(content) -> None:
    checker = parsed(content)  # which finds a script
    assert checker.text.count(EVIL) >= 4
    assert "failed: divided by &lt;script&gt;" in content
    assert not checker.links


def test_the_page_says_how_each_number_was_obtained(content) -> None:
    assert "1.5 minutes of training" in content
    assert "estimate (s.e.\u00a00.3)" in content
    assert "not told apart: the interval contains 0" in content


@in_a_browser
def test_a_browser_shows_the_page_at_any_width(tmp_path) -> None:
    results = [
        named("a name that is rather long for a picture", [-1, -2, -3, -4]),
        named("b", [-2, -3, -4, -5], "estimate", 0.3),
        named("c", [-3, -4, -5, -6], "bound", 0.3),
    ]
    for found in browse(page(results, Setting("x.csv", 12, 40, 40, 4)), tmp_path, 390, 1280):
        assert found["scroll"] <= found["wide"], "the page is wider than its window"
        assert found["outside"] == [], "text is outside of its picture"
        assert found["pictures"] == 1
