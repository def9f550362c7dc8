"""Rows in blocks: the unit of every query about a table, in memory or streamed, and of every pass.

The last bit of what a pass adds up depends on the rows that share it. Blocks are counted from the first row of the
table, so that a table that comes as a stream gets the same answers, to the bit, as one that comes whole. A query about
a table is cut once, by :func:`in_blocks`; within a block, a pass takes a smaller batch of rows to bound its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from made.errors import MadeError
from made.queries.random import of_block

ROWS_AT_A_TIME = 10_000

E = TypeVar("E")
P = ParamSpec("P")
T = TypeVar("T")


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


def in_blocks(
    query: Callable[Concatenate[E, NDArray[np.float64], P], T],
) -> Callable[Concatenate[E, NDArray[np.float64], P], T]:
    """A query about an ensemble and coded rows, asked block by block. Rows are the last axis but one of every matrix
    in its answer, and the only axis of a vector. A random generator among its arguments gives each block numbers of its
    own (:func:`made.queries.random.of_block`)."""

    @wraps(query)
    def asked(ensemble: E, codes: NDArray[np.float64], /, *args: P.args, **options: P.kwargs) -> T:
        cut = list(blocks(len(codes)))
        if len(cut) < 2:
            return query(ensemble, codes, *args, **options)
        answers = []
        for number, block in enumerate(cut):
            own, named = [_own(each, number) for each in args], {key: _own(options[key], number) for key in options}
            with counted_from(block.start):
                answers.append(query(ensemble, codes[block], *own, **named))
        for generator in [each for each in (*args, *options.values()) if isinstance(each, torch.Generator)]:
            torch.rand(1, generator=generator, device=generator.device)  # the next query draws other numbers
        return cast(T, _joined(answers))

    return asked


def _own(argument: Any, number: int) -> Any:
    return of_block(argument, number) if isinstance(argument, torch.Generator) else argument


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays, or tuples or dataclasses of arrays, of consecutive rows, as one; of anything else, the first."""
    first: Any = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts, axis=max(first.ndim - 2, 0))
    if isinstance(first, tuple):
        return tuple(map(_joined, zip(*parts, strict=True)))
    if is_dataclass(first) and not isinstance(first, type):
        return type(first)(**{name: _joined([vars(part)[name] for part in parts]) for name in vars(first)})
    return first
