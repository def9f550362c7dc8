r"""NADE, the Neural Autoregressive Distribution Estimator (Larochelle and Murray, AISTATS 2011), one hidden layer.

.. math::
    p(x) &= \prod_d p(x_d \mid x_{<d}) \\
    h_d &= \sigma(b + W_{\cdot,<d} \, x_{<d}) \\
    p(x_d = 1 \mid x_{<d}) &= \sigma(c_d + V_d \, h_d)

Each of the D columns has its own hidden layer, but they share weights: :math:`a_{d+1} = a_d + W_{\cdot,d} x_d`, so that
    a
row costs O(DK) and not O(D^2 K). :func:`sequential_pass` computes one column after the other,
:mod:`made.baselines.blocked_nade` several at a time, with a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.binary_rows import check_count, check_rows, check_train_valid
from made.baselines.blocked_nade import ACTIVATIONS, blocked_logits
from made.baselines.optimization import GradientBaseline, column_means
from made.baselines.protocol import LogProb
from made.network.threads import single_thread

__all__ = ["NADE", "ROWS_AT_A_TIME", "NADENetwork", "row_log_prob", "sample_orderings", "sequential_pass"]

ROWS_AT_A_TIME = 200  # their activations in one column fit the processor's cache


def row_log_prob(logits: Tensor, x: Tensor) -> Tensor:
    """log p of each row from the logits of its columns, in float64. Shapes: (rows, D), twice, to (rows)."""
    return -F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=1, dtype=torch.float64)


def sequential_pass(
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
    """One column after the other, each given or sampled: the rows and their logits, both (rows, D).

    Arguments:
        W, b, V, c: the parameters, columns in the order of the product: W (the transpose of the equations') and V
            (D, K), b (K), c (D).
        u: added to the activations after each column, whatever its value: :math:`a_{d+1} = a_d + W_d x_d + u_d`, (D,
            K).
        activation: of the hidden units, ``"sigmoid"`` or ``"relu"``.
        values: the rows, (rows, D); or else
        noise: uniform numbers to sample them with, (rows, D).
        deeper: further hidden layers, applied before V.
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


def sample_orderings(
    sample: Callable[[Tensor, Tensor], Tensor], orderings: Tensor, n: int, dtype: torch.dtype, seed: int
) -> NDArray[np.uint8]:
    """Rows of an ensemble of orderings, (R, D): one is drawn for each row. ``sample`` takes noise and an ordering."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(orderings), (n,), generator=generator)
    noise = torch.rand(n, orderings.shape[1], generator=generator, dtype=torch.float64).to(dtype)
    x = torch.empty_like(noise)
    with torch.no_grad():
        for number, ordering in enumerate(orderings):
            x[chosen == number] = sample(noise[chosen == number], ordering)
    return x.numpy().astype(np.uint8)


class NADENetwork(nn.Module):
    """The parameters of NADE, columns in the order of the product, and its logits.

    Arguments:
        columns: D.
        units: K.
        activation: of the hidden units, ``"sigmoid"`` or ``"relu"``.
        dropout: dropout probability of the hidden units; the same units for all rows of a batch, which saves time.
        input_dropout: dropout probability of the inputs, for each row independently.
        seed: seed of the initial weights.
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
        return blocked_logits(self.drop_inputs(x, generator), W, b, V, self.c, activation=self.activation)

    def drop_inputs(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """The inputs, with dropout in training. Shapes: (rows, D) to (rows, D)."""
        if not (self.training and self.input_dropout):
            return x
        keep = torch.rand(x.shape, generator=generator) >= self.input_dropout
        return x * keep / (1 - self.input_dropout)

    def log_prob(self, x: Tensor) -> Tensor:
        """log p of each row, in float64. Shapes: (rows, D) to (rows)."""
        with torch.no_grad(), single_thread():
            return torch.cat([row_log_prob(self(some), some) for some in x.split(ROWS_AT_A_TIME)])

    def sample(self, noise: Tensor) -> Tensor:
        """Rows from uniform numbers, column after column. Shapes: (rows, D) to (rows, D)."""
        return sequential_pass(self.W, self.b, self.V, self.c, activation=self.activation, noise=noise)[0]

    def start_independent(self, x: Tensor) -> None:
        """Set the output biases to those of independent columns."""
        with torch.no_grad():
            self.c.copy_(column_means(x).logit())


class NADE(GradientBaseline):
    """NADE with one hidden layer and one ordering of the columns: an exact likelihood.

    Arguments:
        hidden_size: K, the number of hidden units.
        ordering: of the columns: ``"natural"``; ``"random"``, a function of the seed; or a list of columns.
        activation: of the hidden units, ``"sigmoid"`` as in the paper, or ``"relu"``.
        dropout: dropout probability of the hidden units.
        input_dropout: dropout probability of the inputs.
        others: seed, report and training of :class:`made.baselines.optimization.GradientBaseline`.

    Attributes:
        network_: the parameters.
        ordering_: the columns in the order of the product.

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = NADE(16, max_epochs=30, learning_rate=0.05).fit(rows[:150], rows[150:])
        >>> model.log_prob(rows).kind, model.size
        ('exact', 115)
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
    """

    def __init__(
        self,
        hidden_size: int = 500,
        *,
        ordering: Literal["natural", "random"] | Sequence[int] = "natural",
        activation: Literal["sigmoid", "relu"] = "sigmoid",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        self.hidden_size, self.ordering, self.activation = hidden_size, ordering, activation
        self.dropout, self.input_dropout = dropout, input_dropout

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Maximise the likelihood, and keep the epoch that is best on the validation rows."""
        rows, validation = check_train_valid(train, valid)
        self.columns_ = rows.shape[1]
        self.ordering_ = self._ordering(self.columns_)
        dropout = {"dropout": self.dropout, "input_dropout": self.input_dropout}
        network = NADENetwork(self.columns_, self.hidden_size, activation=self.activation, seed=self.seed, **dropout)
        x, y = (torch.from_numpy(each[:, self.ordering_]).float() for each in (rows, validation))
        network.start_independent(x)

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            return F.binary_cross_entropy_with_logits(network(batch, generator), batch, reduction="sum") / len(batch)

        self.optimize(network, x, loss, lambda: network.log_prob(y).mean().item(), self.config(seconds))
        self.network_ = network
        return self

    def _ordering(self, columns: int) -> NDArray[np.intp]:
        natural = np.arange(columns)
        if isinstance(self.ordering, str):
            known = {"natural": natural, "random": np.random.default_rng(self.seed).permutation(natural)}
            if self.ordering not in known:
                raise ValueError(f"'ordering' should be natural, random, or a list of columns, not {self.ordering!r}.")
            return known[self.ordering]
        ordering = np.asarray(self.ordering)
        if ordering.dtype.kind not in "iu" or sorted(ordering.tolist()) != natural.tolist():
            raise ValueError(f"'ordering' should have each of the columns 0 to {columns - 1} once.")
        return ordering

    def log_prob(self, rows: ArrayLike) -> LogProb:
        """Exact log p of each row."""
        x = torch.from_numpy(check_rows(self, rows)[:, self.ordering_])
        return LogProb(self.network_.log_prob(x.to(self.network_.c.dtype)).numpy())

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, column after column. Shape: (n, D)."""
        count, generator = check_count(self, n), torch.Generator().manual_seed(seed)
        noise = torch.rand(count, self.columns_, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            x = self.network_.sample(noise.to(self.network_.c.dtype))
        rows = np.empty(x.shape, dtype=np.uint8)
        rows[:, self.ordering_] = x.numpy()
        return rows
