"""The paper's Figure 3: samples, beside their nearest neighbours in the training set; and rows as tiled images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    left, right = figure.subplots(1, 2)
    _show(left, samples, image, per_row, "Samples")
    _show(right, neighbours, image, per_row, "Nearest training rows")
    figure.savefig(path, dpi=150)


def plot_images(rows: ArrayLike, image: tuple[int, int], path: Path) -> None:
    """Write a PNG of images, ten in each line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 6 * image[0] / image[1]), layout="constrained")
    _show(figure.subplots(), rows, image, 10)
    figure.savefig(path, dpi=120, format="png")


def _show(axis: Axes, rows: ArrayLike, image: tuple[int, int], per_row: int, title: str = "") -> None:
    axis.imshow(tile_images(rows, image, per_row), cmap="gray_r", interpolation="nearest")
    axis.set_title(title)
    axis.set_axis_off()


def tile_images(rows: ArrayLike, image: tuple[int, int], per_row: int) -> NDArray[np.float32]:
    """All images on one, with a light frame around each.

    Example:
        >>> (tile_images(np.ones((1, 2)), (1, 2), 1) > 0.5).astype(int).tolist()
        [[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    """
    (height, width), pixels = image, np.asarray(rows, dtype=np.float32)
    lines = -(-len(pixels) // per_row)
    canvas = np.full((lines * (height + 1) + 1, per_row * (width + 1) + 1), 0.15, dtype=np.float32)
    for index, row in enumerate(pixels):
        top, left = index // per_row * (height + 1) + 1, index % per_row * (width + 1) + 1
        canvas[top : top + height, left : left + width] = row.reshape(image)
    return canvas
