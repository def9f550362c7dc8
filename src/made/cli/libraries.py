"""Importing torch and pyarrow quickly, in a process that runs one command and nothing else."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quick_imports", "take_process"]

_own_process = False


def take_process() -> None:
    """Declare that this process runs one command and nothing else; otherwise imports are ordinary ones."""
    global _own_process
    _own_process = True


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import libraries without collecting garbage: modules stay, and looking through them takes a fifth of the time."""
    if not _own_process:
        yield
        return
    gc.disable()
    try:
        yield
        _keep_pandas_out()
    finally:
        gc.freeze()  # later collections, and the end of the process, need not look at modules either
        gc.enable()


class _NoPandas:
    """A finder of modules that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _keep_pandas_out() -> None:
    """Let pyarrow make its first array while pandas cannot be found.

    It would import pandas to see whether the values are a series, which no command has. It tries once, and again only
    if a table is to become a data frame.
    """
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None or "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pyarrow.array([])
    finally:
        sys.meta_path.remove(_NoPandas)
