"""Coupled logits are the chain rule of a softmax."""

from __future__ import annotations

import math

import pytest
import torch

from made.columns.discrete import Binary, Categorical
from made.columns.exclusive import MOST, Coupling
from made.columns.group import Columns

SIZES, ROWS = [1, 4, 2], 98
RARE = 1 / 600  # 1 / (n + 2), shared by six columns
COUPLING = Coupling(SIZES, ROWS, units=[2, 3, 4, 5, 6, 7])
UNITS = torch.randn(1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3


def log_prob(row: list[int], observed: torch.Tensor | None = None) -> torch.Tensor:
    values = torch.tensor([row], dtype=torch.float64)
    logits = COUPLING(UNITS, values, observed)[:, 1:]
    return Binary().log_prob(logits.unsqueeze(2), values)[0]


@pytest.mark.parametrize("one", [None, 1, 2, 3, 4])
def test_a_whole_group_has_the_probability_of_a_softmax(one: int | None) -> None:
    row = [int(d == one) for d in range(7)]
    choices = torch.cat([torch.zeros(1, dtype=torch.float64), UNITS[0, 2:6]]).log_softmax(dim=0)
    later = 0 if one is None else 4 - one
    rest = later * math.log1p(-RARE)
    assert log_prob(row)[1:5].sum().item() == pytest.approx(choices[one or 0].item() + rest, abs=1e-12)


def test_a_second_one_has_the_probability_of_an_event_that_was_never_seen() -> None:
    assert log_prob([0, 0, 1, 1, 0, 0, 0])[3].exp().item() == pytest.approx(RARE)


def test_columns_outside_of_groups_keep_their_units() -> None:
    values = torch.zeros(1, 7, dtype=torch.float64)
    assert (COUPLING(UNITS, values)[:, :2] == UNITS[:, :2]).all()


def test_missing_columns_are_choices_that_are_left() -> None:
    observed = torch.tensor([[True, True, False, True, False, True, True]])
    found = log_prob([0, 0, 0, 0, 0, 0, 0], observed)[[1, 3]].sum().exp().item()
    shares = torch.cat([torch.zeros(1, dtype=torch.float64), UNITS[0, 2:6]]).softmax(dim=0)
    assert found == pytest.approx(shares[[0, 2, 4]].sum().item(), abs=1e-12)


def test_logits_are_bounded() -> None:
    row, single = torch.zeros(1, 7), torch.randn(1, 8) * 1e4
    found = COUPLING(single, row)
    assert found.isfinite().all()
    exact = COUPLING(single.double().clamp(-MOST, MOST), row.double())
    torch.testing.assert_close(found[:, 2:], exact[:, 2:].float())


def test_the_gradient_is_that_of_a_softmax() -> None:
    units = UNITS.clone().requires_grad_()
    values = torch.tensor([[0, 0, 1, 0, 0, 0, 0]], dtype=torch.float64)
    Binary().log_prob(COUPLING(units, values)[:, 2:6].unsqueeze(2), values[:, 1:5]).sum().backward()
    shares = torch.cat([torch.zeros(1, dtype=torch.float64), UNITS[0, 2:6]]).softmax(dim=0)[1:]
    assert units.grad is not None
    torch.testing.assert_close(units.grad[0, 2:6], values[0, 1:5] - shares)


def test_independent_groups_have_the_shares_of_their_columns() -> None:
    rows = torch.eye(4, dtype=torch.float64)[torch.arange(4000) % 4][:, 1:]
    columns = Columns.binary(3).exclusive([3], len(rows))
    units = columns.independent(rows)
    torch.testing.assert_close(units, torch.zeros(3, dtype=torch.float64), atol=3e-3, rtol=0)
    always = columns.independent(torch.eye(3, dtype=torch.float64)[torch.arange(3000) % 3])
    shares = torch.cat([torch.zeros(1, dtype=torch.float64), always]).softmax(dim=0)
    assert shares[0] < 1e-3


def test_wrong_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="add up to 3 columns, not 4"):
        Columns.binary(3).exclusive([2, 2], 10)
    with pytest.raises(ValueError, match="should be binary, but 'x2' is not"):
        Columns([Binary(), Categorical(3)]).exclusive([2], 10)
    assert Columns.binary(3).exclusive([1, 1, 1], 10).coupling is None


def test_signed_zeros_of_a_group_are_as_large_as_its_one() -> None:
    columns = Columns.binary(4, signed=True).exclusive([3, 1], 10)
    choices = torch.tensor([[0.0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    units = columns.encode(choices)
    torch.testing.assert_close(units[:2, :3], torch.tensor([[-1.0, -1, -1], [3, -1, -1]]) / 3)
    assert units[:, 3].tolist() == [1, -1, -1, -1]
    assert (Columns.binary(4).exclusive([3, 1], 10).encode(choices) == choices).all()
