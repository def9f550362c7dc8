"""Rows that cannot be answered are skipped and counted; text that a spreadsheet would run is marked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from command import run, run_json
from made import MADE
from made.cli.on_error import RowFilter, spread
from made.io.read import read
from made.io.write import spreadsheet_safe
from made.tables.field import Field

RANDOM = np.random.default_rng(0)
GOOD = pd.DataFrame(
    {
        "kind": RANDOM.choice(["=cat", "-dog", "hen"], 120),
        "weight": RANDOM.normal(5, 1, 120).round(3),
        "legs": RANDOM.integers(3, 5, 120),
        "born": pd.date_range("2020-01-01", periods=120).strftime("%Y-%m-%d"),
    }
)
# Row by row: what is wrong, or None.
BAD = {
    2: ("kind", "horse", "'horse' is not among the known values"),
    3: ("weight", "heavy", "'heavy' is text, where the model has numbers"),
    5: ("weight", "inf", "'inf' is text, where the model has numbers"),
    8: ("legs", "7", "is not among the known values"),
    9: ("born", "yesterday", "'yesterday' is text, where the model has dates"),
}
SKIP = ("--on-error", "skip")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows")
    GOOD.to_csv(path / "good.csv", index=False)
    some = GOOD[:12].astype(object)
    some.loc[0, "legs"] = some.loc[10, "weight"] = None
    some.drop(index=list(BAD)).to_csv(path / "rest.csv", index=False)
    for row, (column, value, _) in BAD.items():
        some.loc[row, column] = value
    some.to_csv(path / "bad.csv", index=False)
    model = MADE(hidden_sizes=(8,), evaluation_masks=2, max_epochs=1, unseen="error", random_state=0)
    model.fit(read(path / "good.csv")).save(path / "model")
    return path


@pytest.fixture(params=[10_000, 3])
def in_blocks(request, monkeypatch) -> None:
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", request.param)


def test_by_default_the_first_bad_row_ends_the_command(home) -> None:
    for command in (["score"], ["impute"], ["explain"], ["predict", "--target", "legs"]):
        result = run(command[0], home / "model", home / "bad.csv", *command[1:], code=3)
        assert "row 2, column 0 ('kind'): 'horse'" in result.stderr


@pytest.mark.usefixtures("in_blocks")
def test_skipped_rows_have_an_empty_score_and_the_others_theirs(home) -> None:
    facts = run_json("score", home / "model", home / "bad.csv", *SKIP)
    assert [row for row, value in enumerate(facts["log_prob"]) if value is None] == list(BAD)
    rest = run_json("score", home / "model", home / "rest.csv")["log_prob"]
    assert [value for value in facts["log_prob"] if value is not None] == pytest.approx(rest, abs=1e-5)
    assert facts["skipped"] == 5
    for reason, (row, (column, _, said)) in zip(facts["reasons"], list(BAD.items())[:3], strict=True):
        assert reason.startswith(f"row {row}, ")
        assert repr(column) in reason
        assert said in reason


def test_the_number_of_skipped_rows_and_the_reasons_are_printed(home) -> None:
    result = run("score", home / "model", home / "bad.csv", *SKIP)
    lines = result.stderr.splitlines()
    assert lines[0] == "Note: 5 rows were skipped, with an empty answer; the first of them:"
    assert [line.partition(",")[0] for line in lines[1:]] == ["  row 2", "  row 3", "  row 5"]
    assert result.stdout.splitlines().count("NA") == 5
    assert run("score", home / "model", home / "bad.csv", *SKIP, "--quiet").stderr == ""
    assert "skipped" not in run("score", home / "model", home / "rest.csv", *SKIP).stderr
    assert "skipped" not in run_json("score", home / "model", home / "rest.csv")


@pytest.mark.usefixtures("in_blocks")
def test_skipped_rows_are_empty_rows_of_an_imputed_table(home, tmp_path) -> None:
    run("impute", home / "model", home / "bad.csv", *SKIP, "--out", tmp_path / "full.parquet",
        "--uncertainty", tmp_path / "sure.csv")  # fmt: skip
    table = pyarrow.parquet.read_table(tmp_path / "full.parquet").to_pylist()
    assert len(table) == 12
    for row, values in enumerate(table):
        assert all(value is None for value in values.values()) == (row in BAD)
        assert all(value is not None for value in values.values()) == (row not in BAD)
    assert table[1]["weight"] == GOOD["weight"][1]
    sure = pyarrow.csv.read_csv(tmp_path / "sure.csv").to_pylist()
    assert [(line["row"], line["column"]) for line in sure] == [(0, "legs"), (10, "weight")]
    facts = run_json("impute", home / "model", home / "bad.csv", *SKIP, "--draws", 2, "--stack")
    assert facts["skipped"] == 5
    assert [row[0] for row in facts["rows"]] == [row for row in range(12) for _ in range(2)]


@pytest.mark.usefixtures("in_blocks")
def test_skipped_rows_have_an_empty_prediction(home) -> None:
    facts = run_json("predict", home / "model", home / "bad.csv", "--target", "weight", *SKIP)
    empty = [row for row, values in enumerate(facts["rows"]) if set(values) == {None}]
    # What a row has in the column that is predicted is not looked at.
    assert empty == [2, 8, 9]
    assert facts["scores"]["rows"] == 6  # of 9, two have no number, and one has a missing value
    assert facts["scores"]["unknown"] == 2
    assert facts["skipped"] == 3


@pytest.mark.usefixtures("in_blocks")
def test_the_oddest_rows_keep_their_numbers(home, tmp_path) -> None:
    facts = run_json("explain", home / "model", home / "bad.csv", *SKIP, "--top", 20)
    assert sorted(fact["row"] for fact in facts["rows"]) == [row for row in range(12) if row not in BAD]
    assert facts["skipped"] == 5
    for fact in facts["rows"]:
        assert fact["values"]["kind"] == GOOD["kind"][fact["row"]]
    run("explain", home / "model", home / "bad.csv", *SKIP, "--out", tmp_path / "all.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert [row for row, values in enumerate(table) if set(values.values()) == {None}] == list(BAD)


@pytest.mark.parametrize("command", [["score"], ["impute"], ["explain", "--out", "-"], ["predict", "--target", "legs"]])
def test_a_table_in_which_every_row_is_bad_has_an_answer(home, tmp_path, command) -> None:
    bad = GOOD[:5].assign(kind=[f"horse {row}" for row in range(5)])
    bad.to_csv(tmp_path / "bad.csv", index=False)
    result = run(command[0], home / "model", tmp_path / "bad.csv", *command[1:], *SKIP)
    assert len(result.stdout.splitlines()) == 6
    assert "5 rows were skipped" in result.stderr


def test_arrays_have_bad_rows_too(tmp_path) -> None:
    rows = np.random.default_rng(0).integers(2, size=(60, 1)).repeat(3, axis=1).astype(float)
    small = {"hidden_sizes": (4,), "max_epochs": 1, "random_state": 0, "unseen": "error"}
    MADE(**small).fit(rows).save(tmp_path / "any")
    MADE(**small, masks=1, ordering="natural").fit(rows).save(tmp_path / "one")
    bad = rows[:6].copy()
    bad[1, 1], bad[3, 0], bad[4, :2] = np.inf, 7, np.nan
    np.save(tmp_path / "bad.npy", bad)
    scores = run_json("score", tmp_path / "any", tmp_path / "bad.npy", *SKIP)["log_prob"]
    assert [value is None for value in scores] == [False, True, False, True, False, False]
    run("impute", tmp_path / "any", tmp_path / "bad.npy", *SKIP, "--out", tmp_path / "full.npy", "--quiet")
    full = np.load(tmp_path / "full.npy")
    assert np.isnan(full).all(axis=1).tolist() == [False, True, False, True, False, False]
    assert not np.isnan(full[[0, 2, 4, 5]]).any()
    # A row with missing values that the ordering of this model does not allow is found only when it is asked.
    facts = run_json("score", tmp_path / "one", tmp_path / "bad.npy", *SKIP)
    assert [value is None for value in facts["log_prob"]] == [False, True, False, True, True, False]
    assert "comes before it" in facts["reasons"][2]


def test_infinity_is_a_bad_row_of_a_table(home, tmp_path) -> None:
    GOOD[:4].assign(weight=[5.0, np.inf, 5.5, -np.inf]).to_csv(tmp_path / "endless.csv", index=False)
    facts = run_json("score", home / "model", tmp_path / "endless.csv", *SKIP)
    assert [value is None for value in facts["log_prob"]] == [False, True, False, True]
    assert facts["reasons"][0] == "row 1, column 1 ('weight'): infinity cannot be used."


def test_a_value_that_is_given_may_be_missing_in_a_row(home) -> None:
    assert "('legs') is given" in run("score", home / "model", home / "rest.csv", "--given", "legs", code=2).stderr
    facts = run_json("score", home / "model", home / "rest.csv", "--given", "legs", *SKIP)
    assert [row for row, value in enumerate(facts["log_prob"]) if value is None] == [0]


def test_bad_values_are_found_once_and_not_once_for_each_row(home, monkeypatch) -> None:
    made = MADE.load(home / "model")
    sieve = RowFilter(made.model_, skip=True)
    table = pa.concat_tables([read(home / "good.csv")] * 20)
    kinds = ["horse" if row % 2 else kind for row, kind in enumerate(table["kind"].to_pylist())]
    table = table.set_column(0, "kind", pa.array(kinds))
    calls, encode = [], Field.encode

    def counted(*arguments, **more):
        calls.append(arguments)
        return encode(*arguments, **more)

    monkeypatch.setattr(Field, "encode", counted)
    _, parts = sieve.answers(table, len)
    assert sum(count for _, count in parts) == 1200
    assert sieve.skipped == 1200
    assert len(calls) < 20


def test_errors_without_a_row_are_not_skipped(home, tmp_path) -> None:
    (tmp_path / "lacks.csv").write_text("kind,weight\nhen,5\n")
    assert "no column 'legs'" in run("score", home / "model", tmp_path / "lacks.csv", *SKIP, code=3).stderr
    (tmp_path / "ragged.csv").write_text("kind,weight,legs,born\nhen,5,3,2020-01-01\nhen,5\n")
    run("score", home / "model", tmp_path / "ragged.csv", *SKIP, code=3)
    assert "--on-error" in run("score", home / "model", home / "good.csv", "--on-error", "hope", code=2).stderr


def test_rows_are_spread_over_a_table() -> None:
    parts = [(np.array([3, 4]), pa.table({"a": [3, 4]})), (np.array([0]), pa.table({"a": [0]}))]
    assert spread(parts, 6, None).to_pydict() == {"a": [0, None, None, 3, 4, None]}
    whole = np.zeros((2, 1))
    assert spread([(np.arange(2), whole)], 2, ["a"]) is whole


def test_safe_csv_marks_text_that_a_spreadsheet_would_run(home, tmp_path) -> None:
    plain = run("sample", home / "model", "-n", 30, "--seed", 1).stdout
    safe = run("sample", home / "model", "-n", 30, "--seed", 1, "--safe-csv").stdout
    assert "\n=cat," in plain
    assert "\n-dog," in plain
    assert safe == plain.replace("\n=", "\n'=").replace("\n-", "\n'-")
    run("sample", home / "model", "-n", 30, "--seed", 1, "--safe-csv", "--out", tmp_path / "safe.csv")
    assert (tmp_path / "safe.csv").read_text() == safe
    run("sample", home / "model", "-n", 30, "--seed", 1, "--safe-csv", "--out", tmp_path / "raw.parquet")
    assert "=cat" in pyarrow.parquet.read_table(tmp_path / "raw.parquet")["kind"].to_pylist()
    assert run_json("sample", home / "model", "--given", "kind==cat", "--safe-csv")["rows"][0][0] == "=cat"


def test_every_csv_output_can_be_safe(home, tmp_path) -> None:
    files_of = {
        "impute": ["--out", tmp_path / "a.csv", "--uncertainty", tmp_path / "b.csv"],
        "denoise": ["--out", tmp_path / "c.csv", "--changes", tmp_path / "d.csv", "--error", "0.9"],
        "predict": ["--out", tmp_path / "e.csv", "--target", "kind"],
    }
    missing = GOOD[:40].astype(object)
    missing.loc[::2, "kind"] = None
    missing.to_csv(tmp_path / "missing.csv", index=False)
    for command, words in files_of.items():
        run(command, home / "model", tmp_path / "missing.csv", *words, "--safe-csv", "--quiet")
    for name in "abcde":
        text = (tmp_path / f"{name}.csv").read_text()
        assert "'=cat" in text or "'-dog" in text, name
        assert not any(cell.startswith(("=", "-d")) for line in text.splitlines() for cell in line.split(",")), name


def test_numbers_are_not_text() -> None:
    table = pa.table(
        {
            "=1": [-1.5, 2.0],
            "d": pa.array(["@a", "+b"]).dictionary_encode(),
            "t": pa.array(["\tx", "a=b"], pa.large_string()),
            "w": ["\uff1d1", None],
        }
    )
    assert spreadsheet_safe(table).to_pydict() == {
        "'=1": [-1.5, 2.0],
        "d": ["'@a", "'+b"],
        "t": ["'\tx", "a=b"],
        "w": ["'\uff1d1", None],
    }


@pytest.mark.parametrize("command", [("score",), ("impute",), ("predict", "--target", "legs"), ("explain",)])
def test_a_folder_may_have_files_without_rows(home, tmp_path, command) -> None:
    rows = (home / "good.csv").read_text().splitlines(keepends=True)
    for name, some in (("a", []), ("b", rows[1:40]), ("c", []), ("d", rows[40:])):
        (tmp_path / f"{name}.csv").write_text("".join([rows[0], *some]))
    name, *options = command
    lines, whole = (
        run(name, home / "model", path, *options).stdout.count("\n") for path in (tmp_path, home / "good.csv")
    )
    assert lines == whole > 1
    for path in ("b.csv", "d.csv"):
        (tmp_path / path).write_text(rows[0])
    said = run(name, home / "model", tmp_path, *options, code=3).stderr
    assert "none of these 4 files has rows" in said
