r"""MADE behind the protocol: one mask, or a list of masks whose probabilities are averaged (Germain et al., ICML 2015).

.. math::
    h &= g(b + (W \odot M^W) x), \qquad p(x_d = 1 \mid x_{<d}) = \sigma(c + (V \odot M^V) h)_d \\
    p(x) &= \frac{1}{R} \sum_r \prod_d p(x_d \mid x_{<d}; M_r)

The engine is :class:`made.MADE`; what is here says which parameters a table of zeros and ones wants: inputs of 0 and 1
as the paper has them, two hidden layers that are joined, dropout, a rate that falls along a cosine, averaged weights.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.protocol import LogProb
from made.baselines.rows import asked, learned, whole
from made.estimator import MADE
from made.parameters import PRESETS

__all__ = ["Engine", "MaskSampling", "OneMask"]


class Engine:
    """A :class:`made.MADE` of binary columns, an exact likelihood: that of the ensemble of its masks.

    Arguments:
        seed: the seed of everything that is random.
        parameters: what is to differ in :data:`PARAMETERS`, of the estimator.

    Attributes:
        model_: the estimator.
        size: the number of parameters; if there is only one mask, without what it leaves out.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = OneMask(hidden_sizes=(16, 16), max_epochs=20).fit(rows[:150], rows[150:])
        >>> model.log_prob(rows).kind
        'exact'
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    PARAMETERS: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, *, seed: int = 0, **parameters: Any) -> None:
        self.seed, self.parameters = seed, self.PARAMETERS | parameters

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train the estimator, which looks at the time after each epoch."""
        rows, others = learned(train, valid)
        return self._take(self._estimator(seconds).fit(rows, X_valid=others))

    def _estimator(self, seconds: float | None, **parameters: Any) -> MADE:
        limit = {} if seconds is None else {"max_seconds": seconds}
        return MADE(columns="binary", random_state=self.seed, **(self.parameters | parameters | limit))

    def _take(self, model: MADE) -> Self:
        """Become this model."""
        self.model_, self.columns_ = model, model.n_features_in_
        self.size = sum(weight.numel() for weight in model.model_.network.parameters())
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row, exact."""
        return LogProb(self.model_.score_samples(asked(self, rows)).astype(np.float64))

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows."""
        drawn: NDArray[np.uint8] = np.asarray(self.model_.sample(whole(self, n), random_state=seed)).astype(np.uint8)
        return drawn


class OneMask(Engine):
    """MADE with one mask, columns in their natural ordering: the preset "density"."""

    PARAMETERS = PRESETS["density"]


class MaskSampling(Engine):
    """MADE with a list of masks, each with an ordering and degrees of its own, which updates cycle through."""

    PARAMETERS = PRESETS["density"] | {"masks": 32, "ordering": "random", "dropout": 0.1, "max_epochs": 200}
