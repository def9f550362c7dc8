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
from torch import Tensor

from made.network.calibration import scales
from made.network.masked import ACTIVATIONS, Network
from made.queries.evidence import Evidence


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
        c = network.c[own].reshape(len(columns), -1)
        of_columns = scales(calibration[:, list(columns)], seen.unsqueeze(1), len(network.columns))
        return c + (outputs - c) * of_columns.unsqueeze(2)

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

    def _own(self, units_of: Callable[[int], slice], columns: Sequence[int]) -> slice | Tensor:
        """The units of some columns."""
        parts = [units_of(d) for d in columns]
        if len(parts) == 1:
            return parts[0]
        return torch.from_numpy(np.concatenate([np.arange(each.start, each.stop) for each in parts])).to(self.x.device)


@torch.no_grad()
def factors(network: Network, evidence: Evidence, order: Sequence[int]) -> Iterator[tuple[int, Tensor]]:
    """log p(x_d | x_<d) of each column that is asked for, in this order, (rows); 0 where it is not asked for."""
    state, asked = IncrementalPass(network, evidence), evidence.asked
    some, every = asked.any(dim=0).tolist(), asked.all(dim=0).tolist()
    for d in order:
        if not some[d]:
            continue
        rows = asked[:, d].nonzero().squeeze(1)
        values = evidence.values[rows, d]
        factor = network.columns[d].log_prob(state.units([d], None if every[d] else rows).squeeze(1), values)
        yield d, factor if every[d] else torch.zeros_like(evidence.values[:, d]).index_copy_(0, rows, factor)
        state.see([d], torch.zeros_like(rows), values, rows)


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
    kinds = list(dict.fromkeys(network.columns))
    kind_of = np.array([*map(kinds.index, network.columns), len(kinds)])  # the last one for rows that are complete
    left = np.where(missing.cpu().numpy(), positions.cpu().numpy(), width)  # (rows, columns)
    at = np.where(left.min(axis=1) < width, left.argmin(axis=1), width)  # the column that each row is at
    while (counts := np.bincount(kind_of[at], minlength=len(kinds) + 1)[:-1]).any():
        number = int(counts.argmax())
        places = np.flatnonzero(kind_of[at] == number)
        own = at[places]
        present = np.bincount(own, minlength=width) > 0
        columns, which = np.flatnonzero(present).tolist(), (present.cumsum() - 1)[own]
        index, among, entry = (torch.from_numpy(each).to(rows.device) for each in (places, which, places * width + own))
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
        behind = left[places]
        at[places] = np.where(behind.min(axis=1) < width, behind.argmin(axis=1), width)
        state.see(columns, among, value, index)
    return drawn.reshape(rows.shape)
