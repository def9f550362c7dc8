"""What every system is to a comparison: it is fitted, says log p of rows and how that is known, and draws rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["SIGNS", "Density", "Floats", "Kind", "LogProb"]

Floats = NDArray[np.float64]
Kind = Literal["exact", "estimate", "bound"]
# In front of an NLL, wherever one is shown: a bound of log p from below is one of the NLL from above.
SIGNS: dict[Kind, str] = {"exact": "", "estimate": "≈ ", "bound": "≤ "}


@dataclass(frozen=True)
class LogProb:
    """log p of rows, and how it is known. It can be used as the array of its values.

    Attributes:
        values: one number for each row, in nats.
        kind: ``"exact"``; an ``"estimate"``, on either side of the truth; or a ``"bound"``, not above it.
        standard_error: of the mean of the values, as far as estimation is the reason; 0 if they are exact.

    Example:
        >>> print(float(np.exp(LogProb(np.log([0.25, 0.75]))).sum()))
        1.0
    """

    values: Floats
    kind: Kind = "exact"
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
    """A distribution over rows of zeros and ones that can be learned from them.

    Attributes:
        size: how many numbers were learned; known once it is fitted.
        epochs: how many passes over the rows that took.
    """

    size: int
    epochs: int

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Learn from rows; others choose what is to be chosen. It may be told to end after so many seconds."""
        ...

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row."""
        ...

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows."""
        ...
