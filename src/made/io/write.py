"""The writer of data files: CSV, Parquet, `.npy` and `.npz`, in pieces.

In CSV, null and NaN are empty fields (NA in a table of one column, where an empty line would not be a row), and only
what would be read otherwise is quoted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from made.errors import DataError
from made.io.atomic import atomic
from made.io.checks import check_names, check_types, is_text, suffix_of
from made.io.csv_blocks import NULLS
from made.io.npy import plain_float

# How text begins that a spreadsheet runs as a formula; the last four are the wide forms of the first.
FORMULA = "\\A([=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"


class Writer(AbstractContextManager["Writer"]):
    """A file, or standard output (``-``), to which a table is written in pieces.

    The file appears when it is complete, or not at all. Columns keep the types of the first piece. The pieces of a
    NumPy file are kept in memory until the end.

    Arguments:
        target: the file, whose suffix is the format; ``-`` gets CSV.
        names: the columns of pieces that are arrays; default: x0, x1, ...
        schema: the types of the columns. Default: the types of the first piece.

    Attributes:
        rows: how many have been written.
    """

    def __init__(
        self, target: str | Path, *, names: Sequence[str] | None = None, schema: pa.Schema | None = None
    ) -> None:
        self.target, self.names, self.rows = str(target), names, 0
        self._kind = ".csv" if self.target == "-" else suffix_of(Path(target))
        self._stack = ExitStack()
        self._handle: BinaryIO | None = None
        self._parquet: parquet.ParquetWriter | None = None
        self.schema, self._begun = schema, False
        self._kept: list[NDArray[Any]] = []

    def __enter__(self) -> Writer:
        try:
            self._handle = sys.stdout.buffer if self.target == "-" else self._stack.enter_context(atomic(self.target))
            if self._kind in (".npy", ".npz"):
                self._stack.push(self._write_kept)
        except OSError as error:
            raise self._refused(error) from None
        return self

    def write(self, piece: pa.Table | NDArray[Any]) -> None:
        """Write more rows."""
        handle = self._handle
        if handle is None:
            raise ValueError("use a Writer in a 'with' statement.")
        if isinstance(piece, np.ndarray) and (piece.ndim != 2 or piece.dtype.kind not in "biufU"):
            raise DataError(f"'table' should be 2-D, of numbers or text, not {piece.ndim}-D of {piece.dtype}.")
        try:
            if self._kind in (".npy", ".npz"):
                self._kept.append(_as_array(piece))
            else:
                self._append(as_table(piece, self.names if isinstance(piece, np.ndarray) else None), handle)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._refused(error) from None
        self.rows += len(piece)

    def _append(self, table: pa.Table, handle: BinaryIO) -> None:
        first, self._begun = not self._begun, True
        if self.schema is None:
            self.schema = table.schema.remove_metadata()
        elif table.schema.remove_metadata() != self.schema:
            try:
                table = table.cast(self.schema)
            except (pa.ArrowInvalid, ValueError) as error:
                # Lines of text may be of any type; the columns of a Parquet file may not.
                if self._kind == ".parquet":
                    raise DataError(
                        f"{self.target!r}: the types of the columns change after row {self.rows}: {error} Write .csv."
                    ) from None
        if self._kind == ".csv":
            write_csv(table, handle, header=first)
            if self.target == "-":
                handle.flush()
            return
        if self._parquet is None:
            self._parquet = self._stack.enter_context(parquet.ParquetWriter(handle, self.schema))
        self._parquet.write_table(table)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._stack.__exit__(kind, error, trace)
        except OSError as fault:
            if error is None:
                raise self._refused(fault) from None
            # Otherwise the first error counts, not what failed as well while it was unwound.
        finally:
            self._handle = None
            if self._parquet is not None:
                self._parquet.is_open = False  # if it could not be closed, it must not try again when it is collected

    def _write_kept(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._handle is not None and self._kept:
            array = np.concatenate(self._kept)
            if self._kind == ".npy":
                np.save(self._handle, array)
            else:
                np.savez_compressed(self._handle, rows=array)

    def _refused(self, error: OSError) -> DataError:
        # NumPy does not say why it wrote less than it should have.
        reason = error.strerror or re.sub(r"\d+ requested and \d+ written", r"\g<0>, the disk may be full", str(error))
        return DataError(f"{self.target!r} cannot be written: {reason}.")


def write_csv(table: pa.Table, handle: BinaryIO, *, header: bool) -> None:
    """Write a table as lines of CSV, optionally with a header."""
    if header:
        handle.write((",".join(_quoted(pa.array(table.column_names, pa.large_string())).to_pylist()) + "\n").encode())
    null = "" if table.num_columns > 1 else "NA"
    for batch in table.to_batches(max_chunksize=1 << 14):
        columns = [_as_field(column) for column in batch.columns]
        separator = pa.scalar(",", pa.large_string())
        lines = pc.binary_join_element_wise(*columns, separator, null_handling="replace", null_replacement=null)
        handle.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def spreadsheet_safe(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before every text and name that a spreadsheet would run as a formula.

    That is text that begins with =, +, -, @, a tab or a line break; numbers stay as they are.

    Example:
        >>> spreadsheet_safe(pa.table({"=a": ["=1+1", "b", None]})).to_pydict()
        {"'=a": ["'=1+1", 'b', None]}
    """
    columns = []
    for column in table.columns:
        plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if is_text(plain):
            column = pc.replace_substring_regex(pc.cast(column, plain), FORMULA, r"'\1")
        columns.append(column)
    return pa.table(columns, names=[re.sub(FORMULA, r"'\1", name) for name in table.column_names])


def as_text(column: pa.Array) -> pa.Array:
    """Values as text; null and NaN are null, and a real number that is whole does not look like an integer."""
    if pa.types.is_floating(column.type):
        text = pc.cast(pc.if_else(pc.is_nan(column), None, column), pa.large_string())
        return pc.replace_substring_regex(text, r"^(-?\d+)$", r"\1.0")
    return pc.cast(column, pa.large_string())


def _as_field(column: pa.Array) -> pa.Array:
    plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return _quoted(as_text(column)) if is_text(plain) else as_text(column)


def _quoted(text: pa.Array) -> pa.Array:
    """Text as CSV fields, in quotes if it has a quote, a comma or a line break, or would be read as null."""
    must = pc.or_(pc.match_substring_regex(text, '[",\r\n\ufeff]'), pc.is_in(text, pa.array(NULLS, text.type)))
    quote, nothing = pa.scalar('"', text.type), pa.scalar("", text.type)
    whole = pc.binary_join_element_wise(quote, pc.replace_substring(text, '"', '""'), quote, nothing)
    return pc.if_else(must, whole, text)


def as_table(table: pa.Table | NDArray[Any], names: Sequence[str] | None) -> pa.Table:
    """An array or a table as a table, with these names if they are given."""
    if isinstance(table, np.ndarray):
        columns = [pa.array(np.ascontiguousarray(column)) for column in plain_float(table).T]
        table = pa.Table.from_arrays(columns, [f"x{index}" for index in range(len(columns))])
    if names is not None:
        table = table.rename_columns(list(names))
    check_names(table.column_names, "'table'")
    check_types(table.schema, "'table'")
    return table


def _as_array(table: pa.Table | NDArray[Any]) -> NDArray[Any]:
    """The columns as one array, of a type that has room for all; null is NaN."""
    if isinstance(table, np.ndarray):
        if table.dtype.kind != "U":
            return table
    else:
        check_names(table.column_names, "'table'")
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
        if all(any(is_kind(field.type) for is_kind in kinds) for field in table.schema):
            columns = [column.cast(pa.float64()) if column.null_count else column for column in table.columns]
            return np.stack([column.to_numpy() for column in columns], axis=1)
    raise DataError("'table' has values that are not numbers, which a NumPy file cannot take: write a .csv file.")
