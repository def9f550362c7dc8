r"""Independent Bernoullis, and mixtures of them: the simplest exact likelihoods of binary rows.

.. math:: p(x) = \sum_{k=1}^K \pi_k \prod_d \mu_{kd}^{x_d} (1 - \mu_{kd})^{1 - x_d}

K = 1 is independence. Fitted by expectation maximization (Dempster, Laird and Rubin, 1977), with smoothing: a component
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
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from made.baselines.protocol import Baseline, Bits, Floats, LogProb

COMPONENTS = (10, 20, 50, 100, 200, 500)
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
PATIENCE = 8  # EM steps without progress
PROGRESS = 1e-3  # nats
ROWS_AT_A_TIME = 2000
Singles = NDArray[np.float32]  # single precision suffices for responsibilities


class _Fit(NamedTuple):
    """The result of one run of EM: log pi, mu, s, and the mean log-likelihood of the validation rows."""

    prior: Floats
    mean: Floats
    strength: float
    score: float
    epochs: int = 0


class BernoulliMixture(Baseline):
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
        self.components, self.strengths, self.max_epochs, self.seed = components, strengths, max_epochs, seed

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        end = time.perf_counter() + (math.inf if seconds is None else seconds)
        numbers = [self.components] if isinstance(self.components, int) else sorted(self.components)
        if not numbers or numbers[0] < 1:
            raise ValueError(f"'components' should be whole numbers, at least 1, not {self.components!r}.")
        strengths = sorted(self.strengths)
        if not strengths or not strengths[0] > 0:
            raise ValueError(f"'strengths' should be numbers above 0, not {self.strengths!r}.")
        rows, others = train.astype(np.float32), valid.astype(np.float32)
        found, place = [], len(strengths) // 2
        for number in numbers:
            fit = self._maximize(rows, others, number, strengths[place], end)
            for step in (1, -1) if number > 1 else ():  # a local search from the best strength so far
                start = place
                while 0 <= place + step < len(strengths):
                    other = self._maximize(rows, others, number, strengths[place + step], end)
                    if other.score <= fit.score:
                        break
                    fit, place = other, place + step
                if place != start:
                    break
            found.append(fit)
            if time.perf_counter() > end:
                break
        best = max(found, key=lambda each: each.score)
        self.prior_, self.mean_, self.strength_, _, self.epochs = best
        self.size = best.mean.size + len(best.prior) - 1

    def _maximize(self, rows: Singles, others: Singles, components: int, strength: float, end: float) -> _Fit:
        """Expectation maximization with early stopping by the validation rows."""
        random = np.random.default_rng(self.seed)
        table = (rows.sum(axis=0, dtype=np.float64) + 1) / (len(rows) + 2)
        mean = table[None]
        if components > 1:
            mean = (table + rows[random.choice(len(rows), components, replace=components > len(rows))]) / 2
        prior = np.full(components, -math.log(components))
        best, waited = _Fit(prior, mean, strength, -math.inf), 0
        for epoch in range(self.max_epochs):
            score = float(_log_prob(prior, mean, others).mean())
            waited = 0 if score > best.score + PROGRESS else waited + 1
            if score > best.score:
                best = _Fit(prior, mean, strength, score, epoch + 1)
            if components == 1 or waited >= PATIENCE or time.perf_counter() > end:
                break
            weight, ones = np.zeros(components), np.zeros_like(mean)
            for some, joint in _joints(prior, mean, rows):
                joint -= joint.max(axis=1, keepdims=True)
                responsibility = np.exp(joint, out=joint)
                responsibility /= responsibility.sum(axis=1, keepdims=True)
                weight += responsibility.sum(axis=0)
                ones += responsibility.T @ some
            ones = np.minimum(ones, weight[:, None])  # against rounding
            mean = (ones + strength * table) / (weight[:, None] + strength)
            prior = np.log((weight + 1) / (len(rows) + components))
        return best

    def _log_prob(self, rows: Bits) -> LogProb:
        return LogProb(_log_prob(self.prior_, self.mean_, rows.astype(np.float64)))

    def _sample(self, n: int, seed: int) -> NDArray[np.bool_]:
        random, weight = np.random.default_rng(seed), np.exp(self.prior_)
        chosen = random.choice(len(weight), size=n, p=weight / weight.sum())
        return random.random((n, self.mean_.shape[1])) < self.mean_[chosen]


def _joints(prior: Floats, mean: Floats, rows: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Blocks of rows, and log p(x, k) in their precision, (rows, components)."""
    none = np.log1p(-mean)  # log p(x_d = 0 | k)
    odds, offset = (np.log(mean) - none).astype(rows.dtype), (prior + none.sum(axis=1)).astype(rows.dtype)
    for first in range(0, len(rows), ROWS_AT_A_TIME):
        some = rows[first : first + ROWS_AT_A_TIME]
        yield some, some @ odds.T + offset


def _log_prob(prior: Floats, mean: Floats, rows: NDArray[Any]) -> Floats:
    """log p of each row."""
    parts = []
    for _, joint in _joints(prior, mean, rows):
        most = joint.max(axis=1, keepdims=True)
        parts.append((np.log(np.exp(joint - most).sum(axis=1)) + most[:, 0]).astype(np.float64))
    return np.concatenate(parts)
