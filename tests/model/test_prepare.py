"""Parameters that the rows and columns decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from made import MADE

CHOSEN = ("whole_row_masks", "ordering", "dropout")


def chosen(rows: int, columns: int, **parameters: Any) -> tuple[Any, ...]:
    table = np.random.default_rng(0).integers(2, size=(rows, columns))
    model = MADE(hidden_sizes=(2,), max_epochs=0, random_state=0, **parameters).fit(table)
    return tuple(model.model_.config.parameters[name] for name in CHOSEN)


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (100, 128, (8, "random", 0.0)),
        (200, 130, (1, "natural", 0.3)),
        (600, 130, (4, "random", 0.0)),
        (1300, 130, (8, "random", 0.0)),
    ],
)
def test_many_columns_have_masks_by_the_number_of_rows(rows: int, columns: int, expected: tuple[Any, ...]) -> None:
    assert chosen(rows, columns) == expected


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
