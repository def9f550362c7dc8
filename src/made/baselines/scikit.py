"""Anything of scikit-learn's kind that has ``fit`` and ``score_samples``, behind the protocol.

Not all of it can be compared. A probability of rows of zeros and ones sums to one over the 2^D rows. What
``KernelDensity`` or ``GaussianMixture`` give is a *density* over all points of a space, which integrates to one; on zeros
and ones it may be above 1, and its logarithm is no log-probability. Such an estimator can be entered, but its numbers
have another meaning than all others in a table: ``continuous`` tells.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.protocol import Kind, LogProb
from made.baselines.rows import asked, learned, whole

__all__ = ["Scikit"]

CONTINUOUS = ("BayesianGaussianMixture", "FactorAnalysis", "GaussianMixture", "KernelDensity", "PCA")


class Scikit:
    """An estimator of scikit-learn, or of anyone who keeps to its contract.

    Arguments:
        estimator: has ``fit(X)`` and ``score_samples(X)``, log p of each row; a copy of it is fitted.
        continuous: whether that is a density over real numbers, and no probability of binary rows. Unless told, it is
            known of scikit-learn's own; the last step of a pipeline counts.
        kind: what the estimator's values are: ``"exact"``, an ``"estimate"`` or a ``"bound"``.
        seed: what ``random_state`` becomes, if the estimator has that; its own unless told.

    Attributes:
        estimator_: the fitted copy.
        size: how many numbers are in its fitted attributes, as far as they are arrays.

    Example:
        >>> from sklearn.neighbors import KernelDensity
        >>> rows = np.random.default_rng(0).integers(2, size=(50, 3))
        >>> model = Scikit(KernelDensity(bandwidth=0.1)).fit(rows, rows)
        >>> model.continuous, bool(model.log_prob(rows).mean() > 0)  # a density above 1: no probability
        (True, True)
    """

    def __init__(
        self, estimator: Any, *, continuous: bool | None = None, kind: Kind = "exact", seed: int | None = None
    ) -> None:
        for method in ("fit", "score_samples"):
            if not callable(getattr(estimator, method, None)):
                raise TypeError(
                    f"'estimator' should have a method '{method}', but {type(estimator).__name__} has none."
                )
        self.estimator, self.kind, self.seed = estimator, kind, seed
        self.continuous = _last_step(estimator) in CONTINUOUS if continuous is None else continuous

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Fit a copy of the estimator to the training rows; it knows of neither validation rows nor time."""
        from sklearn.base import clone

        rows, _ = learned(train, valid)
        self.estimator_ = clone(self.estimator)
        if self.seed is not None and "random_state" in self.estimator_.get_params():
            self.estimator_.set_params(random_state=self.seed)
        self.estimator_.fit(rows.astype(np.float64))
        self.columns_ = rows.shape[1]
        fitted = [value for name, value in vars(self.estimator_).items() if name.endswith("_")]
        self.size = sum(value.size for value in fitted if isinstance(value, np.ndarray))
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """What the estimator's ``score_samples`` says of each row."""
        values = self.estimator_.score_samples(asked(self, rows).astype(np.float64))
        return LogProb(np.asarray(values, dtype=np.float64), self.kind)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, if the estimator draws any and they are zeros and ones."""
        count = whole(self, n)
        name = type(self.estimator).__name__
        if not callable(getattr(self.estimator_, "sample", None)):
            raise TypeError(f"{name} has no method 'sample': it says how likely rows are, but draws none.")
        drawn = self._draw(count, seed)
        if not np.isin(drawn, (0, 1)).all():
            raise TypeError(f"{name} draws real numbers, not zeros and ones: it is a density of another kind of rows.")
        return drawn.astype(np.uint8)

    def _draw(self, n: int, seed: int) -> NDArray[Any]:
        from inspect import signature

        model = self.estimator_
        if "random_state" in signature(model.sample).parameters:
            drawn = model.sample(n, random_state=seed)
        else:
            if "random_state" in model.get_params():  # mixtures draw with the seed that they were fitted with
                model.set_params(random_state=seed)
            drawn = model.sample(n)
        return np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)  # mixtures add the components


def _last_step(estimator: Any) -> str:
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1] if steps else estimator).__name__
