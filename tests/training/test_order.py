"""The order of rows, of short and of long tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from made.training import order
from made.training.order import epoch_rows, row_order, some_rows


@pytest.mark.parametrize("rows", [101, 128, 129, 1000])
def test_epochs_of_a_long_table_are_a_permutation_after_the_other(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "SORTED", 100)
    assert epoch_rows(rows) == 100
    passes = torch.cat([row_order(rows, epoch, seed=3) for epoch in range(3 * rows // 100 + 1)])
    for turn in range(3):
        assert torch.equal(passes[turn * rows : (turn + 1) * rows].sort().values, torch.arange(rows))
    assert not torch.equal(passes[:rows], passes[rows : 2 * rows])
    assert not torch.equal(row_order(rows, 0, seed=4), passes[:100])


def test_the_order_of_a_long_table_is_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours in the order are no nearer in the table than random rows: their mean distance is a third of it."""
    monkeypatch.setattr(order, "SORTED", 2**14)
    rows = row_order(3 * 2**14, 0, seed=0).double()
    assert (rows[1:] - rows[:-1]).abs().mean().item() == pytest.approx(2**14, rel=0.03)
    assert np.corrcoef(rows, np.arange(len(rows)))[0, 1] == pytest.approx(0, abs=0.04)


def test_some_rows_are_one_of_each_part() -> None:
    found = some_rows(1000, most=300)
    assert isinstance(found, torch.Tensor)
    ends = np.arange(301) * 1000 // 300
    assert ((found.numpy() >= ends[:-1]) & (found.numpy() < ends[1:])).all()
    assert some_rows(300, most=300) == slice(None)
