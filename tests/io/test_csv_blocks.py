"""CSV: dialects, types from all rows, and what is malformed."""

from __future__ import annotations

import datetime
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from made.errors import DataError
from made.io import csv_blocks
from made.io.read import read, stream


@pytest.fixture
def small_limit(monkeypatch) -> None:
    monkeypatch.setenv("MADE_MAX_BYTES", "1000000")


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    """Blocks of a few lines, so that what comes later is not seen at first."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 64)
    monkeypatch.setattr(csv_blocks, "LONGEST", 256)


def csv_of(tmp_path, content: bytes | str) -> pa.Table:
    (tmp_path / "x.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(tmp_path / "x.csv")


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
def test_dialects_of_csv_are_read(tmp_path, end) -> None:
    text = end.join(["a,b,c", '1,true,"x', 'y"', "", "NaN,,NA", "2.5,false,null", ""])
    expected = {"a": [1, None, 2.5], "b": [True, None, False], "c": [f"x{end}y", None, None]}
    assert csv_of(tmp_path, text).to_pydict() == expected
    assert csv_of(tmp_path, "\ufeff" + text.rstrip()).to_pydict() == expected


def test_quoted_nulls_are_missing_in_columns_that_are_not_text(tmp_path) -> None:
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


def test_a_csv_file_beyond_the_limit_is_refused(tmp_path, small_limit) -> None:
    with pytest.raises(DataError, match="would take 1,000,002 bytes, more than the limit of 1,000,000: MADE_MAX_BYTES"):
        csv_of(tmp_path, "a\n" + "1\n" * 500_000)


@pytest.mark.usefixtures("small_blocks")
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
def test_errors_name_the_file_and_the_problem(tmp_path, content, said) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(DataError, match=said):
        list(stream(tmp_path / "x.csv", 10))


@pytest.mark.usefixtures("small_blocks")
def test_a_row_may_be_longer_than_a_block(tmp_path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 30 + f"3,{'x' * 150}\n")
    table = read(tmp_path / "x.csv")
    assert table["b"].to_pylist() == ["2"] * 30 + ["x" * 150]
    assert pa.concat_tables(stream(tmp_path / "x.csv", 7)).equals(table)


def test_types_are_settled_in_two_passes(tmp_path, monkeypatch) -> None:
    """The last row, or the second block, changes the type of each of 30 columns."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 12)
    passes = []
    blocks = csv_blocks._blocks
    monkeypatch.setattr(csv_blocks, "_blocks", lambda *given: passes.append(1) or blocks(*given))
    header, row = ",".join(f"c{d}" for d in range(30)) + "\n", ",".join("1" * 30) + "\n"
    for last, count, kind in (("x", 2, "string"), ("1.5", 3, "double"), ("true", 3, "bool"), ("1", 2, "int64")):
        passes.clear()
        table = csv_of(tmp_path, header + row * 500 + ",".join([last] * 30) + "\n")
        assert len(passes) == count  # the last one reads the rows
        assert {str(each) for each in table.schema.types} == {kind}


def test_a_type_that_a_later_block_rules_out_is_not_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK", 64)
    table = csv_of(
        tmp_path, "a,b\n" + "2,2024-01-01\n" * 50 + "true,9999-01-01 00:00:00.5\n" + "0,2024-01-01 10:00\n" * 50
    )
    assert [str(kind) for kind in table.schema.types] == ["string", "timestamp[us]"]


@given(st.lists(st.text(alphabet='a1",\r\n é', max_size=6), min_size=1, max_size=30), st.integers(16, 64))
def test_rows_end_where_pyarrow_ends_them(lines, block) -> None:
    """Quotes may be anywhere: blocks are cut between rows, as the parser of the whole file sees them."""
    content = ("h\n" + "\n".join(lines) + "\n").encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_blocks, "BLOCK", block)
        blocks = list(csv_blocks._rows(io.BytesIO(content), "x"))
    options = (
        csv.ParseOptions(newlines_in_values=True, delimiter=","),
        csv.ConvertOptions(column_types={"h": pa.string()}),
    )
    try:
        whole = csv.read_csv(io.BytesIO(content), csv.ReadOptions(use_threads=False), *options)
    except pa.ArrowInvalid:
        return
    parts = [csv.read_csv(io.BytesIO(blocks[0]), csv.ReadOptions(use_threads=False), *options)]
    for rows in blocks[1:]:
        parts.append(csv.read_csv(io.BytesIO(b"h\n" + rows), csv.ReadOptions(use_threads=False), *options))
    assert pa.concat_tables(parts).equals(whole)
