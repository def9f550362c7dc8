"""Deep autoregressive networks: bound, estimate and adaptive noise."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from made.baselines.darn import DARN
from small_baselines import COLUMNS, SMALL, TRAIN, VALID, WORLDS, states, truth


@pytest.fixture(scope="module")
def darn() -> DARN:
    return SMALL["darn"]().fit(TRAIN, VALID)


def test_the_sum_over_hidden_units_is_exact(darn) -> None:
    with torch.no_grad():
        assert darn.network_.exact(states(COLUMNS).float()).numpy() == pytest.approx(truth(darn), abs=1e-5)


def test_the_bound_of_darn_is_below(darn) -> None:
    bound = darn.bound(WORLDS)
    assert bound.kind == "bound"
    assert (bound.values <= truth(darn) + 0.05).all()


def test_the_estimate_of_darn_converges_as_its_draws_grow(darn) -> None:
    model = copy.copy(darn)
    exact, gaps = truth(model), []
    for draws in (1, 10, 300, 5000):
        model.draws = draws
        answer = model.log_prob(WORLDS)
        gaps.append(float(np.abs(answer.values - exact).mean()))
        if draws >= 300:
            assert abs(answer.mean() - exact.mean()) < 3 * answer.standard_error + 1e-5
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[-1] < 0.03


def test_both_losses_of_darn_are_the_bound() -> None:
    network = SMALL["darn"]().fit(TRAIN, VALID).network_.double()
    network.U.data.zero_()  # and with nothing between hidden units and columns, log p(x, h) is linear in h
    network.V.data.zero_()
    x, h = states(COLUMNS), states(4)
    weights, logits = network.weights(), F.linear(x, network.E, network.b_q)
    base, log_q = network.c + weights.apply("A", x), -F.softplus(-(2 * h - 1) * logits[:, None]).sum(dim=-1)
    log_p = torch.stack([network.log_joint(x, each.expand(len(x), -1), base, weights) for each in h], dim=1)
    exact = -(log_q.exp() * (log_p - log_q)).sum(dim=1)
    (slopes,) = torch.autograd.grad(exact.sum(), network.E, retain_graph=True)
    many = x.repeat(3000, 1)
    for through in (False, True):
        loss = network.loss(many, weights, torch.Generator().manual_seed(0), through=through)
        assert loss.reshape(3000, -1).mean(dim=0).tolist() == pytest.approx(exact.tolist(), abs=0.05)
        (found,) = torch.autograd.grad(loss.sum() / 3000, network.E)
        assert torch.allclose(found, slopes, atol=0.1 * slopes.abs().max().item())
    alone = network.loss(x, weights, torch.Generator().manual_seed(0), through=True, alone=True).sum()
    assert torch.autograd.grad(alone, network.A, allow_unused=True) == (None,)


def test_autoregressive_connections_are_switched_on_later() -> None:
    model = DARN(4, through=True, wait=1.0, max_epochs=30, learning_rate=0.03).fit(TRAIN, VALID)
    assert not model.network_.A.any()
    late = DARN(4, through=True, wait=0.5, max_epochs=30, learning_rate=0.03).fit(TRAIN, VALID)
    assert late.network_.A.any()
    shares = (TRAIN.mean(axis=0) * 0.98 + 0.01).clip(0.01, 0.99)
    independent = (np.log(shares) * VALID + np.log1p(-shares) * (1 - VALID)).sum(axis=1).mean()
    assert late.log_prob(VALID).mean() > independent + 0.1


@pytest.fixture(scope="module")
def noisy() -> DARN:
    return SMALL["darn-noise"]().fit(TRAIN, VALID)


def test_noise_is_in_training_only(noisy, darn) -> None:
    h = states(4).float()
    with torch.no_grad():
        assert torch.equal(noisy.network_.weights().apply("V", h), F.linear(h, noisy.network_.V))
    assert noisy.size == darn.size


def test_noise_of_sums_is_that_of_weights_drawn_for_each_row(noisy) -> None:
    network, h = copy.deepcopy(noisy.network_).train(), states(4).float()
    with torch.no_grad():
        found = network.weights(torch.Generator().manual_seed(0)).apply("V", h.repeat(4000, 1)).unflatten(0, (4000, -1))
        noise = torch.randn(4000, *network.V.shape, generator=torch.Generator().manual_seed(1))
        drawn = torch.stack([F.linear(h, network.V + each * network.b_noise["V"].exp()) for each in noise])
    assert torch.allclose(found.mean(dim=0), drawn.mean(dim=0), atol=0.1 * drawn.std(dim=0).max().item())
    assert torch.allclose(found.std(dim=0), drawn.std(dim=0), rtol=0.1, atol=2e-4)


def test_the_cost_of_noise_is_the_divergence_from_the_best_normal_prior(noisy) -> None:
    network, total, normal = copy.deepcopy(noisy.network_).train(), 0.0, torch.distributions.Normal
    with torch.no_grad():
        for name, log_s in network.b_noise.items():
            mean = getattr(network, name)
            if name in ("U", "A"):
                below = torch.ones_like(mean, dtype=torch.bool).tril(-1)
                mean, log_s = mean[below], log_s[below]
            m, s = mean.mean(), log_s.exp()
            r = (s**2 + (mean - m) ** 2).mean().sqrt()
            total += float(torch.distributions.kl_divergence(normal(mean, s), normal(m, r)).sum())
        assert float(network.noise_cost(network.weights())) == pytest.approx(total, rel=1e-5)
    assert set(network.b_noise) == {"U", "V", "A", "E"}


def test_adaptive_noise_of_one_hidden_unit() -> None:
    """U has no weights below its diagonal, and costs nothing; the likelihood is that of the sum over both states."""
    model = DARN(1, noise=True, max_epochs=2).fit(TRAIN, VALID)
    answer = model.log_prob(VALID)
    exact = model.network_.exact(torch.from_numpy(VALID).float()).mean().item()
    assert answer.mean() == pytest.approx(exact, abs=4 * answer.standard_error + 1e-4)
