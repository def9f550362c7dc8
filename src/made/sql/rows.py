"""Rows as DuckDB passes them, arrays of structs, as tables with a model's columns; and answers as arrays of structs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from made.errors import DataError, QuestionError
from made.tables.dates import as_datetime64
from made.tables.field import Field
from made.tables.schema import Schema
from made.tables.storage import DEFAULTS, arrow_type


def column_type(field: Field) -> pa.DataType:
    """The type of a column in an answer: the type of the training rows, or a wider one."""
    if field.storage == "uint64":
        return pa.uint64()
    if field.temporal == "datetime":
        return pa.timestamp("us", arrow_type(field.storage or DEFAULTS["datetime"]).tz)
    return arrow_type(DEFAULTS[field.dtype])


def names_by_lower_case(schema: Schema) -> dict[str, str]:
    """The columns by their names in lower case: SQL does not distinguish cases."""
    if "" in schema.names:
        raise DataError("a column has no name, and SQL needs one: name it, and fit again.", column="")
    names = {name.lower(): name for name in schema.names}
    for name in schema.names:
        if (other := names[name.lower()]) != name:
            raise DataError(
                f"the columns {name!r} and {other!r} differ only in case, which SQL does not distinguish: rename one, "
                "and fit again.",
                column=name,
            )
    return names


def rows_of(schema: Schema, names: Mapping[str, str], rows: pa.ChunkedArray) -> pa.Table:
    """Structs as a table with the columns of a schema; a field that is absent is missing in each row.

    Arguments:
        schema: the columns.
        names: their names by :func:`names_by_lower_case`.
        rows: an array of structs. Fields that are not in the schema are left out.
    """
    if not pa.types.is_struct(rows.type):
        raise QuestionError(
            "the first argument should be a row: the name of a table in FROM, such as t in FROM 'new.parquet' t, or a "
            f"struct of columns, not a value of type {rows.type}."
        )
    present = {names[each.name.lower()]: place for place, each in enumerate(rows.type) if each.name.lower() in names}
    if not present:
        found = ", ".join(each.name for each in list(rows.type)[:20]) or "no columns"
        raise DataError(
            f"the row has none of the model's columns, which are {', '.join(schema.names[:20])}; it has {found}."
        )
    flat = rows.combine_chunks().flatten()
    columns = [
        _as_words(field, flat[present[field.name]]) if field.name in present else pa.nulls(len(rows))
        for field in schema.fields
    ]
    return pa.table(columns, names=list(schema.names))


def _as_words(field: Field, column: pa.Array) -> pa.Array:
    """Truth values as the words yes and no in the spelling of a column that has both: DuckDB reads these as BOOLEAN."""
    if field.dtype != "text" or not pa.types.is_boolean(column.type):
        return column
    words = [[each for each in field.values if str(each).lower() in pair] for pair in (("yes", "y"), ("no", "n"))]
    return pc.if_else(column, words[0][0], words[1][0]) if [len(each) for each in words] == [1, 1] else column


def structs(columns: Mapping[str, pa.Array], rows: pa.ChunkedArray) -> pa.StructArray:
    """Columns as an array of structs, null where the row is."""
    return pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=rows.is_null().combine_chunks())


def where_valid(values: NDArray[np.floating[Any]], rows: pa.ChunkedArray) -> pa.Array:
    """Numbers as an array, null where the row is."""
    return pa.array(values, pa.float64(), mask=rows.is_null().to_numpy(), from_pandas=False)


def times(seconds: NDArray[np.float64], kind: pa.DataType) -> pa.Array:
    """Seconds since 1970 as an array of dates or times."""
    found = pa.array(as_datetime64(seconds, getattr(kind, "tz", None)))
    return found.cast(kind, safe=False)


def in_types(table: pa.Table, types: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
    """The columns of a table in these types."""
    columns = {}
    for name, kind in types.items():
        try:
            columns[name] = table.column(name).cast(kind).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise DataError(
                f"column {name!r} cannot be {kind}, as in the model: {reason}. Cast it in the query.", column=name
            ) from None
    return columns


def constant(what: str, values: pa.ChunkedArray) -> Any:
    """The value of an argument that must be constant over all rows."""
    nested = pa.types.is_nested(values.type)
    distinct = (values if nested else pc.unique(values)).to_pylist()
    first = distinct[0]
    if first is None or any(each != first for each in distinct[1:]):
        raise QuestionError(f"{what} should be the same in all rows, and not NULL.")
    return first
