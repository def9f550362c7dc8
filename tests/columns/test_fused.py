"""All columns evaluated together equal each column evaluated by itself."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from made import Binary, Categorical, Columns, Numeric, Ordinal
from made.columns.base import Column
from made.columns.fused import Likelihood
from made.columns.point_masses import PointMasses
from made.columns.unseen import Unseen

BESIDE = Unseen((0.0, 1.0), 1.0)
KINDS: list[Column] = [
    Categorical(3),
    Numeric(3.0, 1.5),
    Binary(),
    PointMasses(Numeric(3.0, 1.5, step=1.0, low=0.0), (0.0, math.inf)),
    Numeric(170.0, 10.0, step=1.0),
    Categorical(4, reserved=0.01),
    Ordinal((0.0, 1.0, 2.0, 5.0), step=1.0),
    Numeric(3.0, 1.5, curve=1.0, low=0.0),
    PointMasses(Numeric(3.0, 1.5, curve=1.0), (0.0,)),
    Binary(unseen=BESIDE),
    Numeric(3.0, 1.5, step=1.0, curve=1.0, low=0.0),
    Numeric(0.0, 1.0, components=3),
    Categorical(1),
]
STRANGE = {1: [1e2, -1e5, 1e9, -8.0], 5: [3.0, 3.0], 6: [1.5, -3.0, 10.0], 7: [-5.0, 50.0, 1e3], 9: [0.5, 7.0]}


def rows(kinds: list[Column], count: int = 300) -> Tensor:
    """Draws of each kind, and values that training would not have seen."""
    torch.manual_seed(0)
    values = torch.stack([kind.draw(*around(kind, count)) for kind in kinds], dim=1)
    for d, strange in STRANGE.items():
        values[: len(strange), d] = torch.tensor(strange, dtype=torch.float64)
    return values


def around(kind: Column, count: int) -> tuple[Tensor, Tensor]:
    units = kind.initial().double() + 0.3 * torch.randn(count, kind.outputs).double()
    return units, kind.noise(torch.rand(count).double())


def one_by_one(kinds: list[Column], units: Tensor, values: Tensor) -> Tensor:
    own = units.split([kind.outputs for kind in kinds])
    return torch.stack(
        [kind.log_prob(part.t(), values[:, d]) for d, (kind, part) in enumerate(zip(kinds, own, strict=True))]
    )


@pytest.mark.parametrize("spread", [1.0, 5.0, 60.0])
def test_it_equals_the_kinds_one_by_one(spread: float) -> None:
    values, units = rows(KINDS), spread * torch.randn(sum(kind.outputs for kind in KINDS), 300).double()
    likelihood = Likelihood(KINDS)
    found = likelihood.log_prob(units, likelihood.targets(values))
    torch.testing.assert_close(found, one_by_one(KINDS, units, values), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spread", [1.0, 5.0, 60.0])
def test_its_gradient_equals_theirs(spread: float) -> None:
    values, units = rows(KINDS), spread * torch.randn(sum(kind.outputs for kind in KINDS), 300).double()
    likelihood, weight = Likelihood(KINDS), torch.randn(len(KINDS), 300).double()
    units.requires_grad_()
    found = torch.autograd.grad((weight * likelihood.log_prob(units, likelihood.targets(values))).sum(), units)
    expected = torch.autograd.grad((weight * one_by_one(KINDS, units, values)).sum(), units)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def test_its_gradient_can_be_asked_for_twice() -> None:
    values, units = rows(KINDS), torch.randn(sum(kind.outputs for kind in KINDS), 300).double().requires_grad_()
    likelihood = Likelihood(KINDS)
    total = likelihood.log_prob(units, likelihood.targets(values)).sum()
    first = torch.autograd.grad(total, units, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(total, units), first, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_each_kind_alone_has_its_own_likelihood(kind: Column) -> None:
    values, units = kind.draw(*around(kind, 50)).unsqueeze(1), torch.randn(kind.outputs, 50).double()
    likelihood = Likelihood([kind])
    found = likelihood.log_prob(units, likelihood.targets(values))
    torch.testing.assert_close(found[0], kind.log_prob(units.t(), values[:, 0]), rtol=1e-9, atol=1e-9)


def test_segments_far_apart_lose_nothing() -> None:
    """A softmax 300 below another one would vanish beside its maximum."""
    kinds: list[Column] = [Categorical(3), Categorical(4)]
    units = torch.cat([torch.randn(3, 20) + 300, torch.randn(4, 20) - 300])
    values = torch.tensor([[2.0, 1.0]]).expand(20, -1)
    likelihood = Likelihood(kinds)
    found = likelihood.log_prob(units, likelihood.targets(values))
    expected = torch.stack([F.log_softmax(units[:3], dim=0)[2], F.log_softmax(units[3:], dim=0)[1]])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_single_precision_is_finite_far_from_all_data() -> None:
    values, units = rows(KINDS).float(), torch.randn(sum(kind.outputs for kind in KINDS), 300, requires_grad=True)
    likelihood = Likelihood(KINDS)
    found = likelihood.log_prob(units, likelihood.targets(values))
    (gradient,) = torch.autograd.grad(found.sum(), units)
    assert found.isfinite().all()
    assert gradient.isfinite().all()


def test_single_precision_keeps_the_width_of_a_step_far_from_the_centre() -> None:
    kind = Numeric(3.2, 2.0, step=1.0, curve=4.0, low=0.0)
    values = kind.inner(torch.tensor([1e3, 1e5, 1e6], dtype=torch.float64)).unsqueeze(1).expand(3, 2)
    units = kind.initial().double().repeat(2).unsqueeze(1).expand(-1, 3)
    joint = Likelihood([kind, kind])
    double, single = (
        joint.log_prob(units.to(dtype), joint.targets(values.to(dtype))) for dtype in (torch.float64, torch.float32)
    )
    torch.testing.assert_close(single.double(), double, atol=1e-5, rtol=0)


def test_targets_of_some_rows_are_those_rows_of_all() -> None:
    values, columns = rows(KINDS), Columns(KINDS)
    units, some = torch.randn(300, columns.outputs).double(), torch.tensor([4, 2, 299])
    targets = columns.targets(values)
    assert targets is not None
    torch.testing.assert_close(
        columns.log_prob(units[some], values[some], targets[some]), columns.log_prob(units, values)[some]
    )


def test_a_kind_without_the_common_form_is_asked_itself() -> None:
    class Plain(Categorical):
        form = None  # type: ignore[assignment]

    kinds: list[Column] = [Categorical(3), Plain(3), Binary()]
    units, values = torch.randn(7, 20, requires_grad=True), torch.tensor([[2.0, 1.0, 0.0]]).expand(20, -1)
    likelihood = Likelihood(kinds)
    assert likelihood.others == [1]
    found, expected = likelihood.log_prob(units, likelihood.targets(values)), one_by_one(kinds, units, values)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(each.sum(), units) for each in (found, expected)))
