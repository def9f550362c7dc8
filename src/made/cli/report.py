"""`made report`: an HTML page that compares a table with samples of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from made.cli.errors import command
from made.cli.inputs import known_columns, load, note_ignored, read_rows
from made.cli.options import DATA, MODEL, SEED, option, page_option
from made.cli.pages import page_path, write_page
from made.cli.printing import mode, note, print_json, say

if TYPE_CHECKING:
    from made.model.model import Model


@command
def report(
    folder: MODEL,
    data: DATA,
    out: Annotated[str | None, page_option("report")] = None,
    samples: Annotated[
        int | None, option("Number of samples to draw.", "as many as DATA, at most 10000", min=1, max=10**6)
    ] = None,
    rows: Annotated[int, option("Number of rows of DATA to use; a random subset of a larger table.", min=1)] = 20_000,
    top: Annotated[int, option("Number of the least likely rows to show.", min=1)] = 10,
    held_out: Annotated[
        str | None, option("Held-out rows, to measure privacy; DATA must then be the training rows.", "none")
    ] = None,
    seed: SEED = None,
) -> None:
    """Write an HTML page that compares a table with samples of a model, and shows the least likely rows.

    The page is a single file without external resources. With --json, its numbers are printed.
    """
    path = None if out is None and mode.json else page_path("report", out, data)
    from made.report.measure import measure

    model = load(folder)
    table = _known(read_rows(data, "test" if held_out is None else "train")[0], model)
    others = None if held_out is None else _known(read_rows(held_out, "test")[0], model)
    called = "standard input" if data == "-" else Path(data).name
    options: Any = {"samples": samples, "most_rows": rows, "top": top, "seed": seed}
    found = measure(model, table, held_out=others, name=str(folder), data=called, **options)
    for each in found.notes:
        note(f"Note: {each}")
    if path is not None:
        from made.report.page import page

        write_page(path, page(found))
    if mode.json:
        print_json(found.facts() | {"page": None if path is None else str(path)})
        return
    for sentence in [*(f"Warning: {each}" for each in found.warnings()), *found.sentences()]:
        say(sentence)
    note(f"The page is {path}.")


def _known(rows: Any, model: Model) -> Any:
    """The columns of a table that the model knows."""
    known, ignored = known_columns(rows, model)
    note_ignored(ignored)
    return known
