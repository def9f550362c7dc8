r"""NADE, the Neural Autoregressive Distribution Estimator (Larochelle and Murray, AISTATS 2011), one hidden layer.

.. math::
    p(x) &= \prod_d p(x_d \mid x_{<d}) \\
    h_d &= \sigma(b + W_{\cdot,<d} \, x_{<d}) \\
    p(x_d = 1 \mid x_{<d}) &= \sigma(c_d + V_d \, h_d)

Each of the D columns has its own hidden layer, but they share weights: :math:`a_{d+1} = a_d + W_{\cdot,d} x_d`, so that
a row costs O(DK) and not O(D^2 K). :func:`sequential_pass` computes one column after the other,
:mod:`made.baselines.blocked_nade` several at a time, with a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.blocked_nade import ACTIVATIONS, BLOCK_WIDTH, blocked_logits
from made.baselines.optimization import GradientBaseline, column_means, floats
from made.baselines.protocol import Bits, LogProb
from made.columns.discrete import LEAST_DEVIATION
from made.network.threads import single_thread

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
        u: added to the activations after each column, whatever its value: :math:`a_{d+1} = a_d + W_d x_d + u_d`,
            (D, K).
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
) -> Tensor:
    """Rows of an ensemble of orderings, (R, D): one is drawn for each row. ``sample`` takes noise and an ordering."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(orderings), (n,), generator=generator)
    noise = torch.rand(n, orderings.shape[1], generator=generator, dtype=torch.float64).to(dtype)
    x = torch.empty_like(noise)
    with torch.no_grad():
        for number, ordering in enumerate(orderings):
            x[chosen == number] = sample(noise[chosen == number], ordering)
    return x


class NADENetwork(nn.Module):
    """The parameters of :class:`NADE` and of tied networks (:mod:`made.baselines.tied`), and their logits.

    Hidden units are dropped for all rows of a batch alike, which saves time, and inputs for each row. There may be
    ``conditioning`` weights U; without them, each block of a ``line`` of columns has its own bias, and so has each of
    the ``directions`` of shifted rows. An ordering has the positions of the columns; default: all in their place.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        columns: int,
        units: int,
        *,
        activation: str = "sigmoid",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        conditioning: bool = False,
        standardized: bool = False,
        line: int = 0,
        directions: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        for name, share in (("dropout", dropout), ("input_dropout", input_dropout)):
            if not 0 <= share < 1:
                raise ValueError(f"'{name}' should be at least 0 and below 1, not {share}.")
        if activation not in ACTIVATIONS:
            raise ValueError(f"'activation' should be one of {', '.join(ACTIVATIONS)}, not {activation!r}.")
        self.activation, self.dropout, self.input_dropout = activation, dropout, input_dropout
        self.standardized, self.width = standardized, line or BLOCK_WIDTH
        self.blocks = -(-columns // self.width)
        generator = torch.Generator().manual_seed(seed)
        self.W, self.V = (
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(columns, units), generator=generator)) for _ in range(2)
        )
        self.b, self.c = nn.Parameter(torch.zeros(units)), nn.Parameter(torch.zeros(columns))
        self.U = nn.Parameter(torch.zeros(columns, units)) if conditioning else None
        self.b_line = nn.Parameter(torch.zeros(self.blocks, units)) if line and not conditioning else None
        self.b_moved = nn.Parameter(torch.zeros(directions, units)) if directions else None
        self.slower = {"U": columns**0.5} if conditioning else {}  # see made.network.Network.slower
        if standardized:
            self.register_buffer("mean", torch.zeros(columns))
            self.register_buffer("scale", torch.ones(columns))

    def start(self, x: Tensor, seed: int = 0) -> None:
        """Start with independent columns; with standardized inputs, from V = 0 and W of a matching scale."""
        share = column_means(x)
        with torch.no_grad():
            self.c.copy_(share.logit())
        if self.standardized:
            self.mean.copy_(share)
            self.scale.copy_((share * (1 - share)).sqrt().clamp(min=LEAST_DEVIATION))
            nn.init.normal_(self.W, std=(2 / len(share)) ** 0.5, generator=torch.Generator().manual_seed(seed))
            nn.init.zeros_(self.V)

    def weights(
        self, ordering: Tensor | None = None, units: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """W, V and c in an ordering, and the bias of each block, if any; of the given units, default: all."""

        def of(weight: Tensor) -> Tensor:
            return weight if units is None else weight[:, units]

        W, V, c = of(self.W), of(self.V), self.c
        U, t = (None if each is None else of(each) for each in (self.U, self.b_line))
        if self.standardized:
            W = W / self.scale.unsqueeze(1)
            U = None if U is None else U - self.mean.unsqueeze(1) * W
        if U is not None:
            padded = F.pad(U if ordering is None else U[ordering], (0, 0, 0, -len(U) % self.width))
            by_block = padded.view(self.blocks, self.width, U.shape[1]).sum(dim=1)
            t = by_block.cumsum(dim=0) - by_block
        return (W, V, c, t) if ordering is None else (W[ordering], V[ordering], c[ordering], t)

    def forward(
        self,
        x: Tensor,
        ordering: Tensor | None = None,
        generator: torch.Generator | None = None,
        directions: Tensor | None = None,
    ) -> Tensor:
        """The logits of rows whose columns are in the ordering. Shapes: (rows, D), (D), and (rows) to (rows, D)."""
        b: Tensor = self.b
        if directions is not None:
            if self.b_moved is None:
                raise ValueError("'directions' should be None: this network was constructed with directions=0.")
            b = b + F.embedding(directions, F.pad(self.b_moved, (0, 0, 1, 0)))
        if self.training and self.dropout:
            units = (torch.rand(len(self.b), generator=generator) >= self.dropout).nonzero().squeeze(1)
            W, V, c, t = self.weights(ordering, units)
            b, V = b[..., units], V / (1 - self.dropout)
        else:
            W, V, c, t = self.weights(ordering)
        if self.training and self.input_dropout:
            x = x * (torch.rand(x.shape, generator=generator) >= self.input_dropout) / (1 - self.input_dropout)
        return blocked_logits(x, W, b, V, c, t, activation=self.activation, width=self.width)

    def log_prob(self, x: Tensor, ordering: Tensor | None = None, first: int = 0) -> Tensor:
        """log p of the columns from position ``first`` on in an ordering, given those before; in float64.

        Shapes: (rows, D) and (D) to (rows).
        """
        x, parts = x if ordering is None else x[:, ordering], []
        with torch.no_grad(), single_thread():
            for some in x.split(ROWS_AT_A_TIME):
                parts.append(row_log_prob(self(some, ordering)[:, first:], some[:, first:]))
        return torch.cat(parts)

    def sample(self, noise: Tensor, ordering: Tensor | None = None) -> Tensor:
        """Rows from uniform numbers, column after column. Shapes: (rows, D) and (D) to (rows, D)."""
        W, V, c, t = self.weights(ordering)
        b: Tensor = self.b
        u: Tensor | None = None
        if t is not None:  # activations change by the difference of biases after the last column of a block
            b, u = b + t[0], torch.zeros_like(W)
            u[self.width - 1 : -1 : self.width] = t.diff(dim=0)
        x, _ = sequential_pass(W, b, V, c, u, activation=self.activation, noise=noise)
        return x if ordering is None else x[:, ordering.argsort()]


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
        >>> rows = [[0, 0, 0], [1, 1, 1]] * 100  # three equal coins, log 2 = 0.69
        >>> model = NADE(16, max_epochs=30, learning_rate=0.05).fit(rows[:150], rows[150:])
        >>> answer = model.log_prob(rows)
        >>> answer.kind, -answer.mean() < 1, model.size
        ('exact', True, 115)
    """

    resumable: ClassVar[bool] = True

    def __init__(
        self,
        hidden_size: int = 500,
        *,
        ordering: str | Sequence[int] = "natural",
        activation: Literal["sigmoid", "relu"] = "sigmoid",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        self.hidden_size, self.ordering, self.activation = hidden_size, ordering, activation
        self.dropout, self.input_dropout = dropout, input_dropout

    def _fit(self, train: Bits, valid: Bits, seconds: float | None) -> None:
        network, first = self._begin(train.shape[1]), self.ordering_
        x, y = floats(train[:, first], valid[:, first])
        network.start(x, self.seed)
        self.optimize(network, x, self._loss, lambda: self._score(y), self.config(seconds))

    def _begin(self, columns: int, **options: Any) -> NADENetwork:
        """Set the ordering and the untrained network."""
        self.orderings_ = self._orderings(columns)
        self.ordering_ = self.orderings_[0]
        options |= {"activation": self.activation, "dropout": self.dropout, "input_dropout": self.input_dropout}
        self.network_ = NADENetwork(columns, self.hidden_size, **options, seed=self.seed)
        return self.network_

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        logits = self.network_(batch, generator=generator)
        return F.binary_cross_entropy_with_logits(logits, batch, reduction="sum") / len(batch)

    def _score(self, x: Tensor) -> float:
        return self.network_.log_prob(x).mean().item()

    def _orderings(self, columns: int) -> NDArray[np.intp]:
        natural = np.arange(columns)
        if isinstance(self.ordering, str):
            known = {"natural": natural, "random": np.random.default_rng(self.seed).permutation(natural)}
            if self.ordering not in known:
                raise ValueError(f"'ordering' should be natural, random, or a list of columns, not {self.ordering!r}.")
            return known[self.ordering][None]
        ordering = np.asarray(self.ordering)
        if ordering.dtype.kind not in "iu" or sorted(ordering.tolist()) != natural.tolist():
            raise ValueError(f"'ordering' should have each of the columns 0 to {columns - 1} once.")
        return ordering[None]

    def _log_prob(self, rows: Bits) -> LogProb:
        x = torch.from_numpy(rows[:, self.ordering_]).to(self.network_.c.dtype)
        return LogProb(self.network_.log_prob(x).numpy())

    def _sample(self, n: int, seed: int) -> Tensor:
        shape, generator = (n, len(self.ordering_)), torch.Generator().manual_seed(seed)
        noise = torch.rand(shape, generator=generator, dtype=torch.float64).to(self.network_.c.dtype)
        with torch.no_grad():
            return self.network_.sample(noise)[:, np.argsort(self.ordering_)]
