"""`made sample`: draw new rows."""

from __future__ import annotations

from typing import Annotated

import typer

from made.cli.errors import command
from made.cli.models import load
from made.cli.options import JSON, MODEL, OUT, QUIET, SAFE_CSV, SEED
from made.cli.output import Output
from made.cli.parsing import assignments

__all__ = ["sample"]


@command
def sample(
    folder: MODEL,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many rows.")] = 1,
    out: OUT = None,
    given: Annotated[
        str | None, typer.Option("--given", help="What is known, such as 'Status=bad, Home=rent'.", show_default=False)
    ] = None,
    safe_csv: SAFE_CSV = False,
    temperature: Annotated[
        float, typer.Option("--temperature", help="From 0.001 to 1000; below 1: nearer to the most likely rows.")
    ] = 1.0,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Draw new rows."""
    from made.queries import batches as blocks

    model = load(folder, quiet=quiet)
    known, random = assignments("--given", given, model), model.generator(seed)
    with Output(out, as_json, quiet, model.schema.names, safe_csv) as output:
        for begin in range(0, count, blocks.ROWS_AT_A_TIME):
            some = min(blocks.ROWS_AT_A_TIME, count - begin)
            output.write(model.sample(some, given=known, temperature=temperature, random_state=random))
