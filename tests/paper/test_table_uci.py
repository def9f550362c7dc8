"""The grids of Tables 4 and 6."""

from __future__ import annotations

from made import MADE
from made.paper import published, table_mnist, table_uci


def test_the_grids_are_those_of_the_paper() -> None:
    every = {**table_uci.cases("MADE", "full"), **table_uci.cases("MADE mask sampling", "full")}
    assert len(every) == 2 * 2 * 3 * 2 * 5 == 120
    varied = ("hidden_sizes", "activation", "epsilon", "conditioning", "masks")
    assert len({tuple(case[name] for name in varied) for case in every.values()}) == 120
    assert {case["masks"] for case in table_uci.cases("MADE", "full").values()} == {1}
    for row in table_uci.ROWS:
        assert set(table_uci.cases(row, "evening")) < set(table_uci.cases(row, "full"))
        for case in table_uci.cases(row, "full").values():
            MADE(**case).check_parameters()
    for row, (layers, masks) in table_mnist.ROWS.items():
        full = table_mnist.cases(row, "full")
        assert [case["learning_rate"] for case in full.values()] == [0.1, 0.05, 0.01, 0.005]
        assert all((case["hidden_sizes"], case["masks"]) == ((8000,) * layers, masks) for case in full.values())
        (name,) = table_mnist.cases(row, "evening", width=64, epochs=3)
        assert name == f"{layers}x64-{masks}-mask{'s' if masks > 1 else ''}-rate-0.05-3-epochs"
        assert [case["learning_rate"] for case in table_mnist.cases(row, "full", rates=[0.2]).values()] == [0.2]
        assert row in published.MNIST
