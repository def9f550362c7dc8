"""Weights of rows: a row of weight 2 counts as the row twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from made.errors import DataError
from made.streams import WEIGHTS, random_bits

MOST_ROWS = 2**31


class RowWeights:
    """How often each row counts in an epoch.

    Weights that are whole numbers are counts. Others are relative: they are scaled to a mean of 1, and in each epoch a
    row counts as often as its weight says, rounded up or down at random.

    Arguments:
        weights: a positive number for each row, (rows).

    Attributes:
        values: the weights, scaled, (rows).
        rows: the number of rows in an epoch.

    Example:
        >>> RowWeights(np.array([1.0, 3.0, 2.0])).order(0, seed=0)
        array([0, 1, 1, 1, 2, 2])
        >>> RowWeights(np.array([0.2, 0.5, 0.3])).order(0, seed=0)
        array([0, 1, 2])
    """

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.whole = bool((weights == np.rint(weights)).all())
        self.values = weights if self.whole else weights * (len(weights) / weights.sum())
        self.rows = round(float(self.values.sum()))
        if self.rows > MOST_ROWS:
            raise DataError(
                f"'sample_weight' has whole numbers, which are counts, and their sum is {self.rows:,}: give relative "
                "weights, such as sample_weight / sample_weight.mean()."
            )

    def order(self, epoch: int, seed: int) -> NDArray[np.intp]:
        """The numbers of the rows that count in an epoch, ascending. Shape: (rows of an epoch)."""
        if self.whole:
            return np.repeat(np.arange(len(self.values)), self.values.astype(np.int64))
        ends = self.values.cumsum()
        offset = random_bits(seed, WEIGHTS, epoch) / 2**63
        places = (np.arange(self.rows) + offset) * (ends[-1] / self.rows)
        order: NDArray[np.intp] = np.searchsorted(ends, places, side="right").clip(max=len(ends) - 1)
        return order

    @property
    def counts(self) -> NDArray[np.int64]:
        """The weights as whole numbers, at least 1, for what depends on counts of values. Shape: (rows)."""
        return np.maximum(1, np.rint(self.values)).astype(np.int64)


def checked_weights(weights: Any, rows: int) -> NDArray[np.float64] | None:
    """The sample weights, or one weight for all rows, validated: non-negative, and not all 0."""
    if weights is None:
        return None
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("'sample_weight' should be numbers, one for each row.") from None
    values = np.full(rows, float(values)) if values.ndim == 0 else values
    if values.shape != (rows,):
        raise DataError(f"'sample_weight' should have the shape ({rows},), one for each row, not {values.shape}.")
    if not np.isfinite(values).all() or values.min() < 0 or not values.any():
        raise DataError("'sample_weight' should be finite numbers, none below zero, and not all of them zero.")
    return values
