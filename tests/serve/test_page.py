"""The page, in a real browser: its address, its views, the keyboard, its size, and who can read it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pytest
from server import live, people_served

from browser import in_a_browser, package
from pages import card, close, odd_names_model, settled, visit
from people import people

pytestmark = in_a_browser
MODEL = people_served().model

WIDTHS = {"telephone": 360, "wide": 1920}


@pytest.mark.parametrize(
    "damaged",
    ["%E0%A4%A", "people/%E0", "people/constructor", "nobody/ask", "people/what-if?since=2024-02-30&age=x&no=1"],
)
def test_an_address_that_is_damaged_is_read_as_far_as_it_goes(page, pages, damaged) -> None:
    page.goto(f"{pages.url}/#{damaged}")
    page.wait_for_selector("main[data-ready]")
    assert page.locator(".problem").count() == 0
    assert page.locator("main").inner_text()


def test_a_view_is_returned_to_as_it_was_left(page, pages, tmp_path) -> None:
    pa.csv.write_csv(people().slice(0, 5), tmp_path / "some.csv")
    visit(page, pages, "rows")
    page.set_input_files("#file", tmp_path / "some.csv")
    page.wait_for_selector("tbody tr")
    page.get_by_role("link", name="What if").click()
    card(page, "job").get_by_role("button", name="job: cook").click()
    settled(page, job="cook")
    page.get_by_role("link", name="Rows").click()
    page.wait_for_selector("main[data-ready=rows] tbody tr")
    assert page.locator("tbody tr").count() == 5
    page.get_by_role("link", name="What if").click()
    page.wait_for_selector("main[data-ready=what-if] .chip")
    assert page.locator(".chip").all_text_contents() == ["job = cook\N{MULTIPLICATION SIGN}"]
    assert page.url.endswith("#people/what-if?job=cook")
    page.get_by_role("button", name="Undo").click()
    settled(page)


def test_model(page, pages) -> None:
    visit(page, pages, "model")
    page.wait_for_selector(".heat")
    assert page.locator(".heat rect").count() == 7 * 6
    facts = dict(zip(page.locator("dt").all_text_contents(), page.locator("dd").all_text_contents(), strict=True))
    assert (facts["columns"], facts["epochs"]) == ("7", "2")
    assert float(facts["validation NLL"].split()[0]) == pytest.approx(MODEL.config.scores["valid_nll"], rel=1e-3)
    columns = dict(zip(page.locator("tbody th").all_text_contents(), page.locator("tbody tr").all(), strict=False))
    marginal = MODEL.conditionals().columns["fed"].probabilities
    assert (
        columns["fed"].locator("td").nth(1).text_content().startswith("true" if marginal[1] > marginal[0] else "false")
    )
    assert close(columns["fed"].locator("td").nth(1).text_content().split(", ")[0].split(" ", 1)[1], marginal.max())
    assert columns["fed"].locator(".spark rect").count() == 2
    page.get_by_text("Model card").click()
    page.get_by_text("How it was made").click()
    assert "hidden_sizes" in page.locator("details").first.text_content()


def test_the_keyboard_is_enough(page, pages) -> None:
    """From the top of the page to a view, and to a value that is set, by Tab and Enter alone."""
    visit(page, pages, "ask")
    focused = "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == "What if":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("main[data-ready=what-if]")
    assert page.evaluate(focused) == "What if"  # the link is not replaced
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(focused).startswith("job: cook"):
            break
    page.keyboard.press("Space")
    settled(page, job="cook")
    assert page.evaluate(focused).startswith("job: cook")  # the focus stays


def test_hostile_names_are_text(page, pages) -> None:
    visit(page, pages, query="kind=%3Cb%3Ecow%3C%2Fb%3E", model="<b>animals")
    settled(page, kind="<b>cow</b>")
    assert page.locator("main b", has_text="cow").count() == 0
    assert "kind = <b>cow</b>" in page.locator(".chip").text_content()
    page.get_by_label("Model").select_option("people")
    page.wait_for_selector("section.card[aria-label=job]")


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_nothing_is_wider_than_the_screen(page, pages, width) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for view in ("what-if", "ask", "rows", "model"):
        visit(page, pages, view, "job=cook" if view == "what-if" else "")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_long_names_and_values_are_not_wider_than_the_screen(page, pages, width, tmp_path) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    pa.csv.write_csv(odd_names_model().sample(3), tmp_path / "some.csv")
    for view in ("what-if", "ask", "rows", "model"):
        visit(page, pages, view, "=a&note=short" if view == "what-if" else "", model="odd names")
        if view == "rows":
            page.set_input_files("#file", tmp_path / "some.csv")
            page.wait_for_selector("tbody tr")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view


def test_the_last_of_several_quick_visits_stays(page, pages) -> None:
    visit(page, pages)
    hashes = [f"#people/{view}" for view in ("model", "rows", "what-if", "ask", "model", "rows")]
    page.evaluate("hashes => hashes.forEach((hash) => { location.hash = hash; })", hashes)
    page.wait_for_selector("main[data-ready=rows]")
    page.wait_for_load_state("networkidle")
    assert page.locator("main").get_attribute("data-ready") == "rows"
    assert page.locator("#file").count() == 1


def test_it_is_small(page, pages) -> None:
    sizes = {}
    page.on("response", lambda answer: sizes.setdefault(answer.url, answer))
    for view in ("what-if", "ask", "rows", "model"):
        visit(page, pages, view)
    files = [answer for url, answer in sizes.items() if "/api/" not in url]
    assert len(files) >= 10
    assert sum(len(answer.body()) for answer in files) < 300_000


@pytest.mark.parametrize("view", ["what-if", "ask", "rows", "model"])
def test_axe_finds_nothing_serious(page, pages, view, tmp_path) -> None:
    axe = package("axe_playwright_python.sync_playwright")
    visit(page, pages, view, {"what-if": "job=cook&age=30", "ask": "q=age+%3E+jib"}.get(view, ""))
    if view == "rows":
        pa.csv.write_csv(people().slice(0, 20), tmp_path / "some.csv")
        page.set_input_files("#file", tmp_path / "some.csv")
        page.wait_for_selector("tbody tr")
    if view == "model":
        page.wait_for_selector(".heat")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = axe.Axe().run(page).response["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert not [(each["id"], each["nodes"][0]["failureSummary"]) for each in serious]


def test_a_token_is_asked_for(chromium) -> None:
    from made.serve.security import Guard

    with live(guard=Guard(token="0123456789abcdef")) as server:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(server.url)
        assert page.locator("[role=alert]").count() == 0
        page.get_by_label("Token").fill("0123456789abcdeg")
        page.get_by_role("button", name="Continue").click()
        assert "or a wrong one" in page.locator("[role=alert]").text_content()
        page.get_by_label("Token").fill("0123456789abcdef")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_selector("section.card")
        context.close()


def test_a_browser_that_keeps_nothing_shows_the_page(page, pages) -> None:
    """Where cookies are blocked, looking at the storage is an error."""
    page.add_init_script(
        """for (const name of ["sessionStorage", "localStorage"])
               Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });"""
    )
    visit(page, pages)
    assert page.locator("section.card").count() == len(MODEL.schema.names)
    visit(page, pages, "ask", "q=age+%3E+30")
    page.wait_for_selector(".answer")
    assert page.locator(".history button").count() == 1
