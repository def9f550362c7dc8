r"""The logits of NADE for rows of few ones: a hidden layer for each *state* of a row, not for each column.

Activations change only where a row has a 1, so that a row of D columns with n ones has n + 1 different hidden layers.
The columns are cut into blocks; in each, the states of all rows are worked on together,

.. math:: a_s = a_{block} + W_{block} x_{< s}, \quad \text{logits}_s = V_{block} \, g(a_s),

two matrix products, of which every column takes what its own state of the row says. This costs more multiply-adds than
one column after the other, and is faster where ones are few: there are fewer hidden units to work out, and no small
steps. For the gradient the hidden layers of all states are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["ACTIVATIONS", "BLOCK", "logits_by_states"]

BLOCK = 16  # columns

# Of each: the units from their activations, and the gradient of activations from that of the units.
ACTIVATIONS: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "sigmoid": (torch.sigmoid, lambda gradient, h: torch.ops.aten.sigmoid_backward(gradient, h)),
    "relu": (partial(torch.clamp, min=0), lambda gradient, h: torch.ops.aten.threshold_backward(gradient, h, 0)),
}


class Block(NamedTuple):
    """Some columns, and the states that rows go through in them.

    Attributes:
        columns: which.
        x: the rows, (rows, columns).
        row: of each state, (states).
        before: what its row has had in this block so far, (states, columns).
        state: of each row in each column, (rows, columns).
    """

    columns: slice
    x: Tensor
    row: Tensor
    before: Tensor
    state: Tensor


def blocks(x: Tensor, width: int) -> Iterator[Block]:
    """Cut rows into blocks of columns, and each row in each block into states.

    Example:
        >>> (block,) = blocks(torch.tensor([[0.0, 1.0, 0.0, 1.0]]), 4)
        >>> block.before, block.state
        (tensor([[0., 0., 0., 0.],
                [0., 1., 0., 0.]]), tensor([[0, 0, 1, 1]]))
    """
    rows, columns = x.shape
    count = -(-columns // width)
    cut = torch.nn.functional.pad(x, (0, count * width - columns)).view(rows, count, width).transpose(0, 1)
    changes = (cut != 0).long()
    number = changes.cumsum(dim=2) - changes  # of the state of each row in each column, from 0
    many = number[:, :, -1] + 1  # (blocks, rows)
    first = many.cumsum(dim=1) - many
    of = torch.repeat_interleave(many.reshape(-1))  # the block and row of each state
    own = torch.arange(len(of), device=x.device) - (many.reshape(-1).cumsum(0) - many.reshape(-1))[of]  # in these
    before = cut.reshape(-1, width)[of] * (number.reshape(-1, width)[of] < own.unsqueeze(1))
    sizes = many.sum(dim=1).tolist()
    parts = zip(cut, (of % rows).split(sizes), before.split(sizes), first.unsqueeze(2) + number, strict=True)
    for start, (part, row, had, state) in zip(range(0, columns, width), parts, strict=True):
        size = min(width, columns - start)
        yield Block(slice(start, start + size), part[:, :size], row, had[:, :size], state[:, :size])


class ByStates(torch.autograd.Function):
    """What :func:`logits_by_states` computes, and its gradient, walking back from block to block."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, W: Tensor, b: Tensor, V: Tensor, c: Tensor, t: Tensor | None, activation: str, width: int
    ) -> Tensor:
        ctx.kept = []
        ctx.save_for_backward(W, V)
        ctx.activation, ctx.shared, ctx.told = activation, b.dim() == 1, t is not None
        return _forward(x, W, b, V, c, t, activation, width, ctx.kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        W, V = ctx.saved_tensors
        to_units = ACTIVATIONS[ctx.activation][1]
        grad_W, grad_V, grad_t = torch.zeros_like(W), torch.empty_like(V), []
        later = W.new_zeros(len(gradient), W.shape[1])  # the gradient of a, as later blocks want it
        for block, h in reversed(ctx.kept):
            here = block.columns
            logits = W.new_zeros(block.before.shape).scatter_(0, block.state, gradient[:, here])
            torch.mm(logits.t(), h, out=grad_V[here])
            a = to_units(logits @ V[here], h)
            if block.x.any():
                torch.addmm(block.x.t() @ later, block.before.t(), a, out=grad_W[here])
            if ctx.told:
                grad_t.append(a.sum(dim=0))
            later.index_add_(0, block.row, a)
        grad_b = later.sum(dim=0) if ctx.shared else later
        told = torch.stack(grad_t[::-1]) if ctx.told else None
        return None, grad_W, grad_b, grad_V, gradient.sum(dim=0), told, None, None


def _forward(
    x: Tensor,
    W: Tensor,
    b: Tensor,
    V: Tensor,
    c: Tensor,
    t: Tensor | None,
    activation: str,
    width: int,
    kept: list[tuple[Block, Tensor]] | None,
) -> Tensor:
    a, logits, units = b.expand(len(x), -1), torch.empty_like(x), ACTIVATIONS[activation][0]
    for number, block in enumerate(blocks(x, width)):
        here = block.columns
        h = (a if t is None else a + t[number]).index_select(0, block.row)
        if len(h) > len(x):  # a row has a 1 before the last column
            h.addmm_(block.before, W[here])
        units(h, out=h)
        torch.gather(h @ V[here].t(), 0, block.state, out=logits[:, here])
        if block.x.any():
            a = torch.addmm(a, block.x, W[here])
        if kept is not None:
            kept.append((block, h))
    return logits + c


def logits_by_states(
    x: Tensor,
    W: Tensor,
    b: Tensor,
    V: Tensor,
    c: Tensor,
    t: Tensor | None = None,
    *,
    activation: str,
    width: int = BLOCK,
) -> Tensor:
    r"""The logits of all columns, each given those before it: :math:`c_d + V_d \, g(b + t_{block(d)} + W x_{<d})`.

    Arguments:
        x: the rows, with their columns in the order of the product; what is 0 changes nothing.
        W, b, V, c: as in :func:`made.baselines.nade.by_columns`; b may be another one for each row.
        t: what activations get in each block, whatever the row: they know how far it is.
        activation: g, ``"sigmoid"`` or ``"relu"``.
        width: how many columns are a block.

    Shapes: x (rows, D); W, V (D, K); b (K), or (rows, K); c (D); t (blocks, K); the logits (rows, D).
    """
    if not torch.is_grad_enabled():
        return _forward(x, W, b, V, c, t, activation, width, None)
    logits: Tensor = ByStates.apply(x, W, b, V, c, t, activation, width)  # type: ignore[no-untyped-call]
    return logits
