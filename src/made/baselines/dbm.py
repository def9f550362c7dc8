r"""DBM, the deep Boltzmann machine (Salakhutdinov and Hinton, AISTATS 2009), with two hidden layers.

.. math:: p(x, h^1, h^2) = \frac{1}{Z} \exp(a \cdot x + b^1 \cdot h^1 + b^2 \cdot h^2 + x^T W^1 h^1 + (h^1)^T W^2 h^2)

The first hidden layer is connected to all the rest, and the rest not within itself: :math:`(x, h^2)` and :math:`h^1`
are a bipartite machine (:mod:`made.baselines.bipartite`), which gives Gibbs chains and log Z. The posterior of the
hidden units has no closed form; it is approximated by a factorial q (mean field),

.. math::
    \mu^1 = \sigma(b^1 + (W^1)^T x + W^2 \mu^2), \qquad \mu^2 = \sigma(b^2 + (W^2)^T \mu^1), \qquad
    \log p(x) \ge E_q [\log p^*(x, h^1, h^2)] + H(q) - \log Z.

Training maximises this bound with persistent chains. First an RBM of columns and :math:`h^1` is trained alone. Then
:math:`h^2` is added with weights close to zero, so that the bound starts within 0.01 nats of the RBM's likelihood; if
training does not improve it, these initial weights are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional as F

from made.baselines.annealing import VALIDATION_AIS, log_partition, sample_visible
from made.baselines.binary_rows import check_count, check_rows, check_train_valid
from made.baselines.bipartite import Bipartite, CenteredBipartite, GibbsChains, epoch_rows, sample_bernoulli
from made.baselines.optimization import column_means
from made.baselines.protocol import LogProb
from made.baselines.rbm import RBM, BoltzmannBaseline

__all__ = ["DBM", "add_second_layer", "mean_field", "variational_bound"]

TRAINING_ROUNDS = 5  # of mean field; later ones change little
REPORTED_ROUNDS = 50
ROWS_AT_A_TIME = 2000
INITIAL_NORM = 0.5  # of the second layer's weights: costs the bound at most 0.01 nats


class DBM(BoltzmannBaseline):
    """A deep Boltzmann machine with two hidden layers: a lower bound of the likelihood.

    Arguments:
        hidden_sizes: the units of the two layers.
        pretraining: the share of epochs and of time for the RBM that it starts from.
        together: overrides of the training of both layers together, such as a lower rate after a long pretraining.
        others: the arguments of :class:`made.baselines.rbm.BoltzmannBaseline`.

    Attributes:
        machine_: of (x, h^2), (D + K2), and h^1.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = DBM((4, 3), max_epochs=4, learning_rate=0.01).fit(rows[:150], rows[150:])
        >>> model.log_prob(rows).kind, -model.log_prob(rows).mean() < 1.3  # three equal coins, log 2 = 0.69
        ('bound', True)
    """

    TRAINING: ClassVar[dict[str, Any]] = BoltzmannBaseline.TRAINING | {"max_epochs": 25}

    def __init__(
        self,
        hidden_sizes: tuple[int, int] = (500, 500),
        *,
        pretraining: float = 0.5,
        together: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        if not 0 < pretraining < 1:
            raise ValueError(f"'pretraining' should be a share above 0 and below 1, not {pretraining}.")
        if len(hidden_sizes) != 2 or any(size < 1 for size in hidden_sizes):
            raise ValueError(f"'hidden_sizes' should be two numbers of units, not {hidden_sizes!r}.")
        self.hidden_sizes, self.pretraining, self.together = hidden_sizes, pretraining, dict(together or {})

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train an RBM, then both layers, and keep the epoch that is best on the validation rows."""
        (first, second), epochs = self.hidden_sizes, max(round(self.pretraining * self.training["max_epochs"]), 1)
        remaining = {"max_epochs": max(self.training["max_epochs"] - epochs, 1)}
        config = self.config(
            None if seconds is None else (1 - self.pretraining) * seconds, **(remaining | self.together)
        )
        how = self.training | {"max_epochs": epochs, "seed": self.seed, "report": self.report}
        lower = RBM(first, steps=self.steps, chains=2, temperatures=2, **how)
        lower.fit(train, valid, seconds=None if seconds is None else self.pretraining * seconds)
        x, y = (torch.from_numpy(each).float() for each in check_train_valid(train, valid))
        self.columns_ = x.shape[1]
        mean = torch.cat([column_means(x), torch.full((second,), 0.5)])
        self.base_ = mean.logit()
        network = CenteredBipartite(mean, first, begin=add_second_layer(lower.machine_, second, self.seed + 1))
        chains = GibbsChains(self.steps, persistent=True)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            model = network.bipartite()
            first, second = mean_field(model.detach(), batch, TRAINING_ROUNDS)
            begin = torch.cat([batch, sample_bernoulli(second, generator)], dim=1)
            free = model.neg_free_energy(chains(model, begin, generator)).mean()
            return free - model.neg_energy(torch.cat([batch, second], dim=1), first).mean()

        def score() -> float:
            model = network.snapshot()
            log_z = log_partition(model, self.base_, **VALIDATION_AIS)
            return float(variational_bound(model, y, TRAINING_ROUNDS).mean()) - log_z.upper

        start, before = network.snapshot(), score()
        self.optimize(network, epoch_rows(x), loss, score, config)
        self.machine_, self.epochs = network.snapshot() if score() > before else start, lower.epochs + self.epochs
        self.estimate_partition()
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """A lower bound of log p of each row: exact up to log Z, which all rows share."""
        x = torch.from_numpy(check_rows(self, rows)).double()
        values = variational_bound(self.machine_.double(), x, REPORTED_ROUNDS) - self.log_partition_.value
        return LogProb(values.numpy(), "bound", self.log_partition_.standard_error)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, sampled with their h^2, which is dropped. Shape: (n, D)."""
        x = sample_visible(self.machine_, self.base_, check_count(self, n), seed=seed)
        return x[:, : self.columns_].numpy().astype(np.uint8)


def add_second_layer(rbm: Bipartite, units: int, seed: int) -> Bipartite:
    """An RBM with more units beside its columns, whose random weights hardly change its bound.

    The mutual information that q ignores is about half the sum of squared weights times the variances of both ends.
    """
    generator = torch.Generator().manual_seed(seed)
    W = torch.randn(units, len(rbm.b), generator=generator) / math.sqrt(units * len(rbm.b)) * INITIAL_NORM
    return Bipartite(torch.cat([rbm.W, W]), torch.cat([rbm.a, torch.zeros(units)]), rbm.b - W.sum(dim=0) / 2)


def mean_field(model: Bipartite, x: Tensor, rounds: int) -> tuple[Tensor, Tensor]:
    """The mean-field probabilities of h^1 and h^2. Shapes: (rows, D) to (rows, K1), (rows, K2).

    Coordinate ascent: every round tightens the bound.
    """
    columns = x.shape[1]
    from_rows, W, b = torch.addmm(model.b, x, model.W[:columns]), model.W[columns:], model.a[columns:]
    second = torch.full((len(x), len(W)), 0.5, dtype=x.dtype)
    first = torch.sigmoid(from_rows + second @ W)
    for _ in range(rounds):
        second = torch.sigmoid(torch.addmm(b, first, W.t()))
        first = torch.sigmoid(from_rows + second @ W)
    return first, second


def variational_bound(model: Bipartite, x: Tensor, rounds: int) -> Tensor:
    """The bound plus log Z. Shapes: (rows, D) to (rows)."""
    parts = []
    for some in x.split(ROWS_AT_A_TIME):
        first, second = mean_field(model, some, rounds)
        entropy = sum(F.binary_cross_entropy(q, q, reduction="none").sum(dim=1) for q in (first, second))
        parts.append(model.neg_energy(torch.cat([some, second], dim=1), first) + entropy)
    return torch.cat(parts)
