"""`python -m benchmarks.tables`: one model for all queries of a real table, beside a specialised tool for each.

On the tables in MADE_TABLES, split by a seed into training and test rows: imputation, prediction of the label, the
likelihood of rows, and new rows, all by one `MADE` with default parameters for each split. The other tools are
scikit-learn's SimpleImputer, KNNImputer and IterativeImputer; logistic regression and gradient boosting; a Gaussian
mixture. Results go to `results/tables.json`, and from there to `docs/tables-measured.md` (`benchmarks/tables_page.py`).
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
import torch
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

from benchmarks.tables_page import PAGE, RESULTS, page
from made import MADE
from made.io.atomic import atomic
from made.paper.provenance import machine_info, source_commit
from made.queries.evidence import Evidence
from made.report.column import kolmogorov_smirnov
from made.report.dependence import binned, cramers_v

ROOT = Path(__file__).parent.parent
LABELS = {
    "penguins": "species",
    "house_votes": "Class",
    "attrition": "Attrition",
    "credit_data": "Status",
    "wa_churn": "churn",
}
# Small tables have few rows to test: their figures are means over several splits.
SPLITS = {"penguins": 2, "house_votes": 2}
SHARES = (0.1, 0.3, 0.5)
MIXTURES = (1, 2, 4, 8, 16, 32)
STEPS = 300  # of an optimiser, for a column by itself
Frame = pd.DataFrame


def read(name: str) -> Frame:
    """A table by its name."""
    return pd.read_csv(Path(os.environ.get("MADE_TABLES", ROOT.parent / "shared" / "tables")) / f"{name}.csv")


def split(table: Frame, seed: int) -> tuple[Frame, Frame]:
    """Four fifths for training, one fifth for testing."""
    order = np.random.default_rng(seed).permutation(len(table))
    cut = len(table) * 4 // 5
    return table.iloc[order[:cut]].reset_index(drop=True), table.iloc[order[cut:]].reset_index(drop=True)


class Codes:
    """A table as numbers: one-hot categories, standardised numbers, NaN for missing values."""

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

    def without_first(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same without the first value of each category, which is redundant."""
        return np.delete(codes, self._firsts(), axis=1)

    def with_first(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of :meth:`without_first`: the first value is one minus the others."""
        parts, begin = [codes[:, : len(self.numeric)]], len(self.numeric)
        for name in self.discrete:
            rest = codes[:, begin : begin + len(self.values[name]) - 1]
            parts += [1 - rest.sum(axis=1, keepdims=True), rest]
            begin += rest.shape[1]
        return np.concatenate(parts, axis=1)

    def _firsts(self) -> list[int]:
        counts = [len(self.values[name]) for name in self.discrete]
        return [len(self.numeric) + sum(counts[:d]) for d in range(len(counts))]

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
    """The categorical columns of a model."""
    return [field.name for field in model.model_.schema.fields if field.kind != "numeric"]


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The return value of a function, its seconds, and its processor seconds."""
    begin, busy = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = work()
    seconds = {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - busy}
    return result, {name: round(value, 3) for name, value in seconds.items()}


def impute(model: MADE, train: Frame, test: Frame, share: float, seed: int) -> dict[str, Any]:
    """Random missing values in test rows, imputed by each tool: accuracy, normalised error, seconds."""
    discrete = discrete_columns(model)
    hidden = (np.random.default_rng(seed).random(test.shape) < share) & test.notna().to_numpy()
    missing = test.mask(hidden)
    codes = Codes(train, discrete)

    def simply() -> Frame:
        parts = []
        for columns, strategy in ((codes.numeric, "mean"), (discrete, "most_frequent")):
            if columns:
                imputer = SimpleImputer(strategy=strategy, missing_values=np.nan).fit(train[columns].astype(object))
                parts.append(pd.DataFrame(imputer.transform(missing[columns].astype(object)), columns=columns))
        return pd.concat(parts, axis=1)

    def near() -> Frame:
        return codes.decode(KNNImputer().fit(codes.encode(train)).transform(codes.encode(missing)))

    def iteratively() -> Frame:
        # From complete training rows it would learn a single round; with both tables it learns all ten. And a linear
        # model that has all values of a category but one knows that one from the others, whatever these are.
        both = codes.without_first(np.concatenate([codes.encode(train), codes.encode(missing)]))
        filled = IterativeImputer(random_state=seed).fit_transform(both)[len(train) :]
        return codes.decode(codes.with_first(filled))

    ways: dict[str, Callable[[], Frame]] = {
        "made": lambda: model.impute(missing, strategy="mean"),
        "SimpleImputer": simply,
        "KNNImputer": near,
        "IterativeImputer": iteratively,
    }
    found = {}
    for name, way in ways.items():
        filled, seconds = timed(way)
        found[name] = filling(train, test, filled, hidden, discrete) | seconds
    return found


def filling(
    train: Frame, test: Frame, filled: Frame, hidden: NDArray[np.bool_], discrete: list[str]
) -> dict[str, float | None]:
    """The accuracy of imputed categories, and the mean error of columns in standard deviations."""
    right, error = [], []
    for d, column in enumerate(test.columns):
        where = hidden[:, d]
        if not where.any():
            continue
        truth, guess = test[column].to_numpy()[where], filled[column].to_numpy()[where]
        if column in discrete:
            right += [bool(a == b) for a, b in zip(truth, guess, strict=True)]
        else:
            off = (truth.astype(float) - guess.astype(float)) / (train[column].std() or 1)
            error.append(np.sqrt(np.mean(off**2)))
    return {
        "accuracy": float(np.mean(right)) if right else None,
        "error": float(np.mean(error)) if error else None,
    }


def log_losses(model: MADE, train: Frame, test: Frame, seed: int) -> dict[str, float]:
    """The mean log loss of categorical columns given the others: the model, and a classifier for each column."""
    ours, theirs = [], []
    for column in discrete_columns(model):
        counts = train[column].value_counts()
        known = train[train[column].isin(counts.index[counts > 1])]  # early stopping cannot split one row
        asked = test[test[column].isin(known[column].unique())]
        classes = sorted(known[column].unique().tolist())
        if len(classes) < 2 or not len(asked):
            continue
        truth = [classes.index(value) for value in asked[column]]
        table = model.predict_proba(asked, target=column)
        order = [list(model.classes(column)).index(value) for value in classes]
        ours.append(log_loss(truth, rows_to_one(table[:, order]), labels=range(len(classes))))
        boosted = booster(train, column, seed, stops=True)
        boosted.fit(known.drop(columns=column), [classes.index(value) for value in known[column]])
        guess = boosted.predict_proba(asked.drop(columns=column))
        theirs.append(log_loss(truth, rows_to_one(guess), labels=range(len(classes))))
    return {"made": float(np.mean(ours)), "gradient boosting for each column": float(np.mean(theirs))}


def rows_to_one(table: NDArray[Any]) -> NDArray[np.float64]:
    """Positive probabilities that sum to one, so that the log loss is finite."""
    table = np.clip(table.astype(np.float64), 1e-6, None)
    return table / table.sum(axis=1, keepdims=True)


def kinds(train: Frame, target: str) -> tuple[list[str], list[str]]:
    """The text columns and the numeric columns, without the target."""
    others = [name for name in train if name != target]
    numbers = [name for name in others if pd.api.types.is_numeric_dtype(train[name])]
    return [name for name in others if name not in numbers], numbers


def booster(train: Frame, target: str, seed: int, stops: bool = False) -> Any:
    """Gradient boosting on all other columns, 100 rounds, or the best of 500 by a tenth of the rows."""
    text, numbers = kinds(train, target)
    encode = ColumnTransformer(
        [
            ("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), text),
            ("number", "passthrough", numbers),
        ]
    )
    options = {"early_stopping": True, "max_iter": 500} if stops else {"early_stopping": False}
    return make_pipeline(encode, HistGradientBoostingClassifier(random_state=seed, **options))


def logistic(train: Frame, target: str) -> Any:
    """Logistic regression on all other columns, standardised, missing values imputed with mean or mode."""
    text, numbers = kinds(train, target)
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    encode = ColumnTransformer(
        [("text", words, text), ("number", make_pipeline(SimpleImputer(), StandardScaler()), numbers)]
    )
    return make_pipeline(encode, LogisticRegression(max_iter=2000))


def label(model: MADE, train: Frame, test: Frame, target: str, seed: int) -> dict[str, dict[str, float]]:
    """Log loss and AUC of the label, by the model and by classifiers trained for it."""
    train, test = train[train[target].notna()], test[test[target].notna()]
    classes = sorted(train[target].unique().tolist())
    order = [list(model.classes(target)).index(value) for value in classes]
    tables = {"made": model.predict_proba(test, target=target)[:, order]}
    for name, classifier in (
        ("logistic regression", logistic(train, target)),
        ("gradient boosting", booster(train, target, seed)),
        ("gradient boosting, stopped early", booster(train, target, seed, stops=True)),
    ):
        # Text in a column of objects: scikit-learn has no test for missing text of pandas' own type.
        asked, known = (each.drop(columns=target) for each in (test, train))
        classifier.fit(known, train[target].astype(object))
        tables[name] = classifier.predict_proba(asked)
    return {name: scores(test[target].tolist(), classes, table) for name, table in tables.items()}


def scores(truth: list[Any], classes: list[Any], table: NDArray[Any]) -> dict[str, float]:
    """Log loss and AUC; with more than two classes, the mean one-vs-rest AUC."""
    table, places = rows_to_one(table), [classes.index(value) for value in truth]
    if len(classes) == 2:
        area = roc_auc_score(places, table[:, 1])
    else:
        area = roc_auc_score(places, table, multi_class="ovr", labels=range(len(classes)))
    return {"log_loss": float(log_loss(places, table, labels=range(len(classes)))), "auc": float(area)}


def likelihood(model: MADE, train: Frame, test: Frame, seed: int) -> dict[str, float]:
    """Mean log-likelihood of test rows: against independent columns, and for numbers against a mixture."""
    found = {"made": model.score(test), "independent columns": independent(model, train, test)}
    numbers = [name for name in train if name not in discrete_columns(model)]
    if numbers:
        # Numbers that are written with few digits have probabilities: with noise of a step, all have densities.
        noise = np.random.default_rng(seed)
        steps = [np.diff(np.unique(train[name].dropna())).min().round(6) for name in numbers]
        parts = [each[numbers].dropna() for each in (train, test)]
        parts = [each + noise.random(each.shape) * steps for each in parts]
        smooth = MADE(random_state=seed).fit(parts[0])
        spread = parts[0].std().replace(0, 1)
        scaled = [((each - parts[0].mean()) / spread).to_numpy() for each in parts]
        cut = len(scaled[0]) * 9 // 10
        fitted, _ = timed(lambda: [GaussianMixture(k, random_state=seed).fit(scaled[0][:cut]) for k in MIXTURES])
        best = max(fitted, key=lambda mixture: mixture.score(scaled[0][cut:]))
        found["made, numbers"] = smooth.score(parts[1])
        found["Gaussian mixture, numbers"] = float(best.score(scaled[1]) - np.log(spread).sum())
        found["components"] = best.n_components
    return {name: float(value) for name, value in found.items()}


def independent(model: MADE, train: Frame, test: Frame) -> float:
    """Mean log-likelihood of test rows under independent columns of the same kinds."""
    schema, network, total = model.model_.schema, model.model_.network, 0.0
    learned, asked = (Evidence.of(network, schema.encode(schema.table(each))) for each in (train, test))
    seen, tested = (
        torch.ones_like(each.values, dtype=torch.bool) if each.observed is None else each.observed
        for each in (learned, asked)
    )
    for d, kind in enumerate(network.columns):
        values = learned.values[seen[:, d], d]
        units = kind.independent(values).clone().requires_grad_(schema.fields[d].kind == "numeric")
        if units.requires_grad:
            optimizer = torch.optim.Adam([units], lr=0.05)
            for _ in range(STEPS):
                optimizer.zero_grad()
                (-kind.log_prob(units.expand(len(values), -1), values).mean()).backward()
                optimizer.step()
        with torch.no_grad():
            values = asked.values[tested[:, d], d]
            total += float(kind.log_prob(units.expand(len(values), -1), values).double().sum())
    return total / len(test)


def synthetic(model: MADE, train: Frame, test: Frame, target: str, seed: int) -> dict[str, float]:
    """New rows: what a classifier learns from them, how far columns and pairs are from real ones, and copies.

    Distances of test rows from training rows stand beside those of new rows: no sample of the truth is nearer.
    """
    drawn = model.sample(len(train), random_state=seed)
    discrete = discrete_columns(model)
    real = test[test[target].notna()]
    classes = sorted(train[target].dropna().unique().tolist())
    found: dict[str, float] = {}
    for name, rows in (("auc, learned from real rows", train), ("auc, learned from new rows", drawn)):
        rows = rows[rows[target].notna()]
        fitted = booster(train, target, seed).fit(rows.drop(columns=target), rows[target].astype(object))
        if sorted(fitted.classes_.tolist()) == classes:
            table = fitted.predict_proba(real.drop(columns=target))
            found[name] = scores(real[target].tolist(), classes, table)["auc"]
    for name, rows in (("new rows", drawn), ("test rows", test)):
        columns, pairs = distances(train, rows, discrete)
        found |= {f"columns, {name}": columns, f"pairs, {name}": pairs}
    codes = Codes(train, discrete)
    near = NearestNeighbors(n_neighbors=1).fit(np.nan_to_num(codes.encode(train)))
    for name, rows in (("new rows", drawn), ("test rows", test)):
        far = near.kneighbors(np.nan_to_num(codes.encode(rows)))[0][:, 0]
        found |= {f"nearest, {name}": float(np.median(far)), f"copies, {name}": float(np.mean(far < 1e-6))}
    return found


def distances(train: Frame, rows: Frame, discrete: list[str]) -> tuple[float, float]:
    """Mean distances: of columns, total variation or Kolmogorov-Smirnov; of pairs, the difference of Cramér's V."""
    codes, single = [], []
    for column in train:
        a, b = train[column].dropna(), rows[column].dropna()
        if column in discrete:
            shares = pd.concat([a.value_counts(normalize=True), b.value_counts(normalize=True)], axis=1).fillna(0)
            single.append(float(np.abs(shares.iloc[:, 0] - shares.iloc[:, 1]).sum() / 2))
            places = {value: code for code, value in enumerate(sorted(set(a) | set(b)))}
            columns = [each[column].map(places).to_numpy(dtype=np.float64) for each in (train, rows)]
        else:
            single.append(kolmogorov_smirnov(a.to_numpy(float), b.to_numpy(float)))
            columns = [each[column].to_numpy(dtype=np.float64) for each in (train, rows)]
        codes.append(binned(*columns, discrete=column in discrete))
    dependence = [cramers_v(np.stack([pair[side] for pair in codes], axis=1)) for side in (0, 1)]
    apart = np.abs(dependence[0] - dependence[1])[np.triu_indices(len(codes), 1)]
    return float(np.mean(single)), float(np.nanmean(apart))


def run(name: str, seed: int) -> dict[str, Any]:
    """All measurements of one split of one table."""
    train, test = split(read(name), seed)
    model, seconds = timed(lambda: MADE(random_state=seed).fit(train))
    result: dict[str, Any] = {"table": name, "seed": seed, "rows": len(train), "test_rows": len(test)}
    result |= {"numbers": train.shape[1] - len(discrete_columns(model)), "columns": train.shape[1]}
    result |= {"epochs": model.n_epochs_, "fit": seconds}
    result["impute"] = {f"{share:.0%}": impute(model, train, test, share, seed) for share in SHARES}
    result["log_loss"] = log_losses(model, train, test, seed)
    result["label"] = label(model, train, test, LABELS[name], seed)
    result["likelihood"] = likelihood(model, train, test, seed)
    result["synthetic"] = synthetic(model, train, test, LABELS[name], seed)
    return result


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(LABELS), help="their names (default: all five)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go")
    chosen = parser.parse_args()
    for name in chosen.tables.split(","):
        for seed in range(SPLITS.get(name, 1)):
            row = {"commit": source_commit()} | run(name, seed)
            Console(stderr=True).print_json(json.dumps(row))
            keep(row, chosen.out)


def keep(row: dict[str, Any], out: Path) -> None:
    """Replace the results of the same split, and regenerate the page."""
    rows = json.loads(out.read_text())["rows"] if out.exists() else []
    rows = [each for each in rows if (each["table"], each["seed"]) != (row["table"], row["seed"])]
    rows = sorted([*rows, row], key=lambda each: (list(LABELS).index(each["table"]), each["seed"]))
    content = {"machine": machine_info(), "rows": rows}
    with atomic(out) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())
    if out == RESULTS:
        PAGE.write_text(page(content))


if __name__ == "__main__":
    main()
