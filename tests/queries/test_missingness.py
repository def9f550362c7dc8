"""Missing values are drawn with the stated probabilities, given the values and the columns decided before."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from made import Binary, Categorical, Connectivities, Network
from made.columns.group import Columns
from made.queries.missingness import Missingness

NETWORK = Network(Columns([Binary(), Categorical(3), Binary()]), Connectivities(3, (4,), masks=None))
# Units: 0 of the first column, 1 to 3 of the second, 4 of the third; flags: 5 of the second column, 6 of the third.
DEPENDENT = Missingness(
    torch.tensor([1, 2]),
    torch.tensor([[0, 4], [2, 5]]),
    torch.tensor([[2.0, -1.0], [3.0, 1.5]]).double(),
    torch.tensor([-1.0, -0.5]).double(),
)
ROWS = 20_000


def sigmoid(value: float) -> float:
    return float(1 / (1 + np.exp(-value)))


def hidden(row: list[float], known: list[bool]) -> np.ndarray:
    codes, fixed = np.tile(np.array(row), (ROWS, 1)), np.tile(np.array(known), (ROWS, 1))
    found = DEPENDENT.hide(NETWORK, codes, fixed, torch.Generator().manual_seed(0))
    assert np.array_equal(np.where(np.isnan(found), codes, found), codes)
    return np.isnan(found)


@pytest.mark.parametrize("row", [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 2.0, 1.0]])
def test_patterns_have_their_probabilities(row) -> None:
    """A value that is missing does not influence the next column: its units are 0."""
    missing = hidden(row, [False] * 3)
    second = sigmoid(-1 + 2 * row[0] - row[2])
    for flag, share in ((False, 1 - second), (True, second)):
        third = sigmoid(-0.5 + 1.5 * flag + 3 * (row[1] == 1 and not flag))
        for other, chance in ((False, share * (1 - third)), (True, share * third)):
            found = ((missing[:, 1] == flag) & (missing[:, 2] == other)).mean()
            assert abs(found - chance) < 4 * np.sqrt(chance * (1 - chance) / ROWS)
    assert not missing[:, 0].any()


def test_known_values_stay_and_count_as_observed() -> None:
    missing = hidden([1.0, 1.0, 0.0], [False, True, False])
    assert not missing[:, 1].any()
    chance = sigmoid(-0.5 + 3)
    assert abs(missing[:, 2].mean() - chance) < 4 * np.sqrt(chance * (1 - chance) / ROWS)


def test_its_tensors_are_read_back() -> None:
    found = Missingness.of(DEPENDENT.tensors(), NETWORK.columns)
    for name, tensor in vars(found).items():
        assert torch.equal(tensor, getattr(DEPENDENT, name)), name
        assert tensor.dtype == getattr(DEPENDENT, name).dtype


@pytest.mark.parametrize(
    ("name", "tensor", "said"),
    [
        ("columns", torch.tensor([1.0, 3.0]), "does not have"),
        ("columns", torch.tensor([1.0, 1.0]), "twice"),
        ("columns", torch.tensor([1.0, 0.5]), "does not have"),
        ("columns", torch.tensor([[1.0, 2.0]]), "do not fit each other"),
        ("features", torch.tensor([[0.0, 7.0], [0.0, 0.0]]), "does not have"),
        ("features", torch.tensor([[0.0], [1.0]]), "do not fit each other"),
        ("weights", torch.full((2, 2), 1e12), "weights above"),
        ("biases", torch.tensor([0.0]), "do not fit each other"),
        ("more", torch.tensor([0.0]), "need columns, features"),
    ],
)
def test_forged_tensors_are_refused(name, tensor, said) -> None:
    with pytest.raises(ValueError, match=said):
        Missingness.of(DEPENDENT.tensors() | {name: tensor}, NETWORK.columns)
