"""Parameters that the rows and columns decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from made import MADE

CHOSEN = ("whole_row_masks", "ordering", "dropout")


def of(table: Any, **parameters: Any) -> tuple[Any, ...]:
    model = MADE(hidden_sizes=(2,), max_epochs=0, random_state=0, **parameters).fit(table)
    return tuple(model.model_.config.parameters[name] for name in CHOSEN)


def chosen(rows: int, columns: int, **parameters: Any) -> tuple[Any, ...]:
    return of(np.random.default_rng(0).integers(2, size=(rows, columns)), **parameters)


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (100, 64, (8, "selected", 0.0)),
        (100, 128, (8, "selected", 0.0)),
        (1200, 128, (8, "selected", 0.1)),
        (200, 130, (1, "natural", 0.3)),
        (600, 130, (4, "random", 0.0)),
        (1300, 130, (8, "random", 0.1)),
        (7400, 66, (1, "natural", 0.2)),
        (7400, 64, (8, "selected", 0.0)),
    ],
)
def test_many_columns_have_masks_by_the_number_of_rows(rows: int, columns: int, expected: tuple[Any, ...]) -> None:
    assert chosen(rows, columns) == expected


def steps(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Rows of which neighbours are mostly equal, as pixels are."""
    changes = np.random.default_rng(seed).random((rows, columns)) < 0.1
    return np.cumsum(changes, axis=1) % 2


@pytest.mark.parametrize(("rows", "expected"), [(2300, (1, "natural", 0.0)), (1000, (8, "natural", 0.0))])
def test_columns_whose_neighbours_are_alike_have_their_natural_ordering(rows: int, expected: tuple[Any, ...]) -> None:
    table = steps(rows, 40)
    assert of(table) == expected
    shuffled = table[:, np.random.default_rng(1).permutation(40)]
    assert of(shuffled) == (8, "selected", 0.0)


def test_a_few_columns_tell_nothing_about_their_order() -> None:
    assert of(steps(2000, 20)) == (8, "selected", 0.0)


@pytest.mark.parametrize(
    ("rows", "columns", "units"), [(600, 64, 256), (600, 65, 512), (500, 65, 256), (2**13, 2**8, 1024)]
)
def test_many_binary_columns_have_wider_layers(rows: int, columns: int, units: int) -> None:
    table = np.random.default_rng(0).integers(2, size=(rows, columns))
    config = MADE(max_epochs=0, validation_fraction=0, random_state=0).fit(table).model_.config
    assert config.parameters["hidden_sizes"] == [units, units]


def test_many_numbers_do_not() -> None:
    table = np.random.default_rng(0).normal(size=(40, 70))
    config = MADE(max_epochs=0, random_state=0).fit(table).model_.config
    assert config.parameters["hidden_sizes"] == [256, 256]


def inputs(table: Any, **parameters: Any) -> Any:
    model = MADE(max_epochs=0, validation_fraction=0, random_state=0, **parameters).fit(table).model_
    return model.ensemble.network.columns.encode(torch.tensor(np.asarray(table), dtype=torch.float32))


def test_inputs_of_a_binary_table_have_a_mean_of_0() -> None:
    table = (np.random.default_rng(0).random((2000, 3)) < (0.02, 0.4, 0.9)).astype(float)
    encoded = inputs(table)
    assert (encoded[table == 1] - 1).abs().max() < 1e-6
    assert encoded[:, :2].mean(dim=0).abs().max() < 2e-3  # one 0 and one 1 are added to the counts
    assert encoded[:, 2].unique().tolist() == [-3.0, 1.0]  # the limit


def test_inputs_of_other_models_are_as_they_were() -> None:
    table = (np.random.default_rng(0).random((200, 3)) < 0.1).astype(float)
    for parameters, expected in (({"masks": 2}, [-1, 1]), ({"signed": True}, [-1, 1]), ({"signed": False}, [0, 1])):
        assert inputs(table, **parameters).unique().tolist() == expected
    few = table[:20]  # fewer than 8 for each column
    assert inputs(few).unique().tolist() == [-1, 1]
    mixed = np.column_stack([table, np.random.default_rng(1).normal(size=200)])
    assert inputs(mixed)[:, :3].unique().tolist() == [-1, 1]


def test_what_is_asked_for_is_not_changed() -> None:
    asked = {"whole_row_masks": 3, "ordering": "random", "dropout": 0.1}
    assert chosen(200, 130, **asked) == tuple(asked.values())


def test_a_list_of_masks_has_no_automatic_choice() -> None:
    assert chosen(200, 130, masks=4) == (1, "random", 0.0)


def test_other_queries_average_all_masks() -> None:
    table = np.random.default_rng(0).integers(2, size=(200, 130))
    ensemble = MADE(hidden_sizes=(2,), max_epochs=0, random_state=0).fit(table).model_.ensemble
    assert len(ensemble.numbers) == 8
    assert ensemble.network.connectivities.whole_rows == 1
