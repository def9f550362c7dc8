r"""MADE with tied units: K of them at every degree, D K in all, which share their weights across degrees.

In one ordering, with one hidden layer, this is NADE (:mod:`made.baselines.nade`), at its cost of O(DK) for a row. Here
it is trained on several orderings o, one in each update, as MADE is on masks, and its likelihood is their mean. Units
know which columns they see by conditioning weights U, whose sum over the preceding blocks of columns is a bias (blocks
instead of columns, so that columns can share a hidden layer; see :mod:`made.baselines.blocked_nade`),

.. math::
    h_i &= g\Bigl(b + \sum_{j < i} W_{o_j} x_{o_j} + \sum_{j \text{ in blocks before } i} U_{o_j}\Bigr) \\
    p_o(x) &= \prod_i p(x_{o_i} \mid x_{o_{<i}}), \quad p(x_{o_i} = 1 \mid x_{o_{<i}}) = \sigma(c_{o_i} + V_{o_i} h_i),
    \quad p(x) = \frac{1}{R} \sum_r p_{o_r}(x).

Inputs may be standardised, :math:`(x - \mu) / s`; :math:`\mu` is subtracted where U is added, after each block.

If some of the updates use random orderings, any columns can be conditioned on: they come first in an ordering. EoNADE
is the same model, but its updates predict a random part of each row given the rest; an update here predicts every
column given all before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from made.baselines.binary_rows import check_count, check_integer, check_rows, check_train_valid
from made.baselines.blocked_nade import BLOCK_WIDTH, blocked_logits
from made.baselines.image_shifts import DIRECTIONS, ImageShifts
from made.baselines.nade import ROWS_AT_A_TIME, NADENetwork, row_log_prob, sample_orderings, sequential_pass
from made.baselines.optimization import GradientBaseline, column_means
from made.baselines.protocol import LogProb
from made.columns.discrete import LEAST_DEVIATION
from made.errors import DataError
from made.network.threads import single_thread

__all__ = ["TiedMADE", "TiedNetwork", "scan_ordering"]

VALIDATION_ORDERINGS = 4  # averaged after each epoch


class TiedNetwork(NADENetwork):
    """The parameters of NADE, columns in the first ordering, and those of conditioning, lines and shifts.

    Arguments:
        columns: D.
        units: K.
        conditioning: whether there are conditioning weights U.
        standardized: whether inputs are standardised, and columns start independent; see :meth:`start`.
        line: the columns of a block, as a line of an image; without U each block has its own bias. 0 for blocks of the
            default width without such a bias.
        directions: the number of directions of shifted rows (:mod:`made.baselines.image_shifts`).
        others: arguments of :class:`made.baselines.nade.NADENetwork`.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        columns: int,
        units: int,
        *,
        conditioning: bool = False,
        standardized: bool = False,
        line: int = 0,
        directions: int = 0,
        **others: Any,
    ) -> None:
        super().__init__(columns, units, **others)
        self.width = line or BLOCK_WIDTH
        self.blocks = -(-columns // self.width)
        self.U = nn.Parameter(torch.zeros(columns, units)) if conditioning else None
        self.b_line = nn.Parameter(torch.zeros(self.blocks, units)) if line and not conditioning else None
        self.b_moved = nn.Parameter(torch.zeros(directions, units)) if directions else None
        self.standardized = standardized
        if standardized:
            self.register_buffer("mean", torch.zeros(columns))
            self.register_buffer("scale", torch.ones(columns))

    def start(self, x: Tensor, seed: int) -> None:
        """Start with independent columns; with standardised inputs, from V = 0 and W of a matching scale."""
        self.start_independent(x)
        if self.standardized:
            share, generator = column_means(x), torch.Generator().manual_seed(seed)
            self.mean.copy_(share)
            self.scale.copy_((share * (1 - share)).sqrt().clamp(min=LEAST_DEVIATION))
            nn.init.normal_(self.W, std=(2 / len(share)) ** 0.5, generator=generator)
            nn.init.zeros_(self.V)

    def weights(self, ordering: Tensor, units: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """W, V and c in an ordering, and the bias of each block; of the given units, default: all."""

        def of(weight: Tensor) -> Tensor:
            return weight if units is None else weight[:, units]

        W, V, block_bias = of(self.W), of(self.V), None if self.b_line is None else of(self.b_line)
        U = None if self.U is None else of(self.U)
        if self.standardized:
            W = W / self.scale.unsqueeze(1)
            U = None if U is None else U - self.mean.unsqueeze(1) * W
        if U is not None:
            padded = F.pad(U[ordering], (0, 0, 0, -len(U) % self.width))
            by_block = padded.view(self.blocks, self.width, U.shape[1]).sum(dim=1)
            block_bias = by_block.cumsum(dim=0) - by_block
        return W[ordering], V[ordering], self.c[ordering], block_bias

    def in_ordering(
        self,
        x: Tensor,
        ordering: Tensor,
        generator: torch.Generator | None = None,
        directions: Tensor | None = None,
    ) -> Tensor:
        """The logits, columns in the ordering. Shapes: (rows, D), (D), and (rows) to (rows, D)."""
        b: Tensor = self.b
        if directions is not None:
            if self.b_moved is None:
                raise ValueError("'directions' should be None: this network was constructed with directions=0.")
            b = b + F.embedding(directions, F.pad(self.b_moved, (0, 0, 1, 0)))
        x, units = x[:, ordering], None
        if self.training and self.dropout:
            units = (torch.rand(len(self.b), generator=generator) >= self.dropout).nonzero().squeeze(1)
            b = b[..., units]
        W, V, c, block_bias = self.weights(ordering, units)
        if units is not None:
            V = V / (1 - self.dropout)
        x = self.drop_inputs(x, generator)
        return blocked_logits(x, W, b, V, c, block_bias, activation=self.activation, width=self.width)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The logits in the first ordering. Shapes: (rows, D) to (rows, D)."""
        return self.in_ordering(x, torch.arange(x.shape[1], device=x.device), generator)

    def log_prob_in_ordering(self, x: Tensor, ordering: Tensor, first: int = 0) -> Tensor:
        """log p of the columns from position ``first`` on in an ordering, given those before; in float64.

        Shapes: (rows, D) and (D) to (rows).
        """
        with torch.no_grad(), single_thread():
            parts = []
            for some in x.split(ROWS_AT_A_TIME):
                logits, values = self.in_ordering(some, ordering), some[:, ordering]
                parts.append(row_log_prob(logits[:, first:], values[:, first:]))
            return torch.cat(parts)

    def sample(self, noise: Tensor) -> Tensor:
        """Rows of the first ordering from uniform numbers. Shapes: (rows, D) to (rows, D)."""
        return self.sample_in_ordering(noise, torch.arange(noise.shape[1], device=noise.device))

    def sample_in_ordering(self, noise: Tensor, ordering: Tensor) -> Tensor:
        """Rows from uniform numbers, column after column. Shapes: (rows, D) and (D) to (rows, D)."""
        W, V, c, block_bias = self.weights(ordering)
        b: Tensor = self.b
        u: Tensor | None = None
        if block_bias is not None:  # activations change by the difference of biases after the last column of a block
            b, u = b + block_bias[0], torch.zeros_like(W)
            u[self.width - 1 : -1 : self.width] = block_bias.diff(dim=0)
        x, _ = sequential_pass(W, b, V, c, u, activation=self.activation, noise=noise)
        return x[:, ordering.argsort()]


class TiedMADE(GradientBaseline):
    """A tied network with one hidden layer, and the mean of its orderings: an exact likelihood.

    Arguments:
        hidden_size: K, the number of units at each degree.
        ordering: ``"random"`` orderings, functions of the seed; for images a ``"walk"``, see :func:`scan_ordering`,
            where the seed is the number of the first; or the ``"natural"`` one.
        orderings: R, the number of orderings.
        any_order: the share of updates with a random ordering, so that any columns can be conditioned on.
        activation: of the hidden units, ``"sigmoid"`` or ``"relu"``.
        standardized: whether inputs are standardised, and columns start independent.
        dropout: dropout probability of the hidden units.
        input_dropout: dropout probability of the inputs.
        line: the columns of a block, as a line of an image; 0 for blocks of the default width.
        moved: the share of rows that are shifted by a pixel in training (:mod:`made.baselines.image_shifts`).
        image: height and width of an image, for ``"walk"`` and ``moved``.
        others: seed, report and training of :class:`made.baselines.optimization.GradientBaseline`. The reported
            likelihood is under a few of the orderings.

    Attributes:
        network_: the parameters.
        orderings_: the columns in each ordering, (R, D).

    Example:
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = TiedMADE(16, orderings=2, any_order=0.5, max_epochs=60, learning_rate=0.05)
        >>> model.fit(rows[:150], rows[150:]).log_prob(rows).kind, model.size
        ('exact', 163)
        >>> -model.log_prob(rows).mean() < 1  # three equal coins, log 2 = 0.69
        True
        >>> -model.log_prob(rows, given=[2]).mean() < 0.3
        True
    """

    def __init__(
        self,
        hidden_size: int = 500,
        *,
        ordering: Literal["random", "walk", "natural"] = "random",
        orderings: int = 1,
        any_order: float = 0.0,
        activation: Literal["sigmoid", "relu"] = "sigmoid",
        standardized: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        line: int = 0,
        moved: float = 0.0,
        image: tuple[int, int] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(**others)
        if ordering not in ("random", "walk", "natural"):
            raise ValueError(f"'ordering' should be random, walk or natural, not {ordering!r}.")
        self.hidden_size = check_integer("hidden_size", hidden_size, 1)
        self.orderings = check_integer("orderings", orderings, 1)
        self.line, self.seed = check_integer("line", line, 0), check_integer("seed", self.seed, 0)
        if not 0 <= any_order <= 1:
            raise ValueError(f"'any_order' should be a share from 0 to 1, not {any_order!r}.")
        if moved and image is None:
            raise ValueError("'image' should be the height and width of a row if 'moved' is above 0.")
        self.ordering, self.any_order = ordering, any_order
        self.activation, self.standardized = activation, standardized
        self.dropout, self.input_dropout, self.moved, self.image = dropout, input_dropout, moved, image

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Maximise the likelihood in all orderings, and keep the epoch that is best on the validation rows."""
        rows, validation = check_train_valid(train, valid)
        network, first = self._begin(rows.shape[1]), self.orderings_[0]
        x, y = (torch.from_numpy(each[:, first]).float() for each in (rows, validation))
        network.start(x, self.seed)
        shifts = ImageShifts(self.image, first, self.moved) if self.moved and self.image is not None else None

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            seen, directions = (batch, None) if shifts is None else shifts(batch, generator)
            ordering = self.next_ordering(generator)
            logits = network.in_ordering(seen, ordering, generator, directions)
            return F.binary_cross_entropy_with_logits(logits, seen[:, ordering], reduction="sum") / len(batch)

        def score() -> float:
            return self._mean(y, self.places_[:VALIDATION_ORDERINGS]).mean().item()

        slower = {} if network.U is None else {"U": len(first) ** 0.5}  # see made.network.Network.slower
        self.optimize(network, x, loss, score, self.config(seconds), slower)
        self.columns_ = len(first)
        return self

    def restore(self, weights: Mapping[str, Tensor]) -> Self:
        """The fitted model whose ``network_`` has this state dictionary."""
        self.columns_ = len(weights["c"])
        self._begin(self.columns_).load_state_dict(weights)
        self.network_.eval()
        self.size = sum(weight.numel() for weight in self.network_.parameters())
        return self

    def _begin(self, columns: int) -> TiedNetwork:
        self.orderings_ = self._orderings(columns)
        places = np.argsort(self.orderings_[0])  # of the columns in the first ordering
        self.places_ = torch.from_numpy(places[self.orderings_])
        self.network_ = TiedNetwork(
            columns,
            self.hidden_size,
            conditioning=self.orderings > 1 or self.any_order > 0,
            standardized=self.standardized,
            activation=self.activation,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            line=self.line,
            directions=DIRECTIONS if self.moved else 0,
            seed=self.seed,
        )
        return self.network_

    def _orderings(self, columns: int) -> NDArray[np.intp]:
        numbers = range(self.orderings)
        if self.ordering == "random":
            random = np.random.default_rng(self.seed)
            return np.stack([random.permutation(columns) for _ in numbers])
        scan = self.ordering == "walk"
        found = np.stack([scan_ordering(self.image, self.seed + n) if scan else np.arange(columns) for n in numbers])
        if found.shape[1] != columns:
            raise ValueError(f"'image' should have {columns} pixels, as a row has, not {found.shape[1]}.")
        if (different := len(np.unique(found, axis=0))) < self.orderings:
            raise ValueError(f"'orderings' should be at most {different}, as there are no other orderings.")
        return found

    def next_ordering(self, generator: torch.Generator) -> Tensor:
        """The ordering of an update, as positions in the first one. Shape: (D)."""
        if self.any_order and torch.rand((), generator=generator) < self.any_order:
            return torch.randperm(self.places_.shape[1], generator=generator)
        number = int(torch.randint(self.orderings, (), generator=generator)) if self.orderings > 1 else 0
        return self.places_[number]

    def _mean(self, x: Tensor, orderings: Tensor, first: int = 0) -> Tensor:
        each = [self.network_.log_prob_in_ordering(x, ordering, first) for ordering in orderings]
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))

    def log_prob(self, rows: ArrayLike, *, given: Iterable[int] = ()) -> LogProb:
        """Exact log p of each row, under the ensemble of the R orderings.

        Arguments:
            rows: the rows.
            given: columns to condition on, of a model with ``any_order``; log p is that of the others, in orderings
                that start with the given ones. A random part of the columns is as in training; a structured one, such
                as half of an image, may be fitted less well.
        """
        x = torch.from_numpy(check_rows(self, rows)[:, self.orderings_[0]]).to(self.network_.c.dtype)
        known = np.array(list(given))
        if not len(known):
            return LogProb(self._mean(x, self.places_).numpy())
        if not self.any_order:
            raise ValueError("'given' needs a model with 'any_order' above 0.")
        before = np.isin(self.orderings_, known)
        if known.dtype.kind not in "iu" or known.ndim != 1 or before[0].sum() != len(known):
            raise ValueError(f"'given' should be some of the columns 0 to {self.columns_ - 1}, each once, not {given}.")
        orderings = self.places_.gather(1, torch.from_numpy(np.argsort(~before, axis=1, kind="stable")))
        return LogProb(self._mean(x, orderings, len(known)).numpy())

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows: an ordering is drawn for each. Shape: (n, D)."""
        count, dtype = check_count(self, n), self.network_.c.dtype
        x = sample_orderings(self.network_.sample_in_ordering, self.places_, count, dtype, seed)
        rows = np.empty_like(x)
        rows[:, self.orderings_[0]] = x
        return rows


def scan_ordering(image: tuple[int, int] | None, number: int) -> NDArray[np.intp]:
    """The pixels of an image in one of eight scan orderings: along rows or columns, from each of the corners.

    Example:
        >>> [scan_ordering((2, 2), number).tolist() for number in range(3)]
        [[0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0]]
    """
    if image is None:
        raise DataError("ordering='walk' needs rows that are images.")
    if len(image) != 2:
        raise ValueError(f"'image' should be a height and a width, not {image!r}.")
    down, right = ((1, 1), (-1, -1), (1, -1), (-1, 1))[number // 2 % 4]
    turned = np.arange(image[0] * image[1]).reshape(image)[::down, ::right]
    return (turned.T if number % 2 else turned).ravel()
