"""The atomic file writer: a file is replaced as a whole, or stays as it was."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic", "sync"]


@contextmanager
def atomic(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces ``path`` once it is on disk. On failure nothing is left behind."""
    path = Path(os.path.realpath(path))  # a symbolic link stays, its target is replaced
    if path.exists() and not path.is_file():
        raise OSError(f"{str(path)!r} exists and is not a file")
    beside = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with beside.open("xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file or a folder to disk; a no-op on systems that cannot open folders."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
