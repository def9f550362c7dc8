"""Dropout, in which a row drops the same units whoever computes the other rows of its batch."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["BatchGenerator", "drop_out"]


class BatchGenerator(torch.Generator):
    """A random generator for a pass over some rows of a batch.

    Attributes:
        rows: where the rows of the pass are in the batch; ``None`` for a pass over the whole batch.
        of: the number of rows in the batch.
    """

    rows: slice | None = None
    of: int = 0


def drop_out(units: Tensor, share: float, generator: torch.Generator | None, *, rows: int) -> Tensor:
    """Set a share of the units to zero and scale up the others; ``rows`` is the axis of the rows, 0 or 1."""
    if not share:
        return units
    if isinstance(generator, BatchGenerator) and generator.rows is not None:
        shape = [*units.shape]
        shape[rows] = generator.of
        # In the order of memory, in which the numbers of the whole batch would be drawn.
        transposed = units.stride(0) < units.stride(1)
        whole = units.new_empty(shape[::-1]).t() if transposed else units.new_empty(shape)
        whole.bernoulli_(1 - share, generator=generator)
        keep = whole.narrow(rows, generator.rows.start, units.shape[rows])
    else:
        keep = torch.empty_like(units).bernoulli_(1 - share, generator=generator)
    return units * keep.div_(1 - share)
