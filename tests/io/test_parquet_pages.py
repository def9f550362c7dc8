"""Parquet: what would take too much memory is refused or read in small parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from made.errors import DataError
from made.io import parquet_pages
from made.io import read as reading
from made.io.read import read, stream


@pytest.fixture
def small_limit(monkeypatch) -> None:
    monkeypatch.setenv("MADE_MAX_BYTES", "1000000")


def test_a_parquet_bomb_is_refused_before_it_is_read(tmp_path, small_limit) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": pa.array(np.zeros(10_000_000, bool))}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="would take 80,000,000 bytes, more than the limit of 1,000,000"):
        read(path)


def test_a_long_text_that_is_repeated_is_refused_before_it_is_written_out(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MADE_MAX_BYTES", "50000000")
    path = tmp_path / "x.parquet"
    texts = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), pa.array(["x" * 1_000_000]))
    for stored in (True, False):  # as a dictionary, as text
        parquet.write_table(pa.table({"a": texts}), path, store_schema=stored)
        assert path.stat().st_size < 200_000
        with pytest.raises(DataError, match=r"would take .* bytes, more than the limit of 50,000,000"):
            read(path)


def test_parquet_of_other_things_is_refused(tmp_path) -> None:
    path = tmp_path / "x.parquet"
    for column, text in [
        (pa.array([[1]]), "column 'a': list"),
        (pa.array([{"b": 1}]), "column 'a': struct"),
        (pa.array([b"\xff"]), "column 'a': binary"),
        (pa.array([0], pa.timestamp("us", "+99:99")), r"column 'a': the time zone '\+99:99' is not known here"),
        (pa.array([], pa.int64()), "has no rows"),
    ]:
        parquet.write_table(pa.table({"a": column}), path)
        with pytest.raises(DataError, match=text):
            read(path)
    parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    with pytest.raises(DataError, match="has 'a' more than once"):
        read(path)
    parquet.write_table(pa.table({}), path)
    with pytest.raises(DataError, match=r"has no columns|damaged"):
        read(path)
    damaged = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], "<i4")), pa.py_buffer(b"\xff")]
    )
    parquet.write_table(pa.table({"a": damaged}), path)
    with pytest.raises(DataError, match=r"is damaged, or not a Parquet file: .*UTF8"):
        read(path)


def test_a_long_text_that_is_repeated_is_counted_in_full(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reading, "PIECE", 100_000)
    monkeypatch.setattr(reading, "ENTRY", 1)
    monkeypatch.setattr(parquet_pages, "AT_ONCE", 100_000)
    parquet.write_table(pa.table({"a": ["x" * 1000] * 2000}), tmp_path / "x.parquet")
    pieces = list(stream(tmp_path / "x.parquet", 500))
    assert sum(map(len, pieces)) == 2000
    assert max(piece.nbytes for piece in pieces) <= 300_000
    monkeypatch.setenv("MADE_MAX_BYTES", "900")
    with pytest.raises(DataError, match="would take"):
        next(stream(tmp_path / "x.parquet", 500))


def long_texts(prefix: str) -> list[str]:
    return [f"{prefix}{row}" + "x" * 10_000 for row in range(200)]


def test_long_texts_are_read_in_pieces_that_take_few_bytes(tmp_path, monkeypatch) -> None:
    """Compressed, the file has a thousandth of the bytes that the texts take."""
    monkeypatch.setattr(reading, "PIECE", 100_000)
    monkeypatch.setattr(reading, "ENTRY", 1)
    monkeypatch.setattr(parquet_pages, "AT_ONCE", 100_000)
    path = tmp_path / "x.parquet"
    table = pa.table({name: long_texts(name) for name in "abc"})
    parquet.write_table(table, path, compression="zstd", write_batch_size=1, data_page_size=20_000)
    sizes = [piece.nbytes for piece in stream(path, 10_000)]
    assert len(sizes) > 20
    assert max(sizes) < 300_000
    assert read(path).equals(table)


def test_pages_that_would_take_too_much_at_once_are_refused_before_they_are_decompressed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(parquet_pages, "PAGES", 1_000_000)
    monkeypatch.setattr(parquet_pages, "PAGE", 1)
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": long_texts("a")}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(DataError, match=r"would take 2,\d\d\d,\d\d\d bytes for one page of each column"):
        next(stream(path, 10))
    assert pa.default_memory_pool().max_memory() - before < 1_000_000


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_encoding_of_text_is_read(tmp_path, encoding, version) -> None:
    table = pa.table({"a": ["one", "onetwo", None, "", "onetwo"] * 50, "b": [1, 2, None, 4, 5] * 50})
    encodings = {"a": encoding}
    parquet.write_table(
        table, tmp_path / "x.parquet", use_dictionary=False, column_encoding=encodings, data_page_version=version
    )
    assert read(tmp_path / "x.parquet").equals(table)


def test_a_prefix_that_is_repeated_is_bounded(tmp_path, monkeypatch) -> None:
    """In this encoding a text of any length takes no byte if it is the one before."""
    monkeypatch.setattr(parquet_pages, "AT_ONCE", 100_000)
    monkeypatch.setattr(reading, "PIECE", 100_000)
    monkeypatch.setattr(reading, "ENTRY", 1)
    path = tmp_path / "x.parquet"
    table = pa.table({"a": ["x" * 10_000] * 2000})
    parquet.write_table(table, path, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"})
    assert path.stat().st_size < 10_000
    pieces = list(stream(path, 10_000))
    assert sum(map(len, pieces)) == 2000
    assert max(piece.nbytes for piece in pieces) < 300_000


def test_a_value_that_is_repeated_a_million_times_takes_no_more_than_a_piece(tmp_path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": np.zeros(5_000_000, np.int64)}), path)
    assert path.stat().st_size < 100_000
    before, most = pa.total_allocated_bytes(), 0
    for piece in stream(path, 10_000):
        most = max(most, pa.total_allocated_bytes() - before)
        assert len(piece) == 10_000
    assert most < 4_000_000


def test_the_longest_text_of_a_dictionary_counts_wherever_it_is(tmp_path, monkeypatch) -> None:
    """The first row has a short one, and the last page is without the dictionary."""
    monkeypatch.setattr(parquet_pages, "AT_ONCE", 100_000)
    path = tmp_path / "x.parquet"
    table = pa.table({"a": ["short", "x" * 10_000] * 1000 + [f"{row}" * 10 for row in range(5000)]})
    for limit in (30_000, 1_000_000):  # with and without a fallback to plain pages
        parquet.write_table(table, path, dictionary_pagesize_limit=limit, write_batch_size=10)
        with path.open("rb") as handle:
            sizes = [piece.nbytes for piece in parquet_pages.parquet_tables(handle, "x", 10_000)]
        assert max(sizes) < 200_000
        assert read(path).equals(table)


def test_a_column_of_categories_with_pages_that_are_none_counts_in_full(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(parquet_pages, "PAGES", 1_000_000)
    monkeypatch.setattr(parquet_pages, "PAGE", 1)
    table = pa.table({"a": pa.array(long_texts("a")).dictionary_encode()})
    parquet.write_table(table, tmp_path / "x.parquet", dictionary_pagesize_limit=20_000, write_batch_size=1)
    with pytest.raises(DataError, match="bytes for one page of each column"):
        next(stream(tmp_path / "x.parquet", 10))
