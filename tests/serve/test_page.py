"""The page, in a real browser: every control, and numbers that are those of the estimator."""

from __future__ import annotations

import csv
import datetime
import json
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet
from server import live, people_served

from browser import CHROMIUM, animals, fitted, in_a_browser
from made.serve.operations import Served
from people import fitted_people, people

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'made[dev]'")
pytestmark = in_a_browser

MODEL = people_served().model
WIDTHS = {"telephone": 360, "wide": 1920}


@pytest.fixture(scope="module")
def pages():
    with live(people_served(), Served("<b>animals", fitted(animals()))) as server:
        yield server


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as started:
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


def close(text: str, share: float) -> bool:
    """Whether a text is a share, which the last digit may be rounded either way."""
    return text in {percent(share), percent(share + 1e-7), percent(share - 1e-7)}


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
    page.get_by_role("button", name="Draw again").click()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Most likely completion").click()
    page.wait_for_function("() => document.querySelectorAll('.chip').length === 7")
    asked = pa.table({name: ["cook"] if name == "job" else pa.nulls(1) for name in MODEL.schema.names})
    row = MODEL.impute(asked, strategy="mode")
    given = json.loads(page.locator("main").get_attribute("data-given"))
    assert given["score"] == row["score"][0].as_py()
    assert given["since"] == row["since"][0].as_py().isoformat()


def test_ask(page, pages) -> None:
    visit(page, pages, "ask")
    question = "wage > 15 | job = 'cook'"
    page.fill("#question", question)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector(".answer")
    expected = MODEL.probability(question)
    assert close(page.locator(".answer").text_content(), expected.probability)
    assert page.locator(".asked").text_content() == f"P({expected.question}) = {expected.probability!r}"
    assert "Computed" in page.locator("form").text_content()
    assert page.locator(".history button").all_text_contents() == [question]
    page.reload()
    page.wait_for_selector(".answer")
    page.fill("#question", "wage > 15 and age < 40 and debt > 10")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=An estimate by")
    page.locator(".history button").last.click()
    page.wait_for_selector("text=Computed")
    for example in page.locator("form .tools button[type=button]").all():
        example.click()
        page.wait_for_function("text => document.querySelector('#question').value === text", arg=example.text_content())
        page.wait_for_selector(".answer")


def test_a_wrong_question_is_marked(page, pages) -> None:
    visit(page, pages, "ask")
    page.fill("#question", "age > 3 and jib = 1")
    page.keyboard.press("Enter")
    page.wait_for_selector("mark")
    assert page.locator("mark").text_content() == "jib"
    assert "did you mean job" in page.locator("[role=alert]").text_content()


def test_completion_by_keyboard(page, pages) -> None:
    visit(page, pages, "ask")
    page.focus("#question")
    page.keyboard.type("jo")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("= b")
    assert page.locator("[role=option]").all_text_contents() == ["'baker'job"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.input_value("#question") == "job = 'baker' "
    page.keyboard.type("or ag")
    page.get_by_role("option", name="age numeric", exact=True).click()
    page.keyboard.type("> 20")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_of_a_file(page, pages, tmp_path, suffix) -> None:
    rows, path = people().slice(0, 60), tmp_path / f"some.{suffix}"
    wages = [None if row < 4 else value for row, value in enumerate(rows["wage"].to_pylist())]
    rows = rows.set_column(3, "wage", pa.array(wages))
    pa.csv.write_csv(rows, path) if suffix == "csv" else parquet.write_table(rows, path)
    visit(page, pages, "rows")
    page.set_input_files("#file", path)
    page.wait_for_selector("tbody tr")
    log_p = MODEL.score_samples(rows)
    numbers = [int(each) for each in page.locator("tbody th").all_text_contents()]
    assert numbers == np.argsort(log_p, kind="stable").tolist()[:50]
    page.get_by_role("button", name="Show 50 more").click()
    assert page.locator("tbody tr").count() == 60
    assert page.locator("td.filled").count() == 4
    surprise = np.asarray(MODEL.surprise(rows), dtype=np.float64)
    usual = Served("people", MODEL).usual()
    odd = int(((surprise - usual) >= 1).sum())
    assert page.locator("td.odd1, td.odd2, td.odd3, td.odd4").count() == odd
    page.get_by_label("Predict").select_option("job")
    page.wait_for_selector("text=predicted job")
    first = page.locator("tbody tr").first.locator("td").nth(1).text_content()
    assert first == str(MODEL.predict(rows, "job")[numbers[0]])
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    with open(saved.value.path(), newline="") as file:
        table = list(csv.DictReader(file))
    assert [int(each["row"]) for each in table[:50]] == numbers
    assert [float(each["log_prob"]) for each in table] == sorted(log_p.tolist())


def test_a_file_that_cannot_be_used(page, pages, tmp_path) -> None:
    visit(page, pages, "rows")
    for name, content, said in (("a.csv", "age\n1\n", "no column"), ("a.txt", "1", "neither")):
        (tmp_path / name).write_text(content)
        page.set_input_files("#file", tmp_path / name)
        page.wait_for_selector(f".problem:has-text({said!r})")


def test_model(page, pages) -> None:
    visit(page, pages, "model")
    page.wait_for_selector(".heat")
    assert page.locator(".heat rect").count() == 7 * 6
    facts = dict(zip(page.locator("dt").all_text_contents(), page.locator("dd").all_text_contents(), strict=True))
    assert (facts["columns"], facts["epochs"]) == ("7", "2")
    assert float(facts["validation NLL"].split()[0]) == pytest.approx(MODEL.config.scores["valid_nll"], rel=1e-3)
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
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")
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
        page.get_by_label("Token").fill("0123456789abcdef")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_selector("section.card")
        context.close()
