r"""EoNADE: one network for all orderings, and an ensemble of them (Uria, Murray and Larochelle, ICML 2014).

A *deep and tractable density estimator*, or orderless NADE: a network that is told which columns it sees. Where
:math:`m_d` is 1 if column d is given, and o an ordering,

.. math::
    h^1 &= g(b^1 + W (x \odot m) + U m), \quad h^2 = g(b^2 + W^2 h^1), \quad
    p(x_d = 1 \mid x \odot m, m) = \sigma(c_d + V_d h) \\
    p_o(x) &= \prod_i p(x_{o_i} \mid x_{o_{<i}}), \qquad p(x) = \frac{1}{R} \sum_r p_{o_r}(x).

Training is order-agnostic: a random part of a row is given, the rest is asked for at once, and their sum is weighed up
to the whole row, so that its expectation is the mean of :math:`-\log p_o(x)` over all D! orderings,

.. math:: J = E_{o, d} \frac{D}{D - d + 1} \sum_{i \ge d} -\log p(x_{o_i} \mid x_{o_{<d}}).

An ordering takes D passes. They share the activations of the first layer, which grow by :math:`W_d x_d + U_d` from
one to the next: one hidden layer costs what NADE does, O(DK), and the second one D products more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.learning import Report, learn, one_thread, repeated, shares
from made.baselines.nade import ROWS_AT_A_TIME, by_columns
from made.baselines.protocol import LogProb
from made.baselines.rows import asked, learned, whole
from made.columns.discrete import LEAST_DEVIATION
from made.training.config import TrainingConfig

__all__ = ["EoNADE", "OrderlessNetwork", "agnostic_loss", "random_parts"]

TRAINING_PARTS = 10_000  # random parts of rows in an epoch, at least: there are so many of a row
VALIDATION_PARTS = 4000  # the same of validation rows, which do not change from epoch to epoch


class OrderlessNetwork(nn.Module):
    r"""The parameters of orderless NADE; what it says of all columns given some, and of one ordering.

    Its inputs are standardised, :math:`\frac{x - \mu}{s} \odot m` instead of :math:`x \odot m`. This is the same model,
    as W and U can take that up, :math:`W_d / s_d` and :math:`U_d - \mu_d W_d / s_d`, but one that learns faster.

    Arguments:
        columns: D.
        hidden_sizes: the units of one or two hidden layers.
        activation: g, ``"sigmoid"`` or ``"relu"``.
        dropout: the probability with which a hidden unit is left out in training.
        seed: the seed of the initial weights.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        columns: int,
        hidden_sizes: Sequence[int],
        *,
        activation: str = "sigmoid",
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if len(hidden_sizes) not in (1, 2) or any(size < 1 for size in hidden_sizes):
            raise ValueError(f"'hidden_sizes' should be one or two numbers of units, not {hidden_sizes!r}.")
        self.activation, self.dropout, self.deep = activation, dropout, len(hidden_sizes) == 2
        generator = torch.Generator().manual_seed(seed)

        first, last = hidden_sizes[0], hidden_sizes[-1]
        self.W = nn.Parameter(torch.randn(columns, first, generator=generator))
        self.U, self.V = nn.Parameter(torch.zeros(columns, first)), nn.Parameter(torch.zeros(columns, last))
        self.b, self.c = nn.Parameter(torch.zeros(first)), nn.Parameter(torch.zeros(columns))
        if self.deep:
            second = nn.init.kaiming_normal_(torch.empty(first, last), mode="fan_out", generator=generator)
            self.W2, self.b2 = nn.Parameter(second), nn.Parameter(torch.zeros(last))
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("scale", torch.ones(columns))

    def start(self, x: Tensor) -> None:
        """Begin with independent columns, and with hidden units that are neither all alike nor saturated.

        V begins at zero, c where independent columns have it, and activations with a variance of about 1. Training
        in all orderings, whose gradients are noisy, gets nowhere from the small weights that others begin with.
        """
        with torch.no_grad():
            self.mean.copy_(shares(x))
            self.scale.copy_((self.mean * (1 - self.mean)).sqrt().clamp(min=LEAST_DEVIATION))
            self.c.copy_(self.mean.logit())
            self.W.mul_((2 / x.shape[1]) ** 0.5)  # about half of the columns are given

    def forward(self, x: Tensor, given: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The logits of all columns given some of them, flags as numbers. Shapes: (rows, D), twice, to (rows, D)."""
        h = self._units(torch.addmm(torch.addmm(self.b, (x - self.mean) / self.scale * given, self.W), given, self.U))
        h = self._leave_out(h, generator)
        if self.deep:
            h = self._leave_out(self._second(h), generator)
        return torch.addmm(self.c, h, self.V.t())

    def log_prob(self, x: Tensor, ordering: Tensor) -> Tensor:
        """log p of rows in one ordering, columns as they come in it. Shapes: (rows, D), (D) to (rows), in float64."""
        x, parts = x[:, ordering], []
        weights, deeper = self._ordered(ordering), self._deeper()
        for some in x.split(2000 if self.deep else ROWS_AT_A_TIME):
            _, logits = by_columns(*weights, values=some, activation=self.activation, deeper=deeper)
            parts.append(
                -F.binary_cross_entropy_with_logits(logits, some, reduction="none").sum(1, dtype=torch.float64)
            )
        return torch.cat(parts)

    def draw(self, noise: Tensor, ordering: Tensor) -> Tensor:
        """Rows of one ordering from uniform numbers. Shapes: (rows, D), (D) to (rows, D)."""
        x, _ = by_columns(*self._ordered(ordering), activation=self.activation, noise=noise, deeper=self._deeper())
        return x[:, ordering.argsort()]

    def _deeper(self) -> Callable[[Tensor], Tensor]:
        return self._second if self.deep else lambda h: h

    def _ordered(self, ordering: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        W = self.W / self.scale.unsqueeze(1)
        U = self.U - self.mean.unsqueeze(1) * W
        return W[ordering], self.b, self.V[ordering], self.c[ordering], U[ordering]

    def _units(self, activations: Tensor) -> Tensor:
        return torch.relu(activations) if self.activation == "relu" else torch.sigmoid(activations)

    def _second(self, h: Tensor) -> Tensor:
        return self._units(torch.addmm(self.b2, h, self.W2))

    def _leave_out(self, h: Tensor, generator: torch.Generator | None) -> Tensor:
        if not (self.training and self.dropout):
            return h
        return h * torch.empty_like(h).bernoulli_(1 - self.dropout, generator=generator).div_(1 - self.dropout)


def random_parts(x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A random part of each row that is given, of 0 to D - 1 columns, and the weight of the rest, D / (D - d + 1).

    All sizes are as likely, and all parts of a size: one column is asked for, and any other is given with a probability
    that is the same for the row and drawn first. These are spread evenly over a batch, which makes its loss less
    random. Shapes: (rows, D) to (rows, D), 1 where given, and (rows).
    """
    rows, columns = x.shape
    share = (torch.randperm(rows, generator=generator) + torch.rand(rows, generator=generator)) / rows
    given = (torch.rand(x.shape, generator=generator) < share.unsqueeze(1)).to(x.dtype)
    given.scatter_(1, torch.randint(columns, (rows, 1), generator=generator), 0)
    return given, columns / (columns - given.sum(dim=1))


def agnostic_loss(
    network: OrderlessNetwork, x: Tensor, given: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    """-log p of what is not given, all of it at once given the rest. Shapes: (rows, D), twice, to (rows)."""
    logits = network(x, given, generator)
    return (F.binary_cross_entropy_with_logits(logits, x, reduction="none") * (1 - given)).sum(dim=1)


class EoNADE:
    """An ensemble of the orderings of one orderless NADE: an exact likelihood, the mean of R probabilities.

    Arguments:
        hidden_sizes: the number of units of one hidden layer, or of two.
        orderings: R, how many random orderings are averaged; they are a function of the seed.
        activation: of the hidden units, ``"sigmoid"``, or ``"relu"``, which learns few rows by heart sooner.
        dropout: the probability with which a hidden unit is left out in training.
        seed: the seed of everything that is random.
        report: called after each epoch with its number, the mean log-likelihood of validation rows over all
            orderings, as far as a few random parts of them tell, and the seconds.
        training: what is to differ in :data:`TRAINING`, of :class:`made.training.config.TrainingConfig`: learning_rate,
            schedule, weight_decay, clip, average, batch_size, max_epochs, patience.

    Attributes:
        network_: the parameters.
        orderings_: the columns as they come in each ordering, (R, D).
        size: the number of parameters.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = EoNADE((16,), orderings=2, max_epochs=4, learning_rate=0.05).fit(rows[:150], rows[150:])
        >>> model.log_prob(rows).kind, model.size
        ('exact', 163)
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    TRAINING: dict[str, Any] = {  # noqa: RUF012
        "learning_rate": 3e-3,
        "schedule": "cosine",
        "weight_decay": 0.0,
        "clip": 5.0,
        "average": 0.99,
        "batch_size": 200,
        "max_epochs": 300,
        "patience": 30,
    }

    def __init__(
        self,
        hidden_sizes: Sequence[int] = (500,),
        *,
        orderings: int = 16,
        activation: Literal["sigmoid", "relu"] = "sigmoid",
        dropout: float = 0.0,
        seed: int = 0,
        report: Report | None = None,
        **training: Any,
    ) -> None:
        self.hidden_sizes, self.orderings, self.activation = hidden_sizes, orderings, activation
        self.dropout, self.seed, self.report = dropout, seed, report
        self.training = self.TRAINING | training

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Learn all orderings at once, and keep the epoch that is best on other rows."""
        x, y = (torch.from_numpy(each).float() for each in learned(train, valid))
        random = np.random.default_rng(self.seed)
        self.orderings_ = np.stack([random.permutation(x.shape[1]) for _ in range(self.orderings)])
        network = OrderlessNetwork(
            x.shape[1], self.hidden_sizes, activation=self.activation, dropout=self.dropout, seed=self.seed
        )
        network.start(x)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            given, weight = random_parts(batch, generator)
            return (weight * agnostic_loss(network, batch, given, generator)).mean()

        x, y = repeated(x, TRAINING_PARTS), repeated(y, VALIDATION_PARTS)
        parts = random_parts(y, torch.Generator().manual_seed(self.seed))

        def score() -> float:
            with torch.no_grad():
                each = zip(y.split(1000), *(part.split(1000) for part in parts), strict=True)
                total = sum((weight * agnostic_loss(network, rows, given)).sum().item() for rows, given, weight in each)
            return -float(total) / len(y)

        config = TrainingConfig(**self.training, max_seconds=seconds, seed=self.seed)
        self.best_epoch_, self.epochs = learn(network, x, loss, score, config, self.report)
        self.network_, self.columns_ = network, x.shape[1]
        self.size = sum(weight.numel() for weight in network.parameters())
        return self

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row, exact: that of the ensemble of these R orderings."""
        x = torch.from_numpy(asked(self, rows)).to(self.network_.c.dtype)
        total = torch.full((len(x),), -math.inf, dtype=torch.float64)
        with torch.no_grad(), one_thread(not self.network_.deep):
            for ordering in self.orderings_:
                total = torch.logaddexp(total, self.network_.log_prob(x, torch.from_numpy(ordering)))
        return LogProb((total - math.log(len(self.orderings_))).numpy())

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, each in one of the orderings, which is drawn first."""
        count, generator = whole(self, n), torch.Generator().manual_seed(seed)
        chosen = torch.randint(len(self.orderings_), (count,), generator=generator)
        noise = torch.rand(count, self.columns_, generator=generator, dtype=torch.float64)
        drawn = np.empty(noise.shape, dtype=np.uint8)
        with torch.no_grad():
            for number, ordering in enumerate(self.orderings_):
                here = chosen == number
                rows = self.network_.draw(noise[here].to(self.network_.c.dtype), torch.from_numpy(ordering))
                drawn[here.numpy()] = rows.numpy()
        return drawn
