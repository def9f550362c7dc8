r"""Which passes a query takes: masks, orderings and segments, decided here and nowhere else.

A network of unlimited masks ("any-order") can put any columns first. What it answers about a row is then a matter of

- the *masks* that are averaged: those of the ensemble, or, for a whole row, those trained on whole rows
  (``whole_rows`` of :class:`made.Connectivities`), possibly with missing values (``incomplete_rows``);
- the *ordering* :math:`m^0`: if some columns are given, those asked for move to its end, where all hidden units serve
  them;
- the *segments*: an ordering may be cut into segments, each evaluated in one pass in which every unit sees all columns
  before the segment. One segment is MADE; one for each column is EoNADE (Uria, Murray and Larochelle, 2014).

All three depend on the row alone, so that an answer does not change with the rows beside it. A network of a finite list
of masks takes one pass under each of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.network.connectivity import Connectivities, Connectivity
from made.queries.evidence import Evidence

LEAST = 1e-300  # the weight of a mask that has none, where it is asked for alone


class Pass(NamedTuple):
    """One pass: its connectivity, or the number of it, and the columns whose factors it gives; ``None`` for all."""

    connectivity: int | Connectivity
    columns: NDArray[np.bool_] | None


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows that take the same passes."""

    family: Connectivities
    rows: Tensor  # their numbers
    asked: NDArray[np.bool_] | None  # the columns that come last in the ordering; ``None`` if nothing is given
    masks: Sequence[int]  # the numbers of the masks that the answer averages
    segments: int  # into which an ordering of all columns is cut
    weights: Sequence[float] = ()  # of all masks for whole rows, if the answer is by these

    @property
    def log_weights(self) -> list[float]:
        """The logarithm of the weight of each mask, not normalized."""
        return [math.log(max(self.weights[number], LEAST)) if self.weights else 0.0 for number in self.masks]

    @property
    def shares(self) -> dict[int, float]:
        """The share of each mask in the mean of probabilities: its weight, times how often it occurs."""
        counts = Counter(self.masks)
        found = {number: count * self.weights[number] for number, count in counts.items()} if self.weights else {}
        found = {number: share for number, share in found.items() if share} or dict(counts)
        return {number: share / sum(found.values()) for number, share in found.items()}

    @property
    def incremental(self) -> bool:
        """Whether each segment is one column, so that passes can share work (see :mod:`made.queries.incremental`)."""
        last, cut = self._last()
        return self.segments > 1 and bool(self.family.hidden_sizes) and cut == last

    def order(self, number: int) -> list[int]:
        """The columns in the ordering of mask ``number``."""
        connectivity = self._arranged(self.family.draw(number, lowest=0))
        order: list[int] = connectivity.ordering.argsort(kind="stable").tolist()
        return order

    def passes(self, number: int) -> list[Pass]:
        """The passes under mask ``number``, one for each segment; together they give the factor of every column."""
        if self.segments == 1:
            return [Pass(number if self.asked is None else self._arranged(self.family.draw(number, lowest=0)), None)]
        width, (last, cut) = self.family.positions, self._last()
        cuts = np.round(np.linspace(width - last, width, cut + 1)).astype(np.int64)
        passes = []
        for begin, end in pairwise(cuts.tolist()):
            part = self._arranged(self.family.draw(number, window=(begin, end - 1)))
            passes.append(Pass(part, (part.ordering > begin) & (part.ordering <= end)))
        return passes

    def _arranged(self, connectivity: Connectivity) -> Connectivity:
        return connectivity if self.asked is None else connectivity.with_last(self.asked)

    def _last(self) -> tuple[int, int]:
        """The number of positions at the end of the ordering that are asked for, and of segments they are cut into."""
        width = self.family.positions
        count = width if self.asked is None or not self.asked.any() else self.family.count_positions(self.asked)
        return count, min(-(-self.segments * count // width), count)


@dataclass(frozen=True, eq=False)
class PassSchedule:
    """The passes of every query under some masks of a family, with orderings cut into a number of segments.

    Example:
        Three binary columns, the first given, the others asked for, each in a segment of its own:

        >>> schedule = PassSchedule(Connectivities(3, (8,), masks=None), [0], segments=3)
        >>> evidence = Evidence(torch.zeros(5, 3), None, torch.tensor([[True, False, False]]).expand(5, 3))
        >>> (group,) = schedule.groups(evidence)
        >>> [(one.connectivity.ordering.tolist(), one.columns.tolist()) for one in group.passes(0)]
        [([1, 2, 3], [False, True, False]), ([1, 2, 3], [False, False, True])]
        >>> group.incremental, group.order(0)
        (True, [0, 1, 2])
    """

    family: Connectivities
    numbers: Sequence[int]
    segments: int = 1

    @property
    def weights(self) -> list[float]:
        """The weight of each number in answers about whole rows; they sum to one."""
        family = self.family
        found = [family.weights[number % family.whole_rows] if family.weights else 1.0 for number in self.numbers]
        found = found if sum(found) else [1.0] * len(found)
        return [weight / sum(found) for weight in found]

    def groups(self, evidence: Evidence, *, asked_last: bool = True) -> Iterator[RowGroup]:
        """The rows, grouped by the passes they take; every row is in one group.

        ``asked_last=False`` keeps the orderings, so that rows which ask for different columns share
        their passes: faster, and less accurate.
        """
        family = self.family
        if not family.any_order:
            yield RowGroup(family, torch.arange(len(evidence), device=evidence.values.device), None, self.numbers, 1)
            return
        whole = evidence.asked == evidence.is_observed if family.incomplete_rows else evidence.asked
        whole = whole.all(dim=1) & bool(family.whole_rows)
        for kind in whole.unique().tolist():
            rows = (whole == kind).nonzero().squeeze(1)
            masks = [number % family.whole_rows for number in self.numbers] if kind else self.numbers
            segments, weights = (1, family.weights) if kind else (self.segments, ())
            for which, asked in _arrangements(evidence[rows], asked_last):
                yield RowGroup(family, rows[which], asked, masks, segments, weights)


def _arrangements(evidence: Evidence, asked_last: bool) -> Iterator[tuple[Tensor, NDArray[np.bool_] | None]]:
    """Rows that share an ordering, and flags of the columns at its end; ``None`` for rows with nothing given."""
    rows = torch.arange(len(evidence), device=evidence.values.device)
    if evidence.given is None:
        yield rows, None
        return
    conditional = evidence.given.any(dim=1)
    if not conditional.all():
        yield rows[~conditional], None
    rows, asked = rows[conditional], evidence.asked[conditional]
    if not len(rows):
        return
    if not asked_last:
        yield rows, np.zeros(asked.shape[1], dtype=np.bool_)
        return
    patterns, pattern = asked.unique(dim=0, return_inverse=True)
    for index, columns in enumerate(patterns.cpu().numpy()):
        yield rows[pattern == index], columns
