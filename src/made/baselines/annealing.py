r"""The partition function of a bipartite Boltzmann machine, and samples of it, by annealed importance sampling.

Z is a sum over all states of the smaller side. Where these are too many, it is estimated (Neal, 2001; for RBMs,
Salakhutdinov and Murray, ICML 2008): chains go from independent units, whose Z is known, to the model, through
intermediate distributions

.. math:: \log p_\beta(x) = ((1 - \beta) a^0 + \beta a) \cdot x + \sum_k \log(1 + e^{\beta (b_k + (x^T W)_k)}) + const.

The mean of their importance weights is an unbiased estimate of Z; its logarithm is too low on average.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from made.baselines.bipartite import Bipartite, enumerate_states, gibbs, sample_bernoulli

__all__ = ["VALIDATION_AIS", "LogPartition", "anneal", "log_partition", "sample_visible"]

EXACT = 16  # units of the smaller side up to which all its states are enumerated
STATES_AT_A_TIME = 4096
# Shares of the temperatures with beta below 0.5, below 0.9 and below 1: the closer to the model, the slower.
PARTS = ((0.0, 0.5, 0.2), (0.5, 0.9, 0.4), (0.9, 1.0, 0.4))
VALIDATION_AIS = {"chains": 100, "temperatures": 1000}  # for log Z after each epoch
SAMPLE_TEMPERATURES = 1000
MIXING_STEPS = 10  # Gibbs steps after chains were resampled by their weights, which duplicates some of them


class LogPartition(NamedTuple):
    """log Z, its standard error, and whether it was estimated rather than summed."""

    value: float
    standard_error: float = 0.0
    estimated: bool = False

    @property
    def upper(self) -> float:
        """The upper end of the 95 % interval: model selection by it does not reward a lucky estimate."""
        return self.value + 1.96 * self.standard_error


def log_partition(model: Bipartite, base: Tensor, *, chains: int, temperatures: int, seed: int = 0) -> LogPartition:
    """log Z: summed where one side has few units, otherwise estimated.

    Arguments:
        model: the machine.
        base: the logits of x in the independent units that annealing starts from, (A).
        chains: number of chains.
        temperatures: number of intermediate distributions.
        seed: seed of the chains.

    Example:
        >>> coins = Bipartite(torch.zeros(40, 30), torch.zeros(40), torch.zeros(30))
        >>> log_z = log_partition(coins, torch.zeros(40), chains=2, temperatures=3)
        >>> abs(log_z.value - 70 * math.log(2)) < 1e-4, log_z.estimated
        (True, True)
    """
    if min(model.W.shape) <= EXACT:
        return LogPartition(float(_enumerate_smaller_side(model)[1].logsumexp(dim=0)))
    _, weights = anneal(model, base, chains, temperatures, torch.Generator().manual_seed(seed))
    value = float(weights.logsumexp(dim=0)) - math.log(chains)
    spread = float((weights - value).exp().std()) if chains > 1 else math.nan
    return LogPartition(value, spread / math.sqrt(chains), estimated=True)


def anneal(
    model: Bipartite, base: Tensor, chains: int, temperatures: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The x of annealed chains, (chains, A), and their log importance weights, (chains)."""
    model, base = model.detach(), base.to(model.W.dtype)
    x = sample_bernoulli(torch.sigmoid(base).expand(chains, -1), generator)
    start = F.softplus(base.double()).sum() + len(model.b) * math.log(2)
    weights, before, back = start.expand(chains).clone(), 0.0, model.W.t().contiguous()
    for beta in _schedule(temperatures):
        y = torch.addmm(model.b, x, model.W)
        gain = F.softplus(beta * y).sum(dim=1, dtype=torch.float64) - F.softplus(before * y).sum(1, dtype=torch.float64)
        weights += gain + (beta - before) * (x @ (model.a - base))
        before = beta
        if beta < 1:
            y = sample_bernoulli(torch.sigmoid(y.mul_(beta)), generator)
            logits = torch.addmm(torch.lerp(base, model.a, beta), y, back, alpha=beta)
            x = sample_bernoulli(torch.sigmoid(logits), generator)
    return x, weights


def _schedule(temperatures: int) -> list[float]:
    """The values of beta, up to 1."""
    parts = [
        torch.linspace(begin, end, max(round(share * temperatures), 1) + 1, dtype=torch.float64)[1:]
        for begin, end, share in PARTS
    ]
    return [float(beta) for beta in torch.cat(parts)]


def sample_visible(
    model: Bipartite,
    base: Tensor,
    n: int,
    *,
    temperatures: int = SAMPLE_TEMPERATURES,
    seed: int = 0,
    chains: int = 1000,
) -> Tensor:
    """Samples of x: exact where one side has few units, otherwise by annealed chains. Shape: (n, A)."""
    generator = torch.Generator().manual_seed(seed)
    if min(model.W.shape) <= EXACT:
        states, weights = _enumerate_smaller_side(model)
        some = states[torch.multinomial(weights.softmax(dim=0), n, replacement=True, generator=generator)]
        if len(model.a) <= len(model.b):
            return some
        return sample_bernoulli(model.transposed().conditional(some), generator)
    samples = []
    for count in [chains] * (n // chains) + [n % chains] * (n % chains > 0):
        x, weights = anneal(model, base, count, temperatures, generator)
        x = x[torch.multinomial(weights.softmax(dim=0), count, replacement=True, generator=generator)]
        samples.append(gibbs(model, x, MIXING_STEPS, generator))
    return torch.cat(samples)


def _enumerate_smaller_side(model: Bipartite) -> tuple[Tensor, Tensor]:
    """All states of the smaller side, and the log of their unnormalised probabilities in float64."""
    side = model if len(model.a) <= len(model.b) else model.transposed()
    states, double = enumerate_states(len(side.a)), side.detach().double()
    weights = [double.neg_free_energy(some.double()) for some in states.split(STATES_AT_A_TIME)]
    return states.to(model.W.dtype), torch.cat(weights)
