"""The lock on a folder: only one process at a time saves, trains or searches in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from made.errors import QuestionError

LOCK = ".made.lock"
TRIES = 10  # how often to create a folder that another process removes because its own write failed


@contextmanager
def hold(folder: Path, *, wait: float, name: str = LOCK) -> Iterator[None]:
    """Lock a folder against other processes; it is created if it does not exist.

    The lock is a hidden, empty file in the folder, which is removed at the end. One that a killed process left does no
    harm: the system has released it. A file of that name with content is not ours, and is refused: some versions of
    filelock would empty or remove it. A folder that was created here and is still empty at the end is removed. Another
    process is waited for, up to ``wait`` seconds.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / name, timeout=wait)
    for tries in range(TRIES):
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        if _has_content(folder / name):
            raise QuestionError(f"{folder / name} is not a lock, because it has content: move it elsewhere.")
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


def _has_content(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False
