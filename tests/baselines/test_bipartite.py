"""Bipartite Boltzmann machines: gradients, Gibbs chains, and annealing against summation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from made.baselines import bipartite
from made.baselines.bipartite import (
    Bipartite,
    CenteredBipartite,
    GibbsChains,
    LogPartition,
    anneal,
    contrastive_loss,
    log_partition,
    sample_visible,
)
from made.baselines.boltzmann import RBM
from oracle import chi_square
from small_baselines import TRAIN, VALID, brute, random_machine, states


def test_a_centered_machine_is_the_same_distribution() -> None:
    machine = random_machine(4, 3, seed=0)
    network = CenteredBipartite(torch.full((4,), 0.3, dtype=torch.float64), 3, begin=machine)
    for ours, theirs in zip(network.snapshot(), machine, strict=True):
        assert torch.allclose(ours, theirs)


def test_the_contrastive_loss_has_the_gradient_of_the_likelihood() -> None:
    """With all states of the model, each as often as it is likely, in place of a few draws."""
    machine = Bipartite(*(each.requires_grad_() for each in random_machine(3, 2, seed=0)))
    x, rows = states(3), torch.tensor([[1.0, 0, 1], [0, 1, 1]], dtype=torch.float64)
    exact = (machine.neg_free_energy(x).logsumexp(dim=0) - machine.neg_free_energy(rows).mean()).squeeze()
    expected = torch.autograd.grad(exact, machine)
    share = (machine.neg_free_energy(x) - brute(machine.detach())).exp().detach()
    found = torch.autograd.grad(
        (share * machine.neg_free_energy(x)).sum() - machine.neg_free_energy(rows).mean(), machine
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-10)
    drawn = sample_visible(machine.detach(), torch.zeros(3), 100_000, temperatures=1)
    for ours, theirs in zip(
        torch.autograd.grad(contrastive_loss(machine, rows, drawn), machine), expected, strict=True
    ):
        assert torch.allclose(ours, theirs, atol=0.01)


def test_persistent_chains_continue_where_they_ended() -> None:
    still = Bipartite(*(torch.zeros(shape) for shape in ((3, 2), (3,), (2,))))
    still = Bipartite(still.W, torch.tensor([40.0, -40.0, 40.0]), still.b)
    rows, generator = torch.zeros(4, 3), torch.Generator().manual_seed(0)
    for persistent in (True, False):
        chains = GibbsChains(0, persistent)
        chains.last = torch.ones(4, 3)
        assert torch.equal(chains(still, rows, generator), torch.ones(4, 3) if persistent else rows)
        chains.steps = 1
        assert torch.equal(chains(still, rows, generator), torch.tensor([[1.0, 0, 1]]).expand(4, -1))


def test_steps_of_chains_grow_from_one(monkeypatch) -> None:
    taken = []
    monkeypatch.setattr(bipartite, "gibbs", lambda machine, x, steps, generator: taken.append(steps) or x)
    chains, machine, rows = GibbsChains(5, True, growth=10), random_machine(3, 2, seed=0), torch.zeros(1, 3)
    for _ in range(12):
        chains(machine, rows, torch.Generator())
    assert taken == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5]


def test_steps_of_an_rbm_grow_over_all_its_epochs(monkeypatch) -> None:
    taken = []
    monkeypatch.setattr(bipartite, "gibbs", lambda machine, x, steps, generator: taken.append(steps) or x)
    RBM(4, steps=3, growing=True, max_epochs=9, batch_size=len(TRAIN)).fit(TRAIN, VALID)
    assert taken == [1, 1, 1, 2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("shape", [(3, 4), (6, 2), (2, 2)])
def test_the_partition_function_is_summed_where_a_side_is_small(shape) -> None:
    machine = random_machine(*shape, seed=1)
    log_z = log_partition(machine, torch.zeros(shape[0]), chains=1, temperatures=1)
    assert log_z == LogPartition(pytest.approx(brute(machine), abs=1e-10), 0.0, False)
    assert log_partition(machine.transposed(), torch.zeros(shape[1]), chains=1, temperatures=1).value == log_z.value


@pytest.mark.parametrize("seed", range(8))
def test_annealing_agrees_with_summation(seed, monkeypatch) -> None:
    """Of an RBM, and of a DBM, which is bipartite, too: its columns and its second layer against its first."""
    for machine in (random_machine(6, 5, seed), random_machine(5 + 3, 4, seed + 100)):
        exact = brute(machine)
        monkeypatch.setattr(bipartite, "EXACT", 0)
        base = torch.linspace(-1, 1, len(machine.a), dtype=torch.float64)
        log_z = log_partition(machine, base, chains=400, temperatures=200, seed=seed)
        monkeypatch.undo()
        assert log_z.estimated
        assert 0 < log_z.standard_error < 0.1
        assert abs(log_z.value - exact) < 3 * log_z.standard_error


def test_annealing_in_one_step_is_importance_sampling() -> None:
    """One step from independent units: the mean weight is unbiased all the same."""
    machine = random_machine(4, 3, seed=3, scale=0.3)
    _, weights = anneal(machine, torch.zeros(4), 200_000, 1, torch.Generator().manual_seed(0))
    assert float(weights.logsumexp(dim=0)) - math.log(200_000) == pytest.approx(brute(machine), abs=0.01)


def test_annealed_draws_fit(monkeypatch) -> None:
    machine = random_machine(4, 6, seed=2)
    x = states(4)
    probabilities = (machine.neg_free_energy(x) - brute(machine)).exp().numpy()
    monkeypatch.setattr(bipartite, "EXACT", 0)
    drawn = sample_visible(machine, torch.zeros(4), 20_000, temperatures=50, seed=3)
    assert chi_square(drawn.numpy().astype(np.uint8), probabilities) < 5
