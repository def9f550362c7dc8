r"""MADE whose units are tied: K of them at every degree, D K in all, which share their weights from degree to degree.

In one ordering, with one hidden layer, that is NADE (:mod:`made.baselines.nade`), and has its cost, O(DK) for a row.
Here it learns several orderings o, one in each update, as MADE learns masks, and answers with the mean of them. So that
units know which columns they see, there are conditioning weights U, whose sum over the blocks of columns that are
behind is a bias (a block, and not a column, because a hidden layer can then be one for several columns; see
:mod:`made.baselines.states`),

.. math::
    h_i &= g\Bigl(b + \sum_{j < i} W_{o_j} x_{o_j} + \sum_{j \text{ in blocks before } i} U_{o_j}\Bigr) \\
    p_o(x) &= \prod_i p(x_{o_i} \mid x_{o_{<i}}), \quad p(x_{o_i} = 1 \mid x_{o_{<i}}) = \sigma(c_{o_i} + V_{o_i} h_i),
    \quad p(x) = \frac{1}{R} \sum_r p_{o_r}(x).

Inputs may be standardised, :math:`(x - \mu) / s`; :math:`\mu` is taken off where U is added, once a block is behind.

If some of the updates are in orderings of their own, it can be asked for any columns given any others: an ordering in
which these come first has the answer. EoNADE is the same model, but learns by asking for a random part of each row
given the rest; an update here asks for every column of each row, given all before it.
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

from made.baselines.learning import Report, learn, one_thread, shares
from made.baselines.moves import DIRECTIONS, Moves
from made.baselines.nade import NADE, ROWS_AT_A_TIME, NADENetwork, by_columns
from made.baselines.protocol import LogProb
from made.baselines.rows import asked, at_least, learned, whole
from made.baselines.states import BLOCK, logits_by_states
from made.columns.discrete import LEAST_DEVIATION
from made.errors import DataError
from made.training.config import TrainingConfig

__all__ = ["TiedMADE", "TiedNetwork", "walk"]

JUDGES = 4  # of the orderings, which are averaged after an epoch


class TiedNetwork(NADENetwork):
    """The parameters of NADE, in the order of the first ordering, and what more a tied network has.

    Arguments:
        columns: D.
        units: K.
        told: whether units are told which columns they see, by conditioning weights U.
        standardized: whether inputs are standardised, and columns begin independent; see :meth:`start`.
        line: how many columns are a block; without U it is one that has a bias for itself, as a line of an image. 0 for
            blocks of the usual size, and no such bias.
        directions: in how many a row may have been moved, which it is told (:mod:`made.baselines.moves`).
        others: of :class:`made.baselines.nade.NADENetwork`.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        columns: int,
        units: int,
        *,
        told: bool = False,
        standardized: bool = False,
        line: int = 0,
        directions: int = 0,
        **others: Any,
    ) -> None:
        super().__init__(columns, units, **others)
        self.width = line or BLOCK
        self.blocks = -(-columns // self.width)
        self.U = nn.Parameter(torch.zeros(columns, units)) if told else None
        self.b_line = nn.Parameter(torch.zeros(self.blocks, units)) if line and not told else None
        self.b_moved = nn.Parameter(torch.zeros(directions, units)) if directions else None
        self.standardized = standardized
        if standardized:
            self.register_buffer("mean", torch.zeros(columns))
            self.register_buffer("scale", torch.ones(columns))

    def start(self, x: Tensor, seed: int) -> None:
        """Begin where independent columns are; with standardised inputs, from W of a size that fits them, and no V."""
        self.start_independent(x)
        if self.standardized:
            share, generator = shares(x), torch.Generator().manual_seed(seed)
            self.mean.copy_(share)
            self.scale.copy_((share * (1 - share)).sqrt().clamp(min=LEAST_DEVIATION))
            nn.init.normal_(self.W, std=(2 / len(share)) ** 0.5, generator=generator)
            nn.init.zeros_(self.V)

    def weights(self, ordering: Tensor, units: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """W, V and c in an ordering, and what is added to the activations of each block; of some units, or of all."""

        def of(weight: Tensor) -> Tensor:
            return weight if units is None else weight[:, units]

        W, V, told = of(self.W), of(self.V), None if self.b_line is None else of(self.b_line)
        U = None if self.U is None else of(self.U)
        if self.standardized:
            W = W / self.scale.unsqueeze(1)
            U = None if U is None else U - self.mean.unsqueeze(1) * W
        if U is not None:
            padded = F.pad(U[ordering], (0, 0, 0, -len(U) % self.width))
            by_block = padded.view(self.blocks, self.width, U.shape[1]).sum(dim=1)
            told = by_block.cumsum(dim=0) - by_block
        return W[ordering], V[ordering], self.c[ordering], told

    def in_ordering(
        self,
        x: Tensor,
        ordering: Tensor,
        generator: torch.Generator | None = None,
        directions: Tensor | None = None,
    ) -> Tensor:
        """The logits, columns as they come in the ordering. Shapes: (rows, D), (D), and (rows) to (rows, D)."""
        b: Tensor = self.b
        if directions is not None:
            if self.b_moved is None:
                raise ValueError("'directions' should be left out: this network was not made for rows that were moved.")
            b = b + F.embedding(directions, F.pad(self.b_moved, (0, 0, 1, 0)))
        x, units = x[:, ordering], None
        if self.training and self.dropout:
            units = (torch.rand(len(self.b), generator=generator) >= self.dropout).nonzero().squeeze(1)
            b = b[..., units]
        W, V, c, told = self.weights(ordering, units)
        if units is not None:
            V = V / (1 - self.dropout)
        x = self.leave_out(x, generator)
        return logits_by_states(x, W, b, V, c, told, activation=self.activation, width=self.width)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The logits in the first ordering. Shapes: (rows, D) to (rows, D)."""
        return self.in_ordering(x, torch.arange(x.shape[1], device=x.device), generator)

    def log_prob(self, x: Tensor, ordering: Tensor, first: int = 0) -> Tensor:
        """log p of the columns from the ``first`` in an ordering, given those before; in double precision.

        Shapes: (rows, D) and (D) to (rows).
        """
        with torch.no_grad(), one_thread():
            parts = []
            for some in x.split(ROWS_AT_A_TIME):
                logits, values = self.in_ordering(some, ordering), some[:, ordering]
                terms = F.binary_cross_entropy_with_logits(logits, values, reduction="none")
                parts.append(-terms[:, first:].sum(dim=1, dtype=torch.float64))
            return torch.cat(parts)

    def draw(self, noise: Tensor) -> Tensor:
        """Rows of the first ordering from uniform numbers. Shapes: (rows, D) to (rows, D)."""
        return self.draw_in_ordering(noise, torch.arange(noise.shape[1], device=noise.device))

    def draw_in_ordering(self, noise: Tensor, ordering: Tensor) -> Tensor:
        """Rows from uniform numbers, column after column. Shapes: (rows, D) and (D) to (rows, D)."""
        W, V, c, told = self.weights(ordering)
        b: Tensor = self.b
        u: Tensor | None = None
        if told is not None:  # what activations get from the last column of a block
            b, u = b + told[0], torch.zeros_like(W)
            u[self.width - 1 : -1 : self.width] = told.diff(dim=0)
        x, _ = by_columns(W, b, V, c, u, activation=self.activation, noise=noise)
        return x[:, ordering.argsort()]


class TiedMADE:
    """A tied network of one hidden layer, and the mean of its orderings: an exact likelihood.

    Arguments:
        hidden_size: K, the number of units at each degree.
        ordering: what the orderings are: ``"random"``, functions of the seed; for images a ``"walk"``, see
            :func:`walk`, the first of them by the seed; ``"natural"``, which is one.
        orderings: R, how many there are.
        any_order: the share of updates that are in a random ordering of their own, so that any question has an answer.
        activation: of the hidden units, ``"sigmoid"`` or ``"relu"``.
        standardized: whether inputs are standardised, and columns begin independent.
        dropout: the probability with which a hidden unit is left out in training.
        input_dropout: the same of an input.
        line: how many columns are a block, as a line of an image; 0 for blocks of the usual size.
        moved: the share of rows that are moved by a pixel in training, which it is told; log p is that of others.
        image: the height and the width of an image, for a walk, and if rows are moved.
        seed: the seed of everything that is random.
        report: called after each epoch with its number, the mean log-likelihood of validation rows, as far as a few of
            the orderings tell, and the seconds.
        training: what is to differ in :data:`TRAINING`, of :class:`made.training.config.TrainingConfig`: learning_rate,
            schedule, weight_decay, clip, average, batch_size, max_epochs, patience.

    Attributes:
        network_: the parameters.
        orderings_: the columns as they come in each ordering, (R, D).
        size: the number of parameters.

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

    TRAINING = NADE.TRAINING

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
        seed: int = 0,
        report: Report | None = None,
        **training: Any,
    ) -> None:
        if ordering not in ("random", "walk", "natural"):
            raise ValueError(f"'ordering' should be random, walk or natural, not {ordering!r}.")
        self.hidden_size, self.orderings = at_least("hidden_size", hidden_size, 1), at_least("orderings", orderings, 1)
        self.line, self.seed = at_least("line", line, 0), at_least("seed", seed, 0)
        if not 0 <= any_order <= 1:
            raise ValueError(f"'any_order' should be a share from 0 to 1, not {any_order!r}.")
        if moved and image is None:
            raise ValueError("'image' should be told where rows are moved.")
        self.ordering, self.any_order, self.report = ordering, any_order, report
        self.activation, self.standardized = activation, standardized
        self.dropout, self.input_dropout, self.moved, self.image = dropout, input_dropout, moved, image
        self.training = self.TRAINING | training

    def fit(self, train: ArrayLike, valid: ArrayLike, *, seconds: float | None = None) -> Self:
        """Maximise the likelihood of rows in all orderings, and keep the epoch that is best on others."""
        rows, others = learned(train, valid)
        network, first = self._begin(rows.shape[1]), self.orderings_[0]
        x, y = (torch.from_numpy(each[:, first]).float() for each in (rows, others))
        network.start(x, self.seed)
        moves = Moves(self.image, first, self.moved) if self.moved and self.image is not None else None

        def loss(batch: Tensor, generator: torch.Generator) -> Tensor:
            seen, directions = (batch, None) if moves is None else moves(batch, generator)
            ordering = self._next(generator)
            logits = network.in_ordering(seen, ordering, generator, directions)
            return F.binary_cross_entropy_with_logits(logits, seen[:, ordering], reduction="sum") / len(batch)

        config = TrainingConfig(**self.training, max_seconds=seconds, seed=self.seed)
        slower = {} if network.U is None else {"U": len(first) ** 0.5}  # see made.network.Network.slower
        self.best_epoch_, self.epochs = learn(
            network, x, loss, lambda: self._mean(y, self.places_[:JUDGES]).mean().item(), config, self.report, slower
        )
        self.columns_ = len(first)
        return self

    def restore(self, weights: Mapping[str, Tensor]) -> Self:
        """A fitted model, from the weights that ``network_`` had."""
        self._begin(len(weights["c"])).load_state_dict(weights)
        self.network_.eval()
        self.columns_ = len(weights["c"])
        return self

    def _begin(self, columns: int) -> TiedNetwork:
        self.orderings_ = self._orderings(columns)
        places = np.argsort(self.orderings_[0])  # of the columns, in the first ordering
        self.places_ = torch.from_numpy(places[self.orderings_])
        self.network_ = TiedNetwork(
            columns,
            self.hidden_size,
            told=self.orderings > 1 or self.any_order > 0,
            standardized=self.standardized,
            activation=self.activation,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            line=self.line,
            directions=DIRECTIONS if self.moved else 0,
            seed=self.seed,
        )
        self.size = sum(weight.numel() for weight in self.network_.parameters())
        return self.network_

    def _orderings(self, columns: int) -> NDArray[np.intp]:
        numbers = range(self.orderings)
        if self.ordering == "random":
            random = np.random.default_rng(self.seed)
            return np.stack([random.permutation(columns) for _ in numbers])
        walks = self.ordering == "walk"
        found = np.stack([walk(self.image, self.seed + each) if walks else np.arange(columns) for each in numbers])
        if found.shape[1] != columns:
            raise ValueError(f"'image' should have {columns} pixels, as a row has, not {found.shape[1]}.")
        if (different := len(np.unique(found, axis=0))) < self.orderings:
            raise ValueError(f"'orderings' should be at most {different}, as there are no more of them.")
        return found

    def _next(self, generator: torch.Generator) -> Tensor:
        """The ordering of an update."""
        if self.any_order and torch.rand((), generator=generator) < self.any_order:
            return torch.randperm(self.places_.shape[1], generator=generator)
        number = int(torch.randint(self.orderings, (), generator=generator)) if self.orderings > 1 else 0
        return self.places_[number]

    def _mean(self, x: Tensor, orderings: Tensor, first: int = 0) -> Tensor:
        each = [self.network_.log_prob(x, ordering, first) for ordering in orderings]
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))

    def log_prob(self, rows: ArrayLike, *, given: Iterable[int] = ()) -> LogProb:
        """log p of each row, exact: that of the mean of the R orderings.

        Arguments:
            rows: the rows.
            given: the numbers of columns that are conditioned on, of a model that learned any order; log p is that of
                the others, in orderings in which these come first. It is exact, and as good as what training has seen:
                a random part of the columns is, half of an image may well not be.
        """
        x = torch.from_numpy(asked(self, rows)[:, self.orderings_[0]]).to(self.network_.c.dtype)
        known = np.array(list(given))
        if not len(known):
            return LogProb(self._mean(x, self.places_).numpy())
        if not self.any_order:
            raise ValueError("'given' needs a model that learned any order: 'any_order' above 0.")
        before = np.isin(self.orderings_, known)
        if known.dtype.kind not in "iu" or known.ndim != 1 or before[0].sum() != len(known):
            raise ValueError(f"'given' should be some of the columns 0 to {self.columns_ - 1}, each once, not {given}.")
        orderings = self.places_.gather(1, torch.from_numpy(np.argsort(~before, axis=1, kind="stable")))
        return LogProb(self._mean(x, orderings, len(known)).numpy())

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """New rows, each in one of the orderings, which is drawn first."""
        count, generator = whole(self, n), torch.Generator().manual_seed(seed)
        chosen = torch.randint(self.orderings, (count,), generator=generator)
        noise = torch.rand(count, self.columns_, generator=generator, dtype=torch.float64).to(self.network_.c.dtype)
        drawn = np.empty(noise.shape, dtype=np.uint8)
        with torch.no_grad():
            for number, ordering in enumerate(self.places_):
                here = chosen == number
                x = self.network_.draw_in_ordering(noise[here], ordering)
                drawn[np.ix_(here.numpy(), self.orderings_[0])] = x.numpy()
        return drawn


def walk(image: tuple[int, int] | None, number: int) -> NDArray[np.intp]:
    """The pixels of an image, in one of eight orderings: along rows or columns, from each of the corners.

    Example:
        >>> [walk((2, 2), number).tolist() for number in range(3)]
        [[0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0]]
    """
    if image is None:
        raise DataError("a walk is for rows that are images.")
    if len(image) != 2:
        raise ValueError(f"'image' should be a height and a width, not {image!r}.")
    down, right = ((1, 1), (-1, -1), (1, -1), (-1, 1))[number // 2 % 4]
    turned = np.arange(image[0] * image[1]).reshape(image)[::down, ::right]
    return (turned.T if number % 2 else turned).ravel()
