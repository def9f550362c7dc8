"""The command `made report`."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from browser import animals, fitted, parsed
from command import run, run_json


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    table = animals()
    path = tmp_path_factory.mktemp("report")
    pyarrow.csv.write_csv(table, path / "animals.csv")
    fitted(table).save(path / "model")
    return path


def test_the_command_writes_a_page_and_says_what_it_found(home, tmp_path, monkeypatch) -> None:
    out = tmp_path / "page.html"
    result = run("report", home / "model", home / "animals.csv", "--out", out, "--top", 2)
    assert "The rows have an NLL of" in result.stdout
    assert f"The page is {out}." in result.stderr
    checker = parsed(out.read_text())
    assert checker.text.count("All observed values") == 2
    assert os.listdir(tmp_path) == ["page.html"]
    run("report", home / "model", home / "animals.csv", "--out", out, "--seed", 3)  # ours, and may be replaced
    assert "seed 3" in parsed(out.read_text()).text
    monkeypatch.chdir(tmp_path)
    assert run("report", home / "model", home / "animals.csv", "--quiet").stderr == ""
    assert (tmp_path / "report-animals.html").exists()


def test_json_is_the_numbers_and_nothing_else(home, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("report", home / "model", home / "animals.csv", "--json", "--rows", 100, "--samples", 30)
    facts = json.loads(result.stdout)
    assert os.listdir(tmp_path) == []
    assert facts["page"] is None
    assert (facts["rows"], facts["rows_in_data"], facts["samples"]) == (100, 300, 30)
    assert facts["likelihood"].keys() >= {"nll", "ci95", "sampled_nll", "log_prob"}
    assert [each["name"] for each in facts["columns"]] == ["kind", "weight", "legs", "debt", "fed"]
    assert facts["columns"][0]["shares"].keys() == {"labels", "real", "sampled", "rest"}
    assert len(facts["odd"]) == 10
    assert facts["conclusions"]


def test_json_names_the_page_of_out(home, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    facts = json.loads(run("report", home / "model", home / "animals.csv", "--json", "--out", "p.html").stdout)
    assert facts["page"] == "p.html"
    assert (tmp_path / "p.html").exists()


@pytest.mark.parametrize(
    ("out", "code", "message"),
    [
        ("mine.html", 2, "is not a page of `made report`"),
        ("new.pdf", 2, "should end in .html"),
        ("mine.html/new.html", 3, "cannot write"),
    ],
)
def test_a_file_that_is_not_a_page_is_not_replaced(home, tmp_path, out, code, message) -> None:
    (tmp_path / "mine.html").write_text("<p>my own page</p>")
    said = run("report", home / "model", home / "animals.csv", "--out", tmp_path / out, code=code).stderr
    assert message in said
    assert (tmp_path / "mine.html").read_text() == "<p>my own page</p>"


@pytest.mark.parametrize(
    ("model", "data", "code", "message"),
    [
        ("model", "no.csv", 3, "does not exist"),
        ("model", "other.csv", 3, "no column 'legs'"),
        (".", "animals.csv", 4, "is not a model folder"),
    ],
)
def test_no_page_is_written_without_a_model_and_its_rows(home, tmp_path, model, data, code, message) -> None:
    (tmp_path / "other.csv").write_text("kind,weight\ncat,1.5\n")
    rows = tmp_path / data if data == "other.csv" else home / data
    assert message in run("report", home / model, rows, "--out", tmp_path / "new.html", code=code).stderr
    assert not (tmp_path / "new.html").exists()


def test_help_needs_no_torch() -> None:
    code = (
        "import sys\nfrom made.cli import main\ntry: main()\n"
        "finally: assert not {'torch', 'sklearn', 'pyarrow', 'pydantic', 'numpy'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, "report", "--help"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    options = {"--out", "--samples", "--rows", "--top", "--seed", "--json", "--quiet"}
    assert options <= set(re.findall(r"--[a-z]+", result.stdout))


def test_a_wrong_model_is_warned_about_and_a_good_one_is_not(tmp_path) -> None:
    random = np.random.default_rng(0)
    plan = random.choice(["month", "year"], 600)
    churn = np.where(random.random(600) < np.where(plan == "month", 0.8, 0.1), "yes", "no")
    table = pa.table({"plan": plan, "churn": churn, "age": random.normal(40, 10, 600)})
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
    fitted(table, max_epochs=0, direct=False, initialization="zero-output").save(tmp_path / "wrong")
    fitted(table, max_epochs=40, hidden_sizes=(16,)).save(tmp_path / "good")
    out = tmp_path / "page.html"
    said = run("report", tmp_path / "wrong", tmp_path / "rows.csv", "--out", out).stdout
    assert said.startswith("Warning: 8 of 8 answers to questions about two columns differ from the rows")
    assert "Remedy: train for longer, --max-epochs 100; or give such questions more weight, --pairs 4.0." in said
    assert "Warning: Samples do not have the association between some columns: plan and churn" in said
    facts = json.loads(run("report", tmp_path / "wrong", tmp_path / "rows.csv", "--json").stdout)
    assert len(facts["warnings"]) == 2
    assert facts["warnings"][0] in html.unescape(out.read_text())
    facts = json.loads(run("report", tmp_path / "good", tmp_path / "rows.csv", "--json").stdout)
    assert (facts["warnings"], facts["questions"]["wrong"], facts["questions"]["asked"]) == ([], 0, 8)


def test_held_out_rows_measure_privacy(home, tmp_path) -> None:
    pyarrow.csv.write_csv(animals().slice(0, 50), tmp_path / "test.csv")
    found = run_json("report", home / "model", home / "animals.csv", "--held-out", tmp_path / "test.csv")
    assert found["privacy"]["rows"] == 50
    assert any("closer to a training row" in each for each in found["conclusions"])
