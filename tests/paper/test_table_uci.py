"""The grids of Tables 4 and 6."""

from __future__ import annotations

import pytest

from made import MADE
from made.paper import published, table_mnist, table_uci


def test_the_grids_are_those_of_the_paper() -> None:
    every = {**table_uci.cases("MADE", "full"), **table_uci.cases("MADE mask sampling", "full")}
    assert len(every) == 2 * 2 * 3 * 2 * 5 == 120
    varied = ("hidden_sizes", "activation", "epsilon", "conditioning", "masks")
    assert len({tuple(case[name] for name in varied) for case in every.values()}) == 120
    assert {case["masks"] for case in table_uci.cases("MADE", "full").values()} == {1}


@pytest.mark.parametrize("row", table_uci.ROWS)
def test_an_evening_has_some_of_the_full_grid_and_all_of_it_is_valid(row) -> None:
    full = table_uci.cases(row, "full")
    assert set(table_uci.cases(row, "evening")) < set(full)
    for case in full.values():
        MADE(**case).check_parameters()


@pytest.mark.parametrize(("row", "layers", "masks"), [(row, *sizes) for row, sizes in table_mnist.ROWS.items()])
def test_the_grid_of_mnist_is_that_of_the_paper(row, layers, masks) -> None:
    full = table_mnist.cases(row, "full").values()
    assert [case["learning_rate"] for case in full] == [0.1, 0.05, 0.01, 0.005]
    assert all((case["hidden_sizes"], case["masks"]) == ((8000,) * layers, masks) for case in full)
    assert row in published.MNIST


@pytest.mark.parametrize(("row", "layers", "masks"), [(row, *sizes) for row, sizes in table_mnist.ROWS.items()])
def test_the_grid_of_mnist_can_be_made_smaller(row, layers, masks) -> None:
    (name,) = table_mnist.cases(row, "evening", width=64, epochs=3)
    assert name == f"{layers}x64-{masks}-mask{'s' if masks > 1 else ''}-rate-0.05-3-epochs"
    assert [case["learning_rate"] for case in table_mnist.cases(row, "full", rates=[0.2]).values()] == [0.2]
