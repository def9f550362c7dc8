"""Tables in pieces: put together they are what is read at once, and memory does not grow with the table."""

from __future__ import annotations

import io
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from data_files import write
from made.errors import DataError
from made.io import csv_blocks, parquet_pages
from made.io import read as reading
from made.io.read import read, stream
from made.io.write import Writer

VALUES = ["", "0", "1", "2", "-3", "1.5", "true", "False", "NA", '"NA"', '""', "text", '"a,b"', '"two\nlines"', "1e3"]
VALUES += ["2024-02-29", "2024-02-29 10:00:00", "2024-02-29 10:00:00.5", "2024-02-29T10:00:00Z", "12:30:00", "99" * 15]
VALUES += [
    "9999-12-31",
    "9999-12-31 10:00:00",
    "9999-12-31 10:00:00.5",
    "9999-12-31T10:00:00.25Z",
    '"2024-02-29 10:00"',
]


@pytest.fixture
def small(monkeypatch) -> None:
    """Blocks of a few lines, so that what comes later is not seen at first."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 64)
    monkeypatch.setattr(csv_blocks, "LONGEST", 256)


def together(path, rows: int) -> pa.Table:
    pieces = list(stream(path, rows))
    assert all(len(piece) == rows for piece in pieces[:-1])
    assert 0 < len(pieces[-1]) <= rows
    return pa.concat_tables(pieces)


@pytest.mark.usefixtures("small")
@given(
    columns=st.lists(
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=4).flatmap(
            lambda some: st.lists(st.sampled_from(some), min_size=12, max_size=12)
        ),
        min_size=2,
        max_size=3,
    ),
    rows=st.integers(1, 7),
)
@example(columns=[["1"] * 11 + ["1.5"], ["1"] * 11 + ["true"], ["1"] * 11 + ["text"], [""] * 11 + ["1"]], rows=5)
@example(columns=[["5"] * 11 + ["true"], ["2024-02-29"] * 11 + ["2024-02-29 10:00:00.5"]], rows=2)
@example(columns=[["9999-12-31 10:00:00.5"] * 11 + ['""'], ["9999-12-31 10:00:00.5Z"] * 11 + ["x"], ["1"] * 12], rows=3)
@example(
    columns=[["2024-02-29 10:00:00"] * 11 + ["9999-12-31 10:00:00.5"], ["NA", "9999-12-31 10:00:00.5Z"] * 6], rows=3
)
@example(columns=[['"1"'] * 11 + ['""'], ['"x"'] * 11 + ['""'], ["1"] * 12], rows=3)
def test_pieces_of_a_file_are_the_file(tmp_path_factory, columns, rows) -> None:
    """Whatever comes after the first block, types are those of all rows."""
    path = tmp_path_factory.mktemp("pieces") / "x.csv"
    names = ",".join(f"column{d}" for d in range(len(columns)))
    path.write_text("\n".join([names, *map(",".join, zip(*columns, strict=True))]) + "\n")
    assert together(path, rows).equals(read(path))


def test_parquet_and_arrays_come_in_pieces(tmp_path) -> None:
    table = pa.table({"a": [1, None, 3, 4, 5], "b": ["x", "y", None, "x", "y"], "c": pa.array([0.5] * 5, pa.float32())})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    assert together(tmp_path / "x.parquet", 3).equals(read(tmp_path / "x.parquet"))
    assert [len(piece) for piece in stream(tmp_path / "x.parquet", 3)] == [3, 2]
    np.savez(tmp_path / "x.npz", rows=np.arange(10).reshape(5, 2))
    assert [piece.tolist() for piece in stream(f"{tmp_path}/x.npz:rows", 4)] == [
        [[0, 1], [2, 3], [4, 5], [6, 7]],
        [[8, 9]],
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
def test_standard_input_comes_in_pieces(tmp_path, monkeypatch, suffix) -> None:
    write(np.arange(12.0).reshape(6, 2), tmp_path / f"x{suffix}")
    content = (tmp_path / f"x{suffix}").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert [len(piece) for piece in stream("-", 4)] == [4, 2]
    monkeypatch.setenv("MADE_MAX_BYTES", "10")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with pytest.raises(DataError, match=r"standard input has more than the limit"):
        next(stream("-", 4))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no rows"),
        (b"a,b\n", "no rows"),
        (b"a,b\n" + b"1,2\n" * 50 + b"3\n", r"row 52, counting the header, has 1 fields where the header has 2"),
        (b"a,a\n1,2\n", "more than once"),
        (b"a;b\n1;2\n", "semicolons"),
        (b"a,b\n1," + b"x" * 1000 + b"\n", "more than 256 bytes"),
        (b"a,b\n\xff,2\n", "line 2: this is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, content, said) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(DataError, match=said):
        list(stream(tmp_path / "x.csv", 10))


@pytest.mark.usefixtures("small")
def test_a_row_may_be_longer_than_a_block(tmp_path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 30 + f"3,{'x' * 150}\n")
    assert together(tmp_path / "x.csv", 7).equals(read(tmp_path / "x.csv"))


def test_other_faults_are_sentences_too(tmp_path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 is not enough")
    for path, said in ((tmp_path / "x.parquet", "no Parquet file"), (tmp_path / "no.csv", "does not exist")):
        with pytest.raises(DataError, match=said):
            list(stream(path, 10))
    with pytest.raises(ValueError, match="'rows' should be at least 1"):
        next(stream(tmp_path / "no.csv", 0))


def test_a_long_text_that_is_repeated_is_counted_in_full(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reading, "PIECE", 100_000)
    monkeypatch.setattr(parquet_pages, "AT_ONCE", 100_000)
    parquet.write_table(pa.table({"a": ["x" * 1000] * 2000}), tmp_path / "x.parquet")
    pieces = list(stream(tmp_path / "x.parquet", 500))
    assert sum(map(len, pieces)) == 2000
    assert max(piece.nbytes for piece in pieces) <= 200_000
    monkeypatch.setenv("MADE_MAX_BYTES", "900")
    with pytest.raises(DataError, match="would take"):
        next(stream(tmp_path / "x.parquet", 500))


TABLE = pa.table({"a": [1, None, 3], "b, c": ["x", 'say "hi"', None], "d": [0.5, 1.0, None]})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_written_in_pieces_is_what_is_written_at_once(tmp_path, suffix) -> None:
    with Writer(tmp_path / f"pieces{suffix}") as writer:
        for first in range(3):
            writer.write(TABLE.slice(first, 1))
        assert writer.rows == 3
    write(TABLE, tmp_path / f"whole{suffix}")
    assert read(tmp_path / f"pieces{suffix}").equals(read(tmp_path / f"whole{suffix}"))
    if suffix == ".csv":
        assert (tmp_path / "pieces.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_arrays_are_written_in_pieces(tmp_path, suffix) -> None:
    rows = np.arange(6.0).reshape(3, 2)
    with Writer(tmp_path / f"x{suffix}", names=["a", "b"]) as writer:
        for row in rows:
            writer.write(row[None])
    found = read(tmp_path / f"x{suffix}")
    assert np.array_equal(found if suffix != ".csv" else found.to_pandas().to_numpy(), rows)


def test_a_file_appears_when_it_is_complete_or_not_at_all(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("before")

    def fail_halfway() -> None:
        with Writer(path) as writer:
            writer.write(TABLE)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail_halfway()
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["x.csv"]
    with pytest.raises(DataError, match=r"cannot be written"), Writer(tmp_path / "no" / "x.csv"):
        pass
    with pytest.raises(DataError, match=r"should end in"):
        Writer(tmp_path / "x.txt")
    with pytest.raises(ValueError, match="'with' statement"):
        Writer(path).write(TABLE)


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may become larger than this, which fails as a full disk does."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".npz"])
def test_a_full_disk_leaves_nothing_behind(tmp_path, suffix) -> None:
    rows = np.random.default_rng(0).random((20_000, 4))
    path = tmp_path / f"x{suffix}"

    def in_pieces() -> None:
        with Writer(path) as writer:
            for piece in np.split(rows, 10):
                writer.write(piece)

    for action in (in_pieces, lambda: write(rows, path)):
        with full_disk(1 << 16), pytest.raises(DataError, match=r"x\.\w+' cannot be written: .*(large|full)"):
            action()
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("event", [KeyboardInterrupt(), SystemExit(143), OSError("full")], ids=repr)
@pytest.mark.parametrize(
    ("suffix", "function"), [(".parquet", "pyarrow.parquet.ParquetWriter.close"), (".npz", "numpy.savez_compressed")]
)
def test_what_ends_the_last_write_leaves_nothing_behind(tmp_path, monkeypatch, suffix, function, event) -> None:
    def end(*arguments, **options):
        raise event

    def stop_at_the_end() -> None:
        with Writer(tmp_path / f"x{suffix}") as writer:
            writer.write(np.zeros((3, 2)))
            monkeypatch.setattr(function, end)

    with pytest.raises(DataError if isinstance(event, OSError) else type(event)):
        stop_at_the_end()
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


def test_of_two_errors_the_first_counts(tmp_path, monkeypatch) -> None:
    def fail(self):
        raise OSError("the disk is full")

    def stop_halfway() -> None:
        with Writer(tmp_path / "x.parquet") as writer:
            writer.write(np.zeros((3, 2)))
            monkeypatch.setattr(parquet.ParquetWriter, "close", fail)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stop_halfway()
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


def test_columns_of_a_parquet_file_keep_their_types(tmp_path) -> None:
    with Writer(tmp_path / "x.parquet") as writer:
        writer.write(pa.table({"a": [0.5]}))
        writer.write(pa.table({"a": [1]}))
    assert read(tmp_path / "x.parquet")["a"].to_pylist() == [0.5, 1.0]
    with Writer(tmp_path / "y.parquet") as writer:
        writer.write(pa.table({"a": [1]}))
        with pytest.raises(DataError, match=r"types of the columns change after row 1"):
            writer.write(pa.table({"a": [0.5]}))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_memory_is_bounded_by_the_piece(tmp_path, monkeypatch, suffix) -> None:
    """A table of four times as many rows takes no more, in Python or in arrow, to be copied piece by piece."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 14)
    most = []
    for rows in (40_000, 160_000):
        table = pa.table({"number": np.arange(rows), "text": [f"text {i}" for i in range(rows)]})
        if suffix == ".csv":
            write(table, tmp_path / "in.csv")
        else:
            parquet.write_table(table, tmp_path / "in.parquet", row_group_size=2000)
        del table
        before, peak = pa.total_allocated_bytes(), 0
        tracemalloc.start()
        with Writer(tmp_path / f"out{suffix}") as writer:
            for piece in stream(tmp_path / f"in{suffix}", 500):
                writer.write(piece)
                peak = max(peak, pa.total_allocated_bytes() - before)
        most.append(peak + tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert writer.rows == rows
    assert most[1] < 1.5 * most[0]
