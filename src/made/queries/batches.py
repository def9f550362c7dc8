"""A table in blocks of rows: what is asked of it is asked block by block, whether it is in memory or comes as a stream.

What one pass adds up depends, in the last bit, on the rows that share it. Blocks are counted from the first row, so
that the answers to a table that comes in blocks are those to one that comes at once, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from made.errors import MadeError

__all__ = ["ROWS_AT_A_TIME", "blocks", "counted_from"]

ROWS_AT_A_TIME = 10_000


def blocks(rows: int) -> Iterator[slice]:
    """The blocks of so many rows.

    Example:
        >>> list(blocks(25_000))
        [slice(0, 10000, None), slice(10000, 20000, None), slice(20000, 25000, None)]
    """
    for begin in range(0, rows, ROWS_AT_A_TIME):
        yield slice(begin, min(begin + ROWS_AT_A_TIME, rows))


@contextmanager
def counted_from(first: int) -> Iterator[None]:
    """Errors that name a row of a block name it by its number in the table, of which ``first`` rows come before."""
    try:
        yield
    except MadeError as error:
        raise error.after(first) from None
