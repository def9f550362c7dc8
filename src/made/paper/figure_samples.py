"""The paper's Figure 3: samples, beside their nearest neighbours in the training set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.paper.pictures import tiles

__all__ = ["draw", "nearest"]

BATCH = 500  # samples that are compared together: all at once could take gigabytes


def nearest(samples: ArrayLike, train: ArrayLike) -> NDArray[np.int64]:
    """The training row that differs from each sample in the fewest columns, by number.

    Example:
        >>> nearest([[1, 1, 0]], [[0, 0, 0], [1, 1, 1], [0, 0, 1]])
        array([1])
    """
    left, right = np.asarray(samples, dtype=np.float32), np.asarray(train, dtype=np.float32)
    numbers = np.empty(len(left), dtype=np.int64)
    ones = right.sum(axis=1)
    for start in range(0, len(left), BATCH):
        # The ones of the sample itself are the same for every training row, and need not be added.
        numbers[start : start + BATCH] = (ones - 2 * left[start : start + BATCH] @ right.T).argmin(axis=1)
    return numbers


def draw(samples: ArrayLike, neighbours: ArrayLike, image: tuple[int, int], path: Path, *, per_row: int = 10) -> None:
    """Write the picture: samples on the left, their neighbours on the right, in the same places."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.4), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, rows, title in zip(axes, (samples, neighbours), ("Samples", "Nearest training rows"), strict=True):
        axis.imshow(tiles(np.asarray(rows, dtype=np.float32), image, per_row), cmap="gray_r", interpolation="nearest")
        axis.set_title(title)
        axis.set_axis_off()
    figure.savefig(path, dpi=150)
