"""The HTML file that `made report` and `made compare` write."""

from __future__ import annotations

import os
import re
from pathlib import Path

from made.cli.errors import fail, usage

__all__ = ["page_path", "write_page"]


def page_path(command: str, out: str | None, data: str) -> Path:
    """The file of a command's page, checked before any work: it can be written, and replaces no other file.

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
    """Write a page atomically, and make its folder."""
    from made.io.atomic import atomic

    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(page.encode())
