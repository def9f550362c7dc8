"""The commands of `made paper`."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from made import MADE
from made.errors import Interrupted
from made.io import datasets
from made.paper import table_complexity
from made.paper.grid_search import GridSearch
from made.paper.results_file import FIELDS
from made.paper.results_page import results_page
from paper_results import line, result_of, run, write

COMMANDS = [
    "table uci",
    "table mnist",
    "table complexity",
    "figure masks",
    "figure samples",
    "figure network",
    "report",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_fast_and_every_command_has_the_common_options(command) -> None:
    code = "import sys\nfrom made.cli import main\ntry: main()\nfinally: assert not "
    code += "{'torch', 'numpy', 'sklearn', 'pyarrow', 'pydantic', 'matplotlib'} & set(sys.modules)"
    words = [sys.executable, "-c", code, "paper", *command.split(), "--help"]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {"--json", "--quiet", "--seed", "--results"} <= set(re.findall(r"--[a-z-]+", result.stdout))


def test_table_uci_is_written(here, looks, monkeypatch) -> None:
    words = ["table", "uci", "--data", "adult", "--row", "MADE", "--row", "MADE mask sampling"]
    monkeypatch.setattr(sys, "argv", ["made", "paper", *words])
    rows = json.loads(run(*words, "--json").stdout)
    assert [(row["dataset"], row["row"]) for row in rows] == [("adult", "MADE"), ("adult", "MADE mask sampling")]
    assert rows == json.loads((here / "results" / "uci.json").read_text())
    assert rows[1]["command"] == "made paper table uci --data adult --row MADE --row 'MADE mask sampling'"
    assert looks == [50, 50]


def test_results_of_table_uci_are_not_computed_again(here, looks) -> None:
    words = ["table", "uci", "--data", "adult", "--row", "MADE"]
    (row,) = json.loads(run(*words, "--json").stdout)
    again = run(*words)
    assert looks == [50]
    assert "there already" in again.stderr
    assert f"{row['test_nll']:.2f}" in again.stdout
    assert run(*words, "--quiet").stderr == ""


def test_table_mnist_takes_a_width_and_samples_find_its_best_model(here) -> None:
    rows = ["--row", "MADE 1hl (1 mask)", "--row", "MADE 2hl (32 masks)"]
    made = json.loads(run("table", "mnist", *rows, "--width", 6, "--epochs", 1, "--seed", 3, "--json").stdout)
    assert [row["config"]["hidden_sizes"] for row in made] == [[6], [6, 6]]
    best = min(made, key=lambda row: row["valid_nll"])["config"]["name"]
    refused = run("figure", "samples", "--model", here / "runs" / "binarized_mnist" / f"{best}-seed3", code=2)
    assert "is not a model of the 784 binary columns" in refused.stderr  # these have 64
    assert run("figure", "samples", "--seed", 3, code=2).stderr == refused.stderr.replace(f"{here}/", "")


def test_table_mnist_tries_the_rates_that_are_asked_for(here) -> None:
    rates = ["--rate", 0.2, "--rate", 0.1, "--rate", 0.2]
    (row,) = json.loads(
        run("table", "mnist", "--row", "MADE 1hl (1 mask)", *rates, "--width", 5, "--epochs", 1, "--json").stdout
    )
    assert [each["name"] for each in row["tried"]] == [f"1x5-1-mask-rate-{rate}-1-epochs" for rate in (0.2, 0.1)]
    assert row["valid_nll"] == min(each["valid_nll"] for each in row["tried"])


@pytest.fixture
def drawer(here):
    """The folder of a model of the digits, which the results name as the best."""
    folder = here / "runs" / "digits" / "2x6-32-masks-seed7"
    MADE(hidden_sizes=(6, 6), masks=4, max_epochs=1, columns="binary").fit(datasets.load("digits").train).save(folder)
    row = result_of("digits", "MADE 2hl (32 masks)", 20.0, seed=7, config={"name": "2x6-32-masks"})
    worse = result_of("digits", "MADE 1hl (1 mask)", 30.0, config={"name": "nothing"})
    write(here / "results", "mnist", [worse, row])
    return folder


def test_samples_need_a_model(here) -> None:
    assert "names no model of digits" in run("figure", "samples", "--data", "digits", code=2).stderr


def test_samples_are_drawn_beside_their_neighbours(here, drawer) -> None:
    data = datasets.load("digits")
    (result,) = json.loads(run("figure", "samples", "--data", "digits", "--json", "--quiet").stdout)
    assert result["config"]["name"] == drawer.name
    assert (result["samples"], result["test_nll"], result["seed"]) == (100, None, 0)
    far = [(row != data.train).sum(axis=1).min() for row in data.test]
    assert result["nearest_of_test"] == pytest.approx(np.mean(far))
    assert result["nearest"] > result["nearest_of_test"]
    assert set(FIELDS) <= set(result)
    assert json.loads((here / "results" / "samples.json").read_text()) == [result]
    assert (here / "results" / "samples.png").read_bytes().startswith(b"\x89PNG")


def test_samples_are_drawn_of_any_model_to_any_file(here, drawer) -> None:
    said = run("figure", "samples", "--data", "digits", "--model", drawer, "--masks", 5, "--out", "new/my.svg")
    assert "50 samples" in said.stdout
    assert "has only 4 masks" in said.stderr
    assert "<svg" in (here / "new" / "my.svg").read_text()
    assert "50 samples of `2x6-32-masks-seed7`" in results_page(here / "results")


def test_figure_masks_resumes_and_is_drawn(here, looks) -> None:
    words = ["figure", "masks", "--units", 4, "--epochs", 1, "--batches", 50]
    points = json.loads(run(*words, "--masks", "1,2", "--json").stdout)
    assert [point["masks"] for point in points] == [1, 2]
    picture = here / "results" / "masks.png"
    picture.unlink()
    run(*words, "--masks", "1,2", "--quiet")
    assert picture.exists()
    assert looks == [50, 50]
    run(*words, "--masks", "4", "--quiet")
    assert len(json.loads((here / "results" / "masks.json").read_text())) == 3
    assert line(results_page(here / "results"), "4")


def test_table_complexity_is_written(here) -> None:
    rows = json.loads(run("table", "complexity", "--quick", "--json").stdout)
    assert json.loads((here / "results" / "complexity.json").read_text()) == rows
    assert all(set(FIELDS) <= set(row) for row in rows)
    assert len([row for row in rows if "series" in row]) == 13


def test_table_complexity_is_printed_as_the_page_has_it(here) -> None:
    said = run("table", "complexity", "--quick")
    assert said.stderr.count("exponent") == 13
    page = results_page(here / "results")
    assert said.stdout.strip() in page
    assert "the times are meaningless" in page


@pytest.fixture
def few_series(monkeypatch) -> list[str]:
    """The names of the series that are measured, of which there are three."""
    measured: list[str] = []
    measure = table_complexity._measure
    monkeypatch.setattr(table_complexity, "SERIES", table_complexity.SERIES[:3])
    monkeypatch.setattr(
        table_complexity, "_measure", lambda each, *how: measured.append(each.name) or measure(each, *how)
    )
    return measured


def test_a_quick_measurement_replaces_no_full_one(here, few_series) -> None:
    rows = json.loads(run("table", "complexity", "--quick", "--json").stdout)
    write(here / "results", "complexity", [row | {"budget": "full"} for row in rows])
    before = (here / "results" / "complexity.json").read_bytes()
    assert "does not replace" in run("table", "complexity", "--quick").stderr
    assert (here / "results" / "complexity.json").read_bytes() == before
    assert "the times are meaningless" not in results_page(here / "results")


def test_a_stopped_measurement_is_resumed(here, few_series) -> None:
    rows = json.loads(run("table", "complexity", "--quick", "--json").stdout)
    write(here / "results", "complexity", [row for row in rows if "series" in row][:2])  # stopped before the third
    few_series.clear()
    again = json.loads(run("table", "complexity", "--quick", "--json").stdout)
    assert few_series == ["K in 2hl"]
    assert [row["row"] for row in again] == [row["row"] for row in rows]


def test_figure_network_is_the_example_of_the_paper(here) -> None:
    said = run("figure", "network")
    assert said.stdout == "p(x2)\np(x3 | x2)\np(x1 | x2, x3)\n"
    assert (here / "results" / "network.png").read_bytes().startswith(b"\x89PNG")
    assert "(../results/network.png)" in results_page(here / "results")
    assert run("figure", "network", "--hidden", "").stdout == said.stdout


def test_figure_network_takes_an_ordering_and_degrees(here) -> None:
    words = ["--ordering", "2, 1", "--hidden", "1,1,0", "--names", "a,b", "--direct", "--out", "new/two.pdf"]
    assert run("figure", "network", *words).stdout == "p(b)\np(a | b)\n"
    assert (here / "new" / "two.pdf").read_bytes().startswith(b"%PDF")


def test_figure_network_is_of_any_mask_of_any_sizes(here) -> None:
    drawn = [
        json.loads(run("figure", "network", "--columns", 5, "--hidden-sizes", "4", "--mask", mask, "--json").stdout)
        for mask in (1, 1, 2)
    ]
    assert drawn[0][0]["config"] == drawn[1][0]["config"] != drawn[2][0]["config"]
    assert [len(layer) for layer in drawn[0][0]["config"]["hidden"]] == [4]
    assert sorted(drawn[0][0]["config"]["ordering"]) == [1, 2, 3, 4, 5]


def test_a_stopped_command_prints_how_to_resume(here, monkeypatch) -> None:
    def stopped(self, data, name, parameters):
        raise Interrupted("stopped after 3 updates.", remedy="Its state is saved: resume it with resume_from='runs'.")

    monkeypatch.setattr(GridSearch, "fit", stopped)
    monkeypatch.setattr(sys, "argv", ["made", "paper", "table", "uci"])
    said = run("table", "uci", "--row", "MADE", "--data", "adult", code=130).stderr
    assert said == "stopped after 3 updates. To resume: made paper table uci\n"


def test_the_report_is_written(here) -> None:
    write(here / "results", "uci", [result_of("adult", "MADE", 13.0)])
    assert json.loads(run("report", "--json").stdout) == {"out": "docs/results.md", "changed": True}
    assert (here / "docs" / "results.md").read_text() == results_page(here / "results")
    assert json.loads(run("report", "--json").stdout)["changed"] is False


def test_the_report_is_checked(here) -> None:
    write(here / "results", "uci", [result_of("adult", "MADE", 13.0)])
    page = here / "docs" / "results.md"
    assert "write it again" in run("report", "--check", code=3).stderr
    assert not page.exists()
    run("report")
    assert run("report", "--check", "--quiet").stderr == ""
    page.write_text(page.read_text().replace("13.00", "12.00"))
    assert "docs/results.md is not up to date with results" in run("report", "--check", code=3).stderr
    assert "12.00" in page.read_text()
    run("report")
    assert "12.00" not in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["table", "uci", "--row", "best"], 2, "'--row': 'best' is not a row: choose from MADE"),
        (["table", "uci", "--data", "rcv1"], 2, "in no source that could be reached"),
        (["table", "uci", "--data", "adult", "--data", "nothing"], 3, "'nothing' is not a dataset"),
        (["table", "uci", "--grid", "small"], 2, "--grid"),
        (["table", "uci", "--data", "adult", "--results", "FILE"], 3, "'--results': cannot write to FILE"),
        (["table", "uci", "--data", "adult", "--runs", "FILE/runs"], 3, "'--runs': cannot write to FILE/runs"),
        (["table", "uci", "--data", "adult", "--row", "MADE", "--results", "BAD"], 3, "BAD/uci.json cannot be read"),
        (["table", "mnist", "--row", "MADE"], 2, "MADE 2hl (32 masks)"),
        (["table", "mnist", "--width", "0"], 2, "--width"),
        *((["table", "mnist", "--rate", bad], 2, "'--rate' should be a number above 0") for bad in ("0", "-1", "nan")),
        (["table", "mnist", "--rate", "inf"], 2, "'--rate' should be a number above 0"),
        (["table", "mnist", "--row", "ours", "--rate", "0.1"], 2, "are for the paper's rows"),
        (["table", "complexity", "--quick", "--results", "FILE"], 3, "cannot write to FILE"),
        (["figure", "masks", "--masks", "1,few"], 2, "'--masks' should be whole numbers, at least 1"),
        (["figure", "masks", "--masks", "0"], 2, "'--masks'"),
        (["figure", "masks", "--batches", ""], 2, "'--batches'"),
        (["figure", "masks", "--out", "picture.txt"], 2, "'--out' should end in .png, .svg or .pdf"),
        (["figure", "masks", "--out", "FILE/picture.png"], 3, "'--out': cannot write to FILE"),
        (["figure", "samples", "--data", "dna"], 2, "dna is not a dataset of images"),
        (["figure", "samples"], 2, "make one (made paper table mnist)"),
        (["figure", "samples", "--model", "nothing"], 4, "no such folder"),
        (["figure", "samples", "--masks", "0"], 2, "--masks"),
        (["figure", "network", "--ordering", "3,1,3"], 2, "each position from 1 to 3 once"),
        (["figure", "network", "--ordering", "0,1,2"], 2, "'--ordering' should be whole numbers, at least 1"),
        (["figure", "network", "--hidden", "1,2;3"], 2, "degrees from 0 to 2"),
        (["figure", "network", "--hidden", "1,2;;1"], 2, "'--hidden' should be whole numbers"),
        (["figure", "network", "--names", "a,b"], 2, "'--names' should have 3 names"),
        (["figure", "network", "--columns", "4", "--ordering", "1,2"], 2, "exclude each other"),
        (["figure", "network", "--mask", "4"], 2, "--columns"),
        (["figure", "network", "--columns", "99"], 2, "99 columns"),
        (["figure", "network", "--columns", "4", "--hidden-sizes", "0"], 2, "'--hidden-sizes'"),
        (["report", "--results", "nothing"], 3, "there is no folder nothing"),
        (["report", "--results", "BAD"], 3, "BAD/uci.json cannot be read"),
        (["report", "--results", ".", "--out", "FILE/results.md"], 3, "'--out': cannot write FILE/results.md"),
    ],
)
def test_every_error_is_a_sentence_and_a_code(here, arguments, code, said) -> None:
    (here / "FILE").write_text("")
    (here / "BAD").mkdir()
    (here / "BAD" / "uci.json").write_text("[{")
    result = run(*arguments, code=code)
    assert said in result.stderr
    assert result.stdout == ""
