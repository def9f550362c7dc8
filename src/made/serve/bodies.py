"""Rows in the body of a request: JSON, CSV, Parquet or a stream of Arrow. None of it is trusted."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError

from made.errors import DataError, MadeError
from made.io.checks import check_names, check_types
from made.io.csv_blocks import csv_tables, most_fields
from made.io.parquet_pages import parquet_tables
from made.io.read import decoded_bytes
from made.serve.bounds import Bounds
from made.serve.problems import Problem

__all__ = ["ARROW", "CSV", "JSON", "PARQUET", "Row", "RowsBody", "Scalar", "column_of", "parse_json", "read_table"]

Scalar: TypeAlias = bool | int | float | str | None

JSON, CSV, PARQUET = "application/json", "text/csv", "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
NAME = "the body"
MOST_ERRORS = 100  # of a body of JSON, that are looked at
MOST_COLUMNS = 10_000  # of a body, that the model does not have
EXPANSION = 16  # how many times as large as its limit a body may be in memory


def _scalars(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is. Only the first value that is no scalar is an error: a body can have very many."""
    for name, value in row.items():
        if isinstance(value, (dict, list)):
            what = "Input should be text, a number, true, false or null"
            raise PydanticCustomError("scalar", what, {"column": [name]})
    return row


_SCALAR = {"anyOf": [{"type": kind} for kind in ("boolean", "integer", "number", "string", "null")]}
Row: TypeAlias = Annotated[
    dict[str, Any], AfterValidator(_scalars), WithJsonSchema({"type": "object", "additionalProperties": _SCALAR})
]


class RowsBody(BaseModel):
    """Rows as objects: values by the name of the column. What is null or left out is a missing value."""

    model_config = ConfigDict(extra="forbid")

    rows: Annotated[list[Row], FailFast()]


def parse_json(kind: type[BaseModel], content: bytes) -> Any:
    """A body of JSON; what does not fit is a problem that names the place."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        if (count := error.error_count()) > MOST_ERRORS:
            raise Problem("request", f"{NAME} has {count:,} members that are not expected.") from None
        errors = error.errors(include_url=False, include_input=False)
        places = [[*each["loc"], *each.get("ctx", {}).get("column", ())] for each in errors]
        found = [{"place": place, "message": each["msg"]} for place, each in zip(places, errors, strict=True)]
        place = places[0]
        row = place[1] if place[:1] == ["rows"] and len(place) > 1 else None
        column = place[-1] if "column" in errors[0].get("ctx", {}) else None
        message = f"{'.'.join(map(str, place)) or NAME}: {found[0]['message']}."
        raise Problem("request", message, errors=found[:10], row=row, column=column) from None


def read_table(media_type: str, content: bytes, names: Sequence[str], bounds: Bounds) -> pa.Table:
    """The rows of a body; columns of objects that are left out everywhere are added.

    Arguments:
        media_type: the type of the body.
        content: the body.
        names: the columns of the model.
        bounds: how many rows are allowed.
    """
    if media_type == JSON:
        rows = parse_json(RowsBody, content).rows
        _check_rows(len(rows), bounds)
        return _of_objects(rows, names)
    if media_type == CSV and (columns := most_fields(content)) > len(names) + MOST_COLUMNS:
        raise Problem("too-many-columns", f"the body has {columns:,} columns, the model {len(names):,}.")
    parts = {CSV: _csv, PARQUET: _parquet, ARROW: _arrow}[media_type](io.BytesIO(content))
    tables, count, size = list[pa.Table](), 0, 0
    for table in parts:
        count, size = count + len(table), size + sum(map(_bytes_in_views, table.columns))
        _check_rows(count, bounds)
        _check_size(size, bounds)
        usual = pa.table([_without_views(column) for column in table.columns], names=table.column_names)
        size += decoded_bytes(usual)
        _check_size(size, bounds)
        tables.append(usual)
    if not count:
        raise DataError("the body has no rows.")
    return pa.concat_tables(tables)


def _check_rows(count: int, bounds: Bounds) -> None:
    if count > bounds.rows:
        raise Problem("too-many-rows", f"the body has more than {bounds.rows:,} rows, the limit of the server.")


def _check_size(size: int, bounds: Bounds) -> None:
    if size > (most := EXPANSION * bounds.body):
        raise Problem("body-too-large", f"the body takes more than {most:,} bytes in memory.")


def _csv(handle: io.BytesIO) -> Iterator[pa.Table]:
    return csv_tables(handle, NAME)


def _parquet(handle: io.BytesIO) -> Iterator[pa.Table]:
    return parquet_tables(handle, NAME, 1024)


def _of_objects(rows: Sequence[dict[str, Scalar]], names: Sequence[str]) -> pa.Table:
    if not rows:
        raise DataError("the body has no rows.")
    known = set(names)
    for number, row in enumerate(rows):
        if unknown := next((name for name in row if name not in known), None):
            raise DataError(
                f"the model has no column {unknown!r}: the columns are {', '.join(names[:20])}.",
                row=number,
                column=unknown,
            )
    return pa.table([column_of(name, [row.get(name) for row in rows]) for name in names], names=list(names))


def column_of(name: str, values: Sequence[Scalar]) -> pa.Array:
    """Values of one type as an array; whole and real numbers are numbers."""
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text"}
    first = next((value for value in values if value is not None), None)
    for row, value in enumerate(values):
        if value is not None and kinds[type(value)] != kinds[type(first)]:
            raise DataError(
                f"column {name!r}: {value!r} is {kinds[type(value)]}, where a row before it has "
                f"{kinds[type(first)]}: give values of one type, or null for a missing value.",
                row=row,
                column=name,
            )
    if any(type(value) is float for value in values):
        values = [None if value is None else float(value) for value in values]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, OverflowError, UnicodeError):
        raise DataError(f"column {name!r}: a value cannot be stored in 64 bits, or is not Unicode.") from None


def _arrow(handle: io.BytesIO) -> Iterator[pa.Table]:
    """The batches of a stream. Compressed ones are refused: what they expand to is not known before."""
    try:
        for message in pa.ipc.MessageReader.open_stream(handle):
            if _is_compressed(message.metadata.to_pybytes()):
                raise DataError("the body is a compressed stream of Arrow: send it without compression.")
        handle.seek(0)
        with pa.ipc.open_stream(handle) as reader:
            check_types(pa.schema([field.with_type(_type_without_views(field.type)) for field in reader.schema]), NAME)
            check_names(reader.schema.names, NAME)
            for batch in reader:
                batch.validate(full=True)
                yield pa.Table.from_batches([batch])
    except MadeError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError, LookupError, struct.error) as error:
        raise DataError(f"the body is not a stream of Arrow: {str(error)[:500]}") from None


# The text of polars is in views: 16 bytes for each value, its length first, and buffers that values may share.


def _type_without_views(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _type_without_views(kind.value_type), kind.ordered)
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def _bytes_in_views(column: pa.ChunkedArray) -> int:
    """How many bytes the values of views take when none are shared."""
    views = [
        chunk.dictionary if isinstance(chunk, pa.DictionaryArray) else chunk
        for chunk in column.chunks
        if column.type != _type_without_views(column.type)
    ]
    lengths = [np.frombuffer(each.buffers()[1], np.int32).reshape(-1, 4)[:, 0] for each in views if len(each)]
    return sum(int(each.clip(min=0).sum(dtype=np.int64)) for each in lengths)


def _without_views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _type_without_views(column.type)
    if kind == column.type or not pa.types.is_dictionary(kind):
        return column.cast(kind)
    chunks = [(each.indices, each.dictionary.cast(kind.value_type)) for each in column.chunks]
    return pa.chunked_array([pa.DictionaryArray.from_arrays(*each, ordered=kind.ordered) for each in chunks], kind)


def _is_compressed(metadata: bytes) -> bool:
    """Whether a message is a batch with compressed buffers, by the fields of its flatbuffer (`Message.fbs`)."""

    def number(form: str, place: int) -> int:
        return int(struct.unpack_from(form, metadata, place)[0])

    def field(table: int, index: int) -> int:
        """The place of a field of a table; 0 if it is not there."""
        entries = table - number("<i", table)
        there = 4 + 2 * index < number("<H", entries)
        offset = number("<H", entries + 4 + 2 * index) if there else 0
        return table + offset if offset else 0

    message = number("<I", 0)
    kind, header = field(message, 1), field(message, 2)
    if not kind or not header or metadata[kind] not in (2, 3):  # a batch of a dictionary, or of rows
        return False
    table = header + number("<I", header)
    if metadata[kind] == 2:
        data = field(table, 1)
        table = data + number("<I", data) if data else 0
    return bool(table and field(table, 3))
