"""The distribution of one entry: what the likelihood says of each of its values, one by one."""

from __future__ import annotations

import pytest
import torch

from made import Binary, Categorical, Columns, Connectivities, Network, Numeric, log_prob
from made.errors import QuestionError
from made.prediction import predict

NAN = float("nan")
COLUMNS = Columns([Binary(signed=True), Categorical(3), Numeric(10, 2), Categorical(2)])
ROWS = torch.tensor([[1, 2, 9.0, 0], [NAN, 0, 11.5, NAN], [0, NAN, NAN, 1], [NAN, NAN, NAN, NAN]], dtype=torch.float64)


def model(strength=0.3, **family) -> Network:
    network = Network(COLUMNS, Connectivities(4, (30,), **family), direct=True, conditioning=True, activation="tanh")
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape) * strength)
    return network.double()


@pytest.mark.parametrize("column", [0, 1, 3])
def test_probabilities_are_those_of_the_likelihood(column) -> None:
    network = model(masks=None)
    count = 2 if column == 0 else COLUMNS[column].k
    found = predict(network, ROWS, column, masks=5).probabilities(count)
    for value in range(count):
        rows = ROWS.clone()
        rows[:, column] = value
        given = ~ROWS.isnan()
        given[:, column] = False
        assert torch.allclose(found[:, value], log_prob(network, rows, given=given, masks=5).exp(), atol=1e-12)
    assert torch.allclose(found.sum(1), torch.ones(4, dtype=torch.float64))


def test_a_list_of_masks_weighs_them_by_what_they_give_to_the_known() -> None:
    network = model(masks=3, resample="degrees")  # natural ordering: the last column can be asked for
    rows = ROWS[:1].clone()
    found = predict(network, rows, 3).probabilities(2)
    for value in range(2):
        rows[:, 3] = value
        assert torch.allclose(found[:, value], log_prob(network, rows, given=[0, 1, 2]).exp(), atol=1e-12)
    with pytest.raises(QuestionError, match="unlimited masks"):
        predict(network, rows, 1)


def test_mean_and_mode_of_numbers() -> None:
    network = model(masks=None, strength=0.05)
    prediction = predict(network, ROWS, 2, masks=4)
    z = torch.linspace(-60, 60, 60_001, dtype=torch.float64)
    density = torch.stack([prediction.log_prob(value) for value in z]).exp()
    # In the units of the data, a step of z is two.
    assert torch.allclose(2 * torch.trapezoid(density, z, dim=0), torch.ones(4, dtype=torch.float64), atol=1e-4)
    mean = 2 * torch.trapezoid(density * z.unsqueeze(1), z, dim=0)
    assert torch.allclose(prediction.mean(), mean, atol=1e-3)
    assert (prediction.log_prob(prediction.mode()) > density.max(dim=0).values.log() - 0.2).all()
