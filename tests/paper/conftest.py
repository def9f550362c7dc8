"""Small datasets and searches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from made import MADE
from made.io import datasets
from made.io.datasets import Dataset, digits
from made.paper import table_uci
from made.paper.grid_search import GridSearch
from made.paper.results_file import ResultsFile
from paper_results import TINY


@pytest.fixture
def small() -> Dataset:
    data = digits()
    return Dataset("digits", data.train[:100], data.valid[:50], data.test[:50], data.image)


@pytest.fixture
def search(tmp_path) -> GridSearch:
    return GridSearch(ResultsFile(tmp_path / "results" / "some.json"), tmp_path / "runs", command="made paper")


@pytest.fixture
def looks(monkeypatch) -> list[int]:
    """How many rows each question was about that was put to a model."""
    asked: list[int] = []
    score_samples = MADE.score_samples

    def counted(self, X, **options):
        asked.append(len(X))
        return score_samples(self, X, **options)

    monkeypatch.setattr(MADE, "score_samples", counted)
    return asked


@pytest.fixture
def toy() -> Dataset:
    """Three columns that exclude each other, one on its own, and two that exclude each other."""
    random = np.random.default_rng(0)
    rows = np.zeros((400, 6), dtype=np.uint8)
    rows[np.arange(400), random.integers(0, 3, 400)] = 1
    rows[:, 3] = random.random(400) < 0.6
    rows[np.arange(400), 4 + random.integers(0, 2, 400)] = 1
    return Dataset("toy", rows[:200], rows[200:300], rows[300:])


@pytest.fixture
def here(tmp_path, monkeypatch, small) -> Path:
    """An empty folder, in which every set is a few digits, and the grid of Table 4 one tiny network."""
    monkeypatch.chdir(tmp_path)
    load, where = datasets.load, datasets.where
    images = {name: replace(small, name=name) for name in ("digits", "adult", "binarized_mnist")}
    monkeypatch.setattr(datasets, "load", lambda name: images[name] if name in images else load(name))
    monkeypatch.setattr(datasets, "where", lambda name: Path(name) if name in images else where(name))
    monkeypatch.setattr(table_uci, "cases", lambda row, grid, rows: {f"{row}-{grid}": TINY})
    return tmp_path
