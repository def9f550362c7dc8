"""Rows of any type as a pyarrow table with the model's columns in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from made.errors import DataError


def arrow(rows: Any, names: Sequence[str], named: bool) -> pa.Table:
    """A data frame, tensor or array as a table with these columns, matched by name if ``named``, else by position."""
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        table = frame.to_arrow()
        if named and set(names) <= set(table.column_names):
            table = table.select(list(names))
    else:
        matrix = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
        if matrix.ndim != 2:
            raise DataError(f"the rows should be 2-D, not {matrix.ndim}-D.")
        try:
            arrays = [pa.array(each.tolist() if each.dtype == object else each, from_pandas=True) for each in matrix.T]
        except pa.ArrowException as error:
            raise DataError(f"the rows have values of mixed types: {error}") from None
        table = pa.Table.from_arrays(arrays, [str(d) for d in range(len(arrays))])
    if table.num_columns != len(names):
        raise DataError(f"the table has {table.num_columns} columns, but the model has {len(names)}.")
    columns = [each.cast(each.type.value_type) if pa.types.is_dictionary(each.type) else each for each in table.columns]
    return pa.Table.from_arrays(columns, names=list(names))


def with_missing(rows: pa.Table, where: NDArray[np.bool_]) -> pa.Table:
    """The rows with missing values where ``where`` says so. Shape of ``where``: (rows, columns)."""
    for d in np.flatnonzero(where.any(axis=0)).tolist():
        kind = rows.schema.field(d).type
        column = pc.if_else(pa.array(where[:, d]), pa.scalar(None, kind), rows.column(d))
        rows = rows.set_column(d, rows.column_names[d], column)
    return rows


def infinite(rows: pa.Table) -> NDArray[np.bool_]:
    """Where the rows have infinite numbers. Shape: (rows, columns)."""
    nowhere = np.zeros(rows.num_rows, dtype=np.bool_)
    where = [np.isinf(each.to_numpy()) if pa.types.is_floating(each.type) else nowhere for each in rows.columns]
    return np.stack(where, axis=1)
