"""The tables of the benchmark: how they are read, split, and which of their columns are discrete.

The rules are those of the benchmark, not of a model: a column is discrete if it is text or truth values, or has at most
20 distinct values.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ROOT = Path(__file__).parent.parent
LABELS = {
    "penguins": "species",
    "house_votes": "Class",
    "attrition": "Attrition",
    "credit_data": "Status",
    "wa_churn": "churn",
}
SYNTHESIS = {"adult": "income", "shoppers": "Revenue"}
MOST_DISTINCT = 20  # numbers with at most so many distinct values are discrete
GRIDS = (1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001, 0.0001)
Frame = pd.DataFrame


def shared(variable: str, folder: str) -> Path:
    """A folder of data: that of an environment variable, or one beside the repository."""
    return Path(os.environ.get(variable, ROOT.parent / "shared" / folder))


def read(name: str) -> Frame:
    """A table by its name."""
    if name in SYNTHESIS:
        file = shared("MADE_SYNTHESIS", "synthesis") / ("adult_train.csv" if name == "adult" else f"{name}.csv")
        return pd.read_csv(file)
    return pd.read_csv(shared("MADE_TABLES", "tables") / f"{name}.csv")


def split(table: Frame, seed: int, share: float = 0.8) -> tuple[Frame, Frame]:
    """A random share (default: four fifths) for training, the rest for testing."""
    order = np.random.default_rng(seed).permutation(len(table))
    cut = int(len(table) * share + 1e-9)
    return table.iloc[order[:cut]].reset_index(drop=True), table.iloc[order[cut:]].reset_index(drop=True)


def is_discrete(column: Any) -> bool:
    """The rule of the benchmark: text, truth values, or at most 20 distinct numbers."""
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        return True
    return int(column.nunique()) <= MOST_DISTINCT


def grid(values: NDArray[np.float64]) -> float:
    """The largest of :data:`GRIDS` of which all values are multiples; 0 if there is none."""
    values = values[np.isfinite(values)]
    for step in GRIDS:
        steps = values / step
        if (np.abs(steps - np.rint(steps)) <= 1e-7 * (1 + np.abs(steps))).all():
            return step
    return 0.0


@dataclass(frozen=True)
class Split:
    """Training and held-out rows of a table.

    Attributes:
        name: of the table.
        part: which split: the seed, and whether held-out rows are test rows or inner validation rows.
        train, test: the rows.
        discrete, numeric: the names of the columns, by the rule of the benchmark.
        label: the column to predict.
    """

    name: str
    part: str
    train: Frame
    test: Frame
    label: str
    discrete: list[str] = field(default_factory=list)
    numeric: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, seed: int, *, valid: bool = False) -> Split:
        """A split of a table: 80/20 by a seed (adult: its own; shoppers: 90/10), or inside of its training rows."""
        table = read(name)
        if name == "adult":
            train, test = table, pd.read_csv(shared("MADE_SYNTHESIS", "synthesis") / "adult_test.csv")
        else:
            train, test = split(table, seed, 0.9 if name == "shoppers" else 0.8)
        if valid:
            train, test = split(train, seed)
        part = f"seed{seed}-{'valid' if valid else 'test'}"
        return cls.from_frames(name, part, train, test, (LABELS | SYNTHESIS)[name], table)

    @classmethod
    def from_frames(
        cls, name: str, part: str, train: Frame, test: Frame, label: str, table: Frame | None = None
    ) -> Split:
        """Of training and held-out rows; column types are those of the whole table."""
        whole = pd.concat([train, test]) if table is None else table
        discrete = [column for column in whole if is_discrete(whole[column])]
        return cls(name, part, train, test, label, discrete, [each for each in whole if each not in discrete])

    def values(self, column: str) -> list[Any]:
        """The distinct values of a column in the training rows, in order."""
        return sorted(self.train[column].dropna().unique().tolist())

    def scale(self, column: str) -> float:
        """The standard deviation of a numeric column in the training rows."""
        return float(self.train[column].std()) or 1.0

    def truth(self, column: str) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Which held-out rows have a value that training has seen, and its place among :meth:`values`."""
        return places(self.test[column], self.values(column))

    def digest(self) -> str:
        """A hash of all rows, so that results of other rows are never taken for these."""
        rows = [pd.util.hash_pandas_object(each, index=False).to_numpy().tobytes() for each in (self.train, self.test)]
        return hashlib.sha256(b"".join(rows) + repr(list(self.train)).encode()).hexdigest()[:12]


def places(column: Any, values: Sequence[Any]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which entries are among these values, and the places of those entries. Shapes: (rows), (known)."""
    index = {value: place for place, value in enumerate(values)}
    found = np.array([-1 if pd.isna(value) else index.get(value, -1) for value in column.tolist()], dtype=np.intp)
    return found >= 0, found[found >= 0]
