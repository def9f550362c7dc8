r"""Groups of neighbouring binary columns of which mostly one or none is 1: their logits, coupled.

The columns of a group share a position in the ordering, so that the output units z of all of them see the same columns,
those before the group. What they mean is a softmax over which column is 1, or none, whose logit is 0. It is evaluated
column by column, by the chain rule: with the logit

.. math:: z_d - \log \Big(1 + \sum_{k \text{ unseen},\, k \ne d} e^{z_k}\Big)

in place of :math:`z_d`, column d has its conditional probability given the columns of the group that are *seen*: those
that are given, and those observed before it. All others are unseen. If a seen column is 1, the probability of another 1
is :math:`1 / ((n + 2) K)` instead: by the rule of succession, an event that n rows never had has the probability
:math:`1 / (n + 2)`, which the K columns of groups share. As each factor is a distribution of one column, every row has
a probability, and they sum to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

MOST = 40.0  # of |z|: sums of exponentials neither overflow nor vanish in single precision


class Coupling:
    """The coupling of the logits of all groups.

    Arguments:
        sizes: the number of columns in each group, in order; a column outside of groups is a group of its own.
        rows: n, the number of rows in which no group had two ones.
        units: the output unit of each column that is in a group.

    Attributes:
        rare: the logit of a second 1.
        columns: the columns that are in a group.

    Example:
        A group of two columns; the first one is seen when the second one is predicted:

        >>> coupling = Coupling([2], rows=8, units=[0, 1])
        >>> coupling(torch.zeros(1, 2), torch.tensor([[0.0, 0.0]])).sigmoid()
        tensor([[0.3333, 0.5000]])
        >>> coupling(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])).sigmoid()
        tensor([[0.3333, 0.0500]])
    """

    def __init__(self, sizes: Sequence[int], rows: int, units: Sequence[int]) -> None:
        self.sizes, number = tuple(sizes), np.repeat(np.arange(len(sizes)), sizes)
        grouped = np.flatnonzero(np.repeat(sizes, sizes) > 1)
        self.rows, self.rare = rows, -math.log((rows + 2) * len(grouped) - 1)
        self.columns, self.units = torch.from_numpy(grouped), torch.as_tensor(units, dtype=torch.long)
        self.number = torch.from_numpy(number[grouped])
        self._later: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def later(self, like: Tensor) -> Tensor:
        """1 if the first column comes later in the group of the second one, otherwise 0. Shape: (columns, columns)."""
        key = like.device, like.dtype
        if key not in self._later:
            with torch.inference_mode(False):  # made in evaluation, and used in training
                same = self.number.unsqueeze(1) == self.number
                self._later[key] = same.tril(-1).to(like)
        return self._later[key]

    def __call__(
        self, units: Tensor, values: Tensor, observed: Tensor | None = None, given: Tensor | None = None
    ) -> Tensor:
        """Output units with the coupled logits. Shapes: (rows, outputs), (rows, columns) to (rows, outputs)."""
        own, places = self.units.to(units.device), self.columns.to(units.device)
        tables = (None if table is None else table.index_select(1, places) for table in (values, observed, given))
        logits = self._coupled(self.later(units), units.index_select(1, own), *tables)  # type: ignore[arg-type]
        return units.index_copy(1, own, logits)

    def of_group(self, z: Tensor, values: Tensor, observed: Tensor | None, given: Tensor | None) -> Tensor:
        """The coupled logits of a single group. Shapes: all (rows, columns of the group)."""
        return self._coupled(z.new_ones(z.shape[1], z.shape[1]).tril(-1), z, values, observed, given)

    def _coupled(
        self, later: Tensor, z: Tensor, values: Tensor, observed: Tensor | None, given: Tensor | None
    ) -> Tensor:
        z = z.clamp(-MOST, MOST)
        weights, ones, earlier = z.exp(), (values == 1).to(z.dtype), later.t()
        sums = (weights if given is None else weights * ~given) @ later + 1
        met = 0.0 if given is None else (ones * given) @ later
        if observed is not None:
            sums, ones = sums + (weights * ~observed) @ earlier, ones * observed
        return torch.where(ones @ earlier + met > 0, self.rare, z - sums.log())

    def complete(
        self, z: Tensor, values: Tensor, seen: Tensor, wanted: Tensor, choose: Callable[[Tensor, int], Tensor]
    ) -> Tensor:
        """Values of a group, the wanted ones chosen one after the other. Shapes: all (rows, columns of the group).

        Arguments:
            z: the output units.
            values: the values that are seen.
            seen: flags of the columns that are seen, or that there are not.
            wanted: flags of the columns to choose values of; none of them is seen.
            choose: gives the values of a column from their coupled logits, (rows), and its number in the group.
        """
        z, values, seen = z.clamp(-MOST, MOST), values.clone(), seen.clone()
        weights = z.exp()
        for d in wanted.any(dim=0).nonzero().flatten().tolist():
            unseen = weights * ~seen
            unseen[:, d] = 0
            met = ((values == 1) & seen).any(dim=1)
            chosen = choose(torch.where(met, self.rare, z[:, d] - unseen.sum(dim=1).log1p()), d)
            values[:, d] = torch.where(wanted[:, d], chosen, values[:, d])
            seen[:, d] |= wanted[:, d]
        return values

    def independent(self, logits: Tensor) -> Tensor:
        """Output units with the same probability of each column as these, (outputs), if exactly so many are 1."""
        units, number = self.units.to(logits.device), self.number.to(logits.device)
        shares = logits[units].sigmoid()
        none = 1 - torch.zeros_like(shares).index_add_(0, number.unique(return_inverse=True)[1], shares)
        none = none.clamp(min=1 / (self.rows + 2))[number.unique(return_inverse=True)[1]]
        return logits.index_copy(0, units, shares.log() - none.log())
