r"""MADE behind the protocol of the baselines (Germain, Gregor, Murray and Larochelle, ICML 2015).

.. math::
    h &= g(b + (W \odot M^W) x), \qquad p(x_d = 1 \mid x_{<d}) = \sigma(c + (V \odot M^V) h)_d \\
    p(x) &= \frac{1}{R} \sum_r \prod_d p(x_d \mid x_{<d}; M_r)

The masks M let an output depend only on the columns before it in an ordering; each of the R masks has its own ordering.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.binary_rows import check_count, check_rows, check_train_valid
from made.baselines.protocol import LogProb
from made.parameters import PLAIN

__all__ = ["MADEBaseline", "MaskSampling", "OneMask"]


class MADEBaseline:
    """A :class:`made.MADE` of binary columns.

    Arguments:
        seed: its ``random_state``.
        parameters: overrides of :attr:`PARAMETERS`, parameters of :class:`made.MADE`.

    Attributes:
        model_: the estimator.
        size: number of parameters.
        epochs: number of epochs trained.
    """

    PARAMETERS: ClassVar[dict[str, Any]] = {
        "residual": True,
        "signed": False,
        "learning_rate": 2e-3,
        "schedule": "cosine",
        "weight_decay": 0.0,
        "clip": 5.0,
        "batch_size": 100,
        "max_epochs": 100,
    }

    def __init__(self, *, seed: int = 0, **parameters: Any) -> None:
        self.seed, self.parameters = seed, self.PARAMETERS | parameters

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train the estimator."""
        from made.estimator import MADE

        rows, validation = check_train_valid(train, valid)
        model = MADE(**(PLAIN | self.parameters), columns="binary", max_seconds=seconds, random_state=self.seed)
        self.model_ = model.fit(rows, X_valid=validation)
        self.columns_, self.epochs = rows.shape[1], model.n_epochs_
        self.size = sum(weight.numel() for weight in model.model_.network.parameters())
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """Exact log p of each row, under the ensemble of the model's masks."""
        return LogProb(self.model_.score_samples(check_rows(self, rows)).astype(np.float64))

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows. Shape: (n, D)."""
        return np.asarray(self.model_.sample(check_count(self, n), random_state=seed)).astype(np.uint8)


class OneMask(MADEBaseline):
    """MADE with one mask, in the natural ordering: the paper's row "MADE"."""

    PARAMETERS: ClassVar[dict[str, Any]] = MADEBaseline.PARAMETERS | {
        "hidden_sizes": (500, 500),
        "masks": 1,
        "ordering": "natural",
        "dropout": 0.3,
        "max_epochs": 200,
    }


class MaskSampling(MADEBaseline):
    """MADE with a list of masks, cycled through in training and averaged in queries: "MADE mask sampling"."""

    PARAMETERS: ClassVar[dict[str, Any]] = MADEBaseline.PARAMETERS | {
        "hidden_sizes": (500,),
        "masks": 10,
        "dropout": 0.25,
        "learning_rate": 5e-3,
        "max_epochs": 300,
    }
