"""A model for each column: early-stopped LightGBM for classes, means and quantiles, and logistic regression.

Their predictions for held-out rows do not depend on `made`, so they are kept on disk, in MADE_SPECIALISTS (default:
~/runs/specialists), by table, split, column, settings, versions and a hash of the rows.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.tables_data import Frame, Split, is_discrete, places

LEVELS = (0.05, 0.95)
# All else is LightGBM's default, such as 31 leaves of at least 20 rows.
SETTINGS: dict[str, Any] = {"learning_rate": 0.05, "deterministic": True, "num_threads": 1, "verbosity": -1}
ROUNDS, PATIENCE = 2000, 50
VALIDATION = 0.1  # share of the training rows that stops the rounds
Table = NDArray[np.float64]


class Features:
    """The other columns as numbers: text by its place among the training values, NaN for missing and unseen ones."""

    def __init__(self, train: Frame, columns: list[str]) -> None:
        self.columns = columns
        self.text = [name for name in columns if not pd.api.types.is_numeric_dtype(train[name])]
        self.values = {name: sorted(train[name].dropna().unique().tolist()) for name in self.text}

    @property
    def categories(self) -> list[int]:
        """The numbers of the columns of text."""
        return [d for d, name in enumerate(self.columns) if name in self.text]

    def __call__(self, rows: Frame) -> Table:
        table = np.full((len(rows), len(self.columns)), np.nan)
        for d, name in enumerate(self.columns):
            if name in self.text:
                known, codes = places(rows[name], self.values[name])
                table[known, d] = codes
            else:
                table[:, d] = rows[name].to_numpy(dtype=np.float64, na_value=np.nan)
        return table


def boost(features: Table, target: Table, asked: Table, categories: list[int], seed: int, **settings: Any) -> Table:
    """Predictions of LightGBM, stopped early by a random tenth of the rows."""
    import lightgbm

    order = np.random.default_rng(seed).permutation(len(target))
    cut = max(1, round(VALIDATION * len(target)))
    parts = [
        lightgbm.Dataset(features[rows], target[rows], categorical_feature=categories, params={"verbosity": -1})
        for rows in (order[cut:], order[:cut])
    ]
    parts[1].set_reference(parts[0])
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = SETTINGS | {"seed": seed} | settings
        model = lightgbm.train(options, parts[0], ROUNDS, valid_sets=[parts[1]], callbacks=[stop])
        return np.asarray(model.predict(asked, num_iteration=model.best_iteration))


def boosted_classes(features: Table, codes: Table, asked: Table, categories: list[int], seed: int, count: int) -> Table:
    """The probability of each of ``count`` classes, by :func:`boost`. Shape: (asked rows, classes)."""
    if count == 2:
        second = boost(features, codes, asked, categories, seed, objective="binary")
        return np.stack([1 - second, second], axis=1)
    return boost(features, codes, asked, categories, seed, objective="multiclass", num_class=count)


def cache_folder() -> Path:
    """Where predictions of specialists are kept."""
    return Path(os.environ.get("MADE_SPECIALISTS", Path.home() / "runs" / "specialists"))


class Specialists:
    """The predictions of specialists for the held-out rows of a split, each fitted once.

    Arguments:
        split: the rows.
        seed: of the tools.
        folder: where predictions are kept; default: :func:`cache_folder`.
    """

    name = "LightGBM"

    def __init__(self, split: Split, seed: int = 0, folder: Path | None = None) -> None:
        self.split, self.seed = split, seed
        self.folder = (cache_folder() if folder is None else folder) / split.name / split.part
        self._digest = split.digest()

    def proba(self, column: str) -> Table:
        """The probability of each training value of a column, (rows, values), given all other columns."""
        values = self.split.values(column)

        def work() -> Table:
            known, codes = places(self.split.train[column], values)
            features, asked, categories = self._others(column)
            return boosted_classes(features[known], codes.astype(float), asked, categories, self.seed, len(values))

        return self.kept("classes", column, work)

    def mean(self, column: str) -> Table:
        """The mean of a column of numbers in each row, given all other columns."""
        return self.kept("mean", column, lambda: self._numbers(column, objective="regression"))

    def quantiles(self, column: str) -> Table:
        """The :data:`LEVELS` of a column of numbers in each row, by a model for each. Shape: (rows, levels)."""

        def work() -> Table:
            each = [self._numbers(column, objective="quantile", alpha=level) for level in LEVELS]
            return np.sort(np.stack(each, axis=1), axis=1)

        return self.kept("quantiles", column, work)

    def logistic(self, column: str) -> Table:
        """As :meth:`proba`, by logistic regression: one-hot text, standardized numbers, mean or mode for missing."""
        values = self.split.values(column)

        def work() -> Table:
            known, codes = places(self.split.train[column], values)
            train, test = (as_objects(each.drop(columns=column)) for each in (self.split.train, self.split.test))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return np.asarray(logistic(train).fit(train[known], codes).predict_proba(test))

        return self.kept("logistic", column, work)

    def precompute(self) -> float:
        """Fit all of them that are not on disk; the seconds that it took."""
        begin = time.perf_counter()
        for column in self.split.discrete:
            if len(self.split.values(column)) > 1:
                self.proba(column)
        for column in self.split.numeric:
            self.mean(column)
            self.quantiles(column)
        self.logistic(self.split.label)
        return time.perf_counter() - begin

    def _others(self, column: str) -> tuple[Table, Table, list[int]]:
        features = Features(self.split.train, [name for name in self.split.train if name != column])
        return features(self.split.train), features(self.split.test), features.categories

    def _numbers(self, column: str, **settings: Any) -> Table:
        target = self.split.train[column].to_numpy(dtype=np.float64, na_value=np.nan)
        known = ~np.isnan(target)
        features, asked, categories = self._others(column)
        return boost(features[known], target[known], asked, categories, self.seed, **settings)

    def kept(self, what: str, column: str, work: Callable[[], Table]) -> Table:
        """The predictions that are on disk, or those of ``work``, which are then kept."""
        versions = {name: version(name) for name in ("lightgbm", "scikit-learn", "numpy")}
        settings = [SETTINGS, ROUNDS, PATIENCE, VALIDATION, LEVELS, self.seed]
        key = json.dumps([what, column, self._digest, versions, settings], sort_keys=True)
        name = "".join(each if each.isalnum() else "_" for each in column)
        path = self.folder / f"{what}-{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
        if not path.exists():
            found = work()
            path.parent.mkdir(parents=True, exist_ok=True)
            # Two processes may compute the same: the last one to finish replaces an equal file.
            draft = path.with_suffix(f".{os.getpid()}")
            with draft.open("wb") as file:
                np.save(file, found)
            draft.replace(path)
        return np.asarray(np.load(path))


def as_objects(rows: Frame) -> Frame:
    """Text as objects, since scikit-learn has no test for missing text of pandas' own type; truth values as text."""
    changed = {
        name: rows[name].astype(object).map(lambda value: np.nan if pd.isna(value) else str(value)).astype(object)
        for name in rows
        if is_discrete(rows[name]) and not pd.api.types.is_numeric_dtype(rows[name].infer_objects())
    }
    return rows.assign(**changed)


def logistic(train: Frame) -> Any:
    """Logistic regression on these columns: standardized numbers, missing values imputed with mean or mode."""
    numbers = [name for name in train if pd.api.types.is_numeric_dtype(train[name])]
    text = [name for name in train if name not in numbers]
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    encode = ColumnTransformer(
        [("text", words, text), ("number", make_pipeline(SimpleImputer(), StandardScaler()), numbers)]
    )
    return make_pipeline(encode, LogisticRegression(max_iter=2000))
