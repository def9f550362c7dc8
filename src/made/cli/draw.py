"""Rows from a model: `sample`, `impute`."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from made.cli.common import DATA, JSON, MODEL, OUT, QUIET, SEED, columns_of, command, load, place, rows_for, show, usage

__all__ = ["impute", "sample"]


@command
def sample(
    model: MODEL,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many rows.")] = 1,
    out: OUT = None,
    given: Annotated[
        str | None, typer.Option("--given", help="What is known, such as 'Status=bad, Home=rent'.", show_default=False)
    ] = None,
    temperature: Annotated[float, typer.Option("--temperature", help="Below 1: nearer to the most likely rows.")] = 1.0,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Draw new rows."""
    made = load(model, seed, quiet=quiet)
    if not 0 < temperature < float("inf"):
        raise usage(f"'--temperature' should be above 0, not {temperature:g}.")
    rows = made.sample(count, given=_given(given, made), temperature=temperature)
    show(rows, out, as_json, quiet, names=list(made.model_.schema.names))


@command
def impute(
    model: MODEL,
    data: DATA,
    out: OUT = None,
    strategy: Annotated[
        str, typer.Option("--strategy", help="sample, mode (the most likely value), or mean (of numeric columns).")
    ] = "sample",
    draws: Annotated[
        int, typer.Option("--draws", min=1, help="How many completions; more than one takes --out with a number in it.")
    ] = 1,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Fill the holes of a table, and leave the rest as it is. With --draws N, files FILE-1, ..., FILE-N are written."""
    if strategy not in ("sample", "mode", "mean"):
        raise usage(f"'--strategy' should be sample, mode or mean, not {strategy!r}.")
    if draws > 1 and (strategy != "sample" or out in (None, "-")):
        raise usage("'--draws' above 1 needs '--strategy sample', and a file in '--out'.")
    made = load(model, seed, quiet=quiet)
    rows = columns_of(rows_for(data, "test")[0], made, quiet)
    names = list(made.model_.schema.names)
    filled = made.impute(rows, strategy=strategy, n_draws=draws)  # type: ignore[arg-type]
    if draws == 1 or out is None:
        show(filled, out, as_json, quiet, names=names)
        return
    for number, each in enumerate(filled, start=1):
        path = Path(out)
        show(each, str(path.with_name(f"{path.stem}-{number}{path.suffix}")), False, quiet or as_json, names=names)
    if as_json:
        from made.cli.common import print_json

        print_json({"rows": len(filled[0]), "draws": draws, "out": out})


def _given(text: str | None, made: Any) -> dict[str | int, Any] | None:
    """'a=1, b=x' as columns and values; a value may be quoted."""
    if text is None:
        return None
    known: dict[str | int, Any] = {}
    for part in next(csv.reader([text], skipinitialspace=True)):
        name, sign, value = (each.strip() for each in part.partition("="))
        if not sign or not name or not value:
            raise usage(f"'--given' should be such as 'Status=bad, Home=rent', not {part!r}.")
        known[place(name, made)] = _number(value)
    return known


def _number(value: str) -> Any:
    """A value as a number, if it looks like one: the model's columns know what to make of either."""
    try:
        number = float(value)
    except ValueError:
        return value.strip("'\"")
    return number if math.isfinite(number) else value
