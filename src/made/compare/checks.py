"""Checks that the scores of a system are log-probabilities of rows of zeros and ones."""

from __future__ import annotations

import copy
import math
from itertools import product

import numpy as np

from made.baselines.protocol import Density, LikelihoodKind, LogProb
from made.baselines.scikit import Scikit
from made.compare.result import BinaryRows

MOST_COLUMNS = 10  # for enumerating all states
TRIAL_COLUMNS, TRIAL_ROWS = 8, 200  # of the trial fit of an estimator


def reason(error: Exception) -> str:
    """The message of an error, with its type if it is not an error of values or arithmetic."""
    text = " ".join(str(error).split()) or "no reason given"
    return text if isinstance(error, (ValueError, ArithmeticError)) else f"{type(error).__name__}: {text}"


def check_log_prob(answer: LogProb, rows: BinaryRows) -> None:
    """Refuse values that cannot be log-probabilities of these rows, or that do not say how they were obtained."""
    if not isinstance(answer, LogProb):
        raise TypeError(f"'log_prob' should return a LogProb, not {type(answer).__name__}.")
    values = np.asarray(answer.values, dtype=np.float64)
    if values.shape != (len(rows),):
        raise ValueError(f"log p should have the shape ({len(rows)},), not {values.shape}.")
    if answer.kind not in ("exact", "estimate", "bound"):
        raise ValueError(f"the kind of log p should be exact, estimate or bound, not {answer.kind!r}.")
    if not 0 <= answer.standard_error < math.inf or (answer.kind == "exact" and answer.standard_error):
        raise ValueError(f"the standard error of log p, of kind {answer.kind}, cannot be {answer.standard_error}.")
    if not (values < math.inf).all():
        row = int((~(values < math.inf)).argmax())
        raise ValueError(f"diverged: log p of test row {row} is {values[row]}.")
    if np.isneginf(values).any():
        row, count = int(np.isneginf(values).argmax()), int(np.isneginf(values).sum())
        raise ValueError(f"{count} of the test rows, the first being row {row}, have probability 0: infinite NLL.")
    # An estimate may exceed the true probability; for anything else, distinct rows cannot sum to more than one.
    _, first = np.unique(rows, axis=0, return_index=True)
    with np.errstate(over="ignore"):
        total = float(np.exp(values[first]).sum())
    if answer.kind != "estimate" and total > 1.001:
        sums = f"those of {len(first)} distinct rows sum to {total:.3g}, above 1"
        raise ValueError(f"these are not probabilities of rows: {sums}. Is it a density over real numbers?")


def check_estimator(system: Scikit, train: BinaryRows, valid: BinaryRows) -> None:
    """Refuse an estimator whose scores are not log-probabilities, such as densities and pseudo-likelihoods.

    Such scores may look like the best likelihood of all, and with many columns nothing gives them away. So a copy of
    the estimator is fitted on few columns, whose states can be enumerated.
    """
    if system.continuous:
        raise ValueError(
            "its score is a density over real numbers, which is unbounded, and not the probability of a row of zeros "
            "and ones: the two are not comparable."
        )
    columns = np.flatnonzero(train[:TRIAL_ROWS].any(axis=0) & ~train[:TRIAL_ROWS].all(axis=0))[:TRIAL_COLUMNS]
    if len(columns) == 0 or system.kind == "estimate":
        return
    try:
        fitted = copy.deepcopy(system).fit(train[:TRIAL_ROWS, columns], valid[:TRIAL_ROWS, columns])
        check_normalized(fitted, system.kind, len(columns))
    except Exception as error:
        raise ValueError(f"in a trial on {len(columns)} of the columns: {reason(error)}") from None


def check_normalized(fitted: Density, kind: LikelihoodKind, columns: int) -> None:
    """Refuse probabilities that do not sum to one over all states, if the columns are few enough to enumerate them."""
    if columns > MOST_COLUMNS or kind == "estimate":
        return
    states = np.array(list(product([0, 1], repeat=columns)), dtype=np.uint8)
    with np.errstate(over="ignore"):
        total = float(np.exp(fitted.log_prob(states).values).sum())
    if not total < 1.001 or (kind == "exact" and total < 0.999):
        sums = f"those of all {len(states)} possible rows sum to {total:.3g}"
        allowed = "1" if kind == "exact" else "at most 1"
        raise ValueError(f"these are not probabilities of rows: {sums}, but should sum to {allowed}.")
