r"""Bipartite Boltzmann machines: two sides x and y of binary units, each unit connected to all of the other side.

.. math::
    p(x, y) = \frac{1}{Z} \exp(a \cdot x + b \cdot y + x^T W y), \qquad
    \log \sum_y Z \, p(x, y) = a \cdot x + \sum_k \log(1 + e^{b_k + (x^T W)_k})

Each side is independent given the other, so that both can be sampled in turn (Gibbs sampling) and one of them summed
out. An RBM is bipartite, of columns and hidden units. So are the two upper layers of a DBN, and a whole DBM of two
hidden layers: its first hidden layer is connected to all the rest, and the rest has no connections within itself.

The partition function Z is a sum over all states of the smaller side. Where these are too many, it is estimated by
annealed importance sampling (Neal, 2001; for RBMs, Salakhutdinov and Murray, ICML 2008): chains go from independent
units, whose Z is known, to the model, through intermediate distributions

.. math:: \log p_\beta(x) = ((1 - \beta) a^0 + \beta a) \cdot x + \sum_k \log(1 + e^{\beta (b_k + (x^T W)_k)}) + const.

The mean of their importance weights is an unbiased estimate of Z; its logarithm is too low on average.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.optimization import repeat_rows

EPOCH_ROWS = 20_000  # at least, because log Z is estimated after each epoch
EXACT = 16  # units of the smaller side up to which all its states are enumerated
STATES_AT_A_TIME = 4096
# Shares of the temperatures with beta below 0.5, below 0.9 and below 1: the closer to the model, the slower.
PARTS = ((0.0, 0.5, 0.2), (0.5, 0.9, 0.4), (0.9, 1.0, 0.4))
VALIDATION_AIS = {"chains": 100, "temperatures": 1000}  # for log Z after each epoch
CHAINS = 1000  # at a time, for samples
MIXING_STEPS = 10  # Gibbs steps after chains were resampled by their weights, which duplicates some of them


class Bipartite(NamedTuple):
    """The weights W (A, B), and the biases a (A) and b (B) of the two sides."""

    W: Tensor
    a: Tensor
    b: Tensor

    def transposed(self) -> Bipartite:
        """The same distribution with its sides exchanged."""
        return Bipartite(self.W.t(), self.b, self.a)

    def neg_free_energy(self, x: Tensor) -> Tensor:
        """log of the unnormalized probability of x, y summed out. Shapes: (rows, A) to (rows)."""
        return x @ self.a + F.softplus(torch.addmm(self.b, x, self.W)).sum(dim=1)

    def neg_energy(self, x: Tensor, y: Tensor) -> Tensor:
        """log of the unnormalized p(x, y), or its mean under independent units of these probabilities.

        Shapes: (rows, A), (rows, B) to (rows).
        """
        return x @ self.a + y @ self.b + (x @ self.W * y).sum(dim=1)

    def conditional(self, x: Tensor) -> Tensor:
        """p(y = 1 | x). Shapes: (rows, A) to (rows, B)."""
        return torch.sigmoid(torch.addmm(self.b, x, self.W))

    def detach(self) -> Bipartite:
        """The same parameters, without gradients."""
        return Bipartite(*(each.detach() for each in self))

    def double(self) -> Bipartite:
        """The same parameters in float64."""
        return Bipartite(*(each.double() for each in self))


class CenteredBipartite(nn.Module):
    r"""A trainable :class:`Bipartite`, parameterized by units minus their means m and n.

    .. math:: \log p(x, y) = a \cdot x + b \cdot y + (x - m)^T W (y - n) + const

    Centering (Montavon and Mueller, 2012) conditions the gradients better.

    Arguments:
        mean: m, the means of x.
        others: B, the number of units y, whose n is 1/2.
        begin: initial parameters; default: small random weights, and biases such that x has the means m.
        seed: seed of the random weights.
    """

    m: Tensor
    n: Tensor

    def __init__(self, mean: Tensor, others: int, *, begin: Bipartite | None = None, seed: int = 0) -> None:
        super().__init__()
        if begin is None:
            W = 0.01 * torch.randn(len(mean), others, generator=torch.Generator().manual_seed(seed))
            begin = Bipartite(W, mean.logit() - W.sum(dim=1) / 2, -mean @ W)
        self.register_buffer("m", mean.clone())
        self.register_buffer("n", torch.full((others,), 0.5, dtype=mean.dtype))
        self.W = nn.Parameter(begin.W.clone())
        self.b_x = nn.Parameter(begin.a + begin.W @ self.n)
        self.b_y = nn.Parameter(begin.b + self.m @ begin.W)

    def bipartite(self) -> Bipartite:
        """The uncentered parameters; gradients flow through."""
        return Bipartite(self.W, self.b_x - self.W @ self.n, self.b_y - self.m @ self.W)

    def snapshot(self) -> Bipartite:
        """A copy of the uncentered parameters."""
        return Bipartite(*(each.detach().clone() for each in self.bipartite()))


class GibbsChains:
    """Samples of the model during training, by Gibbs sampling from the rows or from the previous samples.

    Arguments:
        steps: the number of Gibbs steps in an update.
        persistent: whether chains continue where they ended, or start at the rows.
        growth: the number of updates over which the steps grow from 1 to ``steps``; default: no growth.
    """

    def __init__(self, steps: int, persistent: bool = True, growth: int = 0) -> None:
        self.steps, self.persistent, self.growth, self.update = steps, persistent, growth, 0
        self.last: Tensor | None = None

    def __call__(self, model: Bipartite, x: Tensor, generator: torch.Generator) -> Tensor:
        """Samples, at most as many as rows. Shapes: (rows, A) to (rows, A)."""
        begin = x if self.last is None or not self.persistent else self.last
        steps = min(self.steps, 1 + self.steps * self.update // self.growth) if self.growth else self.steps
        self.last, self.update = gibbs(model.detach(), begin, steps, generator), self.update + 1
        return self.last


def epoch_rows(x: Tensor) -> Tensor:
    """The rows, repeated to make up an epoch."""
    return repeat_rows(x, EPOCH_ROWS)


def enumerate_states(units: int) -> Tensor:
    """All states of binary units. Shape: (2^units, units)."""
    return (torch.arange(2**units).unsqueeze(1) >> torch.arange(units)) & 1


def sample_bernoulli(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Independent zeros and ones with these probabilities of a one."""
    return (torch.rand(probabilities.shape, generator=generator) < probabilities).to(probabilities.dtype)


def gibbs(model: Bipartite, x: Tensor, steps: int, generator: torch.Generator) -> Tensor:
    """x after Gibbs steps, each of which samples y given x, then x given y. Shapes: (rows, A) to (rows, A)."""
    back = model.transposed()
    for _ in range(steps):
        x = sample_bernoulli(back.conditional(sample_bernoulli(model.conditional(x), generator)), generator)
    return x


def contrastive_loss(model: Bipartite, x: Tensor, samples: Tensor) -> Tensor:
    """A loss with the gradient of the NLL of x, if ``samples`` are of the model. Shapes: (rows, A), twice."""
    return model.neg_free_energy(samples).mean() - model.neg_free_energy(x).mean()


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
    """log Z: summed where one side has few units, otherwise estimated by annealed importance sampling.

    ``base`` has the logits of x in the independent units that annealing starts from, (A).

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
    counts = [(begin, end, max(round(share * temperatures), 1) + 1) for begin, end, share in PARTS]
    for beta in torch.cat([torch.linspace(*part, dtype=torch.float64)[1:] for part in counts]).tolist():
        y = torch.addmm(model.b, x, model.W)
        gain = F.softplus(beta * y).sum(dim=1, dtype=torch.float64) - F.softplus(before * y).sum(1, dtype=torch.float64)
        weights += gain + (beta - before) * (x @ (model.a - base))
        before = beta
        if beta < 1:
            y = sample_bernoulli(torch.sigmoid(y.mul_(beta)), generator)
            logits = torch.addmm(torch.lerp(base, model.a, beta), y, back, alpha=beta)
            x = sample_bernoulli(torch.sigmoid(logits), generator)
    return x, weights


def sample_visible(model: Bipartite, base: Tensor, n: int, *, temperatures: int = 1000, seed: int = 0) -> Tensor:
    """Samples of x: exact where one side has few units, otherwise by annealed chains. Shape: (n, A)."""
    generator = torch.Generator().manual_seed(seed)
    if min(model.W.shape) <= EXACT:
        states, weights = _enumerate_smaller_side(model)
        some = states[torch.multinomial(weights.softmax(dim=0), n, replacement=True, generator=generator)]
        if len(model.a) <= len(model.b):
            return some
        return sample_bernoulli(model.transposed().conditional(some), generator)
    samples = []
    for first in range(0, n, CHAINS):
        x, weights = anneal(model, base, min(CHAINS, n - first), temperatures, generator)
        x = x[torch.multinomial(weights.softmax(dim=0), len(x), replacement=True, generator=generator)]
        samples.append(gibbs(model, x, MIXING_STEPS, generator))
    return torch.cat(samples)


def _enumerate_smaller_side(model: Bipartite) -> tuple[Tensor, Tensor]:
    """All states of the smaller side, and the log of their unnormalized probabilities in float64."""
    side = model if len(model.a) <= len(model.b) else model.transposed()
    states, double = enumerate_states(len(side.a)), side.detach().double()
    weights = [double.neg_free_energy(some.double()) for some in states.split(STATES_AT_A_TIME)]
    return states.to(model.W.dtype), torch.cat(weights)
