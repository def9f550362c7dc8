"""Tables that are read and written in pieces, so that memory is bounded by a piece and not by the table.

The pieces of a file, put together, are what :func:`made.io.files.read` gives, types included: a CSV file is looked
through first, because the type of a column is that of all its rows. Arrays (``.npy``, ``.npz``) are loaded whole.
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet

from made.errors import DataError
from made.io.files import (
    MICROSECONDS,
    NULLS,
    as_array,
    as_table,
    atomic,
    check_names,
    check_types,
    check_utf8,
    decoded_bytes,
    has_times,
    is_text,
    kind_of,
    open_file,
    read,
    refused,
    standard_input,
    suffix_of,
    write_array,
    write_csv,
)
from made.io.npy import check_size, foreign

__all__ = ["Writer", "stream"]

# The bytes of a CSV file that are parsed at once; some thirty times as many are read ahead. If a row is longer, more
# are taken, up to the longest.
BLOCK = 1 << 20
LONGEST = 1 << 26

# What pyarrow tries, in this order, until all values of a column can be read as it.
TYPES = [
    pa.null(),
    pa.int64(),
    pa.bool_(),
    pa.date32(),
    pa.time32("s"),
    pa.timestamp("s"),
    pa.timestamp("s", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
    *MICROSECONDS,
    pa.float64(),
    pa.string(),
]


def stream(source: str | Path, rows: int) -> Iterator[pa.Table | NDArray[Any]]:
    """The table in a file, or in standard input (``-``), in pieces of so many rows; the last may have fewer.

    What a file may be, and what its values mean, is as in :func:`made.io.files.read`.
    """
    if rows < 1:
        raise ValueError(f"'rows' should be at least 1, not {rows}.")
    if str(source) != "-":
        yield from _stream(source, repr(str(source)), rows)
        return
    # On disk, so that it can be looked through; its limit is that of what is in memory.
    with tempfile.TemporaryDirectory(prefix="made-") as folder:
        path = Path(folder) / "input"
        with path.open("w+b") as content:
            standard_input(content)
            kind = kind_of(content.read(8))
        named = path.rename(path.with_suffix(kind))
        try:
            yield from _stream(named, "standard input", rows)
        except DataError as error:
            raise DataError(str(error).replace(repr(str(named)), "standard input")) from None


def _stream(source: str | Path, name: str, rows: int) -> Iterator[pa.Table | NDArray[Any]]:
    path = Path(source)
    if path.suffix.lower() not in (".csv", ".parquet"):
        array = read(source)
        for begin in range(0, len(array), rows):
            yield array[begin : begin + rows]
        return
    with open_file(path) as handle:
        batches = _csv_batches(handle, name) if suffix_of(path) == ".csv" else _parquet_batches(handle, name, rows)
        empty = True
        for table in _in_pieces(batches, rows):
            empty = False
            yield table
        if empty:
            raise DataError(f"{name} has no rows.")


def _in_pieces(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while len(batch):
            some = batch.slice(0, rows - count)
            waiting.append(some)
            count += len(some)
            batch = batch.slice(len(some))
            if count == rows:
                yield pa.Table.from_batches(waiting)
                waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _csv_batches(handle: BinaryIO, name: str) -> Iterator[pa.RecordBatch]:
    check_utf8(handle, name)
    with foreign(name, "CSV"):
        try:
            block, types, suspects = _csv_types(handle.name, name)
            # A file that quotes every field has "" for a number that is missing.
            others = _csv_types(handle.name, name, block, suspects, quoted=True)[1] if suspects else {}
            numbers = {column: kind for column, kind in others.items() if not (is_text(kind) or pa.types.is_null(kind))}
            readers = [iter(_reader(handle.name, block, types))]
            if numbers:
                readers.append(iter(_reader(handle.name, block, numbers, list(numbers), quoted=True)))
            for batches in zip(*readers, strict=True):
                batch = batches[0]
                for column in numbers:
                    place = batch.schema.names.index(column)
                    batch = batch.set_column(place, column, batches[1][column])
                yield batch
        except pa.ArrowInvalid as error:
            raise _sentence(error, name) from None


def _sentence(error: pa.ArrowInvalid, name: str) -> Exception:
    text = str(error)
    if "Empty CSV" in text:
        return DataError(f"{name} has no rows.")
    if "straddling" in text:
        return DataError(f"{name} has a row of more than {LONGEST:,} bytes: is a quote not closed?")
    if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
        row, expected, got = found.groups()
        return DataError(f"{name}: row {row}, counting the header, has {got} fields where the header has {expected}.")
    return ValueError(text)


def _reader(
    path: str,
    block: int,
    types: Mapping[str, pa.DataType],
    columns: Sequence[str] | None = None,
    quoted: bool = False,
) -> csv.CSVStreamingReader:
    return csv.open_csv(
        pa.OSFile(path),
        csv.ReadOptions(block_size=block, use_threads=False),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            include_columns=columns,
            column_types=dict(types),
            strings_can_be_null=True,
            quoted_strings_can_be_null=quoted,
        ),
    )


def _csv_types(
    path: str, name: str, block: int | None = None, columns: Sequence[str] | None = None, quoted: bool = False
) -> tuple[int, dict[str, pa.DataType], list[str]]:
    """How much to parse at once; the type that fits all values of a column; columns of text with words for null."""
    block = BLOCK if block is None else block
    header: list[str] = []
    types: dict[str, pa.DataType] = {}
    tried = False
    while True:
        try:
            header = header or _header(path, block, name)
            reader = _reader(path, block, types, columns, quoted)
            types = dict(zip(reader.schema.names, reader.schema.types, strict=True))
            texts = {column: False for column, kind in types.items() if is_text(kind)}
            first = next(iter(reader), None) if texts and not tried else None
            if first is not None:
                tried = True
                if times := [column for column in texts if has_times(pa.chunked_array([first[column]]))]:
                    types |= dict.fromkeys(times, MICROSECONDS[0])
                    continue
            for batch in itertools.chain([] if first is None else [first], reader):
                for column, suspect in texts.items():
                    texts[column] = suspect or pc.any(pc.is_in(batch[column], pa.array(NULLS))).as_py() is True
            return block, types, [column for column, suspect in texts.items() if suspect]
        except pa.ArrowInvalid as error:
            if "straddling" in str(error) and block < LONGEST:
                block = min(8 * block, LONGEST)
                continue
            # The first block has not shown all: a value further on is of a type that comes later.
            found = re.match(r"In CSV column #(\d+): .*conversion error", str(error), flags=re.S)
            if found is None or types.get(header[int(found[1])]) not in TYPES[:-1]:
                raise
            column = header[int(found[1])]
            types[column] = TYPES[TYPES.index(types[column]) + 1]


def _header(path: str, block: int, name: str) -> list[str]:
    header: list[str] = _reader(path, block, {}).schema.names
    check_names(header, name)
    if len(header) == 1 and ";" in header[0]:
        raise DataError(f"{name} has one column, {header[0]!r}: are its fields separated by semicolons?")
    return header


def _parquet_batches(handle: BinaryIO, name: str, rows: int) -> Iterator[pa.RecordBatch]:
    with foreign(name, "Parquet"):
        schema = parquet.ParquetFile(handle).schema_arrow
        check_types(schema, name)
        check_names(schema.names, name)
        # A long text that is repeated takes little as one entry of a dictionary, and everything when it is written out.
        texts = [field.name for field in schema if is_text(field.type)]
        file = parquet.ParquetFile(handle, read_dictionary=texts, buffer_size=1 << 16, pre_buffer=False)
        for batch in file.iter_batches(batch_size=rows, use_threads=False):
            table = pa.Table.from_batches([batch])
            table.validate(full=True)
            check_size(decoded_bytes(table), f"{rows} rows of {name}")
            yield from table.cast(schema).combine_chunks().to_batches()


class Writer(AbstractContextManager["Writer"]):
    """A file, or standard output (``-``), that a table is written to in pieces.

    The file appears when it is complete, or not at all; columns keep the types of the first piece. A NumPy file cannot
    grow: its pieces are kept until the end.

    Arguments:
        target: the file, by its suffix as in :func:`made.io.files.write`; ``-`` gets CSV.
        names: the columns of pieces that are arrays.

    Attributes:
        rows: how many have been written.
    """

    def __init__(self, target: str | Path, *, names: Sequence[str] | None = None) -> None:
        self.target, self.names, self.rows = str(target), names, 0
        self._kind = ".csv" if self.target == "-" else suffix_of(Path(target))
        self._stack = ExitStack()
        self._handle: BinaryIO | None = None
        self._parquet: parquet.ParquetWriter | None = None
        self._schema: pa.Schema | None = None
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
        """Write some rows more."""
        handle = self._handle
        if handle is None:
            raise ValueError("a Writer is for use in a 'with' statement.")
        try:
            if self._kind in (".npy", ".npz"):
                self._kept.append(as_array(piece))
            else:
                self._append(as_table(piece, self.names if isinstance(piece, np.ndarray) else None), handle)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._refused(error) from None
        self.rows += len(piece)

    def _append(self, table: pa.Table, handle: BinaryIO) -> None:
        first = self._schema is None
        if self._schema is None:
            self._schema = table.schema.remove_metadata()
        elif table.schema.remove_metadata() != self._schema:
            try:
                table = table.cast(self._schema)
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
            self._parquet = self._stack.enter_context(parquet.ParquetWriter(handle, self._schema))
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
            write_array(np.concatenate(self._kept), self._handle, self._kind)

    def _refused(self, error: OSError) -> DataError:
        return refused(self.target, error)
