r"""The logits of NADE for sparse rows: one hidden layer for each distinct prefix of a row, not for each column.

Activations change only where a row has a 1, so that a row of D columns with n ones has n + 1 distinct hidden layers.
The columns are split into blocks; in each block, the hidden layers s of all rows are computed together,

.. math:: a_s = a_{block} + W_{block} x_{< s}, \quad \text{logits}_s = V_{block} \, g(a_s),

two matrix products, from which each column takes the logit of its own hidden layer. This costs more multiply-adds than
one column after the other (:func:`made.baselines.nade.sequential_pass`), but is faster where ones are few: there are
fewer hidden units to compute, and no small steps. The hidden layers are kept for the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK_WIDTH = 16  # columns

# The function, and its backward pass: the gradient of the activations given the gradient of the units.
ACTIVATIONS: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "sigmoid": (torch.sigmoid, lambda gradient, h: torch.ops.aten.sigmoid_backward(gradient, h)),
    "relu": (partial(torch.clamp, min=0), lambda gradient, h: torch.ops.aten.threshold_backward(gradient, h, 0)),
}


class ColumnBlock(NamedTuple):
    """A block of columns, and the distinct hidden layers of its rows.

    Attributes:
        columns: the columns of the block.
        x: their values, (rows, columns).
        row: the row of each hidden layer, (layers).
        before: the values in this block that each hidden layer depends on, (layers, columns).
        layer: the hidden layer of each row and column, (rows, columns).
    """

    columns: slice
    x: Tensor
    row: Tensor
    before: Tensor
    layer: Tensor


def column_blocks(x: Tensor, width: int) -> Iterator[ColumnBlock]:
    """Split the columns into blocks, and number the hidden layers of each.

    Example:
        >>> (block,) = column_blocks(torch.tensor([[0.0, 1.0, 0.0, 1.0]]), 4)
        >>> block.before, block.layer
        (tensor([[0., 0., 0., 0.],
                [0., 1., 0., 0.]]), tensor([[0, 0, 1, 1]]))
    """
    rows, columns = x.shape
    count = -(-columns // width)
    cut = torch.nn.functional.pad(x, (0, count * width - columns)).view(rows, count, width).transpose(0, 1)
    changes = (cut != 0).long()
    number = changes.cumsum(dim=2) - changes  # of the hidden layer of each row and column, from 0
    many = number[:, :, -1] + 1  # (blocks, rows)
    first = many.cumsum(dim=1) - many
    of = torch.repeat_interleave(many.reshape(-1))  # the block and row of each hidden layer
    own = torch.arange(len(of), device=x.device) - (many.reshape(-1).cumsum(0) - many.reshape(-1))[of]  # in these
    before = cut.reshape(-1, width)[of] * (number.reshape(-1, width)[of] < own.unsqueeze(1))
    sizes = many.sum(dim=1).tolist()
    parts = zip(cut, (of % rows).split(sizes), before.split(sizes), first.unsqueeze(2) + number, strict=True)
    for start, (part, row, had, layer) in zip(range(0, columns, width), parts, strict=True):
        size = min(width, columns - start)
        yield ColumnBlock(slice(start, start + size), part[:, :size], row, had[:, :size], layer[:, :size])


class BlockedLogits(torch.autograd.Function):
    """:func:`blocked_logits` and its gradient, from the last block to the first."""

    @staticmethod
    def forward(ctx: Any, activation: str, width: int, keep: bool, x: Tensor, *weights: Any) -> Tensor:
        W, b, V, c, t = weights
        ctx.kept = []
        ctx.save_for_backward(W, V)
        ctx.activation, ctx.shared, ctx.has_t = activation, b.dim() == 1, t is not None
        a, logits, units = b.expand(len(x), -1), torch.empty_like(x), ACTIVATIONS[activation][0]
        for number, block in enumerate(column_blocks(x, width)):
            here = block.columns
            h = (a if t is None else a + t[number]).index_select(0, block.row)
            if len(h) > len(x):  # a row has a 1 before the last column
                h.addmm_(block.before, W[here])
            units(h, out=h)
            torch.gather(h @ V[here].t(), 0, block.layer, out=logits[:, here])
            if block.x.any():
                a = torch.addmm(a, block.x, W[here])
            if keep:
                ctx.kept.append((block, h))
        return logits.add_(c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        W, V = ctx.saved_tensors
        to_units = ACTIVATIONS[ctx.activation][1]
        grad_W, grad_V, grad_t = torch.zeros_like(W), torch.empty_like(V), []
        later = W.new_zeros(len(gradient), W.shape[1])  # the gradient of a from later blocks
        for block, h in reversed(ctx.kept):
            here = block.columns
            logits = W.new_zeros(block.before.shape).scatter_(0, block.layer, gradient[:, here])
            torch.mm(logits.t(), h, out=grad_V[here])
            a = to_units(logits @ V[here], h)
            if block.x.any():
                torch.addmm(block.x.t() @ later, block.before.t(), a, out=grad_W[here])
            if ctx.has_t:
                grad_t.append(a.sum(dim=0))
            later.index_add_(0, block.row, a)
        grad_b = later.sum(dim=0) if ctx.shared else later
        blocks = torch.stack(grad_t[::-1]) if ctx.has_t else None
        return None, None, None, None, grad_W, grad_b, grad_V, gradient.sum(dim=0), blocks


def blocked_logits(
    x: Tensor,
    W: Tensor,
    b: Tensor,
    V: Tensor,
    c: Tensor,
    t: Tensor | None = None,
    *,
    activation: str,
    width: int = BLOCK_WIDTH,
) -> Tensor:
    r"""The logits of all columns, each given those before it: :math:`c_d + V_d \, g(b + t_{block(d)} + W x_{<d})`.

    Arguments:
        x: the rows, columns in the order of the product; zeros leave the activations unchanged.
        W, b, V, c: as in :func:`made.baselines.nade.sequential_pass`; b may differ from row to row.
        t: a bias for each block, which tells units how far the pass has come.
        activation: g, ``"sigmoid"`` or ``"relu"``.
        width: the columns of a block.

    Shapes: x (rows, D); W, V (D, K); b (K), or (rows, K); c (D); t (blocks, K); the logits (rows, D).
    """
    keep, arguments = torch.is_grad_enabled(), (x, W, b, V, c, t)
    logits: Tensor = BlockedLogits.apply(activation, width, keep, *arguments)  # type: ignore[no-untyped-call]
    return logits
