"""Arrays in files, `.npy` and `.npz`, whose claims are checked before anything is loaded.

A header may claim terabytes, and a small archive may unpack to as much: sizes are read first, compared with what the
file has and with a limit, and what is unpacked is counted while it is.
"""

from __future__ import annotations

import io
import math
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from made.errors import DataError

__all__ = ["CHUNK", "archive_of", "check_size", "foreign", "limit_bytes", "plain_float", "read_npy", "read_npz"]

CHUNK = 1 << 20
_HEADER = 1 << 14  # more than NumPy lets the header of an array have
_MEMBERS = 1000  # of an archive


def limit_bytes() -> int:
    """The most that a file may take in memory: the environment variable MADE_MAX_BYTES, or else 4 GiB."""
    text = os.environ.get("MADE_MAX_BYTES") or str(4 << 30)
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) < 1:
        raise DataError(f"MADE_MAX_BYTES should be a whole number of bytes, at least 1, not {text!r}.")
    return int(text)


def check_size(size: int, name: str) -> None:
    """Refuse what would take more memory than the limit."""
    if size > (limit := limit_bytes()):
        text = f"would take {size:,} bytes, more than the limit of {limit:,}: MADE_MAX_BYTES raises it."
        raise DataError(f"{name} {text}")


@contextmanager
def foreign(name: str, kind: str) -> Iterator[None]:
    """Whatever a library raises over a file that is not what it should be becomes a sentence."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # hostile bytes find every exception that there is
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise DataError(f"{name} is damaged, or no {kind} file: {reason}.") from None


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int  # of the data

    @property
    def size(self) -> int:
        return min(math.prod(self.shape) * self.dtype.itemsize, 1 << 62)

    def check(self, dimensions: int, end: int, name: str) -> None:
        """Refuse what is no table of numbers, is more than the limit, or does not end where it should."""
        if self.dtype.kind not in "biuf":
            raise DataError(f"{name} has values of type {self.dtype}: only numbers and truth values are taken.")
        if len(self.shape) != dimensions or (dimensions and min(self.shape) < 1):
            raise DataError(f"{name} has the shape {str(self.shape)[:99]}: it should have rows and columns.")
        check_size(self.size, name)
        if (claim := self.start + self.size) != end:
            raise DataError(f"{name} is truncated or damaged: it claims {claim:,} bytes and has {end:,}.")


def _header(handle: IO[bytes], name: str) -> _Header:
    head = io.BytesIO(handle.read(_HEADER))
    with foreign(name, "NumPy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of whole numbers that Python 2 wrote
        version = npy.read_magic(head)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read_header(head)
    if not all(type(count) is int and count >= 0 for count in shape):  # a truth value is an integer to numpy
        raise DataError(f"{name} has the shape {str(shape)[:99]}: it should be whole numbers, at least 0.")
    return _Header(shape, fortran, dtype, head.tell())


def _read_data(handle: IO[bytes], header: _Header, name: str) -> NDArray[Any]:
    """The array after its header, however much more the file would give."""
    handle.read(header.start)
    data = np.empty(header.size, np.uint8)
    view, got = memoryview(cast(bytearray, data)), 0
    while count := cast(io.BufferedReader, handle).readinto(view[got : got + CHUNK]):
        got += count
    if got < len(data) or handle.read(1):  # the read that meets the end also checks the sum of a zip file
        raise DataError(f"{name} is truncated or damaged: its data should have {len(data):,} bytes.")
    if header.dtype.kind == "b":
        np.minimum(data, 1, out=data)
    array = data.view(header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
    return plain_float(array.astype(header.dtype.newbyteorder("="), copy=False))


def plain_float(array: NDArray[Any]) -> NDArray[Any]:
    """An array, as float64 if its numbers are longer than that, which no other library takes."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 8:
        return array
    with np.errstate(over="ignore"):  # infinity, which others refuse
        return array.astype(np.float64)


def read_npy(handle: BinaryIO, size: int, name: str) -> NDArray[Any]:
    """The array of two dimensions in a `.npy` file of so many bytes."""
    header = _header(handle, name)
    header.check(2, size, name)
    handle.seek(0)
    return _read_data(handle, header, name)


class _Cautious(io.BufferedReader):
    """A file that gives little at once: the directory of an archive may claim to have a billion members."""

    def read(self, size: int | None = None, /) -> bytes:
        return super().read(2 * CHUNK if size is None or size < 0 else min(size, 2 * CHUNK))


class _Archive:
    """The arrays of an .npz file, by name."""

    def __init__(self, file: zipfile.ZipFile, name: str) -> None:
        self.file, self.name = file, name
        if (count := len(file.infolist())) > _MEMBERS:
            raise DataError(f"{name} has {count} members: more than {_MEMBERS} are not taken.")
        self.members = {info.filename[:-4]: info for info in file.infolist() if info.filename.endswith(".npy")}

    def open(self, key: str) -> IO[bytes]:
        if self.members[key].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{self.name}, array {key!r}, is compressed in a way that NumPy does not use.")
        return self.file.open(self.members[key])

    def header(self, key: str) -> _Header:
        with self.open(key) as member:
            return _header(member, f"{self.name}, array {key!r},")

    def load(self, key: str, dimensions: int = 2) -> NDArray[Any]:
        header, name = self.header(key), f"{self.name}, array {key!r},"
        header.check(dimensions, self.members[key].file_size, name)
        with self.open(key) as member:
            return _read_data(member, header, name)


@contextmanager
def archive_of(handle: BinaryIO, name: str) -> Iterator[_Archive]:
    """The arrays of an `.npz` file, by name, none of them loaded."""
    cautious = _Cautious(cast(io.RawIOBase, handle))
    with foreign(name, ".npz"), cautious, zipfile.ZipFile(cautious) as file:
        yield _Archive(file, name)


def read_npz(handle: BinaryIO, name: str, key: str | None) -> NDArray[Any]:
    """One array of an `.npz` file, by name, or the only one of two dimensions; bits are unpacked."""
    with archive_of(handle, name) as archive:
        if key is None:
            tables = [key for key in archive.members if len(archive.header(key).shape) == 2]
            key = tables[0] if len(tables) == 1 else None
        if key not in archive.members:
            fault = f"{len(archive.members)} arrays" if key is None else f"no array {key!r}"
            raise DataError(
                f"{name} has {fault}: put one of these after a colon: {', '.join(archive.members) or 'none'}."
            )
        if key not in ("train", "valid", "test") or not {"train", "valid", "test", "d"} <= archive.members.keys():
            return archive.load(key)
        rows, columns = archive.load(key), int(archive.load("d", 0))
        if rows.dtype != np.uint8 or columns < 1 or rows.shape[1] != -(-columns // 8):
            raise DataError(f"{name}, array {key!r}, of shape {rows.shape}, cannot be the bits of {columns} columns.")
        check_size(len(rows) * columns, name)
        return np.unpackbits(rows, axis=1, count=columns)
