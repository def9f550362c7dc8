"""Train several systems within a time budget, and score the test rows with each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from made.baselines.protocol import Density, check_binary
from made.baselines.scikit import Scikit
from made.compare.checks import check_estimator, check_log_prob, check_normalized, reason
from made.compare.conclusions import half_width
from made.compare.result import BinaryRows, Result
from made.errors import DataError

Clock = Callable[[], float]


def compare(
    systems: Mapping[str, Density],
    train: ArrayLike,
    valid: ArrayLike,
    test: ArrayLike,
    *,
    budget: float | None = None,
    seed: int = 0,
    titles: Mapping[str, str] | None = None,
    begin: Callable[[str, float | None], None] = lambda name, allowed: None,
    done: Callable[[Result], None] = lambda result: None,
    clock: Clock = time.perf_counter,
) -> list[Result]:
    """The result of each system in turn. A failure is recorded in the system's result, and the others continue.

    Arguments:
        systems: unfitted systems by name.
        train, valid, test: rows of zeros and ones; the test rows are scored once.
        budget: seconds of training for all systems; None for no limit. Each system gets an equal share of the time that
            is left, so fast systems leave their time to slow ones. Scoring and sampling are not counted, nor is a
            scikit-learn estimator, which has no time limit.
        seed: of the samples.
        titles: names for display; default: the names of the systems.
        begin: called with the name of a system and its time limit before training.
        done: called with each result.
        clock: returns the time in seconds.

    Example:
        >>> from made.baselines import SYSTEMS
        >>> rows = np.array([[0, 0], [1, 1]] * 50)
        >>> (result,) = compare({"bernoulli": SYSTEMS["bernoulli"].factory(0)}, rows, rows, rows)
        >>> print(f"{result.nll:.2f}, {result.kind}")  # two coins
        1.39, exact
    """
    if budget is not None and not 0 < budget < math.inf:
        raise ValueError(f"'budget' should be seconds above 0, or None for no limit, not {budget!r}.")
    if not systems:
        raise ValueError("'systems' should have at least one system.")
    train = check_binary(train, "train")
    valid, test = check_binary(valid, "valid", train.shape[1]), check_binary(test, "test", train.shape[1])
    for rows, name in ((train, "train"), (test, "test")):
        if len(rows) < 2:
            raise DataError(f"'{name}' has {len(rows)} row, but needs at least 2.")
    results, left, waiting = [], budget, sum(not isinstance(each, Scikit) for each in systems.values())
    for name, system in systems.items():
        allowed = None if left is None or isinstance(system, Scikit) else left / waiting
        begin(name, allowed)
        result = Result(name, (titles or {}).get(name, name), allowed=allowed)
        start = clock()
        result = _evaluate(system, result, train, valid, test, seed, clock)
        if left is not None and allowed is not None:
            # A system that exceeds its limit takes no time from the others.
            spent = clock() - start if math.isnan(result.seconds) else result.seconds
            left, waiting = left - min(spent, allowed), waiting - 1
        results.append(result)
        done(result)
    return results


def _evaluate(
    system: Density, result: Result, train: BinaryRows, valid: BinaryRows, test: BinaryRows, seed: int, clock: Clock
) -> Result:
    try:
        if isinstance(system, Scikit):
            check_estimator(system, train, valid)
        start = clock()
        fitted = system.fit(train, valid, seconds=result.allowed)
        seconds = clock() - start
        size, epochs = int(fitted.size) or None, getattr(fitted, "epochs", None) or None
        result = replace(result, seconds=seconds, parameters=size, epochs=epochs)
        fitted.log_prob(test[:1])  # warm-up: caches are not timed
        start = clock()
        answer = fitted.log_prob(test)
        seconds = clock() - start
        check_log_prob(answer, test)
        check_normalized(fitted, answer.kind, test.shape[1])
    except Exception as error:  # third-party code may raise anything
        return replace(result, error=reason(error))
    values = np.asarray(answer.values, dtype=np.float64)
    result = replace(
        result,
        nll=-float(values.mean()),
        ci95=half_width(values, answer.standard_error),
        kind=answer.kind,
        standard_error=float(answer.standard_error),
        rows_per_second=len(test) / max(seconds, 1e-9),
        log_prob=values,
    )
    try:
        return replace(result, samples_per_second=_samples_per_second(fitted, test.shape[1], seed, clock))
    except Exception as error:  # the likelihood is still valid
        return replace(result, remark=f"no samples: {reason(error)}")


def _samples_per_second(fitted: Density, columns: int, seed: int, clock: Clock) -> float:
    """Measured with 16 samples in a call, then 128 and 1024 unless a call takes two seconds."""
    fitted.sample(1, seed=seed)
    for count in (16, 128, 1024):
        start = clock()
        drawn = np.asarray(fitted.sample(count, seed=seed))
        seconds = clock() - start
        if drawn.shape != (count, columns) or not ((drawn == 0) | (drawn == 1)).all():
            raise ValueError(f"'sample' should return {count} rows of {columns} zeros and ones, not {drawn.shape}.")
        if seconds >= 2:
            break
    return count / max(seconds, 1e-9)
