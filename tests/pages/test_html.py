"""What pages share: text that is harmless, numbers that are short, tables and whole documents."""

from __future__ import annotations

import numpy as np

from browser import parsed
from made.pages.html import clip, document, generator, row, scroll, short, table, text, ticks


def test_text_that_no_page_may_hold() -> None:
    assert text("a\ud800b") == "a�b"
    assert text("\x1b[31m") == "�[31m"
    assert text("<\"&'>") == "&lt;&quot;&amp;&#x27;&gt;"
    assert clip("x" * 10**6, 10) == "x" * 9 + "…"
    assert clip("a\n\t b", 10) == "a b"
    assert ticks(-1.7e308, 1.7e308)
    assert ticks(0.0, 5e-324)
    assert all(len(ticks(low, low + span)) <= 7 for low in (-3.3, 0, 1e6) for span in (1e-3, 1, 7, 99, 1e12))
    assert short(-0.5) == "\N{MINUS SIGN}0.5"
    assert max(len(short(x)) for x in 10.0 ** np.arange(-320, 309) * -1.23456) <= 11


def test_a_document_is_complete_and_known_as_ours() -> None:
    rows = [row([("<b>a</b>", False), ("1", True)]), row([("b", False), ("2", True)], attribute=' class="best"')]
    grid = table([("name", False), ("count", True)], rows, caption="two rows")
    content = document(
        "a < b", ["<h1>x</h1>", scroll(grid, 'the "grid"')], command="compare", style="b { color: red; }"
    )
    checker = parsed(content)
    assert "<title>a &lt; b</title>" in content
    assert generator("compare") in content[:300]
    assert "b { color: red; }" in content
    assert '<th scope="col" class="number">count</th>' in content
    assert '<tr class="best"><th scope="row">b</th><td class="number">2</td></tr>' in content
    assert 'aria-label="the &quot;grid&quot;"' in content
    assert (checker.tags["tr"], checker.tags["caption"]) == (3, 1)
