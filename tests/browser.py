"""What tests of our pages share: a table, a parser that is strict, and a real browser."""

from __future__ import annotations

import html
import importlib
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from made import MADE
from made.model.model import Model

__all__ = ["CHROMIUM", "animals", "browse", "fitted", "in_a_browser", "package", "parsed"]

FAST = {"hidden_sizes": (8,), "evaluation_masks": 2, "validation_masks": 1, "max_epochs": 2, "random_state": 0}
VOID = {"meta", "br", "img", "hr", "input", "link"}


def animals() -> pa.Table:
    """Text, numbers, truth and missing values; the numbers depend on the text."""
    generator = np.random.default_rng(0)
    kind = generator.choice(["cat", "dog", "<b>cow</b>"], size=300, p=[0.5, 0.3, 0.2])
    weight = np.where(kind == "cat", 4, 30) + generator.normal(size=300)
    return pa.table(
        {
            "kind": kind,
            "weight": pa.array([None if i % 10 == 0 else float(w) for i, w in enumerate(weight)]),
            "legs": generator.integers(3, 5, 300),
            "debt": np.where(generator.random(300) < 0.7, 0.0, generator.lognormal(3, 2, 300)),
            "fed": generator.random(300) < 0.5,
        }
    )


def fitted(table, **parameters) -> Model:
    return MADE(**(FAST | parameters)).fit(table).model_


class Checker(HTMLParser):
    """Finds elements that are not closed in order, places that are there twice, and links to nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.places: list[str] = []
        self.links: list[str] = []
        self.tags: dict[str, int] = {}
        self.text = ""

    def handle_starttag(self, tag, attributes) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        facts = dict(attributes)
        assert len(facts) == len(attributes), f"<{tag}> has an attribute twice"
        assert not {"src", "onload", "onclick", "onerror"} & facts.keys()
        self.places += [facts["id"]] if "id" in facts else []
        self.links += [facts["href"]] if "href" in facts else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes) -> None:
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def parsed(content: str) -> Checker:
    checker = Checker()
    checker.feed(content)
    checker.close()
    assert not checker.open
    assert len(set(checker.places)) == len(checker.places)
    assert all(link.startswith("#") and link[1:] in checker.places for link in checker.links)
    assert "script" not in checker.tags
    assert not re.search(r"https?://|url\((?!#)|@import", content), "the page asks for something outside"
    assert not re.search(r'="[^"]*\b(nan|inf)\b', content), "a picture has a number that is none"
    return checker


def find_chromium() -> str | None:
    """A chromium; with CI=true, Debian's is installed where there is none, or the tests fail."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and os.environ.get("CI") == "true":
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", "--quiet", *command], check=True, timeout=600, stdout=subprocess.DEVNULL)
        found = shutil.which("chromium")
    return found


CHROMIUM = find_chromium()

in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


def package(name: str) -> ModuleType:
    """A package that drives or checks a page. Without it a test is skipped, and with CI=true it fails."""
    if os.environ.get("CI") == "true":
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install 'made[dev]'")


# The page is put into frames of several widths, and looked at from outside: it needs no script itself, and a window
# cannot be as narrow as a telephone.
PROBE = """<!DOCTYPE html><html><head><meta charset="utf-8"></head><body><pre id="found"></pre><script>
const found = [], frames = [...FRAMES];
function look(frame) {
  const page = frame.contentDocument, root = page.documentElement, wide = frame.clientWidth;
  const outside = [...page.querySelectorAll("svg text")].filter(each => {
    const inner = each.getBoundingClientRect(), outer = each.ownerSVGElement.getBoundingClientRect();
    return inner.left < outer.left - 2 || inner.right > outer.right + 2 || inner.top < outer.top - 2
      || inner.bottom > outer.bottom + 2;
  }).map(each => each.textContent);
  const sizes = [...page.querySelectorAll("svg text")].map(each =>
    parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a / Math.cos(Math.atan2(each.getScreenCTM().b,
    each.getScreenCTM().a)));
  found.push({wide, scroll: Math.max(root.scrollWidth, page.body.scrollWidth), high: root.scrollHeight, outside,
    letters: page.body.innerText.length, pictures: page.querySelectorAll("svg").length, smallest: Math.min(...sizes),
    empty: [...page.querySelectorAll("svg")].filter(each => each.getBoundingClientRect().height < 20).length,
    title: page.title});
  document.getElementById("found").textContent = JSON.stringify(found);
}
</script>"""


def browse(content: str, folder: Path, *widths: int) -> list[dict]:
    """What a browser makes of a page at several widths; what it logs fails."""
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:800px" onload="look(this)" srcdoc="{html.escape(content)}">'
        "</iframe>"
        for width in widths
    )
    probe = folder / "probe.html"
    probe.write_text(PROBE.replace("[...FRAMES]", "[]") + frames + "</body></html>")
    result = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=10000",
            "--dump-dom",
            probe.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in result.stderr, result.stderr
    found = re.search(r'<pre id="found">(.*?)</pre>', result.stdout, flags=re.S)
    assert found, result.stderr
    return sorted(json.loads(html.unescape(found[1])), key=lambda each: each["wide"])
