r"""Independent Bernoullis, and mixtures of them: the simplest exact likelihoods of binary rows.

.. math:: p(x) = \sum_{k=1}^K \pi_k \prod_d \mu_{kd}^{x_d} (1 - \mu_{kd})^{1 - x_d}

K = 1 is independence. Fitted by expectation maximisation, each M step the mean of a Beta posterior with one imagined
row of each value, so that no probability is ever 0 or 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BernoulliMixture"]

Floats = NDArray[np.float64]


class BernoulliMixture:
    """A mixture of products of Bernoullis.

    Arguments:
        components: K; if there are several, the one that is best on validation rows is chosen.
        max_epochs: the most steps of expectation maximisation.
        seed: the seed of the initial responsibilities.

    Example:
        >>> rows = np.array([[0, 0], [1, 1]] * 50)
        >>> for components in (1, 2):
        ...     model = BernoulliMixture(components).fit(rows, rows)
        ...     print(components, round(-model.log_prob(rows).mean(), 2))
        1 1.39
        2 0.73
    """

    def __init__(self, *components: int, max_epochs: int = 300, seed: int = 0) -> None:
        self.components, self.max_epochs, self.seed = components, max_epochs, seed

    def fit(self, train: ArrayLike, valid: ArrayLike) -> BernoulliMixture:
        """Fit each number of components, with early stopping, and keep the best on validation rows."""
        best = -np.inf
        rows = np.asarray(train, dtype=np.float64)
        for components in self.components:
            generator = np.random.default_rng(self.seed)
            responsibility = generator.dirichlet(np.ones(components), size=len(rows))
            last = -np.inf
            for _ in range(self.max_epochs):
                weight = responsibility.sum(axis=0)
                mean = (responsibility.T @ rows + 1) / (weight[:, None] + 2)
                prior = np.log((weight + 1) / (len(rows) + components))
                score = _log_prob(prior, mean, np.asarray(valid, dtype=np.float64)).mean()
                if score > best:
                    best, self.prior_, self.mean_ = score, prior, mean
                if components == 1 or score < last + 1e-6:
                    break
                last = score
                joint = _joint(prior, mean, rows)
                responsibility = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
        return self

    def log_prob(self, rows: ArrayLike) -> Floats:
        """log p of each row, exact."""
        return _log_prob(self.prior_, self.mean_, np.asarray(rows, dtype=np.float64))


def _joint(prior: Floats, mean: Floats, rows: Floats) -> Floats:
    """log p(x, k). Shape: (rows, components)."""
    joint: Floats = prior + rows @ np.log(mean).T + (1 - rows) @ np.log1p(-mean).T
    return joint


def _log_prob(prior: Floats, mean: Floats, rows: Floats) -> Floats:
    log_prob: Floats = np.logaddexp.reduce(_joint(prior, mean, rows), axis=1)
    return log_prob
