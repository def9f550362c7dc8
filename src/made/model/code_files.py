"""Coded rows in memory-mapped files, for a table that does not fit into memory.

The files are in the hidden folder ``.made-codes`` of the model folder, or in a temporary one, and are removed when
training ends. A run that is interrupted or killed leaves them: if it is resumed with the same files and parameters, the
table is not read again; any other fit in that folder removes them. ``about.json``, which is written last, describes
their origin, and ``ours``, which is written first and removed last, marks them as files of `made`.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from made.errors import DataError
from made.io.atomic import atomic, sync
from made.io.lock import hold
from made.queries.evidence import Evidence

FOLDER, OURS, ABOUT = ".made-codes", "ours", "about.json"
NAMES = ("train.values", "train.observed", "valid.values", "valid.observed")
WAIT = 1.0  # seconds to wait for another process that writes to the same folder
LARGEST = 2**26  # bytes of about.json
CHUNK = 2**24  # flags that are written at once


class CodeFiles:
    """The files of a run, locked against other processes until they are closed; in a temporary folder by default."""

    def __init__(self, folder: Path | None = None) -> None:
        self._stack, self._temporary = ExitStack(), folder is None
        if folder is None:
            self.path = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="made-")))
        else:
            self.path = folder / FOLDER
            self._made = not folder.exists()
            self._stack.callback(self._remove_folders)
            self._stack.enter_context(hold(self.path, wait=WAIT))

    @classmethod
    def left(cls, folder: Path) -> CodeFiles | None:
        """The files, complete or not, that an earlier run left in the folder of a model; None if there are none."""
        return cls(folder) if (folder / FOLDER).is_dir() else None

    def about(self) -> Any:
        """The content of about.json; None if the files are incomplete."""
        file = self.path / ABOUT
        try:
            return json.loads(file.read_bytes()) if self._ours and file.stat().st_size <= LARGEST else None
        except (OSError, ValueError, RecursionError):
            return None

    def complete(self, about: dict[str, Any]) -> None:
        """Write about.json, once all rows are on disk."""
        with atomic(self.path / ABOUT) as file:
            file.write(json.dumps(about).encode())

    def start(self, size: int) -> None:
        """Remove leftover files, and check that ``size`` bytes are free."""
        self._remove()
        if foreign := [name for name in (OURS, ABOUT, *NAMES) if os.path.lexists(self.path / name)]:
            raise FileExistsError(
                f"{self.path / foreign[0]} was not written by made, and is not overwritten: move it elsewhere, or "
                "choose another folder for the model."
            )
        free = shutil.disk_usage(self.path).free
        if size > free:
            raise self._full(f"{size:,} bytes are needed, and {free:,} are free")
        with self.writing():
            (self.path / OURS).touch()
            sync(self.path)

    def part(self, name: str, rows: int, width: int, dtype: torch.dtype) -> Part:
        """New rows, which are written to files."""
        return Part(dtype, FilePair(self, name, rows, width))

    def read(self, name: str, rows: int, width: int, dtype: torch.dtype) -> Evidence:
        """The rows in the files; their number and type must match."""
        values = _mapped(self.path / f"{name}.values", rows, width, dtype)
        flags = self.path / f"{name}.observed"
        observed = _mapped(flags, rows, width, torch.bool) if flags.exists() else None
        if self._temporary:  # so that a process that is killed leaves nothing; what is mapped stays until it ends
            self._remove(f"{name}.values", f"{name}.observed")
        return Evidence(values, observed)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn the error of a full disk into a sentence."""
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise self._full(os.strerror(error.errno)[0].lower() + os.strerror(error.errno)[1:]) from None

    def _full(self, why: str) -> DataError:
        return DataError(
            f"the coded rows do not fit on the disk of {str(self.path.parent)!r}: {why}. Free some space, or choose a "
            "folder on another disk."
        )

    def close(self, *, keep: bool = False) -> None:
        """Remove the files, unless a resumable run needs them, and release the folder."""
        if not keep:
            self._remove()
        self._stack.close()

    @property
    def _ours(self) -> bool:
        mark = self.path / OURS
        return mark.is_file() and not mark.is_symlink() and not mark.stat().st_size

    def _remove(self, *names: str) -> None:
        if not self._ours:
            return
        for name in names or (ABOUT, *NAMES, OURS):
            with suppress(OSError):  # such as on Windows, as long as they are mapped
                (self.path / name).unlink(missing_ok=True)

    def _remove_folders(self) -> None:
        for folder in (self.path, self.path.parent) if self._made else (self.path,):
            with suppress(OSError):  # it is not empty, or removed
                folder.rmdir()


class FilePair:
    """Values, and flags of what is observed if anything is missing, that are written row by row."""

    def __init__(self, files: CodeFiles, name: str, rows: int, width: int) -> None:
        self.files, self.name, self.rows, self.width = files, name, rows, width
        self._values: BinaryIO | None = None
        self._flags: BinaryIO | None = None
        self._written = 0

    def add(self, values: Tensor, observed: Tensor | None) -> None:
        """Write more rows."""
        with self.files.writing():
            if self._values is None:
                self._values = self._open("values", values.element_size())
            if observed is not None and self._flags is None:
                self._flags = self._open("observed", 1)
                for begin in range(0, self._written * self.width, CHUNK):
                    self._flags.write(b"\x01" * min(CHUNK, self._written * self.width - begin))
            self._values.write(np.ascontiguousarray(values.numpy()).data)
            if self._flags is not None:
                flags = torch.ones_like(values, dtype=torch.bool) if observed is None else observed
                self._flags.write(np.ascontiguousarray(flags.numpy()).data)
        self._written += len(values)

    def end(self, dtype: torch.dtype) -> Evidence:
        """The rows, read from the files."""
        with self.files.writing():
            self.close()
        return self.files.read(self.name, self.rows, self.width, dtype)

    def close(self) -> None:
        """Close the files."""
        for handle in (self._values, self._flags):
            if handle is not None:
                handle.close()

    def _open(self, what: str, size: int) -> BinaryIO:
        handle = (self.files.path / f"{self.name}.{what}").open("xb")
        if hasattr(os, "posix_fallocate"):  # a disk that is full says so now
            os.posix_fallocate(handle.fileno(), 0, self.rows * self.width * size)
        return handle


class Part:
    """Rows as evidence, which are taken in piece by piece.

    Arguments:
        dtype: the type of the values.
        files: where they are written. Default: they are kept in memory.
    """

    def __init__(self, dtype: torch.dtype, files: FilePair | None = None) -> None:
        self.dtype, self.files, self.rows = dtype, files, 0
        self._pieces: list[tuple[Tensor, Tensor | None]] = []

    def add(self, values: Tensor, observed: Tensor | None) -> None:
        """Take in more rows."""
        self.rows += len(values)
        if self.files is None:
            self._pieces.append((values, observed))
        else:
            self.files.add(values, observed)

    def end(self) -> Evidence:
        """All rows."""
        if self.files is not None:
            return self.files.end(self.dtype)
        pieces, self._pieces = self._pieces, []
        if len(pieces) == 1:
            return Evidence(*pieces[0])
        values = torch.cat([values for values, _ in pieces])
        if all(observed is None for _, observed in pieces):
            return Evidence(values)
        flags = [torch.ones_like(each, dtype=torch.bool) if seen is None else seen for each, seen in pieces]
        return Evidence(values, torch.cat(flags))


def _mapped(file: Path, rows: int, width: int, dtype: torch.dtype) -> Tensor:
    """A memory-mapped file as a tensor. Shape: (rows, columns)."""
    with file.open("r+b") as handle:
        if os.fstat(handle.fileno()).st_size != rows * width * dtype.itemsize or not rows:
            raise ValueError(f"{file} does not have the size of {rows} rows.")
        return torch.frombuffer(mmap.mmap(handle.fileno(), 0), dtype=dtype).reshape(rows, width)
