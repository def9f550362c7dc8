"""What is shown of names and values does nothing to a terminal or a page; hints are in the syntax of their place."""

from __future__ import annotations

import datetime
import decimal
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
import torch

from command import run, run_json
from made import MADE
from made.cli.parsing import kinds, whole_number
from made.cli.printing import print_json
from made.display import shortened, visible
from made.errors import DataError, QuestionError
from made.hints import argument, for_command_line, hint
from made.model.card import _cell

NAME = "<script>alert(1)</script>\x1b[31m"
VALUES = ["\x1b]0;title\x07", "[bold]b", "<img src=x onerror=alert(1)>", "\u202eabc"]
NAMES = ["plain", "a, b", "a=b", 'say "hi"', " spaces ", "it's", "$(rm x)", "x=y, z=", "tab\there", "*", "größe"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A model of a table whose names and values are hostile."""
    path = tmp_path_factory.mktemp("display")
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {NAME: random.choice(VALUES, 100), "a|b*c": random.normal(size=100), "x\ny": random.integers(0, 2, 100)}
    )
    table.to_csv(path / "rows.csv", index=False)
    table.assign(**{NAME: "\x1b[2J"}).to_csv(path / "unseen.csv", index=False)
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, unseen="error", random_state=0).fit(table)
    model.save(path / "model")
    return path


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 🙂 ñ", "größe 🙂 ñ"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\x7f", "a\\nb\\tc\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\udcff", "\\udcff"),
        ("a\xa0b", "a\xa0b"),
    ],
)
def test_control_characters_are_escaped(text, shown) -> None:
    assert visible(text) == shown
    assert visible(f"{text}\n", lines=True).endswith("\n")


def test_long_text_is_cut_in_the_middle() -> None:
    assert shortened("short", 10) == "short"
    assert shortened("x" * 1000 + "end", 20).endswith("end")
    assert len(shortened("x" * 1000, 20)) == 20


def test_no_command_sends_a_name_or_a_value_to_the_terminal_as_it_is(home) -> None:
    model, rows = home / "model", home / "rows.csv"
    results = [
        run("explain", model, rows),
        run("info", model),
        run("ask", model, "`x\ny` = 1"),
        run("ask", model, f"`{NAME}` = nix", code=2),
        run("ask", model, "nix = 1", code=2),
        run("predict", model, rows, "--target", "0", "--out", home / "out.csv"),
        run("score", model, home / "unseen.csv", code=3),
        run("score", model, home / "unseen.csv", "--on-error", "skip"),
        run("sample", model, "--given", "nix=1", code=2),
        run("report", model, rows, "--out", home / "page.html"),
    ]
    for result in results:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.stdout + result.stderr)
    assert any("[bold]b" in result.stdout for result in results)  # nor is it markup of ours
    assert results[2].stdout.startswith("P(`x\\ny` = 1) = ")


def test_data_are_not_escaped(home) -> None:
    facts = run_json("sample", home / "model", "-n", 40)
    assert facts["columns"][0] == NAME
    assert {row[0] for row in facts["rows"]} <= set(VALUES)
    assert NAME in run("sample", home / "model", "-n", 40).stdout


def test_the_card_has_no_markup_of_its_columns(home) -> None:
    card = (home / "model" / "README.md").read_text()
    assert "<script" not in card
    assert "<img" not in card
    assert "\x1b" not in card
    assert "\u202e" not in card
    assert "a\\|b\\*c" in card
    assert "x\\\\ny" in card
    rows = [line for line in card.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) in (3, 4) for line in rows)


def test_cells_of_the_card_are_readable() -> None:
    assert _cell("hours_per_week (2.5)") == "hours_per_week (2.5)"
    assert _cell("_x_ & `y` [a](b)") == "\\_x\\_ &amp; \\`y\\` \\[a\\](b)"


def test_hints_are_in_the_syntax_of_their_place() -> None:
    assert hint(columns={"a": "drop"}) == "columns={'a': 'drop'}"
    assert argument("hidden_sizes") == "'hidden_sizes'"
    with for_command_line():
        assert hint(columns={"a": "drop"}) == "--columns a=drop"
        assert hint(unseen="other", direct=False, conditioning=True) == "--unseen other --no-direct --conditioning"
        assert hint(hidden_sizes=(4, 4)) == "--hidden-sizes 4,4"
        assert argument("hidden_sizes") == "'--hidden-sizes'"
    assert hint(columns={"a": "drop"}) == "columns={'a': 'drop'}"


@pytest.mark.parametrize("name", NAMES)
def test_a_hint_can_be_typed_whatever_the_column_is_called(name) -> None:
    with for_command_line():
        option, value = shlex.split(hint(columns={name: "drop", "other": "real"}))
    assert option == "--columns"
    assert kinds(option, value) == {name: "drop", "other": "real"}


@pytest.mark.parametrize("name", NAMES)
def test_the_hint_of_an_error_is_taken_by_the_command(tmp_path, name) -> None:
    rows = pd.DataFrame({name: [f"id-{row}" for row in range(60)], "n": np.arange(60) % 3})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    words = ["fit", tmp_path / "rows.csv", "--out", tmp_path / "model", "--hidden-sizes", "2", "--max-epochs", 0]
    said = run(*words, code=3).stderr
    assert "columns={" not in said
    if visible(name) == name:  # what is escaped cannot be typed as it is shown
        words += shlex.split(re.search(r"leave it out, (--columns .*?), or use", said)[1])
    else:
        words += ["--columns", f"{name}=drop"]
    run(*words, "--quiet")
    assert [column["name"] for column in run_json("info", tmp_path / "model")["columns"]] == ["n"]
    with pytest.raises(DataError, match=re.escape(f"columns={{{name!r}: 'drop'}}")):
        MADE(max_epochs=0).fit(rows)


def test_columns_are_named_with_spaces_around_them_or_by_number(tmp_path) -> None:
    pd.DataFrame({"a": np.arange(40) % 4, "b c": np.arange(40) % 4}).to_csv(tmp_path / "rows.csv", index=False)
    words = ["fit", tmp_path / "rows.csv", "--out", tmp_path / "model", "--hidden-sizes", "2", "--max-epochs", 0]
    run(*words, "--columns", " 0 = numeric , b c = categorical ", "--quiet")
    found = run_json("info", tmp_path / "model")["columns"]
    assert [column["kind"] for column in found] == ["numeric", "categorical"]


@pytest.mark.parametrize("text", ["²", "٣", "", "-1", "1.0", "1_000", "9" * 5000, " 1", "\uff11"])
def test_only_ascii_digits_are_a_number_of_a_column(text) -> None:
    assert whole_number(text) is None
    assert whole_number("12") == 12


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (np.longdouble("1.5"), 1.5),
        (np.array([1.5, np.nan], dtype=np.longdouble), [1.5, None]),
        (np.array([[1, 2]], dtype=np.uint8), [[1, 2]]),
        (np.float16("inf"), None),
        (np.float32("nan"), None),
        ({"a": (np.bool_(True), None)}, {"a": [True, None]}),
        (np.datetime64("2024-01-01"), "2024-01-01"),
        (np.array(["a", None], dtype=object), ["a", None]),
        (np.complex128(1j), "1j"),
        (np.clongdouble(1j), "1j"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (decimal.Decimal("1.50"), "1.50"),
        (torch.tensor([1.0, float("nan")]), [1.0, None]),
        (b"ab", "b'ab'"),
        ("\udcff\x1b", "\udcff\x1b"),
        (10**40, 10**40),
        (10**400, 10**400),
    ],
    ids=lambda each: shortened(visible(repr(each)), 40),
)
def test_values_of_any_type_become_json(capsys, value, printed) -> None:
    print_json({"value": value})
    assert json.loads(capsys.readouterr().out) == {"value": printed}


def test_an_array_of_long_doubles_is_imputed(tmp_path) -> None:
    rows = np.random.default_rng(0).integers(2, size=(40, 3)).astype(np.longdouble)
    MADE(hidden_sizes=(4,), max_epochs=1, random_state=0).fit(rows.astype(float)).save(tmp_path / "model")
    rows[0, 0] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    assert len(run_json("impute", tmp_path / "model", tmp_path / "rows.npy")["rows"]) == 40
    assert len(run("impute", tmp_path / "model", tmp_path / "rows.npy").stdout.splitlines()) == 41


@pytest.mark.parametrize("temperature", [1e-45, 1e-300, 0, -1, float("nan"), float("inf"), 1e300, 1e4, True, "cold"])
def test_a_temperature_beyond_its_limits_is_refused(temperature) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 2))
    model = MADE(hidden_sizes=(4,), max_epochs=0, random_state=0).fit(rows)
    with pytest.raises(QuestionError, match=r"'temperature' should be above 0, from 0.001 to 1000"):
        model.sample(2, temperature=temperature)
    with pytest.raises(QuestionError, match="temperature"):
        model.sample(1, given={0: 0.5, 1: 0.5}, temperature=temperature)  # though there is nothing to draw


@pytest.mark.parametrize("temperature", [1e-3, 1.0, 1e3])
def test_samples_at_the_limits_are_finite(temperature) -> None:
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"a": random.normal(size=60), "b": random.poisson(40, 60), "c": random.choice(["x", "y"], 60)})
    model = MADE(hidden_sizes=(4,), max_epochs=1, random_state=0).fit(rows)
    drawn = model.sample(50, temperature=temperature)
    assert np.isfinite(drawn[["a", "b"]].to_numpy(dtype=float)).all()
    assert drawn["c"].isin(["x", "y"]).all()
