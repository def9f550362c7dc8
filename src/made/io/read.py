"""The reader of data files: one stream of tables, whole or in pieces, for every format.

A file is not trusted: no code in it is run, its claims are checked against its size and the limit before anything is
decoded, and any problem is a :class:`~made.errors.DataError`.
"""

from __future__ import annotations

import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from made.errors import DataError
from made.io.checks import check_size, is_text, limit_bytes, suffix_of
from made.io.csv_blocks import csv_tables
from made.io.npy import npy_rows, npz_rows, npz_shapes

CHUNK = 1 << 20
PIECE = 1 << 25  # bytes of a piece that has fewer rows than asked for, if an entry takes more than ENTRY on the average
ENTRY = 32


def read(source: str | Path) -> pa.Table | NDArray[Any]:
    """The table in a file, by its suffix: .csv, .parquet, .npy or .npz; ``-`` is standard input, by its first bytes.

    CSV and Parquet give a :class:`pyarrow.Table`, NumPy files a 2-D array. ``file.npz:train`` is one array of an
    archive; without a name it has to be the only 2-D one. An archive of the arrays train, valid, test and d holds the
    bits of d columns, which are unpacked.

    A CSV file is UTF-8 and has a header, and a column has one type for all its rows. A field is null if it is
    empty, or a word such as NA, NaN or null. In quotes these are text, unless all else in the column is numbers, dates
    or truth values.
    """
    with _open(source) as file:
        if file.is_array:
            return next(_arrays(file, None))
        tables, size = [], 0
        if file.kind == ".csv":
            check_size(file.handle.seek(0, 2), file.name)
        for table in _tables(file, None):
            tables.append(table)
            size += decoded_bytes(table)
            check_size(size, file.name)
        return pa.concat_tables(tables)


def stream(source: str | Path, rows: int, *, may_be_empty: bool = False) -> Iterator[pa.Table | NDArray[Any]]:
    """The table that :func:`read` gives, in pieces of ``rows`` rows; fewer in the last, and where rows are very long.

    Memory is bounded by the piece. Only an array in Fortran order is loaded whole. A CSV or Parquet file without rows
    is an error, unless it ``may_be_empty``.
    """
    if rows < 1:
        raise ValueError(f"'rows' should be at least 1, not {rows}.")
    with _open(source) as file:
        yield from _arrays(file, rows) if file.is_array else _pieces(_tables(file, rows, may_be_empty), rows)


def shapes(path: str | Path) -> dict[str, tuple[int, ...]]:
    """The arrays of a .npz file by name, and the shape that each claims to have; none is loaded."""
    with _open_file(Path(path)) as handle:
        return npz_shapes(handle, repr(str(path)))


class _File(NamedTuple):
    handle: BinaryIO
    name: str  # for messages
    kind: str  # suffix
    key: str | None  # array of an archive

    @property
    def is_array(self) -> bool:
        return self.kind in (".npy", ".npz")


@contextmanager
def _open(source: str | Path) -> Iterator[_File]:
    if str(source) == "-":
        with tempfile.TemporaryFile() as handle:  # so that it can be read more than once
            yield _File(handle, "standard input", _copy_standard_input(handle), None)
        return
    found = re.fullmatch(r"(.+\.npz):(.*)", str(source), flags=re.I | re.S)
    path, key = (Path(found[1]), found[2]) if found else (Path(source), None)
    kind = suffix_of(path)
    with _open_file(path) as handle:
        yield _File(handle, repr(str(path)), kind, key)


def _open_file(path: Path) -> BinaryIO:
    name = repr(str(path))
    try:
        mode = path.stat().st_mode
        handle = path.open("rb") if stat.S_ISREG(mode) else None
    except FileNotFoundError:
        raise DataError(f"{name} does not exist.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if handle is None:
        raise DataError(f"{name} is {'a folder' if stat.S_ISDIR(mode) else 'a device or a pipe'}, not a file.")
    return handle


def _copy_standard_input(content: BinaryIO) -> str:
    """Copy standard input, up to the limit, and give the suffix that its first bytes stand for."""
    limit = limit_bytes()
    if sys.stdin is None:
        raise DataError("standard input is closed.")
    while chunk := sys.stdin.buffer.read(CHUNK):
        content.write(chunk)
        if content.tell() > limit:
            raise DataError(f"standard input has more than the limit of {limit:,} bytes: MADE_MAX_BYTES raises it.")
    content.seek(0)
    first = content.read(8)
    magics = {b"PAR1": ".parquet", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz"}
    return next((kind for magic, kind in magics.items() if first.startswith(magic)), ".csv")


def _arrays(file: _File, rows: int | None) -> Iterator[NDArray[Any]]:
    if file.kind == ".npz":
        return npz_rows(file.handle, file.name, file.key, rows)
    return npy_rows(file.handle, file.name, rows)


def _tables(file: _File, rows: int | None, may_be_empty: bool = False) -> Iterator[pa.Table]:
    if file.kind == ".csv":
        tables = csv_tables(file.handle, file.name)
    else:
        from made.io.parquet_pages import parquet_tables  # takes as long as a tenth of all of made

        tables = parquet_tables(file.handle, file.name, rows)
    empty = not may_be_empty
    for table in tables:
        if len(table):
            empty = False
            yield table
    if empty:
        raise DataError(f"{file.name} has no rows.")


def _pieces(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Tables re-cut to a number of rows, or to fewer where these take too many bytes."""
    waiting: list[pa.Table] = []
    count = size = 0
    for table in tables:
        while len(table):
            most = max(PIECE, ENTRY * rows * table.num_columns)
            some = table.slice(0, rows - count)
            waiting.append(some)
            count, size = count + len(some), size + decoded_bytes(some)
            table = table.slice(len(some))
            if count == rows or size > most:
                yield pa.concat_tables(waiting)
                waiting, count, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def decoded_bytes(table: pa.Table) -> int:
    """How many bytes a table takes when the texts of its dictionaries are written out."""
    total: int = table.nbytes
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        if pa.types.is_dictionary(chunk.type) and is_text(chunk.type.value_type):
            lengths = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
            total += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
    return total
