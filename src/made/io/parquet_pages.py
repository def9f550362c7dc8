"""Parquet files as a stream of Arrow tables, whose memory is bounded before anything is decoded.

A page is the unit of decompression, so that a small file can hold a page of gigabytes, and a page of a few bytes can
hold millions of values. The headers of all pages, which are not compressed, say how large they are.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from made.errors import DataError
from made.io.checks import check_names, check_size, check_types, is_text, limit_bytes, parsing

AT_ONCE = 1 << 25  # bytes to decode at once
PAGES = 1 << 28  # bytes of the largest page of each column, together; more if there are many columns
PAGE = 1 << 22  # bytes of a page that no writer exceeds in columns of numbers
DICTIONARY = (2, 8)  # encodings, by number
DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 6, 7


def parquet_tables(handle: BinaryIO, name: str, rows: int | None) -> Iterator[pa.Table]:
    """The rows of a Parquet file in tables of at most ``rows`` rows; None to read all rows at once."""
    with parsing(name, "Parquet"):
        file = parquet.ParquetFile(handle, buffer_size=1 << 16, pre_buffer=False)
        schema, metadata = file.schema_arrow, file.metadata
        check_types(schema, name)
        check_names(schema.names, name)
        if rows is None:
            groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
            total = max(metadata.num_rows, sum(group.num_rows for group in groups)) * len(schema) * 8
            check_size(max(total, sum(group.total_byte_size for group in groups)), name)
        bounds = list(_bounds(handle, schema))
        at_once = max((each.pages for each in bounds), default=0)
        if at_once > (limit := min(max(PAGES, PAGE * len(schema)), limit_bytes())):
            raise DataError(
                f"{name} would take {at_once:,} bytes for one page of each column, more than the limit of {limit:,}: "
                "write it with smaller pages or row groups."
            )
        of_row = max((each.row + _longest(handle, group, each.texts) for group, each in enumerate(bounds)), default=1)
        check_size(of_row, f"a row of {name}")
        count = max(1, min(rows or metadata.num_rows, AT_ONCE // of_row, 1 << 17))
        for batch in file.iter_batches(batch_size=count, use_threads=False):
            table = pa.Table.from_batches([batch])
            table.validate(full=True)
            yield table


def _longest(handle: BinaryIO, group: int, texts: list[str]) -> int:
    """The bytes of the longest entries of the dictionaries of a row group, together."""
    if not texts:
        return 0
    file = parquet.ParquetFile(handle, read_dictionary=texts, buffer_size=1 << 16, pre_buffer=False)
    row = next(file.iter_batches(batch_size=1, row_groups=[group], columns=texts, use_threads=False))
    return sum(pc.max(pc.binary_length(column.dictionary)).as_py() or 0 for column in row.columns)


class _Bounds(NamedTuple):
    pages: int  # bytes of one page of each column
    row: int  # bytes of a row, without texts in dictionaries
    texts: list[str]  # columns of text with a dictionary


def _bounds(handle: BinaryIO, schema: pa.Schema) -> Iterator[_Bounds]:
    """What each row group takes, from the headers of its pages."""
    # Not from pyarrow, which aborts the process where a damaged footer lacks what it looks for.
    handle.seek(-8, io.SEEK_END)
    length = int.from_bytes(handle.read(4), "little")
    handle.seek(-8 - length, io.SEEK_END)
    for group in _Thrift(handle.read(length)).row_groups():
        pages, row, texts = 0, 0, []
        for field, column in zip(schema, group[1], strict=True):
            largest, dictionary, density, encodings = 0, 0, 16, []
            for page in _pages(handle, column[3]):
                if page.values is None:
                    dictionary = max(dictionary, page.size)
                    continue
                size, values = page.size, max(page.values, 1)
                encodings.append(page.encoding)
                if page.encoding in (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY):
                    size += 16 * values  # the lengths of all values are decoded at once
                # pyarrow keeps the dictionary of a column until the row group ends.
                kept = pa.types.is_dictionary(field.type) and page.encoding not in DICTIONARY
                largest = largest + size if kept else max(largest, size)
                if page.encoding == DELTA_BYTE_ARRAY:
                    values = 1  # each value may repeat all of the page before it as its prefix
                density = max(density, -(-page.size // values))
            if dictionary and is_text(field.type.value_type if pa.types.is_dictionary(field.type) else field.type):
                if encodings and encodings[0] in DICTIONARY:
                    texts.append(field.name)
                else:  # the dictionary cannot be looked at
                    density = max(density, dictionary)
            pages, row = pages + largest + dictionary, row + density
        yield _Bounds(pages, row, texts)


class _Page(NamedTuple):
    size: int  # decompressed and compressed bytes together
    values: int | None  # None for a dictionary
    encoding: int


def _pages(handle: BinaryIO, chunk: dict[int, Any]) -> Iterator[_Page]:
    """The pages of a column of a row group, from their headers. Keys are the field numbers of ``parquet.thrift``."""
    total, place = chunk[5], min(chunk[9], chunk.get(11) or chunk[9])
    end, seen = place + chunk[7], 0
    while place < end and seen < total:
        header, length = _header_at(handle, place)
        decompressed, compressed = header[2], header[3]
        if min(decompressed, compressed) < 0:
            raise ValueError("a page has a negative size")
        # Fields 5 and 8 are data pages of version 1 and 2, whose encodings are fields 2 and 4.
        data, encoding = (header[5], 2) if 5 in header else (header.get(8), 4)
        yield _Page(decompressed + compressed, data and data[1], data[encoding] if data else 0)
        seen += data[1] if data else 0
        place += length + compressed


def _header_at(handle: BinaryIO, place: int) -> tuple[dict[int, Any], int]:
    for size in (1 << 9, 1 << 14, 1 << 24):  # a header may contain the least and the greatest text of its page
        handle.seek(place)
        thrift = _Thrift(handle.read(size))
        try:
            return thrift.struct(), thrift.place
        except IndexError:
            continue
    raise ValueError("a page has no header")


class _Thrift:
    """Reads the compact protocol of Thrift, which the metadata of a Parquet file is written in."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def struct(self) -> dict[int, Any]:
        """The fields of a structure by number; IndexError if it is truncated."""
        return {number: kind == 1 if kind < 3 else self._value(kind) for number, kind in self._fields()}

    def row_groups(self) -> Iterator[dict[int, Any]]:
        """Field 4 of the metadata of a file, a list, one element at a time."""
        for number, kind in self._fields():
            if number == 4:
                yield from (self._value(each) for each in self._elements())
                return
            self._value(kind)

    def _fields(self) -> Iterator[tuple[int, int]]:
        """The numbers and types of the fields of a structure; a truth value is a type, any other value comes next."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15

    def _elements(self) -> Iterator[int]:
        """The types of the elements of a list."""
        head = self._byte()
        return itertools.repeat(head & 15, self._varint() if head >> 4 == 15 else head >> 4)

    def _byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 63:
                return value

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7 | 8:
                length = 8 if kind == 7 else self._varint()
                self.place += length
                if self.place > len(self.data):
                    raise IndexError
                return self.data[self.place - length : self.place]
            case 9 | 10:
                return [self._value(each) for each in self._elements()]
            case 12:
                return self.struct()
        raise ValueError(f"metadata has a field of type {kind}")
