"""Products that skip what is zero equal dense masked ones, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from made.network.buffers import Buffers
from made.network.gathered import Grouped, gathered_product
from made.network.staircase import Sorted, Staircase, compared_product, cut_degrees, staircase_product


@st.composite
def problems(draw: st.DrawFn):
    columns = draw(st.integers(1, 12))
    before = np.array(draw(st.lists(st.integers(0, columns), min_size=1, max_size=20)))
    after = np.array(draw(st.lists(st.integers(0, columns - 1), min_size=1, max_size=20)))
    cuts = np.array(
        [0, *sorted(draw(st.sets(st.integers(1, columns - 1), max_size=4)) if columns > 1 else []), columns]
    )
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    rows = draw(st.integers(1, 4))
    constant = draw(st.booleans())

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    weight, x = normal(len(after), len(before)), normal(len(before), rows)
    return before, after, cuts, weight, x, normal(len(after), 1 if constant else rows), normal(len(after), rows)


def dense(weight, x, add, before, after):
    mask = torch.from_numpy(after[:, None] >= before[None, :])
    return add + (weight * mask) @ x


def outcome(product, weight, x, add, slope) -> list[torch.Tensor]:
    """A product, and the gradients of its arguments."""
    leaves = [each.clone().requires_grad_() for each in (weight, x, add)]
    y = product(*leaves)
    (y * slope).sum().backward()
    return [y.detach(), *(leaf.grad for leaf in leaves)]


def same(ours, theirs) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


@given(problems())
def test_compared_products_and_gradients_equal_the_dense_masked_ones(problem) -> None:
    before, after, _, *tensors = problem
    degrees = [torch.from_numpy(each).double() for each in (before, after)]
    found = outcome(lambda *leaves: compared_product(*leaves, *degrees, Buffers()), *tensors)
    same(found, outcome(lambda *leaves: dense(*leaves, before, after), *tensors))


@given(problems())
def test_gathered_products_and_gradients_equal_the_dense_masked_ones(problem) -> None:
    before, after, cuts, weight, *tensors = problem
    groups = Grouped(before, cuts, weight), Grouped(after, cuts, weight)
    found = outcome(lambda *leaves: gathered_product(*leaves, *groups, Buffers()), weight, *tensors)
    same(found, outcome(lambda *leaves: dense(*leaves, before, after), weight, *tensors))


@given(problems())
def test_staircase_products_and_gradients_equal_the_dense_masked_ones(problem) -> None:
    before, after, cuts, weight, x, add, slope = problem
    left, right = Sorted(before, cuts, weight), Sorted(after, cuts, weight)
    stairs = Staircase(left, right)
    tensors = stairs.pack(weight), x[left.order], add[right.order], slope[right.order]
    y, of_weight, of_x, of_add = outcome(lambda *leaves: staircase_product(*leaves, stairs, Buffers()), *tensors)
    expected = outcome(lambda *leaves: dense(*leaves, before, after), weight, x, add, slope)
    orders = (right.order, slice(None), left.order, right.order)
    same((y, stairs.unpack(of_weight), of_x, of_add), [e[order] for e, order in zip(expected, orders, strict=True)])
    # nothing is ever learnt where there is no connection, and nothing that there is, is lost
    mask = torch.from_numpy(after[:, None] >= before[None, :])
    assert torch.equal(stairs.unpack(stairs.pack(weight)), weight * mask)
    assert of_weight.ne(0).sum() <= mask.sum()


@pytest.mark.parametrize("size", [40, 1500])
def test_large_and_small_corners_are_masked_alike(size) -> None:
    """Above 2**20 weights the corners are masked one by one, below all at once."""
    generator = np.random.default_rng(0)
    before, after = generator.integers(1, 31, size), generator.integers(0, 30, size)
    cuts = cut_degrees(30, size)
    stairs = Staircase(Sorted(before, cuts, torch.empty(0)), Sorted(after, cuts, torch.empty(0)))
    assert (stairs.size > 2**20) == (size == 1500)
    mask = torch.from_numpy(after[:, None] >= before[None, :]).float()
    assert torch.equal(stairs.unpack(torch.ones(stairs.size)), mask)
    assert stairs.size >= mask.sum()


def test_a_strip_at_a_time_equals_all_at_once() -> None:
    """A matrix of more entries than one strip."""
    generator = np.random.default_rng(0)
    before, after = generator.integers(1, 31, 5000), generator.integers(0, 30, 900)
    weight, x = (
        torch.randn(900, 5000, dtype=torch.float64, requires_grad=True),
        torch.randn(5000, 2, dtype=torch.float64),
    )
    degrees = [torch.from_numpy(each).double() for each in (before, after)]
    add = torch.zeros(900, 1, dtype=torch.float64)
    y = compared_product(weight, x, add, *degrees, Buffers())
    assert torch.allclose(y, dense(weight, x, add, before, after), rtol=0, atol=1e-10)
    (gradient,) = torch.autograd.grad(y.sum(), weight)
    mask = torch.from_numpy(after[:, None] >= before[None, :])
    assert torch.allclose(gradient, x.sum(1) * mask, rtol=0, atol=1e-12)


def test_half_of_the_multiply_adds_are_skipped() -> None:
    degrees = np.random.default_rng(0).integers(1, 784, 8000)
    cuts = cut_degrees(784, 8000)
    layer = Sorted(degrees, cuts, torch.empty(0))
    assert Staircase(layer, layer).size < 0.54 * 8000**2


def test_gradients_of_two_passes_are_not_confused() -> None:
    """The gradient of one pass must survive the next, though its memory is used again when it may be."""
    before, after = np.arange(1, 301), np.arange(0, 300)
    cuts = cut_degrees(300, 300)
    stairs, buffers = Staircase(Sorted(before, cuts, torch.empty(0)), Sorted(after, cuts, torch.empty(0))), Buffers()
    packed = torch.randn(stairs.size, requires_grad=True)
    add = torch.zeros(300, 1)

    def gradient(x: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(staircase_product(packed, x, add, stairs, buffers).sum(), packed)[0]

    ones, twos = gradient(torch.ones(300, 1)), gradient(torch.full((300, 1), 2.0))
    assert torch.equal(2 * ones, twos)
    staircase_product(packed, torch.ones(300, 1), add, stairs, buffers).sum().backward()
    staircase_product(packed, torch.ones(300, 1), add, stairs, buffers).sum().backward()
    assert torch.equal(packed.grad, 2 * ones)
