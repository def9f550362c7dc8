"""Rows, in a real browser: what is odd, what is filled in, predictions, and the file that is saved."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet
from server import people_served

from browser import in_a_browser
from pages import odd_names_model, slow_down, visit
from people import people

pytestmark = in_a_browser
MODEL = people_served().model


def some_rows() -> pa.Table:
    """Sixty rows, whose first four have no wage."""
    rows = people().slice(0, 60)
    wages = [None if row < 4 else value for row, value in enumerate(rows["wage"].to_pylist())]
    return rows.set_column(3, "wage", pa.array(wages))


def show(page, pages, tmp_path, suffix: str) -> list[int]:
    """The rows on the page, and the numbers of those that it shows first."""
    rows, path = some_rows(), tmp_path / f"some.{suffix}"
    pa.csv.write_csv(rows, path) if suffix == "csv" else parquet.write_table(rows, path)
    visit(page, pages, "rows")
    page.set_input_files("#file", path)
    page.wait_for_selector("tbody tr")
    return [int(each) for each in page.locator("tbody th").all_text_contents()]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_rows_of_a_file_are_sorted_and_odd_entries_marked(page, pages, tmp_path, suffix) -> None:
    rows, numbers = some_rows(), show(page, pages, tmp_path, suffix)
    assert numbers == np.argsort(MODEL.score_samples(rows), kind="stable").tolist()[:50]
    page.get_by_role("button", name="Show 50 more").press("Enter")
    assert page.locator("tbody tr").count() == 60
    assert page.evaluate("document.activeElement.id") == "predict"  # not lost: there are no more rows to show
    assert page.locator("td.filled").count() == 4
    surprise = np.asarray(MODEL.surprise(rows), dtype=np.float64)
    usual = people_served().usual()
    excess = np.nan_to_num(surprise - usual)
    assert page.locator("td.odd1, td.odd2, td.odd3, td.odd4").count() == (excess >= 1).sum()
    for number, text in zip(numbers[:5], page.locator("tbody td:nth-child(3)").all_text_contents(), strict=False):
        odd = [MODEL.schema.names[d] for d in np.argsort(-excess[number], kind="stable") if excess[number, d] >= 1]
        assert text == ", ".join(odd[:2]) + (f" and {len(odd) - 2} more" if len(odd) > 2 else "")


def test_predictions_are_shown_and_saved_with_the_rows(page, pages, tmp_path) -> None:
    rows, numbers = some_rows(), show(page, pages, tmp_path, "csv")
    log_p = MODEL.score_samples(rows)
    page.get_by_label("Predict").select_option("job")
    page.wait_for_selector("text=predicted job")
    first = page.locator("tbody tr").first.locator("td").nth(2).text_content()
    assert first == str(MODEL.predict(rows, "job")[numbers[0]])
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    with open(saved.value.path(), newline="") as file:
        table = list(csv.DictReader(file))
    assert [int(each["row"]) for each in table[:50]] == numbers
    assert [float(each["log_prob"]) for each in table] == sorted(log_p.tolist())
    _, how = MODEL.impute(rows, strategy="mode", return_uncertainty=True)
    saved = {int(each["row"]): (each["low(wage)"], each["high(wage)"]) for each in table}
    assert {row for row, (low, _) in saved.items() if low} == set(range(4))
    assert all(float(saved[row][0]) == how.low[row, 3] and float(saved[row][1]) == how.high[row, 3] for row in range(4))
    assert list(table[0])[-5:] == [
        "predicted job",
        *(f"predicted p({each})" for each in ("baker", "cook", "none", "missing")),
    ]


def test_the_last_file_and_the_last_column_stay_whoever_answers_first(page, pages, tmp_path) -> None:
    for count in (30, 20):
        pa.csv.write_csv(people().slice(0, count), tmp_path / f"{count}.csv")
    visit(page, pages, "rows")
    slow_down(page, "explain")
    page.set_input_files("#file", tmp_path / "30.csv")
    page.set_input_files("#file", tmp_path / "20.csv")
    page.wait_for_selector("tbody tr")
    page.wait_for_function("() => window.late")
    page.wait_for_timeout(200)
    assert page.locator("tbody tr").count() == 20
    assert "20 rows of 20.csv" in page.locator("main").inner_text()
    slow_down(page, "predict?target=wage")
    page.evaluate("() => { window.late = false; }")
    page.get_by_label("Predict").select_option("wage")
    page.get_by_label("Predict").select_option("job")
    page.wait_for_selector("text=predicted job")
    page.wait_for_function("() => window.late")
    page.wait_for_timeout(200)
    assert page.locator("text=predicted wage").count() == 0
    assert set(page.locator("tbody tr td:nth-child(4)").all_text_contents()) <= {"baker", "cook", "none", "missing"}


def test_a_column_without_a_name_is_predicted(page, pages, tmp_path) -> None:
    rows = odd_names_model().sample(5)
    pa.csv.write_csv(rows, tmp_path / "some.csv")
    visit(page, pages, "rows", model="odd names")
    page.set_input_files("#file", tmp_path / "some.csv")
    page.wait_for_selector("tbody tr")
    page.get_by_label("Predict").select_option(index=2)
    page.wait_for_selector("th:has-text('certainty')")
    expected = sorted(map(str, odd_names_model().predict(rows, "")))
    assert sorted(page.locator("tbody tr td:nth-child(4)").all_text_contents()) == expected


def test_what_is_odd_and_what_is_filled_is_said_in_words(page, pages, tmp_path) -> None:
    """Without colours and tooltips; dates as dates."""
    rows = people().slice(0, 3).drop(["score"]).to_pylist()
    rows[0] |= {"since": None}
    rows[1] |= {"wage": 90.0}
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "some.parquet")
    visit(page, pages, "rows")
    page.set_input_files("#file", tmp_path / "some.parquet")
    page.wait_for_selector("tbody tr")
    assert "The file has no column score" in page.locator(".note").first.text_content()
    whole = pa.Table.from_pylist([{**row, "score": None} for row in rows])
    filled, how = MODEL.impute(whole, strategy="mode", return_uncertainty=True)
    cells = dict(zip(page.locator("tbody th").all_text_contents(), page.locator("tbody tr").all(), strict=True))
    day = [np.datetime64(int(each[0, 4]), "s").astype("M8[D]").astype(str) for each in (how.low, how.high)]
    date = cells["0"].locator("td.filled").first.text_content()
    assert date == f"{filled['since'][0].as_py()} ({day[0]} \N{EN DASH} {day[1]})"
    surprise = np.asarray(MODEL.surprise(whole), dtype=np.float64)[1, 3] - people_served().usual()[3]
    assert cells["1"].locator("td.odd4").text_content() == f"90 (+{surprise:.1f})"
    page.get_by_label("Predict").select_option("since")
    page.wait_for_selector("text=predicted since")
    first = page.locator("tbody tr").first.locator("td")
    assert (
        first.nth(2).text_content() == MODEL.predict(whole, "since")[int(page.locator("tbody th").first.text_content())]
    )


@pytest.mark.parametrize("place", [".drop", "header"])
def test_a_file_is_dropped(page, pages, place) -> None:
    """Also beside the box, where the browser would open it and leave the page."""
    visit(page, pages, "rows")
    content = "job,age,debt,wage,since,fed,score\ncook,30,0.0,19.5,2024-03-01,true,1\n"
    script = "text => { const all = new DataTransfer(); all.items.add(new File([text], 'some.csv')); return all; }"
    files = page.evaluate_handle(script, content)
    page.dispatch_event(place, "dragover", {"dataTransfer": files})
    assert page.locator(".drop.over").count() == 1
    page.dispatch_event(place, "drop", {"dataTransfer": files})
    page.wait_for_selector("tbody tr")
    assert page.locator("tbody td").nth(2).text_content() == "cook"


def test_a_file_that_cannot_be_used(page, pages, tmp_path) -> None:
    visit(page, pages, "rows")
    for name, content, said in (
        ("a.csv", "b\n1\n", "a.csv has none of the model"),
        ("a.txt", "1", "neither"),
    ):
        (tmp_path / name).write_text(content)
        page.set_input_files("#file", tmp_path / name)
        page.wait_for_selector(f".problem:has-text({said!r})")
