r"""Two sides of binary units, each connected to all of the other side and to none of its own: the heart of an RBM.

.. math::
    p(x, y) = \frac{1}{Z} \exp(a \cdot x + b \cdot y + x^T W y), \qquad
    \log \sum_y Z \, p(x, y) = a \cdot x + \sum_k \log(1 + e^{b_k + (x^T W)_k})

One side is independent given the other, so that both can be drawn in turn (Gibbs sampling) and one of them summed out,
but Z is a sum over all states of the smaller side. Where that is too large it is estimated by annealed importance
sampling (Neal, 2001; for RBMs, Salakhutdinov and Murray, ICML 2008): chains go from independent units, whose Z is
known, to these, through distributions between the two,

.. math:: \log p_\beta(x) = ((1 - \beta) a^0 + \beta a) \cdot x + \sum_k \log(1 + e^{\beta (b_k + (x^T W)_k)}) + const,

and the mean of their weights is an estimate of Z, unbiased, whose logarithm is too low on average.

An RBM is such a pair, of columns and hidden units. So are the two upper layers of a DBN, and a whole DBM of two hidden
layers: one of them is connected to all the rest, and the rest not among itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.learning import repeated

__all__ = [
    "CHECK",
    "DRAWING",
    "Chains",
    "Constant",
    "Pair",
    "PairNetwork",
    "anneal",
    "contrast",
    "draw",
    "flip",
    "gibbs",
    "log_partition",
    "many",
    "states",
]

EXACT = 16  # units of the smaller side up to which all its states are summed
STATES_AT_A_TIME = 4096
# beta spends these parts of all steps below 0.5, below 0.9 and below 1: the closer to the end, the slower.
PARTS = ((0.0, 0.5, 0.2), (0.5, 0.9, 0.4), (0.9, 1.0, 0.4))
CHECK = {"chains": 100, "temperatures": 1000}  # that estimate log Z after each epoch
ROWS_AN_EPOCH = 20_000  # at least, for that reason
DRAWING = 1000  # temperatures on the way of a draw
MIXED = 10  # steps of Gibbs sampling after chains were drawn by their weights, which makes some of them twins


class Pair(NamedTuple):
    """The weights W (A, B), and the biases a (A) and b (B) of the two sides."""

    W: Tensor
    a: Tensor
    b: Tensor

    def turned(self) -> Pair:
        """The same with its sides exchanged."""
        return Pair(self.W.t(), self.b, self.a)

    def log_sum(self, x: Tensor) -> Tensor:
        """log of what x weighs, all y summed. Shapes: (rows, A) to (rows)."""
        return x @ self.a + F.softplus(torch.addmm(self.b, x, self.W)).sum(dim=1)

    def log_weight(self, x: Tensor, y: Tensor) -> Tensor:
        """log of what x and y weigh; of probabilities instead of states, its mean. Shapes: (rows, A), (rows, B)."""
        return x @ self.a + y @ self.b + (x @ self.W * y).sum(dim=1)

    def given(self, x: Tensor) -> Tensor:
        """The probabilities of y given x. Shapes: (rows, A) to (rows, B)."""
        return torch.sigmoid(torch.addmm(self.b, x, self.W))

    def detach(self) -> Pair:
        """The same numbers, through which no gradient goes."""
        return Pair(*(each.detach() for each in self))

    def double(self) -> Pair:
        """The same numbers, in float64."""
        return Pair(*(each.double() for each in self))


class Constant(NamedTuple):
    """log Z, and whether it was estimated rather than summed, with which standard error."""

    value: float
    standard_error: float = 0.0
    estimated: bool = False

    @property
    def most(self) -> float:
        """The upper end of its 95 % interval, by which models are chosen: a lucky estimate is not to be."""
        return self.value + 1.96 * self.standard_error


class PairNetwork(nn.Module):
    r"""A pair that learns: the same distribution in terms of units less their means m and n.

    .. math:: \log p(x, y) = a \cdot x + b \cdot y + (x - m)^T W (y - n) + const

    Centred so (Montavon and Mueller, 2012), its gradients are better conditioned.

    Arguments:
        mean: m, the means of x.
        others: B, the number of units y, whose n is 1/2.
        begin: what to begin with; independent units, but for small random weights, unless told.
        seed: the seed of those.
    """

    m: Tensor
    n: Tensor

    def __init__(self, mean: Tensor, others: int, *, begin: Pair | None = None, seed: int = 0) -> None:
        super().__init__()
        if begin is None:
            generator = torch.Generator().manual_seed(seed)
            W = 0.01 * torch.randn(len(mean), others, generator=generator)
            begin = Pair(W, mean.logit() - W.sum(dim=1) / 2, -mean @ W)
        self.register_buffer("m", mean.clone())
        self.register_buffer("n", torch.full((others,), 0.5, dtype=mean.dtype))
        self.W = nn.Parameter(begin.W.clone())
        self.b_x = nn.Parameter(begin.a + begin.W @ self.n)
        self.b_y = nn.Parameter(begin.b + self.m @ begin.W)

    def pair(self) -> Pair:
        """As the equations have it; gradients go through."""
        return Pair(self.W, self.b_x - self.W @ self.n, self.b_y - self.m @ self.W)

    def fixed(self) -> Pair:
        """As it is now, whatever becomes of the network."""
        return Pair(*(each.detach().clone() for each in self.pair()))


class Chains:
    """Where a pair's own draws are had: steps of Gibbs sampling from rows, or from where they ended last time.

    Arguments:
        steps: how many.
        persistent: whether chains go on where they ended, or begin at the rows.
        growth: in how many updates they become so many, beginning with one.
    """

    def __init__(self, steps: int, persistent: bool, growth: int = 0) -> None:
        self.steps, self.persistent, self.growth = steps, persistent, growth
        self.update = 0
        self.last: Tensor | None = None

    def __call__(self, pair: Pair, x: Tensor, generator: torch.Generator) -> Tensor:
        """Draws, as many as rows at the most. Shapes: (rows, A) to (rows, A)."""
        begin = x if self.last is None or not self.persistent else self.last
        steps = min(self.steps, 1 + self.steps * self.update // self.growth) if self.growth else self.steps
        self.last, self.update = gibbs(pair.detach(), begin, steps, generator), self.update + 1
        return self.last


def many(x: Tensor) -> Tensor:
    """Rows, enough for an epoch."""
    return repeated(x, ROWS_AN_EPOCH)


def states(units: int) -> Tensor:
    """All states of so many units. Shape: (2^units, units)."""
    return (torch.arange(2**units).unsqueeze(1) >> torch.arange(units)) & 1


def flip(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Zeros and ones with these probabilities of a one."""
    return (torch.rand(probabilities.shape, generator=generator) < probabilities).to(probabilities.dtype)


def gibbs(pair: Pair, x: Tensor, steps: int, generator: torch.Generator) -> Tensor:
    """x after so many turns of drawing y given x and x given y."""
    back = pair.turned()
    for _ in range(steps):
        x = flip(back.given(flip(pair.given(x), generator)), generator)
    return x


def contrast(pair: Pair, x: Tensor, model: Tensor) -> Tensor:
    """A loss whose gradient is that of the NLL of x, if the others are rows of the model. Shapes: (rows, A), twice."""
    return pair.log_sum(model).mean() - pair.log_sum(x).mean()


def log_partition(pair: Pair, base: Tensor, *, chains: int, temperatures: int, seed: int = 0) -> Constant:
    """log Z: summed where a side is small, otherwise estimated.

    Arguments:
        pair: what it is of.
        base: the logits of x in the independent units that annealing begins with, (A).
        chains: how many chains.
        temperatures: how many distributions there are on the way.
        seed: the seed of the chains.

    Example:
        >>> coins = Pair(torch.zeros(40, 30), torch.zeros(40), torch.zeros(30))
        >>> constant = log_partition(coins, torch.zeros(40), chains=2, temperatures=3)
        >>> abs(constant.value - 70 * math.log(2)) < 1e-4, constant.estimated
        (True, True)
    """
    if min(pair.W.shape) <= EXACT:
        return Constant(float(_smaller(pair)[1].logsumexp(dim=0)))
    _, weights = anneal(pair, base, chains, temperatures, torch.Generator().manual_seed(seed))
    value = float(weights.logsumexp(dim=0)) - math.log(chains)
    spread = float((weights - value).exp().std()) if chains > 1 else math.nan
    return Constant(value, spread / math.sqrt(chains), estimated=True)


def anneal(
    pair: Pair, base: Tensor, chains: int, temperatures: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Chains from independent units to the pair. Their x, (chains, A), and log weights, (chains)."""
    pair, base = pair.detach(), base.to(pair.W.dtype)
    x = flip(torch.sigmoid(base).expand(chains, -1), generator)
    start = F.softplus(base.double()).sum() + len(pair.b) * math.log(2)
    weights, before, back = start.expand(chains).clone(), 0.0, pair.W.t().contiguous()
    for beta in _schedule(temperatures):
        y = torch.addmm(pair.b, x, pair.W)
        gain = F.softplus(beta * y).sum(dim=1, dtype=torch.float64) - F.softplus(before * y).sum(1, dtype=torch.float64)
        weights += gain + (beta - before) * (x @ (pair.a - base))
        before = beta
        if beta < 1:
            y = flip(torch.sigmoid(y.mul_(beta)), generator)
            x = flip(torch.sigmoid(torch.addmm(torch.lerp(base, pair.a, beta), y, back, alpha=beta)), generator)
    return x, weights


def _schedule(temperatures: int) -> list[float]:
    """beta, ever slower up to 1."""
    parts = [
        torch.linspace(begin, end, max(round(share * temperatures), 1) + 1, dtype=torch.float64)[1:]
        for begin, end, share in PARTS
    ]
    return [float(beta) for beta in torch.cat(parts)]


def draw(pair: Pair, base: Tensor, n: int, *, temperatures: int, seed: int = 0, chains: int = 1000) -> Tensor:
    """x of n draws: exact where a side is small, otherwise by annealed chains. Shape: (n, A)."""
    generator = torch.Generator().manual_seed(seed)
    if min(pair.W.shape) <= EXACT:
        every, weights = _smaller(pair)
        some = every[torch.multinomial(weights.softmax(dim=0), n, replacement=True, generator=generator)]
        return some if len(pair.a) <= len(pair.b) else flip(pair.turned().given(some), generator)
    drawn = []
    for count in [chains] * (n // chains) + [n % chains] * (n % chains > 0):
        x, weights = anneal(pair, base, count, temperatures, generator)
        x = x[torch.multinomial(weights.softmax(dim=0), count, replacement=True, generator=generator)]
        drawn.append(gibbs(pair, x, MIXED, generator))
    return torch.cat(drawn)


def _smaller(pair: Pair) -> tuple[Tensor, Tensor]:
    """All states of the smaller side, and the logarithm of what each weighs, in float64."""
    side = pair if len(pair.a) <= len(pair.b) else pair.turned()
    every, double = states(len(side.a)), side.detach().double()
    weights = [double.log_sum(some.double()) for some in every.split(STATES_AT_A_TIME)]
    return every.to(pair.W.dtype), torch.cat(weights)
