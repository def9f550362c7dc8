r"""EoNADE: one network for all orderings, and an ensemble of them (Uria, Murray and Larochelle, ICML 2014).

The *deep and tractable density estimator*, or orderless NADE, has a mask as an input. Where :math:`m_d` is 1 if column
d is given, and o an ordering,

.. math::
    h^1 &= g(b^1 + W (x \odot m) + U m), \quad h^2 = g(b^2 + W^2 h^1), \quad
    p(x_d = 1 \mid x \odot m, m) = \sigma(c_d + V_d h) \\
    p_o(x) &= \prod_i p(x_{o_i} \mid x_{o_{<i}}), \qquad p(x) = \frac{1}{R} \sum_r p_{o_r}(x).

Training is order-agnostic: a random part of a row is given, all other columns are predicted at once, and their loss is
reweighted so that its expectation is the mean of :math:`-\log p_o(x)` over all D! orderings,

.. math:: J = E_{o, d} \frac{D}{D - d + 1} \sum_{i \ge d} -\log p(x_{o_i} \mid x_{o_{<d}}).

An ordering takes D passes. They share the activations of the first layer, to which each column adds
:math:`W_d x_d + U_d`: one hidden layer costs O(DK), as NADE does, and the second one D more matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.nade import ROWS_AT_A_TIME, row_log_prob, sample_orderings, sequential_pass
from made.baselines.optimization import GradientBaseline, column_means, floats, repeat_rows
from made.baselines.protocol import Bits, LogProb
from made.columns.discrete import LEAST_DEVIATION
from made.network.threads import single_thread

TRAINING_PARTS = 10_000  # random parts of rows in an epoch, at least
VALIDATION_PARTS = 4000  # random parts of the validation rows, the same in all epochs


class OrderlessNetwork(nn.Module):
    r"""The parameters of orderless NADE: its logits given some columns, and its likelihood in one ordering.

    Its inputs are standardized, :math:`\frac{x - \mu}{s} \odot m` instead of :math:`x \odot m`. The model is the same,
    with :math:`W_d / s_d` and :math:`U_d - \mu_d W_d / s_d` for W and U, but it trains faster.
    See :class:`EoNADE` for the arguments.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        columns: int,
        hidden_sizes: Sequence[int],
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
        """Start with independent columns (V = 0), and with activations of a variance of about 1.

        The gradients of order-agnostic training are too noisy to grow from the usual small weights.
        """
        with torch.no_grad():
            self.mean.copy_(column_means(x))
            self.scale.copy_((self.mean * (1 - self.mean)).sqrt().clamp(min=LEAST_DEVIATION))
            self.c.copy_(self.mean.logit())
            self.W.mul_((2 / x.shape[1]) ** 0.5)  # about half of the columns are given

    def forward(self, x: Tensor, given: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The logits of all columns, given those where ``given`` is 1. Shapes: (rows, D), twice, to (rows, D)."""
        h = self._units(torch.addmm(torch.addmm(self.b, (x - self.mean) / self.scale * given, self.W), given, self.U))
        h = self._drop_units(h, generator)
        if self.deep:
            h = self._drop_units(self._deeper(h), generator)
        return torch.addmm(self.c, h, self.V.t())

    def log_prob(self, x: Tensor, ordering: Tensor) -> Tensor:
        """log p of rows in one ordering, in float64. Shapes: (rows, D), (D) to (rows)."""
        blocks = x[:, ordering].split(2000 if self.deep else ROWS_AT_A_TIME)
        return torch.cat([row_log_prob(self._sequential(ordering, values=some)[1], some) for some in blocks])

    def sample(self, noise: Tensor, ordering: Tensor) -> Tensor:
        """Rows of one ordering from uniform numbers. Shapes: (rows, D), (D) to (rows, D)."""
        return self._sequential(ordering, noise=noise)[0][:, ordering.argsort()]

    def _sequential(self, ordering: Tensor, **rows: Tensor) -> tuple[Tensor, Tensor]:
        W = self.W / self.scale.unsqueeze(1)
        U = self.U - self.mean.unsqueeze(1) * W
        ordered = (W[ordering], self.b, self.V[ordering], self.c[ordering], U[ordering])
        return sequential_pass(*ordered, activation=self.activation, deeper=self._deeper, **rows)

    def _units(self, activations: Tensor) -> Tensor:
        return torch.relu(activations) if self.activation == "relu" else torch.sigmoid(activations)

    def _deeper(self, h: Tensor) -> Tensor:
        return self._units(torch.addmm(self.b2, h, self.W2)) if self.deep else h

    def _drop_units(self, h: Tensor, generator: torch.Generator | None) -> Tensor:
        if not (self.training and self.dropout):
            return h
        return h * torch.empty_like(h).bernoulli_(1 - self.dropout, generator=generator).div_(1 - self.dropout)


def random_parts(x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A random part of each row that is given, of 0 to D - 1 columns, and the weight of the rest, D / (D - d + 1).

    All sizes are equally likely, and all parts of a size: one column is not given, and every other one is with a
    probability drawn for the row. These are stratified over the batch, which reduces the variance of its loss.
    Shapes: (rows, D) to (rows, D), 1 where given, and (rows).
    """
    rows, columns = x.shape
    share = (torch.randperm(rows, generator=generator) + torch.rand(rows, generator=generator)) / rows
    given = (torch.rand(x.shape, generator=generator) < share.unsqueeze(1)).to(x.dtype)
    given.scatter_(1, torch.randint(columns, (rows, 1), generator=generator), 0)
    return given, columns / (columns - given.sum(dim=1))


def agnostic_loss(
    network: OrderlessNetwork, x: Tensor, given: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    """-log p of the other columns, each given only those where ``given`` is 1. Shapes: (rows, D), twice, to (rows)."""
    logits = network(x, given, generator)
    return (F.binary_cross_entropy_with_logits(logits, x, reduction="none") * (1 - given)).sum(dim=1)


class EoNADE(GradientBaseline):
    """An ensemble of orderings of one orderless NADE: an exact likelihood, the mean of R probabilities.

    Arguments:
        hidden_sizes: the units of one or two hidden layers.
        orderings: R, the number of random orderings, functions of the seed, that are averaged.
        activation: of the hidden units, ``"sigmoid"`` or ``"relu"``, which overfits small tables sooner.
        dropout: dropout probability of the hidden units.
        others: seed, report and training of :class:`made.baselines.optimization.GradientBaseline`. The reported
            likelihood is estimated from random parts of the validation rows, over all orderings.

    Attributes:
        network_: the parameters.
        orderings_: the columns in each ordering, (R, D).

    Example:
        >>> rows = [[0, 0, 0], [1, 1, 1]] * 100  # three equal coins, log 2 = 0.69
        >>> model = EoNADE((16,), orderings=2, max_epochs=4, learning_rate=0.05).fit(rows[:150], rows[150:])
        >>> answer = model.log_prob(rows)
        >>> answer.kind, -answer.mean() < 1, model.size
        ('exact', True, 163)
    """

    resumable: ClassVar[bool] = True
    TRAINING: ClassVar[dict[str, Any]] = GradientBaseline.TRAINING | {"learning_rate": 3e-3, "batch_size": 200}
    TRAINING |= {"max_epochs": 300, "patience": 30}

    def __init__(
        self,
        hidden_sizes: Sequence[int] = (500,),
        *,
        orderings: int = 16,
        activation: Literal["sigmoid", "relu"] = "sigmoid",
        dropout: float = 0.0,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        self.hidden_sizes, self.orderings, self.activation, self.dropout = hidden_sizes, orderings, activation, dropout

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        x, y = floats(train, valid)
        random, columns = np.random.default_rng(self.seed), x.shape[1]
        self.orderings_ = np.stack([random.permutation(columns) for _ in range(self.orderings)])
        network = OrderlessNetwork(columns, self.hidden_sizes, self.activation, self.dropout, self.seed)
        network.start(x)
        x, y = repeat_rows(x, TRAINING_PARTS), repeat_rows(y, VALIDATION_PARTS)
        parts = random_parts(y, torch.Generator().manual_seed(self.seed))

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            given, weight = random_parts(batch, generator)
            return (weight * agnostic_loss(network, batch, given, generator)).mean()

        def score() -> float:
            with torch.no_grad():
                each = zip(*(part.split(1000) for part in (y, *parts)), strict=True)
                total = sum((weight * agnostic_loss(network, rows, given)).sum().item() for rows, given, weight in each)
            return -float(total) / len(y)

        self.optimize(network, x, loss, score, self.config(seconds))
        self.network_ = network

    def _log_prob(self, rows: Bits) -> LogProb:
        x = torch.from_numpy(rows).to(self.network_.c.dtype)
        total = torch.full((len(x),), -math.inf, dtype=torch.float64)
        with torch.no_grad(), single_thread(not self.network_.deep):
            for ordering in self.orderings_:
                total = torch.logaddexp(total, self.network_.log_prob(x, torch.from_numpy(ordering)))
        return LogProb((total - math.log(len(self.orderings_))).numpy())

    def _sample(self, n: int, seed: int) -> Tensor:
        orderings = torch.from_numpy(self.orderings_)
        return sample_orderings(self.network_.sample, orderings, n, self.network_.c.dtype, seed)
