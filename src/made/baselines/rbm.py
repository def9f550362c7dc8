r"""RBM, the restricted Boltzmann machine (Smolensky, 1986): a bipartite machine of columns x and hidden units h.

.. math::
    p(x) = \frac{1}{Z} \sum_h \exp(a \cdot x + b \cdot h + x^T W h)
         = \frac{1}{Z} \exp\Big(a \cdot x + \sum_k \log(1 + e^{b_k + (x^T W)_k})\Big)

The gradient of log p is a difference of means over rows and over samples of the model. These come from a few Gibbs
steps, starting at the rows (contrastive divergence, CD-k; Hinton, 2002) or at the previous samples (persistent CD;
Tieleman, 2008).
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from made.baselines.annealing import VALIDATION_AIS, LogPartition, log_partition, sample_visible
from made.baselines.binary_rows import check_count, check_rows, check_train_valid
from made.baselines.bipartite import Bipartite, CenteredBipartite, GibbsChains, contrastive_loss, epoch_rows
from made.baselines.optimization import GradientBaseline, column_means
from made.baselines.protocol import LikelihoodKind, LogProb

__all__ = ["RBM", "BoltzmannBaseline"]


class BoltzmannBaseline(GradientBaseline):
    """What RBM, DBN and DBM have in common: a bipartite machine, whose log Z is known or estimated.

    Arguments:
        steps: k, the number of Gibbs steps in an update.
        chains: number of annealed chains that estimate log Z.
        temperatures: number of their intermediate distributions.
        others: seed, report and training of :class:`made.baselines.optimization.GradientBaseline`.

    Attributes:
        machine_: the bipartite machine.
        base_: the logits of the independent units that annealing starts from.
        log_partition_: log Z of the machine.
    """

    TRAINING: ClassVar[dict[str, Any]] = {
        "learning_rate": 3e-3,
        "schedule": "linear",
        "average": 0.99,
        "batch_size": 100,
        "max_epochs": 20,
        "patience": 10,
    }

    machine_: Bipartite
    base_: Tensor
    log_partition_: LogPartition

    def __init__(self, *, steps: int = 5, chains: int = 100, temperatures: int = 2000, **others: Any) -> None:
        super().__init__(**others)
        self.steps, self.chains, self.temperatures = steps, chains, temperatures

    def estimate_partition(self) -> None:
        """Set ``size``, and ``log_partition_`` with a seed that training did not use."""
        self.size = sum(weight.numel() for weight in self.machine_)
        how = {"chains": self.chains, "temperatures": self.temperatures, "seed": self.seed + 1}
        self.log_partition_ = log_partition(self.machine_, self.base_, **how)


class RBM(BoltzmannBaseline):
    """A restricted Boltzmann machine: an estimated likelihood, exact where one side has few units.

    Arguments:
        hidden_size: K, the number of hidden units.
        growing: whether the Gibbs steps grow from 1 to ``steps`` over ``max_epochs`` (as in the CD-25 of Salakhutdinov
            and Murray, 2008): chains mix well as long as weights are small.
        persistent: whether chains continue where they ended, or start at the rows.
        others: the arguments of :class:`BoltzmannBaseline`.

    Attributes:
        machine_: W (D, K), a (D) and b (K).

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = RBM(4, max_epochs=2, learning_rate=0.05).fit(rows[:150], rows[150:])
        >>> -model.log_prob(rows).mean() < 1.2  # three equal coins, log 2 = 0.69
        True
        >>> model.log_prob(rows).kind, model.size
        ('exact', 19)
    """

    def __init__(
        self, hidden_size: int = 500, *, growing: bool = False, persistent: bool = True, **others: Any
    ) -> None:
        super().__init__(**others)
        self.hidden_size, self.growing, self.persistent = hidden_size, growing, persistent

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train by contrastive divergence, and keep the epoch that is best on the validation rows."""
        x, y = (torch.from_numpy(each).float() for each in check_train_valid(train, valid))
        self.columns_, self.base_ = x.shape[1], column_means(x).logit()
        network, rows = CenteredBipartite(column_means(x), self.hidden_size, seed=self.seed), epoch_rows(x)
        config = self.config(seconds)
        chains = GibbsChains(self.steps, self.persistent, config.count_updates(len(rows)) if self.growing else 0)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            model = network.bipartite()
            return contrastive_loss(model, batch, chains(model, batch, generator))

        def score() -> float:
            model = network.snapshot()
            log_z = log_partition(model, self.base_, **VALIDATION_AIS, seed=self.seed)
            return float(model.neg_free_energy(y).mean()) - log_z.upper

        self.optimize(network, rows, loss, score, config)
        self.machine_ = network.snapshot()
        self.estimate_partition()
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row: exact up to log Z, which all rows share."""
        values = self.machine_.double().neg_free_energy(torch.from_numpy(check_rows(self, rows)).double())
        log_z = self.log_partition_
        kind: LikelihoodKind = "estimate" if log_z.estimated else "exact"
        return LogProb((values - log_z.value).numpy(), kind, log_z.standard_error)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows: exact where one side has few units, otherwise by annealed chains. Shape: (n, D)."""
        x = sample_visible(self.machine_, self.base_, check_count(self, n), seed=seed)
        return x.numpy().astype(np.uint8)
