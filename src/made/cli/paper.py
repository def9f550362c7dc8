"""`made paper`: the paper's tables and figures, made again; each goes on where it was stopped."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from made.cli.common import JSON, QUIET, command, fail, note, print_json
from made.cli.paper_figures import figure
from made.cli.paper_pieces import RESULTS, SEED
from made.cli.paper_tables import table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The paper's tables and figures, made again.", rich_markup_mode=None)
app.add_typer(table, name="table")
app.add_typer(figure, name="figure")


@app.command()
@command
def report(
    results: RESULTS = Path("results"),
    out: Annotated[Path, typer.Option("--out", help="The page, as Markdown.")] = Path("docs/results.md"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing: fail if the page is not that.")] = False,
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Write docs/results.md: the paper's numbers beside ours, from the JSON of the results."""
    from made.errors import DataError
    from made.io.files import atomic
    from made.paper import report as page

    if not results.is_dir():
        raise fail(f"'--results': there is no folder {results}; the tables and figures of `made paper` make it.", 3)
    text = page.report(results, Path(os.path.relpath(results, out.parent)).as_posix())
    try:
        same = out.is_file() and out.read_bytes() == text.encode()
        if check and not same:
            again = shlex.join(["made", "paper", "report", "--results", str(results), "--out", str(out)])
            raise DataError(f"{out} is not what {results} has: write it again ({again}).")
        if not same:
            out.parent.mkdir(parents=True, exist_ok=True)
            with atomic(out) as file:
                file.write(text.encode())
    except OSError as error:
        raise fail(f"'--out': cannot write {out}: {error.strerror or error}.", 3) from None
    if as_json:
        print_json({"out": str(out), "changed": not same})
    else:
        note(f"{out} {'is as it should be' if same else 'is written'}.", quiet)
