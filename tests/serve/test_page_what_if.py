"""What if, in a real browser: every control, and numbers that are those of the estimator."""

from __future__ import annotations

import datetime
import json
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from server import people_served

from browser import in_a_browser
from pages import accounts_model, card, close, pairs_model, settled, slow_down, visit
from people import fitted_people

pytestmark = in_a_browser
MODEL = people_served().model


@pytest.mark.parametrize("given", [{}, {"job": "cook", "age": 30, "fed": True, "since": "2024-03-01"}])
def test_the_numbers_are_those_of_the_estimator(page, pages, given) -> None:
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
    visit(page, pages, query="&".join(f"{name}={quote(text)}" for name, text in texts.items()))
    settled(page, **given)
    known = given | ({"since": datetime.date(2024, 3, 1)} if "since" in given else {})
    expected = fitted_people().conditionals(known)
    for name, column in expected.columns.items():
        if column.values:
            shares = card(page, name).locator(".share").all_text_contents()
            assert len(shares) == len(column.values)
            assert all(map(close, shares, column.probabilities.tolist())), (name, shares)
        elif name != "since":
            shown = card(page, name).locator(".stats b").first.text_content().replace(",", "")
            assert float(shown) == pytest.approx(column.mean, rel=1e-3, abs=0.5 if column.mean >= 1000 else 0)
    if given:
        shown = page.locator(".logp").text_content().rpartition(" ")[2].replace("\N{MINUS SIGN}", "-")
        assert float(shown) == pytest.approx(expected.log_prob, abs=1e-3)


def test_every_value_can_be_set_and_cleared(page, pages) -> None:
    visit(page, pages)
    for name in ("job", "fed", "score"):
        labels = MODEL.schema.fields[MODEL.position(name)].labels()
        for label, value in zip(card(page, name).locator(".value").all(), labels, strict=True):
            label.click()
            settled(page, **{name: value})
            assert label.get_attribute("aria-pressed") == "true"
        label.click()
        settled(page)
    assert page.locator(".chip").count() == 0


def test_numbers_and_dates_by_typing_and_by_slider(page, pages) -> None:
    visit(page, pages)
    typed = card(page, "age").get_by_label("age, value")
    typed.fill("44")
    typed.press("Enter")
    settled(page, age=44)
    date = card(page, "since").get_by_label("since, value")
    date.fill("2024-05-06")
    date.press("Tab")
    settled(page, age=44, since="2024-05-06")
    card(page, "age").get_by_role("button", name="Clear age").click()
    settled(page, since="2024-05-06")
    page.get_by_role("button", name="Clear since = 2024-05-06").click()
    settled(page)
    slider = card(page, "wage").get_by_label("wage, slider")
    slider.focus()
    before = int(slider.input_value())
    slider.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('main').dataset.given.includes('wage')")
    assert int(slider.input_value()) == before + 1
    wage = json.loads(page.locator("main").get_attribute("data-given"))["wage"]
    assert wage == pytest.approx(round(wage, 1))  # on the grid of the column
    assert f"wage={wage}" in page.url
    card(page, "wage").get_by_label("wage, value").fill("x")
    page.keyboard.press("Enter")
    assert card(page, "wage").get_by_label("wage, value").get_attribute("aria-invalid") == "true"
    assert "wage: 'x' is not a number" in card(page, "wage").get_by_role("alert").text_content()
    card(page, "wage").get_by_label("wage, value").fill("\N{MINUS SIGN}1,234.5")  # as the page writes numbers
    page.keyboard.press("Enter")
    settled(page, wage=-1234.5)
    assert page.get_by_role("alert").count() == 0


def test_a_number_between_two_steps_is_said_to_be_rounded(page, pages) -> None:
    visit(page, pages, query="wage=19.04")
    settled(page, wage=19.04)
    assert "taken for the nearest one" in page.locator(".note").text_content()


def test_times_of_day_are_typed(page, pages) -> None:
    visit(page, pages, model="accounts")
    moment = card(page, "seen").get_by_label("seen, value")
    moment.fill("2024-02-03T04:05")
    moment.press("Tab")
    settled(page, seen="2024-02-03T04:05")
    expected = accounts_model().conditionals({"seen": datetime.datetime(2024, 2, 3, 4, 5)})
    shown = card(page, "home town").locator(".share").all_text_contents()
    assert all(map(close, shown, expected.columns["home town"].probabilities.tolist()))


def test_moving_a_slider_is_one_step(page, pages) -> None:
    """However far it is dragged: one step of undo, one of the browser, and compared with what was before it."""
    visit(page, pages, query="job=cook")
    settled(page, job="cook")
    page.get_by_label("compared with").select_option("last")
    slider = card(page, "age").get_by_label("age, slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    page.mouse.down()
    for part in (0.55, 0.6, 0.7, 0.8):
        page.mouse.move(box["x"] + part * box["width"], middle)
        page.wait_for_timeout(100)
    page.mouse.up()
    page.wait_for_function("() => JSON.parse(document.querySelector('main').dataset.given).age > 60")
    before = fitted_people().conditionals({"job": "cook"}).columns["fed"].probabilities
    titles = [each.get_attribute("title") for each in card(page, "fed").locator(".value").all()]
    assert all(
        close(title.split("now, ")[1].removesuffix(" before"), p) for title, p in zip(titles, before, strict=True)
    )
    page.get_by_role("button", name="Undo").click()
    settled(page, job="cook")
    assert page.get_by_role("button", name="Undo").is_disabled()
    page.go_back()
    page.wait_for_function("() => JSON.parse(document.querySelector('main').dataset.given).age > 60")
    page.go_back()
    settled(page, job="cook")


def test_what_the_server_refuses_can_be_undone(page, pages) -> None:
    visit(page, pages, query="job=cook")
    settled(page, job="cook")
    page.route("**/conditionals", lambda route: route.fulfill(status=422, json={"title": "No", "detail": "no."}))
    card(page, "fed").get_by_role("button", name="fed: true").click()
    page.wait_for_selector(".problem")
    page.unroute("**/conditionals")
    assert page.locator(".chip").count() == 2
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector(".problem", state="detached")
    assert page.locator(".chip").count() == 1


def test_undo_and_clear(page, pages) -> None:
    visit(page, pages)
    assert page.get_by_role("button", name="Undo").is_disabled()
    card(page, "job").get_by_role("button", name="job: cook").click()
    settled(page, job="cook")
    card(page, "fed").get_by_role("button", name="fed: true").click()
    settled(page, job="cook", fed=True)
    page.get_by_role("button", name="Undo").click()
    settled(page, job="cook")
    page.get_by_role("button", name="Clear all").click()
    settled(page)
    page.get_by_role("button", name="Undo").click()
    settled(page, job="cook")


def test_the_address_holds_the_state(page, pages) -> None:
    visit(page, pages)
    card(page, "job").get_by_role("button", name="job: missing").click()
    settled(page, job=None)
    card(page, "score").get_by_role("button", name="score: 3").click()
    settled(page, job=None, score=3)
    page.reload()
    page.wait_for_selector("main[data-ready=what-if]")
    settled(page, job=None, score=3)
    page.go_back()
    settled(page, job=None)
    page.go_forward()
    settled(page, job=None, score=3)
    page.get_by_role("button", name="Undo").click()  # the last step was going forward
    settled(page, job=None)


def test_what_moved_most_is_said(page, pages) -> None:
    visit(page, pages, query="job=none")
    settled(page, job="none")
    base, now = fitted_people().conditionals(), fitted_people().conditionals({"job": "none"})

    def moved(name: str) -> float:
        cells = [
            np.array([*each[name].probabilities, each[name].below, each[name].above, each[name].missing])
            for each in (now.columns, base.columns)
        ]
        return float(np.abs(cells[0] - cells[1]).sum()) / 2

    ranked = sorted(now.columns, key=moved, reverse=True)
    assert page.locator(".moves strong").all_text_contents() == [name for name in ranked if moved(name) >= 0.005][:5]
    assert ranked[0] in page.locator("#status").text_content()
    page.get_by_label("Order").select_option("moved")
    assert page.locator("section.card h2").all_text_contents()[:2] == ["job", ranked[0]]
    page.get_by_label("compared with").select_option("last")
    page.get_by_label("Find").fill("wag")
    assert page.locator("section.card h2").all_text_contents() == ["wage"]


def test_rows_are_drawn_and_completed(page, pages) -> None:
    visit(page, pages, query="job=cook")
    page.get_by_role("button", name="Draw rows like this").click()
    page.wait_for_selector("section[aria-label='Drawn rows'] tbody tr")
    assert set(page.locator("section[aria-label='Drawn rows'] tbody tr td:first-child").all_text_contents()) == {"cook"}
    assert page.locator("section[aria-label='Drawn rows'] h2").text_content() == "20 rows drawn, given job = cook"
    right = page.locator("section[aria-label='Drawn rows'] thead th.right").all_text_contents()
    assert right == ["age", "debt", "wage", "score"]  # numbers, not dates
    page.get_by_role("button", name="Draw again").click()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Most likely completion").click()
    page.wait_for_function("() => document.querySelectorAll('.chip').length === 7")
    page.wait_for_function("() => Object.keys(JSON.parse(document.querySelector('main').dataset.given)).length === 7")
    given = json.loads(page.locator("main").get_attribute("data-given"))
    expected: dict = {"job": "cook"}
    for listed in (True, False):
        while rest := [each for each in MODEL.schema.fields if each.listed == listed and each.name not in expected]:
            now, base = MODEL.conditionals(expected).columns, MODEL.conditionals().columns
            row = pa.table({name: [expected.get(name)] for name in MODEL.schema.names})
            filled = MODEL.impute(row, strategy="mode")

            def sure(name: str, now=now, base=base, listed=listed) -> float:
                about = now[name]
                if listed:
                    return about.probabilities.max()
                return -about.standard_deviation / base[name].standard_deviation

            name = max((each.name for each in rest), key=sure)
            about = now[name]
            value = about.values[about.probabilities.argmax()] if listed else filled[name][0].as_py()
            if not listed and MODEL.schema.fields[MODEL.position(name)].missing:
                value = None if about.missing >= 0.5 else about.quantiles[1]
            expected[name] = value.isoformat() if isinstance(value, datetime.date) else value
    assert given == expected


def test_a_completion_is_one_that_occurs(page, pages) -> None:
    visit(page, pages, model="pairs")
    apart = [each.values[each.probabilities.argmax()] for each in pairs_model().conditionals().columns.values()]
    assert apart == ["a", "z"]
    page.get_by_role("button", name="Most likely completion").click()
    page.wait_for_function("() => document.querySelectorAll('.chip').length === 2")
    assert json.loads(page.locator("main").get_attribute("data-given"))["second"] in "xy"


def test_a_completion_does_not_undo_what_is_set_meanwhile(page, pages) -> None:
    visit(page, pages, query="job=cook")
    slow_down(page, "impute")
    page.get_by_role("button", name="Most likely completion").click()
    page.get_by_role("button", name="Clear all").click()
    page.wait_for_function("() => window.late")
    page.wait_for_timeout(200)
    settled(page)
    assert page.locator(".chip").count() == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12345678, "12,345,678"),
        (-1e12, "\N{MINUS SIGN}1.00e+12"),
        (-0.00001, "\N{MINUS SIGN}1.00e\N{MINUS SIGN}5"),
        (1234.5, "1,235"),
    ],
)
def test_numbers_as_people_read_them(page, pages, value, text) -> None:
    visit(page, pages)
    assert page.evaluate("async value => (await import('/static/dom.js')).number(value)", value) == text


@pytest.mark.parametrize("delay", [100, 3000])
def test_the_page_is_redrawn_while_a_slider_is_dragged(page, pages, delay) -> None:
    """If answers take less than a second; otherwise the last state does not wait for those before it."""
    visit(page, pages)
    page.evaluate(
        """delay => {
            const fetch = window.fetch;
            window.fetch = (path, options) => new Promise((found, failed) => {
                options.signal?.addEventListener("abort", () => {
                    window.gaveUp = true;
                    failed(new DOMException("", "AbortError"));
                });
                setTimeout(() => fetch(path, options).then(found, failed), delay);
            });
            performance.clearMeasures();
        }""",
        delay,
    )
    slider = card(page, "age").get_by_label("age, slider")
    for place in range(10, 30):
        slider.evaluate("(slider, place) => { slider.value = place; slider.dispatchEvent(new Event('input')); }", place)
        page.wait_for_timeout(50)
    redrawn = page.evaluate("performance.getEntriesByName('made:redraw').length")
    assert redrawn >= 2 if delay == 100 else redrawn == 0
    age = page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('age')")
    settled(page, age=int(age))
    assert page.evaluate("Boolean(window.gaveUp)") == (delay == 3000)
    page.get_by_role("button", name="Undo").click()
    settled(page)
