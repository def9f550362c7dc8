"""Missing values filled: one model beside tools that are fitted to each table with its missing values.

Values of held-out rows are removed at random. The other tools see training rows and incomplete rows together, and work
in rounds: every column is predicted from all others, over and over. What they fill in does not depend on `made` and is
kept on disk beside the specialists (`benchmarks/specialists.py`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from benchmarks.specialists import Specialists
from benchmarks.tables_data import Frame, Split, places

SHARES = (0.1, 0.3, 0.5)
ROUNDS = 4
RESAMPLES = 400  # of the rows, for standard errors
Table = NDArray[np.float64]
Filler = Callable[[Table, Split, int], Table]


def hide(test: Frame, share: float, seed: int) -> NDArray[np.bool_]:
    """Which entries are removed: a random share of those that are there."""
    return (np.random.default_rng(seed).random(test.shape) < share) & test.notna().to_numpy()


def encode(rows: Frame, split: Split) -> Table:
    """Rows as numbers: discrete columns by the place among the training values; NaN for missing values."""
    table = np.full(rows.shape, np.nan)
    for d, column in enumerate(rows):
        if column in split.discrete:
            known, codes = places(rows[column], split.values(column))
            table[known, d] = codes
        else:
            table[:, d] = rows[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return table


class OneHot:
    """Coded rows with one-hot discrete columns and standardized numbers; NaN for missing values.

    Arguments:
        table: coded rows, which give mean and standard deviation.
        sizes: the number of values of each column; 0 for a number.
        drop_first: whether the first value of each discrete column, which is redundant, is left out.
    """

    def __init__(self, table: Table, sizes: list[int], *, drop_first: bool = False) -> None:
        self.sizes, self.first = sizes, int(drop_first)
        spread = np.nanstd(table, axis=0)
        self.mean, self.spread = np.nanmean(table, axis=0), np.where(spread > 0, spread, 1.0)

    def encode(self, table: Table, skip: int | None = None) -> Table:
        """The columns, without column ``skip``, side by side."""
        parts = []
        for d, size in enumerate(self.sizes):
            column = table[:, d]
            if d == skip:
                continue
            if not size:
                parts.append(((column - self.mean[d]) / self.spread[d])[:, None])
                continue
            hot = (column[:, None] == np.arange(self.first, size)).astype(np.float64)
            hot[np.isnan(column)] = np.nan
            parts.append(hot)
        return np.concatenate(parts, axis=1)

    def decode(self, table: Table) -> Table:
        """The inverse of :meth:`encode` without ``skip``: the likeliest value, the number."""
        columns, begin = [], 0
        for d, size in enumerate(self.sizes):
            if not size:
                columns.append(table[:, begin] * self.spread[d] + self.mean[d])
                begin += 1
                continue
            hot = table[:, begin : begin + size - self.first]
            if self.first:
                hot = np.concatenate([1 - hot.sum(axis=1, keepdims=True), hot], axis=1)
            columns.append(hot.argmax(axis=1).astype(np.float64))
            begin += size - self.first
        return np.stack(columns, axis=1)


def sizes_of(split: Split) -> list[int]:
    """The number of training values of each discrete column, 0 for a column of numbers."""
    return [len(split.values(name)) if name in split.discrete else 0 for name in split.train]


def simple(table: Table, split: Split, seed: int) -> Table:
    """The most frequent value, or the mean."""
    filled = table.copy()
    for d, size in enumerate(sizes_of(split)):
        column = table[:, d]
        known = column[~np.isnan(column)]
        usual = np.bincount(known.astype(int)).argmax() if size else known.mean()
        filled[np.isnan(column), d] = usual
    return filled


def in_rounds(table: Table, split: Split, predict: Callable[..., Table], *, natively: bool) -> Table:
    """Every incomplete column predicted from all others, in rounds, by ``predict(known, target, asked, d)``.

    The first round starts from the mean or the most frequent value, or, ``natively``, from missing values.
    """
    missing = np.isnan(table)
    filled = table.copy() if natively else simple(table, split, 0)
    order = [d for d in np.argsort(missing.sum(axis=0)).tolist() if missing[:, d].any()]
    for _ in range(ROUNDS):
        for d in order:
            absent = missing[:, d]
            filled[absent, d] = predict(filled[~absent], table[~absent, d], filled[absent], d)
    return filled


def boosting(table: Table, split: Split, seed: int) -> Table:
    """LightGBM in rounds, with its defaults: 100 trees, discrete text as categories."""
    import lightgbm

    sizes = sizes_of(split)
    text = [not pd.api.types.is_numeric_dtype(split.train[name]) for name in split.train]

    def predict(known: Table, target: Table, asked: Table, d: int) -> Table:
        if len(np.unique(target)) == 1:
            return np.full(len(asked), target[0])
        others = [each for each in range(len(sizes)) if each != d]
        options: dict[str, Any] = {"random_state": seed, "n_jobs": 1, "deterministic": True, "verbosity": -1}
        model = lightgbm.LGBMClassifier(**options) if sizes[d] else lightgbm.LGBMRegressor(**options)
        categories = [place for place, each in enumerate(others) if text[each]]
        model.fit(known[:, others], target, categorical_feature=categories)
        return np.asarray(model.predict(asked[:, others]), dtype=np.float64)

    return in_rounds(table, split, predict, natively=True)


def extra_trees(table: Table, split: Split, seed: int) -> Table:
    """ExtraTrees in rounds: 100 trees; leaves of at least 5 rows for numbers, as in missForest."""
    sizes = sizes_of(split)

    def predict(known: Table, target: Table, asked: Table, d: int) -> Table:
        codes = OneHot(known, [size if size > 2 else 0 for size in sizes])
        model = (
            ExtraTreesClassifier(random_state=seed) if sizes[d] else ExtraTreesRegressor(5, min_samples_leaf=5)
        ).set_params(n_estimators=100, random_state=seed)
        return np.asarray(model.fit(codes.encode(known, d), target).predict(codes.encode(asked, d)), dtype=np.float64)

    return in_rounds(table, split, predict, natively=False)


def iterative(table: Table, split: Split, seed: int) -> Table:
    """scikit-learn's IterativeImputer: Bayesian ridge regression, up to 10 rounds, on one-hot columns.

    A linear model that sees all values of a category but one knows that one from the others, so the first is left out.
    """
    codes = OneHot(table, sizes_of(split), drop_first=True)
    return codes.decode(IterativeImputer(random_state=seed).fit_transform(codes.encode(table)))


def mice_forest(table: Table, split: Split, seed: int) -> Table:
    """miceforest, with point predictions instead of draws (no mean matching)."""
    import miceforest

    frame = pd.DataFrame(table, columns=[f"c{d}" for d in range(table.shape[1])])
    for d, size in enumerate(sizes_of(split)):
        if size:
            frame[f"c{d}"] = frame[f"c{d}"].astype("category")
    kernel = miceforest.ImputationKernel(frame, num_datasets=1, mean_match_candidates=0, random_state=seed)
    kernel.mice(ROUNDS, verbose=False, num_threads=1)
    return np.asarray(kernel.complete_data(0).astype(np.float64).to_numpy())


FILLERS: dict[str, tuple[Filler, str]] = {
    "mean or mode": (simple, "numpy"),
    "LightGBM in rounds": (boosting, "lightgbm"),
    "ExtraTrees in rounds": (extra_trees, "scikit-learn"),
    "IterativeImputer": (iterative, "scikit-learn"),
    "miceforest": (mice_forest, "miceforest"),
}


def filled_by(name: str, specialists: Specialists, share: float) -> Table:
    """The held-out rows as a tool fills them, coded; kept on disk."""
    split, seed = specialists.split, specialists.seed
    filler, package = FILLERS[name]

    def work() -> Table:
        missing = split.test.mask(hide(split.test, share, seed))
        both = np.concatenate([encode(split.train, split), encode(missing, split)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return filler(both, split, seed)[len(split.train) :]

    what = f"fill{share:.0%}-{package}-{version(package)}-{ROUNDS}"
    return specialists.kept(what, name, work)


def fill_all(specialists: Specialists) -> float:
    """Let every tool fill every share that is not on disk; the seconds that it took."""
    begin = time.perf_counter()
    for name in FILLERS:
        for share in SHARES:
            filled_by(name, specialists, share)
    return time.perf_counter() - begin


def filled_by_model(model: Any, split: Split, share: float, seed: int) -> Table:
    """The held-out rows as a model fills them, coded: the likeliest discrete values, the means of numbers."""
    missing = split.test.mask(hide(split.test, share, seed))
    likeliest, means = (model.impute(missing, strategy=strategy) for strategy in ("mode", "mean"))
    columns = {name: (likeliest if name in split.discrete else means)[name] for name in split.test}
    return encode(pd.DataFrame(columns), split)


class Score:
    """The accuracy of filled categories, and the error of numbers, also for resampled rows.

    The error of numbers is the root mean squared error in standard deviations of the training rows, averaged over
    columns.
    """

    def __init__(self, split: Split, hidden: NDArray[np.bool_], seed: int) -> None:
        self.split, self.hidden, self.truth = split, hidden, encode(split.test, split)
        rng = np.random.default_rng(seed)
        rows = len(split.test)
        # How often each row is drawn: first every row once, then resampled.
        self.draws = np.concatenate([np.ones((1, rows)), rng.multinomial(rows, np.full(rows, 1 / rows), RESAMPLES)])

    def __call__(self, filled: Table) -> dict[str, Table]:
        """Accuracy and error; the first entry is of the rows, the others of resampled rows."""
        right, cells, errors = np.zeros(len(self.truth)), np.zeros(len(self.truth)), []
        for d, column in enumerate(self.split.test):
            asked = self.hidden[:, d] & ~np.isnan(self.truth[:, d])
            if column in self.split.discrete:
                right += asked & (filled[:, d] == self.truth[:, d])
                cells += asked
            elif asked.any():
                off = np.where(asked, (filled[:, d] - self.truth[:, d]) / self.split.scale(column), 0.0)
                errors.append(np.sqrt((self.draws @ off**2) / np.maximum(self.draws @ asked, 1)))
        found = {}
        if cells.any():
            found["accuracy"] = (self.draws @ right) / np.maximum(self.draws @ cells, 1)
        if errors:
            found["error"] = np.mean(errors, axis=0)
        return found


def filling(model: Any, specialists: Specialists) -> dict[str, Any]:
    """Every share of missing values, every tool: its figures, and the standard errors of its differences to ours."""
    split, seed = specialists.split, specialists.seed
    found: dict[str, Any] = {}
    for share in SHARES:
        score = Score(split, hide(split.test, share, seed), seed)
        begin = time.perf_counter()
        ours = score(filled_by_model(model, split, share, seed))
        each: dict[str, Any] = {"made": {key: float(value[0]) for key, value in ours.items()}}
        each["made"]["seconds"] = round(time.perf_counter() - begin, 3)
        for name in FILLERS:
            theirs = score(filled_by(name, specialists, share))
            each[name] = {key: float(value[0]) for key, value in theirs.items()}
            for key, value in theirs.items():
                each[name][f"{key}_se"] = float((ours[key] - value)[1:].std())
        found[f"{share:.0%}"] = each
    return found


def wins(rows: list[dict[str, Any]]) -> list[tuple[str, str, str, bool]]:
    """For each cell (table, share, measure): whether ours is the best, or within one standard error of the best.

    Arguments:
        rows: results with "table" and "filling"; several splits of a table are averaged.
    """
    cells = []
    for table in dict.fromkeys(row["table"] for row in rows):
        of_table = [row["filling"] for row in rows if row["table"] == table]
        for share in of_table[0]:
            for key, sign in (("accuracy", 1), ("error", -1)):
                if key not in of_table[0][share]["made"]:
                    continue
                behind = []
                for name in FILLERS:
                    gaps = [sign * (each[share][name][key] - each[share]["made"][key]) for each in of_table]
                    errors = [each[share][name][f"{key}_se"] for each in of_table]
                    behind.append((np.mean(gaps), np.sqrt(np.sum(np.square(errors))) / len(errors)))
                gap, error = max(behind)
                cells.append((table, share, key, bool(gap <= error)))
    return cells


def line(found: dict[str, Any], table: str) -> str:
    """A line of text: ours and the best of the others, in each cell."""
    parts = []
    for key, best in (("accuracy", max), ("error", min)):
        for share, each in found.items():
            if key in each["made"]:
                name = best(FILLERS, key=lambda tool, each=each, key=key: each[tool][key])
                parts.append(f"{key} {share} {each['made'][key]:.4f} ({name} {each[name][key]:.4f})")
    won = [cell[3] for cell in wins([{"table": table, "filling": found}])]
    return f"filling: best or within one standard error in {sum(won)} of {len(won)}: {', '.join(parts)}"
