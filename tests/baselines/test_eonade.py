"""Orderless NADE against its equations, MADE, and all orderings."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional as F

from made import Connectivities, Ensemble, Network, log_prob
from made.baselines.eonade import OrderlessNetwork, agnostic_loss, random_parts
from small_baselines import COLUMNS, TRAIN, WORLDS


@pytest.mark.parametrize("sizes", [(6,), (6, 4)])
def test_eonade_in_an_ordering_is_the_product_of_its_conditionals(sizes) -> None:
    """D passes, each with what comes before as given, against the fast way."""
    network = OrderlessNetwork(COLUMNS, sizes, seed=1).double().eval()
    network.start(torch.from_numpy(TRAIN).double())
    x, generator = torch.from_numpy(WORLDS).double(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
        ordering = torch.tensor([3, 0, 4, 1, 2])
        expected = torch.zeros(len(x), dtype=torch.float64)
        for position, column in enumerate(ordering.tolist()):
            given = torch.zeros_like(x)
            given[:, ordering[:position]] = 1
            logits = network(x, given)[:, column]
            expected -= F.binary_cross_entropy_with_logits(logits, x[:, column], reduction="none")
        assert torch.allclose(network.log_prob(x, ordering), expected, rtol=0, atol=1e-9)


def test_eonade_is_the_engine_with_a_segment_for_each_column() -> None:
    """The engine's any-order network with conditioning weights, told the same weights, gives the same likelihood."""
    family = Connectivities(COLUMNS, (6,), masks=None)
    engine = Network(COLUMNS, family, activation="relu", conditioning=True).double()
    orderless = OrderlessNetwork(COLUMNS, (6,), activation="relu", seed=1).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in orderless.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
        mean = next((buffer for name, buffer in orderless.named_buffers()), torch.zeros(COLUMNS))
        engine.load_state_dict(
            {
                "W1": orderless.W.t(),
                "U1": (orderless.U - mean[:, None] * orderless.W).t(),
                "U2": torch.zeros(engine.shapes["U2"]),
                "V": orderless.V,
                "b1": orderless.b,
                "c": orderless.c,
            }
        )
    x = torch.from_numpy(WORLDS).double()
    for number in (0, 3):
        ordering = torch.from_numpy(family[number].ordering.argsort())
        answer = log_prob(Ensemble(engine, [number], segments=COLUMNS), x)
        with torch.no_grad():
            assert torch.allclose(orderless.log_prob(x, ordering), answer, rtol=0, atol=1e-9)


def test_the_loss_of_eonade_is_the_mean_over_orderings() -> None:
    """The loss over all parts, each size as likely and each part of a size, is the mean NLL of all orderings."""
    network = OrderlessNetwork(3, (4,), seed=2).double().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64))
        x = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
        orders = [torch.tensor(order) for order in itertools.permutations(range(3))]
        expected = -torch.stack([network.log_prob(x, order) for order in orders]).mean()
        total = 0.0
        for size in range(3):
            parts = list(itertools.combinations(range(3), size))
            for part in parts:
                given = torch.zeros_like(x)
                given[0, list(part)] = 1
                total += agnostic_loss(network, x, given).item() * 3 / (3 - size) / len(parts) / 3
    assert total == pytest.approx(expected.item(), abs=1e-9)
    given, weight = random_parts(x.repeat(3000, 1), torch.Generator().manual_seed(0))
    sizes = given.sum(dim=1)
    assert torch.allclose(weight, (3 / (3 - sizes)).to(weight.dtype))
    assert torch.bincount(sizes.long(), minlength=3).tolist() == pytest.approx([1000] * 3, abs=100)
    assert given.mean(dim=0).tolist() == pytest.approx([1 / 3] * 3, abs=0.05)
