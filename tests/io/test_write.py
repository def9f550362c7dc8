"""Writing: CSV, Parquet and arrays, in pieces, complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from data_files import TABLE, write
from made.errors import DataError
from made.io.read import read
from made.io.write import Writer

FEW = pa.table({"a": [1, None, 3], "b, c": ["x", 'say "hi"', None], "d": [0.5, 1.0, None]})


def test_csv_is_quoted_only_where_it_must_be(tmp_path) -> None:
    write(TABLE.select([0, 1, 2, 4, 5]).slice(0, 2), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == (
        'plain,"a ""name"", in\ntwo lines",größe \N{SNOWMAN},whole,flag\n'
        '1,"","a,b",1.0,true\n'
        ',,"say ""no""",-0.0,\n'
    )  # fmt: skip
    floats = np.array([[0.1, 16777216], [1 / 3, np.nan]], np.float32)
    write(floats, tmp_path / "x.csv", names=["a", "b"])
    assert (tmp_path / "x.csv").read_text() == "a,b\n0.1,16777216.0\n0.33333334,\n"
    write(np.array([[1], [2]], np.uint8), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "x0\n1\n2\n"
    write(pa.table({"lone": pa.array([None, 1])}), tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "lone\nNA\n1\n"


def test_a_column_of_categories_is_written_as_its_values(tmp_path) -> None:
    table = pa.table({"a": pa.array(["x", None, "", "x"]).dictionary_encode()})
    write(table, tmp_path / "x.csv")
    assert read(tmp_path / "x.csv")["a"].to_pylist() == ["x", None, "", "x"]
    write(table, tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet").equals(table)


def test_a_table_of_numbers_is_an_array_and_an_array_a_table(tmp_path) -> None:
    write(pa.table({"a": [1, None], "b": [True, False], "c": [None, True], "d": [None, None]}), tmp_path / "x.npy")
    expected = [[1, 1, np.nan, np.nan], [np.nan, 0, 1, np.nan]]
    np.testing.assert_array_equal(read(tmp_path / "x.npy"), expected)
    write(np.array([[1, 2], [3, 4]]), tmp_path / "x.parquet", names=["a", "b"])
    assert read(tmp_path / "x.parquet").to_pydict() == {"a": [1, 3], "b": [2, 4]}
    write(np.array([["x", "1"], ["", "2"]]), tmp_path / "x.csv")
    assert read(tmp_path / "x.csv").to_pydict() == {"x0": ["x", ""], "x1": [1, 2]}


def test_unsupported_tables_are_refused(tmp_path) -> None:
    for table, target, text in [
        (np.zeros(3), "x.csv", "should be 2-D"),
        (np.array([[None]]), "x.npy", "of numbers or text"),
        (np.array([["a"]]), "x.npy", "not numbers"),
        (pa.table({"a": ["b"]}), "x.npz", "not numbers"),
        (pa.table({"a": [[1]]}), "x.csv", "column 'a': list"),
        (pa.table({"a": [b"\xff"]}), "x.csv", "column 'a': binary"),
        (pa.table([[1], [1]], names=["a", "a"]), "x.csv", "'a' more than once"),
        (pa.table({}), "x.csv", "no columns"),
        (np.zeros((1, 1)), "x.txt", "x.txt' should end in .csv"),
        (np.zeros((1, 1)), "no/folder/x.csv", "cannot be written: No such file"),
        (np.zeros((1, 1)), "folder.csv", "exists and is not a file"),
    ]:
        (tmp_path / "folder.csv").mkdir(exist_ok=True)
        with pytest.raises(DataError, match=text):
            write(table, tmp_path / target)
    assert os.listdir(tmp_path) == ["folder.csv"]


def test_standard_output_is_csv(capsysbinary) -> None:
    write(np.array([[1, 2]]), "-", names=["a", "b"])
    assert capsysbinary.readouterr().out == b"a,b\n1,2\n"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_written_in_pieces_is_what_is_written_at_once(tmp_path, suffix) -> None:
    with Writer(tmp_path / f"pieces{suffix}") as writer:
        for first in range(3):
            writer.write(FEW.slice(first, 1))
        assert writer.rows == 3
    write(FEW, tmp_path / f"whole{suffix}")
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
            writer.write(FEW)
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
        Writer(path).write(FEW)


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
