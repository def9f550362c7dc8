"""The HTML page that a command writes, and the pictures that it adds to a model folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.errors import fail, usage

if TYPE_CHECKING:
    from made.estimator import MADE


def page_path(command: str, out: str | None, data: str) -> Path:
    """The file of a command's page, checked before any work: it must be writable, and must not replace other files.

    Arguments:
        command: the command; a page of the same command may be replaced.
        out: an .html file, or a folder for it; None for a name made from ``data``.
        data: the name of the rows.
    """
    from made.pages.render import generator

    stem = "standard-input" if data == "-" else re.sub(r"[^\w.-]+", "-", Path(data).stem)
    path = Path(f"{command}-{stem}.html" if out is None else out)
    if path.suffix.lower() not in (".html", ".htm"):
        if path.suffix and not path.is_dir():
            raise usage(f"'--out' should end in .html, or be a folder, not {str(path)!r}.")
        path = path / f"{command}.html"
    if path.exists() and not (path.is_file() and generator(command).encode() in path.read_bytes()[:1000]):
        raise usage(f"'--out': {path} exists, and is not a page of `made {command}`: choose another name.")
    there = next(folder for folder in (path.parent, *path.parent.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise fail(f"'--out': cannot write to {path}: choose another folder.", 3)
    return path


def write_page(path: Path, page: str) -> None:
    """Write a page atomically, creating its folder."""
    from made.io.atomic import atomic

    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(page.encode())


def draw_pictures(model: MADE, out: Path, shape: tuple[int, int] | None) -> bool:
    """Draw the learning curve, and samples if rows are images, into the model's folder; False without matplotlib."""
    from importlib.util import find_spec

    from made.model.folder import add_files

    if find_spec("matplotlib") is None:
        return False
    import numpy as np

    from made.paper.figure_samples import plot_images
    from made.training.plots import plot_learning_curve

    files: dict[str, Any] = {}
    if model.model_.history:
        files["learning_curve.png"] = lambda path: plot_learning_curve(model.model_.history, path)
    if shape is not None:
        rows = np.asarray(model.sample(100, random_state=model.model_.config.seed))
        files["samples.png"] = lambda path: plot_images(rows, shape, path)
    add_files(out, files)
    return True
