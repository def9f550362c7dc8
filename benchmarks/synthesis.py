"""Synthetic rows: can XGBoost tell them from real ones (C2ST), and what does it learn from them (MLE).

C2ST, as published for other models: XGBoost with default parameters tells real training rows from as many synthetic
ones, in three stratified folds; C2ST = 2 - 2 max(AUC, 0.5), so 1 is indistinguishable. Text is one-hot. Missing values
of real rows stay: of text, as one more value, of numbers, as XGBoost treats them; synthetic rows have them, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors

from benchmarks.specialists import Specialists
from benchmarks.tables_data import Frame, Split, places

FOLDS = 3
MOST_NEAR = 1000  # rows whose nearest training row is looked for
Table = NDArray[np.float64]
# april-tools/tabpc, article_material/our_results: C2ST and MLE by XGBoost, and seconds of training on a GPU. Their MLE
# is the best of a grid of XGBoost's parameters, ours of the defaults.
PUBLISHED: dict[str, dict[str, tuple[float, float, int | None]]] = {
    "adult": {
        "TabPC": (0.855, 0.916, 272),
        "TabDiff": (0.841, 0.913, 11605),
        "TabSyn": (0.794, 0.910, 3083),
        "STaSy": (0.343, 0.906, None),
        "TVAE": (0.000, 0.871, None),
        "CTGAN": (0.000, 0.862, 3798),
    },
    "shoppers": {
        "TabPC": (0.894, 0.897, 51),
        "TabDiff": (0.736, 0.917, 10321),
        "TabSyn": (0.655, 0.914, 2441),
        "TVAE": (0.000, 0.903, None),
        "CTGAN": (0.000, 0.850, 1453),
    },
}


def one_hot(rows: Frame, like: Frame) -> Table:
    """Numbers as they are; text and truth values one-hot by the values of ``like``, and one more for missing."""
    parts = []
    for name in like:
        if pd.api.types.is_numeric_dtype(like[name]) and not pd.api.types.is_bool_dtype(like[name]):
            parts.append(rows[name].to_numpy(dtype=np.float64, na_value=np.nan)[:, None])
            continue
        values = sorted(like[name].dropna().unique().tolist())
        hot = np.zeros((len(rows), len(values) + 1))
        known, codes = places(rows[name], values)
        hot[np.flatnonzero(known), codes] = 1
        hot[rows[name].isna().to_numpy(), -1] = 1
        parts.append(hot)
    return np.concatenate(parts, axis=1)


def classifier(seed: int) -> Any:
    """XGBoost with default parameters, on one thread."""
    import xgboost

    return xgboost.XGBClassifier(n_jobs=1, random_state=seed)


def c2st_area(real: Frame, synthetic: Frame, seed: int) -> float:
    """AUC of XGBoost that tells real rows from synthetic ones, the mean over folds."""
    features = np.concatenate([one_hot(each, real) for each in (real, synthetic)])
    truth = np.repeat([1, 0], [len(real), len(synthetic)])
    areas = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(features, truth):
        fitted = classifier(seed).fit(features[train], truth[train])
        areas.append(roc_auc_score(truth[test], fitted.predict_proba(features[test])[:, 1]))
    return float(np.mean(areas))


def single_columns(real: Frame, synthetic: Frame, seed: int) -> dict[str, float]:
    """The same AUC, from each column by itself: which columns give synthetic rows away."""
    return {name: c2st_area(real[[name]], synthetic[[name]], seed) for name in real}


def trained_area(rows: Frame, split: Split, seed: int) -> float | None:
    """AUC of the label on held-out real rows, by XGBoost trained on ``rows``; one-vs-rest for several classes."""
    values = split.values(split.label)
    known, codes = places(rows[split.label], values)
    if len(np.unique(codes)) < len(values):
        return None
    like = split.train.drop(columns=split.label)
    features = one_hot(rows[known].drop(columns=split.label), like)
    fitted = classifier(seed).fit(features, codes)
    there, truth = split.truth(split.label)
    table = fitted.predict_proba(one_hot(split.test[there].drop(columns=split.label), like))
    if len(values) == 2:
        return float(roc_auc_score(truth, table[:, 1]))
    return float(roc_auc_score(truth, table, multi_class="ovr", labels=range(len(values))))


def nearness(rows: Frame, split: Split, seed: int) -> tuple[float, float]:
    """The median distance to the nearest training row, by standardized columns, and the share of copies.

    Up to :data:`MOST_NEAR` rows are asked for, at random. A missing number counts as 0.
    """
    like = split.train
    spread = np.nanstd(one_hot(like, like), axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    chosen = rows.sample(min(len(rows), MOST_NEAR), random_state=seed)
    known, asked = (np.nan_to_num(one_hot(each, like) / spread) for each in (like, chosen))
    far = NearestNeighbors(n_neighbors=1).fit(known).kneighbors(asked)[0][:, 0]
    return float(np.median(far)), float(np.mean(far < 1e-6))


def synthesis(model: Any, specialists: Specialists, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """C2ST and MLE of as many synthetic rows as training rows; ``options`` are further arguments of ``sample``."""
    split, seed = specialists.split, specialists.seed
    drawn = model.sample(len(split.train), random_state=seed, **({"missing": True} | (options or {})))
    area = c2st_area(split.train, drawn, seed)
    real = specialists.kept("mle", split.label, lambda: np.array([trained_area(split.train, split, seed)], dtype=float))
    alone = single_columns(split.train, drawn, seed)
    found: dict[str, Any] = {"c2st": 2 - 2 * max(area, 0.5), "c2st_auc": area, "mle": trained_area(drawn, split, seed)}
    found |= {"mle_real": float(real[0]), "missing_rows": float(split.train.isna().any(axis=1).mean())}
    # Test rows are real: no sample of the truth is nearer to the training rows than they are.
    for name, rows in (("synthetic", drawn), ("test", split.test)):
        found[f"nearest_{name}"], found[f"copies_{name}"] = nearness(rows, split, seed)
    return found | {"columns": {name: alone[name] for name in sorted(alone, key=lambda each: -alone[each])[:8]}}


def line(found: dict[str, Any]) -> str:
    """A line of text."""
    trained = "none" if found["mle"] is None else f"{found['mle']:.4f}"
    telling = ", ".join(f"{name} {value:.3f}" for name, value in list(found["columns"].items())[:4])
    return (
        f"synthesis: C2ST {found['c2st']:.3f} (AUC {found['c2st_auc']:.3f}), label AUC trained on synthetic rows "
        f"{trained}, on real ones {found['mle_real']:.4f}; columns alone: {telling}"
    )
