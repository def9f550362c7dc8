"""Density estimators of scikit-learn, anything with `fit` and `score_samples`, behind the protocol of the baselines.

Some of them, such as `KernelDensity` and `GaussianMixture`, return a density of real numbers instead of the probability
of a binary row. A density is unbounded at these points, so that its NLL cannot be compared with the others'; see
:attr:`Scikit.continuous`.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from made.baselines.protocol import Baseline, Bits, LikelihoodKind, LogProb
from made.errors import QuestionError

CONTINUOUS = ("KernelDensity", "GaussianMixture", "BayesianGaussianMixture", "PCA", "FactorAnalysis")


class Scikit(Baseline):
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

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        """Without a limit of time; validation rows are passed to an estimator that takes ``X_valid``, as made.MADE."""
        takes = "X_valid" in inspect.signature(self.estimator.fit).parameters
        self.estimator.fit(train, **({"X_valid": valid} if takes else {}))
        fitted = (value for name, value in vars(self.estimator).items() if name.endswith("_"))
        self.size = sum(value.size for value in fitted if isinstance(value, np.ndarray))
        self.epochs = int(getattr(self.estimator, "n_epochs_", getattr(self.estimator, "n_iter_", 0)))

    def _log_prob(self, rows: Bits) -> LogProb:
        return LogProb(np.asarray(self.estimator.score_samples(rows), dtype=np.float64), self.kind)

    def _sample(self, n: int, seed: int) -> NDArray[np.bool_]:
        """Real numbers are rounded to 0 or 1."""
        if not callable(getattr(self.estimator, "sample", None)):
            raise QuestionError(f"{type(self.estimator).__name__} cannot sample: it has no sample(n).")
        takes = "random_state" in inspect.signature(self.estimator.sample).parameters
        if not takes and hasattr(self.estimator, "random_state"):
            self.estimator.random_state = seed  # mixtures sample with the seed they were constructed with
        drawn = self.estimator.sample(n, **({"random_state": seed} if takes else {}))
        return np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn, dtype=np.float64) > 0.5
