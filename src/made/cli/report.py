"""`made report`: a page that shows what a model has learned of a table, beside the table."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from made.cli.common import (
    DATA,
    JSON,
    MODEL,
    QUIET,
    SEED,
    columns_of,
    command,
    load,
    note,
    print_json,
    rows_for,
    usage,
)

__all__ = ["report"]


@command
def report(
    model: MODEL,
    data: DATA,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="The page, a .html file; with --json, there is none unless told.",
            show_default="report-DATA.html, in this folder",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", min=1, help="How many rows to draw.", show_default="as many as DATA, at most 10000"),
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="How many rows of DATA to look at; of more, so many are drawn.")
    ] = 20_000,
    top: Annotated[int, typer.Option("--top", min=1, help="How many of the oddest rows to show.")] = 10,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """A page that shows what a model has learned of a table: rows beside samples, and the oddest rows.

    The page is complete in itself. With --json, its numbers are printed.
    """
    page = None if out is None and as_json else _page(out, data)
    from made.report.numbers import measure

    made = load(model, seed, quiet=quiet)
    table = columns_of(rows_for(data, "test")[0], made, quiet)
    found = measure(
        made, table, samples=samples, most_rows=rows, top=top, seed=seed, name=str(model), data=_called(data)
    )
    for each in found.notes:
        note(f"Note: {each}", quiet)
    if page is not None:
        from made.files import atomic
        from made.report.page import page as page_of

        with atomic(page) as file:
            file.write(page_of(found).encode())
    if as_json:
        print_json(found.facts() | {"page": None if page is None else str(page)})
        return
    for sentence in found.sentences():
        print(sentence)
    note(f"The page is {page}.", quiet)


def _called(data: str) -> str:
    return "standard input" if data == "-" else Path(data).name


def _page(out: str | None, data: str) -> Path:
    """The file for the page, which can be written, before there is much to be lost."""
    stem = "standard-input" if data == "-" else re.sub(r"[^\w.-]+", "-", Path(data).stem)
    path = Path(f"report-{stem}.html" if out is None else out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise usage(f"'--out' should end in .html, not be {str(path)!r}.")
    if path.exists() and not _ours(path):
        raise usage(f"'--out': {path} is there, and is not a page of `made report`: choose another name.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise usage(f"'--out': cannot write to {path}: choose another place.")
    return path


def _ours(path: Path) -> bool:
    from made.html import generator

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return generator("report").encode() in file.read(1000)
