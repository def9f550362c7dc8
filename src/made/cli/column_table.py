"""The columns of a model as a table on the terminal: name, kind, values and share of missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from made.cli.printing import print_table, say
from made.display import shortened

if TYPE_CHECKING:
    from made.tables.field import Field
    from made.tables.schema import Schema

MOST_COLUMNS = 30  # of a wide table, that are printed
LONGEST_VALUES = 60  # characters


def describe_columns(schema: Schema, observed: Sequence[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """What each column is, for JSON.

    Arguments:
        schema: the model's columns.
        observed: the share of missing values and the range of numbers in training; None if not known.
    """
    columns = []
    for d, field in enumerate(schema.fields):
        known = {} if observed is None else dict(observed[d])
        values = {"values": list(field.values)} if field.values else {}
        if values:
            known.pop("range", None)
        columns.append({"name": field.name, "kind": field.kind} | values | known)
    return columns


def print_columns(columns: Sequence[dict[str, Any]], schema: Schema) -> None:
    """Print what :func:`describe_columns` found; of a wide table, the first columns and how many there are."""
    measured = any("missing" in column for column in columns)
    known = {field.name: field for field in schema.fields}
    columns = [*columns, *({"name": name, "kind": "dropped"} for name in schema.dropped)]
    lines = [
        [column["name"], column["kind"], _values(column, known.get(column["name"])), _share(column.get("missing", 0.0))]
        for column in columns[:MOST_COLUMNS]
    ]
    titles = ["column", "kind", "values", "missing"][: 3 + measured]
    print_table(None, titles, [line[: 3 + measured] for line in lines], right=["missing"], simple=True)
    if len(columns) > MOST_COLUMNS:
        say(f"... and {len(columns) - MOST_COLUMNS} more columns, {len(columns)} in all.")


def _values(column: dict[str, Any], field: Field | None) -> str:
    if field is None:
        return ""
    if field.values:
        known = [field.shown(float(each)) if field.temporal else str(each) for each in field.values]
        return shortened(f"{len(known)}: {', '.join(known)}", LONGEST_VALUES)
    step = field.column.grid[1]
    numbers = "dates" if field.temporal else "whole numbers" if step == 1 else "real numbers"
    if step not in (0, 1) and not field.temporal:
        numbers = f"multiples of {step:g}"
    low, high = column.get("range", (None, None))
    return numbers if low is None else f"{_number(low)} to {_number(high)}, {numbers}"


def _number(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, (int, float)) else str(value)


def _share(missing: float) -> str:
    return "" if not missing else "< 0.1 %" if missing < 0.001 else f"{100 * missing:.1f} %"
