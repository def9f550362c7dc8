r"""One column at a time, each given all columns before it: the passes of EoNADE, sharing their work.

With as many segments as columns, each pass sees what the pass before saw and one column more. So the first layer need
not be computed anew: before its activation it grows by the weights of one column,

.. math:: a_{d+1} = a_d + W^1_{\cdot,d} \, x_d + U^1_{\cdot,d},

as in NADE (Larochelle and Murray, 2011). Only the output units of one column are needed. What is left of a pass are the
layers between: D passes through a network of one hidden layer cost no more than one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from made.network.masked import ACTIVATIONS, Network
from made.queries.evidence import Evidence

__all__ = ["IncrementalPass", "complete", "factors"]


class IncrementalPass:
    """The first layer of several rows, after the columns seen so far.

    Arguments:
        network: an any-order network that has hidden layers.
        evidence: the rows; what is given is seen from the start.
    """

    def __init__(self, network: Network, evidence: Evidence) -> None:
        self.network, columns = network, network.columns
        self.offsets = [network.get_parameter(f"b{layer}") for layer in range(1, network.depth + 1)] + [network.c]
        if network.conditioning:  # every unit of later layers has the same degree, and sees all of the layer before
            after = [network.get_parameter(f"U{layer}").sum(dim=1) for layer in range(2, network.depth + 2)]
            self.offsets = [self.offsets[0], *(b + u for b, u in zip(self.offsets[1:], after, strict=True))]
        self.offsets = [each.unsqueeze(1) for each in self.offsets]
        self.x = evidence.values.new_zeros(columns.inputs, len(evidence))
        self.first = self.offsets[0].expand(-1, len(evidence)).clone()
        if evidence.given is not None:
            flags = torch.from_numpy(columns.input_columns).to(self.x.device)
            self.x = (columns.encode(evidence.values) * evidence.given.index_select(1, flags)).t().contiguous()
            self.first += network.get_parameter("W1") @ self.x
            if network.conditioning:
                self.first += network.get_parameter("U1") @ evidence.given.t().to(self.x.dtype)

    def units(self, d: int) -> Tensor:
        """The output units of column d, given what has been seen. Shape: (rows, outputs of the column)."""
        network, own = self.network, self.network.output_units(d)
        activation = ACTIVATIONS[network.activation]
        h = activation(self.first.clone())
        for layer in range(2, network.depth + 1):
            y = activation(torch.addmm(self.offsets[layer - 1], network.get_parameter(f"W{layer}"), h))
            h = h + y if network.joined(layer) else y
        outputs = torch.addmm(self.offsets[-1][own], network.get_parameter("V")[own], h)
        if network.direct:
            outputs.addmm_(network.get_parameter("A")[own], self.x)
        return outputs.t()

    def see(self, d: int, values: Tensor, flags: Tensor) -> None:
        """Add column d to what is seen, in the flagged rows. Shapes: (rows), twice."""
        network, own = self.network, self.network.input_units(d)
        units = (network.columns[d].encode(values) * flags.unsqueeze(1)).t()
        self.x[own] += units
        self.first.addmm_(network.get_parameter("W1")[:, own], units)
        if network.conditioning:
            self.first.addmm_(network.get_parameter("U1")[:, d : d + 1], flags.unsqueeze(0).to(units.dtype))


@torch.no_grad()
def factors(network: Network, evidence: Evidence, order: Sequence[int]) -> Iterator[tuple[int, Tensor]]:
    """log p(x_d | x_<d) of each column that is asked for, in this order, (rows); 0 where it is not asked for."""
    state, asked = IncrementalPass(network, evidence), evidence.asked
    for d in order:
        here, values = asked[:, d], evidence.values[:, d]
        if not here.any():
            continue
        yield d, network.columns[d].log_prob(state.units(d), values).masked_fill(~here, 0)
        state.see(d, values, here)


@torch.no_grad()
def complete(
    network: Network,
    rows: Tensor,
    order: Sequence[int],
    uniform: Tensor | None,
    temperature: float = 1.0,
) -> Tensor:
    """Fill the NaN of each row in this order, with draws, or, without random numbers, with the most likely values.

    Shapes: (rows, columns), twice, to (rows, columns).
    """
    missing = rows.isnan()
    filled = rows.masked_fill(missing, 0)
    noise = None if uniform is None else network.columns.noise(uniform).to(rows.dtype)
    state = IncrementalPass(network, Evidence(filled, None, ~missing))
    for d in order:
        if not missing[:, d].any():
            continue
        kind, units = network.columns[d], state.units(d)
        if temperature != 1:
            units = kind.tempered(units, temperature)
        value = kind.mode(units) if noise is None else kind.draw(units, noise[:, d])
        filled[:, d] = torch.where(missing[:, d], value, filled[:, d])
        state.see(d, filled[:, d], missing[:, d])
    return filled
