"""The search for orderings of whole rows: it finds likely ones that complement each other, and a model keeps them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from made import MADE, Binary, Columns, ParameterError
from made.queries.evidence import Evidence
from made.training.config import TrainingConfig
from made.training.orders import _search, _variant, select_orders
from oracle import structured

POSITIONS = 6
LONG = {"hidden_sizes": (4,), "batch_size": 4, "max_epochs": 70, "pairs": 0.0}  # updates enough for a search


def inversions(order: tuple[int, ...]) -> int:
    return sum(first > second for place, first in enumerate(order) for second in order[place + 1 :])


def test_the_likeliest_ordering_comes_first() -> None:
    """The reversed ordering is the best one; it is one of 720, of which fewer are tried."""
    tried = []

    def log_p(order: tuple[int, ...]) -> torch.Tensor:
        tried.append(order)
        return torch.full((3,), float(inversions(order)))

    found = _search(log_p, POSITIONS, 8, seed=0)
    assert len(tried) == len(set(tried)) < 300
    assert inversions(found[0]) == max(map(inversions, tried)) >= 14
    assert all(sorted(order) == list(range(POSITIONS)) for order in found)
    assert len(set(found)) == 8


def test_orderings_complement_each_other() -> None:
    """Orderings that begin with 0 suit half of the rows, those that begin with 1 the other half, and slightly less."""

    def log_p(order: tuple[int, ...]) -> torch.Tensor:
        return torch.tensor([0.0 if order[0] == 0 else -9.0] * 5 + [-0.5 if order[0] == 1 else -9.0] * 5)

    first, second = _search(log_p, POSITIONS, 2, seed=1)
    assert {first[0], second[0]} == {0, 1}


def test_a_variant_is_a_permutation_of_its_parent() -> None:
    random, parent = np.random.default_rng(0), list(range(POSITIONS))
    variants = {_variant(list(parent), random) for _ in range(100)}
    assert all(sorted(each) == parent for each in variants)
    assert len(variants) > 20


def test_fewer_orderings_than_are_wanted() -> None:
    rows = Evidence(torch.randint(2, (50, 2), generator=torch.Generator().manual_seed(0)).float())
    found = select_orders(Columns([Binary()] * 2), rows, 8, TrainingConfig(segments=2, batch_size=10, max_epochs=200))
    assert sorted(found) == [[0, 1], [1, 0]]


def test_a_model_keeps_its_orderings(tmp_path) -> None:
    model = MADE(**LONG, random_state=0).fit(structured(80))
    orders = model.model_.config.orders
    assert orders is not None
    assert len(orders) == 4
    model.save(tmp_path / "model")
    family = MADE.load(tmp_path / "model").model_.network.connectivities
    assert family.orders == tuple(map(tuple, orders))
    assert [family[number].ordering.argsort().tolist() for number in range(4)] == orders


def test_the_same_seed_gives_the_same_orderings() -> None:
    first, second, other = (
        MADE(**LONG, random_state=seed).fit(structured(80)).model_.config.orders for seed in (0, 0, 1)
    )
    assert first == second != other


def test_other_orderings_are_not_selected() -> None:
    model = MADE(**LONG, ordering="random", random_state=0).fit(structured(80))
    assert model.model_.config.orders is None


@pytest.mark.parametrize("options", [{"max_epochs": 5}, {"max_seconds": 30.0}])
def test_a_short_run_has_no_time_for_a_search(options) -> None:
    model = MADE(**LONG | options, random_state=0).fit(structured(80))
    assert model.model_.config.orders is None
    assert model.model_.config.parameters["ordering"] == "selected"


@pytest.mark.parametrize("options", [{"masks": 2}, {"whole_rows": 0.0}, {"segments": 1}])
def test_orderings_of_models_without_masks_for_whole_rows_cannot_be_selected(options) -> None:
    with pytest.raises(ParameterError, match="'ordering' can only be 'selected'") as found:
        MADE(ordering="selected", max_epochs=1, **options).fit(structured(80))
    assert found.value.argument == "ordering"
