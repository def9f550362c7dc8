"""Rows, and what is known, given and asked of each: any part of a row may be any of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.group import Rows
from made.errors import QuestionError
from made.network.masked import Network

__all__ = ["Evidence", "Given", "arrangements"]

Given: TypeAlias = Rows | Sequence[int] | Sequence[str]


@dataclass(frozen=True)
class Evidence:
    """Rows, with what is known, given and asked of each; all tensors are (rows, columns).

    Attributes:
        values: the values, 0 for holes.
        observed: which entries are not holes; ``None`` if there are no holes.
        given: which entries are conditioned on; ``None`` if nothing is.
    """

    values: Tensor
    observed: Tensor | None = None
    given: Tensor | None = None

    @classmethod
    def of(cls, network: Network, rows: Rows | Evidence, given: Given | None = None) -> Evidence:
        """Check the rows and what is given: column names or numbers, or flags for each column or for each entry."""
        if isinstance(rows, Evidence):
            if given is not None:
                raise ValueError("'given' is part of the evidence already.")
            return rows
        values, hole = network.columns.check(rows, network.c)
        flags = None if given is None else _flags(network, given, len(values)).to(values.device)
        if flags is not None and hole is not None and (flags & hole).any():
            row, column = (flags & hole).nonzero()[0].tolist()
            raise QuestionError(
                f"column {column} ('{network.columns.names[column]}') is given, but its value is NaN: give "
                "a value, or leave the column out of 'given'.",
                row=row,
                column=network.columns.names[column],
            )
        if flags is not None and not flags.any():
            flags = None
        return cls(values, None if hole is None else ~hole, flags)

    @property
    def asked(self) -> Tensor:
        """Which entries are neither holes nor given."""
        asked = torch.ones_like(self.values, dtype=torch.bool) if self.observed is None else self.observed
        return asked if self.given is None else asked & ~self.given

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Tensor | slice) -> Evidence:
        return Evidence(
            self.values[rows],
            None if self.observed is None else self.observed[rows],
            None if self.given is None else self.given[rows],
        )

    def split(self, size: int) -> Iterator[tuple[slice, Evidence]]:
        """Batches of at most ``size`` rows."""
        for first in range(0, len(self), size):
            yield slice(first, first + size), self[first : first + size]


def _flags(network: Network, given: Given, rows: int) -> Tensor:
    names, width = network.columns.names, len(network.columns)
    if not isinstance(given, Tensor):
        listed = list(given)  # type: ignore[arg-type]
        if listed and all(isinstance(name, str) for name in listed):
            if unknown := [name for name in listed if name not in names]:
                raise QuestionError(f"'given' names {unknown[0]!r}, but the columns are {', '.join(names)}.")
            given = [names.index(name) for name in listed]
    flags = torch.as_tensor(given)
    if flags.dtype == torch.bool:
        if flags.shape not in ((width,), (rows, width)):
            raise ValueError(
                f"'given' should have {width} flags, or the shape ({rows}, {width}), not {tuple(flags.shape)}."
            )
        return flags.expand(rows, width)
    columns = torch.zeros(width, dtype=torch.bool)
    if flags.numel():
        whole = flags.ndim == 1 and not flags.dtype.is_floating_point
        if not whole or not all(0 <= column < width for column in flags.tolist()):
            raise ValueError(
                f"'given' should be flags, or column names or numbers from 0 to {width - 1}, not {given!r}."
            )
        if len(flags.unique()) < len(flags):
            raise ValueError(f"'given' has a column number twice: {given!r}. For flags, use True and False.")
        columns[flags.long()] = True
    return columns.expand(rows, width)


def arrangements(evidence: Evidence, asked_last: bool) -> Iterator[tuple[Tensor, NDArray[np.bool_] | None]]:
    """Rows that share an ordering, and flags of the columns to be put last; ``None`` for rows with nothing given.

    What a row gets depends on that row alone, so that answers do not change with the company it is in.
    """
    rows = torch.arange(len(evidence), device=evidence.values.device)
    if evidence.given is None:
        yield rows, None
        return
    conditional = evidence.given.any(dim=1)
    if not conditional.all():
        yield rows[~conditional], None
    rows, asked = rows[conditional], evidence.asked[conditional]
    if not asked_last:
        yield rows, np.zeros(asked.shape[1], dtype=np.bool_)
        return
    patterns, pattern = asked.unique(dim=0, return_inverse=True)
    for index, columns in enumerate(patterns.cpu().numpy()):
        yield rows[pattern == index], columns
