"""`made denoise`: the most likely clean row behind each noisy one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Literal

from made.cli.errors import command, usage
from made.cli.inputs import load, stream_rows
from made.cli.options import DATA, MASKS, MODEL, OUT, SAFE_CSV, SEED, flag, option
from made.cli.output import Output, texts
from made.cli.parsing import assignments
from made.cli.printing import mode, note


@command
def denoise(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    error: Annotated[float, option("Probability that an entry is wrong.")] = 0.05,
    column_error: Annotated[
        str | None, option("The same for single columns, such as 'age=0.2, job=0'.", "--error")
    ] = None,
    mean: Annotated[bool, flag("--mean", "Write the mean of each entry instead of the most likely row.")] = False,
    changes: Annotated[str | None, option("File that lists the changed entries.", "none")] = None,
    safe_csv: SAFE_CSV = False,
    masks: MASKS = None,
    seed: SEED = None,
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
    import pyarrow as pa

    from made.queries.batches import counted_from
    from made.queries.random import of_block

    model = load(folder, masks)
    errors = assignments("--column-error", column_error, model) or {}
    for name, chance in errors.items():
        if not isinstance(chance, float):
            raise usage(f"'--column-error' of {name!r} should be a probability such as 0.1, not {chance!r}.")
    names, random = list(model.schema.names), model.generator(seed)
    strategy: Literal["mean", "mode"] = "mean" if mean else "mode"
    changed, entries, method, largest = 0, 0, "", 0.0
    with ExitStack() as files:
        output = files.enter_context(Output(out, names, safe_csv))
        listed = changes and files.enter_context(Output(changes, safe_csv=safe_csv, silent=True))
        for number, (first, rows) in enumerate(stream_rows(data, model)):
            own = of_block(random, number)
            with counted_from(first):
                clean, how = model.denoise(
                    rows, error, column_error=errors, strategy=strategy, return_uncertainty=True, random_state=own
                )
            output.write(clean)
            which = how.wrong > 0.5 if mean else how.changed
            if listed:
                at = which.nonzero()
                lines = {
                    "row": first + at[0],
                    "column": pa.array([names[d] for d in at[1]], pa.string()),
                    "was": texts(rows, *at),
                    "now": texts(clean, *at),
                    "probability_wrong": how.wrong[at],
                    "standard_error": how.error[at],
                }
                listed.write(pa.table(lines))
            changed, entries, method = changed + int(which.sum()), entries + int((how.wrong >= 0).sum()), how.method
            largest = max([largest, *how.error[how.error == how.error].tolist()])
        output.facts = {"entries": entries, "changed": changed, "method": method, "standard_error": largest}
    if not mode.json:
        how_sure = f", with a standard error of {largest:.2g} at most" if largest else ""
        verb = "are more likely wrong than not" if mean else "were changed"
        note(f"{changed} of {entries} entries {verb} ({method}{how_sure}).")
