"""`made report`: an HTML page that compares a table with samples of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from made.cli.errors import command
from made.cli.html_pages import page_path, write_page
from made.cli.models import load
from made.cli.options import DATA, JSON, MODEL, QUIET, SEED
from made.cli.printing import note, print_json, say
from made.cli.rows import known_columns, read_rows

__all__ = ["report"]


@command
def report(
    folder: MODEL,
    data: DATA,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="HTML file of the page, or a folder for it; with --json, no page is written by default.",
            show_default="report-DATA.html, in this folder",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            min=1,
            max=10**6,
            help="Number of samples to draw.",
            show_default="as many as DATA, at most 10000",
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="Number of rows of DATA to use; of more, a random subset.")
    ] = 20_000,
    top: Annotated[int, typer.Option("--top", min=1, help="How many of the least likely rows to show.")] = 10,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Write an HTML page that compares a table with samples of a model, and shows the least likely rows.

    The page is a single file without external resources. With --json, its numbers are printed.
    """
    page = None if out is None and as_json else page_path("report", out, data)
    from made.report.measure import measure

    model = load(folder, quiet=quiet)
    table = known_columns(read_rows(data, "test")[0], model, quiet)
    found = measure(
        model, table, samples=samples, most_rows=rows, top=top, seed=seed, name=str(folder), data=_called(data)
    )
    for each in found.notes:
        note(f"Note: {each}", quiet)
    if page is not None:
        from made.report.page import page as page_of

        write_page(page, page_of(found))
    if as_json:
        print_json(found.facts() | {"page": None if page is None else str(page)})
        return
    for sentence in found.sentences():
        say(sentence)
    note(f"The page is {page}.", quiet)


def _called(data: str) -> str:
    return "standard input" if data == "-" else Path(data).name
