"""What one model answers about a table, measured on held-out rows beside a specialist for each question.

Each measurement takes a :class:`made.MADE` (or an object with the same methods), wrapped in :class:`Answers`, which
asks it for each column once, and the :class:`benchmarks.specialists.Specialists` of the same split.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.filling import filling
from benchmarks.filling import line as filling_line
from benchmarks.specialists import LEVELS, Specialists
from benchmarks.synthesis import line as synthesis_line
from benchmarks.synthesis import synthesis
from benchmarks.tables_data import Frame, Split, grid, places

Table = NDArray[np.float64]
LEAST_ROWS = 50  # held-out rows of a value, for short questions about it
LITTLE = 0.01  # added to losses before their ratio is taken
BEYOND_ONE = 0.16663  # the mean of max(|z| - 1, 0) of a standard normal variable
BINS = 15  # of the expected calibration error


class Answers:
    """The answers of a fitted model to questions about the held-out rows of a split."""

    def __init__(self, model: Any, split: Split) -> None:
        self.model, self.split = model, split
        self.proba, self.mean, self.quantiles = cache(self._proba), cache(self._mean), cache(self._quantiles)

    def probabilities(self, rows: Frame, column: str) -> Table:
        """The probability of each training value of a column, (rows, values), that sum to one."""
        values = self.split.values(column)
        listed = self.classes(column)
        if listed is None:  # a number without a list of values: the likelihood of each
            model = self.model.model_
            asked = [model.codes(rows.assign(**{column: value})) for value in values]
            d = model.target(column)
            return rows_to_one(np.exp(np.stack([model.view.forecast(each, d, ()).log_prob for each in asked], axis=1)))
        found = np.asarray(self.model.predict_proba(rows, target=column), dtype=np.float64)
        order = [listed.index(value) if value in listed else -1 for value in values]
        return rows_to_one(np.pad(found, ((0, 0), (0, 1)))[:, order])

    def classes(self, column: str) -> list[Any] | None:
        """The values that the model lists for a column; None if it has no list."""
        try:
            return list(np.asarray(self.model.classes(column)).tolist())
        except ValueError:
            return None

    def _proba(self, column: str) -> Table:
        return self.probabilities(self.split.test, column)

    def _mean(self, column: str) -> Table:
        if self.classes(column) is not None:
            return self.proba(column) @ np.array(self.split.values(column), dtype=np.float64)
        return np.asarray(self.model.predict(self.split.test, target=column), dtype=np.float64)

    def _quantiles(self, column: str) -> Table:
        return np.asarray(self.model.predict_quantiles(self.split.test, target=column, quantiles=LEVELS))


def rows_to_one(table: Table) -> Table:
    """Positive probabilities that sum to one, so that the log loss is finite."""
    table = np.clip(np.asarray(table, dtype=np.float64), 1e-6, None)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def log_loss(table: Table, truth: NDArray[np.intp]) -> float:
    """The mean of -log p of the true class."""
    return float(-np.log(rows_to_one(table)[np.arange(len(truth)), truth]).mean())


def area(table: Table, truth: NDArray[np.intp]) -> float:
    """AUC; with more than two classes, the mean one-vs-rest AUC."""
    if table.shape[1] == 2:
        return float(roc_auc_score(truth, table[:, 1]))
    return float(roc_auc_score(truth, rows_to_one(table), multi_class="ovr", labels=range(table.shape[1])))


def calibration_error(table: Table, truth: NDArray[np.intp]) -> float:
    """Expected calibration error of the most likely class, in bins of equal width."""
    top, sure = table.argmax(axis=1), table.max(axis=1)
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=(top == truth) - sure, minlength=BINS)
    return float(np.abs(gaps).sum() / len(truth))


def pinball(quantiles: Table, truth: Table) -> float:
    """The mean pinball loss of quantiles at :data:`LEVELS`."""
    off = truth[:, None] - quantiles
    levels = np.array(LEVELS)
    return float(np.maximum(levels * off, (levels - 1) * off).mean())


def geometric_mean(pairs: Sequence[Sequence[float]]) -> float | None:
    """The geometric mean of (ours + 0.01) / (theirs + 0.01)."""
    if not pairs:
        return None
    return float(np.exp(np.mean([np.log((ours + LITTLE) / (theirs + LITTLE)) for ours, theirs in pairs])))


def asked_columns(split: Split) -> list[str]:
    """The discrete columns with at least two values in the training rows, and with held-out rows."""
    return [name for name in split.discrete if len(split.values(name)) > 1 and split.truth(name)[0].any()]


def conditionals(ours: Answers, theirs: Specialists, split: Split) -> dict[str, Any]:
    """Log loss of each discrete column, RMSE of each number in standard deviations, given all other columns.

    Also the calibration error of the classes, averaged over columns.
    """
    losses, errors, gaps = {}, {}, []
    for column in asked_columns(split):
        known, truth = split.truth(column)
        tables = [each.proba(column)[known] for each in (ours, theirs)]
        losses[column] = [log_loss(table, truth) for table in tables]
        gaps.append([calibration_error(table, truth) for table in tables])
    for column in split.numeric:
        truth_of = split.test[column].to_numpy(dtype=np.float64, na_value=np.nan)
        known = ~np.isnan(truth_of)
        off = [each.mean(column)[known] - truth_of[known] for each in (ours, theirs)]
        errors[column] = [float(np.sqrt(np.mean(each**2)) / split.scale(column)) for each in off]
    found: dict[str, Any] = {}
    for name, pairs in (("log_loss", list(losses.values())), ("rmse", list(errors.values())), ("ece", gaps)):
        if pairs:
            means = np.mean(pairs, axis=0).tolist()
            found[name] = {"made": means[0], "LightGBM": means[1], "columns": len(pairs)}
            found[name] |= {"better": sum(pair[0] < pair[1] for pair in pairs)}
            found[name] |= {"ratio": geometric_mean(pairs)} if name != "ece" else {}
    return found | {"columns": losses | errors}


def label(ours: Answers, theirs: Specialists, split: Split) -> dict[str, Any]:
    """AUC and log loss of the label, given all other columns."""
    known, truth = split.truth(split.label)
    tables = {"made": ours.proba(split.label), "LightGBM": theirs.proba(split.label)}
    tables["logistic regression"] = theirs.logistic(split.label)
    return {
        name: {"auc": area(table[known], truth), "log_loss": log_loss(table[known], truth)}
        for name, table in tables.items()
    }


def intervals(ours: Answers, theirs: Specialists, split: Split) -> dict[str, Any]:
    """Coverage and pinball loss (in standard deviations) of 90 % intervals of the columns of numbers."""
    columns: dict[str, dict[str, list[float]]] = {}
    for column in split.numeric:
        truth = split.test[column].to_numpy(dtype=np.float64, na_value=np.nan)
        known = ~np.isnan(truth)
        ends = [np.asarray(each.quantiles(column))[known] for each in (ours, theirs)]
        slack = 1e-9 * (1 + np.abs(truth[known]))
        inside = [(each[:, 0] - slack <= truth[known]) & (truth[known] <= each[:, 1] + slack) for each in ends]
        columns[column] = {
            "coverage": [float(each.mean()) for each in inside],
            "pinball": [pinball(each, truth[known]) / split.scale(column) for each in ends],
        }
    if not columns:
        return {}
    found: dict[str, Any] = {}
    for place, name in enumerate(("made", "LightGBM")):
        found[name] = {
            key: float(np.mean([each[key][place] for each in columns.values()])) for key in ("coverage", "pinball")
        }
    ratios = [np.log(each["pinball"][0] / each["pinball"][1]) for each in columns.values()]
    return found | {"pinball_ratio": float(np.exp(np.mean(ratios))), "columns": columns}


def short(ours: Answers, split: Split, least: int = LEAST_ROWS) -> dict[str, Any]:
    """P(a value of one column given a value of another), against held-out frequencies.

    All ordered pairs of discrete columns, and values with at least ``least`` held-out rows. An error is the absolute
    difference beyond one standard error of the frequency. The training rows' own frequencies answer the same questions:
    their errors are those of a perfect memory of pairs, and mostly chance of the held-out rows. "chance" is the mean
    error that the true probabilities would have, if frequencies were normally distributed.
    """
    columns = asked_columns(split)
    codes = {name: full_places(split, split.test, name) for name in columns}
    seen = {name: full_places(split, split.train, name) for name in columns}
    questions = [
        (given, place)
        for given in columns
        for place in range(len(split.values(given)))
        if (codes[given] == place).sum() >= least
    ]
    if not questions:
        return {}
    rows = one_given(split, questions)
    errors: list[list[float]] = []
    worst: list[tuple[float, str, float, float, int]] = []
    for target in columns:
        values = split.values(target)
        table = ours.probabilities(rows, target)
        for number, (given, place) in enumerate(questions):
            where = (codes[given] == place) & (codes[target] >= 0)
            count = int(where.sum())
            if given == target or count < least:
                continue
            shares = np.bincount(codes[target][where], minlength=len(values)) / count
            known = (seen[given] == place) & (seen[target] >= 0)
            before = np.bincount(seen[target][known], minlength=len(values)) / max(int(known.sum()), 1)
            for code, value in enumerate(values):
                if (codes[target] == code).sum() < least:
                    continue
                answer, share = table[number, code], shares[code]
                error = float(np.sqrt(share * (1 - share) / count))
                beyond = [max(0.0, abs(each - share) - error) for each in (answer, before[code])]
                errors.append([*beyond, error * BEYOND_ONE])
                words = f"P({target} = {value} given {given} = {split.values(given)[place]})"
                worst.append((beyond[0], words, float(answer), float(share), count))
    if not errors:
        return {}
    worst.sort(key=lambda each: -each[0])
    table = np.array(errors)
    return {
        "questions": len(errors),
        "made": {"mean": float(table[:, 0].mean()), "worst": float(table[:, 0].max())},
        "training rows": {"mean": float(table[:, 1].mean()), "worst": float(table[:, 1].max())},
        "chance": {"mean": float(table[:, 2].mean())},
        "beyond 0.05": [int((table[:, side] > 0.05).sum()) for side in (0, 1)],
        "worst_questions": [
            f"{words} = {answer:.3f} for {share:.3f} ({n} rows)" for _, words, answer, share, n in worst[:5]
        ],
    }


def full_places(split: Split, rows: Frame, column: str) -> NDArray[np.intp]:
    """The place of each entry among the training values; -1 if it is missing or not among them."""
    known, codes = places(rows[column], split.values(column))
    found = np.full(len(rows), -1, dtype=np.intp)
    found[known] = codes
    return found


def one_given(split: Split, questions: list[tuple[str, int]]) -> Frame:
    """Rows with one known value each, everything else missing."""
    columns = {}
    for name in split.train:
        text = not pd.api.types.is_numeric_dtype(split.train[name]) or pd.api.types.is_bool_dtype(split.train[name])
        values = split.values(name)
        entries = [values[place] if given == name else (None if text else np.nan) for given, place in questions]
        columns[name] = pd.Series(entries, dtype=object if text else np.float64)
    return pd.DataFrame(columns)


def likelihood(ours: Answers, split: Split) -> dict[str, Any]:
    """Mean log-likelihood of held-out rows, in a measure that does not depend on how a model sees a column.

    A number on a grid of step s counts as log mass - log s: the density of a mass that is spread over its step. Columns
    that are discrete by the rule of the benchmark count as masses.
    """
    total = np.asarray(ours.model.score_samples(split.test), dtype=np.float64)
    extra = np.zeros(len(total))
    fields = {field.name: field for field in ours.model.model_.schema.fields}
    kinds = {}
    for column in split.train:
        field = fields[column]
        step, atoms = float(field.column.grid[1]), np.array(field.column.atoms, dtype=np.float64)
        kinds[column] = f"{field.kind}" + (f", step {step:g}" if not field.listed else "")
        kinds[column] += f", {len(atoms)} points" if len(atoms) else ""
        if not pd.api.types.is_numeric_dtype(split.train[column]):
            continue
        values = split.test[column].to_numpy(dtype=np.float64, na_value=np.nan)
        own = grid(split.train[column].dropna().to_numpy(dtype=np.float64))
        if column in split.discrete:
            if not field.listed and not step and own:  # a density of a column that counts as masses
                extra[~np.isnan(values) & ~np.isin(values, atoms)] += np.log(own)
        elif field.listed or step:
            step = own if field.listed else step
            extra[~np.isnan(values)] -= np.log(step or 1.0)
        elif own:
            extra[np.isin(values, atoms)] -= np.log(own)
    found = {"made": float((total + extra).mean()), "as scored": float(total.mean())}
    return found | {"standard_error": float((total + extra).std() / np.sqrt(len(total))), "kinds": kinds}


SIDES = ("made", "training rows")  # whose short answers are compared
WHAT = ("conditionals", "short", "label", "intervals", "likelihood", "filling", "synthesis")


def measure(
    model: Any, split: Split, what: Sequence[str] = WHAT[:5], seed: int = 0, sampling: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The chosen measurements of a fitted model; ``sampling`` are further arguments of its ``sample``."""
    ours, theirs = Answers(model, split), Specialists(split, seed)
    found: dict[str, Any] = {}
    for name in what:
        if name == "short":
            found[name] = short(ours, split)
        elif name == "likelihood":
            found[name] = likelihood(ours, split)
        elif name == "filling":
            found[name] = filling(model, theirs)
        elif name == "synthesis":
            found[name] = synthesis(model, theirs, sampling)
        else:
            found[name] = {"conditionals": conditionals, "label": label, "intervals": intervals}[name](
                ours, theirs, split
            )
    return found


def lines(found: dict[str, Any]) -> list[str]:
    """A few lines of text about measurements."""
    text = []
    each = found.get("conditionals", {})
    for key, name in (("log_loss", "log loss"), ("rmse", "RMSE"), ("ece", "ECE")):
        if key in each:
            one = each[key]
            ratio = f"ratio {one['ratio']:.4f}, " if "ratio" in one else ""
            text.append(
                f"{name} given all others: {ratio}made {one['made']:.4f}, LightGBM {one['LightGBM']:.4f}, "
                f"better on {one['better']} of {one['columns']} columns"
            )
    if found.get("short"):
        one = found["short"]
        sides = [
            f"{name} mean {one[name]['mean']:.4f}, worst {one[name]['worst']:.3f}" for name in one if name in SIDES
        ]
        sides.append(f"chance {one['chance']['mean']:.4f}")
        text.append(f"short questions ({one['questions']}): {'; '.join(sides)}; beyond 0.05: {one['beyond 0.05']}")
    if "label" in found:
        parts = (f"{name} {one['auc']:.4f} / {one['log_loss']:.4f}" for name, one in found["label"].items())
        text.append(f"label, AUC / log loss: {', '.join(parts)}")
    if found.get("intervals"):
        one = found["intervals"]
        text.append(
            f"90 % intervals: coverage made {one['made']['coverage']:.3f}, LightGBM {one['LightGBM']['coverage']:.3f}; "
            f"pinball ratio {one['pinball_ratio']:.4f}"
        )
    if "likelihood" in found:
        one = found["likelihood"]
        text.append(f"log-likelihood {one['made']:.3f} (as scored {one['as scored']:.3f})")
    if "filling" in found:
        text.append(filling_line(found["filling"], found["table"]))
    if "synthesis" in found:
        text.append(synthesis_line(found["synthesis"]))
    return text
