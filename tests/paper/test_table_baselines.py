"""The baselines' rows of Tables 4 and 6."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from made.baselines import LogProb
from made.errors import Diverged
from made.paper import published, table_baselines
from made.paper.results_file import ResultsFile
from made.paper.results_page import results_page


class Known:
    """A system whose NLL is its rate, known in a way of its own."""

    size, epochs = 3, 2

    def __init__(self, learning_rate, seed, kind="estimate", **others) -> None:
        self.rate, self.kind = learning_rate, kind

    def fit(self, train, valid):
        if self.rate > 1:
            raise Diverged("not finite")
        return self

    def log_prob(self, rows) -> LogProb:
        return LogProb(np.full(len(rows), -self.rate), self.kind, 0.0 if self.kind == "exact" else 0.5)


def test_a_row_of_a_baseline_has_the_kind_of_its_likelihood(small, search, monkeypatch) -> None:
    from made.baselines import boltzmann

    looks = []
    monkeypatch.setattr(
        Known, "log_prob", lambda self, rows, own=Known.log_prob: looks.append(len(rows)) or own(self, rows)
    )
    monkeypatch.setattr(boltzmann, "RBM", Known)
    search = replace(search, results=ResultsFile(search.results.path.with_name("baselines.json")))
    data = replace(small, name="adult")
    grid = {"evening": ({"learning_rate": 2.0}, {"learning_rate": 0.5}, {"learning_rate": 0.25})}
    for kind, ci95 in (("estimate", 0.98), ("bound", 0.98), ("exact", 0.0)):
        row = table_baselines.BaselineRow("boltzmann", "RBM", {"kind": kind}, grid)
        monkeypatch.setitem(table_baselines.ROWS, "RBM", row)
        looks.clear()
        (result,) = table_baselines.make(search, data, ["RBM"])
        assert looks == [len(data.valid), len(data.valid), len(data.test)]  # test rows are asked about once
        assert (result["kind"], result["valid_nll"], result["test_nll"]) == (kind, 0.25, 0.25)
        assert result["ci95"] == pytest.approx(ci95)
        assert result["config"]["learning_rate"] == 0.25
        assert "failed" in result["tried"][0]
        sign = {"estimate": "≈ 0.25 ± 0.98", "bound": "≤ 0.25 ± 0.98", "exact": "0.25 ± 0.00"}[kind]
        assert f" {sign} |" in results_page(search.results.path.parent)
        assert table_baselines.make(search, data, ["RBM"]) == [result]
        assert len(looks) == 3


def test_the_rows_of_other_systems_are_those_of_the_paper() -> None:
    assert set(table_baselines.ROWS) == {row for row in published.UCI if not row.startswith("MADE")}
    assert set(table_baselines.MNIST_ROWS) == {row for row in published.MNIST if not row.startswith("MADE")}
    eonade = "EoNADE 1hl (16 ord.)"
    assert list(table_baselines.cases("web", eonade, "evening", 10**7)) == ["EoNADE, learning_rate 0.005"]
    assert len(table_baselines.cases("web", eonade, "full", 10**7)) == 6
    assert len(table_baselines.cases("web", eonade, "evening")) == 2
    for name in ("adult", "binarized_mnist"):
        for row in table_baselines.rows_of(name):
            for budget in ("evening", "full"):
                for parameters in table_baselines.cases(name, row, budget).values():
                    baseline = table_baselines.rows_of(name)[row]
                    system = getattr(import_module(f"made.baselines.{baseline.module}"), baseline.system)
                    assert system(**parameters, seed=3).seed == 3
