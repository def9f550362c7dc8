r"""Degrees and orderings, from which all masks of the paper follow.

A *connectivity* is an ordering :math:`m^0` of the columns and a degree :math:`m^l(k)` for every hidden unit. It
implies the masks of the paper's equations 12 and 13, :math:`M^{W^l}_{k',k} = 1_{m^l(k') \ge m^{l-1}(k)}` and
:math:`M^V_{d,k} = 1_{m^0(d) > m^L(k)}`. A :class:`Connectivities` is a numbered family of them. Number ``i`` is a pure
function of the family's fields and ``i``: nothing is stored, so that a list of masks costs a few integers, evaluation
uses the masks that training used, and resuming needs one number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from made.network.limits import check_masks
from made.streams import CONNECTIVITY, philox

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Connectivity:
    r"""An ordering and the degrees of every hidden layer.

    Arguments:
        ordering: :math:`m^0`, the position (from 1) of each column in the product of conditionals.
        hidden: the degrees :math:`m^1, \dots, m^L`, one array for each hidden layer.

    Example:
        The paper's Figure 1: the ordering 3, 1, 2 reads p(x2) p(x3 | x2) p(x1 | x2, x3).

        >>> figure1 = Connectivity(np.array([3, 1, 2]), (np.array([2, 1, 2, 2]), np.array([1, 2, 2, 1])))
        >>> print(figure1.describe())
        p(x2)
        p(x3 | x2)
        p(x1 | x2, x3)
        >>> figure1.masks()[-1].astype(int)
        array([[1, 1, 1, 1],
               [0, 0, 0, 0],
               [1, 0, 0, 1]])
    """

    ordering: Integers
    hidden: tuple[Integers, ...] = ()

    @property
    def degrees(self) -> tuple[Integers, ...]:
        r"""The degrees of every layer: columns as inputs, hidden layers, columns as outputs.

        An output at position d sees units of degree below d. Give it the degree d - 1, and one rule serves every layer:
        a unit sees the units of the layer before whose degree is at most its own.
        """
        return (self.ordering, *self.hidden, self.ordering - 1)

    def equals(self, other: Connectivity) -> bool:
        """Whether all degrees are the same."""
        mine, theirs = self.degrees, other.degrees
        return len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))

    def masks(self) -> list[NDArray[np.bool_]]:
        r"""The masks :math:`M^{W^1}, \dots, M^{W^L}, M^V` as arrays over columns: for inspection only."""
        degrees = self.degrees
        return [after[:, None] >= before[None, :] for before, after in pairwise(degrees)]

    def dependencies(self, *, direct: bool = False) -> NDArray[np.bool_]:
        r"""The columns (second axis) that the output of each column (first axis) depends on.

        These are the nonzero entries of the product of the masks, the number of paths in the paper's equation 10.
        ``direct`` adds the direct connections A (equation 11).
        """
        masks = self.masks()
        paths = masks[0]
        for mask in masks[1:]:
            paths = (mask.astype(np.float32) @ paths.astype(np.float32)) > 0
        if direct:
            paths = paths | (self.ordering[:, None] > self.ordering[None, :])
        # Columns of a group share a position, and see those before them in the group.
        together: NDArray[np.bool_] = np.tril(self.ordering[:, None] == self.ordering[None, :], -1)
        return paths | together

    def describe(self, names: Sequence[str] | None = None, *, direct: bool = False) -> str:
        """The product of conditionals as text, one factor per line, with the columns that each depends on."""
        names = [f"x{d + 1}" for d in range(len(self.ordering))] if names is None else names
        paths = self.dependencies(direct=direct)
        lines = []
        for d in np.argsort(self.ordering, kind="stable").tolist():
            given = ", ".join(names[g] for g in np.flatnonzero(paths[d]).tolist())
            lines.append(f"p({names[d]} | {given})" if given else f"p({names[d]})")
        return "\n".join(lines)

    def with_last(self, columns: NDArray[np.bool_]) -> Connectivity:
        """The same degrees, with the marked columns moved to the end of the ordering, otherwise in the same order."""
        last = np.zeros(self.ordering.max() + 1, dtype=np.bool_)
        last[self.ordering[columns]] = True  # positions, of which exclusive columns have the same one
        positions = np.argsort(last[1:], kind="stable").argsort() + 1
        return replace(self, ordering=positions[self.ordering - 1])


@dataclass(frozen=True)
class Connectivities:
    r"""A numbered family of connectivities: a finite list of R masks, or an unlimited supply.

    Arguments:
        columns: D, the number of columns.
        hidden_sizes: the number of units :math:`K^l` of each hidden layer; empty for none.
        masks: R, the length of the list, through which numbers cycle; ``None`` for unlimited.
        ordering: the ordering of number 0, ``"natural"`` (1, ..., D) or ``"random"``.
        resample: what changes from number to number: ``"ordering"``, ``"degrees"``, ``"both"`` or ``"neither"``.
        residual: hidden layers of equal size share their degrees, so that residual connections can join their units.
        seed: the seed of orderings and degrees.
        whole_rows: the number of masks, the first of an unlimited supply, that are reserved for whole rows: these are
            evaluated under them alone, in one pass each (see :mod:`made.queries.schedule`).
        incomplete_rows: whether rows with missing values are evaluated under these masks, too.
        groups: the sizes of groups of neighbouring columns, each of which has one position in the ordering
            (:mod:`made.columns.exclusive`), of an unlimited supply. Default: every column has its own.
        orders: the orderings of the first numbers, instead of random ones: of each the columns, or groups, first to
            last.
        weights: the weights of the masks for whole rows in a mean of probabilities. Default: all the same.

    Example:
        >>> family = Connectivities(4, (5,), masks=2, ordering="random", seed=0)
        >>> family[0].ordering, family[0].hidden[0]
        (array([1, 3, 2, 4]), array([1, 1, 3, 2, 3]))
        >>> [bool((family[i].ordering == family[i + 2].ordering).all()) for i in range(3)]
        [True, True, True]
    """

    columns: int
    hidden_sizes: tuple[int, ...] = ()
    masks: int | None = 1
    ordering: Literal["natural", "random"] = "natural"
    resample: Literal["both", "ordering", "degrees", "neither"] = "both"
    residual: bool = False
    seed: int = 0
    whole_rows: int = 0
    incomplete_rows: bool = False
    groups: tuple[int, ...] | None = None
    orders: tuple[tuple[int, ...], ...] = ()
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("columns", 1), ("masks", 1), ("whole_rows", 0), ("seed", 0)):
            value = getattr(self, name)
            if value is None and name == "masks":
                continue
            if not isinstance(value, (int, np.integer)) or value < least:
                unlimited = ", or None for unlimited" if name == "masks" else ""
                raise ValueError(f"'{name}' should be a whole number, at least {least}{unlimited}, not {value!r}.")
            object.__setattr__(self, name, int(value))
        if self.seed >= 2**63:
            raise ValueError(f"'seed' should be below 2**63, not {self.seed}.")
        sizes = self.hidden_sizes
        if not isinstance(sizes, (tuple, list)) or not all(isinstance(k, (int, np.integer)) and k > 0 for k in sizes):
            raise ValueError(f"'hidden_sizes' should be whole numbers, at least 1, one for each layer, not {sizes!r}.")
        object.__setattr__(self, "hidden_sizes", tuple(int(size) for size in sizes))
        for name, choice, choices in (
            ("ordering", self.ordering, ("natural", "random")),
            ("resample", self.resample, ("both", "ordering", "degrees", "neither")),
        ):
            if choice not in choices:
                raise ValueError(f"'{name}' should be one of {', '.join(choices)}, not {choice!r}.")
        if self.whole_rows and not self.any_order:
            raise ValueError("'whole_rows' is for unlimited masks with resampled orderings.")
        if self.groups is not None:
            if not self.any_order:
                raise ValueError("'groups' is for unlimited masks with resampled orderings.")
            object.__setattr__(self, "groups", tuple(self.groups))
            if not self.groups or min(self.groups) < 1 or sum(self.groups) != self.columns:
                raise ValueError(f"'groups' should be sizes that add up to {self.columns}, not {self.groups!r}.")
        object.__setattr__(self, "orders", tuple(map(tuple, self.orders)))
        for order in self.orders:
            if sorted(order) != list(range(self.positions)):
                raise ValueError(f"'orders' should have permutations of 0 to {self.positions - 1}, not {order!r}.")
        object.__setattr__(self, "weights", tuple(self.weights))
        sound = len(self.weights) == self.whole_rows and all(0 <= weight <= 1 for weight in self.weights)
        if self.weights and not (sound and max(self.weights)):
            raise ValueError(f"'weights' should be {self.whole_rows} shares, not {self.weights!r}.")

    @property
    def positions(self) -> int:
        """The number of positions in an ordering: one for each column, or each group of columns."""
        return self.columns if self.groups is None else len(self.groups)

    def count_positions(self, columns: NDArray[np.bool_]) -> int:
        """The number of positions of the marked columns."""
        number = np.arange(self.columns) if self.groups is None else np.repeat(np.arange(self.positions), self.groups)
        return len(np.unique(number[columns]))

    @property
    def single(self) -> bool:
        """Whether every number gives the same connectivity."""
        return self.masks == 1 or self.resample == "neither"

    @property
    def any_order(self) -> bool:
        """Whether any set of columns can come first, so that any columns can be given, asked for or left out."""
        return self.masks is None and self.resample in ("both", "ordering")

    def numbers(self, count: int | Sequence[int] | None = None) -> list[int]:
        """The numbers of the masks to average.

        Arguments:
            count: how many of an unlimited supply, the first ones (default: 16), or the numbers themselves. A finite
                list is averaged in full by default.
        """
        if count is not None and not isinstance(count, (int, np.integer)):
            numbers = np.asarray(count)
            if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iu" or numbers.min() < 0:
                raise ValueError(f"'masks' should be a count, or the numbers of at least one mask, not {count!r}.")
            return [int(number) for number in numbers]
        if count is not None and count < 1:
            raise ValueError(f"'masks' should be at least 1, not {count}.")
        if count is not None:
            check_masks(count)
        if self.single:
            return [0]
        if self.masks is not None:
            if count is not None and count != self.masks:
                raise ValueError(
                    f"'masks' is {count}, but this model has a list of {self.masks}: leave it out to average all of "
                    "them, or name some as a sequence of numbers."
                )
            return list(range(self.masks))
        return list(range(16 if count is None else count))

    def __getitem__(self, number: int) -> Connectivity:
        return self.draw(number)

    def __iter__(self) -> Iterator[Connectivity]:
        return (self[number] for number in self.numbers())

    def draw(self, number: int, *, lowest: Literal[0, 1] = 1, window: tuple[int, int] | None = None) -> Connectivity:
        r"""Connectivity ``number``.

        Arguments:
            number: its number.
            lowest: the lowest degree of a hidden unit. The paper excludes 0, because such a unit is constant. If
                columns are given, it sees those and is useful: then it is 0.
            window: the lowest and the highest degree of a hidden unit, (begin, end - 1), for a pass that evaluates only
                the columns at positions begin + 1 to end: every unit sees all columns up to ``begin``.
        """
        if number < 0:
            raise ValueError(f"'number' should be at least 0, not {number}.")
        number = number if self.masks is None else number % self.masks
        of_ordering = number if self.resample in ("both", "ordering") else 0
        of_degrees = number if self.resample in ("both", "degrees") else 0
        natural = self.ordering == "natural" and of_ordering == 0
        positions = self.positions
        ordering = np.arange(1, positions + 1)
        if of_ordering < len(self.orders):
            ordering[list(self.orders[of_ordering])] = np.arange(1, positions + 1)
        elif not natural:
            # A permutation by sorting raw bits: the same on every platform, and for every version of numpy.
            order = np.argsort(philox(self.seed, CONNECTIVITY, of_ordering).random_raw(positions), kind="stable")
            ordering[order] = np.arange(1, positions + 1)
        if self.groups is not None:
            ordering = np.repeat(ordering, self.groups)
        hidden: list[Integers] = []
        low, high = (min(lowest, positions - 1), positions - 1) if window is None else window
        for layer, size in enumerate(self.hidden_sizes):
            if self.residual and layer > 0 and size == self.hidden_sizes[layer - 1]:
                hidden.append(hidden[-1])
                continue
            # The high half of a 32 x 32 bit product maps bits to [low, high], uniform up to 2**-32.
            width = np.uint64(high - low + 1)
            bits = philox(self.seed, CONNECTIVITY, of_degrees, layer + 1).random_raw(size) >> np.uint64(32)
            hidden.append(low + ((bits * width) >> np.uint64(32)).astype(np.int64))
            low = int(hidden[-1].min())
        return Connectivity(ordering, tuple(hidden))

    def digest(self) -> str:
        """A fingerprint of the first connectivities, stored with a model and compared when it is loaded."""
        sha = hashlib.sha256()
        for number in range(min(self.masks or 4, 4)):
            for lowest in (0, 1):
                connectivity = self.draw(number, lowest=lowest)
                for degrees in (connectivity.ordering, *connectivity.hidden):
                    sha.update(degrees.astype("<i8").tobytes())
        return sha.hexdigest()
