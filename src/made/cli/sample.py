"""`made sample`: draw new rows."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from made.cli.errors import command
from made.cli.inputs import load
from made.cli.options import MODEL, OUT, SAFE_CSV, SEED, flag, option
from made.cli.output import Output
from made.cli.parsing import assignments
from made.errors import DataError


@command
def sample(
    folder: MODEL,
    count: Annotated[int, Option("--count", "-n", min=1, help="Number of rows.")] = 1,
    out: OUT = None,
    given: Annotated[str | None, option("Values to condition on, such as 'Status=bad, Home=rent'.", "none")] = None,
    safe_csv: SAFE_CSV = False,
    temperature: Annotated[float, option("From 0.001 to 1000; below 1, samples are closer to the mode.")] = 1.0,
    missing: Annotated[bool, flag("--missing", "With missing values as the training rows have them.")] = False,
    seed: SEED = None,
) -> None:
    """Draw new rows, all or given the values of some columns."""
    from made.queries.batches import blocks

    model = load(folder)
    known, random = assignments("--given", given, model), model.generator(seed)
    with Output(out, model.schema.names, safe_csv) as output:
        for batch in blocks(count):
            some = batch.stop - batch.start
            try:
                rows = model.sample(some, given=known, temperature=temperature, missing=missing, random_state=random)
            except DataError as error:  # its row is that of the given values, not of a table
                raise DataError(error.message, column=error.column) from None
            output.write(rows)
