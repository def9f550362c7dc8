"""`python -m benchmarks.tables`: one model for every question about a real table, beside a tool made for each.

On the tables in MADE_TABLES, split by a seed into rows to learn from and rows to test: filling holes, predicting the
label, the likelihood of rows, and new rows, all by one `MADE` of default parameters for each table. The others are
scikit-learn's: SimpleImputer, KNNImputer and IterativeImputer; logistic regression and gradient boosting; a Gaussian
mixture. Results go to `results/tables.json`, and from there to `docs/tables-measured.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from made import MADE
from made.files import atomic
from made.paper.record import source
from made.paper.table_complexity import machine
from made.report.column import kolmogorov_smirnov
from made.report.dependence import binned, cramers_v

ROOT = Path(__file__).parent.parent
LABELS = {
    "credit_data": "Status",
    "wa_churn": "churn",
    "attrition": "Attrition",
    "penguins": "species",
    "house_votes": "Class",
}
SHARES = (0.1, 0.3, 0.5)
Frame = pd.DataFrame


def read(name: str) -> Frame:
    """A table: text, and numbers of few values in words or 0 and 1, are categories; other columns numbers."""
    return pd.read_csv(Path(os.environ.get("MADE_TABLES", ROOT.parent / "shared" / "tables")) / f"{name}.csv")


def split(table: Frame, seed: int) -> tuple[Frame, Frame]:
    """Four fifths to learn from, and a fifth to test."""
    order = np.random.default_rng(seed).permutation(len(table))
    cut = len(table) * 4 // 5
    return table.iloc[order[:cut]].reset_index(drop=True), table.iloc[order[cut:]].reset_index(drop=True)


class Codes:
    """A table as numbers for those who need them: categories one-hot, numbers standardised, holes NaN."""

    def __init__(self, table: Frame, discrete: list[str]) -> None:
        self.discrete, self.numeric = discrete, [name for name in table if name not in discrete]
        self.values = {name: sorted(table[name].dropna().unique().tolist()) for name in discrete}
        self.mean, self.spread = table[self.numeric].mean(), table[self.numeric].std().replace(0, 1)

    def encode(self, table: Frame) -> NDArray[np.float64]:
        parts = [((table[self.numeric] - self.mean) / self.spread).to_numpy(dtype=np.float64)]
        for name in self.discrete:
            hot = np.array([[value == each for each in self.values[name]] for value in table[name]], dtype=np.float64)
            hot[table[name].isna().to_numpy()] = np.nan
            parts.append(hot)
        return np.concatenate(parts, axis=1)

    def decode(self, codes: NDArray[np.float64]) -> Frame:
        columns: dict[str, Any] = {
            name: codes[:, d] * self.spread[name] + self.mean[name] for d, name in enumerate(self.numeric)
        }
        begin = len(self.numeric)
        for name in self.discrete:
            values = self.values[name]
            columns[name] = [values[k] for k in codes[:, begin : begin + len(values)].argmax(axis=1)]
            begin += len(values)
        return pd.DataFrame(columns)


def discrete_columns(model: MADE) -> list[str]:
    """The columns that the model takes for categories."""
    return [field.name for field in model.model_.schema.fields if field.kind != "numeric"]


def impute(model: MADE, train: Frame, test: Frame, share: float, seed: int) -> dict[str, Any]:
    """Holes at random in test rows, filled by each: accuracy of categories, normalised error of numbers, seconds."""
    discrete = discrete_columns(model)
    hidden = (np.random.default_rng(seed).random(test.shape) < share) & test.notna().to_numpy()
    holed = test.mask(hidden)
    codes = Codes(train, discrete)
    learned, asked = codes.encode(train), codes.encode(holed)

    def by(imputer: Any) -> Frame:
        return codes.decode(imputer.fit(learned).transform(asked))

    ways: dict[str, Callable[[], Frame]] = {
        "made": lambda: model.impute(holed, strategy="mean"),
        "SimpleImputer": lambda: by(SimpleImputer(strategy="mean")),
        "KNNImputer": lambda: by(KNNImputer()),
        "IterativeImputer": lambda: by(IterativeImputer(random_state=seed)),
    }
    found = {}
    for name, way in ways.items():
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filled = way()
        seconds = time.perf_counter() - begin
        right, error = [], []
        for d, column in enumerate(test.columns):
            where = hidden[:, d]
            if not where.any():
                continue
            truth, guess = test[column].to_numpy()[where], filled[column].to_numpy()[where]
            if column in discrete:
                right += [str(a) == str(b) or a == b for a, b in zip(truth, guess, strict=True)]
            else:
                off = (truth.astype(float) - guess.astype(float)) / (train[column].std() or 1)
                error.append(np.sqrt(np.mean(off**2)))
        found[name] = {
            "accuracy": float(np.mean(right)) if right else None,
            "error": float(np.mean(error)) if error else None,
            "seconds": round(seconds, 3),
        }
    return found


def log_losses(model: MADE, train: Frame, test: Frame, seed: int) -> dict[str, float]:
    """The mean log loss of each categorical column given the others, by the model and by a classifier for each."""
    ours, theirs = [], []
    for column in discrete_columns(model):
        known = train[train[column].notna()]
        asked = test[test[column].isin(known[column].unique())]
        classes = sorted(known[column].unique().tolist())
        if len(classes) < 2 or not len(asked):
            continue
        truth = [classes.index(value) for value in asked[column]]
        table = model.predict_proba(asked, target=column)
        order = [list(model.classes(column)).index(value) for value in classes]
        ours.append(log_loss(truth, _rows_to_one(table[:, order]), labels=range(len(classes))))
        boosted = booster(train, column, seed).fit(known.drop(columns=column), known[column])
        guess = boosted.predict_proba(asked.drop(columns=column))
        theirs.append(log_loss(truth, _rows_to_one(guess), labels=range(len(classes))))
    return {"made": float(np.mean(ours)), "gradient boosting for each column": float(np.mean(theirs))}


def _rows_to_one(table: NDArray[Any]) -> NDArray[np.float64]:
    table = np.clip(table.astype(np.float64), 1e-6, None)
    return table / table.sum(axis=1, keepdims=True)


def booster(train: Frame, target: str, seed: int) -> Any:
    """Gradient boosting on all other columns."""
    text = [name for name in train if train[name].dtype == object and name != target]
    encode = ColumnTransformer(
        [("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), text)], remainder="passthrough"
    )
    return make_pipeline(encode, HistGradientBoostingClassifier(random_state=seed, early_stopping=False, max_iter=60))


def logistic(train: Frame, target: str) -> Any:
    """Logistic regression on all other columns, standardised, their holes filled with the mean or the mode."""
    text = [name for name in train if train[name].dtype == object and name != target]
    numbers = [name for name in train if name not in text and name != target]
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    encode = ColumnTransformer(
        [("text", words, text), ("number", make_pipeline(SimpleImputer(), StandardScaler()), numbers)]
    )
    return make_pipeline(encode, LogisticRegression(max_iter=2000))


def label(model: MADE, train: Frame, test: Frame, target: str, seed: int) -> dict[str, dict[str, float]]:
    """Log loss and AUC of the label, by the model that was made for no column in particular and by two that were."""
    train, test = train[train[target].notna()], test[test[target].notna()]
    classes = sorted(train[target].unique().tolist())
    order = [list(model.classes(target)).index(value) for value in classes]
    tables = {"made": model.predict_proba(test, target=target)[:, order]}
    for name, classifier in (
        ("logistic regression", logistic(train, target)),
        ("gradient boosting", booster(train, target, seed)),
    ):
        classifier.fit(train.drop(columns=target), train[target])
        tables[name] = classifier.predict_proba(test.drop(columns=target))
    return {name: _scores(test[target].tolist(), classes, table) for name, table in tables.items()}


def _scores(truth: list[Any], classes: list[Any], table: NDArray[Any]) -> dict[str, float]:
    table, places = _rows_to_one(table), [classes.index(value) for value in truth]
    if len(classes) == 2:
        area = roc_auc_score(places, table[:, 1])
    else:
        area = roc_auc_score(places, table, multi_class="ovr", labels=range(len(classes)))
    return {"log_loss": float(log_loss(places, table, labels=range(len(classes)))), "auc": float(area)}


def likelihood(model: MADE, train: Frame, test: Frame, seed: int, epochs: int) -> dict[str, float]:
    """Mean log-likelihood of test rows: of whole ones against independent columns, of numbers against a mixture."""
    found = {"made": model.score(test), "independent columns": 0.0}
    for column in train:
        alone = MADE(hidden_sizes=(), max_epochs=epochs, random_state=seed).fit(train[[column]].dropna())
        found["independent columns"] += alone.score_samples(test[[column]].dropna()).sum() / len(test)
    numbers = [name for name in train if name not in discrete_columns(model)]
    if numbers:
        # Whole numbers have probabilities, real ones densities: with noise of less than a step, all have densities.
        noise = np.random.default_rng(seed)
        parts = [each[numbers].dropna() for each in (train, test)]
        parts = [each + noise.random(each.shape) * (each == each.round()).all().to_numpy() for each in parts]
        smooth = MADE(random_state=seed, max_epochs=epochs).fit(parts[0])
        spread = parts[0].std().replace(0, 1)
        scaled = [(each - parts[0].mean()) / spread for each in parts]
        cut = len(scaled[0]) * 9 // 10
        best = max(
            (GaussianMixture(k, random_state=seed, reg_covar=1e-4).fit(scaled[0][:cut]) for k in (1, 2, 4, 8, 16, 32)),
            key=lambda mixture: mixture.score(scaled[0][cut:]),
        )
        found["made, numbers"] = smooth.score(parts[1])
        found["Gaussian mixture, numbers"] = float(best.score(scaled[1]) - np.log(spread).sum())
    return {name: float(value) for name, value in found.items()}


def synthetic(model: MADE, train: Frame, test: Frame, target: str, seed: int) -> dict[str, float]:
    """New rows: what a classifier learns from them, how far columns and pairs are from real ones, and copies."""
    drawn = model.sample(len(train), random_state=seed)
    discrete = discrete_columns(model)
    real = test[test[target].notna()]
    classes = sorted(train[target].dropna().unique().tolist())
    found: dict[str, float] = {}
    for name, rows in (("auc, learned from real rows", train), ("auc, learned from new rows", drawn)):
        rows = rows[rows[target].notna()]
        fitted = booster(train, target, seed).fit(rows.drop(columns=target), rows[target])
        if sorted(fitted.classes_.tolist()) == classes:
            found[name] = _scores(real[target].tolist(), classes, fitted.predict_proba(real.drop(columns=target)))[
                "auc"
            ]
    pairs, distances = [], []
    for column in train:
        a, b = train[column].dropna(), drawn[column].dropna()
        if column in discrete:
            shares = pd.concat([a.value_counts(normalize=True), b.value_counts(normalize=True)], axis=1).fillna(0)
            distances.append(float(np.abs(shares.iloc[:, 0] - shares.iloc[:, 1]).sum() / 2))
            codes = {value: code for code, value in enumerate(sorted(set(a) | set(b), key=str))}
            columns = [each[column].map(codes).to_numpy(dtype=np.float64) for each in (train, drawn)]
        else:
            distances.append(float(kolmogorov_smirnov(a.to_numpy(float), b.to_numpy(float))))
            columns = [each[column].to_numpy(dtype=np.float64) for each in (train, drawn)]
        pairs.append(binned(*columns, discrete=column in discrete))
    dependence = [cramers_v(np.stack([pair[side] for pair in pairs], axis=1)) for side in (0, 1)]
    found["distance of columns"] = float(np.mean(distances))
    found["distance of pairs"] = float(np.nanmean(np.abs(dependence[0] - dependence[1])))
    codes_of = Codes(train, discrete)
    near = NearestNeighbors(n_neighbors=1).fit(np.nan_to_num(codes_of.encode(train)))
    for name, rows in (("nearest real row, of new rows", drawn), ("nearest real row, of test rows", test)):
        found[name] = float(near.kneighbors(np.nan_to_num(codes_of.encode(rows)))[0].mean())
    return found


def run(name: str, seed: int, epochs: int) -> dict[str, Any]:
    """All of it for one table."""
    table = read(name)
    train, test = split(table, seed)
    begin = time.perf_counter()
    model = MADE(random_state=seed, max_epochs=epochs).fit(train)
    result: dict[str, Any] = {"table": name, "seed": seed, "fit_seconds": round(time.perf_counter() - begin, 1)}
    result["impute"] = {f"{share:.0%}": impute(model, train, test, share, seed) for share in SHARES}
    result["log_loss"] = log_losses(model, train, test, seed)
    result["label"] = label(model, train, test, LABELS[name], seed)
    result["likelihood"] = likelihood(model, train, test, seed, epochs)
    result["synthetic"] = synthetic(model, train, test, LABELS[name], seed)
    return result


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(LABELS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "tables.json")
    chosen = parser.parse_args()
    results = []
    for name in chosen.tables.split(","):
        results.append(run(name, chosen.seed, chosen.epochs))
        Console(stderr=True).print_json(json.dumps(results[-1]))
        content = {"machine": machine(), "commit": source(), "rows": results}
        with atomic(chosen.out) as file:
            file.write((json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
