"""Files: what is written is read back, and what is hostile is refused before it is loaded."""

from __future__ import annotations

import datetime
import io
import os
import struct
import sys
import zipfile
import zlib
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from data_files import write
from made.errors import DataError
from made.io import csv_blocks
from made.io.atomic import atomic
from made.io.checks import limit_bytes
from made.io.read import read, shapes

TABLE = pa.table(
    {
        "plain": [1, None, -3],
        'a "name", in\ntwo lines': ["", None, "NA"],
        "größe \N{SNOWMAN}": ["a,b", 'say "no"', "two\r\nlines"],
        "": [0.1, 1e300, None],
        "whole": [1.0, -0.0, float("inf")],
        "flag": [True, None, False],
        "day": [datetime.date(2024, 2, 29), None, datetime.date(1, 1, 1)],
        "time": pa.array([0, None, 1], pa.timestamp("s")),
        "never": [None, None, None],
    }
)


@pytest.fixture
def small(monkeypatch) -> None:
    monkeypatch.setenv("MADE_MAX_BYTES", "1000000")


def given_input(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def csv_of(tmp_path, content: bytes | str) -> pa.Table:
    (tmp_path / "x.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(tmp_path / "x.csv")


def header_of(shape: str, dtype: str = "'<f8'") -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n"


def test_the_limit_is_4_gib_or_what_the_environment_says(monkeypatch) -> None:
    monkeypatch.delenv("MADE_MAX_BYTES", raising=False)
    assert limit_bytes() == 2**32
    monkeypatch.setenv("MADE_MAX_BYTES", "12")
    assert limit_bytes() == 12
    for wrong in ("0", "-1", "4G", "1e9", "²", "9" * 5000):
        monkeypatch.setenv("MADE_MAX_BYTES", wrong)
        with pytest.raises(DataError, match="MADE_MAX_BYTES should be a whole number of bytes"):
            limit_bytes()


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


@pytest.mark.parametrize("dtype", ["u1", "?", "<i8", ">i4", "<f4", ">f8", "f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_is_read_back_as_it_was(tmp_path, dtype, order) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype, order=order)
    for name in ("x.npy", "x.npz"):
        write(array, tmp_path / name)
        again = read(tmp_path / name)
        assert again.dtype == array.dtype.newbyteorder("=")
        assert again.dtype.isnative
        assert (again == array).all()
        assert again.flags.writeable
    assert np.load(tmp_path / "x.npy").tolist() == array.tolist()
    assert shapes(tmp_path / "x.npz") == {"rows": (2, 3)}


def test_a_table_of_numbers_is_an_array_and_an_array_a_table(tmp_path) -> None:
    write(pa.table({"a": [1, None], "b": [True, False], "c": [None, True], "d": [None, None]}), tmp_path / "x.npy")
    expected = [[1, 1, np.nan, np.nan], [np.nan, 0, 1, np.nan]]
    np.testing.assert_array_equal(read(tmp_path / "x.npy"), expected)
    write(np.array([[1, 2], [3, 4]]), tmp_path / "x.parquet", names=["a", "b"])
    assert read(tmp_path / "x.parquet").to_pydict() == {"a": [1, 3], "b": [2, 4]}
    write(np.array([["x", "1"], ["", "2"]]), tmp_path / "x.csv")
    assert read(tmp_path / "x.csv").to_pydict() == {"x0": ["x", ""], "x1": [1, 2]}


def test_what_cannot_be_written_is_refused(tmp_path) -> None:
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
        (np.zeros((1, 1)), "folder.csv", "is there, and not a file"),
    ]:
        (tmp_path / "folder.csv").mkdir(exist_ok=True)
        with pytest.raises(DataError, match=text):
            write(table, tmp_path / target)
    assert os.listdir(tmp_path) == ["folder.csv"]


def test_a_file_is_complete_or_as_it_was(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old")
    (tmp_path / "link").symlink_to(path)

    def fail() -> None:
        with atomic(tmp_path / "link") as handle:
            handle.write(b"new")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert sorted(os.listdir(tmp_path)) == ["link", "x.csv"]
    assert path.read_text() == "old"
    with atomic(str(tmp_path / "link")) as handle:
        handle.write(b"new")
    assert path.read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask


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


def test_standard_input_is_read_up_to_the_limit(monkeypatch, small) -> None:
    given_input(monkeypatch, b"a\n" + b"1\n" * 100_000)
    assert read("-").num_rows == 100_000
    given_input(monkeypatch, b"a\n" + b"1\n" * 499_999)
    with pytest.raises(DataError, match=r"standard input would take [\d,]+ bytes, more than the limit of 1,000,000"):
        read("-")
    given_input(monkeypatch, b"a\n" + b"1\n" * 10_000_000)
    with pytest.raises(DataError, match="more than the limit of 1,000,000 bytes: MADE_MAX_BYTES raises it"):
        read("-")
    assert sys.stdin.buffer.tell() < 3_000_000


def test_standard_output_is_csv(capsysbinary) -> None:
    write(np.array([[1, 2]]), "-", names=["a", "b"])
    assert capsysbinary.readouterr().out == b"a,b\n1,2\n"


def test_types_are_those_of_the_whole_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 16)
    rows = "1,2,,2020-01-01\n" * 100_000
    table = csv_of(tmp_path, f"a,b,c,d\n{rows}x,0.5,7,later\n")
    assert [str(field.type) for field in table.schema] == ["string", "double", "int64", "string"]
    assert table.slice(99_999).to_pydict() == {
        "a": ["1", "x"],
        "b": [2, 0.5],
        "c": [None, 7],
        "d": ["2020-01-01", "later"],
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_comes_in_many_dialects(tmp_path, end) -> None:
    text = end.join(["a,b,c", '1,true,"x', 'y"', "", "NaN,,NA", "2.5,false,null", ""])
    expected = {"a": [1, None, 2.5], "b": [True, None, False], "c": [f"x{end}y", None, None]}
    assert csv_of(tmp_path, text).to_pydict() == expected
    assert csv_of(tmp_path, "\ufeff" + text.rstrip()).to_pydict() == expected


def test_what_is_missing_may_be_quoted_where_it_cannot_be_text(tmp_path) -> None:
    table = csv_of(tmp_path, '"a","b","c","d"\n"1","x","","2020-01-01"\n"","","","NA"\n')
    day = datetime.date(2020, 1, 1)
    assert table.to_pydict() == {"a": [1, None], "b": ["x", ""], "c": ["", ""], "d": [day, None]}


def test_times_with_fractions_have_all_years(tmp_path) -> None:
    """Nanoseconds, as pyarrow has such times, end in 2262."""
    for zone in ("", "Z"):
        table = csv_of(tmp_path, f'a,b\n9999-12-31 23:59:59.5{zone},"0001-01-01T00:00:00.000001{zone}"\nNA,""\n')
        assert table.schema.types == [pa.timestamp("us", "UTC" if zone else None)] * 2
        assert [str(column[0])[:26] for column in table.columns] == [
            "9999-12-31 23:59:59.500000",
            "0001-01-01 00:00:00.000001",
        ]
        assert [column[1].as_py() for column in table.columns] == [None, None]
    assert csv_of(tmp_path, "a\n9999-12-31 23:59:59.5\nlater\n")["a"].to_pylist()[1] == "later"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "x.csv' has no rows"),
        (b"a,b", "has no rows"),
        (b"a,b\n", "has no rows"),
        (b"\n\n", "has no rows"),
        (b"a,b,a\n1,2,3\n", "has 'a' more than once in its header"),
        (b"0,1,1\n1,0,1\n", "are these the names of its columns"),
        (b"a,b\n1,2\n3,4,5\n", "row 3, counting the header, has 3 fields where the header has 2"),
        (b"a,b\n1,2\n3\n", "row 3, counting the header, has 1 fields"),
        (b'a,b\n"1,2\n3,4\n', "row 2, counting the header, has 1 fields"),
        (b"a,b\n1,2\n3,\xe9\n", "x.csv', line 3: this is not UTF-8"),
        (b"\xff\xfea\x00", "line 1: this is not UTF-8"),
        (b"a\n" * 1_000_000 + b"\xc3", "line 1000001: this is not UTF-8"),
    ],
)
def test_csv_that_is_not_well_formed_is_refused(tmp_path, content, text) -> None:
    with pytest.raises(DataError, match=text):
        csv_of(tmp_path, content)


def test_a_row_without_an_end_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(csv_blocks, "LONGEST", 1000)
    with pytest.raises(DataError, match="row of more than 1,000 bytes: is a quote not closed"):
        csv_of(tmp_path, 'a,b\n1,"' + "x" * 5000)


def test_a_csv_file_beyond_the_limit_is_refused(tmp_path, small) -> None:
    with pytest.raises(DataError, match="would take 1,000,002 bytes, more than the limit of 1,000,000: MADE_MAX_BYTES"):
        csv_of(tmp_path, "a\n" + "1\n" * 500_000)


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
def test_damaged_bytes_give_a_table_or_a_sentence(tmp_path, kind, monkeypatch) -> None:
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
        with pytest.raises(DataError, match=f"x.{kind}' is damaged, or no .* file"):
            read(tmp_path / f"x.{kind}")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (header_of("(1000000000000, 10)"), "would take 80,000,000,000,000 bytes, more than the limit"),
        (header_of(f"({'9' * 4000}, {'9' * 4000})"), "would take 4,611,686,018,427,387,904 bytes"),
        (header_of("(100, 10)") + bytes(7999), "truncated or damaged"),
        (header_of("(100, 10)") + bytes(8001), "truncated or damaged"),
        (header_of("(-1, -8)") + bytes(64), r"shape \(-1, -8\): it should be whole numbers, at least 0"),
        (header_of("(True, True)") + bytes(8), r"shape \(True, True\): it should be whole numbers"),
        (header_of("(8, False)"), "should be whole numbers"),
        (header_of("(1.0, 8)") + bytes(64), "damaged, or no NumPy file"),
        (header_of("('a', 8)") + bytes(64), "damaged, or no NumPy file"),
        (header_of("(0, 5)"), "should have rows and columns"),
        (header_of("(5,)") + bytes(40), r"shape \(5,\): it should have rows and columns"),
        (header_of("(1, 1)", "'|O'") + bytes(8), "has values of type object"),
        (header_of("(1, 1)", "'<c16'") + bytes(16), "has values of type complex128"),
        (header_of("(1, 1)", "[('a', '|O')]") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "[('a', '<f8')]") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "'|V8'") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "'<U2'") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "'<M8[D]'") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "'<f8', 'x': " + "(" * 5000 + ")" * 5000), "damaged, or no NumPy file"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 20_000, "damaged, or no NumPy file"),
    ],
)
def test_a_hostile_array_is_refused(tmp_path, content, text) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DataError, match=text):
        read(tmp_path / "x.npy")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", content)
    with pytest.raises(DataError, match=text):
        read(tmp_path / "x.npz:a")


def test_long_doubles_are_read_as_doubles(tmp_path) -> None:
    """Which is what a model takes, and what every other kind of file holds."""
    array = np.array([[1 / 3, np.inf]], dtype=np.longdouble)
    array[0, 1] = np.finfo(np.longdouble).max
    np.save(tmp_path / "x.npy", array)
    assert read(tmp_path / "x.npy").dtype == np.float64
    assert read(tmp_path / "x.npy").tolist() == [[1 / 3, np.inf]]
    write(array[:, :1], tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "x0\n0.3333333333333333\n"


def test_arrays_of_objects_are_refused(tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.array([[{}]], dtype=object))
    np.savez(tmp_path / "x.npz", a=np.array([[{}]], dtype=object))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(DataError, match="has values of type object: only numbers"):
            read(tmp_path / name)


def test_truth_values_are_0_or_1(tmp_path) -> None:
    (tmp_path / "x.npy").write_bytes(header_of("(1, 3)", "'|b1'") + b"\x00\x01\xff")
    assert read(tmp_path / "x.npy").astype(int).tolist() == [[0, 1, 1]]


def test_python_2_wrote_long_numbers(tmp_path) -> None:
    (tmp_path / "x.npy").write_bytes(header_of("(1L, 2L)") + bytes(16))
    assert read(tmp_path / "x.npy").tolist() == [[0, 0]]


def test_an_array_of_an_archive_is_chosen_by_name(tmp_path) -> None:
    path = tmp_path / "a:b.npz"
    np.savez(path, one=[[1, 2]], count=3)
    assert read(path).tolist() == [[1, 2]]
    np.savez(path, one=[[1, 2]], two=[[3]], count=3)
    assert read(f"{path}:two").tolist() == [[3]]
    with pytest.raises(DataError, match=r"b.npz' has 3 arrays: put one of these after a colon: one, two, count\."):
        read(path)
    with pytest.raises(DataError, match="has no array 'three': put one of these"):
        read(f"{path}:three")
    with pytest.raises(DataError, match="array 'count', has the shape"):
        read(f"{path}:count")
    assert shapes(path) == {"one": (1, 2), "two": (1, 1), "count": ()}


def test_packed_bits_are_unpacked(tmp_path, monkeypatch) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (7, 11), dtype=np.uint8)
    packed = np.packbits(rows, axis=1)
    path = tmp_path / "x.npz"
    np.savez(path, train=packed[:4], valid=packed[4:6], test=packed[6:], d=11)
    assert [read(f"{path}:{split}").tolist() for split in ("train", "valid", "test")] == [
        rows[:4].tolist(),
        rows[4:6].tolist(),
        rows[6:].tolist(),
    ]
    for wrong in (8, 17, 0, -11, 10**9):
        np.savez(path, train=packed, valid=packed, test=packed, d=wrong)
        with pytest.raises(DataError, match=f"array 'train', of shape .* cannot be the bits of {wrong} columns"):
            read(f"{path}:train")
    np.savez(path, train=np.zeros((100, 1), np.uint8), valid=packed, test=packed, d=8)
    monkeypatch.setenv("MADE_MAX_BYTES", "700")
    with pytest.raises(DataError, match="would take 800 bytes"):
        read(f"{path}:train")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, small) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", header_of("(10000, 1000)", "'|u1'") + bytes(10_000_000))
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match="array 'a', would take 10,000,000 bytes, more than the limit of 1,000,000"):
        read(path)


def lie(path, *, size: int, crc: int | None = None) -> None:
    """Change what the directory of an archive of one member says of its size and check sum."""
    content = bytearray(path.read_bytes())
    where = content.index(b"PK\x01\x02")
    struct.pack_into("<I", content, where + 24, size)
    if crc is not None:
        struct.pack_into("<I", content, where + 16, crc)
    path.write_bytes(content)


def test_an_archive_that_lies_about_sizes_is_refused_or_cut(tmp_path, small) -> None:
    path = tmp_path / "x.npz"
    honest = header_of("(10, 10)", "'|u1'")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", honest + bytes(100_000_000))
    with pytest.raises(DataError, match="truncated or damaged"):
        read(path)  # the header promises less than there is
    lie(path, size=len(honest) + 100)
    with pytest.raises(DataError, match=r"damaged.*CRC"):
        read(path)
    lie(path, size=len(honest) + 100, crc=zlib.crc32(honest + bytes(100)))
    assert read(path).tolist() == np.zeros((10, 10)).tolist()  # all claims agree: no more than them is unpacked
    huge = header_of("(1000, 900)", "'|u1'")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", huge + bytes(10))
    lie(path, size=len(huge) + 900_000)
    with pytest.raises(DataError, match=r"truncated or damaged|is damaged"):
        read(path)


def test_an_archive_of_other_things_is_refused(tmp_path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(1001):
            archive.writestr(f"{index}.npy", b"")
    with pytest.raises(DataError, match="has 1001 members: more than 1000 are not taken"):
        read(f"{path}:0")
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(50_000):
            archive.writestr(f"{index}.npy", b"")
    with pytest.raises(DataError, match=r"damaged, or no .npz file"):
        read(f"{path}:0")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", b"")
    with pytest.raises(DataError, match="has 0 arrays: put one of these after a colon: none"):
        read(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", header_of("(1, 1)") + bytes(8))
    with pytest.raises(DataError, match="compressed in a way that NumPy does not use"):
        read(path)


def test_a_parquet_bomb_is_refused_before_it_is_read(tmp_path, small) -> None:
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
        with pytest.raises(DataError, match=r"would take 100,00\d,\d\d\d,\d\d\d bytes"):
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
    with pytest.raises(DataError, match=r"is damaged, or no Parquet file: .*UTF8"):
        read(path)
