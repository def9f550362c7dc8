"""Named data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset", "digits"]


@dataclass(frozen=True)
class Dataset:
    """Rows to train on, to choose by, and to look at once; and the shape of a row if it is an image."""

    name: str
    train: NDArray[np.uint8]
    valid: NDArray[np.uint8]
    test: NDArray[np.uint8]
    image: tuple[int, int] | None = None


def digits() -> Dataset:
    """scikit-learn's handwritten digits, 8 x 8, binarised at half of the greatest ink: embedded, nothing to download.

    Example:
        >>> data = digits()
        >>> data.train.shape, data.valid.shape, data.test.shape
        ((1197, 64), (300, 64), (300, 64))
    """
    from sklearn.datasets import load_digits

    rows = (load_digits().data >= 8).astype(np.uint8)
    # The writers of the original come one after the other: shuffled once, the same everywhere.
    rows = rows[np.argsort(np.random.Philox(key=0).random_raw(len(rows)), kind="stable")]
    return Dataset("digits", rows[:1197], rows[1197:1497], rows[1497:], image=(8, 8))
