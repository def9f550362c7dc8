"""What the tests of the page share: a browser, pages of several models, and how they are looked at."""

from __future__ import annotations

import json
from functools import cache
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from server import live, people_served

from browser import CHROMIUM, animals, fitted, package
from made.model.model import Model
from made.serve.operations import Served

__all__ = [
    "accounts_model",
    "card",
    "chromium",
    "close",
    "odd_names_model",
    "page",
    "pages",
    "pairs_model",
    "settled",
    "slow_down",
    "visit",
]


@cache
def accounts_model() -> Model:
    """A model with a name with spaces, numbers below zero, and times of day."""
    random = np.random.default_rng(0)
    moments = np.datetime64("2024-01-01T00:00") + random.integers(0, 10**7, 200).astype("timedelta64[s]")
    towns = random.choice(["Bonn", "Ulm", "Jena \N{GRINNING FACE}"], 200)
    return fitted(pa.table({"home town": towns, "change": random.normal(-5, 9, 200), "seen": moments}))


@cache
def odd_names_model() -> Model:
    """A model with a very long name, one without a letter, which files with row numbers have, and a long value."""
    random = np.random.default_rng(0)
    columns = {"income" * 30: random.normal(size=100), "": random.choice(["a", "b"], 100)}
    return fitted(pa.table(columns | {"note": random.choice(["long" * 100, "short"], 100)}))


@cache
def pairs_model() -> Model:
    """Two columns whose most likely values never occur together."""
    pairs = np.repeat([["a", "x"], ["a", "y"], ["b", "z"]], [90, 90, 120], axis=0)
    random = np.random.default_rng(0).permutation(len(pairs))
    return fitted(pa.table({"first": pairs[random, 0], "second": pairs[random, 1]}), max_epochs=100)


@pytest.fixture(scope="package")
def pages():
    models = people_served(), Served("<b>animals", fitted(animals())), Served("accounts", accounts_model())
    models += (Served("odd names", odd_names_model()), Served("pairs", pairs_model()))
    with live(*models) as server:
        yield server


@pytest.fixture(scope="module")  # while it runs, no other test of this process can have an event loop
def chromium():
    with package("playwright.sync_api").sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, pages):
    """A page whose scripts must not fail, and which must not ask for anything from elsewhere."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    opened, failures = context.new_page(), []
    opened.on("pageerror", lambda error: failures.append(str(error)))
    opened.on("console", lambda said: failures.append(said.text) if "422" not in said.text else None)
    own = (pages.url, "blob:")
    opened.on("request", lambda asked: None if asked.url.startswith(own) else failures.append(asked.url))
    opened.set_default_timeout(15_000)
    yield opened
    context.close()
    assert not failures


def visit(page, pages, view: str = "what-if", query: str = "", model: str = "people") -> None:
    page.goto(f"{pages.url}/#{quote(model, safe='')}/{view}{f'?{query}' if query else ''}")
    page.wait_for_selector(f"main[data-ready={view}]")


def settled(page, **given) -> None:
    """Wait until the page shows the distributions given this."""
    page.wait_for_function("given => document.querySelector('main').dataset.given === given", arg=compact(given))


def compact(given: dict) -> str:
    return json.dumps(given, separators=(",", ":"))


def card(page, name: str):
    return page.locator(f"section.card[aria-label='{name}']")


def percent(share: float) -> str:
    if 0 < share < 1e-4:
        return "< 0.01 %"
    if 0.9999 < share < 1:
        return "> 99.99 %"
    return f"{100 * share:.{1 if 0.01 <= share <= 0.99 else 2}f} %"


def slow_down(page, part: str) -> None:
    """Hold back the answer to the next request whose address has this part."""
    page.evaluate(
        """part => {
            const fetch = window.fetch;
            window.fetch = async (...asked) => {
                const answer = await fetch(...asked);
                if (part && String(asked[0]).includes(part)) {
                    part = null;
                    await new Promise(done => setTimeout(done, 1500));
                    window.late = true;
                }
                return answer;
            };
        }""",
        part,
    )


def close(text: str, share: float) -> bool:
    """Whether a text is a share, which the last digit may be rounded either way."""
    return text in {percent(share), percent(share + 1e-7), percent(share - 1e-7)}
