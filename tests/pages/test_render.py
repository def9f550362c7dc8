"""Pages from templates: complete in themselves, escaped, and recognizable as ours."""

from __future__ import annotations

from importlib import resources

import pytest
from jinja2 import UndefinedError

from browser import parsed
from made.compare.result import Setting
from made.pages.render import generator, render

CONTEXT = {
    "setting": Setting("a < b\x00", 2, 3, 4, 5),
    "results": [],
    "sentences": ["<script>"],
    "picture": "",
    "kinds": set(),
    "places": 2,
    "differences": [],
}


def test_a_page_is_complete_and_known_as_ours() -> None:
    content = render("compare.html", command="compare", **CONTEXT)
    parsed(content)
    assert content.startswith("<!DOCTYPE html>")
    assert generator("compare") in content[:300]
    assert "default-src 'none'" in content[:400]


def test_data_is_escaped() -> None:
    content = render("compare.html", command="compare", **CONTEXT)
    assert "<title>Which model for a &lt; b�?</title>" in content
    assert "<li>&lt;script&gt;</li>" in content


def test_a_variable_that_a_template_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="setting"):
        render("compare.html", command="compare", **{name: CONTEXT[name] for name in CONTEXT if name != "setting"})


def test_templates_load_nothing_and_have_no_script() -> None:
    for file in resources.files("made.pages").joinpath("templates").iterdir():
        text = file.read_text()
        assert "<script" not in text
        assert "http:" not in text
        assert "https:" not in text
