"""Rows in blocks: the unit of every query about a table, in memory or streamed, and of every pass.

The last bit of what a pass adds up depends on the rows that share it. Blocks are counted from the first row of the
table, so that a table that comes as a stream gets the same answers, to the bit, as one that comes whole. A query about
a table cuts it once, at the top; within a block, a pass takes a smaller batch of rows to bound its memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from made.errors import MadeError

__all__ = ["ROWS_AT_A_TIME", "blocks", "counted_from"]

ROWS_AT_A_TIME = 10_000


def blocks(rows: int, size: int | None = None) -> Iterator[slice]:
    """Blocks of at most ``size`` rows (default: :data:`ROWS_AT_A_TIME`).

    Example:
        >>> list(blocks(25_000))
        [slice(0, 10000, None), slice(10000, 20000, None), slice(20000, 25000, None)]
    """
    size = ROWS_AT_A_TIME if size is None else size
    for begin in range(0, rows, size):
        yield slice(begin, min(begin + size, rows))


@contextmanager
def counted_from(first: int) -> Iterator[None]:
    """Errors that name a row of a block name its number in the table, in which ``first`` rows come before the block."""
    try:
        yield
    except MadeError as error:
        raise error.after(first) from None
