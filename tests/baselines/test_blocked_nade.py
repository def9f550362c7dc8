"""NADE by blocks of columns, against its equations and numerical gradients."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from made.baselines.blocked_nade import blocked_logits
from small_baselines import bits, naive


def same_logits_and_gradients(x, shapes, *ways) -> None:
    """Two ways from weights to logits are the same, and so are their gradients."""
    results = []
    for way in ways:
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]
        logits = way(*weights)
        F.binary_cross_entropy_with_logits(logits, x, reduction="sum").backward()
        results.append([logits.detach(), *(each.grad for each in weights)])
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("of_rows", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_blocked_logits_equal_sequential_ones(activation, told, of_rows, width, share) -> None:
    """Whatever the blocks, where rows have no 1, and where they have nothing else."""
    columns = 7
    x, shapes = bits(6, columns, share), ((columns, 4), (6, 4) if of_rows else (4,), (columns, 4), (columns,))
    x = x * torch.arange(1, 7).unsqueeze(1)  # as inputs are of which some are left out
    target = x.clamp(max=1)

    def fast(W, b, V, c, t=None):
        return blocked_logits(x, W, b, V, c, t, activation=activation, width=width)

    def slow(W, b, V, c, t=None):
        return naive(x, W, b, V, c, None, activation, t, width)

    if told:
        shapes = (*shapes, (-(-columns // width), 4))
    same_logits_and_gradients(target, shapes, fast, slow)
    weights = [torch.randn(s, dtype=torch.float64) for s in shapes]
    with torch.no_grad():
        assert torch.allclose(fast(*weights), slow(*weights), rtol=0, atol=1e-12)


def test_the_gradient_equals_finite_differences() -> None:
    x, shapes = bits(3, 4), ((4, 3), (3,), (4, 3), (4,), (2, 3))
    weights = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    assert torch.autograd.gradcheck(lambda *w: blocked_logits(x, *w, activation="sigmoid", width=2), weights)
