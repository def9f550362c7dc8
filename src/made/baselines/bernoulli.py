r"""Independent Bernoullis, and mixtures of them: the simplest exact likelihoods of binary rows.

.. math:: p(x) = \sum_{k=1}^K \pi_k \prod_d \mu_{kd}^{x_d} (1 - \mu_{kd})^{1 - x_d}

K = 1 is independence. Fitted by expectation maximisation (Dempster, Laird and Rubin, 1977), with smoothing: a component
is a posterior mean, under a prior that counts the column means of the table as s rows,

.. math::
    r_{nk} &\propto \pi_k \prod_d \mu_{kd}^{x_{nd}} (1 - \mu_{kd})^{1 - x_{nd}} \\
    \mu_{kd} &= \frac{\sum_n r_{nk} x_{nd} + s m_d}{\sum_n r_{nk} + s}, \qquad
    \pi_k = \frac{\sum_n r_{nk} + 1}{N + K}, \qquad m_d = \frac{\sum_n x_{nd} + 1}{N + 2},

so that no probability is 0 or 1. Components start halfway between m and a random row. K, s and the EM step that is kept
are chosen by the validation rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.binary_rows import check_count, check_rows, check_train_valid
from made.baselines.protocol import Floats, LogProb

__all__ = ["BernoulliMixture"]

COMPONENTS = (10, 20, 50, 100, 200, 500)
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
PATIENCE = 8  # EM steps without progress
PROGRESS = 1e-3  # nats
ROWS_AT_A_TIME = 2000


class _Fit(NamedTuple):
    """The result of one run of EM: log pi, mu, s, and the mean log-likelihood of the validation rows."""

    prior: Floats
    mean: Floats
    strength: float
    score: float
    epochs: int = 0


class _Tables(NamedTuple):
    """What all runs of EM share; single precision suffices for responsibilities."""

    rows: NDArray[np.float32]
    others: NDArray[np.float32]
    max_epochs: int
    seed: int
    end: float


class BernoulliMixture:
    """A mixture of products of Bernoullis: an exact likelihood.

    Arguments:
        components: K, or candidates for it, chosen by the validation rows.
        strengths: candidates for s, chosen likewise, by a local search that starts at the best s of the previous K.
        max_epochs: the maximum number of EM steps.
        seed: seed of the rows that components start at.

    Attributes:
        prior_: log pi, (K).
        mean_: mu, (K, D).
        strength_: the chosen s.
        size: number of learned parameters.
        epochs: number of EM steps.

    Example:
        >>> rows = np.array([[0, 0], [1, 1]] * 50)
        >>> for components in (1, 2):
        ...     model = BernoulliMixture(components).fit(rows, rows)
        ...     print(components, round(-model.log_prob(rows).mean(), 2))
        1 1.39
        2 0.7
    """

    def __init__(
        self,
        components: int | Sequence[int] = COMPONENTS,
        *,
        strengths: Sequence[float] = STRENGTHS,
        max_epochs: int = 300,
        seed: int = 0,
    ) -> None:
        self.components, self.strengths = components, strengths
        self.max_epochs, self.seed = max_epochs, seed

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Fit by expectation maximisation, and keep what is best on the validation rows within the time."""
        end = time.perf_counter() + (math.inf if seconds is None else seconds)
        rows, others = (each.astype(np.float32) for each in check_train_valid(train, valid))
        numbers = [self.components] if isinstance(self.components, int) else sorted(self.components)
        if not numbers or numbers[0] < 1:
            raise ValueError(f"'components' should be whole numbers, at least 1, not {self.components!r}.")
        strengths = sorted(self.strengths)
        if not strengths or not strengths[0] > 0:
            raise ValueError(f"'strengths' should be numbers above 0, not {self.strengths!r}.")
        tables = _Tables(rows, others, self.max_epochs, self.seed, end)
        best, place = None, len(strengths) // 2
        for number in numbers:
            found, place = _search_strength(tables, number, strengths, place)
            if best is None or found.score > best.score:
                best = found
            if time.perf_counter() > end:
                break
        assert best is not None
        self.prior_, self.mean_, self.strength_ = best.prior, best.mean, best.strength
        self.columns_, self.size = rows.shape[1], best.mean.size + len(best.prior) - 1
        self.epochs = best.epochs
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """Exact log p of each row."""
        return LogProb(_log_prob(self.prior_, self.mean_, check_rows(self, rows).astype(np.float64)))

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows: a component is sampled for each. Shape: (n, D)."""
        count, random = check_count(self, n), np.random.default_rng(seed)
        weight = np.exp(self.prior_)
        chosen = random.choice(len(weight), size=count, p=weight / weight.sum())
        return (random.random((count, self.columns_)) < self.mean_[chosen]).astype(np.uint8)


def _search_strength(tables: _Tables, components: int, strengths: Sequence[float], place: int) -> tuple[_Fit, int]:
    """The best strength for this number of components, by local search from a place in the list, and its place."""
    found = _maximise(tables, components, strengths[place])
    if components == 1:
        return found, place
    for step in (1, -1):
        moved = False
        while 0 <= place + step < len(strengths):
            other = _maximise(tables, components, strengths[place + step])
            if other.score <= found.score:
                break
            found, place, moved = other, place + step, True
        if moved:
            break
    return found, place


def _maximise(tables: _Tables, components: int, strength: float) -> _Fit:
    """Expectation maximisation with early stopping by the validation rows."""
    rows = tables.rows
    random = np.random.default_rng(tables.seed)
    table = (rows.sum(axis=0, dtype=np.float64) + 1) / (len(rows) + 2)
    mean = table[None]
    if components > 1:
        mean = (table + rows[random.choice(len(rows), components, replace=components > len(rows))]) / 2
    prior = np.full(components, -math.log(components))
    best, waited = _Fit(prior, mean, strength, -math.inf), 0
    for epoch in range(tables.max_epochs):
        score = float(_log_prob(prior, mean, tables.others).mean())
        waited = 0 if score > best.score + PROGRESS else waited + 1
        if score > best.score:
            best = _Fit(prior, mean, strength, score, epoch + 1)
        if components == 1 or waited >= PATIENCE or time.perf_counter() > tables.end:
            break
        weight, ones = np.zeros(components), np.zeros_like(mean)
        for first in range(0, len(rows), ROWS_AT_A_TIME):
            some = rows[first : first + ROWS_AT_A_TIME]
            responsibility = _joint(prior, mean, some)
            responsibility -= responsibility.max(axis=1, keepdims=True)
            np.exp(responsibility, out=responsibility)
            responsibility /= responsibility.sum(axis=1, keepdims=True)
            weight += responsibility.sum(axis=0)
            ones += responsibility.T @ some
        ones = np.minimum(ones, weight[:, None])  # against rounding
        mean = (ones + strength * table) / (weight[:, None] + strength)
        prior = np.log((weight + 1) / (len(rows) + components))
    return best


def _joint(prior: Floats, mean: Floats, rows: NDArray[Any]) -> NDArray[Any]:
    """log p(x, k), in the precision of the rows. Shape: (rows, components)."""
    none = np.log1p(-mean)  # log p(x_d = 0 | k)
    odds, offset = (np.log(mean) - none).astype(rows.dtype), (prior + none.sum(axis=1)).astype(rows.dtype)
    joint: NDArray[Any] = rows @ odds.T + offset
    return joint


def _log_prob(prior: Floats, mean: Floats, rows: NDArray[Any]) -> Floats:
    """log p of each row."""
    parts = []
    for first in range(0, len(rows), ROWS_AT_A_TIME):
        joint = _joint(prior, mean, rows[first : first + ROWS_AT_A_TIME])
        most = joint.max(axis=1, keepdims=True)
        parts.append((np.log(np.exp(joint - most).sum(axis=1)) + most[:, 0]).astype(np.float64))
    return np.concatenate(parts)
