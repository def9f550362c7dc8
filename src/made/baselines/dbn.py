r"""DBN, the deep belief network (Hinton, Osindero and Teh, 2006), with two hidden layers, trained greedily.

.. math:: p(x, h^1, h^2) = p(x \mid h^1) \, p(h^1, h^2), \qquad p(x_d = 1 \mid h^1) = \sigma(a_d + W_d h^1)

The upper two layers are an RBM, the lowest is directed. First an RBM of columns and :math:`h^1` is trained, then
another one of :math:`h^1` and :math:`h^2` on samples of the first one's posterior :math:`q(h^1 \mid x)`. The likelihood
is bounded from below; the bound's mean over samples of q, and its log Z, are estimated:

.. math:: \log p(x) \ge E_q [\log p(x \mid h^1) + \log p^*(h^1) - \log q(h^1 \mid x)] - \log Z

If :math:`h^2` has as many units as there are columns, the second RBM starts as the transpose of the first. The bound is
then the likelihood of the first RBM, and training only improves it (up to sampling errors).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional as F

from made.baselines.annealing import VALIDATION_AIS, LogPartition, log_partition, sample_visible
from made.baselines.binary_rows import check_count, check_rows, check_train_valid
from made.baselines.bipartite import CenteredBipartite, GibbsChains, contrastive_loss, epoch_rows, sample_bernoulli
from made.baselines.protocol import LogProb
from made.baselines.rbm import RBM, BoltzmannBaseline

__all__ = ["DBN"]

LOWER_SHARE = 0.5  # of the time limit, for the RBM at the bottom
ROWS_AT_A_TIME = 1000


class DBN(BoltzmannBaseline):
    """A deep belief network with two hidden layers: a lower bound of the likelihood.

    Arguments:
        hidden_sizes: the units of the two layers; default for the second: the number of columns.
        draws: number of samples of h^1 that are averaged for each row.
        upper: overrides of the training of the upper layers, such as a lower rate if they start as the RBM below.
        others: the arguments of :class:`made.baselines.rbm.BoltzmannBaseline`, for both RBMs.

    Attributes:
        lower_: the RBM that was trained first.
        machine_: the upper two layers.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = DBN((4,), max_epochs=2, learning_rate=0.02).fit(rows[:150], rows[150:])
        >>> model.log_prob(rows).kind, -model.log_prob(rows).mean() < 1.3  # three equal coins, log 2 = 0.69
        ('bound', True)
    """

    def __init__(
        self,
        hidden_sizes: tuple[int, ...] = (500,),
        *,
        draws: int = 20,
        upper: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        if len(hidden_sizes) not in (1, 2) or any(size < 1 for size in hidden_sizes):
            raise ValueError(f"'hidden_sizes' should be one or two numbers of units, not {hidden_sizes!r}.")
        self.hidden_sizes, self.draws, self.upper = hidden_sizes, draws, dict(upper or {})

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Train from the bottom up, each time keeping the epoch that is best on the validation rows."""
        config = self.config(None if seconds is None else (1 - LOWER_SHARE) * seconds, **self.upper)
        lower = RBM(
            self.hidden_sizes[0],
            steps=self.steps,
            **(self.training | {"chains": 2, "temperatures": 2, "seed": self.seed, "report": self.report}),
        )
        lower.fit(train, valid, seconds=None if seconds is None else LOWER_SHARE * seconds)
        x, y = (torch.from_numpy(each).float() for each in check_train_valid(train, valid))
        self.lower_, self.columns_ = lower, x.shape[1]
        mean = lower.machine_.conditional(x).mean(dim=0).clamp(1e-3, 1 - 1e-3)
        self.base_ = mean.logit()
        others = self.hidden_sizes[-1] if len(self.hidden_sizes) == 2 else x.shape[1]
        begin = lower.machine_.transposed() if others == x.shape[1] else None
        network = CenteredBipartite(mean, others, begin=begin, seed=self.seed)
        chains = GibbsChains(self.steps, persistent=True)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            model, h = network.bipartite(), sample_bernoulli(lower.machine_.conditional(batch), generator)
            return contrastive_loss(model, h, chains(model, h, generator))

        def log_z(**how: int) -> LogPartition:
            if begin is None:
                return log_partition(self.machine_, self.base_, **how)
            # Units that started as columns still resemble them: independent columns are closer to the model.
            return log_partition(self.machine_.transposed(), lower.base_, **how)

        def score() -> float:
            self.machine_ = network.snapshot()
            return float(self._bound(y, 1)[0].mean()) - log_z(**VALIDATION_AIS, seed=self.seed).upper

        start, before = network.snapshot(), score()
        self.optimize(network, epoch_rows(x), loss, score, config)
        self.machine_, self.epochs = network.snapshot() if score() > before else start, lower.epochs + self.epochs
        self.size = lower.size + sum(weight.numel() for weight in self.machine_)
        self.log_partition_ = log_z(chains=self.chains, temperatures=self.temperatures, seed=self.seed + 1)
        return self

    def _bound(self, x: Tensor, draws: int) -> tuple[Tensor, Tensor]:
        """The bound plus log Z, a mean over samples, and its variance. Shapes: (rows, D) to (rows), twice, float64."""
        generator = torch.Generator().manual_seed(self.seed)
        lower, parts = self.lower_.machine_, []
        for some in x.split(ROWS_AT_A_TIME):
            q, each = lower.conditional(some), []
            entropy = F.binary_cross_entropy(q, q, reduction="none").sum(dim=1, dtype=torch.float64)
            for _ in range(draws):
                h = sample_bernoulli(q, generator)
                logits = torch.addmm(lower.a, h, lower.W.t())
                of_rows = -F.binary_cross_entropy_with_logits(logits, some, reduction="none").sum(dim=1)
                each.append((of_rows + self.machine_.neg_free_energy(h)).double() + entropy)
            stacked = torch.stack(each)
            spread = stacked.var(dim=0) / draws if draws > 1 else torch.zeros_like(stacked[0])
            parts.append(torch.stack([stacked.mean(dim=0), spread]))
        mean, variance = torch.cat(parts, dim=1)
        return mean, variance

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """A lower bound of log p of each row."""
        mean, variance = self._bound(torch.from_numpy(check_rows(self, rows)).float(), self.draws)
        error = math.hypot(self.log_partition_.standard_error, float(variance.sum()) ** 0.5 / len(mean))
        return LogProb((mean - self.log_partition_.value).numpy(), "bound", error)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows: h^1 from the upper layers, then a row given each. Shape: (n, D)."""
        h = sample_visible(self.machine_, self.base_, check_count(self, n), seed=seed)
        probabilities = self.lower_.machine_.transposed().conditional(h)
        return sample_bernoulli(probabilities, torch.Generator().manual_seed(seed + 1)).numpy().astype(np.uint8)
