r"""DBM, the deep Boltzmann machine (Salakhutdinov and Hinton, AISTATS 2009), of two hidden layers.

.. math:: p(x, h^1, h^2) = \frac{1}{Z} \exp(a \cdot x + b^1 \cdot h^1 + b^2 \cdot h^2 + x^T W^1 h^1 + (h^1)^T W^2 h^2)

The first hidden layer is connected to all the rest, and the rest not among itself: :math:`(x, h^2)` and :math:`h^1` are
a pair (:mod:`made.baselines.pair`), which gives chains of the model and log Z. What a row says of its hidden units is
no longer known in closed form. A factorial q comes as close as it can (mean field),

.. math::
    \mu^1 = \sigma(b^1 + (W^1)^T x + W^2 \mu^2), \qquad \mu^2 = \sigma(b^2 + (W^2)^T \mu^1), \qquad
    \log p(x) \ge E_q [\log p^*(x, h^1, h^2)] + H(q) - \log Z,

and is what learning goes up against persistent chains. First an RBM of columns and :math:`h^1` learns alone. Then
:math:`h^2` joins it, with weights close to zero: the bound begins as the likelihood of the RBM but for 0.01 nats, and
if it gets no better than that, it stays there.
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

from made.baselines.learning import Report, learn, shares
from made.baselines.pair import (
    CHECK,
    DRAWING,
    Chains,
    Pair,
    PairNetwork,
    draw,
    flip,
    log_partition,
    many,
)
from made.baselines.protocol import LogProb
from made.baselines.rbm import RBM
from made.baselines.rows import asked, learned, whole
from made.training.config import TrainingConfig

__all__ = ["DBM", "bound", "mean_field"]

FIELDS = 5  # rounds of mean field in learning; they change little after that
LONGER = 50  # rounds for what is reported
ROWS_AT_A_TIME = 2000
SMALL = 0.5  # the norm of the weights that the second layer begins with: the bound loses at most 0.01 nats by them


class DBM:
    """A deep Boltzmann machine of two hidden layers: a lower bound of the likelihood.

    Arguments:
        hidden_sizes: the units of the two layers.
        steps: of Gibbs sampling in an update.
        pretraining: of all epochs and of all time, the share of the RBM that it begins with.
        chains: how many chains estimate log Z.
        temperatures: how many distributions they come through.
        seed: the seed of everything that is random.
        report: called after each epoch, of the RBM and of both layers, with its number, what is known of the likelihood
            of validation rows, and the seconds.
        together: what is to differ in training once both layers learn: a lower rate, if the RBM has learned for long.
        training: what is to differ in :data:`TRAINING`, of :class:`made.training.config.TrainingConfig`.

    Attributes:
        pair_: of (x, h^2), (D + K2), and h^1.
        constant_: its log Z.
        size: the number of parameters.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = DBM((4, 3), max_epochs=4, learning_rate=0.01).fit(rows[:150], rows[150:])
        >>> model.log_prob(rows).kind, -model.log_prob(rows).mean() < 1.3  # three equal coins, log 2 = 0.69
        ('bound', True)
    """

    TRAINING: ClassVar[dict[str, Any]] = RBM.TRAINING | {"max_epochs": 25}

    def __init__(
        self,
        hidden_sizes: tuple[int, int] = (500, 500),
        *,
        steps: int = 5,
        pretraining: float = 0.5,
        chains: int = 100,
        temperatures: int = 2000,
        seed: int = 0,
        report: Report | None = None,
        together: Mapping[str, Any] | None = None,
        **training: Any,
    ) -> None:
        if not 0 < pretraining < 1:
            raise ValueError(f"'pretraining' should be a share above 0 and below 1, not {pretraining}.")
        if len(hidden_sizes) != 2 or any(size < 1 for size in hidden_sizes):
            raise ValueError(f"'hidden_sizes' should be two numbers of units, not {hidden_sizes!r}.")
        self.hidden_sizes, self.steps, self.pretraining = hidden_sizes, steps, pretraining
        self.chains, self.temperatures = chains, temperatures
        self.seed, self.report = seed, report
        self.together, self.training = dict(together or {}), self.TRAINING | training

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Learn an RBM, then all of it, and keep the epoch that is best on other rows."""
        (first, second), epochs = self.hidden_sizes, max(round(self.pretraining * self.training["max_epochs"]), 1)
        below = self.training | {"max_epochs": epochs}
        left = {
            "max_epochs": max(self.training["max_epochs"] - epochs, 1),
            "max_seconds": None if seconds is None else (1 - self.pretraining) * seconds,
        }
        config = TrainingConfig(**(self.training | left | self.together), seed=self.seed)
        lower = RBM(first, steps=self.steps, chains=2, temperatures=2, seed=self.seed, report=self.report, **below)
        lower.fit(train, valid, seconds=None if seconds is None else self.pretraining * seconds)
        x, y = (torch.from_numpy(each).float() for each in learned(train, valid))
        self.columns_ = x.shape[1]
        mean = torch.cat([shares(x), torch.full((second,), 0.5)])
        self.base_ = mean.logit()
        network = PairNetwork(mean, first, begin=_joined(lower.pair_, second, self.seed + 1))
        chains = Chains(self.steps, persistent=True)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            pair = network.pair()
            first, second = mean_field(pair.detach(), batch, FIELDS)
            own = chains(pair, torch.cat([batch, flip(second, generator)], dim=1), generator)
            return pair.log_sum(own).mean() - pair.log_weight(torch.cat([batch, second], dim=1), first).mean()

        def score() -> float:
            pair = network.fixed()
            return float(bound(pair, y, FIELDS).mean()) - log_partition(pair, self.base_, **CHECK).most

        start, before = network.fixed(), score()
        self.best_epoch_, self.epochs = learn(network, many(x), loss, score, config, self.report)
        self.pair_, self.epochs = network.fixed() if score() > before else start, lower.epochs + self.epochs
        self.size = sum(weight.numel() for weight in self.pair_)
        self.constant_ = log_partition(
            self.pair_, self.base_, chains=self.chains, temperatures=self.temperatures, seed=self.seed + 1
        )
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """A lower bound of log p of each row: exact but for log Z, which is the same in all of them."""
        x = torch.from_numpy(asked(self, rows)).double()
        values = bound(self.pair_.double(), x, LONGER) - self.constant_.value
        return LogProb(values.numpy(), "bound", self.constant_.standard_error)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, drawn with their h^2, which is left out."""
        x = draw(self.pair_, self.base_, whole(self, n), temperatures=DRAWING, seed=seed)
        return x[:, : self.columns_].numpy().astype(np.uint8)


def _joined(rbm: Pair, others: int, seed: int) -> Pair:
    """An RBM, and so many units more on the side of its columns, with random weights that hardly change its bound.

    The sides share about half of the sum of squared weights times the variances of both ends, which q leaves out.
    """
    generator = torch.Generator().manual_seed(seed)
    W = torch.randn(others, len(rbm.b), generator=generator) / math.sqrt(others * len(rbm.b)) * SMALL
    return Pair(torch.cat([rbm.W, W]), torch.cat([rbm.a, torch.zeros(others)]), rbm.b - W.sum(dim=0) / 2)


def mean_field(pair: Pair, x: Tensor, rounds: int) -> tuple[Tensor, Tensor]:
    """The probabilities of h^1 and h^2 by which a factorial q is closest. Shapes: (rows, D) to (rows, K1), (rows, K2).

    They are found in turn, given the last of each other, so that every round brings q closer.
    """
    columns = x.shape[1]
    from_rows, W, b = torch.addmm(pair.b, x, pair.W[:columns]), pair.W[columns:], pair.a[columns:]
    second = torch.full((len(x), len(W)), 0.5, dtype=x.dtype)
    first = torch.sigmoid(from_rows + second @ W)
    for _ in range(rounds):
        second = torch.sigmoid(torch.addmm(b, first, W.t()))
        first = torch.sigmoid(from_rows + second @ W)
    return first, second


def bound(pair: Pair, x: Tensor, rounds: int) -> Tensor:
    """The bound but for log Z. Shapes: (rows, D) to (rows)."""
    parts = []
    for some in x.split(ROWS_AT_A_TIME):
        first, second = mean_field(pair, some, rounds)
        entropy = sum(F.binary_cross_entropy(q, q, reduction="none").sum(dim=1) for q in (first, second))
        parts.append(pair.log_weight(torch.cat([some, second], dim=1), first) + entropy)
    return torch.cat(parts)
