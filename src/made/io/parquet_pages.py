"""Parquet files as a stream of Arrow tables, whose memory is bounded before anything is decoded.

A page is the unit of decompression, so that a small file can hold a page of gigabytes, and a page of a few bytes can
hold millions of values. The headers of all pages, which are not compressed, say how large they are.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from made.errors import DataError
from made.io.checks import check_names, check_size, check_types, is_text, limit_bytes, parsing

__all__ = ["parquet_tables"]

AT_ONCE = 1 << 26  # bytes to decode at once
PAGES = 1 << 28  # bytes of the largest page of each column, together; more if there are many columns
PAGE = 1 << 22  # bytes of a page that no writer exceeds in columns of numbers
DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 6, 7  # encodings of text


def parquet_tables(handle: BinaryIO, name: str, rows: int | None) -> Iterator[pa.Table]:
    """The rows of a Parquet file in tables of at most ``rows`` rows; None if all of them are to be kept in memory."""
    with parsing(name, "Parquet"):
        file = parquet.ParquetFile(handle)
        schema, metadata = file.schema_arrow, file.metadata
        check_types(schema, name)
        check_names(schema.names, name)
        at_once, of_row, delta = _bounds(handle)
        if at_once > (limit := min(max(PAGES, PAGE * len(schema)), limit_bytes())):
            raise DataError(
                f"{name} would take {at_once:,} bytes for one page of each column, more than the limit of {limit:,}: "
                "write it with smaller pages or row groups."
            )
        # A long text that is repeated takes little as one entry of a dictionary. pyarrow makes none of delta encodings.
        texts = [field.name for d, field in enumerate(schema) if is_text(field.type) and d not in delta]
        file = parquet.ParquetFile(handle, read_dictionary=texts, buffer_size=1 << 16, pre_buffer=False)
        count = max(1, min(rows or metadata.num_rows, AT_ONCE // of_row, 1 << 17))
        if rows is None:
            groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
            total = max(metadata.num_rows, sum(group.num_rows for group in groups)) * len(schema) * 8
            check_size(max(total, sum(group.total_byte_size for group in groups)), name)
            encoded = [field.name for field in schema if is_text(_plain(field.type))]
            written = file.iter_batches(batch_size=count, columns=encoded, use_threads=False) if encoded else ()
            check_size(total + sum(int(_text_bytes(batch).sum()) for batch in written), name)
        for batch in file.iter_batches(batch_size=count, use_threads=False):
            table = pa.Table.from_batches([batch])
            table.validate(full=True)
            for part in _parts(table, name):
                yield part.cast(schema).combine_chunks()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _text_bytes(table: pa.Table | pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many bytes the texts of each row take once dictionaries are written out. Shape: (rows,)."""
    total = np.zeros(len(table), dtype=np.int64)
    for column in table.columns:
        if is_text(_plain(column.type)):
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            lengths = [_lengths(chunk).fill_null(0).to_numpy(zero_copy_only=False) for chunk in chunks]
            total += np.concatenate(lengths)
    return total


def _lengths(texts: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(texts.type):
        return pc.take(pc.binary_length(texts.dictionary), texts.indices)
    return pc.binary_length(texts)


def _parts(table: pa.Table, name: str) -> Iterator[pa.Table]:
    """The table in parts that take a bounded number of bytes once their texts are written out."""
    ends = np.cumsum(_text_bytes(table))
    most, begin = min(AT_ONCE, limit_bytes()), 0
    while begin < len(table):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + most, side="right")), begin + 1)
        if end == begin + 1:
            check_size(int(ends[begin]) - before, f"a row of {name}")
        yield table.slice(begin, end - begin)
        begin = end


def _bounds(handle: BinaryIO) -> tuple[int, int, set[int]]:
    """From page headers: the most bytes of one page of each column, the most bytes of a row, delta-encoded columns."""
    at_once, of_row, delta = 0, 1, set()
    # Not from pyarrow, which aborts the process where a damaged footer lacks what it looks for.
    handle.seek(-8, io.SEEK_END)
    length = int.from_bytes(handle.read(4), "little")
    handle.seek(-8 - length, io.SEEK_END)
    for group in _Thrift(handle.read(length)).row_groups():
        pages, row = 0, 0
        for d, column in enumerate(group[1]):
            largest, dictionary, density = 0, 0, 16
            for page in _pages(handle, column[3]):
                if page.values is None:
                    dictionary = max(dictionary, page.size)
                    continue
                size, values = page.size, max(page.values, 1)
                if page.encoding in (DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY):
                    delta.add(d)
                    size += 16 * values  # the lengths of all values are decoded at once
                largest = max(largest, size)
                if page.encoding == DELTA_BYTE_ARRAY:
                    values = 1  # each value may repeat all of the page before it as its prefix
                density = max(density, -(-page.size // values))
            pages, row = pages + largest + dictionary, row + density
        at_once, of_row = max(at_once, pages), max(of_row, row)
    return at_once, of_row, delta


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
        """The fields of a structure by number; IndexError if it goes on beyond the data."""
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._integer()
            fields[number] = kind & 15 == 1 if kind & 15 < 3 else self._value(kind & 15)
        return fields

    def row_groups(self) -> Iterator[dict[int, Any]]:
        """Field 4 of the metadata of a file, a list, one element at a time."""
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._integer()
            if number == 4:
                yield from (self._value(each) for each in self._elements())
                return
            self._value(kind & 15)

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
