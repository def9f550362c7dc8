"""Ask, in a real browser: answers, errors, completion and history."""

from __future__ import annotations

import pytest
from server import people_served

from browser import in_a_browser
from pages import close, slow_down, visit

pytestmark = in_a_browser
MODEL = people_served().model


def test_ask(page, pages) -> None:
    visit(page, pages, "ask")
    question = "wage > 15 | job = 'cook'"
    page.fill("#question", question)
    button = page.get_by_role("button", name="Ask", exact=True)
    lines = "each => { const text = new Range(); text.selectNodeContents(each); return text.getClientRects().length; }"
    assert button.evaluate(lines) == 1
    button.click()
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


def test_the_answer_is_that_of_the_last_question(page, pages) -> None:
    visit(page, pages, "ask")
    slow_down(page, "probability")
    for question in ("wage > 15", "job = 'cook'"):
        page.fill("#question", question)
        page.keyboard.press("Enter")
    page.wait_for_selector(".answer")
    page.wait_for_function("() => window.late")
    page.wait_for_timeout(200)
    assert "cook" in page.locator("p.asked").text_content()


def test_a_wrong_question_is_marked(page, pages) -> None:
    visit(page, pages, "ask")
    page.fill("#question", "age > 3 and jib = 1")
    page.keyboard.press("Enter")
    page.wait_for_selector("mark")
    assert page.locator("mark").text_content() == "jib"
    assert "did you mean job" in page.locator("[role=alert]").text_content()


def test_the_place_is_counted_in_characters(page, pages) -> None:
    visit(page, pages, "ask", model="accounts")
    page.fill("#question", "`home town` = 'Jena \N{GRINNING FACE}' and jib = 1")
    page.keyboard.press("Enter")
    page.wait_for_selector("mark")
    assert page.locator("mark").text_content() == "jib"


def test_questions_about_numbers_below_zero_are_suggested(page, pages) -> None:
    visit(page, pages, "ask", model="accounts")
    suggested = [each for each in page.locator("form .tools button").all() if "-" in each.text_content()]
    assert suggested
    for each in suggested:
        each.click()
        page.wait_for_function("text => document.querySelector('.asked')?.textContent.includes(text)", arg="change <")
        assert page.locator(".answer").count() == 1


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("jo", ["job"]),
        ("job", []),
        ("job ", ["=", "!=", "in {", "is missing", "is not missing"]),
        ("age ", ["<", "<=", ">", ">=", "between"]),
        ("job = ", ["'baker'", "'cook'", "'none'"]),
        ('job = "c', ["'cook'"]),
        ("job = 'cook'", []),
        ("job = 'cook' ", ["and", "or", "|"]),
        ("job in {cook, b", ["'baker'"]),
        ("job is ", ["missing", "not missing"]),
        ("age between ", []),
        ("age between 3 and 4 ", ["and", "or", "|"]),
        ("age > 3 or not jo", ["job"]),
        ("fed = t", ["true"]),
    ],
)
def test_what_can_follow_is_offered(page, pages, typed, options) -> None:
    visit(page, pages, "ask")
    page.fill("#question", typed)
    found = page.locator("[role=option]").evaluate_all("all => all.map(each => each.firstChild.textContent)")
    assert found == options


@pytest.mark.parametrize(
    ("typed", "completed"), [("hom", "`home town` "), ("home to", "`home town` "), ("`ho", "`home town` ")]
)
def test_a_name_with_spaces_is_put_in_backticks(page, pages, typed, completed) -> None:
    visit(page, pages, "ask", model="accounts")
    page.fill("#question", typed)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.input_value("#question") == completed


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
