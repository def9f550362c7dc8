"""Anything that has `fit` and `score_samples`, as scikit-learn's density estimators have, behind the protocol.

What such an estimator says may be the density of a real number and not the probability of a row of zeros and ones, as
with `KernelDensity` and `GaussianMixture`: a density can be as high as it likes at these points, so that its NLL is not
to be compared with others'. :attr:`Scikit.continuous` says so of those that are known to be.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.protocol import Kind, LogProb
from made.baselines.rows import asked, learned, whole
from made.errors import QuestionError

__all__ = ["Scikit"]

CONTINUOUS = ("KernelDensity", "GaussianMixture", "BayesianGaussianMixture", "PCA", "FactorAnalysis")


class Scikit:
    """An estimator of scikit-learn's kind.

    Arguments:
        estimator: what has ``fit(X)`` and ``score_samples(X)``, and, to draw rows, ``sample(n)``.
        kind: of its likelihood, ``"exact"`` unless told.
        continuous: whether its likelihood is a density of real numbers; unless told, what is known of scikit-learn's
            own, also as the last step of a pipeline.

    Attributes:
        continuous: the same.
        size: the number of numbers in its fitted attributes.

    Example:
        >>> from made import MADE
        >>> rows = np.random.default_rng(0).integers(2, size=(60, 2))
        >>> model = Scikit(MADE(hidden_sizes=(8,), max_epochs=2, random_state=0)).fit(rows[:40], rows[40:])
        >>> len(model.log_prob(rows)), model.continuous
        (60, False)
    """

    def __init__(self, estimator: Any, *, kind: Kind = "exact", continuous: bool | None = None) -> None:
        for method in ("fit", "score_samples"):
            if not callable(getattr(estimator, method, None)):
                raise QuestionError(f"{type(estimator).__name__} has no {method}(X), which a comparison needs.")
        self.estimator, self.kind = estimator, kind
        last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        known = any(each.__name__ in CONTINUOUS for each in type(last).__mro__)
        self.continuous = known if continuous is None else continuous
        self.epochs = 0

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Fit the estimator on the rows to learn from; it is told of others if it takes ``X_valid``, as made.MADE."""
        rows, others = learned(train, valid)
        takes = "X_valid" in inspect.signature(self.estimator.fit).parameters
        self.estimator.fit(rows, **({"X_valid": others} if takes else {}))
        self.columns_ = rows.shape[1]
        fitted = (value for name, value in vars(self.estimator).items() if name.endswith("_"))
        self.size = sum(value.size for value in fitted if isinstance(value, np.ndarray))
        self.epochs = int(getattr(self.estimator, "n_epochs_", getattr(self.estimator, "n_iter_", 0)))
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """What the estimator says of each row."""
        values = np.asarray(self.estimator.score_samples(asked(self, rows)), dtype=np.float64)
        return LogProb(values, self.kind)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, if the estimator draws any; a real number is rounded to 0 or 1."""
        count, name = whole(self, n), type(self.estimator).__name__
        if not callable(getattr(self.estimator, "sample", None)):
            raise QuestionError(f"{name} draws no rows: it has no sample(n).")
        takes = "random_state" in inspect.signature(self.estimator.sample).parameters
        if not takes and hasattr(self.estimator, "random_state"):
            self.estimator.random_state = seed  # mixtures draw with the seed that they were made with
        drawn = self.estimator.sample(count, **({"random_state": seed} if takes else {}))
        values = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn, dtype=np.float64)
        return (values > 0.5).astype(np.uint8)
