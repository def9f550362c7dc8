"""The page of a comparison."""

from __future__ import annotations

import re
from itertools import pairwise

from browser import browse, in_a_browser, parsed
from made.compare.page import intervals, page
from made.compare.result import Result, Setting
from systems import named


def test_the_picture_marks_what_is_not_exact() -> None:
    exact, estimate = named("exact one", [-1, -2, -3, -4]), named("estimated", [-1, -2, -3, -5], "estimate", 0.3)
    bound = named("bounded", [-1, -2, -3, -6], "bound")
    drawn = intervals([exact, estimate, bound])
    assert drawn.count("<circle") == 2
    assert '<circle class="exact"' in drawn
    assert '<circle class="estimate"' in drawn
    assert drawn.count('<path class="bound"') == 1
    assert "≈ 2.75 ± 1.77, estimate</text>" in drawn
    assert "≤ 3.00 ± 2.12, upper bound</text>" in drawn
    assert ">2.50 ± 1.27</text>" in drawn
    # Further right is a higher NLL.
    centres = [float(each) for each in re.findall(r'cx="([\d.]+)"', drawn)]
    assert all(one < other for one, other in pairwise(centres))
    assert intervals([Result("bad", "bad", error="no")]) == ""


def test_the_page_is_whole_and_lets_nothing_in() -> None:
    evil = '<script>alert("1")</script>&\'"'
    results = [
        named(evil, [-1, -2, -3, -4]),
        named("other", [-1, -2, -3, -5], "estimate", 0.3),
        Result("bad", evil, error=f"failed with {evil}"),
    ]
    text = page(results, Setting(evil, 12, 40, 40, 4, budget=90, notes=(evil,)))
    checker = parsed(text)
    assert {"svg", "table", "style"} <= checker.tags.keys()
    assert not checker.links
    assert "1.5 minutes of training" in text
    assert "prefers-color-scheme: dark" in text
    assert "estimate (s.e.\u00a00.3)" in text
    assert "failed: failed with &lt;script&gt;" in text
    assert "not told apart" in text
    only = page([Result("bad", "bad", error="no")], Setting("x", 1, 2, 3, 4))
    parsed(only)
    assert "no limit on training time" in only


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
