"""The schema of a table: the kind of each column, and the conversion between values and codes."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from made.columns.group import Columns
from made.columns.registry import kind_names
from made.display import listed
from made.errors import DataError, ParameterError, UninformativeError, UnseenWarning
from made.tables.cuts import find_cuts
from made.tables.field import Field
from made.tables.infer_schema import infer
from made.tables.plain import Dtype, Values
from made.tables.restore import fill_missing, rebuild
from made.tables.storage import DEFAULTS
from made.tables.summary import TableSummary
from made.tables.table import Table

Kinds: TypeAlias = str | Mapping[str | int, Any] | Sequence[Any]


class Schema:
    """The columns of a table, which it encodes as codes and decodes.

    Arguments:
        fields: the columns.
        named: whether columns are matched by name, as in frames; otherwise by position.
        dropped: columns that are not part of the model: their names, and positions in the training table.

    Example:
        >>> table = Table.of([[1.5, "a"], [2.5, "b"], [np.nan, "a"]])
        >>> schema = Schema.infer(table)
        >>> schema
        Schema(x0: numeric, x1: binary)
        >>> schema.encode(table)
        array([[1.5, 0. ],
               [2.5, 1. ],
               [nan, 0. ]])
        >>> schema.fill(table, np.array([[1.0, 1.0]] * 3))
        array([[1.5, 'a'],
               [2.5, 'b'],
               [1.0, 'a']], dtype=object)
    """

    def __init__(self, fields: Iterable[Field], named: bool = True, dropped: Mapping[str, int] | None = None) -> None:
        self.fields = tuple(fields)
        self.named = named
        self.dropped = dict(dropped or {})
        self.names = tuple(field.name for field in self.fields)
        if len(set(self.names)) != len(self.names) or not self.fields:
            raise DataError(f"'fields' should be at least one, of different names, not {', '.join(self.names)!r}.")

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{field.name}: {field.kind}' for field in self.fields)})"

    def __eq__(self, other: object) -> bool:
        mine, theirs = (
            (each.fields, each.named, each.dropped) if isinstance(each, Schema) else None for each in (self, other)
        )
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.fields, self.named))

    @cached_property
    def columns(self) -> Columns:
        """The column kinds, as the network takes them."""
        return self.coded(signed=True)

    def coded(self, *, signed: bool) -> Columns:
        """The column kinds, with binary inputs coded as -1 and +1 (signed) or as 0 and 1.

        Inputs that are coded by the share of ones stay as they are.
        """
        return Columns([field.column.with_signed_inputs(signed) for field in self.fields], self.names)

    def with_shares(self, codes: Callable[[int], NDArray[np.float64]], *, standardized: bool) -> Schema:
        """The same columns, with the inputs of binary ones coded by the share of ones among the codes of each column.

        See :meth:`made.columns.base.Column.with_shares`.
        """
        fields = [
            replace(field, column=field.column.with_shares(codes(d), standardized=standardized))
            for d, field in enumerate(self.fields)
        ]
        return Schema(fields, self.named, self.dropped)

    def with_cuts(self, values: Tensor, observed: Tensor | None) -> Schema:
        """The same columns, with cuts of numbers where another column jumps (:mod:`made.tables.cuts`).

        Arguments:
            values: coded values of training rows, (rows, columns).
            observed: which of them are not missing; ``None`` for all.
        """
        codes = values.double() if observed is None else values.double().masked_fill(~observed, math.nan)
        columns = [field.column for field in self.fields]
        listed = [codes[:, d].nan_to_num(-1).long().cpu().numpy() for d, each in enumerate(columns) if each.cardinality]
        fields = list(self.fields)
        for d, each in enumerate(columns):
            if not each.cardinality:
                numbers = each.outer(codes[:, d].nan_to_num(0)).masked_fill(codes[:, d].isnan(), math.nan)
                fields[d] = replace(fields[d], column=each.with_cuts(find_cuts(numbers.cpu().numpy(), listed)))
        return Schema(fields, self.named, self.dropped)

    def kinds(self) -> str:
        """The number of columns of each kind, in words."""
        counts = Counter(field.kind for field in self.fields)
        return ", ".join(f"{counts[kind]} {kind}" for kind in kind_names() if counts[kind])

    @classmethod
    def infer(
        cls,
        table: Table | TableSummary,
        kinds: Kinds = "auto",
        *,
        missing: str | Mapping[str | int, Any] = "unobserved",
        unseen: Literal["error", "other"] = "error",
        extrapolate: bool = False,
    ) -> Schema:
        """Infer the kind of each column from its observed values.

        Text, truth values and declared categories are binary if there are two of them, otherwise categorical. Two
        distinct numbers are binary, a few that repeat (ten times on average, fractions twenty, and half of them at
        least five times) are ordinal, and all others numeric: see :mod:`made.tables.infer_schema`. Columns that look
        like identifiers are refused.

        ``kinds`` is the parameter ``columns`` of :class:`made.MADE`, and all others are those of the same name; columns
        to drop are not in the table any more.

        Raises:
            ParameterError: if ``kinds`` or ``missing`` is wrong; its ``argument`` is "columns" or "missing".
        """
        summary = TableSummary.of(table) if isinstance(table, Table) else table
        head = summary.head
        names = head.all_names()
        chosen = _by_column("columns", kinds, names, "auto")
        treated = _by_column("missing", missing, names, "unobserved")
        for name, each in zip(names, treated, strict=True):
            if each not in ("unobserved", "category"):
                raise ParameterError(
                    f"'missing' of {name!r} should be 'unobserved' or 'category', not {each!r}.", argument="missing"
                )
        fields: list[Field] = []
        useless: list[UninformativeError] = []
        for d, place in enumerate(head.places):
            category = treated[place] == "category"
            options: Any = {"unseen": unseen, "extrapolate": extrapolate, "label": head.label(d)}
            try:
                fields.append(infer(summary.columns[d], names[place], chosen[place], category, **options))
            except UninformativeError as error:
                useless.append(error)
        if useless:
            useless[0].kinds = {name: kind for error in useless for name, kind in error.kinds.items()}
            raise useless[0]
        fields = [replace(field, storage=summary.storage(d, field.dtype)) for d, field in enumerate(fields)]
        return cls(fields, named=head.names is not None, dropped=head.dropped)

    def table(self, X: Any) -> Table:
        """Rows for a query as a table; dropped columns may be present or absent."""
        return Table.of(X, without=[*self.dropped, *self.dropped.values()], kept=len(self.fields))

    def encode(self, table: Table, ignore: int | None = None, *, training: bool = False) -> NDArray[np.float64]:
        """A table as codes, in the order of the schema; NaN in the column ``ignore``. Shape: (rows, columns).

        Values that did not occur in training are counted in an :class:`~made.errors.UnseenWarning`, unless these are
        the rows of ``training``.
        """
        codes, unseen, rounded = np.full((table.rows, len(self.fields)), np.nan), {}, {}
        for number, (field, d) in enumerate(zip(self.fields, self.positions(table), strict=True)):
            if number != ignore:
                values = table.columns[d]
                codes[:, number] = field.encode(values, table.dtypes[d], table.label(d))
                if field.other and not training and (foreign := field.foreign(values, codes[:, number])).any():
                    unseen[field.name] = int(foreign.sum())
                    rounded[field.name] = int(field.rounded(values, codes[:, number]).sum())
        if unseen:
            warnings.warn(UnseenWarning(unseen, rounded), stacklevel=2)
        return codes

    def decode(self, codes: ArrayLike, like: Table | None = None) -> Any:
        """Codes as a table in the container of ``like``; default: pyarrow if columns have names, otherwise numpy.

        Shape: (rows, columns).
        """
        like = self.blank(self.named) if like is None else like
        return rebuild(like, *self._decoded(codes, like))

    def blank(self, named: bool) -> Table:
        """A table without rows, of the types of the training table: pyarrow with names, otherwise numpy."""
        types = [field.storage or DEFAULTS[field.dtype] for field in self.fields]
        return Table.blank(types, self.names if named else None)

    def fill(self, table: Table, codes: ArrayLike) -> Any:
        """The table as it was given, with its missing values filled from codes. Shape: (rows, columns)."""
        if len(np.asarray(codes)) != table.rows:
            raise ValueError(f"'codes' should have {table.rows} rows, as the table has, not {len(np.asarray(codes))}.")
        return fill_missing(table, *self._decoded(codes, table))

    def _decoded(self, codes: ArrayLike, like: Table) -> tuple[list[Values], list[Dtype]]:
        matrix = np.asarray(codes, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.fields):
            raise ValueError(f"'codes' should have the shape (rows, {len(self.fields)}), not {matrix.shape}.")
        places = self.positions(like)
        order = np.argsort(places).tolist()
        pairs = [self.fields[d].decode(matrix[:, d], like.dtypes[places[d]]) for d in order]
        return [values for values, _ in pairs], [dtype for _, dtype in pairs]

    def positions(self, table: Table) -> list[int]:
        """The position of each field in a table, by name if both have names."""
        if self.named and table.names is not None:
            place = {name: d for d, name in enumerate(table.names)}
            missing = [name for name in self.names if name not in place]
            unknown = list(place.keys() - set(self.names))
            if missing or unknown:
                parts = [("lacks", missing), ("has, unknown to the model,", sorted(unknown, key=place.__getitem__))]
                said = " and ".join(f"{verb} {listed(map(repr, some))}" for verb, some in parts if some)
                raise DataError(f"The table {said}: give the columns that the model was fitted on.")
            return [place[name] for name in self.names]
        if len(table.columns) != len(self.fields):
            raise DataError(
                f"X has {len(table.columns)} features, but MADE is expecting {len(self.fields)} features as input."
            )
        return list(range(len(self.fields)))


def dropped(kinds: Kinds) -> list[str | int]:
    """The columns, by name or position, of the kind ``"drop"``."""
    if isinstance(kinds, str):
        kinds = {}
    pairs = kinds.items() if isinstance(kinds, Mapping) else enumerate(kinds)
    return [key for key, kind in pairs if isinstance(kind, str) and kind == "drop"]


def _by_column(argument: str, given: Kinds, names: Sequence[str], default: str) -> list[Any]:
    """The setting of each column, from one for all, one for each, or one for some by name or position."""
    if isinstance(given, str):
        return [given] * len(names)
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise ParameterError(
                f"'{argument}' should have {len(names)} elements, one for each column, not {len(given)}.",
                argument=argument,
            )
        return list(given)
    result: list[Any] = [default] * len(names)
    for key, each in given.items():
        place = names.index(key) if key in names else key
        if not isinstance(place, (int, np.integer)) or not 0 <= place < len(names):
            raise ParameterError(
                f"'{argument}' has {key!r}, which is not a column: the columns are {listed(map(repr, names))}, or 0 to "
                f"{len(names) - 1}.",
                argument=argument,
            )
        result[int(place)] = each
    return result
