"""A pass in which every unit sees all that is given, and no column sees another: no weight is masked.

This is what training of an any-order model by parts of rows takes, and the answer about a single column.
"""

from __future__ import annotations

import torch
from torch import Tensor

from made.network.calibration import adjustments, calibrated
from made.network.dropout import drop_out
from made.network.masked import ACTIVATIONS, Network
from made.network.products import addmm


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
    h = x  # hidden units are (rows, units): products of that layout are faster
    for layer in range(1, network.depth + 1):
        offset: Tensor = network.get_parameter(f"b{layer}")
        if network.conditioning:
            of_layer = weights[f"U{layer}"]
            offset = offset + (given.to(x.dtype) @ of_layer.t() if layer == 1 else of_layer.sum(dim=1))
        y = ACTIVATIONS[network.activation](addmm(offset, h, weights[f"W{layer}"].t()))
        if dropout:
            y = drop_out(y, network.dropout, generator, rows=0)
        h = h + y if network.joined(layer) else y
    c = of_outputs = network.c.unsqueeze(1)
    if network.conditioning:
        of_layer = weights[f"U{network.depth + 1}"]
        of_outputs = c + (of_layer.sum(dim=1, keepdim=True) if network.depth else of_layer @ given.t().to(x.dtype))
    y = addmm(of_outputs, weights["V"], h.t())
    y = addmm(y, weights["A"], x.t()) if network.direct else y
    calibration = network.current_calibration
    if calibration is None:
        return y
    of_columns = adjustments(calibration.unsqueeze(2), given.sum(dim=1), len(network.columns))
    scale, shift = (network.columns.per_output(each) for each in of_columns)
    return calibrated(y, c, scale, shift, network.columns.log_widths.to(c).unsqueeze(1))
