"""Density estimators of scikit-learn, anything with `fit` and `score_samples`, behind the protocol of the baselines.

Some of them, such as `KernelDensity` and `GaussianMixture`, return a density of real numbers instead of the probability
of a binary row. A density is unbounded at these points, so that its NLL cannot be compared with the others'; see
:attr:`Scikit.continuous`.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.binary_rows import check_count, check_rows, check_train_valid
from made.baselines.protocol import LikelihoodKind, LogProb
from made.errors import QuestionError

__all__ = ["Scikit"]

CONTINUOUS = ("KernelDensity", "GaussianMixture", "BayesianGaussianMixture", "PCA", "FactorAnalysis")


class Scikit:
    """A scikit-learn density estimator.

    Arguments:
        estimator: has ``fit(X)`` and ``score_samples(X)``, and ``sample(n)`` if it can sample.
        kind: how its likelihood is known.
        continuous: whether its likelihood is a density of real numbers; default: known for the estimators of
            scikit-learn, also as the last step of a pipeline.

    Attributes:
        size: number of array entries in its fitted attributes.

    Example:
        >>> from made import MADE
        >>> rows = np.random.default_rng(0).integers(2, size=(60, 2))
        >>> model = Scikit(MADE(hidden_sizes=(8,), max_epochs=2, random_state=0)).fit(rows[:40], rows[40:])
        >>> len(model.log_prob(rows)), model.continuous
        (60, False)
    """

    def __init__(self, estimator: Any, *, kind: LikelihoodKind = "exact", continuous: bool | None = None) -> None:
        for method in ("fit", "score_samples"):
            if not callable(getattr(estimator, method, None)):
                raise QuestionError(f"{type(estimator).__name__} has no {method}(X), which a comparison needs.")
        self.estimator, self.kind = estimator, kind
        last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        known = any(each.__name__ in CONTINUOUS for each in type(last).__mro__)
        self.continuous = known if continuous is None else continuous
        self.epochs = 0

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Fit the estimator on the training rows; validation rows are passed if it takes ``X_valid``, as made.MADE."""
        rows, validation = check_train_valid(train, valid)
        takes = "X_valid" in inspect.signature(self.estimator.fit).parameters
        self.estimator.fit(rows, **({"X_valid": validation} if takes else {}))
        self.columns_ = rows.shape[1]
        fitted = (value for name, value in vars(self.estimator).items() if name.endswith("_"))
        self.size = sum(value.size for value in fitted if isinstance(value, np.ndarray))
        self.epochs = int(getattr(self.estimator, "n_epochs_", getattr(self.estimator, "n_iter_", 0)))
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """The estimator's log-likelihood of each row."""
        values = np.asarray(self.estimator.score_samples(check_rows(self, rows)), dtype=np.float64)
        return LogProb(values, self.kind)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, if the estimator can sample; real numbers are rounded to 0 or 1. Shape: (n, D)."""
        count, name = check_count(self, n), type(self.estimator).__name__
        if not callable(getattr(self.estimator, "sample", None)):
            raise QuestionError(f"{name} cannot sample: it has no sample(n).")
        takes = "random_state" in inspect.signature(self.estimator.sample).parameters
        if not takes and hasattr(self.estimator, "random_state"):
            self.estimator.random_state = seed  # mixtures sample with the seed they were constructed with
        drawn = self.estimator.sample(count, **({"random_state": seed} if takes else {}))
        values = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn, dtype=np.float64)
        return (values > 0.5).astype(np.uint8)
