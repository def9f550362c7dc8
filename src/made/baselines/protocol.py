"""The protocol of all baselines: fit, the log-likelihood of rows and how it is known, and samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["SIGNS", "Density", "Floats", "LikelihoodKind", "LogProb"]

Floats = NDArray[np.float64]
LikelihoodKind = Literal["exact", "estimate", "bound"]
# Printed before an NLL: a lower bound of log p is an upper bound of the NLL.
SIGNS: dict[LikelihoodKind, str] = {"exact": "", "estimate": "≈ ", "bound": "≤ "}


@dataclass(frozen=True)
class LogProb:
    """log p of rows, and how it is known; usable as the array of its values.

    Attributes:
        values: one number for each row, in nats.
        kind: ``"exact"``; an ``"estimate"``, which may be too high or too low; or a lower ``"bound"``.
        standard_error: of the mean of the values, due to estimation; 0 if they are exact.

    Example:
        >>> print(float(np.exp(LogProb(np.log([0.25, 0.75]))).sum()))
        1.0
    """

    values: Floats
    kind: LikelihoodKind = "exact"
    standard_error: float = 0.0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def mean(self) -> float:
        """The mean log-likelihood."""
        return float(self.values.mean())


@runtime_checkable
class Density(Protocol):
    """A trainable distribution over rows of zeros and ones.

    Attributes:
        size: number of learned parameters, once fitted.
        epochs: number of passes over the rows.
    """

    size: int
    epochs: int

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train on ``train``; ``valid`` selects epoch and parameters. ``seconds`` limits the time."""
        ...

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row."""
        ...

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows."""
        ...
