"""Rows that are images, tiled on one picture. Needs matplotlib (the extra `plot`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["plot_images", "tile_images"]


def plot_images(rows: ArrayLike, image: tuple[int, int], path: Path) -> None:
    """Write a PNG of images, ten in each line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 6 * image[0] / image[1]), layout="constrained")
    axis = figure.subplots()
    axis.imshow(tile_images(rows, image, 10), cmap="gray_r", interpolation="nearest")
    axis.set_axis_off()
    figure.savefig(path, dpi=120, format="png")


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
