"""`made sql`: a query in which models answer, printed or written as other commands do."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from command import run, run_json
from made import MADE
from made.cli import process
from made.cli.sql import _identifier
from made.model.model import Model

pytest.importorskip("duckdb", reason="the extra sql is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    random = np.random.default_rng(0)
    rows = pa.table({"legs": random.integers(3, 5, 80), "weight": random.normal(5, 1, 80).round(2)})
    folder = tmp_path_factory.mktemp("models") / "Cats & dogs"
    MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, random_state=0).fit(rows).save(folder)
    return folder


def test_csv_is_printed_with_the_numbers_of_python(folder) -> None:
    printed = run("sql", folder, "SELECT 1 AS a, cats_dogs_probability('legs = 4') AS p").stdout
    assert printed == f"a,p\n1,{Model.load(folder).probability('legs = 4').probability}\n"


def test_json_has_structs_lists_and_sums(folder) -> None:
    query = "SELECT sum(i) AS total, 1.5 AS d, [1, 2] AS l, m_ask('legs = 4') AS a, NULL AS n FROM range(3) r(i)"
    answer = run_json("sql", folder, query, "--name", "m")
    assert answer["columns"] == ["total", "d", "l", "a", "n"]
    total, decimal, numbers, struct, nothing = answer["rows"][0]
    assert (total, decimal, numbers, nothing) == (3, 1.5, [1, 2], None)
    assert struct["probability"] == Model.load(folder).probability("legs = 4").probability


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_is_written(folder, tmp_path, suffix) -> None:
    out = tmp_path / f"rows.{suffix}"
    result = run("sql", folder, "SELECT legs, {'a': legs} AS s FROM m_sample(12000)", "--name", "m", "--out", out)
    assert "12000 rows written" in result.stderr
    table = pa.csv.read_csv(out) if suffix == "csv" else pa.parquet.read_table(out)
    assert len(table) == 12000
    assert json.loads(table.column("s")[0].as_py()) == {"a": table.column("legs")[0].as_py()}


def test_a_query_without_rows_has_its_columns(folder) -> None:
    assert run("sql", folder, "SELECT 1 AS a, 2 AS b WHERE false").stdout == "a,b\n"
    assert run_json("sql", folder, "SELECT 1 AS a WHERE false") == {"columns": ["a"], "rows": []}


def test_several_models_and_names(folder, tmp_path) -> None:
    (tmp_path / "other").symlink_to(folder)
    query = "SELECT a_probability('legs = 4') = b_probability('legs = 4') AS same"
    assert run("sql", folder, tmp_path / "other", query, "--name", "a", "--name", "b").stdout == "same\ntrue\n"
    assert "given 2 times" in run("sql", folder, tmp_path / "other", query, "--name", "a", code=2).stderr


def test_columns_that_are_missing_or_ignored_are_noted(folder) -> None:
    result = run("sql", folder, "SELECT m_logp(t) AS l FROM (SELECT 4 AS legs, 'x' AS id) t", "--name", "m")
    assert "rows lack are missing values: weight." in result.stderr
    assert "does not know are ignored: id." in result.stderr


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("selec 1", 2, 'Error: DuckDB: Parser Error: syntax error at or near "selec".\n'),
        ("SELECT nothing", 2, "DuckDB: Binder Error"),
        ("FROM nowhere", 2, "DuckDB: Catalog Error: Table with name nowhere does not exist!"),
        ("FROM 'nowhere.parquet'", 3, 'DuckDB: IO Error: No files found that match the pattern "nowhere.parquet"'),
        ("SELECT 'a'::INT", 3, "DuckDB: Conversion Error"),
        ("", 2, "there is no query"),
        ("SELECT m_probability('wings = 2')", 2, "m_probability: there is no column 'wings'"),
        ("SELECT m_logp({'weight': 'heavy'})", 3, "m_logp: column 1 ('weight'): 'heavy' is text"),
        ("SELECT m_logp({'legs': 4}, 3, 4)", 2, "m_logp: there should be 1 or 2 arguments, not 3."),
        ("SELECT 1 AS a, 2 AS a", 3, "'a' more than once"),
    ],
)
def test_an_error_is_a_sentence_and_a_code(folder, query, code, said) -> None:
    result = run("sql", folder, query, "--name", "m", code=code)
    assert said in result.stderr
    assert result.stdout == ""


def test_a_query_may_come_by_standard_input(folder) -> None:
    words = [sys.executable, "-m", "made", "sql", str(folder), "-", "--name", "m"]
    done = subprocess.run(words, input="SELECT count(*) AS n\nFROM m_sample(3)", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n3\n", "")


def test_a_terminal_shows_a_table(folder, monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    assert process.run(["sql", str(folder), "SELECT 7 AS n, 0.5 AS half FROM range(99)"]) == 0
    assert [line.split() for line in shown.getvalue().splitlines()[3:5]] == [["7", "0.5"]] * 2
    assert "99 rows and 2 columns in all; --out FILE writes all of them." in shown.getvalue()


def test_the_prefix_is_the_name_of_the_folder_as_an_identifier(tmp_path) -> None:
    names = {
        "wa_churn": "wa_churn",
        "Cats & dogs": "cats_dogs",
        "2024-01": "model_2024_01",
        "größe": "gr_e",
        "€": "model",
    }
    assert {name: _identifier(tmp_path / name) for name in names} == names


def test_a_signal_ends_a_long_query(folder, forks, tmp_path) -> None:
    query = "SELECT sum(m_logp(s)) FROM range(3, 100000000) s(legs)"
    process = forks.command("sql", folder, query, "--name", "m", stderr=tmp_path / "log")
    time.sleep(1)
    os.kill(process, signal.SIGTERM)
    assert forks.wait(process) == 143
    assert (tmp_path / "log").read_text() == "terminated.\n"
