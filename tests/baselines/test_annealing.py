"""Annealed importance sampling against summation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from made.baselines import bipartite
from made.baselines.bipartite import LogPartition, anneal, log_partition, sample_visible
from oracle import chi_square
from small_baselines import brute, random_machine, states


@pytest.mark.parametrize("shape", [(3, 4), (6, 2), (2, 2)])
def test_a_constant_is_summed_where_a_side_is_small(shape) -> None:
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


def test_without_a_way_to_go_annealing_is_importance_sampling() -> None:
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
