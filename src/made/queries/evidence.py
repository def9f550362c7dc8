"""Rows with, for each entry, whether it is observed, given, or asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from made.columns.fused import Targets, take
from made.columns.group import Rows
from made.errors import QuestionError
from made.network.masked import Network
from made.queries.batches import blocks

Given: TypeAlias = Rows | Sequence[int] | Sequence[str]


@dataclass(frozen=True)
class Evidence:
    """Rows, and what is observed and given of each; all tensors are (rows, columns).

    An observed entry that is not given is asked for.

    Attributes:
        values: the values as the column kinds code them, 0 for a missing value.
        observed: flags of the entries that are not missing; ``None`` if none is.
        given: flags of the entries that are conditioned on; ``None`` if none is.
        inputs: the input units of all entries, if they have been computed in advance (:meth:`prepared`).
        targets: the terms of the likelihood that depend on the values alone, likewise.

    Example:
        >>> from made import Connectivities, Network
        >>> network = Network(3, Connectivities(3, (8,), masks=None))
        >>> Evidence.of(network, [[1, float("nan"), 0]], given=["x3"]).asked
        tensor([[ True, False, False]])
    """

    values: Tensor
    observed: Tensor | None = None
    given: Tensor | None = None
    inputs: Tensor | None = None
    targets: Targets | None = None

    @classmethod
    def of(cls, network: Network, rows: Rows | Evidence, given: Given | None = None) -> Evidence:
        """Check and code rows.

        Arguments:
            network: the network whose columns they have.
            rows: the rows, NaN for a missing value; evidence is returned unchanged.
            given: what is conditioned on: column names or numbers, or flags for each column or each entry.
        """
        if isinstance(rows, Evidence):
            if given is not None:
                raise ValueError("'given' is part of the evidence already.")
            return rows
        with network.threads.preferred():
            values, missing = network.columns.check(rows, network.c)
        flags = None if given is None else _flags(network, given, len(values)).to(values.device)
        if flags is not None and missing is not None and (flags & missing).any():
            row, column = (flags & missing).nonzero()[0].tolist()
            raise QuestionError(
                f"column {column} ('{network.columns.names[column]}') is given, but its value is NaN: give "
                "a value, or leave the column out of 'given'.",
                row=row,
                column=network.columns.names[column],
            )
        if flags is not None and not flags.any():
            flags = None
        return cls(values, None if missing is None else ~missing, flags)

    @property
    def is_observed(self) -> Tensor:
        """Flags of the entries that are not missing."""
        return torch.ones_like(self.values, dtype=torch.bool) if self.observed is None else self.observed

    @property
    def asked(self) -> Tensor:
        """Flags of the entries that are observed and not given."""
        return self.is_observed if self.given is None else self.is_observed & ~self.given

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Tensor | slice) -> Evidence:
        tables = (self.observed, self.given, self.inputs)
        observed, given, inputs = (None if table is None else take(table, rows) for table in tables)
        targets = None if self.targets is None else self.targets[rows]
        return Evidence(take(self.values, rows), observed, given, inputs, targets)

    def prepared(self, network: Network) -> Evidence:
        """With input units and targets, for several passes over the same rows."""
        if self.inputs is not None:
            return self
        columns = network.columns
        return replace(self, inputs=columns.encode(self.values), targets=columns.targets(self.values))

    def to(self, device: torch.device) -> Evidence:
        """On a device; for rows that are not prepared."""
        if self.values.device == device:
            return self
        observed = None if self.observed is None else self.observed.to(device)
        return replace(self, values=self.values.to(device), observed=observed)

    def asking(self, observed: Tensor | None, given: Tensor | None) -> Evidence:
        """The same rows with other flags."""
        return replace(self, observed=observed, given=given)

    def split(self, size: int) -> Iterator[tuple[slice, Evidence]]:
        """Batches of at most ``size`` rows."""
        for rows in blocks(len(self), size):
            yield rows, self[rows]


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
