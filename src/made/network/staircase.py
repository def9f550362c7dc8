r"""Masked matrix products that skip the zeros.

Sort the units of two layers by degree, and the mask between them becomes a staircase: a unit sees a prefix of the layer
before, the units whose degree is at most its own. Cut the degrees 0, ..., D - 1 into a few ranges, the same for every
layer, and the matrix becomes block lower triangular::

    range 0   [corner]
    range 1   [ full | corner]
    range 2   [ full   full | corner]

A row of blocks, up to and including its corner, is one contiguous matrix (for wide, low matrices, a column of blocks
from its corner down). The *packed* form of the weights stores these matrices one after the other. What is above the
staircase takes no memory and no time; only the corners need a mask, which is kept.

A large matrix of a single connectivity is stored packed and trained by :func:`staircase_product`. All others are stored
in full, units in their own order. A small matrix is masked in each pass (:func:`masked_product`), a larger one a few
rows at a time (:func:`compared_product`), or, if it is very large, it is gathered (:mod:`made.network.gathered`); for
sampling, and for the evaluation of many rows, it is packed by gathering.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from made.network.buffers import Buffers
from made.network.connectivity import Integers
from made.network.products import add_product_, addmm, mm
from made.network.threads import share, workers


def cut_degrees(columns: int, widest: int) -> Integers:
    """Cut the degrees 0, ..., D - 1 into ranges for a network whose widest layer has ``widest`` units.

    With n ranges, 1/n of the work is wasted in the corners, but products of few rows are slow. Between 2 and 8 ranges
    for 500 units, and between 8 and 32 for 8000, the time hardly differed on two cores.
    """
    ranges = max(1, min(16, widest // 190, columns))
    return np.round(np.linspace(0, columns, ranges + 1)).astype(np.int64)


def exact_degrees(degrees: Integers, like: Tensor) -> Tensor:
    """Degrees on the device of ``like``, never in half precision, which would round them."""
    return torch.from_numpy(degrees).to(like.device, torch.promote_types(like.dtype, torch.float32))


class Sorted:
    """The units of one layer, sorted by degree.

    Arguments:
        degrees: the degree of each unit, in the units' own order.
        cuts: the bounds of the ranges of degrees.
        like: a tensor of the dtype and device to work with.
    """

    def __init__(self, degrees: Integers, cuts: Integers, like: Tensor) -> None:
        # 16-bit integers are radix-sorted, six times as fast; a stable sort keeps residual layers aligned.
        order = np.argsort(degrees.astype(np.int16) if cuts[-1] < 2**15 else degrees, kind="stable")
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        self.ascending = degrees[order]
        self.order = torch.from_numpy(order).to(like.device)
        self.inverse = torch.from_numpy(inverse).to(like.device)
        self.degrees = exact_degrees(degrees, like).index_select(0, self.order)
        self.dtype = like.dtype
        self.bounds: list[int] = np.searchsorted(self.ascending, cuts).tolist()

    def __len__(self) -> int:
        return len(self.ascending)

    def starts(self, highest: int) -> list[int]:
        """The index of the first unit of each degree 0, ..., ``highest`` + 1."""
        starts: list[int] = np.searchsorted(self.ascending, np.arange(highest + 2)).tolist()
        return starts


class Block(NamedTuple):
    """Adjacent blocks that form one matrix: its output units, its input units, and its corner."""

    after: slice
    before: slice
    corner: tuple[slice, slice]


class Staircase:
    r"""The shape of the mask :math:`M_{k',k} = 1_{m(k') \ge m(k)}` between two layers of sorted units.

    Arguments:
        before: the units that are seen, k.
        after: the units that see them, k'.

    Example:
        >>> cuts = np.array([0, 2, 4])
        >>> before = Sorted(np.array([4, 1, 3, 2]), cuts, torch.empty(0))
        >>> after = Sorted(np.array([3, 0, 2, 1]), cuts, torch.empty(0))
        >>> stairs = Staircase(before, after)
        >>> stairs.size, stairs.before.bounds, stairs.after.bounds
        (8, [0, 1, 3], [0, 2, 4])
        >>> stairs.unpack(stairs.pack(torch.ones(4, 4)))
        tensor([[0., 1., 1., 1.],
                [0., 0., 0., 0.],
                [0., 1., 0., 1.],
                [0., 1., 0., 0.]])
    """

    def __init__(self, before: Sorted, after: Sorted) -> None:
        self.before, self.after = before, after
        # Rows or columns of blocks, whichever are wider: products of narrow matrices are slow.
        self.by_columns = len(before) > len(after)
        self.blocks: list[Block] = []
        for (first, last), (full, prefix) in zip(pairwise(after.bounds), pairwise(before.bounds), strict=True):
            if self.by_columns:
                corner = slice(0, last - first), slice(0, prefix - full)
                self.blocks.append(Block(slice(first, len(after)), slice(full, prefix), corner))
            else:
                corner = slice(0, last - first), slice(full, prefix)
                self.blocks.append(Block(slice(first, last), slice(0, prefix), corner))
        self._shapes = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns, _ in self.blocks]
        self._sizes = [rows * columns for rows, columns in self._shapes]
        self.size = sum(self._sizes)
        # Units in parts that products compute independently, the largest first; nothing sees inputs of degree D.
        hidden = slice(before.bounds[-1], len(before))
        if self.by_columns:
            self.after_parts, self.before_parts = parts(after.bounds)[::-1], [*(b.before for b in self.blocks), hidden]
        else:
            self.after_parts, self.before_parts = [b.after for b in self.blocks[::-1]], [*parts(before.bounds), hidden]

    def matrices(self, packed: Tensor) -> list[tuple[Block, Tensor]]:
        """Each block with its weights, a view of the packed form."""
        parts = zip(self.blocks, packed.split_with_sizes(self._sizes), self._shapes, strict=True)
        return [(block, part.view(shape)) for block, part, shape in parts]

    @cached_property
    def corner_masks(self) -> list[Tensor]:
        """The mask of each corner as numbers, because multiplying by booleans is three times as slow."""
        masks = []
        for (first, last), (full, prefix) in zip(
            pairwise(self.after.bounds), pairwise(self.before.bounds), strict=True
        ):
            after, before = self.after.degrees[first:last, None], self.before.degrees[full:prefix]
            masks.append(after.ge(before).to(self.before.dtype))
        return masks

    def corners(self, matrices: list[tuple[Block, Tensor]]) -> list[Tensor]:
        """The corners of the blocks of :meth:`matrices`."""
        return [matrix[block.corner] for block, matrix in matrices]

    def mask_corners_(self, matrices: list[tuple[Block, Tensor]]) -> None:
        """Set masked weights to zero, in place."""
        torch._foreach_mul_(self.corners(matrices), self.corner_masks)

    def pack(self, dense: Tensor) -> Tensor:
        """The packed form of a full matrix, units in their own order. Shapes: (after, before) to (size,)."""
        packed = dense.new_empty(self.size)
        matrices = self.matrices(packed)
        for block, matrix in matrices:
            rows, columns = self.after.order[block.after], self.before.order[block.before]
            if self.by_columns:
                torch.index_select(dense.index_select(1, columns), 0, rows, out=matrix)
            else:
                torch.index_select(dense.index_select(0, rows), 1, columns, out=matrix)
        self.mask_corners_(matrices)
        return packed

    def unpack(self, packed: Tensor) -> Tensor:
        """The inverse of :meth:`pack`, with zeros where masked. Shapes: (size,) to (after, before)."""
        dense = packed.new_zeros(len(self.after), len(self.before))
        matrices = self.matrices(packed.clone())
        self.mask_corners_(matrices)
        for block, matrix in matrices:
            dense[self.after.order[block.after, None], self.before.order[block.before]] = matrix
        return dense


def staircase_product(packed: Tensor, x: Tensor, add: Tensor, stairs: Staircase, buffers: Buffers) -> Tensor:
    r""":math:`a + (W \odot M)\, x` on sorted units.

    Arguments:
        packed: W, with zeros where M is zero, (size,).
        x: the values of the sorted units of the layer before, (before, rows).
        add: a, what to add to, (after, rows) or (after, 1).
        stairs: the staircase of M.
        buffers: memory for results and gradients.
    """
    product: Tensor = _StaircaseProduct.apply(packed, x, add, stairs, buffers)  # type: ignore[no-untyped-call]
    return product


class _StaircaseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, packed: Tensor, x: Tensor, add: Tensor, stairs: Staircase, buffers: Buffers) -> Tensor:
        y = buffers.units(len(stairs.after), x.shape[1], x)
        matrices = stairs.matrices(packed)
        multiply([(block.after, block.before, matrix) for block, matrix in matrices], x, add, stairs.after_parts, y)
        ctx.save_for_backward(packed, x)  # the weights too, so that torch notices a change before backward
        ctx.matrices, ctx.stairs, ctx.buffers, ctx.constant = matrices, stairs, buffers, add.shape[1] == 1
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        packed, x = ctx.saved_tensors
        stairs, dpacked, dx = ctx.stairs, None, None
        if ctx.needs_input_grad[0]:
            dpacked = ctx.buffers.empty(stairs.size, like=packed)

            def differentiate(block: Block, matrix: Tensor, mask: Tensor) -> None:
                mm(dy[block.after], x[block.before].t(), out=matrix)
                matrix[block.corner].mul_(mask)

            matrices = zip(stairs.matrices(dpacked), stairs.corner_masks, strict=True)
            tasks = [partial(differentiate, block, matrix, mask) for (block, matrix), mask in matrices]
            share(tasks if stairs.by_columns else tasks[::-1])
        if ctx.needs_input_grad[1]:
            dx = ctx.buffers.units(*x.shape, x)
            pieces = [(block.before, block.after, matrix.t()) for block, matrix in ctx.matrices]
            multiply(pieces, dy, None, stairs.before_parts, dx)
        return dpacked, dx, _gradient_of_add(ctx, dy), None, None


def parts(bounds: Sequence[int], most: int = 4) -> list[slice]:
    """A few parts of units in groups, each of as many groups."""
    step = -(-(len(bounds) - 1) // most)
    ends = [*bounds[:-1:step], bounds[-1]]
    return [slice(first, last) for first, last in pairwise(ends)]


def multiply(
    pieces: Sequence[tuple[slice, slice, Tensor]], x: Tensor, add: Tensor | None, of_y: Sequence[slice], y: Tensor
) -> None:
    """Write a + W x to y, for a matrix W in pieces: the units of y, the units of x, and the weights of each.

    Arguments:
        pieces: the matrix.
        x: units, (units, rows).
        add: a, (units, rows) or (units, 1); ``None`` for zero.
        of_y: parts of y, which are computed independently.
        y: the result, (units, rows).
    """

    def write(part: slice) -> None:
        _ = y[part].zero_() if add is None else y[part].copy_(add[part])
        for after, before, weights in pieces:
            first, last = max(after.start, part.start), min(after.stop, part.stop)
            if first < last:
                add_product_(y[first:last], weights[first - after.start : last - after.start], x[before])

    share([partial(write, part) for part in of_y] if workers() > 1 else [partial(write, slice(0, len(y)))])


def masked_product(weight: Tensor, mask: Tensor, x: Tensor, add: Tensor, buffers: Buffers) -> Tensor:
    r""":math:`a + (W \odot M)\, x` on units in their own order.

    Arguments:
        weight: W, (after, before).
        mask: M, 1 for a connection, otherwise 0, (after, before).
        x: the values of the units of the layer before, (before, rows).
        add: a, what to add to, (after, rows) or (after, 1).
        buffers: memory for the masked weights.
    """
    if not torch.is_grad_enabled():
        return _masked_units(_masked(weight, mask, buffers), x, add)
    product: Tensor = _MaskedProduct.apply(weight, mask, x, add, buffers)  # type: ignore[no-untyped-call]
    return product


def _masked(weight: Tensor, mask: Tensor, buffers: Buffers) -> Tensor:
    return torch.mul(weight, mask, out=buffers.empty(*weight.shape, like=weight))


def _masked_units(masked: Tensor, x: Tensor, add: Tensor) -> Tensor:
    return addmm(add.t(), x.t(), masked.t()).t()  # units row after row in memory: products of such matrices are faster


class _MaskedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, mask: Tensor, x: Tensor, add: Tensor, buffers: Buffers) -> Tensor:
        masked = _masked(weight, mask, buffers)
        ctx.save_for_backward(masked, mask, x)
        ctx.constant = add.shape[1] == 1
        return _masked_units(masked, x, add).data  # not a view, to autograd

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        masked, mask, x = ctx.saved_tensors
        dweight = mm(dy, x.t(), by_rows=True).mul_(mask) if ctx.needs_input_grad[0] else None
        dx = mm(dy.t(), masked).t() if ctx.needs_input_grad[2] else None
        return dweight, None, dx, _gradient_of_add(ctx, dy, 3), None


def compared_product(weight: Tensor, x: Tensor, add: Tensor, before: Tensor, after: Tensor, buffers: Buffers) -> Tensor:
    r""":math:`a + (W \odot M)\, x` on units in their own order; M is computed from degrees, a few rows at a time.

    Arguments:
        weight: W, (after, before).
        x: the values of the units of the layer before, (before, rows).
        add: a, what to add to, (after, rows) or (after, 1).
        before, after: the degrees of the units of both layers.
        buffers: memory for results and gradients.
    """
    product: Tensor = _ComparedProduct.apply(weight, x, add, before, after, buffers)  # type: ignore[no-untyped-call]
    return product


class _ComparedProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, x: Tensor, add: Tensor, before: Tensor, after: Tensor, buffers: Buffers
    ) -> Tensor:
        y = buffers.units(len(after), x.shape[1], x)

        def write(some: slice) -> None:
            addmm(add[some], _compare(after[some], before, weight, buffers).mul_(weight[some]), x, out=y[some])

        share([partial(write, some) for some in _strips(len(after), len(before))])
        ctx.save_for_backward(weight, x, before, after)
        ctx.buffers, ctx.constant = buffers, add.shape[1] == 1
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        weight, x, before, after = ctx.saved_tensors
        dweight = ctx.buffers.empty(*weight.shape, like=weight) if ctx.needs_input_grad[0] else None
        dx = ctx.buffers.units(*x.shape, x) if ctx.needs_input_grad[1] else None

        def of_weights(some: slice, result: Tensor) -> None:
            mm(dy[some], x.t(), out=result[some])
            result[some].mul_(_compare(after[some], before, weight, ctx.buffers))

        def of_units(some: slice, result: Tensor) -> None:
            masked = _compare(after, before[some], weight, ctx.buffers).mul_(weight[:, some])
            mm(masked.t(), dy, out=result[some])

        tasks = [] if dweight is None else [partial(of_weights, some, dweight) for some in _strips(*weight.shape)]
        tasks += [] if dx is None else [partial(of_units, some, dx) for some in _strips(*weight.shape[::-1])]
        share(tasks)
        return dweight, dx, _gradient_of_add(ctx, dy), None, None, None


def _strips(units: int, others: int) -> list[slice]:
    """Units in equal parts: one for each thread, and more if the weights of one are too many for the cache."""
    count = workers() * -(-units * others // (workers() * 2**21))
    height = -(-units // count // 16) * 16
    return [slice(first, min(first + height, units)) for first in range(0, units, height)]


def _compare(after: Tensor, before: Tensor, weight: Tensor, buffers: Buffers) -> Tensor:
    """The mask of some units, as numbers."""
    return torch.ge(after[:, None], before, out=buffers.empty(len(after), len(before), like=weight))


def _gradient_of_add(ctx: Any, dy: Tensor, place: int = 2) -> Tensor | None:
    if not ctx.needs_input_grad[place]:
        return None
    return dy.sum(1, keepdim=True) if ctx.constant else dy
