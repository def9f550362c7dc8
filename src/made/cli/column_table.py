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


def describe_columns(schema: Schema, rows: Any = None) -> list[dict[str, Any]]:
    """What each column is, for JSON.

    Arguments:
        schema: the model's columns.
        rows: the training rows, for the share of missing values and the range of numbers; None if not at hand.
    """
    return [
        {"name": field.name, "kind": field.kind}
        | ({"values": list(field.values)} if field.values else {})
        | ({} if rows is None else _measured(rows, field.name if schema.named else d, numeric=not field.values))
        for d, field in enumerate(schema.fields)
    ]


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


def _measured(rows: Any, column: str | int, numeric: bool) -> dict[str, Any]:
    """The share of missing values of a column of the training rows, and its range if it is numeric."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not hasattr(rows, "column_names"):
        values = rows[:, column]
        seen = values[~np.isnan(values)] if values.dtype.kind == "f" else values
        found: dict[str, Any] = {"missing": 1 - len(seen) / len(values)}
        if numeric and len(seen):
            found["range"] = [seen.min().item(), seen.max().item()]
        return found
    values = rows.column(column)
    missing = values.is_null(nan_is_null=True)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        missing = pc.or_(missing, pc.equal(values, "").fill_null(True))
    found = {"missing": pc.mean(missing).as_py() or 0.0}
    if numeric:
        ends = pc.min_max(values.filter(pc.invert(missing)))
        found["range"] = [ends["min"].as_py(), ends["max"].as_py()]
    return found
