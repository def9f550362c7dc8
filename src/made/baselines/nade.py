r"""NADE, the Neural Autoregressive Distribution Estimator (Larochelle and Murray, AISTATS 2011), one hidden layer.

.. math::
    p(x) &= \prod_d p(x_d \mid x_{<d}) \\
    h_d &= \sigma(b + W_{\cdot,<d} \, x_{<d}) \\
    p(x_d = 1 \mid x_{<d}) &= \sigma(c_d + V_d \, h_d)

There is a hidden layer for each column, D of them, but the weights are shared: :math:`a_{d+1} = a_d + W_{\cdot,d} x_d`
is all that is new from one to the next, so that a row costs O(DK) and not O(D^2 K). :func:`by_columns` takes one column
after the other, :mod:`made.baselines.states` several at a time, and back for the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.learning import Report, learn, one_thread, shares
from made.baselines.protocol import LogProb
from made.baselines.rows import asked, learned, whole
from made.baselines.states import ACTIVATIONS, logits_by_states
from made.training.config import TrainingConfig

__all__ = ["NADE", "ROWS_AT_A_TIME", "NADENetwork", "by_columns"]

ROWS_AT_A_TIME = 200  # whose activations in one column stay in the cache of a processor


def by_columns(
    W: Tensor,
    b: Tensor,
    V: Tensor,
    c: Tensor,
    u: Tensor | None = None,
    *,
    activation: str,
    values: Tensor | None = None,
    noise: Tensor | None = None,
    deeper: Callable[[Tensor], Tensor] = lambda h: h,
) -> tuple[Tensor, Tensor]:
    """One column after the other, each in its turn given or drawn: the rows and their logits, (rows, D) both.

    Arguments:
        W, b, V, c: the parameters, in the order of the product: W and V (D, K), W the transpose of that of the
            equations, b (K), c (D).
        u: what the activations get from a column whatever its value, (D, K), :math:`a_{d+1} = a_d + W_d x_d + u_d`; or
            None.
        activation: of the hidden units, ``"sigmoid"`` or ``"relu"``.
        values: the rows, (rows, D); or else
        noise: uniform numbers to draw them with, (rows, D).
        deeper: what becomes of the hidden units before they meet V: further layers.
    """
    given = values if values is not None else noise
    assert given is not None
    a, columns = b.expand(len(given), -1).clone(), given.t().contiguous()
    logits, units = torch.empty_like(columns), ACTIVATIONS[activation][0]
    for d, column in enumerate(columns):
        logits[d] = deeper(units(a)) @ V[d] + c[d]
        if values is None:
            column.copy_(column < logits[d].sigmoid())
        a.addr_(column, W[d])
        if u is not None:
            a += u[d]
    return columns.t(), logits.t()


class NADENetwork(nn.Module):
    """The parameters of NADE, in the order of the product, and its logits.

    Arguments:
        columns: D.
        units: K.
        activation: of the hidden units, ``"sigmoid"`` or ``"relu"``.
        dropout: the probability with which a unit is left out in training; of all rows of a batch, so that it costs
            nothing.
        input_dropout: the same of an input, in each row by itself.
        seed: the seed of the initial weights.
    """

    def __init__(
        self,
        columns: int,
        units: int,
        *,
        activation: str = "sigmoid",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        for name, share in (("dropout", dropout), ("input_dropout", input_dropout)):
            if not 0 <= share < 1:
                raise ValueError(f"'{name}' should be at least 0 and below 1, not {share}.")
        if activation not in ACTIVATIONS:
            raise ValueError(f"'activation' should be one of {', '.join(ACTIVATIONS)}, not {activation!r}.")
        self.activation, self.dropout, self.input_dropout = activation, dropout, input_dropout
        generator = torch.Generator().manual_seed(seed)
        self.W, self.V = (
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(columns, units), generator=generator)) for _ in range(2)
        )
        self.b, self.c = nn.Parameter(torch.zeros(units)), nn.Parameter(torch.zeros(columns))

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The logits. Shapes: (rows, D) to (rows, D)."""
        W: Tensor = self.W
        b: Tensor = self.b
        V: Tensor = self.V
        if self.training and self.dropout:
            units = (torch.rand(len(b), generator=generator) >= self.dropout).nonzero().squeeze(1)
            W, b, V = W[:, units], b[units], V[:, units] / (1 - self.dropout)
        return logits_by_states(self.leave_out(x, generator), W, b, V, self.c, activation=self.activation)

    def leave_out(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Inputs, in training some at random; the others make up for them. Shapes: (rows, D) to (rows, D)."""
        if not (self.training and self.input_dropout):
            return x
        keep = torch.rand(x.shape, generator=generator) >= self.input_dropout
        return x * keep / (1 - self.input_dropout)

    def draw(self, noise: Tensor) -> Tensor:
        """Rows from uniform numbers, column after column. Shapes: (rows, D) to (rows, D)."""
        return by_columns(self.W, self.b, self.V, self.c, activation=self.activation, noise=noise)[0]

    def start_independent(self, x: Tensor) -> None:
        """Let the output biases begin where independent columns have them."""
        with torch.no_grad():
            self.c.copy_(shares(x).logit())


class NADE:
    """NADE with one hidden layer and one ordering of the columns: an exact likelihood.

    Arguments:
        hidden_size: K, the number of hidden units.
        ordering: of the columns, ``"natural"``, or ``"random"``, a function of the seed; or the columns as they come.
        activation: of the hidden units, ``"sigmoid"`` as in the paper, or ``"relu"``.
        dropout: the probability with which a hidden unit is left out in training.
        input_dropout: the same of an input.
        seed: the seed of everything that is random.
        report: called after each epoch with its number, the mean log-likelihood of validation rows, and the seconds.
        training: what is to differ in :data:`TRAINING`, of :class:`made.training.config.TrainingConfig`: learning_rate,
            schedule, weight_decay, clip, average, batch_size, max_epochs, patience.

    Attributes:
        network_: the parameters.
        ordering_: the columns in the order of the product.
        size: the number of parameters.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = NADE(16, max_epochs=30, learning_rate=0.05).fit(rows[:150], rows[150:])
        >>> model.log_prob(rows).kind, model.size
        ('exact', 115)
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    TRAINING: dict[str, Any] = {  # noqa: RUF012
        "learning_rate": 1e-2,
        "schedule": "cosine",
        "weight_decay": 0.0,
        "clip": 5.0,
        "average": 0.99,
        "batch_size": 100,
        "max_epochs": 100,
        "patience": 20,
    }

    def __init__(
        self,
        hidden_size: int = 500,
        *,
        ordering: Literal["natural", "random"] | Sequence[int] = "natural",
        activation: Literal["sigmoid", "relu"] = "sigmoid",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        seed: int = 0,
        report: Report | None = None,
        **training: Any,
    ) -> None:
        self.hidden_size, self.ordering, self.activation = hidden_size, ordering, activation
        self.dropout, self.input_dropout = dropout, input_dropout
        self.seed, self.report = seed, report
        self.training = self.TRAINING | training

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Maximise the likelihood of rows, and keep the epoch that is best on others."""
        rows, others = learned(train, valid)
        network = self._begin(rows.shape[1])
        x, y = (torch.from_numpy(each[:, self.ordering_]).float() for each in (rows, others))
        network.start_independent(x)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            return F.binary_cross_entropy_with_logits(network(batch, generator), batch, reduction="sum") / len(batch)

        config = TrainingConfig(**self.training, max_seconds=seconds, seed=self.seed)
        self.best_epoch_, self.epochs = learn(
            network, x, loss, lambda: _log_prob(network, y).mean().item(), config, self.report
        )
        return self

    def _begin(self, columns: int) -> NADENetwork:
        natural, self.columns_ = np.arange(columns), columns
        if isinstance(self.ordering, str):
            known = {"natural": natural, "random": np.random.default_rng(self.seed).permutation(natural)}
            if self.ordering not in known:
                raise ValueError(f"'ordering' should be natural, random, or a list of columns, not {self.ordering!r}.")
            self.ordering_ = known[self.ordering]
        else:
            self.ordering_ = np.asarray(self.ordering)
            if self.ordering_.dtype.kind not in "iu" or sorted(self.ordering_.tolist()) != natural.tolist():
                raise ValueError(f"'ordering' should have each of the columns 0 to {columns - 1} once.")
        self.network_ = NADENetwork(
            columns,
            self.hidden_size,
            activation=self.activation,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            seed=self.seed,
        )
        self.size = sum(weight.numel() for weight in self.network_.parameters())
        return self.network_

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """log p of each row, exact."""
        x = torch.from_numpy(asked(self, rows)[:, self.ordering_])
        return LogProb(_log_prob(self.network_, x.to(self.network_.c.dtype)).numpy())

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, column after column."""
        count, generator = whole(self, n), torch.Generator().manual_seed(seed)
        noise = torch.rand(count, self.columns_, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            x = self.network_.draw(noise.to(self.network_.c.dtype))
        drawn = np.empty(x.shape, dtype=np.uint8)
        drawn[:, self.ordering_] = x.numpy()
        return drawn


def _log_prob(network: NADENetwork, x: Tensor) -> Tensor:
    """log p of each row, in double precision. Shapes: (rows, D) to (rows)."""
    with torch.no_grad(), one_thread():
        parts = [
            F.binary_cross_entropy_with_logits(network(some), some, reduction="none").sum(dim=1, dtype=torch.float64)
            for some in x.split(ROWS_AT_A_TIME)
        ]
    return -torch.cat(parts)
