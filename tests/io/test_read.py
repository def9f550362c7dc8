"""The reader: every format, whole and in pieces, from files and standard input."""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from data_files import TABLE, write
from made.errors import DataError
from made.io import csv_blocks, parquet_pages
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
def small_limit(monkeypatch) -> None:
    monkeypatch.setenv("MADE_MAX_BYTES", "1000000")


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    """Blocks of a few lines, so that what comes later is not seen at first."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 64)
    monkeypatch.setattr(csv_blocks, "LONGEST", 256)


def given_input(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def csv_of(tmp_path, content: bytes | str) -> pa.Table:
    (tmp_path / "x.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(tmp_path / "x.csv")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "CSV"])
def test_a_table_is_read_back_as_it_was(tmp_path, suffix) -> None:
    write(TABLE, tmp_path / f"x.{suffix}")
    again = read(str(tmp_path / f"x.{suffix}"))
    if suffix == "parquet":  # which has no whole seconds
        again = again.cast(TABLE.schema)
    assert again.schema.equals(TABLE.schema)
    assert again.equals(TABLE)
    assert os.listdir(tmp_path) == [f"x.{suffix}"]


@given(
    st.lists(st.tuples(st.none() | st.text(), st.none() | st.text(alphabet=',"\r\n \t\ufeff'), st.none() | st.floats()))
)
def test_any_text_and_any_number_are_read_back(tmp_path_factory, rows) -> None:
    path = tmp_path_factory.mktemp("any") / "x.csv"
    texts = [*(row[0] for row in rows), "text"], [*(row[1] for row in rows), "text"]
    # NaN is "not observed", as null is.
    numbers = [*(None if row[2] != row[2] else row[2] for row in rows), 0.5]
    for table in (
        pa.table({"\ufeffa": texts[0], "b": texts[1], "c": numbers}),
        pa.table({"": texts[0]}),
        pa.table({"NA": texts[1]}),
        pa.table({"a\r": numbers}),
    ):
        write(table, path)
        assert read(path).equals(table)


def test_standard_input_is_known_by_its_first_bytes(tmp_path, monkeypatch) -> None:
    array = np.array([[1, 2], [3, 4]])
    for suffix in ("csv", "parquet", "npy", "npz"):
        write(array, tmp_path / f"x.{suffix}")
        given_input(monkeypatch, (tmp_path / f"x.{suffix}").read_bytes())
        found = read("-")
        assert (array if isinstance(found, np.ndarray) else np.stack(found.columns, axis=1)).tolist() == array.tolist()
    given_input(monkeypatch, b"a,b\n1\n")
    with pytest.raises(
        DataError, match="standard input: row 2, counting the header, has 1 fields where the header has 2"
    ):
        read("-")


def test_standard_input_is_read_up_to_the_limit(monkeypatch, small_limit) -> None:
    given_input(monkeypatch, b"a\n" + b"1\n" * 100_000)
    assert read("-").num_rows == 100_000
    given_input(monkeypatch, b"a\n" + b"1\n" * 499_999)
    with pytest.raises(DataError, match=r"standard input would take [\d,]+ bytes, more than the limit of 1,000,000"):
        read("-")
    given_input(monkeypatch, b"a\n" + b"1\n" * 10_000_000)
    with pytest.raises(DataError, match="more than the limit of 1,000,000 bytes: MADE_MAX_BYTES raises it"):
        read("-")
    assert sys.stdin.buffer.tell() < 3_000_000


def test_what_is_not_a_file_is_refused(tmp_path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    for name, text in {
        "none.csv": "none.csv' does not exist",
        "none.npz:train": "none.npz' does not exist",
        "folder.csv": "is a folder, not a file",
        "pipe.csv": "is a device or a pipe, not a file",
        "loop.csv": "cannot be read",
        "null\0.csv": "cannot be read",
        "x.xlsx": "should end in .csv, .parquet, .npy or .npz",
        "x": "should end in",
        "x.csv:train": "should end in",
    }.items():
        with pytest.raises(DataError, match=text):
            read(str(tmp_path / name))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    (tmp_path / "x.csv").chmod(0)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read(tmp_path / "x.csv")


@pytest.mark.parametrize("kind", ["parquet", "npy", "npz"])
def test_a_file_that_is_cut_short_is_refused(tmp_path, kind) -> None:
    path = tmp_path / f"x.{kind}"
    write(np.arange(600).reshape(100, 6), path)
    content = path.read_bytes()
    for length in [*range(0, len(content), 37), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=f"x.{kind}'.* is (truncated or )?damaged"):
            read(path)


@pytest.mark.parametrize("kind", ["parquet", "npy", "npz"])
def test_damaged_bytes_give_a_table_or_a_data_error(tmp_path, kind, monkeypatch) -> None:
    monkeypatch.setenv("MADE_MAX_BYTES", "10000000")
    path = tmp_path / f"x.{kind}"
    write(np.arange(60).reshape(10, 6), path)
    content = path.read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        for where in generator.integers(0, len(content), 3):
            damaged[where] = generator.integers(256)
        path.write_bytes(damaged)
        try:
            assert read(path).shape
        except DataError as error:
            assert f"x.{kind}'" in str(error)  # noqa: PT017


@pytest.mark.parametrize("kind", ["parquet", "npy", "npz"])
def test_a_foreign_file_is_refused(tmp_path, kind) -> None:
    for content in (
        b"",
        b"a,b\n1,2\n",
        b"PAR1",
        b"\x93NUMPY",
        b"PK\x03\x04",
        b"\x93NUMPY\x09\x09" + b"\xff" * 99,
        b"\0" * 999,
    ):
        (tmp_path / f"x.{kind}").write_bytes(content)
        with pytest.raises(DataError, match=f"x.{kind}' is damaged, or not a .* file"):
            read(tmp_path / f"x.{kind}")


def together(path, rows: int) -> pa.Table:
    pieces = list(stream(path, rows))
    assert all(len(piece) == rows for piece in pieces[:-1])
    assert 0 < len(pieces[-1]) <= rows
    return pa.concat_tables(pieces)


@pytest.mark.usefixtures("small_blocks")
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


@pytest.mark.usefixtures("small_blocks")
@given(
    st.lists(
        st.lists(
            st.sampled_from([value for value in VALUES if value not in ('"NA"', '""') and ":00." not in value]),
            min_size=1,
            max_size=3,
        ).flatmap(lambda some: st.lists(st.sampled_from(some), min_size=12, max_size=12)),
        min_size=2,
        max_size=4,
    )
)
def test_types_are_those_that_pyarrow_infers_from_the_whole_file(tmp_path_factory, columns) -> None:
    path = tmp_path_factory.mktemp("types") / "x.csv"
    names = ",".join(f"column{d}" for d in range(len(columns)))
    path.write_text("\n".join([names, *map(",".join, zip(*columns, strict=True))]) + "\n")
    options = csv.ParseOptions(newlines_in_values=True), csv.ConvertOptions(strings_can_be_null=True)
    expected = csv.read_csv(path, csv.ReadOptions(use_threads=False), *options)
    assert read(path).equals(expected)


COLUMNS = st.sampled_from(
    [
        st.integers(-(2**62), 2**62),
        st.floats(allow_nan=False),
        st.booleans(),
        st.text(max_size=5),
        st.dates(),
        st.datetimes(),
        st.sampled_from(["a", "b"]),
    ]
).flatmap(lambda values: st.lists(st.none() | values, min_size=9, max_size=9))


@given(
    columns=st.lists(COLUMNS, min_size=2, max_size=3),
    suffix=st.sampled_from([".csv", ".parquet"]),
    rows=st.integers(1, 12),
    block=st.integers(16, 200),
)
def test_the_stream_of_a_table_is_the_table(tmp_path_factory, columns, suffix, rows, block) -> None:
    path = tmp_path_factory.mktemp("stream") / f"x{suffix}"
    table = pa.table({f"c{d}": column for d, column in enumerate(columns)})
    if suffix == ".csv":
        write(table, path)
    else:
        parquet.write_table(table, path, row_group_size=1 + block % 10, data_page_version=f"{1 + block % 2}.0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_blocks, "BLOCK", block)
        patch.setattr(parquet_pages, "AT_ONCE", 4 * block)
        whole = read(path)
        assert together(path, rows).equals(whole)
    if suffix == ".parquet":
        assert whole.equals(parquet.read_table(path))


@given(
    rows=st.integers(1, 12),
    dtype=st.sampled_from(["u1", "?", "<i8", ">i4", "<f4", "f2"]),
    order=st.sampled_from("CF"),
    suffix=st.sampled_from([".npy", ".npz", ".packed.npz"]),
)
def test_the_stream_of_an_array_is_the_array(tmp_path_factory, rows, dtype, order, suffix) -> None:
    path = tmp_path_factory.mktemp("stream") / f"x{suffix}"
    array = np.array(np.random.default_rng(rows).integers(0, 2, (9, 11)), dtype=dtype, order=order)
    source = str(path)
    if suffix == ".packed.npz":
        packed = np.packbits(array != 0, axis=1)
        np.savez(path, train=packed, valid=packed, test=packed, d=11)
        source, array = f"{path}:train", (array != 0).astype(np.uint8)
    else:
        write(array, path)
    pieces = list(stream(source, rows))
    assert [len(piece) for piece in pieces] == [len(array[first : first + rows]) for first in range(0, 9, rows)]
    whole = read(source)
    assert np.array_equal(np.concatenate(pieces), whole)
    assert np.array_equal(whole, array)
    assert {piece.dtype for piece in pieces} == {whole.dtype}


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


def test_errors_of_a_stream_name_the_problem(tmp_path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 is not enough")
    for path, said in ((tmp_path / "x.parquet", "not a Parquet file"), (tmp_path / "no.csv", "does not exist")):
        with pytest.raises(DataError, match=said):
            list(stream(path, 10))
    with pytest.raises(ValueError, match="'rows' should be at least 1"):
        next(stream(tmp_path / "no.csv", 0))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_memory_is_bounded_by_the_piece(tmp_path, monkeypatch, suffix) -> None:
    """A table of four times as many rows takes no more, in Python or in arrow, to be copied piece by piece."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 14)
    most = []
    for rows in (10_000, 40_000):
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
