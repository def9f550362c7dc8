"""`made explain`: the rows that are least likely, and the entries that make them so."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from made.cli.errors import command
from made.cli.models import load
from made.cli.on_error import ON_ERROR, OnError, RowFilter, spread
from made.cli.options import DATA, JSON, MASKS, MODEL, OUT, QUIET, SAFE_CSV, SEED
from made.cli.output import Output
from made.cli.printing import cell, print_json
from made.cli.rows import stream_rows
from made.errors import UnseenWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["explain"]


@command
def explain(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many rows to show.")] = 10,
    on_error: ON_ERROR = OnError.stop,
    safe_csv: SAFE_CSV = False,
    masks: MASKS = None,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Find the least likely rows, and the entries that make them so.

    The surprise of an entry is -log p(x_d | x_<d) in nats, the mean over masks. With --out, the surprise of every entry
    of every row is written instead.
    """
    import numpy as np

    model = load(folder, masks, quiet)
    names, row_filter = list(model.schema.names), RowFilter(model, on_error)
    if out is not None:
        with Output(out, as_json, quiet, names=names, safe_csv=safe_csv) as output:
            for first, rows in stream_rows(data, model, quiet):
                rows = row_filter.settle(rows)
                answers = row_filter.answers(first, rows, model.surprise)
                output.write(
                    spread(answers or [(np.arange(0), model.surprise(row_filter.blank(rows)))], len(rows), names)
                )
            output.facts = row_filter.facts()
        if not as_json:
            row_filter.note(quiet)
        return
    count, oddest = 0, _Oddest(top)
    for first, rows in stream_rows(data, model, quiet):
        rows = row_filter.settle(rows)
        for places, log_p in row_filter.answers(first, rows, model.score_samples):
            oddest.meet(first, rows, places, -log_p.astype(np.float64))
        count += len(rows)
    count -= row_filter.skipped
    found: list[dict[str, Any]] = []
    for row, nll, one in oddest.rows:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenWarning)  # counted when the rows were scored
            surprise = model.surprise(one)
        each = np.asarray(surprise, dtype=np.float64)[0]
        ranked = [int(d) for d in np.argsort(-np.nan_to_num(each, nan=-np.inf), kind="stable") if each[d] == each[d]]
        framed = hasattr(one, "column_names")
        values = {names[d]: one[names[d]][0].as_py() if framed else one[0, d].item() for d in ranked}
        surprises = {names[d]: float(each[d]) for d in ranked}
        found.append({"row": row, "nll": nll, "surprise": surprises, "values": values})
    if as_json:
        print_json({"rows": found} | row_filter.facts())
        return
    row_filter.note(quiet)
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"The {len(found)} least likely of {count} rows (row 0 is the first); surprise in nats")
    for title in ("row", "NLL", "surprising entries"):
        table.add_column(title, justify="left" if title == "surprising entries" else "right")
    for fact in found:
        parts = [f"{name}={fact['values'][name]} ({value:.1f})" for name, value in list(fact["surprise"].items())[:4]]
        table.add_row(str(fact["row"]), f"{fact['nll']:.2f}", cell(", ".join(parts)))
    Console().print(table)


class _Oddest:
    """The rows of highest NLL so far, in order: their numbers, their NLLs, and the rows."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows: list[tuple[int, float, Any]] = []

    def meet(self, first: int, rows: Any, places: NDArray[Any], nll: NDArray[Any]) -> None:
        """Take rows into account: the NLLs of those at some places of a batch."""
        for index in (-nll).argsort(kind="stable")[: self.count].tolist():
            row = int(places[index])
            # A copy, so that the rest of the batch can be freed.
            one = rows.take([row]) if hasattr(rows, "column_names") else rows[row : row + 1].copy()
            self.rows.append((first + row, float(nll[index]), one))
        self.rows = sorted(self.rows, key=lambda each: (-each[1], each[0]))[: self.count]
