"""A lock on a folder: one process at a time writes to it, whether it saves a model, trains, or searches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from made.errors import QuestionError

__all__ = ["LOCK", "hold"]

LOCK = ".made.lock"
TRIES = 10  # a folder that another process removes again, because its own write failed, is made this often


@contextmanager
def hold(folder: Path, *, wait: float, name: str = LOCK) -> Iterator[None]:
    """Hold a folder against other processes, and make it if it is not there.

    The lock is a hidden, empty file in the folder. It is removed in the end, and does no harm where a killed process
    left it: the system releases the lock itself. A folder that was made here and is still empty in the end is removed.

    Arguments:
        folder: the folder.
        wait: for how many seconds to wait for another process.
        name: the file of the lock.
    """
    lock = FileLock(folder / name, timeout=wait)
    for tries in range(TRIES):
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
            break
        except FileNotFoundError:
            if tries == TRIES - 1:
                raise
        except Timeout:
            raise QuestionError(
                f"{folder} is being written to by another process: wait for it, stop it, or choose another folder."
            ) from None
    try:
        yield
    finally:
        # Before the release: afterwards, the file may be the lock of another process.
        with suppress(OSError):
            if (folder / name).stat().st_size == 0:
                (folder / name).unlink()
        lock.release()
        if made:
            with suppress(OSError):
                folder.rmdir()
