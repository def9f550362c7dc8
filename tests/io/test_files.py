"""Several files as one table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from made.errors import DataError
from made.io.files import Files, are_paths


def write(path: Path, **columns: object) -> Path:
    table = pa.table(columns)
    parquet.write_table(table, path) if path.suffix == ".parquet" else csv.write_csv(table, path)
    return path


def test_rows_of_a_folder_in_the_order_of_names(tmp_path: Path) -> None:
    write(tmp_path / "b.csv", y=["p"], x=[3])
    write(tmp_path / "a.parquet", x=[1, 2], y=["q", "r"])
    (tmp_path / "notes.txt").write_text("not a table")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.csv").touch()
    files = Files.of(tmp_path)
    rows = pa.concat_tables(files.pieces()).to_pydict()
    assert rows == {"x": [1, 2, 3], "y": ["q", "r", "p"]}
    assert files.ignored == [str(tmp_path / "notes.txt")]


def test_the_first_piece_is_read_once_and_a_second_pass_has_all_rows(tmp_path: Path) -> None:
    files = Files.of([write(tmp_path / "a.csv", x=[1]), write(tmp_path / "b.csv", x=[2])])
    assert files.names == ["x"]
    for _ in range(2):
        assert [piece["x"].to_pylist() for piece in files.pieces()] == [[1], [2]]


def test_a_glob_is_sorted_and_a_file_may_have_its_letters(tmp_path: Path) -> None:
    for name in ("10.csv", "2.csv", "[1].csv"):
        write(tmp_path / name, x=[1])
    assert [Path(path).name for path in Files.of(f"{tmp_path}/*0.csv").paths] == ["10.csv"]
    assert Files.of(tmp_path / "[1].csv").paths == [str(tmp_path / "[1].csv")]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"x": [1], "y": [1]}, {"x": [1]}, "a.csv' has 'y', which .*b.csv' lacks"),
        ({"x": [1]}, {"x": [1], "z": [1]}, "b.csv' has 'z', which .*a.csv' lacks"),
        ({"x": [1]}, {"x": ["one"]}, "'x' has text in .*b.csv', but numbers in .*a.csv'"),
    ],
)
def test_files_that_are_not_one_table_are_named(tmp_path: Path, first: dict, second: dict, said: str) -> None:  # type: ignore[type-arg]
    files = Files.of([write(tmp_path / "a.csv", **first), write(tmp_path / "b.csv", **second)])
    with pytest.raises(DataError, match=said):
        list(files.pieces())


def test_a_column_of_one_file_may_be_empty(tmp_path: Path) -> None:
    files = Files.of([write(tmp_path / "a.csv", x=[1], y=[None]), write(tmp_path / "b.csv", x=[2], y=["q"])])
    assert [piece["y"].to_pylist() for piece in files.pieces()] == [[None], ["q"]]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_some_files_may_have_no_rows(tmp_path: Path, suffix: str) -> None:
    empty = pa.array([], pa.int64())
    for name, values in (("a", empty), ("b", [1, 2]), ("c", empty), ("d", [3])):
        write(tmp_path / (name + suffix), x=values)
    files = Files.of(tmp_path)
    assert files.names == ["x"]
    assert pa.concat_tables(files.pieces())["x"].to_pylist() == [1, 2, 3]
    assert files.finished == 1


def test_files_that_have_no_rows_together_are_named(tmp_path: Path) -> None:
    paths = [write(tmp_path / name, x=pa.array([], pa.int64())) for name in ("a.csv", "b.parquet")]
    with pytest.raises(DataError, match=r"a\.csv' has no rows\.$"):
        _ = Files.of(paths[0]).first
    with pytest.raises(DataError, match=r"none of these 2 files has rows: .*a\.csv' to .*b\.parquet'"):
        list(Files.of(paths).pieces())


def test_arrays_need_the_same_width(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 4)))
    with pytest.raises(DataError, match=r"b.npy' has 4 columns, but .*a.npy' has 3"):
        list(Files.of(tmp_path).pieces())
    write(tmp_path / "c.csv", x=[1])
    with pytest.raises(DataError, match="only one of them has column names"):
        list(Files.of([tmp_path / "a.npy", tmp_path / "c.csv"]).pieces())


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"matches no file"):
        Files.of(str(tmp_path / "*.parquet"))
    with pytest.raises(DataError, match=r"is a folder without files that end in .csv"):
        Files.of(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        list(Files.of(tmp_path / "a.csv").pieces())
    path = write(tmp_path / "a.csv", x=[1])
    with pytest.raises(DataError, match="more than once"):
        Files.of([path, path])


def test_paths_are_distinguished_from_rows() -> None:
    assert are_paths("a.csv")
    assert are_paths([Path("a.csv"), "b.csv"])
    assert not any(map(are_paths, ([["a"], ["b"]], [], np.zeros((2, 2)), [1, 2])))
