"""The protocol of all baselines: fit, the log-likelihood of rows and how it is known, and samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.errors import DataError
from made.parameters import check_integer

Bits = NDArray[np.uint8]
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

    def sample(self, n: int, *, seed: int = 0) -> Bits:
        """New rows. Shape: (n, D)."""
        ...


class Baseline:
    """A :class:`Density` that checks its inputs; a subclass has ``_fit``, ``_log_prob`` and ``_sample``."""

    size: int
    epochs: int
    columns_: int | None = None

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train on ``train``; ``valid`` selects epoch and parameters. ``seconds`` limits the time."""
        rows = check_binary(train, "train")
        self._fit(rows, check_binary(valid, "valid", rows.shape[1]), seconds)
        self.columns_ = rows.shape[1]
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row."""
        return self._log_prob(self.check_rows(rows))

    def sample(self, n: int, *, seed: int = 0) -> Bits:
        """New rows. Shape: (n, D)."""
        self._check_fitted()
        return np.asarray(self._sample(check_integer("n", n, 1), seed)).astype(np.uint8)

    def check_rows(self, rows: ArrayLike) -> Bits:
        """The rows of a query, if the model is fitted."""
        self._check_fitted()
        return check_binary(rows, "rows", self.columns_)

    def _check_fitted(self) -> None:
        if self.columns_ is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call 'fit' first.")

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        raise NotImplementedError

    def _log_prob(self, rows: Bits) -> LogProb:
        raise NotImplementedError

    def _sample(self, n: int, seed: int) -> Any:
        raise NotImplementedError


def check_binary(rows: ArrayLike, name: str, columns: int | None = None) -> Bits:
    """A table of complete rows of zeros and ones. Shapes: (rows, columns) to (rows, columns).

    Example:
        >>> check_binary([[0, 2]], "train")
        Traceback (most recent call last):
        ...
        made.errors.DataError: 'train', row 0, column 1: 2 is not 0 or 1.
    """
    table = np.asarray(rows)
    if table.dtype.kind not in "biuf":
        raise DataError(f"'{name}' should be numbers, 0 and 1, not {table.dtype}: encode other values first.")
    if table.ndim != 2 or (columns is not None and table.shape[1] != columns):
        expected = "columns" if columns is None else columns
        raise DataError(f"'{name}' should have the shape (rows, {expected}), not {table.shape}.")
    if table.size == 0:
        raise DataError(f"'{name}' should have at least one row and one column; its shape is {table.shape}.")
    allowed = (table == 0) | (table == 1)
    if not allowed.all():
        row, column = np.argwhere(~allowed)[0].tolist()
        what = f"{table[row, column]:g} is not 0 or 1."
        if np.isnan(table[row, column]):
            what = "NaN, but this model needs complete rows: drop the row, or impute the missing value first "
            what += "(made.MADE does)."
        raise DataError(f"'{name}', row {row}, column {column}: {what}")
    return table.astype(np.uint8)
