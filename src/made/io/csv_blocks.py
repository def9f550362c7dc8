"""CSV files as a stream of Arrow tables, parsed block by block with one type for all rows of a column.

The type of a column is the first of :data:`TYPES` that fits all its values. One pass over the file finds it; a second
one is needed only where a later block rules out the type of the first, and the values before must be tried again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv

from made.errors import DataError
from made.io.checks import check_names, parsing

BLOCK = 1 << 20  # bytes to parse at once; more if a row is longer
LONGEST = 1 << 25  # bytes of a row
NULLS = csv.ConvertOptions().null_values  # the words that pyarrow takes for null: "", NA, NaN, null, ...
# The order in which pyarrow infers types, with one addition: nanoseconds have no room for a year such as 9999, so
# microseconds come after them.
_TIMES = [pa.timestamp(unit, zone) for unit in ("s", "ns", "us") for zone in (None, "UTC")]
TYPES = [pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *_TIMES, pa.float64(), pa.string()]
NULL, MICROSECONDS, TEXT = TYPES[0], pa.timestamp("us"), TYPES[-1]
# A quote opens a quoted field only at the field's start, as in pyarrow's parser.
_FIELD = rb'(?:"[^"]*+(?:""[^"]*+)*+"|(?!"))[^,\r\n]*+'
_ROW = rb"(?:" + _FIELD + rb",)*+" + _FIELD + rb"[\r\n]"
_HEADER = re.compile(rb"[\r\n]*+" + _ROW)
_ROWS = re.compile(rb"(?:" + _ROW + rb")*+")


def most_fields(content: bytes) -> int:
    """How many columns a CSV file has at most, by the commas of its header."""
    found = _HEADER.match(content.removeprefix(b"\xef\xbb\xbf"))
    return (content if found is None else found[0]).count(b",") + 1


def csv_tables(handle: BinaryIO, name: str) -> Iterator[pa.Table]:
    """The rows of a CSV file with a header, in tables of the same types; ``name`` is for messages."""
    with parsing(name, "CSV"):
        parser = _Parser(name)
        for block in _blocks(handle, name):
            parser.learn(block)
        if parser.unsure:
            parser.settle(_blocks(handle, name))
        for block in _blocks(handle, name):
            yield parser.table(block)


def _blocks(handle: BinaryIO, name: str) -> Iterator[bytes]:
    """A CSV file in blocks, each of which is a CSV file with the same header."""
    header = b""
    for rows in _rows(handle, name):
        yield header + rows
        if not header:
            found = _HEADER.match(rows)
            header = found[0] if found else rows


def _rows(handle: BinaryIO, name: str) -> Iterator[bytes]:
    """The content of a file in blocks of complete rows."""
    handle.seek(0)
    rest, lines, ended = b"", 1, False
    while not ended:
        chunk = handle.read(min(max(BLOCK, len(rest)), LONGEST + 1 - len(rest)))
        data, ended = rest + chunk, not chunk
        end = len(data) if ended else _end_of_rows(data)
        rows, rest = data[:end], data[end:]
        if not rows.isascii():
            try:
                rows.decode()
            except UnicodeDecodeError as error:
                line = lines + rows.count(b"\n", 0, error.start)
                raise DataError(f"{name}, line {line}: this is not UTF-8, which a CSV file should be in.") from None
        if len(rest) > LONGEST:
            raise DataError(f"{name} has a row of more than {LONGEST:,} bytes: is a quote not closed?")
        if rows.strip(b"\r\n"):
            yield rows.removeprefix(b"\xef\xbb\xbf") if lines == 1 else rows
        lines += rows.count(b"\n")


def _end_of_rows(data: bytes) -> int:
    """Where the last complete row ends; ``data`` begins at the start of a row."""
    if b'"' not in data:
        return max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    found = _ROWS.match(data)
    return 0 if found is None else found.end()


class _Parser:
    """Parses the blocks of a CSV file once it has learned the types of the columns from all of them.

    A quoted word for null, such as ``""``, is null in columns of numbers, dates and truth values: files that quote
    every field write missing values so. In columns of text it is text.

    Attributes:
        unsure: columns whose type was changed by a later block and has not been tried on the blocks before.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.types: dict[str, pa.DataType] = {}
        self.unsure: set[str] = set()
        self._texts: set[str] = set()  # columns that so far have only quoted words for null
        self._rows = 0

    def learn(self, block: bytes) -> None:
        """Widen the types until the values of one more block fit."""
        try:
            rows = len(_parse(block, self.types)) if self.types else self._infer(block)
        except pa.ArrowInvalid:
            rows = self._widen(block)
        if b'"' in block and (nulls := [column for column, kind in self.types.items() if kind == NULL]):
            texts = _parse(block, dict.fromkeys(nulls, TEXT), quoted_null=False)
            self._texts |= {column for column in nulls if texts[column].null_count < rows}
        self._rows += rows

    def settle(self, blocks: Iterable[bytes]) -> None:
        """Find the types of unsure columns: the first that fits all blocks."""
        fitting = {column: TYPES[TYPES.index(self.types[column]) :] for column in self.unsure}
        for block in blocks:
            texts = _parse(block, dict.fromkeys(fitting, TEXT))
            for column, kinds in fitting.items():
                values = _distinct(texts[column])
                fitting[column] = [kind for kind in kinds if _fits(values, kind)]
        self.types |= {column: kinds[0] for column, kinds in fitting.items()}

    def table(self, block: bytes) -> pa.Table:
        """The rows of a block, in columns of the settled types."""
        types = self.types | {column: TEXT for column in self._texts if self.types[column] == NULL}
        texts = {column: kind for column, kind in types.items() if kind in (NULL, TEXT)}
        others = {column: kind for column, kind in types.items() if column not in texts}
        if b'"' not in block or not texts or not others:
            return _parse(block, types, quoted_null=not texts)
        parts = _parse(block, texts, quoted_null=False), _parse(block, others)
        return pa.table({column: parts[column in others][column] for column in types})

    def _infer(self, block: bytes) -> int:
        try:
            table = _parse(block)
        except pa.ArrowInvalid as error:
            raise self._sentence(error) from None
        names = table.column_names
        check_names(names, self.name)
        if len(names) == 1 and ";" in names[0]:
            raise DataError(f"{self.name} has one column, {names[0]!r}: are its fields separated by semicolons?")
        for column in names:
            kind = table.schema.field(column).type
            self.types[column] = _first_fit(_distinct(table[column]), MICROSECONDS) if kind == TEXT else kind
        return len(table)

    def _widen(self, block: bytes) -> int:
        try:
            texts = _parse(block, dict.fromkeys(self.types, TEXT))
        except pa.ArrowInvalid as error:
            raise self._sentence(error) from None
        for column, before in self.types.items():
            self.types[column] = kind = _first_fit(_distinct(texts[column]), before)
            if kind == TEXT:
                self.unsure.discard(column)  # text fits everything
            elif kind != before and before != NULL:
                self.unsure.add(column)
        return len(texts)

    def _sentence(self, error: pa.ArrowInvalid) -> Exception:
        if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error)):
            row, expected, got = map(int, found.groups())
            return DataError(
                f"{self.name}: row {row + self._rows}, counting the header, has {got} fields where the header has "
                f"{expected}."
            )
        return DataError(f"{self.name} has no rows.") if "Empty CSV" in str(error) else ValueError(str(error))


def _parse(block: bytes, types: Mapping[str, pa.DataType] | None = None, *, quoted_null: bool = True) -> pa.Table:
    """The columns of a block that ``types`` names, or all of them, of inferred types."""
    return csv.read_csv(
        pa.BufferReader(block),
        csv.ReadOptions(block_size=len(block) + 1, use_threads=False),  # only one thread names the row of an error
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            include_columns=None if types is None else list(types),
            column_types=types,
            strings_can_be_null=True,
            quoted_strings_can_be_null=quoted_null,
        ),
    )


def _distinct(column: pa.ChunkedArray) -> pa.Array:
    return column.unique().drop_null()


def _first_fit(values: pa.Array, kind: pa.DataType) -> pa.DataType:
    """The first type, from ``kind`` on, that fits these texts."""
    return next(each for each in TYPES[TYPES.index(kind) :] if _fits(values, each))


def _fits(values: pa.Array, kind: pa.DataType) -> bool:
    """Whether these texts can be read as values of a type."""
    if kind in (NULL, TEXT) or not len(values):
        return kind != NULL or not len(values)
    lines = "\n".join(['"' + text.replace('"', '""') + '"' for text in values.to_pylist()])
    try:
        _parse(f"x\n{lines}\n".encode(), {"x": kind}, quoted_null=False)
    except pa.ArrowInvalid:
        return False
    return True
