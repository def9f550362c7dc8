r"""Boltzmann machines: RBM (Smolensky, 1986), DBN (Hinton et al., 2006) and DBM (Salakhutdinov and Hinton, 2009).

**RBM**, the restricted Boltzmann machine, is a bipartite machine of columns x and hidden units h:

.. math::
    p(x) = \frac{1}{Z} \sum_h \exp(a \cdot x + b \cdot h + x^T W h)
         = \frac{1}{Z} \exp\Big(a \cdot x + \sum_k \log(1 + e^{b_k + (x^T W)_k})\Big)

The gradient of log p is a difference of means over rows and over samples of the model. These come from a few Gibbs
steps, starting at the rows (contrastive divergence, CD-k; Hinton, 2002) or at the previous samples (persistent CD;
Tieleman, 2008).

**DBN**, the deep belief network, has two hidden layers, trained greedily:

.. math:: p(x, h^1, h^2) = p(x \mid h^1) \, p(h^1, h^2), \qquad p(x_d = 1 \mid h^1) = \sigma(a_d + W_d h^1)

The upper two layers are an RBM, the lowest is directed. First an RBM of columns and :math:`h^1` is trained, then
another one of :math:`h^1` and :math:`h^2` on samples of the first one's posterior :math:`q(h^1 \mid x)`. The likelihood
is estimated by importance sampling from q, or bounded from below by the mean of the log weights:

.. math::
    \log p(x) = \log E_q w - \log Z \ge E_q \log w - \log Z, \qquad
    w = p(x \mid h^1) \, p^*(h^1) \,/\, q(h^1 \mid x).

If :math:`h^2` has as many units as there are columns, the second RBM starts as the transpose of the first. The bound is
then the likelihood of the first RBM, and training only improves it (up to sampling errors).

**DBM**, the deep Boltzmann machine, has two hidden layers, too:

.. math:: p(x, h^1, h^2) = \frac{1}{Z} \exp(a \cdot x + b^1 \cdot h^1 + b^2 \cdot h^2 + x^T W^1 h^1 + (h^1)^T W^2 h^2)

The first hidden layer is connected to all the rest, and the rest not within itself: :math:`(x, h^2)` and :math:`h^1`
are a bipartite machine, which gives Gibbs chains and log Z. The posterior of the hidden units has no closed form; it is
approximated by a factorial q (mean field),

.. math::
    \mu^1 = \sigma(b^1 + (W^1)^T x + W^2 \mu^2), \qquad \mu^2 = \sigma(b^2 + (W^2)^T \mu^1), \qquad
    \log p(x) \ge E_q [\log p^*(x, h^1, h^2)] + H(q) - \log Z.

Training maximizes this bound with persistent chains. First an RBM of columns and :math:`h^1` is trained alone. Then
:math:`h^2` is added with weights close to zero, so that the bound starts within 0.01 nats of the RBM's likelihood; if
training does not improve it, these initial weights are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional as F

from made.baselines.bipartite import (
    VALIDATION_AIS,
    Bipartite,
    CenteredBipartite,
    GibbsChains,
    LogPartition,
    contrastive_loss,
    epoch_rows,
    log_partition,
    sample_bernoulli,
    sample_visible,
)
from made.baselines.nade import row_log_prob
from made.baselines.optimization import GradientBaseline, Loss, column_means, floats
from made.baselines.protocol import Bits, LogProb
from made.training.config import TrainingConfig

Options = Mapping[str, Any] | None
Score = Callable[[Bipartite], Tensor]

ROWS_AT_A_TIME = 1000
TRAINING_ROUNDS = 5  # of mean field; later ones change little
REPORTED_ROUNDS = 50
INITIAL_NORM = 0.5  # of the second layer's weights in a DBM: costs the bound at most 0.01 nats


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
        parts_: of a DBN or DBM, the validation NLL of the RBM that it started as, and the bound of the whole.
    """

    TRAINING: ClassVar[dict[str, Any]] = {"learning_rate": 3e-3, "schedule": "linear", "average": 0.99}
    TRAINING |= {"batch_size": 100, "max_epochs": 20, "patience": 10}

    machine_: Bipartite
    base_: Tensor
    log_partition_: LogPartition
    parts_: dict[str, float]

    def __init__(self, *, steps: int = 5, chains: int = 100, temperatures: int = 2000, **others: Any) -> None:
        super().__init__(**others)
        self.steps, self.chains, self.temperatures = steps, chains, temperatures

    def pretrain(self, units: int, train: Bits, valid: Bits, seconds: float | None, **training: Any) -> RBM:
        """The RBM that a deeper machine starts from."""
        how = self.training | training | {"chains": 2, "temperatures": 2, "seed": self.seed, "report": self.report}
        return RBM(units, steps=self.steps, **how).fit(train, valid, seconds=seconds)

    def learn(
        self, network: CenteredBipartite, rows: Tensor, loss: Loss, log_p: Score, config: TrainingConfig, begun: bool
    ) -> None:
        """Train a machine, and set ``machine_``, ``size`` and ``log_partition_``.

        ``log_p`` gives log p of the validation rows plus log Z; epochs are selected by the upper end of the interval of
        log Z. If it has ``begun`` as a trained machine, its weights are kept unless training improves them.
        """

        def score() -> float:
            model = network.snapshot()
            return float(log_p(model).mean()) - self.log_z(model, **VALIDATION_AIS, seed=self.seed).upper

        start, before = (network.snapshot(), score()) if begun else (None, 0.0)
        self.optimize(network, rows, loss, score, config)
        self.machine_ = network.snapshot() if start is None or score() > before else start
        self.size = sum(weight.numel() for weight in self.machine_)
        # With a seed that training did not use.
        how = {"chains": self.chains, "temperatures": self.temperatures, "seed": self.seed + 1}
        self.log_partition_ = self.log_z(self.machine_, **how)
        if start is not None:
            known = {"rbm": (start, self.log_z(start, **how)), "bound": (self.machine_, self.log_partition_)}
            self.parts_ = {name: log_z.value - float(log_p(model).mean()) for name, (model, log_z) in known.items()}

    def log_z(self, model: Bipartite, **how: int) -> LogPartition:
        """log Z of a machine, see :func:`made.baselines.bipartite.log_partition`."""
        return log_partition(model, self.base_, **how)

    def _sample(self, n: int, seed: int) -> Tensor:
        return sample_visible(self.machine_, self.base_, n, seed=seed)


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
        >>> rows = [[0, 0, 0], [1, 1, 1]] * 100  # three equal coins, log 2 = 0.69
        >>> model = RBM(4, max_epochs=3, learning_rate=0.05).fit(rows[:150], rows[150:])
        >>> answer = model.log_prob(rows)
        >>> answer.kind, -answer.mean() < 1.2, model.size
        ('exact', True, 19)
    """

    def __init__(
        self, hidden_size: int = 500, *, growing: bool = False, persistent: bool = True, **others: Any
    ) -> None:
        super().__init__(**others)
        self.hidden_size, self.growing, self.persistent = hidden_size, growing, persistent

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        x, y = floats(train, valid)
        self.base_ = column_means(x).logit()
        network, rows = CenteredBipartite(column_means(x), self.hidden_size, seed=self.seed), epoch_rows(x)
        config = self.config(seconds)
        chains = GibbsChains(self.steps, self.persistent, config.count_updates(len(rows)) if self.growing else 0)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            model = network.bipartite()
            return contrastive_loss(model, batch, chains(model, batch, generator))

        self.learn(network, rows, loss, lambda model: model.neg_free_energy(y), config, begun=False)

    def _log_prob(self, rows: Bits) -> LogProb:
        values, log_z = self.machine_.double().neg_free_energy(torch.from_numpy(rows).double()), self.log_partition_
        return LogProb((values - log_z.value).numpy(), "estimate" if log_z.estimated else "exact", log_z.standard_error)


class DBN(BoltzmannBaseline):
    """A deep belief network with two hidden layers: an estimated likelihood, and a lower bound of it.

    Arguments:
        hidden_sizes: the units of the two layers; default for the second: the number of columns.
        draws: number of samples of h^1 that are averaged for each row.
        upper: overrides of the training of the upper layers, such as a lower rate if they start as the RBM below.
        others: the arguments of :class:`BoltzmannBaseline`, for both RBMs, which share the time.

    Attributes:
        lower_: the RBM that was trained first.
        machine_: the upper two layers.

    Example:
        >>> rows = [[0, 0, 0], [1, 1, 1]] * 100  # three equal coins, log 2 = 0.69
        >>> model = DBN((4,), max_epochs=2, learning_rate=0.02).fit(rows[:150], rows[150:])
        >>> answer, bound = model.log_prob(rows), model.bound(rows)
        >>> answer.kind, -answer.mean() < 1.3, bound.kind, bound.mean() <= answer.mean()
        ('estimate', True, 'bound', True)
    """

    def __init__(
        self, hidden_sizes: tuple[int, ...] = (500,), *, draws: int = 100, upper: Options = None, **others: Any
    ) -> None:
        super().__init__(**others)
        if len(hidden_sizes) not in (1, 2) or any(size < 1 for size in hidden_sizes):
            raise ValueError(f"'hidden_sizes' should be one or two numbers of units, not {hidden_sizes!r}.")
        self.hidden_sizes, self.draws, self.upper = hidden_sizes, draws, dict(upper or {})

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        half = None if seconds is None else seconds / 2
        config = self.config(half, **self.upper)
        lower = self.lower_ = self.pretrain(self.hidden_sizes[0], train, valid, half)
        x, y = floats(train, valid)
        mean = lower.machine_.conditional(x).mean(dim=0).clamp(1e-3, 1 - 1e-3)
        self.base_ = mean.logit()
        others = self.hidden_sizes[1] if len(self.hidden_sizes) == 2 else x.shape[1]
        self.turned_ = others == x.shape[1]
        begin = lower.machine_.transposed() if self.turned_ else None
        network = CenteredBipartite(mean, others, begin=begin, seed=self.seed)
        chains = GibbsChains(self.steps)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            model, h = network.bipartite(), sample_bernoulli(lower.machine_.conditional(batch), generator)
            return contrastive_loss(model, h, chains(model, h, generator))

        def log_p(model: Bipartite) -> Tensor:
            return torch.cat([bounds[0] for _, bounds in self._log_weights(model, y, 1)])

        self.learn(network, epoch_rows(x), loss, log_p, config, begun=True)
        self.size, self.epochs = self.size + lower.size, self.epochs + lower.epochs

    def log_z(self, model: Bipartite, **how: int) -> LogPartition:
        """log Z of a machine. Units that started as columns resemble them: annealing starts from these."""
        if self.turned_:
            return log_partition(model.transposed(), self.lower_.base_, **how)
        return super().log_z(model, **how)

    def bound(self, rows: ArrayLike) -> LogProb:
        """A lower bound of log p of each row: the mean of the log importance weights."""
        return self._log_prob(self.check_rows(rows), bound=True)

    def _log_prob(self, rows: Bits, bound: bool = False) -> LogProb:
        """The log of the mean importance weight of each row, or the mean of their logs; and its standard error."""
        values, variance = [], 0.0
        for weights, bounds in self._log_weights(self.machine_, torch.from_numpy(rows).float(), self.draws):
            value = bounds.mean(dim=0) if bound else weights.logsumexp(dim=0) - math.log(self.draws)
            each = bounds if bound else (weights - value).exp()
            values.append(value - self.log_partition_.value)
            variance += float(each.var(dim=0, correction=min(1, self.draws - 1)).sum()) / self.draws
        error = math.hypot(self.log_partition_.standard_error, variance**0.5 / len(rows))
        return LogProb(torch.cat(values).numpy(), "bound" if bound else "estimate", error)

    def _log_weights(self, model: Bipartite, x: Tensor, draws: int) -> Iterator[tuple[Tensor, Tensor]]:
        """log p(x, h) + log Z - log q(h | x) of samples of q, for blocks of rows; and the same with the mean of log q.

        Shapes: (draws, rows), twice, float64. The first are importance weights, the second vary less in a bound.
        """
        generator, lower = torch.Generator().manual_seed(self.seed), self.lower_.machine_
        for some in x.split(ROWS_AT_A_TIME):
            logits, joint, log_q = torch.addmm(lower.b, some, lower.W), [], []
            q = torch.sigmoid(logits)
            for _ in range(draws):
                h = sample_bernoulli(q, generator)
                of_rows = row_log_prob(torch.addmm(lower.a, h, lower.W.t()), some)
                joint.append(of_rows + model.neg_free_energy(h))
                log_q.append(row_log_prob(logits, h))
            yield torch.stack(joint) - torch.stack(log_q), torch.stack(joint) - row_log_prob(logits, q)

    def _sample(self, n: int, seed: int) -> Tensor:
        """h^1 from the upper layers, then a row given each."""
        probabilities = self.lower_.machine_.transposed().conditional(super()._sample(n, seed))
        return sample_bernoulli(probabilities, torch.Generator().manual_seed(seed + 1))


class DBM(BoltzmannBaseline):
    """A deep Boltzmann machine with two hidden layers: a lower bound of the likelihood.

    Arguments:
        hidden_sizes: the units of the two layers.
        pretraining: the share of epochs and of time for the RBM that it starts from.
        together: overrides of the training of both layers together, such as a lower rate after a long pretraining.
        others: the arguments of :class:`BoltzmannBaseline`.

    Attributes:
        machine_: of (x, h^2), (D + K2), and h^1.

    Example:
        >>> rows = [[0, 0, 0], [1, 1, 1]] * 100  # three equal coins, log 2 = 0.69
        >>> answer = DBM((4, 3), max_epochs=4, learning_rate=0.01).fit(rows[:150], rows[150:]).log_prob(rows)
        >>> answer.kind, -answer.mean() < 1.3
        ('bound', True)
    """

    TRAINING: ClassVar[dict[str, Any]] = BoltzmannBaseline.TRAINING | {"max_epochs": 25}

    def __init__(
        self,
        hidden_sizes: tuple[int, int] = (500, 500),
        *,
        pretraining: float = 0.5,
        together: Options = None,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        if not 0 < pretraining < 1:
            raise ValueError(f"'pretraining' should be a share above 0 and below 1, not {pretraining}.")
        if len(hidden_sizes) != 2 or any(size < 1 for size in hidden_sizes):
            raise ValueError(f"'hidden_sizes' should be two numbers of units, not {hidden_sizes!r}.")
        self.hidden_sizes, self.pretraining, self.together = hidden_sizes, pretraining, dict(together or {})

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        (first, second), epochs = self.hidden_sizes, self.training["max_epochs"]
        before = max(round(self.pretraining * epochs), 1)
        early, late = (
            (None, None) if seconds is None else (self.pretraining * seconds, (1 - self.pretraining) * seconds)
        )
        config = self.config(late, **({"max_epochs": max(epochs - before, 1)} | self.together))
        lower = self.pretrain(first, train, valid, early, max_epochs=before)
        x, y = floats(train, valid)
        mean = torch.cat([column_means(x), torch.full((second,), 0.5)])
        self.base_ = mean.logit()
        network = CenteredBipartite(mean, first, begin=add_second_layer(lower.machine_, second, self.seed + 1))
        chains = GibbsChains(self.steps)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            model = network.bipartite()
            first, second = mean_field(model.detach(), batch, TRAINING_ROUNDS)
            begin = torch.cat([batch, sample_bernoulli(second, generator)], dim=1)
            free = model.neg_free_energy(chains(model, begin, generator)).mean()
            return free - model.neg_energy(torch.cat([batch, second], dim=1), first).mean()

        def log_p(model: Bipartite) -> Tensor:
            return variational_bound(model, y, TRAINING_ROUNDS)

        self.learn(network, epoch_rows(x), loss, log_p, config, begun=True)
        self.epochs += lower.epochs

    def _log_prob(self, rows: Bits) -> LogProb:
        values = variational_bound(self.machine_.double(), torch.from_numpy(rows).double(), REPORTED_ROUNDS)
        return LogProb((values - self.log_partition_.value).numpy(), "bound", self.log_partition_.standard_error)

    def _sample(self, n: int, seed: int) -> Tensor:
        return super()._sample(n, seed)[:, : self.columns_]  # without h^2


def add_second_layer(rbm: Bipartite, units: int, seed: int) -> Bipartite:
    """An RBM with additional visible units whose random weights hardly change its bound.

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
