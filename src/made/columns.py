r"""What a column is: values to input units, and the likelihood that its output units describe.

A kind of column says how many input and output units one column has, and what they mean. The network knows nothing
else about it, so that a new kind is a new subclass of :class:`Column` and nothing more. All methods work on any number
of rows and of columns of one kind at once: values are ``(...)``, and units have one axis more, ``(..., units)``.

In a table, NaN means "not observed". Only :meth:`Columns.check` meets one: whoever calls the other methods has put an
allowed value (0 always is) in its place, and leaves the result out. A kind may work on values of its own, such as
standardised ones: :meth:`Columns.check` makes them, and :meth:`Columns.outer` makes them what they were.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional as F

from made.errors import DataError
from made.unseen import Unseen

__all__ = ["Binary", "Categorical", "Column", "Columns", "Rows"]

Rows: TypeAlias = Tensor | ArrayLike


class Column(ABC):
    """A kind of column."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """The number of input units."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The number of output units."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The values that are allowed, in words."""

    @property
    def codes(self) -> int:
        """How many values 0, 1, ... the column has, each with a probability; 0 for numbers, which have no list."""
        return 0

    @property
    def cardinality(self) -> int:
        """How many of :attr:`codes` stand for a value that can be shown: all but one for "any other value"."""
        return self.codes

    @abstractmethod
    def valid(self, values: Tensor) -> Tensor:
        """Whether each value is allowed; NaN is not. Shapes: (...) to (...)."""

    @abstractmethod
    def encode(self, values: Tensor) -> Tensor:
        """Values to input units. Shapes: (...) to (..., inputs)."""

    @abstractmethod
    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        """The log-likelihood of values. Shapes: (..., outputs), (...) to (...)."""

    @abstractmethod
    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        """Values from random numbers. Shapes: (..., outputs), (...) to (...)."""

    @abstractmethod
    def mode(self, units: Tensor) -> Tensor:
        """The most likely values. Shapes: (..., outputs) to (...)."""

    def noise(self, uniform: Tensor) -> Tensor:
        """The random numbers that :meth:`draw` takes, from uniform ones. Shapes: (...) to (...)."""
        return uniform

    def mean(self, units: Tensor) -> Tensor:
        """The expected values; of a kind that has no mean, the most likely ones. Shapes: (..., outputs) to (...)."""
        return self.mode(units)

    def average(self, weights: Tensor, values: Tensor) -> Tensor:
        """Expected values under several masks, by their shares, as one. Shapes: (masks, ...), twice, to (...)."""
        return (weights * values).sum(dim=0)

    def height(self, units: Tensor, values: Tensor) -> Tensor:
        """What a mode is the highest of: the log-likelihood, made comparable. Shapes: as of :meth:`log_prob`."""
        return self.log_prob(units, values)

    def tempered(self, units: Tensor, temperature: float) -> Tensor:
        """Output units of a distribution that is sharper (below 1) or flatter (above). Shapes: (..., outputs)."""
        return units / temperature

    def initial(self) -> Tensor:
        """What the output units are before training, if the weights add nothing. Shape: (outputs)."""
        return torch.zeros(self.outputs)

    def independent(self, values: Tensor) -> Tensor:
        """What the output units are if these values depend on nothing. Shapes: (values) to (outputs)."""
        return self.initial()

    def inner(self, values: Tensor) -> Tensor:
        """Values of the table to those that all other methods, but for :meth:`valid`, work on."""
        return values

    def outer(self, values: Tensor) -> Tensor:
        """The inverse of :meth:`inner`."""
        return values

    @property
    def family(self) -> object:
        """Columns whose families are equal are worked on together."""
        return self

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        """A kind that does the work of several columns of one family, the last axis of their values."""
        return kinds[0]


LEAST_DEVIATION = 0.1  # that a standardised input is divided by


@dataclass(frozen=True)
class Binary(Column):
    r"""A column of zeros and ones: one input unit, and one output unit, the logit of :math:`\hat x_d`.

    Arguments:
        signed: code the input as -1 and +1, so that 0, the input of what is masked or not observed, is neither.
        share: the share of ones; the input is then standardised by it, so that 0 is what is expected. It is divided by
            a deviation of 0.1 at least, or rare ones would be large.
        unseen: what any other number is; its input is 0, as if it were not observed. ``None``: it is not allowed.

    Example:
        >>> Binary().log_prob(torch.zeros(2, 1), torch.tensor([0.0, 1.0])).exp()
        tensor([0.5000, 0.5000])
    """

    signed: bool = False
    share: float | Tensor | None = None
    unseen: Unseen | None = None

    inputs = 1
    outputs = 1
    codes = 2

    @property
    def allowed(self) -> str:
        return "0 or 1" if self.unseen is None else "a finite number"

    def __post_init__(self) -> None:
        if self.share is None:
            return
        if self.signed:
            raise ValueError("'signed' is for inputs that are not standardised by a 'share'.")
        if not isinstance(self.share, Tensor) and not 0 < self.share < 1:
            raise ValueError(f"'share' should be above 0 and below 1, not {self.share!r}.")

    def __repr__(self) -> str:
        coding = f"signed={self.signed}" if self.share is None else f"share={self.share}"
        return f"Binary({coding}{'' if self.unseen is None else f', unseen={self.unseen!r}'})"

    @property
    def family(self) -> object:
        return self if self.share is None else (Binary, "standardised", self.unseen)

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        first = cast(Binary, kinds[0])
        if first.share is None:
            return first
        shares = [cast(Binary, kind).share for kind in kinds]
        return Binary(share=torch.tensor(shares, dtype=torch.float64), unseen=first.unseen)

    def valid(self, values: Tensor) -> Tensor:
        return self._listed(values) if self.unseen is None else values.isfinite()

    def encode(self, values: Tensor) -> Tensor:
        if self.share is None:
            units = 2 * values - 1 if self.signed else values
        else:
            share = torch.as_tensor(self.share, dtype=values.dtype, device=values.device)
            units = (values - share) / (share * (1 - share)).sqrt().clamp(min=LEAST_DEVIATION)
        if self.unseen is not None:
            units = units.masked_fill(~self._listed(values), 0)
        return units.unsqueeze(-1)

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        logit = units.squeeze(-1)
        if self.unseen is None:
            return F.binary_cross_entropy_with_logits(logit, values, reduction="none").neg_()
        listed = self._listed(values)
        learned = F.binary_cross_entropy_with_logits(logit, values * listed, reduction="none").neg_()
        return self.unseen.combine(learned, listed, values)

    def _listed(self, values: Tensor) -> Tensor:
        return values * (values - 1) == 0

    def independent(self, values: Tensor) -> Tensor:
        return ((values.sum() + 1) / (len(values) + 2)).logit().unsqueeze(0)  # as if there were one 0 and one 1 more

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        return (units.squeeze(-1) > noise).to(units.dtype)

    def mode(self, units: Tensor) -> Tensor:
        return (units.squeeze(-1) > 0).to(units.dtype)

    def noise(self, uniform: Tensor) -> Tensor:
        return uniform.logit()


@dataclass(frozen=True)
class Categorical(Column):
    r"""A column of the values 0, ..., k - 1: k input units, one-hot, and k output units, the logits of a softmax.

    Arguments:
        k: the number of values.
        ordered: whether the values are in an order: then there are input units, too, for 'above the first', ...,
            'above the last but one', coded as -1 and +1, so that an order need not be learned.
        reserved: the least probability of the last value, which then stands for all that was never seen: a share of
            the distribution that is not learned. That value is scored, but never drawn, nor the most likely.

    Example:
        >>> Categorical(3).encode(torch.tensor([2.0, 0.0]))
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """

    k: int
    ordered: bool = False
    reserved: float = 0.0

    def __post_init__(self) -> None:
        if int(self.k) != self.k or self.k < 1:
            raise ValueError(f"'k' should be a whole number, at least 1, not {self.k!r}.")
        if not 0 <= self.reserved < 1:
            raise ValueError(f"'reserved' should be at least 0 and below 1, not {self.reserved!r}.")

    def __repr__(self) -> str:
        more = ", ordered=True" * self.ordered + (f", reserved={self.reserved:g}" if self.reserved else "")
        return f"Categorical(k={self.k}{more})"

    @property
    def inputs(self) -> int:
        return 2 * self.k - 1 if self.ordered else self.k

    @property
    def outputs(self) -> int:
        return self.k

    @property
    def codes(self) -> int:
        return self.k

    @property
    def cardinality(self) -> int:
        return self.k - (self.reserved > 0)

    @property
    def allowed(self) -> str:
        return f"a whole number from 0 to {self.k - 1}"

    def valid(self, values: Tensor) -> Tensor:
        return (values >= 0) & (values < self.k) & (values == values.floor())

    def encode(self, values: Tensor) -> Tensor:
        categories = torch.arange(self.k, dtype=values.dtype, device=values.device)
        units = (values.unsqueeze(-1) == categories).to(values.dtype)
        if not self.ordered:
            return units
        return torch.cat([units, 2 * (values.unsqueeze(-1) >= categories[1:]).to(values.dtype) - 1], dim=-1)

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        return self._log_shares(units).gather(-1, values.long().unsqueeze(-1)).squeeze(-1)

    def independent(self, values: Tensor) -> Tensor:
        counts = values.long().bincount(minlength=self.k).to(values.dtype) + 1  # as if there were one more of each
        return (counts / counts.sum()).log()

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        # The last is left out: it is 1 but for rounding, and is not to be missed.
        below = units[..., : self.cardinality].softmax(dim=-1).cumsum(dim=-1)[..., :-1]
        return (noise.unsqueeze(-1) >= below).sum(dim=-1).to(units.dtype)

    def mode(self, units: Tensor) -> Tensor:
        return units[..., : self.cardinality].argmax(dim=-1).to(units.dtype)

    def _log_shares(self, units: Tensor) -> Tensor:
        learned = units.log_softmax(dim=-1)
        if not self.reserved:
            return learned
        learned = learned + math.log1p(-self.reserved)
        last = learned[..., -1:]
        return torch.cat([learned[..., :-1], last.logaddexp(torch.full_like(last, math.log(self.reserved)))], dim=-1)


def _as_tensor(rows: ArrayLike) -> Tensor:
    array = np.asarray(rows)
    if array.dtype.kind not in "biufc":
        raise DataError(f"'rows' should be numbers, not {array.dtype}: code other values as 0, 1, ..., holes as NaN.")
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


class Columns(Sequence[Column]):
    """The columns of a table, in order: which units are whose, and rows to units and back.

    Arguments:
        kinds: the kind of each column.
        names: a name for each, for messages; x1, x2, ... unless told.

    Example:
        >>> columns = Columns([Binary(), Categorical(3)], names=["male", "home"])
        >>> columns
        Columns(1 x Binary(signed=False), 1 x Categorical(k=3))
        >>> columns.input_columns
        array([0, 1, 1, 1])
        >>> columns.check([[1, 3]])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        made.errors.DataError: row 0, column 1 ('home'): 3 is not a whole number from 0 to 2, nor ...
    """

    def __init__(self, kinds: Sequence[Column], names: Sequence[str] | None = None) -> None:
        self.kinds = tuple(kinds)
        self.names = tuple(f"x{d + 1}" for d in range(len(self.kinds))) if names is None else tuple(names)
        if not self.kinds:
            raise ValueError("'kinds' should have at least one column.")
        if wrong := [kind for kind in self.kinds if not isinstance(kind, Column)]:
            raise ValueError(f"'kinds' should be columns such as Binary() or Categorical(3), not {wrong[0]!r}.")
        if len(self.names) != len(self.kinds) or isinstance(names, str):
            raise ValueError(f"'names' should have {len(self.kinds)} elements, not {len(self.names)}.")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"'names' should differ from each other: {', '.join(self.names)}.")
        self.input_columns = np.repeat(np.arange(len(self)), [kind.inputs for kind in self.kinds])
        self.output_columns = np.repeat(np.arange(len(self)), [kind.outputs for kind in self.kinds])
        self.inputs = len(self.input_columns)
        self.outputs = len(self.output_columns)

    @classmethod
    def binary(cls, count: int, names: Sequence[str] | None = None, *, signed: bool = False) -> Columns:
        """``count`` binary columns."""
        return cls([Binary(signed)] * count, names)

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: Any) -> Any:
        return self.kinds[index]

    def __repr__(self) -> str:
        shown = [str(kind) if kind.family == kind else type(kind).__name__ for kind in self.kinds]
        return f"Columns({', '.join(f'{shown.count(kind)} x {kind}' for kind in dict.fromkeys(shown))})"

    def permuted(self, order: Sequence[int]) -> Columns:
        """The same columns in another order."""
        if self.kinds.count(self.kinds[0]) == len(self):
            return self  # one kind: its units are the same in any order
        return Columns([self.kinds[d] for d in order], [self.names[d] for d in order])

    @cached_property
    def _groups(self) -> list[tuple[Column, Tensor, Tensor, Tensor]]:
        """Each family's joint kind, with its columns and their input and output units."""
        with torch.inference_mode(False):  # what is made while evaluating is kept for training
            return self._group()

    def _group(self) -> list[tuple[Column, Tensor, Tensor, Tensor]]:
        families: dict[object, list[int]] = {}
        for d, kind in enumerate(self.kinds):
            families.setdefault(kind.family, []).append(d)
        groups = []
        for members in families.values():
            together = self.kinds[members[0]].joint([self.kinds[d] for d in members])
            of_kind = np.zeros(len(self), dtype=np.bool_)
            of_kind[members] = True
            where = (of_kind, of_kind[self.input_columns], of_kind[self.output_columns])
            columns, inputs, outputs = (torch.from_numpy(np.flatnonzero(flags)) for flags in where)
            groups.append((together, columns, inputs, outputs))
        return groups

    def check(self, rows: Rows, like: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Rows as a tensor, with the type and on the device of ``like``, and the flags of holes, if there are any.

        Shapes: (rows, columns), with 0 in place of NaN, and (rows, columns). An error names the first entry that is
        not allowed.
        """
        table = rows if isinstance(rows, Tensor) else _as_tensor(rows)
        if table.ndim != 2 or table.shape[1] != len(self):
            raise DataError(f"'rows' should have the shape (rows, {len(self)}), not {tuple(table.shape)}.")
        if table.dtype.is_complex:
            raise DataError(f"'rows' should be real numbers, not {table.dtype}.")
        if not table.dtype.is_floating_point:
            table = table.to(torch.float32)
        if like is not None:
            table = table.to(like.device)
        valid = self._by_family(Column.valid, table, torch.bool)
        dtype = table.dtype if like is None else like.dtype
        if valid.all():
            return self._by_family(Column.inner, table, dtype), None
        hole = table.isnan()
        if not (valid | hole).all():
            row, column = (valid | hole).logical_not().nonzero()[0].tolist()
            raise DataError(
                f"column {column} ('{self.names[column]}'): {table[row, column].item():g} is not "
                f"{self.kinds[column].allowed}, nor NaN for 'not observed'.",
                row=row,
                column=self.names[column],
            )
        return self._by_family(Column.inner, table, dtype).masked_fill(hole, 0), hole

    def outer(self, values: Tensor) -> Tensor:
        """Values as the table has them, in double precision if columns are not all discrete; NaN stays NaN."""
        return self._by_family(Column.outer, values, None)

    def _by_family(
        self, method: Callable[[Column, Tensor], Tensor], table: Tensor, dtype: torch.dtype | None
    ) -> Tensor:
        """A method of :class:`Column` on values, of each family's columns. Shapes: (rows, columns)."""
        parts = []
        for kind, columns, _, _ in self._groups:
            values = table if len(self._groups) == 1 else table.index_select(1, columns.to(table.device))
            parts.append(getattr(kind, method.__name__)(values))
        dtype = max((part.dtype for part in parts), key=lambda each: each.itemsize) if dtype is None else dtype
        if len(parts) == 1:
            return torch.as_tensor(parts[0], dtype=dtype)
        together = torch.empty_like(table, dtype=dtype)
        for part, (_, columns, _, _) in zip(parts, self._groups, strict=True):
            together[:, columns.to(table.device)] = part.to(dtype)
        return together

    def encode(self, values: Tensor) -> Tensor:
        """Values to input units. Shapes: (rows, columns) to (rows, inputs)."""
        if len(self._groups) == 1:
            return self._groups[0][0].encode(values).flatten(1)
        units = values.new_empty(len(values), self.inputs)
        for kind, columns, inputs, _ in self._groups:
            of_kind = kind.encode(values.index_select(1, columns.to(values.device)))
            units[:, inputs.to(values.device)] = of_kind.flatten(1)
        return units

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        """The log-likelihood of each value. Shapes: (rows, outputs), (rows, columns) to (rows, columns)."""
        if len(self._groups) == 1:
            return self._groups[0][0].log_prob(units.unflatten(1, (len(self), -1)), values)
        parts = []
        for kind, columns, _, outputs in self._groups:
            of_kind = units.index_select(1, outputs.to(units.device)).unflatten(1, (len(columns), -1))
            parts.append(kind.log_prob(of_kind, values.index_select(1, columns.to(units.device))))
        order = torch.cat([columns for _, columns, _, _ in self._groups]).argsort()
        return torch.cat(parts, dim=1).index_select(1, order.to(units.device))

    def noise(self, uniform: Tensor) -> Tensor:
        """The random numbers that each column's kind draws with. Shapes: (rows, columns) to (rows, columns)."""
        return self._by_family(Column.noise, uniform, uniform.dtype)

    def initial(self) -> Tensor:
        """What the output units are before training, if the weights add nothing. Shape: (outputs)."""
        return torch.cat([kind.initial() for kind in self.kinds])
