"""What is of the engine, behind the protocol of a comparison: a :class:`made.MADE` of binary columns."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.protocol import LogProb
from made.baselines.rows import asked, learned, whole
from made.parameters import PLAIN

__all__ = ["Engine"]


class Engine:
    """A model of the engine.

    Arguments:
        seed: the seed of everything that is random.
        parameters: what is to differ in :attr:`PARAMETERS`, of :class:`made.MADE`.

    Attributes:
        model_: the estimator.
        size: the number of parameters.
        epochs: how many epochs were trained.
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

        rows, others = learned(train, valid)
        model = MADE(**(PLAIN | self.parameters), columns="binary", max_seconds=seconds, random_state=self.seed)
        self.model_ = model.fit(rows, X_valid=others)
        self.columns_, self.epochs = rows.shape[1], model.n_epochs_
        self.size = sum(weight.numel() for weight in model.model_.network.parameters())
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row, exact: that of the ensemble of the model's masks."""
        return LogProb(self.model_.score_samples(asked(self, rows)).astype(np.float64))

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows."""
        drawn: NDArray[np.uint8] = np.asarray(self.model_.sample(whole(self, n), random_state=seed)).astype(np.uint8)
        return drawn
