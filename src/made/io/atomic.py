"""The atomic file writer: a file is replaced as a whole, or stays as it was."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = re.compile(r"\.made-[0-9a-f]{32}\.part")  # what a killed process may leave behind


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A path to write a new file to, and to move it from, once it is complete and :func:`sync` has flushed it.

    It lies in a hidden folder of its own inside ``folder``, because some writers put other files beside it. At the end
    the hidden folder is removed, with all that is still in it.
    """
    part = folder / f".made-{secrets.token_hex(16)}.part"
    part.mkdir()
    try:
        yield part / "content"
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def atomic(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces ``path`` once it is on disk. On failure, no file is left."""
    path = Path(os.path.realpath(path))  # a symbolic link stays, its target is replaced
    if path.exists() and not path.is_file():
        raise OSError(f"{str(path)!r} exists and is not a file")
    with naming(path):
        with staged(path.parent) as content:
            with content.open("xb") as handle:
                yield handle
            sync(content)
            content.replace(path)
        sync(path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add a path to errors of the system that have none, such as a full disk, or that of a hidden file."""
    try:
        yield
    except OSError as error:
        if error.errno is None or not (error.filename is None or PART.search(str(error.filename))):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


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
