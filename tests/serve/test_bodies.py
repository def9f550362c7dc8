"""Bodies that are wrong or hostile: refused with a sentence, before they cost anything."""

from __future__ import annotations

import io
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from made.errors import DataError
from made.serve.bodies import ARROW, CSV, JSON, PARQUET, read_table
from made.serve.bounds import Bounds
from made.serve.problems import Problem
from people import people

NAMES = people().column_names


def arrow(table: pa.Table, **options) -> bytes:
    handle = io.BytesIO()
    with pa.ipc.new_stream(handle, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return handle.getvalue()


def as_parquet(table: pa.Table) -> bytes:
    handle = io.BytesIO()
    parquet.write_table(table, handle)
    return handle.getvalue()


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_compressed_stream_is_refused(codec, kind) -> None:
    table = pa.table({"a": pa.array(["x" * 100] * 1000, kind)})
    assert read_table(ARROW, arrow(table), ["a"], Bounds()).num_rows == 1000
    with pytest.raises(DataError, match="without compression"):
        read_table(ARROW, arrow(table, compression=codec), ["a"], Bounds())


def test_rows_that_take_no_bytes_are_counted() -> None:
    """A column of nulls has a length, and no content."""
    with pytest.raises(Problem) as caught:
        read_table(ARROW, arrow(pa.table({"a": pa.nulls(2**31 - 1)})), ["a"], Bounds())
    assert caught.value.kind == "too-many-rows"


def test_a_file_that_expands_is_refused() -> None:
    content = as_parquet(pa.table({"a": pa.array(["x" * (1 << 16)] * 5000)}))
    assert len(content) < 1 << 18
    with pytest.raises((Problem, DataError)):
        read_table(PARQUET, content, ["a"], Bounds(body=1 << 18))


def test_nested_columns_are_refused() -> None:
    for kind in (ARROW, PARQUET):
        content = (arrow if kind == ARROW else as_parquet)(pa.table({"a": [[1], [2]]}))
        with pytest.raises(DataError, match="not a type"):
            read_table(kind, content, ["a"], Bounds())


@pytest.mark.parametrize("kind", [ARROW, PARQUET, CSV])
def test_damaged_bodies_are_read_or_refused(kind) -> None:
    table, random = people().slice(0, 20), np.random.default_rng(0)
    content = {ARROW: arrow, PARQUET: as_parquet, CSV: lambda rows: rows.to_pandas().to_csv().encode()}[kind](table)
    for _ in range(150):
        damaged = bytearray(content)
        for place in random.integers(len(damaged), size=random.integers(1, 4)):
            damaged[place] = random.integers(256)
        cut = bytes(damaged[: random.integers(len(damaged))] if random.random() < 0.3 else damaged)
        with suppress(DataError, Problem):
            read_table(kind, cut, NAMES, Bounds())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"rows": [{"age": 1}, {"age": "x"}]}', "of one type"),
        (b'{"rows": [{"age": 1e999}, {"agee": 1}]}', "no column 'agee'"),
        (b'{"rows": [{"age": 99999999999999999999}]}', "64 bits"),
        (b'{"rows": []}', "no rows"),
    ],
)
def test_objects_that_cannot_be_used(content, said) -> None:
    with pytest.raises(DataError, match=said):
        read_table(JSON, content, NAMES, Bounds())


def test_whole_and_real_numbers_are_numbers() -> None:
    found = read_table(JSON, b'{"rows": [{"age": 1}, {"age": 2.5}, {}]}', NAMES, Bounds())
    assert found["age"].to_pylist() == [1.0, 2.5, None]
