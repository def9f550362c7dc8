r"""Ancestral sampling that uses each weight once: a sample for the multiply-adds of one pass.

After the column at position d is drawn, only the units of degree d become computable, and they never change again. So
each weight is used once per sample, where ancestral sampling usually takes D passes. To keep products large, degrees
are taken range by range, the same ranges as in :mod:`made.network.staircase`: what all earlier ranges add to the units
of a range is one matrix product, and only the corner is gone through column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from made.columns.base import Column
from made.network.calibration import adjustments, calibrated
from made.network.layout import SortedLayout
from made.network.masked import ACTIVATIONS, Network
from made.network.products import add_product_


class _Corner(NamedTuple):
    """The corner of one matrix in one range of degrees.

    ``weights`` has the rows of each degree; ``source`` the units they are multiplied with, which come after ``full``
    others; ``starts`` the number of units of that layer below each degree.
    """

    weights: Sequence[Tensor]
    source: Tensor
    full: int
    starts: list[int]


def ancestral(
    network: Network,
    layout: SortedLayout,
    values: Tensor,
    known: Tensor | None,
    uniform: Tensor | None,
    temperature: float,
    wanted: Tensor | None = None,
) -> Tensor:
    """Fill in the unknown values of coded rows, columns in the order of a packed layout. Shapes: all (rows, columns).

    ``known`` are flags, ``None`` for none; without random numbers, the most likely values are filled in. ``wanted`` are
    flags of the columns to draw, (columns); ``None`` for all that are not known.
    """
    columns, last = layout.columns, network.depth + 1
    given = known is not None and network.connectivities.any_order
    layers = _beginnings(network, layout, values, known, given, wanted)
    # Of each layer and degree: the index of its first unit, the number of its units, and their values.
    starts = [layout.layers[layer].starts(len(columns)) for layer in range(last + 1)]
    counts = [[end - begin for begin, end in pairwise(each)] for each in starts]
    units = [layer.split_with_sizes(count) for layer, count in zip(layers, counts, strict=True)]
    packed = {
        matrix: layout.stairs(matrix).matrices(layout.weights[name])
        for name, matrix in network.matrices.items()
        if not name.startswith("U")
    }
    activation = ACTIVATIONS[network.activation]
    noise = None if uniform is None else columns.noise(uniform).t().contiguous().to(values.dtype)
    absent = torch.ones_like(values, dtype=torch.bool) if known is None else ~known
    absent = absent if wanted is None else absent & wanted  # what is to be drawn, (rows, columns)
    # The columns at position d + 1, several if they are a group, and whether all of them are certain.
    members = [range(*each) for each in pairwise(layout.layers[-1].starts(len(columns))[1:])]
    some = absent.any(dim=0).tolist()
    certain = [not any(some[d] for d in each) for each in members]
    drawn = list(values.unbind(dim=1))
    seen = values.new_zeros(1) if known is None else known.sum(dim=1).to(values.dtype)  # how many columns
    calibration = network.current_calibration
    calibration = None if calibration is None else layout.arrange(calibration)
    biases, log_widths = (
        layout.sort(last, each).split_with_sizes(counts[last])
        for each in (network.c, network.columns.log_widths.to(network.c))
    )

    def choose(outputs: Tensor, d: int) -> Tensor:
        kind: Column = columns[d]
        outputs = outputs if temperature == 1 else kind.tempered(outputs, temperature)
        return kind.mode(outputs) if noise is None else kind.draw(outputs, noise[d])

    for j, (low, high) in enumerate(pairwise(layout.cuts.tolist())):
        corners: dict[int, list[_Corner]] = {}
        # The contribution of earlier ranges to this one: rows of blocks pull it, ...
        for (after, before), blocks in packed.items():
            (rows, _, corner), weight = blocks[j]
            full, prefix = layout.layers[before].bounds[j : j + 2]
            if not layout.stairs((after, before)).by_columns:
                add_product_(layers[after][rows], weight[:, :full], layers[before][:full])
            by_degree = weight[corner].split_with_sizes(counts[after][low:high])
            corner_of = _Corner(by_degree, layers[before][full:prefix], full, starts[before])
            corners.setdefault(after, []).append(corner_of)
        for degree in range(low, high):
            for layer in range(1, last + 1):
                if counts[layer][degree] == 0 or (layer == last and certain[degree]):
                    continue
                now = units[layer][degree]
                for each in corners[layer]:
                    width = each.starts[degree + 1] - each.full
                    if width:
                        now.addmm_(each.weights[degree - low][:, :width], each.source[:width])
                if layer < last:
                    value = activation(now)
                    if network.joined(layer):
                        value = value + units[layer - 1][degree]
                    if value is not now:
                        now.copy_(value)
            if certain[degree]:
                continue
            # The output units of degree d are those of the columns at position d + 1, whose inputs have degree d + 1.
            first, outputs = members[degree].start, units[last][degree].t()
            here = slice(first, members[degree].stop)
            if calibration is not None:
                scale, shift = adjustments(calibration[:, here], seen.unsqueeze(1), len(columns))
                outputs = calibrated(outputs, biases[degree], scale, shift, log_widths[degree])
                seen = seen + absent[:, here].sum(dim=1)

            if len(members[degree]) > 1:
                found = _of_group(network, outputs, torch.stack(drawn[here], dim=1), known, absent, here, choose)
            else:
                found = [choose(outputs, first)]
                if known is not None:
                    found = [torch.where(known[:, first], drawn[first], found[0])]
            drawn[here] = found
            code = torch.cat([columns[d].encode(value) for d, value in zip(members[degree], found, strict=True)], dim=1)
            if given or len(found) > 1:
                code = code * absent[:, here]
            units[0][degree + 1].copy_(code.t())
        # ... and columns of blocks push the contribution of this range to all later ones.
        for (after, before), blocks in packed.items():
            if layout.stairs((after, before)).by_columns:
                (_, sources, corner), weight = blocks[j]
                below = layout.layers[after].bounds[j + 1]
                add_product_(layers[after][below:], weight[corner[0].stop :], layers[before][sources])
    return torch.stack(drawn, dim=1)


def _of_group(
    network: Network,
    outputs: Tensor,
    values: Tensor,
    known: Tensor | None,
    absent: Tensor,
    here: slice,
    choose: Callable[[Tensor, int], Tensor],
) -> list[Tensor]:
    """The values of the columns ``here``, which are a group, drawn one after the other."""
    assert network.columns.coupling is not None
    seen = torch.zeros_like(values, dtype=torch.bool) if known is None else known[:, here]
    return list(
        network.columns.coupling.complete(
            outputs, values, seen, absent[:, here], lambda logits, d: choose(logits.unsqueeze(1), here.start + d)
        ).unbind(dim=1)
    )


def _beginnings(
    network: Network,
    layout: SortedLayout,
    values: Tensor,
    known: Tensor | None,
    given: bool,
    wanted: Tensor | None = None,
) -> list[Tensor]:
    """The layers before anything is drawn, (units, rows): all terms but the products with drawn units.

    Known values are input units like others, or, if ``given``, seen by every unit and not through the staircase.
    """
    nothing = torch.zeros_like(values, dtype=torch.bool)
    x, _ = network.inputs(layout, values, nothing if known is None else known)
    seen, from_given = values.new_ones(values.shape[1], 1), {}  # in the end, every column is seen,
    if wanted is not None:  # but for those that are neither known nor drawn
        seen = (wanted.unsqueeze(1) if known is None else wanted.unsqueeze(1) | known.t()).to(values.dtype)
    if given and known is not None:
        from_given = network.from_given(layout, x, seen, known)
        x, seen = torch.zeros_like(x), seen * ~known.t()
    offsets = [network.offset(layout, layer, seen, from_given) for layer in range(1, network.depth + 2)]
    return [x.t().contiguous(), *(offset.expand(-1, len(values)).contiguous() for offset in offsets)]
