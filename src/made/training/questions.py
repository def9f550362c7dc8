"""Random questions: which entries of rows are given, missing or asked for.

Columns of an exclusive group (:mod:`made.columns.exclusive`) are mostly asked for together, as they are when a whole
row is evaluated; in some rows, parts of groups are given, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from made.network.dropout import of_rows, whole_batch
from made.network.masked import Network
from made.queries.evidence import Evidence

MOST_HIDDEN = 3  # entries of a nearly complete row
GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples, modulo 1, are spread evenly
PARTLY = 0.25  # of the rows, in which columns are given or hidden as if they were not in groups


class Groups:
    """Groups of neighbouring columns.

    Arguments:
        sizes: the number of columns in each group.

    Attributes:
        number: the number of the group of each column, (columns).
        starts: the first column of each group, (groups).
    """

    def __init__(self, sizes: Sequence[int], like: Tensor) -> None:
        counts = torch.tensor(sizes, device=like.device)
        self.number = torch.repeat_interleave(torch.arange(len(counts), device=like.device), counts)
        self.starts = counts.cumsum(dim=0) - counts
        self._member = torch.nn.functional.one_hot(self.number).to(like.dtype)

    @classmethod
    def of(cls, network: Network) -> Groups | None:
        """Those of a network; ``None`` if its columns are in no groups."""
        sizes = network.connectivities.groups
        return None if sizes is None else cls(sizes, network.c.detach())

    def any_of(self, flags: Tensor) -> Tensor:
        """Whether a column of each group is flagged. Shapes: (rows, columns) to (rows, groups)."""
        return flags.to(self._member.dtype) @ self._member > 0

    def mostly_together(self, uniform: Tensor, generator: torch.Generator) -> Tensor:
        """Random numbers that are mostly the same for all columns of a group. Shapes: (rows, columns) to the same."""
        apart = _share_of_rows(PARTLY, len(uniform), generator, uniform)
        return torch.where(apart.unsqueeze(1), uniform, uniform[:, self.starts[self.number]])


def _share_of_rows(share: float, rows: int, generator: torch.Generator, like: Tensor) -> Tensor:
    """Flags of a random share of the rows, (rows)."""
    uniform = torch.rand(whole_batch(generator, rows), generator=generator, device=like.device)
    return of_rows(generator, uniform) < share


def query_at_random(evidence: Evidence, generator: torch.Generator, groups: Groups | None = None) -> Evidence:
    """Make a random share of each row given and another missing; at least one entry is asked for."""
    values = evidence.values
    rows, width = whole_batch(generator, len(values)), values.shape[1]
    drawn = (torch.rand(rows, count, generator=generator, device=values.device) for count in (2, width, width))
    share, role, one = (of_rows(generator, each) for each in drawn)
    if groups is not None:
        role, one = (groups.mostly_together(each, generator) for each in (role, one))
    share = share.sort(dim=1).values
    given, asked = role < share[:, :1], role >= share[:, 1:]
    if evidence.observed is not None:
        given, asked, one = given & evidence.observed, asked & evidence.observed, one * evidence.observed
    asked.scatter_(1, one.argmax(dim=1, keepdim=True), True)
    if evidence.observed is not None:
        asked &= evidence.observed  # a row without observed entries asks for nothing
    return evidence.asking(asked | given, given & ~asked)


def hide_at_random(
    evidence: Evidence, share: float, generator: torch.Generator, groups: Groups | None = None
) -> Evidence:
    """Hide entries of a share of the rows, each entry of a row with the same probability, which is uniform."""
    values = evidence.values
    rows = whole_batch(generator, len(values))
    uniform = torch.rand(rows, values.shape[1] + 2, generator=generator, device=values.device)
    uniform = of_rows(generator, uniform)
    place = uniform[:, 2:] if groups is None else groups.mostly_together(uniform[:, 2:], generator)
    hidden = (place < uniform[:, :1]) & (uniform[:, 1:2] < share)
    return evidence.asking(~hidden & evidence.is_observed, None)


def give_at_random(
    evidence: Evidence,
    generator: torch.Generator,
    nearly_complete: float = 0.0,
    most_hidden: int = MOST_HIDDEN,
    groups: Groups | None = None,
) -> tuple[Evidence, Tensor]:
    """Make a random part of each row given; also return which rows are nearly complete, (rows).

    The number of given entries is uniform, from none to all but one: if one entry is asked for and each other one is
    given with the same probability, which is uniform itself, then so is their number. The probabilities of the rows
    are spread evenly, which is less noisy than drawing each by itself. Of a share ``nearly_complete`` of the rows, all
    but one to ``most_hidden`` entries are given.

    Of ``groups``, all this is true of groups instead of entries. But if some rows are to be nearly complete, others,
    which are returned as if they were, have parts of groups given.
    """
    values, observed = evidence.values, evidence.observed
    rows = whole_batch(generator, len(values))
    uniform = torch.rand(rows, 2, values.shape[1], generator=generator, device=values.device)
    share = torch.arange(rows, device=values.device).mul(GOLDEN).add_(uniform[:1, 1, 0]).frac_()
    share, uniform = of_rows(generator, share), of_rows(generator, uniform)
    hidden = torch.zeros_like(share)  # how many of MOST_HIDDEN, relatively
    nearly = torch.zeros_like(share, dtype=torch.bool)
    if nearly_complete:
        draw = of_rows(generator, torch.rand(2, rows, generator=generator, device=values.device), axis=1)
        nearly, hidden = draw[0] < nearly_complete, draw[1]
    flags = nearly if nearly_complete else None
    given = _given(uniform, share, observed, flags, hidden, most_hidden)
    if groups is not None:
        known = None if observed is None else groups.any_of(observed)
        by_group = _given(uniform[:, :, groups.starts], share, known, flags, hidden, most_hidden)
        together = by_group.index_select(1, groups.number)
        together = together if observed is None else together & observed
        apart = _share_of_rows(PARTLY if nearly_complete else 0.0, len(values), generator, uniform)
        nearly, given = nearly | apart, torch.where(apart.unsqueeze(1), given, together)
    return evidence.asking(observed, given), nearly


def _given(
    uniform: Tensor, share: Tensor, observed: Tensor | None, nearly: Tensor | None, hidden: Tensor, most_hidden: int
) -> Tensor:
    """Flags of what is given, (rows, columns), from uniform random numbers, (rows, 2, columns)."""
    place, one = uniform.unbind(dim=1)
    given = place < share.unsqueeze(1)
    if observed is not None:
        given, one = given & observed, one * observed
    given.scatter_(1, one.argmax(dim=1, keepdim=True), False)
    if nearly is not None:
        most = min(most_hidden, one.shape[1])
        shown = one < one.topk(most, dim=1).values.gather(1, (hidden * most).long().unsqueeze(1))
        given = torch.where(nearly.unsqueeze(1), shown if observed is None else shown & observed, given)
    return given
