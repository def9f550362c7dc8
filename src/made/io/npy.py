"""Arrays in `.npy` and `.npz` files, in blocks of rows.

A header may claim terabytes, and a small archive may unpack to as much: the claimed size is compared with the size of
the file and with the limit before anything is loaded, and no more than that is unpacked. Object arrays are refused.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from made.errors import DataError
from made.io.checks import check_size, parsing

CHUNK = 1 << 20
HEADER = 1 << 14  # bytes; more than NumPy allows the header of an array
MEMBERS = 1000  # the most members of an archive


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int  # of the data

    @property
    def size(self) -> int:
        return min(math.prod(self.shape) * self.dtype.itemsize, 1 << 62)

    def check(self, dimensions: int, end: int, name: str) -> None:
        """Refuse an array that is not a table of numbers, exceeds the limit, or does not end where it should."""
        if self.dtype.kind not in "biuf":
            raise DataError(f"{name} has values of type {self.dtype}: only numbers and booleans are supported.")
        if len(self.shape) != dimensions or (dimensions and min(self.shape) < 1):
            raise DataError(f"{name} has the shape {str(self.shape)[:99]}: it should have rows and columns.")
        check_size(self.size, name)
        if (claim := self.start + self.size) != end:
            raise DataError(f"{name} is truncated or damaged: it claims {claim:,} bytes and has {end:,}.")


def _header(handle: IO[bytes], name: str) -> _Header:
    head = io.BytesIO(handle.read(HEADER))
    with parsing(name, "NumPy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about integers that Python 2 wrote
        version = npy.read_magic(head)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read_header(head)
    if not all(type(count) is int and count >= 0 for count in shape):  # NumPy takes a bool for an integer
        raise DataError(f"{name} has the shape {str(shape)[:99]}: it should be whole numbers, at least 0.")
    return _Header(shape, fortran, dtype, head.tell())


def _rows(handle: IO[bytes], header: _Header, name: str, rows: int | None) -> Iterator[NDArray[Any]]:
    """The array after its header, in blocks of ``rows`` rows; one block for None or Fortran order."""
    handle.read(header.start)
    total = header.shape[0] if header.shape else 1
    step = total if rows is None or header.fortran else rows
    for begin in range(0, total, step):
        count = min(step, total - begin)
        data = np.empty(header.size // total * count, np.uint8)
        view, got = memoryview(cast(bytearray, data)), 0
        while size := cast(io.BufferedReader, handle).readinto(view[got : got + CHUNK]):
            got += size
        # Reading to the end also verifies the checksum of an archive.
        if got < len(data) or (begin + count == total and handle.read(1)):
            raise DataError(f"{name} is truncated or damaged: its data should have {header.size:,} bytes.")
        if header.dtype.kind == "b":
            np.minimum(data, 1, out=data)
        shape = (count, *header.shape[1:]) if header.shape else ()
        array = data.view(header.dtype).reshape(shape, order="F" if header.fortran else "C")
        array = plain_float(array.astype(header.dtype.newbyteorder("="), copy=False))
        if rows is None:
            yield array
        else:
            yield from (array[first : first + rows] for first in range(0, count, rows))


def plain_float(array: NDArray[Any]) -> NDArray[Any]:
    """An array, with long doubles as float64, the longest that other libraries take."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 8:
        return array
    with np.errstate(over="ignore"):  # infinity, which is refused later
        return array.astype(np.float64)


def npy_rows(handle: BinaryIO, name: str, rows: int | None) -> Iterator[NDArray[Any]]:
    """The 2-D array of a `.npy` file, in blocks of at most ``rows`` rows; None for one block."""
    size = handle.seek(0, io.SEEK_END)
    handle.seek(0)
    header = _header(handle, name)
    header.check(2, size, name)
    handle.seek(0)
    yield from _rows(handle, header, name, rows)


class _Cautious(io.BufferedReader):
    """A file that gives little at once: the directory of an archive may claim a billion members."""

    def read(self, size: int | None = None, /) -> bytes:
        return super().read(2 * CHUNK if size is None or size < 0 else min(size, 2 * CHUNK))


class _Archive:
    """The arrays of an .npz file, by name."""

    def __init__(self, file: zipfile.ZipFile, name: str) -> None:
        self.file, self.name = file, name
        if (count := len(file.infolist())) > MEMBERS:
            raise DataError(f"{name} has {count} members: the limit is {MEMBERS}.")
        self.members = {info.filename[:-4]: info for info in file.infolist() if info.filename.endswith(".npy")}

    def open(self, key: str) -> IO[bytes]:
        if self.members[key].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{self.name}, array {key!r}, is compressed in a way that NumPy does not use.")
        return self.file.open(self.members[key])

    def header(self, key: str) -> _Header:
        with self.open(key) as member:
            return _header(member, f"{self.name}, array {key!r},")

    def rows(self, key: str, rows: int | None = None, dimensions: int = 2) -> Iterator[NDArray[Any]]:
        header, name = self.header(key), f"{self.name}, array {key!r},"
        header.check(dimensions, self.members[key].file_size, name)
        with self.open(key) as member:
            yield from _rows(member, header, name, rows)


@contextmanager
def _archive_of(handle: BinaryIO, name: str) -> Iterator[_Archive]:
    cautious = _Cautious(cast(io.RawIOBase, handle))
    with parsing(name, ".npz"), cautious, zipfile.ZipFile(cautious) as file:
        yield _Archive(file, name)


def npz_shapes(handle: BinaryIO, name: str) -> dict[str, tuple[int, ...]]:
    """The arrays of a `.npz` file by name, and the shape that each claims to have; none is loaded."""
    with _archive_of(handle, name) as archive:
        return {key: archive.header(key).shape for key in archive.members}


def npz_rows(handle: BinaryIO, name: str, key: str | None, rows: int | None) -> Iterator[NDArray[Any]]:
    """An array of a `.npz` file, by name or the only 2-D one, in blocks of at most ``rows`` rows; bits are unpacked."""
    with _archive_of(handle, name) as archive:
        if key is None:
            tables = [key for key in archive.members if len(archive.header(key).shape) == 2]
            key = tables[0] if len(tables) == 1 else None
        if key not in archive.members:
            fault = f"{len(archive.members)} arrays" if key is None else f"no array {key!r}"
            raise DataError(
                f"{name} has {fault}: put one of these after a colon: {', '.join(archive.members) or 'none'}."
            )
        if key not in ("train", "valid", "test") or not {"train", "valid", "test", "d"} <= archive.members.keys():
            yield from archive.rows(key, rows)
            return
        columns, header = int(next(archive.rows("d", dimensions=0))), archive.header(key)
        if len(header.shape) == 2 and (header.dtype != np.uint8 or columns < 1 or header.shape[1] != -(-columns // 8)):
            raise DataError(f"{name}, array {key!r}, of shape {header.shape}, cannot be the bits of {columns} columns.")
        check_size(math.prod(header.shape[:1]) * columns, name)
        for packed in archive.rows(key, rows):
            yield np.unpackbits(packed, axis=1, count=columns)
