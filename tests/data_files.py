"""Data files for tests."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from made.io.write import Writer

__all__ = ["TABLE", "write"]


def write(table: Any, target: str | Path, names: Sequence[str] | None = None) -> None:
    """Write a table or an array to a file in one piece."""
    with Writer(target, names=names) as writer:
        writer.write(table)


# A value of every type that a file can hold, beside missing ones.
TABLE = pa.table(
    {
        "plain": [1, None, -3],
        'a "name", in\ntwo lines': ["", None, "NA"],
        "größe \N{SNOWMAN}": ["a,b", 'say "no"', "two\r\nlines"],
        "": [0.1, 1e300, None],
        "whole": [1.0, -0.0, float("inf")],
        "flag": [True, None, False],
        "day": [datetime.date(2024, 2, 29), None, datetime.date(1, 1, 1)],
        "time": pa.array([0, None, 1], pa.timestamp("s")),
        "never": [None, None, None],
    }
)
