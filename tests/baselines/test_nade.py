"""NADE against its equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from made.baselines.nade import NADE, NADENetwork, sequential_pass
from small_baselines import COLUMNS, TRAIN, VALID, WORLDS, bits, naive


def test_nade_takes_a_list_as_its_ordering() -> None:
    order = [3, 0, 4, 1, 2]
    model = NADE(6, ordering=order, max_epochs=2).fit(TRAIN, VALID)
    same = NADE(6, max_epochs=2).fit(TRAIN[:, order], VALID[:, order])
    assert np.array_equal(model.log_prob(WORLDS).values, same.log_prob(WORLDS[:, order]).values)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ordering": [0, 1, 2, 3, 3]}, "'ordering' should have each of the columns 0 to 4 once"),
        ({"ordering": "walk"}, "'ordering' should be natural, random"),
        ({"input_dropout": 1.0}, "'input_dropout' should be at least 0"),
        ({"activation": "softplus"}, "'activation' should be one of sigmoid, relu"),
    ],
)
def test_invalid_parameters_of_nade_are_refused(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        NADE(6, **wrong).fit(TRAIN, VALID)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize("mask", [False, True])
def test_the_sequential_pass_equals_the_naive_one(activation, mask) -> None:
    x, shapes = bits(7, COLUMNS), ((COLUMNS, 4), (4,), (COLUMNS, 4), (COLUMNS,), (COLUMNS, 4))
    *weights, u = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    u = u if mask else None
    values, logits = sequential_pass(*weights, u, activation=activation, values=x)
    assert torch.equal(values, x)
    assert torch.allclose(logits, naive(x, *weights, u, activation), rtol=0, atol=1e-12)


def test_dropout_of_units_is_for_training_only() -> None:
    network, x = NADENetwork(COLUMNS, 40, dropout=0.3, seed=1), bits(9, COLUMNS).float()
    keep = torch.rand(40, generator=torch.Generator().manual_seed(3)) >= 0.3
    with torch.no_grad():
        network.b.normal_(generator=torch.Generator().manual_seed(0))
        for share, chosen in ((0.3, keep), (0.0, torch.ones(40, dtype=torch.bool))):
            network.train(share > 0)
            V = network.V[:, chosen] / (1 - share)
            parts = (network.W[:, chosen], network.b[chosen], V, network.c, None, "sigmoid")
            assert torch.allclose(network(x, generator=torch.Generator().manual_seed(3)), naive(x, *parts), atol=1e-4)


def test_dropout_of_inputs_is_for_training_only() -> None:
    network = NADENetwork(COLUMNS, 6, input_dropout=0.5, seed=1)
    plain = NADENetwork(COLUMNS, 6, seed=1)
    x = torch.from_numpy(WORLDS).float().repeat(500, 1)
    assert torch.equal(network.eval()(x), plain(x))
    with torch.no_grad():
        network.V.fill_(1), plain.V.fill_(1)
        network.W.mul_(1e-3), plain.W.mul_(1e-3)  # so small that logits are linear in the inputs
        noisy, expected = network.train()(x, generator=torch.Generator().manual_seed(0)), plain(x)
    assert not torch.equal(noisy, expected)
    assert torch.equal(noisy[:, 0], expected[:, 0])
    assert torch.allclose(noisy.reshape(500, -1).mean(dim=0), expected[:32].reshape(-1), atol=3e-4)


def test_nade_is_its_equations() -> None:
    network = NADENetwork(COLUMNS, 6, seed=1).double().eval()
    x = torch.from_numpy(WORLDS).double()
    with torch.no_grad():
        expected = naive(x, network.W, network.b, network.V, network.c, None, network.activation)
        assert torch.allclose(network(x), expected, rtol=0, atol=1e-12)
