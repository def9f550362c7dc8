r"""Passes of a network in a graph: several connectivities at once, as a first axis of masked matrices.

What is not given is seen as the masks allow. If columns are given, every observed column but the one asked for is, so
that the matrices of the first layer and the direct connections are not masked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from made.columns.exclusive import MOST as LARGEST
from made.columns.exclusive import Coupling
from made.export.graph import Graph, Node
from made.export.inputs import Inputs
from made.network.calibration import MOST, NUMBERS
from made.network.connectivity import Connectivity
from made.network.masked import Network

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


NODES, NODE_WEIGHTS = (each[20:] for each in np.polynomial.legendre.leggauss(40))


def _erf(x: Node) -> Node:
    """The error function; by quadrature in double precision, since ONNX Runtime's `Erf` is single precision only."""
    if x.dtype == np.float32:
        return x.apply("Erf")
    x = x.clip(-6.0, 6.0)
    total = x * 0.0
    for node, weight in zip(NODES.tolist(), NODE_WEIGHTS.tolist(), strict=True):
        total = total + (-(x * x) * node**2).exp() * weight
    return x * (2 / math.sqrt(math.pi)) * total


def _gelu(x: Node) -> Node:
    return x * 0.5 * (_erf(x * (1 / math.sqrt(2))) + 1.0)


def _elu(x: Node, alpha: float = 1.0) -> Node:
    """Not ONNX's `Elu`, which ONNX Runtime implements in single precision only."""
    return x.maximum(0.0) + (x.minimum(0.0).exp() - 1.0) * alpha


ACTIVATIONS: dict[str, Callable[[Node], Node]] = {
    "relu": lambda x: x.maximum(0.0),
    "softplus": Node.softplus,
    "tanh": Node.tanh,
    "sigmoid": Node.sigmoid,
    "leaky_relu": lambda x: x.maximum(x * 0.01),
    "elu": _elu,
    "selu": lambda x: _elu(x, SELU_ALPHA) * SELU_SCALE,
    "gelu": _gelu,
    "silu": lambda x: x * x.sigmoid(),
    "identity": lambda x: x,
}


class Passes:
    """The output units of a network under several connectivities.

    Arguments:
        graph: where the nodes are added.
        network: the network.
        connectivities: one for each pass.
        given: whether all columns that are observed are given.
    """

    def __init__(
        self, graph: Graph, network: Network, connectivities: Sequence[int | Connectivity], *, given: bool = False
    ) -> None:
        self.graph, self.network, self.given = graph, network, given
        family = network.connectivities
        self.connectivities = [family[each] if isinstance(each, int) else each for each in connectivities]
        state = network.state_dict()
        self.weights: dict[str, NDArray[Any]] = {name: each.detach().cpu().numpy() for name, each in state.items()}
        self.dtype = self.weights["c"].dtype
        columns = network.columns
        layers: list[list[NDArray[np.int64]]] = []
        for each in self.connectivities:
            inputs, *hidden, outputs = each.degrees
            layers.append([inputs, inputs[columns.input_columns], *hidden, outputs[columns.output_columns]])
        # From layer -1, the columns, to the outputs: (passes, units).
        self.degrees = {
            layer - 1: np.stack(some).astype(np.int32) for layer, some in enumerate(zip(*layers, strict=True))
        }

    def outputs(self, inputs: Inputs) -> Node:
        """The output units. Shape: (passes, rows, outputs)."""
        network = self.network
        x, observed, ones = (each.unsqueeze(0) for each in (inputs.x, inputs.observed, inputs.ones))
        h, last = x, network.depth + 1
        for layer in range(1, last):
            y = self._product(f"W{layer}", h) + self._offset(layer, observed)
            y = ACTIVATIONS[network.activation](y)
            h = h + y if network.joined(layer) else y
        y = self._product("V", h) + self._offset(last, observed)
        if network.direct:
            y = y + self._product("A", x)
        y = y if network.calibration is None else self._rescaled(y, observed)
        y = y if network.columns.coupling is None else self._coupled(network.columns.coupling, y, observed, ones)
        return y.expand([len(self.connectivities), 1, 1])

    def _coupled(self, coupling: Coupling, y: Node, observed: Node, ones: Node) -> Node:
        """The logits of exclusive groups, coupled (:mod:`made.columns.exclusive`)."""
        own, later = coupling.units.numpy(), coupling.later(self.network.c.detach().cpu()).numpy()
        observed, ones = (each.gather(coupling.columns.numpy()) for each in (observed, ones))
        z = y.gather(own).clip(-LARGEST, LARGEST)
        missing = (-observed + 1.0) * z.exp()
        # A column that is given is seen by all, one that is asked for by later ones.
        sums = missing @ (later + later.T) if self.given else z.exp() @ later + missing @ later.T
        met = ones @ (later + later.T if self.given else later.T)
        logits = (met > 0.0).where(self.graph.constant(coupling.rare, self.dtype), z - (sums + 1.0).log())
        others = np.setdiff1d(np.arange(len(self.weights["c"])), own)
        order = np.argsort(np.concatenate([others, own]))
        return self.graph.concat([y.gather(others), logits] if len(others) else [logits]).gather(order)

    def _mask(self, name: str) -> NDArray[np.bool_] | None:
        """The mask of a transposed matrix, (passes, before, after); ``None`` if everything is connected."""
        after, before = self.network.matrices[name]
        if self.given and before <= 0:
            return None
        mask = self.degrees[before][:, :, None] <= self.degrees[after][:, None, :]
        return None if mask.all() else mask

    def _product(self, name: str, x: Node) -> Node:
        weight, mask = self.weights[name].T, self._mask(name)
        if mask is None:
            return x @ weight
        if len(mask) == 1:
            return x @ (weight * mask).astype(self.dtype)
        after, before = self.network.matrices[name]
        degrees = [self.degrees[before][:, :, None], self.degrees[after][:, None, :]]
        flags = self.graph.constant(degrees[0]) <= degrees[1]
        return x @ (flags.cast(self.dtype) * weight)

    def _offset(self, layer: int, observed: Node) -> Node:
        bias = self.weights["c" if layer > self.network.depth else f"b{layer}"]
        if not self.network.conditioning:
            return self.graph.constant(bias)
        if layer == 1:
            return self._product("U1", observed) + bias
        mask, weight = self._mask(f"U{layer}"), self.weights[f"U{layer}"].T
        ones = weight[None] if mask is None else weight * mask
        return self.graph.constant((ones.sum(axis=1, keepdims=True) + bias).astype(self.dtype))

    def _rescaled(self, y: Node, observed: Node) -> Node:
        """The calibration (:mod:`made.network.calibration`), by how many columns each column sees."""
        calibration = self.weights["calibration"]
        alpha, beta, gamma, delta = np.split(calibration, NUMBERS)
        columns = calibration.shape[1]
        if self.given:
            seen = observed.sum(keep=True)
        else:
            orderings = np.stack([each.ordering for each in self.connectivities])
            before = orderings[:, :, None] < orderings[:, None, :]
            seen = observed @ before.astype(self.dtype)
        missed = -seen + float(columns - 1)
        share = seen / float(max(columns - 1, 1))
        unseen = (missed * -math.log(2)).exp()
        log_scale, shift = (
            (share * (unseen * more + least)).clip(-MOST, MOST) for least, more in ((alpha, beta), (gamma, delta))
        )
        c, of_outputs = self.weights["c"], self.network.columns.output_columns
        log_widths = self.network.columns.log_widths.numpy().astype(self.dtype)
        return (y - c) * log_scale.exp().gather(of_outputs) + c + shift.gather(of_outputs) * log_widths
