r"""DBN, the deep belief network (Hinton, Osindero and Teh, 2006), of two hidden layers, learned greedily.

.. math:: p(x, h^1, h^2) = p(x \mid h^1) \, p(h^1, h^2), \qquad p(x_d = 1 \mid h^1) = \sigma(a_d + W_d h^1)

The upper two layers are an RBM, the lowest a directed one. First an RBM of columns and :math:`h^1` learns, then another
one of :math:`h^1` and :math:`h^2` learns what the first says of rows, :math:`q(h^1 \mid x)`. What is known of the
likelihood is the variational bound, whose mean over draws of q, and whose log Z, are estimated:

.. math:: \log p(x) \ge E_q [\log p(x \mid h^1) + \log p^*(h^1) - \log q(h^1 \mid x)] - \log Z

With as many units in :math:`h^2` as there are columns, the second RBM can begin as the first one turned over. The bound
is then the likelihood of the first, and only gets better (but for errors of sampling).
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

from made.baselines.learning import Report, learn
from made.baselines.pair import CHECK, DRAWING, Chains, Constant, PairNetwork, contrast, draw, flip, log_partition, many
from made.baselines.protocol import LogProb
from made.baselines.rbm import RBM
from made.baselines.rows import asked, learned, whole
from made.training.config import TrainingConfig

__all__ = ["DBN"]

LOWER_SHARE = 0.5  # of the time for the RBM at the bottom
ROWS_AT_A_TIME = 1000


class DBN:
    """A deep belief network of two hidden layers: a lower bound of the likelihood.

    Arguments:
        hidden_sizes: the units of the two layers; the second has as many as there are columns unless told.
        steps: of Gibbs sampling in an update.
        draws: how many draws of h^1 are averaged for a row.
        chains: how many chains estimate log Z.
        temperatures: how many distributions they come through.
        seed: the seed of everything that is random.
        report: called after each epoch, of the RBM and of the upper layers, with its number, what is known of the
            likelihood of validation rows, and the seconds.
        upper: what is to differ in the training of the upper layers; a lower rate, if they begin as the RBM below.
        training: what is to differ in the training of :class:`made.baselines.rbm.RBM`, of both.

    Attributes:
        lower_: the RBM that learned first.
        pair_: the upper two layers.
        constant_: their log Z.
        size: the number of parameters.

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
        steps: int = 5,
        draws: int = 20,
        chains: int = 100,
        temperatures: int = 2000,
        seed: int = 0,
        report: Report | None = None,
        upper: Mapping[str, Any] | None = None,
        **training: Any,
    ) -> None:
        if len(hidden_sizes) not in (1, 2) or any(size < 1 for size in hidden_sizes):
            raise ValueError(f"'hidden_sizes' should be one or two numbers of units, not {hidden_sizes!r}.")
        self.hidden_sizes, self.steps, self.draws, self.chains = hidden_sizes, steps, draws, chains
        self.temperatures, self.seed, self.report = temperatures, seed, report
        self.upper, self.training = dict(upper or {}), training

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Learn from the bottom up, each time keeping the epoch that is best on other rows."""
        config = TrainingConfig(
            **(RBM.TRAINING | self.training | self.upper),
            max_seconds=None if seconds is None else (1 - LOWER_SHARE) * seconds,
            seed=self.seed,
        )
        how = self.training | {"chains": 2, "temperatures": 2, "seed": self.seed, "report": self.report}
        lower = RBM(self.hidden_sizes[0], steps=self.steps, **how)
        lower.fit(train, valid, seconds=None if seconds is None else LOWER_SHARE * seconds)
        x, y = (torch.from_numpy(each).float() for each in learned(train, valid))
        self.lower_, self.columns_ = lower, x.shape[1]
        mean = lower.pair_.given(x).mean(dim=0).clamp(1e-3, 1 - 1e-3)
        self.base_ = mean.logit()
        others = self.hidden_sizes[-1] if len(self.hidden_sizes) == 2 else x.shape[1]
        begin = lower.pair_.turned() if others == x.shape[1] else None
        network, chains = PairNetwork(mean, others, begin=begin, seed=self.seed), Chains(self.steps, persistent=True)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            pair, h = network.pair(), flip(lower.pair_.given(batch), generator)
            return contrast(pair, h, chains(pair, h, generator))

        def constant(**how: int) -> Constant:
            if begin is None:
                return log_partition(self.pair_, self.base_, **how)
            # Units that began as columns are still like them, and independent columns a better place to come from.
            return log_partition(self.pair_.turned(), lower.base_, **how)

        def score() -> float:
            self.pair_ = network.fixed()
            return float(self._bound(y, 1)[0].mean()) - constant(**CHECK, seed=self.seed).most

        start, before = network.fixed(), score()
        self.best_epoch_, epochs = learn(network, many(x), loss, score, config, self.report)
        self.pair_, self.epochs = network.fixed() if score() > before else start, lower.epochs + epochs
        self.size = lower.size + sum(weight.numel() for weight in self.pair_)
        self.constant_ = constant(chains=self.chains, temperatures=self.temperatures, seed=self.seed + 1)
        return self

    def _bound(self, x: Tensor, draws: int) -> tuple[Tensor, Tensor]:
        """The bound but for log Z, a mean over draws, and its variance. Shapes: (rows, D) to (rows), twice, float64."""
        generator = torch.Generator().manual_seed(self.seed)
        parts: list[Tensor] = []
        for some in x.split(ROWS_AT_A_TIME):
            q, each = self.lower_.pair_.given(some), []
            entropy = F.binary_cross_entropy(q, q, reduction="none").sum(dim=1, dtype=torch.float64)
            for _ in range(draws):
                h = flip(q, generator)
                logits = torch.addmm(self.lower_.pair_.a, h, self.lower_.pair_.W.t())
                of_rows = -F.binary_cross_entropy_with_logits(logits, some, reduction="none").sum(dim=1)
                each.append((of_rows + self.pair_.log_sum(h)).double() + entropy)
            stacked = torch.stack(each)
            spread = stacked.var(dim=0) / draws if draws > 1 else torch.zeros_like(stacked[0])
            parts.append(torch.stack([stacked.mean(dim=0), spread]))
        mean, variance = torch.cat(parts, dim=1)
        return mean, variance

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """A lower bound of log p of each row."""
        mean, variance = self._bound(torch.from_numpy(asked(self, rows)).float(), self.draws)
        error = math.hypot(self.constant_.standard_error, float(variance.sum()) ** 0.5 / len(mean))
        return LogProb((mean - self.constant_.value).numpy(), "bound", error)

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows: h^1 of the upper layers, and a row of each."""
        h = draw(self.pair_, self.base_, whole(self, n), temperatures=DRAWING, seed=seed)
        x = flip(self.lower_.pair_.turned().given(h), torch.Generator().manual_seed(seed + 1))
        return x.numpy().astype(np.uint8)
