"""Elements of pictures, and marks of an axis."""

from __future__ import annotations

import pytest

from made.pages.svg import element, picture, ticks


def test_text_and_attributes_are_escaped_and_elements_are_not() -> None:
    inner = element("title", "<\"&'>\x00")
    assert inner == "<title>&lt;&#34;&amp;&#39;&gt;�</title>"
    assert element("g", inner, id='"><script>') == f'<g id="&#34;&gt;&lt;script&gt;">{inner}</g>'


def test_numbers_are_rounded_and_none_is_omitted() -> None:
    assert element("rect", x=1 / 3, y=2.0, width=12345.678, class_=None) == '<rect x="0.33" y="2" width="12345.68"/>'


def test_a_picture_has_a_label_for_screen_readers() -> None:
    assert picture(10, 20.5, "a < b").startswith(
        '<svg viewBox="0 0 10 20.5" width="10" role="img" aria-label="a &lt; b"'
    )


@pytest.mark.parametrize("low", [-3.3, 0, 1e6])
@pytest.mark.parametrize("span", [1e-3, 1, 7, 99, 1e12])
def test_ticks_are_few_and_within_the_range(low, span) -> None:
    found = ticks(low, low + span)
    assert 2 <= len(found) <= 7
    assert low - 1e-9 * span <= found[0] < found[-1] <= low + span + 1e-9 * span


@pytest.mark.parametrize(("low", "high"), [(-1.7e308, 1.7e308), (0.0, 5e-324)])
def test_extreme_ranges_have_ticks(low, high) -> None:
    assert all(low <= tick <= high for tick in ticks(low, high))
