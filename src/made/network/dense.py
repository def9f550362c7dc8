"""A pass in which every unit sees all that is given, and no column sees another: no weight is masked.

This is what training of an any-order model by parts of rows takes, and the answer about a single column.
"""

from __future__ import annotations

import torch
from torch import Tensor

from made.network.calibration import scales
from made.network.dropout import drop_out
from made.network.masked import ACTIVATIONS, Network

__all__ = ["dense_outputs"]


def dense_outputs(
    network: Network,
    x: Tensor,
    given: Tensor,
    *,
    dropout: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The output units. Shapes: (rows, inputs), (rows, columns) to (outputs, rows).

    Arguments:
        network: an any-order network.
        x: the input units, 0 for what is not given.
        given: flags of the given entries.
        dropout: whether to drop units at random.
        generator: the random generator of dropout.
    """
    weights = {name: network.get_parameter(name) for name in network.matrices}
    if dropout:
        x = drop_out(x, network.input_dropout, generator, rows=0)
    x = h = x.t()
    for layer in range(1, network.depth + 2):
        last = layer > network.depth
        offset = network.get_parameter("c" if last else f"b{layer}").unsqueeze(1)
        if network.conditioning:
            of_layer = weights[f"U{layer}"]
            offset = offset + (of_layer @ given.t().to(x.dtype) if layer == 1 else of_layer.sum(dim=1, keepdim=True))
        y = torch.addmm(offset, weights["V" if last else f"W{layer}"], h)
        if last:
            y = torch.addmm(y, weights["A"], x) if network.direct else y
            calibration = network.current_calibration
            if calibration is None:
                return y
            of_columns = scales(calibration.unsqueeze(2), given.sum(dim=1), len(network.columns))
            c = network.c.unsqueeze(1)
            return c + (y - c) * network.columns.per_output(of_columns)
        y = ACTIVATIONS[network.activation](y)
        if dropout:
            y = drop_out(y, network.dropout, generator, rows=1)
        h = h + y if network.joined(layer) else y
    raise AssertionError
