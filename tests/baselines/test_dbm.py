"""Deep Boltzmann machines: mean field and initialisation."""

from __future__ import annotations

import pytest
import torch

from made.baselines.bipartite import Bipartite
from made.baselines.boltzmann import add_second_layer, mean_field, variational_bound
from small_baselines import brute, random_machine, states


@pytest.mark.parametrize("others", [3, 300])
def test_a_dbm_begins_as_the_rbm_below(others) -> None:
    """Units that join it with small weights change nothing: the bound is its likelihood, however many they are."""
    rbm = random_machine(5, 4, seed=1)
    joined, x = add_second_layer(Bipartite(*(each.float() for each in rbm)), others, seed=0).double(), states(5)
    every = states(4).double()  # log Z by all states of the first layer
    log_z = joined.transposed().neg_free_energy(every).logsumexp(dim=0)
    exact, below = rbm.neg_free_energy(x) - brute(rbm), variational_bound(joined, x, 5) - log_z
    assert torch.allclose(below, exact, atol=0.02)


def test_mean_field_only_gets_closer() -> None:
    machine, x = random_machine(5 + 3, 4, seed=4), states(5)
    values = torch.stack([variational_bound(machine, x, rounds) for rounds in (0, 1, 2, 5, 50)])
    assert (values.diff(dim=0) >= -1e-10).all()
    first, second = mean_field(machine, x, 200)
    assert torch.allclose(first, machine.conditional(torch.cat([x, second], dim=1)), atol=1e-6)
    assert torch.allclose(second, machine.transposed().conditional(first)[:, 5:], atol=1e-6)
