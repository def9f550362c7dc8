"""Random numbers for rows, such as dropout, that do not depend on which worker computes the rest of a batch."""

from __future__ import annotations

import torch
from torch import Tensor


class BatchGenerator(torch.Generator):
    """A random generator for some rows of a batch. Numbers are drawn for the whole batch (:func:`whole_batch`), so that
    each row gets the same ones whoever computes the others (:func:`of_rows`).

    Attributes:
        rows: where the rows are in the batch, a slice or numbers; ``None`` for the whole batch.
        of: the number of rows in the batch.
    """

    rows: slice | Tensor | None = None
    of: int = 0


def whole_batch(generator: torch.Generator | None, rows: int) -> int:
    """The number of rows to draw numbers for: the whole batch, of which ``rows`` are computed here."""
    return generator.of if isinstance(generator, BatchGenerator) and generator.rows is not None else rows


def of_rows(generator: torch.Generator | None, drawn: Tensor, axis: int = 0) -> Tensor:
    """The part of the numbers drawn for the whole batch that belongs to the rows computed here."""
    rows = generator.rows if isinstance(generator, BatchGenerator) else None
    if rows is None:
        return drawn
    return drawn.index_select(axis, rows) if isinstance(rows, Tensor) else drawn.movedim(axis, 0)[rows].movedim(0, axis)


def drop_out(units: Tensor, share: float, generator: torch.Generator | None, *, rows: int) -> Tensor:
    """Set a share of the units to zero and scale up the others; ``rows`` is the axis of the rows, 0 or 1."""
    if not share:
        return units
    if (count := whole_batch(generator, units.shape[rows])) != units.shape[rows]:
        shape = [*units.shape]
        shape[rows] = count
        # In the order of memory, in which the numbers of the whole batch would be drawn.
        transposed = units.stride(0) < units.stride(1)
        drawn = units.new_empty(shape[::-1]).t() if transposed else units.new_empty(shape)
    else:
        drawn = torch.empty_like(units)
    keep = of_rows(generator, drawn.bernoulli_(1 - share, generator=generator), rows)
    return units * keep.div_(1 - share)
