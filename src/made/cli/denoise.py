"""`made denoise`: the most likely clean row behind each noisy one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from made.cli.errors import command, usage
from made.cli.models import load
from made.cli.options import DATA, JSON, MASKS, MODEL, OUT, QUIET, SAFE_CSV, SEED
from made.cli.output import Output, for_file, texts
from made.cli.parsing import assignments
from made.cli.printing import note
from made.cli.rows import stream_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from made.queries.denoising import Denoised

__all__ = ["denoise"]


@command
def denoise(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    error: Annotated[float, typer.Option("--error", help="Probability that an entry is wrong.")] = 0.05,
    column_error: Annotated[
        str | None,
        typer.Option(
            "--column-error", help="That probability by column, such as 'age=0.2, job=0'.", show_default="--error"
        ),
    ] = None,
    mean: Annotated[
        bool, typer.Option("--mean", help="Write the mean of each entry instead of the most likely row.")
    ] = False,
    changes: Annotated[
        str | None, typer.Option("--changes", help="File that lists the changed entries.", show_default="none")
    ] = None,
    safe_csv: SAFE_CSV = False,
    masks: MASKS = None,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Replace noisy rows by the most likely clean ones, given the probability that an entry is wrong.

    A wrong entry of a column with a list of values is any other of them with equal probability; a wrong number is a
    draw from the column's marginal. Missing values stay missing. Where few rows are possible, all of them are summed;
    otherwise the most likely row is a local optimum, and --mean an estimate by Gibbs sampling, with its standard error
    in the file of --changes. That file has a line for each changed entry (with --mean: each entry that is more likely
    wrong than not). Row 0 is the first.
    """
    if changes == "-":
        raise usage("'--changes' should be a file, not -: standard output is for the table.")
    from made.io.write import Writer
    from made.queries.batches import counted_from

    model = load(folder, masks, quiet)
    errors = assignments("--column-error", column_error, model) or {}
    for name, chance in errors.items():
        if not isinstance(chance, float):
            raise usage(f"'--column-error' of {name!r} should be a probability such as 0.1, not {chance!r}.")
    names, random = list(model.schema.names), model.generator(seed)
    changed, entries, method, largest = 0, 0, "", 0.0
    with ExitStack() as open_files:
        output = open_files.enter_context(Output(out, as_json, quiet, names, safe_csv))
        listed = None if changes is None else open_files.enter_context(Writer(changes))
        for first, rows in stream_rows(data, model, quiet):
            with counted_from(first):
                clean, how = model.denoise(
                    rows,
                    error,
                    column_error=errors,
                    strategy="mean" if mean else "mode",
                    return_uncertainty=True,
                    random_state=random,
                )
            output.write(clean)
            which = how.wrong > 0.5 if mean else how.changed
            if listed is not None and changes is not None:
                listed.write(for_file(_changes(names, rows, clean, how, which, first), changes, None, safe_csv))
            changed, entries, method = changed + int(which.sum()), entries + int((how.wrong >= 0).sum()), how.method
            largest = max([largest, *how.error[how.error == how.error].tolist()])
        output.facts = {"entries": entries, "changed": changed, "method": method, "standard_error": largest}
    if not as_json:
        how_sure = f", with a standard error of {largest:.2g} at most" if largest else ""
        verb = "are more likely wrong than not" if mean else "were changed"
        note(f"{changed} of {entries} entries {verb} ({method}{how_sure}).", quiet)


def _changes(names: list[str], rows: Any, clean: Any, how: Denoised, which: NDArray[Any], first: int) -> pa.Table:
    """A line for each changed entry: its old value, its new value, and the probability that it was wrong."""
    import numpy as np
    import pyarrow as pa

    parts = []
    for d, name in enumerate(names):
        places = np.flatnonzero(which[:, d])
        part = {
            "row": first + places,
            "place": np.full(len(places), d),
            "column": pa.array([name] * len(places), pa.string()),
            "was": texts(rows, d, places),
            "now": texts(clean, d, places),
            "probability_wrong": how.wrong[places, d],
            "standard_error": how.error[places, d],
        }
        parts.append(pa.table(part))
    return pa.concat_tables(parts).sort_by([("row", "ascending"), ("place", "ascending")]).drop_columns(["place"])
