"""Arrays in files: read back as they were, and hostile ones refused before they are loaded."""

from __future__ import annotations

import struct
import zipfile
import zlib

import numpy as np
import pytest

from data_files import write
from made.errors import DataError
from made.io.read import read, shapes


@pytest.fixture
def small_limit(monkeypatch) -> None:
    monkeypatch.setenv("MADE_MAX_BYTES", "1000000")


def header_of(shape: str, dtype: str = "'<f8'") -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n"


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
        (header_of("(1.0, 8)") + bytes(64), "damaged, or not a NumPy file"),
        (header_of("('a', 8)") + bytes(64), "damaged, or not a NumPy file"),
        (header_of("(0, 5)"), "should have rows and columns"),
        (header_of("(5,)") + bytes(40), r"shape \(5,\): it should have rows and columns"),
        (header_of("(1, 1)", "'|O'") + bytes(8), "has values of type object"),
        (header_of("(1, 1)", "'<c16'") + bytes(16), "has values of type complex128"),
        (header_of("(1, 1)", "[('a', '|O')]") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "[('a', '<f8')]") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "'|V8'") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "'<U2'") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "'<M8[D]'") + bytes(8), "has values of type"),
        (header_of("(1, 1)", "'<f8', 'x': " + "(" * 5000 + ")" * 5000), "damaged, or not a NumPy file"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 20_000, "damaged, or not a NumPy file"),
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


def test_headers_with_integers_of_python_2_are_read(tmp_path) -> None:
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


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, small_limit) -> None:
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


def test_an_archive_that_lies_about_sizes_is_refused_or_cut(tmp_path, small_limit) -> None:
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
    with pytest.raises(DataError, match="has 1001 members: the limit is 1000"):
        read(f"{path}:0")
    with zipfile.ZipFile(path, "w") as archive:
        for index in range(3000):  # a directory of more than is read at once
            archive.writestr(f"{index:01000}.npy", b"")
    with pytest.raises(DataError, match=r"damaged, or not a .npz file"):
        read(f"{path}:0")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", b"")
    with pytest.raises(DataError, match="has 0 arrays: put one of these after a colon: none"):
        read(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", header_of("(1, 1)") + bytes(8))
    with pytest.raises(DataError, match="compressed in a way that NumPy does not use"):
        read(path)
