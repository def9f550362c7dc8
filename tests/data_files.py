"""Data files for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from made.io.write import Writer

__all__ = ["write"]


def write(table: Any, target: str | Path, names: Sequence[str] | None = None) -> None:
    """Write a table or an array to a file in one piece."""
    with Writer(target, names=names) as writer:
        writer.write(table)
