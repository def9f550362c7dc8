"""Pictures of a model: how it learned, and what it draws. They need matplotlib (the extra `plot`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.training.state import Epoch

__all__ = ["learning_curve", "samples", "tiles"]


def learning_curve(history: Sequence[Epoch], path: Path) -> None:
    """The NLL of training and validation rows, epoch by epoch, the best one marked."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    numbers = [epoch.number for epoch in history]
    mark = "o" if len(history) == 1 else None
    axis.plot(numbers, [epoch.train_nll for epoch in history], label="training (with dropout, one mask)", marker=mark)
    known = [epoch for epoch in history if not math.isnan(epoch.valid_nll)]
    if known:
        axis.plot(
            [epoch.number for epoch in known], [epoch.valid_nll for epoch in known], label="validation", marker=mark
        )
        best = min(known, key=lambda epoch: epoch.valid_nll)
        label = f"best: {best.valid_nll:.3f} in epoch {best.number}"
        axis.plot(best.number, best.valid_nll, "o", color="black", label=label)
    # The first epochs are often far above all others, which are what one looks for.
    rest = [nll for epoch in history[len(history) // 10 :] for nll in (epoch.train_nll, epoch.valid_nll) if nll == nll]
    if len(history) > 10 and rest:
        margin = 0.05 * (max(rest) - min(rest)) + 1e-9
        axis.set_ylim(min(rest) - margin, max(rest) + margin)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("epoch")
    axis.set_ylabel("NLL in nats, mean over rows")
    axis.legend()
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120, format="png")


def samples(rows: ArrayLike, image: tuple[int, int], path: Path) -> None:
    """Rows that are images, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 6 * image[0] / image[1]), layout="constrained")
    axis = figure.subplots()
    axis.imshow(tiles(np.asarray(rows, dtype=np.float32), image, 10), cmap="gray_r", interpolation="nearest")
    axis.set_axis_off()
    figure.savefig(path, dpi=120, format="png")


def tiles(rows: NDArray[np.float32], image: tuple[int, int], per_row: int) -> NDArray[np.float32]:
    """All images on one, a light frame around each.

    Example:
        >>> (tiles(np.ones((1, 2), dtype=np.float32), (1, 2), 1) > 0.5).astype(int).tolist()
        [[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    """
    height, width = image
    lines = -(-len(rows) // per_row)
    canvas = np.full((lines * (height + 1) + 1, per_row * (width + 1) + 1), 0.15, dtype=np.float32)
    for index, row in enumerate(rows):
        top, left = index // per_row * (height + 1) + 1, index % per_row * (width + 1) + 1
        canvas[top : top + height, left : left + width] = row.reshape(image)
    return canvas
