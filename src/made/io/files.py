"""Data files in and out. A file is hostile until its claims are checked, against what it has and against a limit.

What is read is a table: a :class:`pyarrow.Table` of a CSV or Parquet file, an array of two dimensions of a ``.npy`` or
``.npz`` file. Nothing is loaded before its size is known, no code in a file is ever run, and whatever is wrong with a
file is a :class:`~made.errors.DataError` that says so in a sentence.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet

from made.errors import DataError
from made.io.npy import CHUNK, archive_of, check_size, foreign, limit_bytes, plain_float, read_npy, read_npz
from made.io.time_zones import zone_of

__all__ = [
    "MICROSECONDS",
    "NULLS",
    "as_array",
    "as_table",
    "as_text",
    "atomic",
    "check_names",
    "check_types",
    "check_utf8",
    "decoded_bytes",
    "has_times",
    "is_text",
    "kind_of",
    "limit_bytes",
    "name_row",
    "open_file",
    "read",
    "refused",
    "shapes",
    "spreadsheet_safe",
    "standard_input",
    "suffix_of",
    "write",
    "write_array",
    "write_csv",
]

# How text begins that a spreadsheet runs; the last four are the wide forms of the first.
FORMULA = "\\A([=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
_BLOCK = 1 << 26  # of a CSV file that is parsed at once; no row may be longer
NULLS = csv.ConvertOptions().null_values  # what pyarrow takes for null: nothing, NA, NaN, null, ...
# Times with fractions are nanoseconds to pyarrow, which have no room for a year such as 9999, and text if they fail.
MICROSECONDS = [pa.timestamp("us"), pa.timestamp("us", "UTC")]


def read(source: str | Path) -> pa.Table | NDArray[Any]:
    """The table in a file, by its suffix: .csv, .parquet, .npy or .npz; ``-`` is standard input, by its first bytes.

    ``file.npz:train`` is one array of an archive. Without a name it has to be the only one of two dimensions. An
    archive of the arrays train, valid, test and d has its rows as bits, of d columns: they are unpacked.

    A CSV file is UTF-8 and has a header, and the type of a column is that of all its rows. A field is null if it is
    empty, or a word such as NA, NaN or null. In quotes these are text, unless all else in the column is numbers, dates
    or truth values.
    """
    if str(source) == "-":
        content = io.BytesIO()
        standard_input(content)
        return _read(content, "standard input", kind_of(content.getvalue()[:8]), None)
    found = re.fullmatch(r"(.+\.npz):(.*)", str(source), flags=re.I | re.S)
    path, key = (Path(found[1]), found[2]) if found else (Path(source), None)
    kind = suffix_of(path)
    with open_file(path) as handle:
        return _read(handle, repr(str(path)), kind, key)


def shapes(path: str | Path) -> dict[str, tuple[int, ...]]:
    """The arrays of a .npz file by name, and the shape that each claims to have; none is loaded."""
    with open_file(Path(path)) as handle, archive_of(handle, repr(str(path))) as archive:
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
        write_csv(as_table(table, names), sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    path, kind = Path(target), suffix_of(Path(target))
    content = as_array(table) if kind in (".npy", ".npz") else as_table(table, names)
    try:
        with atomic(path) as handle:
            if kind == ".csv":
                write_csv(content, handle)
            elif kind == ".parquet":
                parquet.write_table(content, handle)
            else:
                write_array(content, handle, kind)
    except OSError as error:
        raise refused(path, error) from None


def write_array(array: NDArray[Any], handle: BinaryIO, kind: str) -> None:
    """Write an array as a .npy file, or as a .npz file that has it under the name "rows"."""
    if kind == ".npy":
        np.save(handle, array)
    else:
        np.savez_compressed(handle, rows=array)


def refused(target: str | Path, error: OSError) -> DataError:
    """Why a file cannot be written."""
    # NumPy does not say why it wrote less than it should have.
    reason = error.strerror or re.sub(r"\d+ requested and \d+ written", r"\g<0>, the disk may be full", str(error))
    return DataError(f"{str(target)!r} cannot be written: {reason}.")


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


def suffix_of(path: Path) -> str:
    """What the file's name ends in, if that is known."""
    if (suffix := path.suffix.lower()) not in (".csv", ".parquet", ".npy", ".npz"):
        name = repr(str(path))
        raise DataError(f"{name} should end in .csv, .parquet, .npy or .npz, or be '-' for standard input or output.")
    return suffix


def open_file(path: Path) -> BinaryIO:
    """The file, to read; what is no file is refused."""
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


def standard_input(content: BinaryIO) -> None:
    """Take all of standard input, up to the limit, and go back to its beginning."""
    limit = limit_bytes()
    if sys.stdin is None:
        raise DataError("standard input is closed.")
    while chunk := sys.stdin.buffer.read(CHUNK):
        content.write(chunk)
        if content.tell() > limit:
            raise DataError(f"standard input has more than the limit of {limit:,} bytes: MADE_MAX_BYTES raises it.")
    content.seek(0)


def kind_of(first: bytes) -> str:
    """The suffix that a file with these first bytes should have."""
    magics = {b"PAR1": ".parquet", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz"}
    return next((kind for magic, kind in magics.items() if first.startswith(magic)), ".csv")


def _read(handle: BinaryIO, name: str, kind: str, key: str | None) -> pa.Table | NDArray[Any]:
    size = handle.seek(0, os.SEEK_END)
    handle.seek(0)
    if kind == ".npz":
        return read_npz(handle, name, key)
    if kind == ".npy":
        return read_npy(handle, size, name)
    check_size(size, name)
    table = _read_csv(handle, name) if kind == ".csv" else _read_parquet(handle, name)
    if not table.num_rows:
        raise DataError(f"{name} has no rows.")
    return table


def check_names(names: Sequence[str], name: str) -> None:
    """Refuse a table without columns, or with two of one name."""
    if twice := [column for column, count in Counter(names).items() if count > 1]:
        raise DataError(f"{name} has {twice[0]!r} more than once in its header: are these the names of its columns?")
    if not names:
        raise DataError(f"{name} has no columns.")


def _read_csv(handle: BinaryIO, name: str) -> pa.Table:
    check_utf8(handle, name)

    def parse(
        columns: list[str] | None = None,
        quoted: bool = False,
        threads: bool = True,
        types: Mapping[str, pa.DataType] | None = None,
    ) -> pa.Table:
        # Not through Python: a thread that still reads when the program ends would abort it.
        return csv.read_csv(
            pa.BufferReader(handle.getvalue()) if isinstance(handle, io.BytesIO) else pa.OSFile(str(handle.name)),
            csv.ReadOptions(block_size=_BLOCK, use_threads=threads),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(
                include_columns=columns,
                column_types=types,
                strings_can_be_null=True,
                quoted_strings_can_be_null=quoted,
            ),
        )

    def with_times(table: pa.Table, quoted: bool = False) -> pa.Table:
        for column in (column for column in table.column_names if has_times(table[column])):
            for kind in MICROSECONDS:
                with suppress(pa.ArrowInvalid):
                    times = parse([column], quoted, types={column: kind})[column]
                    table = table.set_column(table.column_names.index(column), column, times)
                    break
        return table

    with foreign(name, "CSV"):
        try:
            table = parse()
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                raise DataError(f"{name} has no rows.") from None
            if "straddling" in str(error):
                raise DataError(f"{name} has a row of more than {_BLOCK:,} bytes: is a quote not closed?") from None
            table = name_row(lambda: parse(threads=False), name)
        check_names(table.column_names, name)
        if table.num_columns == 1 and ";" in table.column_names[0]:
            raise DataError(
                f"{name} has one column, {table.column_names[0]!r}: are its fields separated by semicolons?"
            )
        table = with_times(table)
        texts = [column for column in table.column_names if pa.types.is_string(table[column].type)]
        texts = [column for column in texts if pc.any(pc.is_in(table[column], pa.array(NULLS))).as_py()]
        # A file that quotes every field has "" for a number that is missing.
        others = with_times(parse(texts, quoted=True), quoted=True) if texts else table.select([])
        for column in others.column_names:
            if not (pa.types.is_string(others[column].type) or pa.types.is_null(others[column].type)):
                table = table.set_column(table.column_names.index(column), column, others[column])
        return table


def has_times(column: pa.ChunkedArray) -> bool:
    """Whether a column of text begins with a date, so that its other values may be dates with a time as well."""
    if not pa.types.is_string(column.type):
        return False
    for chunk in column.chunks:
        seen = chunk.filter(pc.and_(pc.is_valid(chunk), pc.invert(pc.is_in(chunk, pa.array(NULLS)))))
        if len(seen):
            return re.match(r"\d{4}-\d\d-\d\d", seen[0].as_py(), flags=re.ASCII) is not None
    return False


def name_row(parse: Callable[[], pa.Table], name: str) -> pa.Table:
    """Parse by one thread, which counts rows, so that the error can name the one that is at fault."""
    try:
        return parse()
    except pa.ArrowInvalid as error:
        if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error)):
            row, expected, got = found.groups()
            text = f"row {row}, counting the header, has {got} fields where the header has {expected}."
            raise DataError(f"{name}: {text}") from None
        raise


def check_utf8(handle: BinaryIO, name: str) -> None:
    """Refuse a file that is not text in UTF-8."""
    decoder, line, chunk = codecs.getincrementaldecoder("utf-8")(), 1, b"first"
    while chunk:
        chunk = handle.read(CHUNK)
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            line += error.object.count(b"\n", 0, error.start)
            raise DataError(f"{name}, line {line}: this is not UTF-8, which a CSV file should be in.") from None
        line += chunk.count(b"\n")


def write_csv(table: pa.Table, handle: BinaryIO, *, header: bool = True) -> None:
    """Rows of a table as lines, the first of which has the names."""
    if header:
        handle.write((",".join(_quoted(pa.array(table.column_names, pa.large_string())).to_pylist()) + "\n").encode())
    null = "" if table.num_columns > 1 else "NA"
    for batch in table.to_batches(max_chunksize=1 << 14):
        columns = [_as_field(column) for column in batch.columns]
        separator = pa.scalar(",", pa.large_string())
        lines = pc.binary_join_element_wise(*columns, separator, null_handling="replace", null_replacement=null)
        handle.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def spreadsheet_safe(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before every text and name that a spreadsheet would take for a formula.

    That is text that begins with =, +, -, @, a tab or the end of a line; numbers are as they were.

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
    """Text as CSV has it: in quotes what has a quote, a comma or a line's end in it, or would be read as null."""
    must = pc.or_(pc.match_substring_regex(text, '[",\r\n\ufeff]'), pc.is_in(text, pa.array(NULLS, text.type)))
    quote, nothing = pa.scalar('"', text.type), pa.scalar("", text.type)
    whole = pc.binary_join_element_wise(quote, pc.replace_substring(text, '"', '""'), quote, nothing)
    return pc.if_else(must, whole, text)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def check_types(schema: pa.Schema, name: str) -> None:
    """Refuse columns of lists, maps and the like, and of times in a zone that nothing is known of."""
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind) or is_text(kind)):
            raise DataError(f"{name}, column {field.name!r}: {field.type} is not a type of numbers, text or dates.")
        if pa.types.is_timestamp(kind) and kind.tz is not None and zone_of(kind.tz) is None:
            raise DataError(f"{name}, column {field.name!r}: the time zone {kind.tz!r} is not known here.")


def _read_parquet(handle: BinaryIO, name: str) -> pa.Table:
    with foreign(name, "Parquet"):
        file = parquet.ParquetFile(handle)
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
        check_size(max(rows * file.metadata.num_columns * 8, sum(group.total_byte_size for group in groups)), name)
        schema = file.schema_arrow
        check_types(schema, name)
        check_names(schema.names, name)
        # A long text that is repeated takes little as one entry of a dictionary, and everything when it is written out.
        texts = [field.name for field in schema if is_text(field.type)]
        table = parquet.ParquetFile(handle, read_dictionary=texts).read()
        table.validate(full=True)
        check_size(decoded_bytes(table), name)
        return table.cast(schema)


def decoded_bytes(table: pa.Table) -> int:
    """How many bytes a table takes when the texts of its dictionaries are written out."""
    total: int = table.nbytes
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        if pa.types.is_dictionary(chunk.type) and is_text(chunk.type.value_type):
            lengths = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
            total += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
    return total


def as_table(table: pa.Table | NDArray[Any], names: Sequence[str] | None) -> pa.Table:
    """A table, with these names if told."""
    if isinstance(table, np.ndarray):
        columns = [pa.array(np.ascontiguousarray(column)) for column in plain_float(table).T]
        table = pa.Table.from_arrays(columns, [f"x{index}" for index in range(len(columns))])
    if names is not None:
        table = table.rename_columns(list(names))
    check_names(table.column_names, "'table'")
    check_types(table.schema, "'table'")
    return table


def as_array(table: pa.Table | NDArray[Any]) -> NDArray[Any]:
    """Columns side by side, in a type that has room for all; null is NaN."""
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
