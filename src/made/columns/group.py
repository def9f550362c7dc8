"""The columns of a table together, vectorized over columns of one kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from made.columns.base import Column
from made.columns.discrete import Binary
from made.columns.exclusive import Coupling
from made.columns.fused import Likelihood, Targets
from made.errors import DataError

Rows: TypeAlias = Tensor | ArrayLike


def _as_tensor(rows: ArrayLike) -> Tensor:
    array = np.asarray(rows)
    if array.dtype.kind not in "biufc":
        raise DataError(
            f"'rows' should be numbers, not {array.dtype}: code other values as 0, 1, ..., and missing values as NaN."
        )
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


class Columns(Sequence[Column]):
    """The columns of a table, in order: which column each unit belongs to, rows to units and units to log p.

    Arguments:
        kinds: the kind of each column.
        names: the names of the columns, for messages. Default: x1, x2, ...

    Example:
        >>> from made import Binary, Categorical
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
        self.coupling: Coupling | None = None

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

    @property
    def all_binary(self) -> bool:
        """Whether all columns are binary."""
        return all(isinstance(kind, Binary) for kind in self.kinds)

    def exclusive(self, sizes: Sequence[int], rows: int) -> Columns:
        """The same columns, with coupled logits in groups of neighbours (:mod:`made.columns.exclusive`).

        Arguments:
            sizes: the number of columns in each group; 1 for a column outside of groups.
            rows: the number of rows in which no group had two ones.
        """
        if sum(sizes) != len(self):
            raise ValueError(f"the sizes of exclusive groups should add up to {len(self)} columns, not {sum(sizes)}.")
        if max(sizes) == 1:
            return self
        grouped = np.flatnonzero(np.repeat(sizes, sizes) > 1)
        if other := [self.names[d] for d in grouped if not isinstance(self.kinds[d], Binary)]:
            raise ValueError(f"columns of exclusive groups should be binary, but '{other[0]}' is not.")
        kinds = [
            kind.in_group(size) if isinstance(kind, Binary) else kind
            for kind, size in zip(self.kinds, np.repeat(sizes, sizes).tolist(), strict=True)
        ]
        columns = Columns(kinds, self.names)
        columns.coupling = Coupling(sizes, rows, np.searchsorted(self.output_columns, grouped).tolist())
        return columns

    @property
    def groups(self) -> tuple[int, ...] | None:
        """The sizes of exclusive groups; ``None`` if there are none."""
        return None if self.coupling is None else self.coupling.sizes

    @cached_property
    def together(self) -> list[list[int]]:
        """For each column, the columns of its group; of a column outside of groups, itself alone."""
        members = [[d] for d in range(len(self))]
        if self.coupling is not None:
            places, number = self.coupling.columns, self.coupling.number
            for d, group in zip(places.tolist(), number.tolist(), strict=True):
                members[d] = places[number == group].tolist()
        return members

    @cached_property
    def _groups(self) -> list[tuple[Column, Tensor, Tensor, Tensor]]:
        """The joint kind of each family, with its columns and their input and output units."""
        with torch.inference_mode(False):  # tensors made in evaluation are cached, and used in training
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
        """Rows as a tensor, with the dtype and on the device of ``like``, and which values are missing, if any.

        Shapes: (rows, columns), with 0 in place of NaN, and (rows, columns). An error names the first value that is
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
        dtype = table.dtype if like is None else like.dtype
        if len(self._groups) == 1 and self._groups[0][0].all_valid(table):
            return self._by_family(Column.inner, table, dtype), None
        valid = self._by_family(Column.valid, table, torch.bool)
        if valid.all():
            return self._by_family(Column.inner, table, dtype), None
        absent = table.isnan()
        if not (valid | absent).all():
            row, column = (valid | absent).logical_not().nonzero()[0].tolist()
            raise DataError(
                f"column {column} ('{self.names[column]}'): {table[row, column].item():g} is not "
                f"{self.kinds[column].allowed}, nor NaN for a missing value.",
                row=row,
                column=self.names[column],
            )
        return self._by_family(Column.inner, table, dtype).masked_fill(absent, 0), absent

    def outer(self, values: Tensor) -> Tensor:
        """Values of the table, in double precision if columns are not all discrete; NaN stays NaN."""
        return self._by_family(Column.outer, values, None)

    def _by_family(
        self, method: Callable[[Column, Tensor], Tensor], table: Tensor, dtype: torch.dtype | None
    ) -> Tensor:
        """Apply a method of :class:`Column` to the columns of each family. Shapes: (rows, columns)."""
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

    @cached_property
    def joint(self) -> Likelihood | None:
        """The joint evaluation of different kinds; one kind evaluates all of its columns by itself."""
        kinds: list[Column] = list(self.kinds)
        if self.coupling is not None:  # inputs of groups differ by their sizes, likelihoods do not
            kinds = [Binary(unseen=kind.unseen) if isinstance(kind, Binary) else kind for kind in kinds]
        return None if kinds.count(kinds[0]) == len(self) else Likelihood(self.kinds)

    def targets(self, values: Tensor) -> Targets | None:
        """The terms of the likelihood that depend on the values alone, computed once for several passes."""
        return None if self.joint is None else self.joint.targets(values)

    def log_prob(self, units: Tensor, values: Tensor, targets: Targets | None = None) -> Tensor:
        """The log-likelihood of each value. Shapes: (rows, outputs), (rows, columns) to (rows, columns)."""
        if self.joint is None:
            return self.kinds[0].log_prob(units.unflatten(1, (len(self), -1)), values)
        targets = self.joint.targets(values) if targets is None else targets
        return self.joint.log_prob(units.t(), targets).t()

    def coupled(
        self, units: Tensor, values: Tensor, observed: Tensor | None = None, given: Tensor | None = None
    ) -> Tensor:
        """Output units with the logits of exclusive groups coupled. Shapes: (rows, outputs), (rows, columns) twice."""
        return units if self.coupling is None else self.coupling(units, values, observed, given)

    def per_unit(self, flags: Tensor) -> Tensor:
        """Flags of columns, repeated for their input units. Shapes: (rows, columns) to (rows, inputs)."""
        if self.inputs == len(self):
            return flags
        return flags.index_select(1, torch.from_numpy(self.input_columns).to(flags.device))

    def per_output(self, table: Tensor) -> Tensor:
        """Numbers of columns, repeated for their output units. Shapes: (columns, rows) to (outputs, rows)."""
        if self.outputs == len(self):
            return table
        return table.index_select(0, torch.from_numpy(self.output_columns).to(table.device))

    @cached_property
    def log_widths(self) -> Tensor:
        """1 for each output unit that is the logarithm of a width, 0 for all others. Shape: (outputs)."""
        return torch.tensor([float(unit in kind.log_widths) for kind in self.kinds for unit in range(kind.outputs)])

    def noise(self, uniform: Tensor) -> Tensor:
        """The random numbers that :meth:`Column.draw` takes. Shapes: (rows, columns) to (rows, columns)."""
        return self._by_family(Column.noise, uniform, uniform.dtype)

    def independent(self, values: Tensor, observed: Tensor | None = None) -> Tensor:
        """The output units of independent columns or groups. Shapes: (rows, columns) twice, to (outputs)."""
        seen = torch.ones_like(values, dtype=torch.bool) if observed is None else observed
        units = torch.cat([kind.independent(values[seen[:, d], d]) for d, kind in enumerate(self.kinds)])
        return units if self.coupling is None else self.coupling.independent(units)

    def initial(self) -> Tensor:
        """The output units before training, if the weights add nothing. Shape: (outputs)."""
        return torch.cat([kind.initial() for kind in self.kinds])
