"""Data files in and out. A file is hostile until its claims are checked, against what it has and against a limit.

What is read is a table: a :class:`pyarrow.Table` of a CSV or Parquet file, an array of two dimensions of a ``.npy`` or
``.npz`` file. Nothing is loaded before its size is known, no code in a file is ever run, and whatever is wrong with a
file is a :class:`~made.errors.DataError` that says so in a sentence.
"""

from __future__ import annotations

import codecs
import io
import math
import os
import re
import stat
import sys
import uuid
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib import format as npy
from numpy.typing import NDArray
from pyarrow import csv, parquet

from made.errors import DataError

__all__ = ["atomic", "limit_bytes", "read", "shapes", "write"]

_BLOCK = 1 << 26  # of a CSV file that is parsed at once; no row may be longer
_CHUNK = 1 << 20
_HEADER = 1 << 14  # more than NumPy lets the header of an array have
_MEMBERS = 1000  # of an archive
_NULLS = csv.ConvertOptions().null_values  # what pyarrow takes for null: nothing, NA, NaN, null, ...


def limit_bytes() -> int:
    """The most that a file may take in memory: the environment variable MADE_MAX_BYTES, or else 4 GiB."""
    text = os.environ.get("MADE_MAX_BYTES") or str(4 << 30)
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) < 1:
        raise DataError(f"MADE_MAX_BYTES should be a whole number of bytes, at least 1, not {text!r}.")
    return int(text)


def read(source: str | Path) -> pa.Table | NDArray[Any]:
    """The table in a file, by its suffix: .csv, .parquet, .npy or .npz; ``-`` is standard input, by its first bytes.

    ``file.npz:train`` is one array of an archive. Without a name it has to be the only one of two dimensions. An
    archive of the arrays train, valid, test and d has its rows as bits, of d columns: they are unpacked.

    A CSV file is UTF-8 and has a header, and the type of a column is that of all its rows. A field is null if it is
    empty, or a word such as NA, NaN or null. In quotes these are text, unless all else in the column is numbers, dates
    or truth values.
    """
    if str(source) == "-":
        content = _standard_input()
        magics = {b"PAR1": ".parquet", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz"}
        first = content.getvalue()[:8]
        kind = next((kind for magic, kind in magics.items() if first.startswith(magic)), ".csv")
        return _read(content, "standard input", kind, None)
    found = re.fullmatch(r"(.+\.npz):(.*)", str(source), flags=re.I | re.S)
    path, key = (Path(found[1]), found[2]) if found else (Path(source), None)
    kind = _suffix(path)
    with _open(path) as handle:
        return _read(handle, repr(str(path)), kind, key)


def shapes(path: str | Path) -> dict[str, tuple[int, ...]]:
    """The arrays of a .npz file by name, and the shape that each claims to have; none is loaded."""
    with _open(Path(path)) as handle, _archive(handle, repr(str(path))) as archive:
        return {key: archive.header(key).shape for key in archive.members}


def write(table: pa.Table | NDArray[Any], target: str | Path, *, names: Sequence[str] | None = None) -> None:
    """Write a table or an array of two dimensions to a file, by its suffix, or to ``-``, standard output, as CSV.

    ``names`` are the columns of an array, x0, x1, ... unless told; .npy and .npz files have none. In CSV, null and NaN
    are empty fields (NA in a table of one column, where an empty line would be no row), and only what would be read
    otherwise is quoted. A file appears when it is complete, or not at all.
    """
    if isinstance(table, np.ndarray) and (table.ndim != 2 or table.dtype.kind not in "biufU"):
        raise DataError(f"'table' should be 2-D, of numbers or text, not {table.ndim}-D of {table.dtype}.")
    if names is not None and (isinstance(names, str) or len(names) != table.shape[1]):
        raise DataError(f"'names' should be a sequence of {table.shape[1]} names, not {names!r}.")
    if str(target) == "-":
        _write_csv(_as_table(table, names), sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    path, kind = Path(target), _suffix(Path(target))
    content = _as_array(table) if kind in (".npy", ".npz") else _as_table(table, names)
    try:
        with atomic(path) as handle:
            if kind == ".csv":
                _write_csv(content, handle)
            elif kind == ".parquet":
                parquet.write_table(content, handle)
            elif kind == ".npy":
                np.save(handle, content)
            else:
                np.savez_compressed(handle, rows=content)
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from None


@contextmanager
def atomic(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which becomes ``path`` when all of it is on disk; on failure nothing is left."""
    path = Path(os.path.realpath(path))  # through a link, to the file that it stands for
    if path.exists() and not path.is_file():
        raise OSError(f"{str(path)!r} is there, and not a file")
    beside = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with beside.open("xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _suffix(path: Path) -> str:
    if (suffix := path.suffix.lower()) not in (".csv", ".parquet", ".npy", ".npz"):
        name = repr(str(path))
        raise DataError(f"{name} should end in .csv, .parquet, .npy or .npz, or be '-' for standard input or output.")
    return suffix


def _open(path: Path) -> BinaryIO:
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


def _standard_input() -> io.BytesIO:
    content, limit = io.BytesIO(), limit_bytes()
    while chunk := sys.stdin.buffer.read(_CHUNK):
        content.write(chunk)
        if content.tell() > limit:
            raise DataError(f"standard input has more than the limit of {limit:,} bytes: MADE_MAX_BYTES raises it.")
    content.seek(0)
    return content


def _read(handle: BinaryIO, name: str, kind: str, key: str | None) -> pa.Table | NDArray[Any]:
    size = handle.seek(0, os.SEEK_END)
    handle.seek(0)
    if kind == ".npz":
        return _read_npz(handle, name, key)
    if kind == ".npy":
        return _read_npy(handle, size, name)
    _check_size(size, name)
    table = _read_csv(handle, name) if kind == ".csv" else _read_parquet(handle, name)
    if not table.num_rows:
        raise DataError(f"{name} has no rows.")
    return table


def _check_size(size: int, name: str) -> None:
    if size > (limit := limit_bytes()):
        text = f"would take {size:,} bytes, more than the limit of {limit:,}: MADE_MAX_BYTES raises it."
        raise DataError(f"{name} {text}")


def _check_names(names: Sequence[str], name: str) -> None:
    if twice := [column for column, count in Counter(names).items() if count > 1]:
        raise DataError(f"{name} has {twice[0]!r} more than once in its header: are these the names of its columns?")
    if not names:
        raise DataError(f"{name} has no columns.")


@contextmanager
def _foreign(name: str, kind: str) -> Iterator[None]:
    """Whatever a library raises over a file that is not what it should be becomes a sentence."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # hostile bytes find every exception that there is
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise DataError(f"{name} is damaged, or no {kind} file: {reason}.") from None


def _read_csv(handle: BinaryIO, name: str) -> pa.Table:
    _check_utf8(handle, name)

    def parse(columns: list[str] | None = None, quoted: bool = False, threads: bool = True) -> pa.Table:
        handle.seek(0)
        return csv.read_csv(
            pa.PythonFile(handle, mode="r"),  # which leaves ours open
            csv.ReadOptions(block_size=_BLOCK, use_threads=threads),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(include_columns=columns, strings_can_be_null=True, quoted_strings_can_be_null=quoted),
        )

    with _foreign(name, "CSV"):
        try:
            table = parse()
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                raise DataError(f"{name} has no rows.") from None
            if "straddling" in str(error):
                raise DataError(f"{name} has a row of more than {_BLOCK:,} bytes: is a quote not closed?") from None
            table = _name_row(lambda: parse(threads=False), name)
        _check_names(table.column_names, name)
        texts = [column for column in table.column_names if pa.types.is_string(table[column].type)]
        texts = [column for column in texts if pc.any(pc.is_in(table[column], pa.array(_NULLS))).as_py()]
        # A file that quotes every field has "" for a number that is missing.
        others = parse(texts, quoted=True) if texts else table.select([])
        for column in others.column_names:
            if not (pa.types.is_string(others[column].type) or pa.types.is_null(others[column].type)):
                table = table.set_column(table.column_names.index(column), column, others[column])
        return table


def _name_row(parse: Callable[[], pa.Table], name: str) -> pa.Table:
    """Parse by one thread, which counts rows, so that the error can name the one that is at fault."""
    try:
        return parse()
    except pa.ArrowInvalid as error:
        if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error)):
            row, expected, got = found.groups()
            text = f"row {row}, counting the header, has {got} fields where the header has {expected}."
            raise DataError(f"{name}: {text}") from None
        raise


def _check_utf8(handle: BinaryIO, name: str) -> None:
    decoder, line, chunk = codecs.getincrementaldecoder("utf-8")(), 1, b"first"
    while chunk:
        chunk = handle.read(_CHUNK)
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            line += error.object.count(b"\n", 0, error.start)
            raise DataError(f"{name}, line {line}: this is not UTF-8, which a CSV file should be in.") from None
        line += chunk.count(b"\n")


def _write_csv(table: pa.Table, handle: BinaryIO) -> None:
    handle.write((",".join(_quoted(pa.array(table.column_names, pa.large_string())).to_pylist()) + "\n").encode())
    null = "" if table.num_columns > 1 else "NA"
    for batch in table.to_batches(max_chunksize=1 << 14):
        columns = [_as_text(column) for column in batch.columns]
        separator = pa.scalar(",", pa.large_string())
        lines = pc.binary_join_element_wise(*columns, separator, null_handling="replace", null_replacement=null)
        handle.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        text = pc.cast(pc.if_else(pc.is_nan(column), None, column), pa.large_string())
        return pc.replace_substring_regex(text, r"^(-?\d+)$", r"\1.0")  # or it would be read as an integer
    text = pc.cast(column, pa.large_string())
    plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return _quoted(text) if _is_text(plain) else text


def _quoted(text: pa.Array) -> pa.Array:
    """Text as CSV has it: in quotes what has a quote, a comma or a line's end in it, or would be read as null."""
    must = pc.or_(pc.match_substring_regex(text, '[",\r\n\ufeff]'), pc.is_in(text, pa.array(_NULLS, text.type)))
    quote, nothing = pa.scalar('"', text.type), pa.scalar("", text.type)
    whole = pc.binary_join_element_wise(quote, pc.replace_substring(text, '"', '""'), quote, nothing)
    return pc.if_else(must, whole, text)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _check_types(schema: pa.Schema, name: str) -> None:
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind) or _is_text(kind)):
            raise DataError(f"{name}, column {field.name!r}: {field.type} is not a type of numbers, text or dates.")


def _read_parquet(handle: BinaryIO, name: str) -> pa.Table:
    with _foreign(name, "Parquet"):
        file = parquet.ParquetFile(handle)
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
        _check_size(max(rows * file.metadata.num_columns * 8, sum(group.total_byte_size for group in groups)), name)
        schema = file.schema_arrow
        _check_types(schema, name)
        _check_names(schema.names, name)
        # A long text that is repeated takes little as one entry of a dictionary, and everything when it is written out.
        texts = [field.name for field in schema if _is_text(field.type)]
        table = parquet.ParquetFile(handle, read_dictionary=texts).read()
        table.validate(full=True)
        total = table.nbytes
        for chunk in (chunk for column in table.columns for chunk in column.chunks):
            if pa.types.is_dictionary(chunk.type) and _is_text(chunk.type.value_type):
                lengths = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
                total += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
        _check_size(total, name)
        return table.cast(schema)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int  # of the data

    @property
    def size(self) -> int:
        return min(math.prod(self.shape) * self.dtype.itemsize, 1 << 62)

    def check(self, dimensions: int, end: int, name: str) -> None:
        """Refuse what is no table of numbers, is more than the limit, or does not end where it should."""
        if self.dtype.kind not in "biuf":
            raise DataError(f"{name} has values of type {self.dtype}: only numbers and truth values are taken.")
        if len(self.shape) != dimensions or (dimensions and min(self.shape) < 1):
            raise DataError(f"{name} has the shape {str(self.shape)[:99]}: it should have rows and columns.")
        _check_size(self.size, name)
        if (claim := self.start + self.size) != end:
            raise DataError(f"{name} is truncated or damaged: it claims {claim:,} bytes and has {end:,}.")


def _header(handle: IO[bytes], name: str) -> _Header:
    head = io.BytesIO(handle.read(_HEADER))
    with _foreign(name, "NumPy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of whole numbers that Python 2 wrote
        version = npy.read_magic(head)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read_header(head)
    return _Header(shape, fortran, dtype, head.tell())


def _read_data(handle: IO[bytes], header: _Header, name: str) -> NDArray[Any]:
    """The array after its header, however much more the file would give."""
    handle.read(header.start)
    data = np.empty(header.size, np.uint8)
    view, got = memoryview(cast(bytearray, data)), 0
    while count := cast(io.BufferedReader, handle).readinto(view[got : got + _CHUNK]):
        got += count
    if got < len(data) or handle.read(1):  # the read that meets the end also checks the sum of a zip file
        raise DataError(f"{name} is truncated or damaged: its data should have {len(data):,} bytes.")
    if header.dtype.kind == "b":
        np.minimum(data, 1, out=data)
    array = data.view(header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
    return array.astype(header.dtype.newbyteorder("="), copy=False)


def _read_npy(handle: BinaryIO, size: int, name: str) -> NDArray[Any]:
    header = _header(handle, name)
    header.check(2, size, name)
    handle.seek(0)
    return _read_data(handle, header, name)


class _Cautious(io.BufferedReader):
    """A file that gives little at once: the directory of an archive may claim to have a billion members."""

    def read(self, size: int | None = None, /) -> bytes:
        return super().read(2 * _CHUNK if size is None or size < 0 else min(size, 2 * _CHUNK))


class _Archive:
    """The arrays of an .npz file, by name."""

    def __init__(self, file: zipfile.ZipFile, name: str) -> None:
        self.file, self.name = file, name
        if (count := len(file.infolist())) > _MEMBERS:
            raise DataError(f"{name} has {count} members: more than {_MEMBERS} are not taken.")
        self.members = {info.filename[:-4]: info for info in file.infolist() if info.filename.endswith(".npy")}

    def open(self, key: str) -> IO[bytes]:
        if self.members[key].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{self.name}, array {key!r}, is compressed in a way that NumPy does not use.")
        return self.file.open(self.members[key])

    def header(self, key: str) -> _Header:
        with self.open(key) as member:
            return _header(member, f"{self.name}, array {key!r},")

    def load(self, key: str, dimensions: int = 2) -> NDArray[Any]:
        header, name = self.header(key), f"{self.name}, array {key!r},"
        header.check(dimensions, self.members[key].file_size, name)
        with self.open(key) as member:
            return _read_data(member, header, name)


@contextmanager
def _archive(handle: BinaryIO, name: str) -> Iterator[_Archive]:
    cautious = _Cautious(cast(io.RawIOBase, handle))
    with _foreign(name, ".npz"), cautious, zipfile.ZipFile(cautious) as file:
        yield _Archive(file, name)


def _read_npz(handle: BinaryIO, name: str, key: str | None) -> NDArray[Any]:
    with _archive(handle, name) as archive:
        if key is None:
            tables = [key for key in archive.members if len(archive.header(key).shape) == 2]
            key = tables[0] if len(tables) == 1 else None
        if key not in archive.members:
            fault = f"{len(archive.members)} arrays" if key is None else f"no array {key!r}"
            raise DataError(
                f"{name} has {fault}: put one of these after a colon: {', '.join(archive.members) or 'none'}."
            )
        if key not in ("train", "valid", "test") or not {"train", "valid", "test", "d"} <= archive.members.keys():
            return archive.load(key)
        rows, columns = archive.load(key), int(archive.load("d", 0))
        if rows.dtype != np.uint8 or columns < 1 or rows.shape[1] != -(-columns // 8):
            raise DataError(f"{name}, array {key!r}, of shape {rows.shape}, cannot be the bits of {columns} columns.")
        _check_size(len(rows) * columns, name)
        return np.unpackbits(rows, axis=1, count=columns)


def _as_table(table: pa.Table | NDArray[Any], names: Sequence[str] | None) -> pa.Table:
    if isinstance(table, np.ndarray):
        columns = [pa.array(np.ascontiguousarray(column)) for column in table.T]
        table = pa.Table.from_arrays(columns, [f"x{index}" for index in range(len(columns))])
    if names is not None:
        table = table.rename_columns(list(names))
    _check_names(table.column_names, "'table'")
    _check_types(table.schema, "'table'")
    return table


def _as_array(table: pa.Table | NDArray[Any]) -> NDArray[Any]:
    """Columns side by side, in a type that has room for all; null is NaN."""
    if isinstance(table, np.ndarray):
        if table.dtype.kind != "U":
            return table
    else:
        _check_names(table.column_names, "'table'")
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
        if all(any(is_kind(field.type) for is_kind in kinds) for field in table.schema):
            columns = [column.cast(pa.float64()) if column.null_count else column for column in table.columns]
            return np.stack([column.to_numpy() for column in columns], axis=1)
    raise DataError("'table' has values that are not numbers, which a NumPy file cannot take: write a .csv file.")
