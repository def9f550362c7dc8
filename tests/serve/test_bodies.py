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


@pytest.mark.parametrize("first", ["a", '"a\n"'])
def test_a_file_of_very_many_columns_is_refused_before_it_is_parsed(first) -> None:
    """Each takes kilobytes, whatever is in it."""
    for count in (10_001, 10_002):
        header = ",".join([first, *(f"c{number}" for number in range(1, count))])
        content = f"{header}\n{',' * (count - 1)}1\n".encode()
        if count == 10_001:
            assert read_table(CSV, content, ["a"], Bounds()).num_columns == count
        else:
            with pytest.raises(Problem) as caught:
                read_table(CSV, content, ["a"], Bounds())
            assert caught.value.kind == "too-many-columns"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"rows": [' + b",".join([b'{"age": [], "job": {}}'] * 10_000) + b"]}", "rows.0.age: Input should be text"),
        (b'{"rows": [{' + b",".join(b'"c%d": []' % each for each in range(10_000)) + b"}]}", "rows.0.c0: Input"),
        (b"{" + b",".join(b'"c%d": 1' % each for each in range(10_000)) + b"}", "10,001 members that are not expected"),
    ],
    ids=["rows", "values", "members"],
)
def test_a_body_with_very_many_errors_is_not_a_list_of_them(content, said) -> None:
    with pytest.raises(Problem, match=said) as caught:
        read_table(JSON, content, NAMES, Bounds())
    assert len(caught.value.facts.get("errors", [])) <= 1


def test_nested_columns_are_refused() -> None:
    for kind in (ARROW, PARQUET):
        content = (arrow if kind == ARROW else as_parquet)(pa.table({"a": [[1], [2]]}))
        with pytest.raises(DataError, match="not a type"):
            read_table(kind, content, ["a"], Bounds())


TEXT = ["Ulm", None, "Jena \N{GRINNING FACE}", "a name of more than 12 bytes"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TEXT, pa.string_view()),
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), pa.array(["Ulm", "Jena"], pa.string_view())),
    ],
)
def test_text_may_be_in_views_as_polars_writes_it(column) -> None:
    found = read_table(ARROW, arrow(pa.table({"a": column})), ["a"], Bounds())
    assert found["a"].to_pylist() == column.to_pylist()
    assert "view" not in str(found.schema)


def shared(text: str, rows: int, kind: str) -> pa.Array:
    """The same text in all rows, stored once."""
    if kind == "dictionary":
        return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), pa.array([text]))
    views = pa.array([text], pa.string_view())
    if kind == "dictionary of views":
        return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), views)
    _, places, *texts = views.buffers()
    return pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(places[:16].to_pybytes() * rows), *texts])


@pytest.mark.parametrize("kind", ["dictionary", "views", "dictionary of views"])
def test_a_text_that_rows_share_is_counted_for_each_of_them(kind) -> None:
    """An answer writes it as often: 8 MiB would become 80 GB."""
    content = {rows: arrow(pa.table({"a": shared("x" * 10_000, rows, kind)})) for rows in (20, 2000)}
    assert read_table(ARROW, content[20], ["a"], Bounds(body=1 << 16)).num_rows == 20
    assert len(content[2000]) < 1 << 16
    with pytest.raises(Problem) as caught:
        read_table(ARROW, content[2000], ["a"], Bounds(body=1 << 16))
    assert caught.value.kind == "body-too-large"


@pytest.mark.parametrize("kind", [ARROW, "views", PARQUET, CSV])
def test_damaged_bodies_are_read_or_refused(kind) -> None:
    table, random = people().slice(0, 20), np.random.default_rng(0)
    if kind == "views":
        texts = [name for name in NAMES if pa.types.is_string(table.schema.field(name).type)]
        for name in texts:
            table = table.set_column(NAMES.index(name), name, table[name].cast(pa.string_view()))
        kind = ARROW
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
