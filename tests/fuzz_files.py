"""Hostile files for fuzzing: bytes of valid ones that are changed, and files that are made of odd pieces."""

from __future__ import annotations

import io
import struct
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import parquet

from data_files import write
from made.errors import MadeError
from made.io.read import read, shapes, stream
from made.tables.restore import fill_missing, rebuild
from made.tables.table import Table

__all__ = [
    "LIMIT",
    "check_file",
    "csv_seeds",
    "csv_text",
    "mutated",
    "npy",
    "npy_seeds",
    "npz",
    "npz_seeds",
    "or_refused",
    "parquet_file",
    "parquet_seeds",
    "words",
]

# The most that a file may take: what claims more has to be refused before it is loaded.
LIMIT = 20_000_000

ROWS = pa.table(
    {
        "size": [1.5, None, 3.25, 0.0, 7.75] * 6,
        "count": [3, 1, None, 12, 7] * 6,
        "home, now": ["rent", "own", "", None, 'a "b"\n'] * 6,
        "in": [True, False, None, True, True] * 6,
        "day": pa.array([0, 19_000, None, 19_700, -1] * 6, pa.date32()),
    }
)


def words(text: str) -> list[str]:
    return text.split()


def or_refused(answer: Callable[[], None]) -> bool:
    try:
        answer()
    except MadeError as error:
        said = str(error).strip()
    else:
        return True
    assert said, "an error says what is wrong"
    return False


# Bytes.


@st.composite
def mutated(draw: st.DrawFn, seeds: Callable[[], list[bytes]]) -> bytes:
    """A valid file, of which a few bytes are changed, inserted, deleted, repeated, taken from another, or cut off."""
    content = bytearray(draw(st.sampled_from(seeds())))
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, max(len(content) - 1, 0)))
        length = draw(st.integers(1, 40))
        match draw(st.sampled_from(["flip", "set", "insert", "delete", "repeat", "splice", "number", "cut"])):
            case "flip" if content:
                content[place] ^= 1 << draw(st.integers(0, 7))
            case "set" if content:
                content[place] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 34, 44, 10, 39, 123]))
            case "insert":
                content[place:place] = draw(st.binary(min_size=1, max_size=8))
            case "delete":
                del content[place : place + length]
            case "repeat":
                content[place:place] = content[place : place + length] * draw(st.integers(1, 20))
            case "splice":
                other = draw(st.sampled_from(seeds()))
                start = draw(st.integers(0, max(len(other) - 1, 0)))
                content[place : place + length] = other[start : start + length]
            case "number":
                value = draw(st.sampled_from([0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, 10**9]))
                content[place : place + 8] = struct.pack("<Q", value)
            case "cut":
                del content[place:]
    return bytes(content)


def written(table: pa.Table | np.ndarray, suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{suffix}"
        write(table, path)
        return path.read_bytes()


def check_file(suffix: str) -> Callable[[bytes], bool]:
    """Reading at once and in pieces, and what a model makes of the table."""

    def check(content: bytes) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"x{suffix}"
            path.write_bytes(content)

            def at_once() -> None:
                table = read(path)
                assert table.shape[0] > 0
                assert table.shape[1] > 0
                or_refused(lambda: check_table(table, Path(folder)))

            def in_pieces() -> None:
                for piece in stream(path, 3):
                    assert 0 < len(piece) <= 3

            if suffix == ".npz":
                or_refused(lambda: check_shapes(path))
            or_refused(in_pieces)
            return or_refused(at_once)

    return check


def check_table(table: pa.Table | np.ndarray, folder: Path) -> None:
    taken = Table.of(table)
    assert all(len(column) == taken.rows for column in taken.columns)
    fill_missing(taken, taken.columns, taken.dtypes)
    rebuild(taken, taken.columns, taken.dtypes)
    write(table, folder / "again.csv")


def check_shapes(path: Path) -> None:
    for shape in shapes(path).values():
        assert all(type(count) is int and count >= 0 for count in shape)


# CSV.

NUMBERS = words("NA NaN null 1 -2 1.5 1e308 1e999 -inf true False 0x1F -0 +1 .5 12:30:00 999999999999999999999999999")
DATES = words(
    "2024-02-29 9999-12-31 0001-01-01 2023-02-29 10000-01-01 2024-02-29T10:00 2024-02-29T10:00:00Z "
    "9999-12-31T23:59:59.999999Z 0001-01-01T00:00:00.5 2024-02-29T10:00:00+14:00 2024-02-29T10:00:00.123456789"
)
TEXTS = ["", '""', '"', '""""', '"a\nb"', '"a,b"', "'", "\ufeff", "\x00", "\r", "\u2028", "x" * 3000, ";", "\\"]
FIELDS = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(DATES), st.sampled_from(TEXTS), st.text(max_size=6))


@st.composite
def csv_text(draw: st.DrawFn) -> bytes:
    """Lines of fields that need not be of one length, in any dialect."""
    columns = draw(st.integers(1, 4))
    header = draw(st.lists(FIELDS, min_size=1, max_size=5) | st.just(["a", "b", "c", "d"][:columns]))
    width = st.integers(0, 5) if draw(st.booleans()) else st.just(len(header))
    some = draw(st.lists(FIELDS, min_size=1, max_size=4))
    lines = [header]
    for _ in range(draw(st.integers(0, 12))):
        count = draw(width)
        lines.append(draw(st.lists(st.sampled_from(some) | FIELDS, min_size=count, max_size=count)))
    comma, end = draw(st.sampled_from([",", ",", ",", ";", "\t"])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = end.join(comma.join(line) for line in lines) + draw(st.sampled_from(["", end, end * 3, '"', "\x00"]))
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16", "utf-8-sig"])), "surrogatepass")


@cache
def csv_seeds() -> list[bytes]:
    text = ",".join(["2024-02-29T10:00:00Z", "x" * 200, "1"])
    return [written(ROWS, ".csv"), written(ROWS.select(["size"]), ".csv"), f"a,b,c\n{text}\n{text}\n".encode()]


# NumPy.

SHAPES = st.one_of(
    st.sampled_from(
        words("(2,3) (3,2) (6,1) (True,True) (0,5) (-1,6) (6,) () 6 (2,3.0) (None,1) [2,3] (2,3,1) (2L,3)")
    ),
    st.sampled_from(["('2', 3)", "(1e2, 1)", "{}", "(" * 300, "()()", "(6, 1 << 3)", "__import__('os')"]),
    st.tuples(st.integers(-(2**70), 2**70), st.integers(-9, 9)).map(str),
)
ORDERED = [order + kind for order in "<>|=" for kind in ("f8", "f4", "f2", "i8", "u1", "b1", "c16")]
DTYPES = st.one_of(
    st.sampled_from([repr(kind) for kind in ORDERED]),
    st.sampled_from([repr(kind) for kind in words("O <g <U3 S2 V8 <M8[D] <m8[s] f16 T ? p")]),
    st.sampled_from(["''", "[('a', '<f8')]", "[('a', '|O')]", "[]", "('<f8', (2,))", "None", "[['a']]", "{'a': 1}"]),
)


@st.composite
def npy(draw: st.DrawFn) -> bytes:
    """A header of any shape and type, and some data."""
    order = draw(st.sampled_from(["False", "True", "0", "None", "'x'"]))
    extra = draw(st.sampled_from(["", "", "'x': 1, ", "'descr': '<f8', "]))
    text = f"{{'descr': {draw(DTYPES)}, 'fortran_order': {order}, 'shape': {draw(SHAPES)}, {extra}}}".encode()
    version = draw(st.sampled_from([1, 1, 1, 2, 3, 9]))
    claimed = len(text) + 1 + draw(st.sampled_from([0, 0, 0, 0, 1, -1, 1000]))
    length = struct.pack("<H" if version == 1 else "<I", max(claimed, 0))
    data = draw(st.sampled_from([bytes(48), bytes(6), b"\xff" * 48, b"", bytes(96), b"\x7f" * 12]))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + b"\n" + data


@st.composite
def npz(draw: st.DrawFn) -> bytes:
    """An archive of such arrays."""
    content = io.BytesIO()
    method = draw(st.sampled_from([zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA]))
    names = st.sampled_from(["a.npy", "train.npy", "valid.npy", "test.npy", "d.npy", "a.txt", "../a.npy", ".npy"])
    with zipfile.ZipFile(content, "w", method) as archive:
        for name in draw(st.lists(names, max_size=4, unique=True)):
            archive.writestr(name, draw(npy()))
    return content.getvalue()


@cache
def npy_seeds() -> list[bytes]:
    arrays = [np.arange(6.0).reshape(2, 3), np.ones((3, 2), ">u2"), np.asfortranarray(np.eye(3, dtype=bool))]
    return [written(array, ".npy") for array in arrays]


@cache
def npz_seeds() -> list[bytes]:
    content = io.BytesIO()
    bits = np.ones((3, 2), np.uint8)
    np.savez(content, train=bits, valid=bits, test=bits, d=11)
    return [written(np.arange(6.0).reshape(2, 3), ".npz"), content.getvalue()]


# Parquet.

ZONES = (None, "UTC", "Asia/Tokyo", "+99:99", "Nowhere/Else")
ODD = [
    *(pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.null(), pa.date32(), pa.date64()),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ZONES),
    *(pa.time32("ms"), pa.time64("us"), pa.duration("s"), pa.decimal128(38, 3), pa.decimal256(70, 3)),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary(3), pa.large_binary()),
    *(pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8())),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64())),
    pa.dictionary(pa.int32(), pa.timestamp("us")),
]
RAW = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5) | st.none()


@st.composite
def arrow_column(draw: st.DrawFn, rows: int) -> pa.Array:
    """Any values of an odd type, by their bits where it has them."""
    kind = draw(st.sampled_from(ODD))
    values = pa.array(draw(st.lists(RAW, min_size=rows, max_size=rows)), pa.int64())
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        column = values.cast(pa.int32()) if inner.bit_width == 32 else values
        column = column.cast(inner, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        if inner in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()):
            texts = [draw(st.text(max_size=5)) if each.is_valid else None for each in values]
            column = pa.array(texts, inner)
        else:
            column = pa.nulls(rows, inner)
    return column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column


@st.composite
def parquet_file(draw: st.DrawFn) -> bytes:
    """A file of columns of odd types, names and values."""
    rows = draw(st.integers(0, 5))
    names = draw(st.lists(st.sampled_from(["a", "b", "", "a\n", "\x00", "größe", "x" * 300]), max_size=4))
    columns = [draw(arrow_column(rows)) for _ in names]
    content = io.BytesIO()
    try:
        parquet.write_table(
            pa.Table.from_arrays(columns, names),
            content,
            row_group_size=draw(st.sampled_from([1, 2, 1000])),
            store_schema=draw(st.booleans()),
            compression=draw(st.sampled_from(["snappy", "none", "zstd", "gzip"])),
            use_dictionary=draw(st.booleans()),
        )
    except (pa.ArrowException, OSError):  # what pyarrow does not write
        return b"PAR1"
    return content.getvalue()


@cache
def parquet_seeds() -> list[bytes]:
    coded = ROWS.set_column(2, "home", ROWS["home, now"].combine_chunks().dictionary_encode())
    return [written(ROWS, ".parquet"), written(coded, ".parquet"), written(ROWS.select(["count"]), ".parquet")]
