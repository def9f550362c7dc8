r"""Masked matrix products that gather what a connectivity keeps: for many connectivities, large matrices and many rows.

The weights are stored in full, units in their own order. Group the units of both layers by ranges of degrees, as in
:mod:`made.network.staircase`: a group sees whole groups before it, and part of its own. So the weights of a group are
gathered into one matrix without those that are masked, and about half of the multiply-adds remain. Within a group,
units keep their own order, because gathering is faster the closer together the elements are in memory. Products are
those of torch: the shapes of groups differ from mask to mask, and oneDNN compiles code for each shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from made.network.buffers import Buffers
from made.network.connectivity import Integers
from made.network.staircase import exact_degrees, multiply, parts
from made.network.threads import share


class Grouped:
    """The units of one layer, grouped by ranges of degrees.

    Arguments:
        degrees: the degree of each unit, in the units' own order.
        cuts: the bounds of the ranges of degrees.
        like: a tensor of the dtype and device to work with.

    Example:
        >>> grouped = Grouped(np.array([4, 1, 3, 2]), np.array([0, 3, 5]), torch.empty(0))
        >>> grouped.order.tolist(), grouped.bounds
        ([1, 3, 0, 2], [0, 2, 4])
    """

    def __init__(self, degrees: Integers, cuts: Integers, like: Tensor) -> None:
        ranges = np.searchsorted(cuts, degrees, side="right").astype(np.int16)
        order = np.argsort(ranges, kind="stable")
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        self.order = torch.from_numpy(order).to(like.device)
        self.inverse = torch.from_numpy(inverse).to(like.device)
        self.degrees = exact_degrees(degrees[order], like)
        self.bounds: list[int] = np.searchsorted(ranges[order], np.arange(1, len(cuts) + 1)).tolist()

    def __len__(self) -> int:
        return len(self.order)

    def sort(self, units: Tensor, buffers: Buffers) -> Tensor:
        """Units (the first axis) from their own order to groups. Shapes: (units, rows) to (units, rows)."""
        return _select(units, self.order, buffers)

    def restore(self, units: Tensor, buffers: Buffers) -> Tensor:
        """The inverse of :meth:`sort`."""
        return _select(units, self.inverse, buffers)


def _select(units: Tensor, order: Tensor, buffers: Buffers) -> Tensor:
    selected = buffers.units(len(order), units.shape[1], units)
    whole, found = units.t(), selected.t()

    def select(rows: slice) -> None:
        torch.index_select(whole[rows], 1, order, out=found[rows])

    share([partial(select, slice(first, first + 32)) for first in range(0, len(whole), 32)])
    return selected


def gathered_product(
    weight: Tensor, x: Tensor, add: Tensor, before: Grouped, after: Grouped, buffers: Buffers
) -> Tensor:
    r""":math:`a + (W \odot M)\, x` on units in their own order.

    Arguments:
        weight: W, (after, before).
        x: the values of the units of the layer before, (before, rows).
        add: a, what to add to, (after, rows) or (after, 1).
        before, after: the units of both layers.
        buffers: memory for results and gradients.
    """
    product: Tensor = _GatheredProduct.apply(weight, x, add, before, after, buffers)  # type: ignore[no-untyped-call]
    return product


class _GatheredProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, x: Tensor, add: Tensor, before: Grouped, after: Grouped, buffers: Buffers
    ) -> Tensor:
        x = before.sort(x, buffers)
        y = buffers.units(len(after), x.shape[1], x)
        memory, groups = _memory(before, after, weight, buffers), []
        for group, full, prefix in _groups(before, after):
            matrix, memory = _take(memory, group.stop - group.start, prefix)
            groups.append((group, full, prefix, matrix, weight.new_empty(len(matrix), prefix - full)))

        def multiply_group(group: slice, full: int, prefix: int, matrix: Tensor, mask: Tensor) -> None:
            strip = _strip(weight, buffers)
            for rows, units in _strips(after.order[group], strip):
                torch.index_select(weight, 0, units, out=strip[: len(units)])
                torch.index_select(strip[: len(units)], 1, before.order[:prefix], out=matrix[rows])
            torch.ge(after.degrees[group, None], before.degrees[full:prefix], out=mask)
            matrix[:, full:].mul_(mask)
            torch.mm(matrix, x[:prefix], out=y[group])

        share([partial(multiply_group, *each) for each in reversed(groups)])
        ctx.save_for_backward(weight, x)
        ctx.groups, ctx.layers, ctx.buffers, ctx.constant = groups, (before, after), buffers, add.shape[1] == 1
        return after.restore(y, buffers).add_(add)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        weight, x = ctx.saved_tensors
        (before, after), buffers, dweight, dx = ctx.layers, ctx.buffers, None, None
        dadd = None if not ctx.needs_input_grad[2] else dy.sum(1, keepdim=True) if ctx.constant else dy
        dy = after.sort(dy, buffers)
        if ctx.needs_input_grad[0]:
            dweight = buffers.empty(*weight.shape, like=weight)
            tallest = max(group.stop - group.start for group, *_ in ctx.groups)

            def differentiate(group: slice, full: int, prefix: int, _: Tensor, mask: Tensor) -> None:
                # Its last column is zero, and stands for all units that the group does not see.
                width = -(-(prefix + 1) // 16) * 16  # products are faster if rows begin where lines of the cache do
                memory = buffers.empty(-(-tallest // 64) * 64 * (len(before) + 16), like=weight)
                matrix = _take(memory, group.stop - group.start, width)[0]
                matrix[:, prefix].zero_()
                torch.mm(dy[group], x[:prefix].t(), out=matrix[:, :prefix])
                matrix[:, full:prefix].mul_(mask)
                columns, strip = before.inverse.clamp(max=prefix), _strip(weight, buffers)
                for rows, units in _strips(after.order[group], strip):
                    torch.index_select(matrix[rows], 1, columns, out=strip[: len(units)])
                    dweight.index_copy_(0, units, strip[: len(units)])

            share([partial(differentiate, *each) for each in reversed(ctx.groups)])
        if ctx.needs_input_grad[1]:
            dx = buffers.units(*x.shape, x)
            pieces = [(slice(0, prefix), group, matrix.t()) for group, _, prefix, matrix, _ in ctx.groups]
            multiply(pieces, dy, None, parts([*before.bounds[:-1], len(before)]), dx)
            dx = before.restore(dx, buffers)
        return dweight, dx, dadd, None, None, None


def _groups(before: Grouped, after: Grouped) -> Iterator[tuple[slice, int, int]]:
    """Each group of units after, the number of units before that all of it sees, and that some of it sees."""
    for (first, last), (full, prefix) in zip(pairwise(after.bounds), pairwise(before.bounds), strict=True):
        if last > first:
            yield slice(first, last), full, prefix


def _memory(before: Grouped, after: Grouped, like: Tensor, buffers: Buffers) -> Tensor:
    """Memory for the matrices of all groups, of the same size for nearly every mask, so that it is used again."""
    size = sum((group.stop - group.start) * prefix for group, _, prefix in _groups(before, after))
    full, groups = len(before) * len(after), len(after.bounds) - 1
    usual = full * (groups + 3) // (2 * groups)
    return buffers.empty(usual if size <= usual else full, like=like)


def _take(memory: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """A matrix at the beginning of memory, and the rest."""
    return memory[: rows * columns].view(rows, columns), memory[rows * columns :]


def _strip(weight: Tensor, buffers: Buffers) -> Tensor:
    """Memory for a few rows of a matrix, as many as fit into the cache of a core."""
    return buffers.empty(max(1, 2**17 // weight.shape[1]), weight.shape[1], like=weight)


def _strips(units: Tensor, strip: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Units in as many at a time as a strip has rows."""
    first = 0
    for some in units.split(len(strip)):
        yield slice(first, first + len(some)), some
        first += len(some)
