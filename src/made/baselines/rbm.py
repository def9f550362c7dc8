r"""RBM, the restricted Boltzmann machine (Smolensky, 1986): columns and hidden units, each connected to all others.

.. math::
    p(x) = \frac{1}{Z} \sum_h \exp(a \cdot x + b \cdot h + x^T W h)
         = \frac{1}{Z} \exp\Big(a \cdot x + \sum_k \log(1 + e^{b_k + (x^T W)_k})\Big)

The gradient of log p is a difference of means over rows and over the model's own draws. These come from a few steps of
Gibbs sampling, beginning at the rows (contrastive divergence, CD-k; Hinton, 2002) or where they ended last time
(persistent CD; Tieleman, 2008). log Z is summed or estimated by :mod:`made.baselines.pair`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from made.baselines.learning import Report, learn, shares, updates_of
from made.baselines.pair import CHECK, DRAWING, Chains, PairNetwork, contrast, draw, log_partition, many
from made.baselines.protocol import Kind, LogProb
from made.baselines.rows import asked, learned, whole
from made.training.config import TrainingConfig

__all__ = ["RBM"]


class RBM:
    """A restricted Boltzmann machine: an estimate of the likelihood, or exact where one side has few units.

    Arguments:
        hidden_size: K, the number of hidden units.
        steps: k, of Gibbs sampling in an update.
        growing: whether k begins as 1, and becomes so many in the course of ``max_epochs`` (as in the CD-25 of
            Salakhutdinov and Murray, 2008): chains mix well as long as weights are small.
        persistent: whether chains go on where they ended, or begin at the rows.
        chains: how many chains estimate log Z.
        temperatures: how many distributions they come through.
        seed: the seed of everything that is random.
        report: called after each epoch with its number, the mean log-likelihood of validation rows and the seconds.
        training: what is to differ in :data:`TRAINING`, of :class:`made.training.config.TrainingConfig`.

    Attributes:
        pair_: W (D, K), a (D) and b (K).
        constant_: log Z and its standard error.
        size: the number of parameters.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = RBM(4, max_epochs=2, learning_rate=0.05).fit(rows[:150], rows[150:])
        >>> -model.log_prob(rows).mean() < 1.2  # three equal coins, log 2 = 0.69
        True
        >>> model.log_prob(rows).kind, model.size
        ('exact', 19)
    """

    TRAINING: dict[str, Any] = {  # noqa: RUF012
        "learning_rate": 3e-3,
        "schedule": "linear",
        "average": 0.99,
        "batch_size": 100,
        "max_epochs": 20,
        "patience": 10,
    }

    def __init__(
        self,
        hidden_size: int = 500,
        *,
        steps: int = 5,
        growing: bool = False,
        persistent: bool = True,
        chains: int = 100,
        temperatures: int = 2000,
        seed: int = 0,
        report: Report | None = None,
        **training: Any,
    ) -> None:
        self.hidden_size, self.steps, self.growing, self.persistent = hidden_size, steps, growing, persistent
        self.chains, self.temperatures, self.seed, self.report = chains, temperatures, seed, report
        self.training = self.TRAINING | training

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Learn by contrastive divergence, and keep the epoch that is best on other rows."""
        x, y = (torch.from_numpy(each).float() for each in learned(train, valid))
        self.columns_, self.base_ = x.shape[1], shares(x).logit()
        network, rows = PairNetwork(shares(x), self.hidden_size, seed=self.seed), many(x)
        config = TrainingConfig(**self.training, max_seconds=seconds, seed=self.seed)
        chains = Chains(self.steps, self.persistent, growth=updates_of(config, rows) if self.growing else 0)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            pair = network.pair()
            return contrast(pair, batch, chains(pair, batch, generator))

        def score() -> float:
            pair = network.fixed()
            return float(pair.log_sum(y).mean()) - log_partition(pair, self.base_, **CHECK, seed=self.seed).most

        self.best_epoch_, self.epochs = learn(network, rows, loss, score, config, self.report)
        self.pair_ = network.fixed()
        self.size = sum(weight.numel() for weight in self.pair_)
        self.constant_ = log_partition(
            self.pair_, self.base_, chains=self.chains, temperatures=self.temperatures, seed=self.seed + 1
        )
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row: exact but for log Z, which is the same in all of them."""
        x = torch.from_numpy(asked(self, rows)).double()
        values = self.pair_.double().log_sum(x) - self.constant_.value
        kind: Kind = "estimate" if self.constant_.estimated else "exact"
        return LogProb(values.numpy(), kind, self.constant_.standard_error)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows: exact where one side has few units, otherwise by chains that are drawn by their weights."""
        x = draw(self.pair_, self.base_, whole(self, n), temperatures=DRAWING, seed=seed)
        return x.numpy().astype(np.uint8)
