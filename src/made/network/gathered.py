r"""Masked matrix products that gather what a connectivity keeps: for many connectivities, large matrices and many rows.

The weights are stored in full, units in their own order. Group the units of both layers by ranges of degrees, as in
:mod:`made.network.staircase`: a group sees whole groups before it, and part of its own. So the weights of a group are
gathered into one matrix without those that are masked, and about half of the multiply-adds remain. Within a group,
units keep their own order, because gathering is faster the closer together the elements are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from made.network.buffers import Buffers
from made.network.connectivity import Integers
from made.network.staircase import exact_degrees

__all__ = ["Grouped", "gathered_product"]


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
    torch.index_select(units.t(), 1, order, out=selected.t())
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
        strip = _Strip(after, len(before), weight, buffers)
        matrices, masks = [], []
        memory = _memory(before, after, weight, buffers)
        for group, full, prefix in _groups(before, after):
            matrix, memory = _take(memory, group.stop - group.start, prefix)
            torch.index_select(weight, 0, after.order[group], out=strip.rows(group))
            torch.index_select(strip.rows(group), 1, before.order[:prefix], out=matrix)
            mask = weight.new_empty(group.stop - group.start, prefix - full)
            torch.ge(after.degrees[group, None], before.degrees[full:prefix], out=mask)
            matrix[:, full:].mul_(mask)
            torch.mm(matrix, x[:prefix], out=y[group])
            matrices.append(matrix)
            masks.append(mask)
        ctx.save_for_backward(weight, x)
        ctx.matrices, ctx.masks, ctx.layers, ctx.buffers = matrices, masks, (before, after), buffers
        ctx.constant = add.shape[1] == 1
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
            strip, memory = _Strip(after, len(before), weight, buffers), _Strip(after, len(before) + 1, weight, buffers)
            for (group, full, prefix), mask in zip(_groups(before, after), ctx.masks, strict=True):
                # Its last column is zero, and stands for all units that the group does not see.
                matrix = memory.rows(group, prefix + 1)
                matrix[:, prefix].zero_()
                torch.mm(dy[group], x[:prefix].t(), out=matrix[:, :prefix])
                matrix[:, full:prefix].mul_(mask)
                columns = before.inverse.clamp(max=prefix)
                dweight[after.order[group]] = torch.index_select(matrix, 1, columns, out=strip.rows(group))
        if ctx.needs_input_grad[1]:
            dx = buffers.units(*x.shape, x).zero_()
            for (group, _, prefix), matrix in zip(_groups(before, after), ctx.matrices, strict=True):
                dx[:prefix].addmm_(matrix.t(), dy[group])
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


class _Strip:
    """Memory for one group at a time."""

    def __init__(self, after: Grouped, columns: int, like: Tensor, buffers: Buffers) -> None:
        tallest = max(last - first for first, last in pairwise(after.bounds))
        step = max(1, len(after) // (2 * len(after.bounds)))  # again, the same size for nearly every mask
        self._memory, self._columns = buffers.empty(-(-tallest // step) * step * columns, like=like), columns

    def rows(self, group: slice, columns: int | None = None) -> Tensor:
        return _take(self._memory, group.stop - group.start, self._columns if columns is None else columns)[0]
