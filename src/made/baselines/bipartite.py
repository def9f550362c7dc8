r"""Bipartite Boltzmann machines: two sides x and y of binary units, each unit connected to all of the other side.

.. math::
    p(x, y) = \frac{1}{Z} \exp(a \cdot x + b \cdot y + x^T W y), \qquad
    \log \sum_y Z \, p(x, y) = a \cdot x + \sum_k \log(1 + e^{b_k + (x^T W)_k})

Each side is independent given the other, so that both can be sampled in turn (Gibbs sampling) and one of them summed
out. The partition function Z is computed or estimated by :mod:`made.baselines.annealing`.

An RBM is bipartite, of columns and hidden units. So are the two upper layers of a DBN, and a whole DBM of two hidden
layers: its first hidden layer is connected to all the rest, and the rest has no connections within itself.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.optimization import repeat_rows

__all__ = [
    "Bipartite",
    "CenteredBipartite",
    "GibbsChains",
    "contrastive_loss",
    "enumerate_states",
    "epoch_rows",
    "gibbs",
    "sample_bernoulli",
]

EPOCH_ROWS = 20_000  # at least, because log Z is estimated after each epoch


class Bipartite(NamedTuple):
    """The weights W (A, B), and the biases a (A) and b (B) of the two sides."""

    W: Tensor
    a: Tensor
    b: Tensor

    def transposed(self) -> Bipartite:
        """The same distribution with its sides exchanged."""
        return Bipartite(self.W.t(), self.b, self.a)

    def neg_free_energy(self, x: Tensor) -> Tensor:
        """log of the unnormalised probability of x, y summed out. Shapes: (rows, A) to (rows)."""
        return x @ self.a + F.softplus(torch.addmm(self.b, x, self.W)).sum(dim=1)

    def neg_energy(self, x: Tensor, y: Tensor) -> Tensor:
        """log of the unnormalised p(x, y), or its mean under independent units of these probabilities.

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
    r"""A trainable :class:`Bipartite`, parameterised by units minus their means m and n.

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
            generator = torch.Generator().manual_seed(seed)
            W = 0.01 * torch.randn(len(mean), others, generator=generator)
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

    def __init__(self, steps: int, persistent: bool, growth: int = 0) -> None:
        self.steps, self.persistent, self.growth = steps, persistent, growth
        self.update = 0
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
