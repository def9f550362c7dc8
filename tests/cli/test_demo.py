"""`made demo`, and what its digits are made of: the dataset, mixtures of Bernoullis, the picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command import run, run_json
from made.baselines.bernoulli import BernoulliMixture
from made.io.datasets import digits, table_file
from made.paper.figure_samples import nearest, plot


def test_digits_are_binary_disjoint_and_always_the_same() -> None:
    data = digits()
    every = np.concatenate([data.train, data.valid, data.test])
    assert every.shape == (1797, 64)
    assert set(np.unique(every)) == {0, 1}
    assert every[:, 0].sum() == 0
    assert 0.3 < every.mean() < 0.4
    assert (digits().train == data.train).all()


def test_independence_is_a_mixture_of_one() -> None:
    rows = np.array([[0, 1], [0, 1], [1, 1]])
    model = BernoulliMixture(1).fit(rows, rows)
    expected = np.log(3 / 5) + np.log(4 / 5)  # one imagined row of each value
    assert model.log_prob([[0, 1]]).values[0] == pytest.approx(expected)


def test_the_nearest_row_is_that_with_fewest_differences() -> None:
    generator = np.random.default_rng(0)
    samples, train = generator.integers(0, 2, (10, 12)), generator.integers(0, 2, (40, 12))
    expected = [(sample != train).sum(axis=1).min() for sample in samples]
    assert [(s != train[n]).sum() for s, n in zip(samples, nearest(samples, train), strict=True)] == expected


def test_the_picture_is_written(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    plot(np.zeros((7, 6)), np.ones((7, 6)), (2, 3), tmp_path / "figure.png", per_row=3)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def short(monkeypatch) -> None:
    monkeypatch.setattr("made.cli.demo.DIGITS_EPOCHS", 2)
    monkeypatch.setattr("made.cli.demo.PENGUINS_EPOCHS", 2)


@pytest.mark.usefixtures("short")
def test_the_demo_learns_fills_explains_answers_and_reports(tmp_path) -> None:
    facts = run_json("demo", "--out", tmp_path / "new" / "folder")
    assert (facts["rows"], facts["missing"]) == (344, 19)
    assert [column["kind"] for column in facts["columns"]] == ["categorical"] * 2 + ["numeric"] * 4 + ["categorical"]
    assert {name for row in facts["filled"] for name in row} >= {"row", "sex", "body_mass_g"}
    assert "" not in {field for line in read_lines(facts["filled_table"]) for field in line.split(",")}
    assert all(each["log_prob"] < 0 for each in facts["oddest"])
    assert "<svg" in Path(facts["page"]).read_text()


@pytest.mark.usefixtures("short")
def test_the_demo_counts_the_rows_that_a_question_is_about(tmp_path) -> None:
    table = pd.read_csv(table_file("penguins"))
    answers = run_json("demo", "--out", tmp_path)["answers"]
    long = table[table.flipper_length_mm > 205]
    assert (answers[0]["rows"], answers[0]["of"]) == ((long.species == "Gentoo").sum(), len(long))
    heavy = table[(table.species == "Adelie") & (table.body_mass_g > 3800)]
    assert (answers[1]["rows"], answers[1]["of"]) == ((heavy.sex == "male").sum(), len(heavy))
    assert all(0 < answer["probability"] < 1 for answer in answers)


@pytest.mark.usefixtures("short")
def test_the_demo_prints_tables(tmp_path) -> None:
    stdout = run("demo", "--quiet", "--out", tmp_path).stdout
    for text in ("344 rows", "19 missing values", "oddest rows", "Three questions", "report.html", "made sample"):
        assert text in stdout


@pytest.mark.usefixtures("short")
def test_the_digits_are_compared_with_simpler_models(tmp_path) -> None:
    facts = run_json("demo", "digits", "--out", tmp_path)
    assert [row["model"].split()[0] for row in facts["rows"]] == ["independent", "mixture", "MADE,"]
    assert all(15 < row["test_nll"] < 45 and row["ci95"] > 0 for row in facts["rows"])
    assert (tmp_path / "samples.png").exists()


@pytest.mark.usefixtures("short")
def test_the_digits_are_printed_as_a_table(tmp_path) -> None:
    stdout = run("demo", "digits", "--quiet", "--out", tmp_path).stdout
    for text in ("independent Bernoullis", "mixture of", "MADE, 10 masks", "±", "samples.png"):
        assert text in stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--seed", "-1"], 2, "--seed"),
        (["--nothing"], 2, "--nothing"),
        (["dogs"], 2, "dogs"),
        (["--out", "file"], 3, "cannot write to"),
        (["--out", "."], 2, "was not written by `made demo`"),
    ],
)
def test_bad_options_are_refused(tmp_path, monkeypatch, words, code, message) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "filled.csv").write_text("mine")
    assert message in run("demo", *words, code=code).output
    assert (tmp_path / "filled.csv").read_text() == "mine"


def read_lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
