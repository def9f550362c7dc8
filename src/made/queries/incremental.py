r"""One column at a time, each given all columns before it: the passes of EoNADE, sharing their work.

With as many segments as columns, each pass sees one column more than the pass before. So the first layer is updated
instead of recomputed: its pre-activations grow by the weights of one column,

.. math:: a_{d+1} = a_d + W^1_{\cdot,d} \, x_d + U^1_{\cdot,d},

as in NADE (Larochelle and Murray, 2011). Only the output units of one column are needed, so that only the layers in
between are computed in full: with one hidden layer, D passes cost no more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.base import Column
from made.network.calibration import adjustments, calibrated
from made.network.masked import ACTIVATIONS, Network
from made.queries.evidence import Evidence
from made.queries.random import double


def rows_at_a_time(network: Network) -> int:
    """A number of rows whose first layer does not take much memory."""
    return max(2**21 // max(network.sizes), 1)


class IncrementalPass:
    """The first layer of several rows, after the columns seen so far; rows may have seen different columns.

    The network is any-order and has hidden layers. What is given is seen from the start.
    """

    def __init__(self, network: Network, evidence: Evidence) -> None:
        self.network, columns = network, network.columns
        self.activation = ACTIVATIONS[network.activation]
        self.offsets = [network.get_parameter(f"b{layer}") for layer in range(1, network.depth + 1)] + [network.c]
        if network.conditioning:  # every unit of later layers has the same degree, and sees all of the layer before
            after = [network.get_parameter(f"U{layer}").sum(dim=1) for layer in range(2, network.depth + 2)]
            self.offsets = [self.offsets[0], *(b + u for b, u in zip(self.offsets[1:], after, strict=True))]
        self.weights = {name: network.get_parameter(name).t() for name in network.matrices}
        self.x = evidence.values.new_zeros(len(evidence), columns.inputs)
        self.first = self.offsets[0].expand(len(evidence), -1).clone()
        self.seen = self.x.new_zeros(len(evidence))  # how many columns
        if evidence.given is not None:
            self.x = columns.encode(evidence.values) * columns.per_unit(evidence.given)
            self.seen = evidence.given.sum(dim=1).to(self.x.dtype)
            self.first.addmm_(self.x, self.weights["W1"])
            if network.conditioning:
                self.first.addmm_(evidence.given.to(self.x.dtype), self.weights["U1"])

    def units(self, columns: Sequence[int], rows: Tensor | None = None) -> Tensor:
        """The output units of columns of one kind, given what has been seen, of all rows or some.

        Shape: (rows, columns, outputs of a column).
        """
        network, own = self.network, self._own(self.network.output_units, columns)
        h = self.activation(self.first.clone() if rows is None else self.first.index_select(0, rows))
        for layer in range(2, network.depth + 1):
            y = self.activation(torch.addmm(self.offsets[layer - 1], h, self.weights[f"W{layer}"]))
            h = y.add_(h) if network.joined(layer) else y
        outputs = torch.addmm(self.offsets[-1][own], h, self.weights["V"][:, own])
        if network.direct:
            outputs.addmm_(self.x if rows is None else self.x.index_select(0, rows), self.weights["A"][:, own])
        outputs = outputs.reshape(len(outputs), len(columns), -1)
        calibration = network.current_calibration
        if calibration is None:
            return outputs
        seen = self.seen if rows is None else self.seen.index_select(0, rows)
        scale, shift = adjustments(calibration[:, list(columns)], seen.unsqueeze(1), len(network.columns))
        c, log_widths = (
            each[own].reshape(len(columns), -1) for each in (network.c, network.columns.log_widths.to(network.c))
        )
        return calibrated(outputs, c, scale.unsqueeze(2), shift.unsqueeze(2), log_widths)

    def see(self, columns: Sequence[int], which: Tensor, values: Tensor, rows: Tensor) -> None:
        """Add a column to what some rows have seen, number ``which`` of columns of one kind. Shapes: (rows)."""
        network, own = self.network, self._own(self.network.input_units, columns)
        units = network.columns[columns[0]].encode(values)
        if isinstance(own, slice):
            self.x[:, own].index_copy_(0, rows, units)
        else:
            places = own.reshape(len(columns), -1).index_select(0, which) + rows.unsqueeze(1) * self.x.shape[1]
            self.x.view(-1).index_copy_(0, places.flatten(), units.flatten())
            apart = units.new_zeros(len(units) * len(columns), units.shape[1])
            among = torch.arange(len(units), device=rows.device) * len(columns) + which
            units = apart.index_copy_(0, among, units).reshape(len(units), -1)
        self.first.index_add_(0, rows, units @ self.weights["W1"][own])
        self.seen[rows] += 1
        if network.conditioning:
            seen = torch.tensor(columns, device=rows.device)[which]
            self.first.index_add_(0, rows, self.weights["U1"][seen])

    def see_group(self, columns: Sequence[int], seen: Tensor, values: Tensor, rows: Tensor) -> None:
        """Add binary columns to what some rows have seen, where flags say so. Shapes: (rows, columns) twice, (rows)."""
        own, width = self._own(self.network.input_units, columns), len(self.network.columns)
        table = values.new_zeros(len(rows), width).index_copy_(1, torch.tensor(columns, device=rows.device), values)
        units, flags = self.network.columns.encode(table)[:, own] * seen, seen.to(values.dtype)
        self.x[rows.unsqueeze(1), own] += units
        self.first.index_add_(0, rows, units @ self.weights["W1"][own])
        self.seen[rows] += flags.sum(dim=1)
        if self.network.conditioning:
            self.first.index_add_(0, rows, flags @ self.weights["U1"][list(columns)])

    def _own(self, units_of: Callable[[int], slice], columns: Sequence[int]) -> slice | Tensor:
        """The units of some columns."""
        parts = [units_of(d) for d in columns]
        if len(parts) == 1:
            return parts[0]
        return torch.from_numpy(np.concatenate([np.arange(each.start, each.stop) for each in parts])).to(self.x.device)


def _coupled(units: Tensor, network: Network, columns: Sequence[int], evidence: Evidence) -> Tensor:
    """The output units of the columns of a group, coupled. Shapes: (rows, columns, outputs) to the same.

    The evidence has no other columns.
    """
    coupling = network.columns.coupling
    if coupling is None or len(columns) == 1:
        return units
    return coupling.of_group(units.squeeze(2), evidence.values, evidence.observed, evidence.given).unsqueeze(2)


@torch.no_grad()
def alone(network: Network, evidence: Evidence, column: int) -> Tensor:
    """The output units of one column, given what is given and nothing else. Shape: (rows, outputs)."""
    columns = network.columns.together[column]
    given = (torch.zeros_like(evidence.is_observed) if evidence.given is None else evidence.given)[:, columns]
    part = Evidence(evidence.values[:, columns], given, given)
    units = _coupled(IncrementalPass(network, evidence).units(columns), network, columns, part)
    return units[:, columns.index(column)]


@torch.no_grad()
def factors(network: Network, evidence: Evidence, order: Sequence[int]) -> Iterator[tuple[int, Tensor]]:
    """log p(x_d | x_<d) of each column that is asked for, in this order, (rows); 0 where it is not asked for."""
    state, asked = IncrementalPass(network, evidence), evidence.asked
    some, every = asked.any(dim=0).tolist(), asked.all(dim=0).tolist()
    for first in order:
        columns = network.columns.together[first]
        if first != columns[0] or not any(some[d] for d in columns):
            continue
        rows = None if any(every[d] for d in columns) else asked[:, columns].any(dim=1).nonzero().squeeze(1)
        flags = (evidence.observed, evidence.given)
        observed, given = (None if table is None else _part(table, rows, columns) for table in flags)
        values = _part(evidence.values, rows, columns)
        units = _coupled(state.units(columns, rows), network, columns, Evidence(values, observed, given))
        for number, d in enumerate(columns):
            if not some[d]:
                continue
            factor = network.columns[d].log_prob(units[:, number], values[:, number])
            if rows is not None:
                factor = torch.zeros_like(evidence.values[:, d]).index_copy_(0, rows, factor)
            yield d, factor if every[d] else factor.masked_fill(~asked[:, d], 0)
        for d in columns:
            seen = asked[:, d].nonzero().squeeze(1)
            if len(seen):
                state.see([d], torch.zeros_like(seen), evidence.values[seen, d], seen)


def log_prob_in_order(network: Network, evidence: Evidence, order: Sequence[int]) -> Tensor:
    """log p of each row in one ordering of the positions, columns or groups of them, in double precision. (rows)"""
    starts = np.cumsum([0, *(network.columns.groups or (1,) * len(network.columns))])
    found = [factor for _, factor in factors(network, evidence, starts[list(order)].tolist())]
    return torch.stack(found).sum(dim=0, dtype=double(evidence.values))


def _part(table: Tensor, rows: Tensor | None, columns: Sequence[int]) -> Tensor:
    part = table[:, columns]
    return part if rows is None else part.index_select(0, rows)


@torch.no_grad()
def complete(
    network: Network, rows: Tensor, positions: Tensor, uniform: Tensor | None, temperature: float = 1.0
) -> Tensor:
    """Fill the NaN of each row with draws, or, without random numbers, with the most likely values.

    Each row has an ordering of its own. Rows that are at columns of the same kind share a pass, and the next pass is
    for the kind that most rows are at, so that there are fewer passes than for one ordering after the other. Shapes:
    coded rows, positions of columns in the ordering of each row, and random numbers are all (rows, columns). A column
    whose position is the number of columns is left out.
    """
    missing, width = rows.isnan(), rows.shape[1]
    filled = rows.masked_fill(missing, 0)
    state = IncrementalPass(network, Evidence(filled, None, None if missing.all() else ~missing))
    noise = None if uniform is None else network.columns.noise(uniform).to(rows.dtype).flatten()
    drawn = filled.flatten()
    together = network.columns.together
    kinds = list(dict.fromkeys(network.columns))
    # The last kind but one is that of all columns in groups, the last one for rows that are complete.
    numbers = [len(kinds) if len(together[d]) > 1 else kinds.index(kind) for d, kind in enumerate(network.columns)]
    kind_of = np.array([*numbers, len(kinds) + 1])
    left = np.where(missing.cpu().numpy(), positions.cpu().numpy(), width)  # (rows, columns)
    at = np.where(left.min(axis=1) < width, left.argmin(axis=1), width)  # the column that each row is at
    while (counts := np.bincount(kind_of[at], minlength=len(kinds) + 2)[:-1]).any():
        number = int(counts.argmax())
        places = np.flatnonzero(kind_of[at] == number)
        own = at[places]
        present = np.bincount(own, minlength=width) > 0
        index = torch.from_numpy(places).to(rows.device)
        if number == len(kinds):
            _complete_groups(state, places, own, drawn.view(rows.shape), missing, left, noise, temperature)
        else:
            columns, which = np.flatnonzero(present).tolist(), (present.cumsum() - 1)[own]
            among, entry = (torch.from_numpy(each).to(rows.device) for each in (which, places * width + own))
            kind, units = kinds[number], state.units(columns, None if len(places) == len(at) else index)
            if len(columns) > 1:
                units = units.flatten(0, 1).index_select(
                    0, torch.arange(len(index), device=rows.device) * len(columns) + among
                )
            units = units.reshape(len(index), -1)
            if temperature != 1:
                units = kind.tempered(units, temperature)
            value = kind.mode(units) if noise is None else kind.draw(units, noise.index_select(0, entry))
            drawn.index_copy_(0, entry, value)
            left[places, own] = width
            state.see(columns, among, value, index)
        behind = left[places]
        at[places] = np.where(behind.min(axis=1) < width, behind.argmin(axis=1), width)
    return drawn.reshape(rows.shape)


def _complete_groups(
    state: IncrementalPass,
    places: NDArray[np.intp],
    own: NDArray[np.intp],
    drawn: Tensor,
    missing: Tensor,
    left: NDArray[np.int32],
    noise: Tensor | None,
    temperature: float,
) -> None:
    """Fill the group that each of some rows is at, in place. Shapes: (rows), (rows), and tables of all rows."""
    network, width = state.network, drawn.shape[1]
    coupling, together = network.columns.coupling, network.columns.together
    assert coupling is not None
    firsts, sizes = (np.array(each)[own] for each in zip(*((d[0], len(d)) for d in together), strict=True))
    number = np.arange(sizes.max())
    there = number < sizes[:, None]
    members = np.minimum(firsts[:, None] + number, width - 1)  # (rows, columns of the largest group)
    columns = np.unique(members[there])
    among = np.minimum(np.searchsorted(columns, members), len(columns) - 1)
    wanted = there & (left[places[:, None], members] < width)
    index, entry, absent, asked = (
        torch.from_numpy(each).to(drawn.device) for each in (places, members, ~there, wanted)
    )
    z = state.units(columns.tolist(), index).squeeze(2).gather(1, torch.from_numpy(among).to(drawn.device))
    at = index.unsqueeze(1), entry
    random = None if noise is None else noise.view(drawn.shape)[at]
    kind: Column = network.columns[int(own[0])]

    def choose(logits: Tensor, d: int) -> Tensor:
        units = logits.unsqueeze(1)
        units = units if temperature == 1 else kind.tempered(units, temperature)
        return kind.mode(units) if random is None else kind.draw(units, random[:, d])

    values = drawn[at].masked_fill(absent, 0)
    values = coupling.complete(z, values, ~missing[at] | absent, asked, choose)
    entries = tuple(each.expand_as(asked)[asked] for each in at)
    drawn[entries] = values[asked]
    left[(places[:, None] + 0 * members)[wanted], members[wanted]] = width
    seen = torch.zeros(len(places), len(columns), dtype=torch.bool, device=drawn.device)
    table, inside = torch.zeros_like(seen, dtype=values.dtype), torch.from_numpy(among).to(drawn.device)[asked]
    row = torch.arange(len(places), device=drawn.device).unsqueeze(1).expand_as(asked)[asked]
    seen[row, inside], table[row, inside] = True, values[asked]
    state.see_group(columns.tolist(), seen, table, index)
