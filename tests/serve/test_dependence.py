"""Dependence is mutual information: none between independent columns, all between a column and a copy of it."""

from __future__ import annotations

import numpy as np
import pytest

from made import MADE
from made.queries.conditional import predict
from made.serve.dependence import dependence


@pytest.fixture(scope="module")
def model():
    random = np.random.default_rng(0)
    first, third = random.integers(2, size=(2, 400))
    rows = np.stack([first, first, third], axis=1)
    return MADE(hidden_sizes=(16,), max_epochs=30, evaluation_masks=2, random_state=0).fit(rows).model_


def test_a_copy_depends_and_noise_does_not(model) -> None:
    found = dependence(model)
    strength = found["strength"]
    assert found["columns"] == list(model.schema.names)
    assert strength[0, 1] > 0.7
    assert strength[1, 0] > 0.7
    assert max(strength[0, 2], strength[2, 0], strength[1, 2]) < 0.2
    assert (np.diag(strength) == 0).all()


def test_it_is_the_mutual_information_of_two_columns(model) -> None:
    nan = float("nan")
    weights = predict(model.ensemble, [[nan] * 3], 1).probabilities(2)[0].double().numpy()
    given = predict(model.ensemble, [[nan, 0, nan], [nan, 1, nan]], 0).probabilities(2).double().numpy()
    information = (weights[:, None] * given * np.log(given / (weights @ given))).sum()
    assert dependence(model)["strength"][0, 1] == pytest.approx(np.sqrt(1 - np.exp(-2 * information)), abs=1e-5)
