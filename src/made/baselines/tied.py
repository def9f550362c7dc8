r"""MADE with tied units: K of them at every degree, D K in all, which share their weights across degrees.

In one ordering, with one hidden layer, this is NADE (:mod:`made.baselines.nade`), at its cost of O(DK) for a row. Here
it is trained on several orderings o, one in each update, as MADE is on masks, and its likelihood is their mean. Units
know which columns they see by conditioning weights U, whose sum over the preceding blocks of columns is a bias (blocks
instead of columns, so that columns can share a hidden layer; see :mod:`made.baselines.blocked_nade`),

.. math::
    h_i &= g\Bigl(b + \sum_{j < i} W_{o_j} x_{o_j} + \sum_{j \text{ in blocks before } i} U_{o_j}\Bigr) \\
    p_o(x) &= \prod_i p(x_{o_i} \mid x_{o_{<i}}), \quad p(x_{o_i} = 1 \mid x_{o_{<i}}) = \sigma(c_{o_i} + V_{o_i} h_i),
    \quad p(x) = \frac{1}{R} \sum_r p_{o_r}(x).

Inputs may be standardized, :math:`(x - \mu) / s`; :math:`\mu` is subtracted where U is added, after each block.

If some of the updates use random orderings, any columns can be conditioned on: they come first in an ordering. EoNADE
is the same model, but its updates predict a random part of each row given the rest; an update here predicts every
column given all before it.

Images may also be shifted by one pixel in training (distribution augmentation: Jun et al., ICML 2020). A network that
merely saw shifted images would assign them probability. One that has the shift of each image as an input shares
statistical strength with them, and is queried about images that are not shifted: its likelihood stays exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional as F

from made.baselines.nade import NADE, NADENetwork, sample_orderings
from made.baselines.protocol import LogProb
from made.errors import DataError
from made.parameters import check_integer

VALIDATION_ORDERINGS = 4  # averaged after each epoch
DIRECTIONS = 8  # of shifted images


class TiedMADE(NADE):
    """A tied network with one hidden layer, and the mean of its orderings: an exact likelihood.

    Arguments:
        hidden_size: K, the number of units at each degree.
        ordering: ``"random"`` orderings, functions of the seed; for images a ``"walk"``, see :func:`scan_ordering`,
            where the seed is the number of the first; or the ``"natural"`` one.
        orderings: R, the number of orderings.
        any_order: the share of updates with a random ordering, so that any columns can be conditioned on.
        standardized: whether inputs are standardized, and columns start independent.
        line: the columns of a block, as a line of an image; 0 for blocks of the default width.
        moved: the share of rows that are shifted by a pixel in training.
        image: height and width of an image, for ``"walk"`` and ``moved``.
        others: the other arguments of :class:`made.baselines.nade.NADE`. The reported likelihood is under a few of the
            orderings.

    Attributes:
        network_: the parameters.
        orderings_: the columns in each ordering, (R, D).

    Example:
        >>> rows = [[0, 0, 0], [1, 1, 1]] * 100  # three equal coins, log 2 = 0.69
        >>> model = TiedMADE(16, orderings=2, any_order=0.5, max_epochs=60, learning_rate=0.05)
        >>> model.fit(rows[:150], rows[150:]).log_prob(rows).kind, model.size
        ('exact', 163)
        >>> -model.log_prob(rows).mean() < 1, -model.log_prob(rows, given=[2]).mean() < 0.3
        (True, True)
    """

    def __init__(
        self,
        hidden_size: int = 500,
        *,
        ordering: Literal["random", "walk", "natural"] = "random",
        orderings: int = 1,
        any_order: float = 0.0,
        standardized: bool = False,
        line: int = 0,
        moved: float = 0.0,
        image: tuple[int, int] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(check_integer("hidden_size", hidden_size, 1), ordering=ordering, **others)
        if ordering not in ("random", "walk", "natural"):
            raise ValueError(f"'ordering' should be random, walk or natural, not {ordering!r}.")
        self.orderings, self.line = check_integer("orderings", orderings, 1), check_integer("line", line, 0)
        self.seed = check_integer("seed", self.seed, 0)
        if not 0 <= any_order <= 1:
            raise ValueError(f"'any_order' should be a share from 0 to 1, not {any_order!r}.")
        if moved and image is None:
            raise ValueError("'image' should be the height and width of a row if 'moved' is above 0.")
        self.any_order, self.standardized, self.moved, self.image = any_order, standardized, moved, image

    def restore(self, weights: Mapping[str, Tensor]) -> Self:
        """The fitted model whose ``network_`` has this state dictionary."""
        self.columns_ = len(weights["c"])
        self._begin(self.columns_).load_state_dict(weights)
        self.network_.eval()
        self.size = sum(weight.numel() for weight in self.network_.parameters())
        return self

    def _begin(self, columns: int, **options: Any) -> NADENetwork:
        conditioning, directions = self.orderings > 1 or self.any_order > 0, DIRECTIONS if self.moved else 0
        options |= {"conditioning": conditioning, "standardized": self.standardized, "line": self.line}
        network = super()._begin(columns, **options, directions=directions)
        self.places_ = torch.from_numpy(np.argsort(self.ordering_)[self.orderings_])  # in the first ordering
        self.shifts_ = ImageShifts(self.image, self.ordering_, self.moved) if self.moved and self.image else None
        return network

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

    def _loss(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        directions = None
        if self.shifts_ is not None:
            batch, directions = self.shifts_(batch, generator)
        ordering = self.next_ordering(generator)
        batch = batch[:, ordering]
        logits = self.network_(batch, ordering, generator, directions)
        return F.binary_cross_entropy_with_logits(logits, batch, reduction="sum") / len(batch)

    def next_ordering(self, generator: torch.Generator) -> Tensor:
        """The ordering of an update, as positions in the first one. Shape: (D)."""
        if self.any_order and torch.rand((), generator=generator) < self.any_order:
            return torch.randperm(self.places_.shape[1], generator=generator)
        number = int(torch.randint(self.orderings, (), generator=generator)) if self.orderings > 1 else 0
        return self.places_[number]

    def _score(self, x: Tensor) -> float:
        return self._mean(x, self.places_[:VALIDATION_ORDERINGS]).mean().item()

    def _mean(self, x: Tensor, orderings: Tensor, first: int = 0) -> Tensor:
        each = [self.network_.log_prob(x, ordering, first) for ordering in orderings]
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))

    def log_prob(self, rows: ArrayLike, *, given: Iterable[int] = ()) -> LogProb:
        """Exact log p of each row, under the ensemble of the R orderings.

        Arguments:
            rows: the rows.
            given: columns to condition on, for a model with ``any_order``; the result is log p of the other columns.
                Random subsets occur in training; structured ones, such as half of an image, may be fitted less well.
        """
        x = torch.from_numpy(self.check_rows(rows)[:, self.ordering_]).to(self.network_.c.dtype)
        known = np.array(list(given))
        if not len(known):
            return LogProb(self._mean(x, self.places_).numpy())
        if not self.any_order:
            raise ValueError("'given' needs a model with 'any_order' above 0.")
        before = np.isin(self.orderings_, known)
        if known.dtype.kind not in "iu" or known.ndim != 1 or before[0].sum() != len(known):
            raise ValueError(f"'given' should be some of the columns 0 to {x.shape[1] - 1}, each once, not {given}.")
        orderings = self.places_.gather(1, torch.from_numpy(np.argsort(~before, axis=1, kind="stable")))
        return LogProb(self._mean(x, orderings, len(known)).numpy())

    def _sample(self, n: int, seed: int) -> Tensor:
        x = sample_orderings(self.network_.sample, self.places_, n, self.network_.c.dtype, seed)
        return x[:, np.argsort(self.ordering_)]


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


class ImageShifts:
    """Random shifts of images by one pixel, horizontal, vertical or diagonal, padded with zeros.

    Arguments:
        image: height and width.
        ordering: the pixel of each column of a row.
        share: the share of rows that are shifted.

    Example:
        >>> shifts = ImageShifts((1, 3), np.arange(3), share=0.0)
        >>> shifts(torch.tensor([[1.0, 0.0, 1.0]]), torch.Generator())  # direction 0: not shifted
        (tensor([[1., 0., 1.]]), tensor([0]))
        >>> shifts.shift(torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([4]))
        tensor([[0., 1., 0.]])
    """

    def __init__(self, image: tuple[int, int], ordering: NDArray[np.intp], share: float) -> None:
        (height, width), pixels = image, len(ordering)
        if height * width != pixels:
            raise ValueError(f"'image' should have {pixels} pixels, as a row has, not {height} x {width}.")
        if not 0 <= share < 1:
            raise ValueError(f"'moved' should be at least 0 and below 1, not {share}.")
        places = np.pad(np.argsort(ordering).reshape(image), 1, constant_values=pixels)
        corners = sorted(((y, x) for y in range(3) for x in range(3)), key=lambda corner: corner != (1, 1))
        shifted = [places[y : y + height, x : x + width].ravel()[ordering] for y, x in corners]
        self.sources, self.share = torch.from_numpy(np.stack(shifted)), share

    def __call__(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Shifted rows and the direction of each, 0 (not shifted) to 8. Shapes: (rows, D) to (rows, D) and (rows)."""
        directions = torch.randint(1, DIRECTIONS + 1, (len(x),), generator=generator)
        directions *= torch.rand(len(x), generator=generator) < self.share
        return self.shift(x, directions), directions

    def shift(self, x: Tensor, directions: Tensor) -> Tensor:
        """Rows shifted in the given directions. Shapes: (rows, D) and (rows) to (rows, D)."""
        return F.pad(x, (0, 1)).gather(1, self.sources.to(x.device)[directions])
