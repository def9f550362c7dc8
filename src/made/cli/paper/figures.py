"""Options of `made paper figure`, and the file of a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from made.cli.errors import usage
from made.cli.paper.searches import writable

__all__ = ["IMAGES", "PICTURE", "picture_path"]


PICTURE = Annotated[
    Path | None,
    typer.Option("--out", help="File of the picture (.png, .svg, .pdf).", show_default="a .png in --results"),
]
IMAGES = Annotated[str, typer.Option("--data", help="Dataset.")]


def picture_path(out: Path | None, results: Path, name: str) -> Path:
    """The file of a picture; its folder is made, and matplotlib is required."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise usage("a picture needs matplotlib: pip install 'made[plot]'.")
    path = results / f"{name}.png" if out is None else out
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise usage(f"'--out' should end in .png, .svg or .pdf, not be {path.name!r}.")
    writable(path.parent, "--results" if out is None else "--out")
    if path.exists() and not path.is_file():
        raise usage(f"'--out': {path} exists and is not a file: choose another name.")
    return path
