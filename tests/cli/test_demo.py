"""Digits, mixtures of Bernoullis, the picture, and the command that puts them together."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from made.baselines.bernoulli import BernoulliMixture
from made.cli import app
from made.io.datasets import digits
from made.paper.figure_samples import nearest, plot

command = importlib.import_module("made.cli.demo")


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


def test_the_demo_prints_json_and_only_that(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(command, "EPOCHS", 2)
    result = CliRunner().invoke(app, ["demo", "--json", "--out", str(tmp_path / "new" / "folder")])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert [row["model"].split()[0] for row in answer["rows"]] == ["independent", "mixture", "MADE,"]
    assert all(15 < row["test_nll"] < 45 and row["ci95"] > 0 for row in answer["rows"])
    assert (tmp_path / "new" / "folder" / "samples.png").exists()


def test_the_demo_prints_a_table(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(command, "EPOCHS", 1)
    result = CliRunner().invoke(app, ["demo", "--quiet", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for text in ("independent Bernoullis", "mixture of", "MADE, 10 masks", "±", "samples.png"):
        assert text in result.stdout


def test_bad_options_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(command, "EPOCHS", 1)
    assert CliRunner().invoke(app, ["demo", "--seed", "-1"]).exit_code == 2
    assert CliRunner().invoke(app, ["demo", "--nothing"]).exit_code == 2
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file")])
    assert result.exit_code == 3
    assert "cannot write to" in result.output
