"""The page of a report: what a parser and a real browser make of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from browser import browse, fitted, in_a_browser, parsed
from made.report.measure import measure
from made.report.page import page
from made.report.questions import ShortQuestion, ShortQuestions
from made.report.rows import with_missing

SECTIONS = {"columns", "shares", "dependence", "likelihood", "odd", "model"}


def test_a_page_has_every_section_and_picture(report) -> None:
    checker = parsed(page(report))
    assert set(checker.places) >= SECTIONS | {f"c{d}" for d in range(5)}
    assert checker.tags["svg"] == 5 + 2 + 2
    assert checker.tags["figure"] == checker.tags["figcaption"] == 5 + 2 + 2
    assert checker.tags["h1"] == 1


def test_a_page_has_the_conclusions_and_the_names_of_columns(report) -> None:
    text = parsed(page(report)).text
    assert [each for each in report.sentences() if each not in text] == []
    for name in ("weight", "debt", "Oddest rows", f"Row {report.odd[0].row}", "made 0."):
        assert name in text


def test_pictures_have_labels_and_tables_have_headers(report) -> None:
    content = page(report)
    assert content.count('role="img" aria-label="') == content.count("<svg")
    assert content.count("<th ") == content.count('<th scope="col"') + content.count('<th scope="row"')
    assert "prefers-color-scheme: dark" in content


def test_text_of_the_data_is_escaped() -> None:
    evil = '<script>document.title = "evil"</script>'
    quote = '"><img src=x onerror=alert(1)>'
    rows = pa.table({evil: ["</style>", quote] * 30, quote: ["&amp;", "a\x00b\u202e"] * 30, "]]>": [1.5, 2.5] * 30})
    found = measure(fitted(rows), rows, name=evil, data=quote)
    content = page(found)
    checker = parsed(content)
    assert "<script" not in content
    assert "<img" not in content
    assert content.count("</style>") == 1
    assert evil in checker.text
    assert quote in checker.text
    assert "&amp;amp;" in content
    assert "\x00" not in content


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"alone": ["a", "b"] * 20}),
        pa.table({"number": np.random.default_rng(0).normal(size=40)}),
        pa.table({"same": ["x"] * 40, "one": [1.0] * 40, "two": ["a", "b"] * 20}),
        pa.table({"long": ["l" * 5000, "東京" * 900] * 20, "n" * 3000: [1.5, 2.5] * 20}),
        pa.table({"wide": 10.0 ** np.linspace(-300, 300, 60), "narrow": np.linspace(0, 1, 60)}),
        pa.table({"both": np.concatenate([-(10.0 ** np.linspace(0, 300, 30)), 10.0 ** np.linspace(0, 300, 30)])}),
        pa.table({"many": [f"value {i % 300}" for i in range(600)], "flag": [True, False] * 300}),
    ],
    ids=["one column", "one number", "constant", "long", "wide", "signed", "300 values"],
)
def test_odd_tables_have_a_page(rows) -> None:
    found = measure(fitted(rows, max_epochs=1), rows, samples=200)
    content = page(found)
    parsed(content)
    assert len(content) < 200_000
    json.dumps(found.facts(), default=str)


def test_many_columns_have_a_page_below_a_megabyte() -> None:
    matrix = np.random.default_rng(0).normal(size=(60, 70)).cumsum(axis=1)
    found = measure(fitted(matrix, max_epochs=1, evaluation_masks=1), matrix, top=2)
    content = page(found)
    checker = parsed(content)
    assert len(found.columns) == 70
    assert len(found.dependence.columns) == 40
    assert checker.text.count("numeric") >= 70
    assert "The 60 of 70 columns with the largest distance" in checker.text
    assert "the 40 of 70 columns with the strongest associations" in checker.text
    assert len(content) < 1_000_000


def test_a_column_without_values_has_only_samples(model, table) -> None:
    empty = table.set_column(1, "weight", pa.nulls(300)).set_column(0, "kind", pa.nulls(300))
    found = measure(model, empty)
    for each in found.columns[:2]:
        assert (each.missing, each.distinct, each.distance, each.chance) == (1.0, 0, None, None)
        assert each.shares.real == ()
        assert sum(each.shares.sampled) == pytest.approx(1)
        assert not each.differs
    assert "No value is observed of kind, weight" in found.notes[-1]
    assert parsed(page(found)).text.count("only samples are shown") == 3
    nothing = with_missing(table, np.ones((300, 5), dtype=bool))
    assert "No value is observed in these rows." in parsed(page(measure(model, nothing))).text


def test_a_single_row_and_a_model_that_is_not_trained(table) -> None:
    found = measure(fitted(table, max_epochs=0), table.slice(1, 1))
    assert found.rows == found.samples == 1
    assert math.isnan(found.likelihood.ci95)
    assert any("not trained" in each for each in found.sentences())
    assert parsed(page(found)).tags["svg"] == 6  # no learning curve, and no two columns that differ in anything


def test_a_model_of_a_list_of_masks_has_a_page(table) -> None:
    rows = table.select(["kind", "legs", "fed"])
    found = measure(fitted(rows, masks=3), rows)
    assert found.training.masks == 3
    parsed(page(found))


@in_a_browser
def test_a_browser_shows_the_page_at_any_width(report, tmp_path) -> None:
    phone, screen = browse(page(report), tmp_path, 390, 1280)
    assert (phone["wide"], screen["wide"]) == (390, 1280)
    for found in (phone, screen):
        assert found["scroll"] <= found["wide"], "the page is wider than its window"
        assert found["outside"] == [], "text is outside of its picture"
        assert found["letters"] > 1500
        assert found["pictures"] == 9
        assert found["empty"] == 0
        assert "table.csv" in found["title"]
    assert phone["high"] > screen["high"] > 1000
    assert phone["smallest"] > 7


@in_a_browser
def test_a_browser_shows_long_text_and_runs_no_script(tmp_path) -> None:
    evil = '<script>console.log("evil"); document.title = "evil"</script>'
    rows = pa.table(
        {
            evil: ["l" * 5000, "東京" * 900] * 20,
            "n" * 3000: [f"value {i % 20}" * 9 for i in range(40)],
            "wide": 10.0 ** np.linspace(-30, 30, 40),
            **{f"a_rather_long_name_{d}": np.random.default_rng(d).normal(size=40) for d in range(45)},
        }
    )
    found = measure(fitted(rows, max_epochs=1), rows, name=evil, data="d" * 500, top=2)
    for each in browse(page(found), tmp_path, 390, 1280):
        assert each["scroll"] <= each["wide"]
        assert each["outside"] == []
        assert each["title"] != "evil"


def test_warnings_stand_at_the_top_and_questions_in_a_section_of_their_own(report) -> None:
    wrong = ShortQuestions(10, 0.1, 1, (ShortQuestion("<a>", "x", "b", "y", 0.25, 0.5, 1100),))
    text = page(replace(report, kinds=("The <kind> is wrong.",), questions=wrong))
    parsed(text)
    assert text.index("The &lt;kind&gt; is wrong.") < text.index('class="conclusions"')
    assert '<td class="number">0.25</td><td class="number">0.50</td><td class="number">1,100</td>' in text
    assert 'href="#questions"' in text


def test_a_page_without_warnings_and_questions_has_no_place_for_them(report) -> None:
    certain = tuple(replace(each, sampled=each.real) for each in report.dependence.farthest)
    pairs = replace(report.dependence, farthest=certain)
    text = page(replace(report, kinds=(), questions=ShortQuestions(), dependence=pairs))
    assert 'class="warnings"' not in text
    assert 'href="#questions"' not in text
