"""The paper's Figure 3: samples, beside their nearest neighbours in the training set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.paper.image_tiles import tile_images

__all__ = ["nearest", "plot"]

BATCH = 500  # samples compared at a time, to bound memory


def nearest(samples: ArrayLike, train: ArrayLike) -> NDArray[np.int64]:
    """The index of the training row that differs from each sample in the fewest columns.

    Example:
        >>> nearest([[1, 1, 0]], [[0, 0, 0], [1, 1, 1], [0, 0, 1]])
        array([1])
    """
    left, right = np.asarray(samples, dtype=np.float32), np.asarray(train, dtype=np.float32)
    numbers = np.empty(len(left), dtype=np.int64)
    ones = right.sum(axis=1)
    for start in range(0, len(left), BATCH):
        # The Hamming distance up to a constant: the number of ones of the sample.
        numbers[start : start + BATCH] = (ones - 2 * left[start : start + BATCH] @ right.T).argmin(axis=1)
    return numbers


def plot(samples: ArrayLike, neighbours: ArrayLike, image: tuple[int, int], path: Path, *, per_row: int = 10) -> None:
    """Write the figure: samples on the left, their nearest training rows on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.4), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, rows, title in zip(axes, (samples, neighbours), ("Samples", "Nearest training rows"), strict=True):
        axis.imshow(tile_images(rows, image, per_row), cmap="gray_r", interpolation="nearest")
        axis.set_title(title)
        axis.set_axis_off()
    figure.savefig(path, dpi=150)
