r"""Independent Bernoullis, and mixtures of them: the simplest exact likelihoods of binary rows.

.. math:: p(x) = \sum_{k=1}^K \pi_k \prod_d \mu_{kd}^{x_d} (1 - \mu_{kd})^{1 - x_d}

K = 1 is independence. Fitted by expectation maximisation (Dempster, Laird and Rubin, 1977), smoothed: a component is
the mean of a posterior whose prior says that it is like the whole table, as strongly as s rows would,

.. math::
    r_{nk} &\propto \pi_k \prod_d \mu_{kd}^{x_{nd}} (1 - \mu_{kd})^{1 - x_{nd}} \\
    \mu_{kd} &= \frac{\sum_n r_{nk} x_{nd} + s m_d}{\sum_n r_{nk} + s}, \qquad
    \pi_k = \frac{\sum_n r_{nk} + 1}{N + K}, \qquad m_d = \frac{\sum_n x_{nd} + 1}{N + 2},

so that no probability is ever 0 or 1. Components begin halfway between m and a row. K and s are chosen by validation
rows, and so is the step of EM that is kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.protocol import Floats, LogProb
from made.baselines.rows import asked, learned, whole

__all__ = ["BernoulliMixture"]

COMPONENTS = (10, 20, 50, 100, 200, 500)
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
PATIENCE = 8  # steps without progress before EM is called converged
PROGRESS = 1e-3  # nats: less is none
ROWS_AT_A_TIME = 2000


class _Fit(NamedTuple):
    """What one run of EM found: log pi, mu, with which s, and the mean log-likelihood of validation rows."""

    prior: Floats
    mean: Floats
    strength: float
    score: float
    epochs: int = 0


class _Tables(NamedTuple):
    """What all runs of EM share: single precision is enough for responsibilities."""

    rows: NDArray[np.float32]
    others: NDArray[np.float32]
    max_epochs: int
    seed: int
    end: float


class BernoulliMixture:
    """A mixture of products of Bernoullis, an exact likelihood.

    Arguments:
        components: K; if there are several, the one that is best on validation rows is chosen.
        strengths: s, how many rows the whole table counts for in each component; chosen likewise, for each K upwards
            or downwards from what was best before.
        max_epochs: the most steps of expectation maximisation.
        seed: the seed of the rows that components begin at.

    Attributes:
        prior_: log pi, (K).
        mean_: mu, (K, D).
        strength_: the s that was chosen.
        size: how many numbers were learned.
        epochs: how many steps it took.

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
        """Fit by expectation maximisation, and keep what is best on validation rows; when time is up, so far."""
        end = time.perf_counter() + (math.inf if seconds is None else seconds)
        rows, others = (each.astype(np.float32) for each in learned(train, valid))
        numbers = [self.components] if isinstance(self.components, int) else sorted(self.components)
        if not numbers or numbers[0] < 1:
            raise ValueError(f"'components' should be whole numbers, at least 1, not {self.components!r}.")
        strengths = sorted(self.strengths)
        if not strengths or not strengths[0] > 0:
            raise ValueError(f"'strengths' should be numbers above 0, not {self.strengths!r}.")
        tables = _Tables(rows, others, self.max_epochs, self.seed, end)
        best, place = None, len(strengths) // 2
        for number in numbers:
            found, place = _climb(tables, number, strengths, place)
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
        """log p of each row, exact."""
        return LogProb(_log_prob(self.prior_, self.mean_, asked(self, rows).astype(np.float64)))

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, each of one component, which is drawn first."""
        count, random = whole(self, n), np.random.default_rng(seed)
        weight = np.exp(self.prior_)
        chosen = random.choice(len(weight), size=count, p=weight / weight.sum())
        drawn: NDArray[np.uint8] = (random.random((count, self.columns_)) < self.mean_[chosen]).astype(np.uint8)
        return drawn


def _climb(tables: _Tables, components: int, strengths: Sequence[float], place: int) -> tuple[_Fit, int]:
    """The best strength for so many components, by way of its neighbours in the list, and its place there."""
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
    """Expectation maximisation, until validation rows say that it is enough."""
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
        ones = np.minimum(ones, weight[:, None])  # rounding might have made them more
        mean = (ones + strength * table) / (weight[:, None] + strength)
        prior = np.log((weight + 1) / (len(rows) + components))
    return best


def _joint(prior: Floats, mean: Floats, rows: NDArray[Any]) -> NDArray[Any]:
    """log p(x, k), in the precision of the rows. Shape: (rows, components)."""
    none = np.log1p(-mean)  # log p of a row of zeros, entry by entry
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
