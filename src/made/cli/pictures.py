"""The pictures that `made fit` adds to a model folder: the learning curve, and samples that are images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.printing import note

if TYPE_CHECKING:
    from made.estimator import MADE

__all__ = ["draw_pictures"]


def draw_pictures(model: MADE, out: Path, shape: tuple[int, int] | None, quiet: bool) -> None:
    """Draw the learning curve, and samples if rows are images, into the model's folder; needs matplotlib."""
    from importlib.util import find_spec

    from made.model.folder import add_files

    if find_spec("matplotlib") is None:
        note("No pictures: install matplotlib (pip install 'made[plot]').", quiet)
        return
    import numpy as np

    from made.paper.image_tiles import plot_images
    from made.training.plots import plot_learning_curve

    files: dict[str, Any] = {}
    if model.model_.history:
        files["learning_curve.png"] = lambda path: plot_learning_curve(model.model_.history, path)
    if shape is not None:
        rows = np.asarray(model.sample(100, random_state=model.model_.config.seed))
        files["samples.png"] = lambda path: plot_images(rows, shape, path)
    add_files(out, files)
