"""A pass and its gradient written out, without autograd: for small networks, whose products take little time.

Layers are as in :mod:`made.network.masked`, but hidden units are (rows, units): products of such matrices are faster.
All memory is used again in the next pass over as many rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from made.network import products
from made.network.masked import Network

mm = partial(products.mm, whole=True)
addmm = partial(products.addmm, whole=True)
add_product_ = partial(products.add_product_, whole=True)


class ExplicitPass:
    """Passes of a network in which every unit sees all input units, or that are masked.

    Arguments:
        network: a network that is :meth:`supported`.

    Attributes:
        gradients: the gradient of each parameter after the last pass.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.weights = {name: weight.detach() for name, weight in network.named_parameters()}
        self.gradients = {name: torch.empty_like(weight) for name, weight in self.weights.items()}
        self._masked = {name: torch.empty_like(self.weights[name]) for name in network.matrices}
        self._units: dict[int, _Units] = {}

    @staticmethod
    def supported(network: Network) -> bool:
        """Whether the passes of a network can be written out."""
        plain = not network.conditioning and not network.dropout and not network.input_dropout
        return plain and network.activation == "relu" and network.depth > 0 and not network.connectivities.single

    def outputs(self, x: Tensor, masks: Mapping[str, Tensor] | None = None) -> Tensor:
        """The output units, which the next pass overwrites. Shapes: (rows, inputs) to (outputs, rows).

        Arguments:
            x: the input units, 0 for what is not seen.
            masks: the masks of the matrices, 1 for a connection, otherwise 0; ``None`` for all connections.
        """
        network, weights = self.network, self.weights
        if masks is not None:
            masked = {name: torch.mul(weights[name], mask, out=self._masked[name]) for name, mask in masks.items()}
            weights = weights | masked
        rows = x.shape[0]
        if rows not in self._units:
            self._units[rows] = _Units(network, rows)
        units = self._last = self._units[rows]
        units.x, units.weights, units.masks, h = x, weights, masks, x
        for layer in range(1, network.depth + 1):
            y = units.active[layer]
            addmm(weights[f"b{layer}"], h, weights[f"W{layer}"].t(), out=y).relu_()
            h = torch.add(h, y, out=units.hidden[layer]) if network.joined(layer) else y
        addmm(weights["c"].unsqueeze(1), weights["V"], h.t(), out=units.outputs)
        if network.direct:
            add_product_(units.outputs, weights["A"], x.t())
        return units.outputs

    def differentiate(self, gradient: Tensor) -> None:
        """Compute :attr:`gradients` from the gradient of the output units of the last pass, (outputs, rows)."""
        network, units, found = self.network, self._last, self.gradients
        x, weights, depth = units.x, units.weights, network.depth
        mm(gradient, units.hidden[depth], out=found["V"])
        torch.sum(gradient, 1, out=found["c"])
        if network.direct:
            mm(gradient, x, out=found["A"])
        above = mm(gradient.t(), weights["V"], out=units.above[depth])
        for layer in range(depth, 0, -1):
            before = x if layer == 1 else units.hidden[layer - 1]
            own = torch.ops.aten.threshold_backward.grad_input(
                above, units.active[layer], 0, grad_input=units.own[layer]
            )
            mm(own.t(), before, out=found[f"W{layer}"])
            torch.sum(own, 0, out=found[f"b{layer}"])
            if layer > 1 and network.joined(layer):
                add_product_(above, own, weights[f"W{layer}"])
            elif layer > 1:
                above = mm(own, weights[f"W{layer}"], out=units.above[layer - 1])
        for name, mask in (units.masks or {}).items():
            found[name].mul_(mask)


class _Units:
    """Buffers for a pass over a number of rows, and what its backward pass needs of the last forward pass."""

    x: Tensor
    weights: Mapping[str, Tensor]
    masks: Mapping[str, Tensor] | None

    def __init__(self, network: Network, rows: int) -> None:
        sizes, like = dict(enumerate(network.sizes[1:-1], start=1)), network.c.detach()
        self.active, self.own, self.above = (
            {layer: like.new_empty(rows, size) for layer, size in sizes.items()} for _ in range(3)
        )
        self.hidden = {
            layer: torch.empty_like(active) if network.joined(layer) else active
            for layer, active in self.active.items()
        }
        self.outputs = like.new_empty(network.sizes[-1], rows)
