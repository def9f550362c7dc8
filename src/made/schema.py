"""What the columns of a table are, and which of them is of which kind, as its values show."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.columns import Columns
from made.errors import DataError
from made.field import Field, Kind, fitting, number_in, typed
from made.table import Dtype, Table, Values, holes, plain

__all__ = ["Field", "Schema"]

Kinds: TypeAlias = str | Mapping[str | int, Any] | Sequence[Any]

CHOICES = "'auto', 'binary', 'categorical', 'numeric', or a list of values"
MOST_CATEGORIES = 1000
MOST_STEPS = 100_000


class Schema:
    """The columns of a table: values to codes, and back.

    Arguments:
        fields: what each column is.
        named: whether the names are those of a frame; otherwise columns are known by their place.

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

    def __init__(self, fields: Sequence[Field], named: bool = True) -> None:
        self.fields = tuple(fields)
        self.named = named
        self.names = tuple(field.name for field in self.fields)
        if len(set(self.names)) != len(self.names) or not self.fields:
            raise DataError(f"'fields' should be at least one, of different names, not {', '.join(self.names)!r}.")

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{field.name}: {field.kind}' for field in self.fields)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and (self.fields, self.named) == (other.fields, other.named)

    def __hash__(self) -> int:
        return hash((self.fields, self.named))

    @cached_property
    def columns(self) -> Columns:
        """The columns as the network takes them."""
        return self.coded(signed=True)

    def coded(self, *, signed: bool) -> Columns:
        """The columns, with binary inputs coded as -1 and +1 or as 0 and 1."""
        return Columns([field.column(signed) for field in self.fields], self.names)

    @classmethod
    def infer(cls, table: Table, kinds: Kinds = "auto") -> Schema:
        """What each column is, from its observed values.

        Text, truth values and declared categories are binary if there are two of them, otherwise categorical. Numbers
        that are all 0 or 1 are binary, a few that repeat (ten times each, fractions twenty) are categorical, and all
        others numeric, in steps of 1 if they are whole.

        Arguments:
            table: the values.
            kinds: a kind for all columns, for each, or for some by name or number: ``"auto"``, ``"binary"``,
                ``"categorical"``, ``"numeric"``, or a list of the values in order.
        """
        names = table.names or [f"x{d}" for d in range(len(table.columns))]
        chosen = _kinds(kinds, names)
        return cls([_infer(table, d, names[d], chosen[d]) for d in range(len(names))], named=table.names is not None)

    def encode(self, table: Table, ignore: int | None = None) -> NDArray[np.float64]:
        """A table as codes, in the schema's order of columns; one column may be ignored. Shape: (rows, columns)."""
        codes = np.full((table.rows, len(self.fields)), np.nan)
        for number, (field, d) in enumerate(zip(self.fields, self._places(table), strict=True)):
            if number != ignore:
                codes[:, number] = field.encode(table.columns[d], table.dtypes[d], table.label(d))
        return codes

    def decode(self, codes: ArrayLike, like: Table | None = None) -> Any:
        """Codes as a table of the same kind as ``like``; without it, a pyarrow table if columns have names, or numpy.

        Shape: (rows, columns).
        """
        like = Table.blank(len(self.fields), self.names if self.named else None) if like is None else like
        return like.put(*self._decoded(codes, like))

    def fill(self, table: Table, codes: ArrayLike) -> Any:
        """The table as it was given, with decoded codes where it has holes. Shape: (rows, columns)."""
        if len(np.asarray(codes)) != table.rows:
            raise ValueError(f"'codes' should have {table.rows} rows, as the table has, not {len(np.asarray(codes))}.")
        return table.fill(*self._decoded(codes, table))

    def _decoded(self, codes: ArrayLike, like: Table) -> tuple[list[Values], list[Dtype]]:
        matrix = np.asarray(codes, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.fields):
            raise ValueError(f"'codes' should have the shape (rows, {len(self.fields)}), not {matrix.shape}.")
        places = self._places(like)
        order = np.argsort(places).tolist()
        pairs = [self.fields[d].decode(matrix[:, d], like.dtypes[places[d]]) for d in order]
        return [values for values, _ in pairs], [dtype for _, dtype in pairs]

    def _places(self, table: Table) -> list[int]:
        """Where in the table each field's column is: by name if both have names."""
        if self.named and table.names is not None:
            place = {name: d for d, name in enumerate(table.names)}
            missing = [name for name in self.names if name not in place]
            unknown = list(place.keys() - set(self.names))
            if missing or unknown:
                parts = [("lacks", missing), ("has, unknown to the model,", sorted(unknown, key=place.__getitem__))]
                said = " and ".join(f"{verb} {_shown(some)}" for verb, some in parts if some)
                raise DataError(f"The table {said}: give the columns that the model was fitted on.")
            return [place[name] for name in self.names]
        if len(table.columns) != len(self.fields):
            raise DataError(
                f"X has {len(table.columns)} features, but MADE is expecting {len(self.fields)} features as input."
            )
        return list(range(len(self.fields)))


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")


def _kinds(kinds: Kinds, names: Sequence[str]) -> list[Any]:
    """A kind for each column."""
    if isinstance(kinds, str):
        return [kinds] * len(names)
    if not isinstance(kinds, Mapping):
        if len(kinds) != len(names):
            raise ValueError(f"'kinds' should have {len(names)} elements, one for each column, not {len(kinds)}.")
        return list(kinds)
    result: list[Any] = ["auto"] * len(names)
    for key, kind in kinds.items():
        place = names.index(key) if key in names else key
        if not isinstance(place, (int, np.integer)) or not 0 <= place < len(names):
            raise ValueError(
                f"'kinds' has {key!r}, which is no column: the columns are {_shown(names)}, or 0 to {len(names) - 1}."
            )
        result[int(place)] = kind
    return result


def _infer(table: Table, d: int, name: str, kind: Any) -> Field:
    values, dtype, label = table.columns[d], table.dtypes[d], table.label(d)
    listed = not isinstance(kind, str) and isinstance(kind, (Sequence, np.ndarray))
    if not listed and kind not in ("auto", "binary", "categorical", "numeric"):
        raise ValueError(f"{label}: the kind {kind!r} is unknown: choose from {CHOICES}.")
    seen = values[~holes(values)]
    if not len(seen):
        raise DataError(f"{label} has no observed value, so that nothing can be learned of it: leave it out.")
    if listed:
        return _listed(name, kind, dtype, label)
    is_text = dtype == "text"
    distinct: Values = np.array(sorted(set(seen.tolist())), dtype=object) if is_text else np.unique(seen)
    if dtype == "bool" or (not is_text and kind in ("auto", "binary") and np.isin(distinct, (0, 1)).all()):
        distinct = np.array([0.0, 1.0])
    if kind == "auto":
        plainly = is_text or dtype == "bool" or table.declared[d]
        kind = _kind_of_categories(len(distinct)) if plainly else _kind_of_numbers(distinct, len(seen))
    if kind == "numeric":
        if is_text:
            raise DataError(f"{label} has text such as {seen[0]!r} and cannot be numeric: convert it to numbers.")
        return _numeric(name, seen, "float" if dtype == "float" else "int")
    if kind == "binary" and len(distinct) != 2:
        raise DataError(
            f"{label} has {len(distinct)} distinct values and cannot be binary, which has 2: choose 'categorical', or "
            "list the values."
        )
    if len(distinct) > MOST_CATEGORIES:
        hint = "it looks like an identifier: leave it out" if is_text else "choose 'numeric'"
        if is_text and all(number_in(text, False) is not None for text in distinct.tolist()):
            hint = "it looks like numbers: convert it, or leave it out"
        raise DataError(f"{label} has {len(distinct)} distinct values, more than {MOST_CATEGORIES}; {hint}.")
    return Field(name, kind, typed(distinct, dtype), dtype=dtype)


def _listed(name: str, values: Any, dtype: Dtype, label: str) -> Field:
    """A column whose values are told."""
    column = np.empty(len(values), dtype=object)
    column[:] = list(values)
    told, family = plain(column, f"the list for {label}")
    if not len(told) or holes(told).any():
        raise ValueError(f"The list for {label} should have at least one value, and none that is empty or NaN.")
    if "text" not in (family, dtype):
        family = fitting(told, dtype, family)
    return Field(name, _kind_of_categories(len(told)), typed(told, family), dtype=family)


def _kind_of_categories(distinct: int) -> Kind:
    return "binary" if distinct == 2 else "categorical"


def _kind_of_numbers(distinct: Values, rows: int) -> Kind:
    whole, count = bool((distinct == np.floor(distinct)).all()), len(distinct)
    if count <= 2:
        return _kind_of_categories(count) if whole or count == 1 or rows >= 20 else "numeric"
    if whole:
        return "categorical" if count <= 20 and rows >= 10 * count else "numeric"
    return "categorical" if count <= 10 and rows >= 20 * count else "numeric"


def _numeric(name: str, seen: Values, dtype: Dtype) -> Field:
    """Median and spread, computed on values that are brought into [-1, 1] by a power of two: nothing overflows."""
    low, high = float(seen.min()), float(seen.max())
    most = max(abs(low), abs(high))
    exponent = int(np.frexp(most)[1])
    unit = np.ldexp(seen, -exponent)
    first, median, third = np.quantile(unit, [0.25, 0.5, 0.75])
    spread = 0.0 if low == high else float((third - first) / 1.349 or unit.std())
    # An outlier should be many scales away, but not so many that nothing is left of float32's digits.
    spread = max(spread, 1e-12 * float(np.abs(unit - median).max()))
    with np.errstate(over="ignore"):
        scale = float(np.ldexp(spread, exponent)) if spread else 1.0
    scale = min(max(scale, sys.float_info.min), sys.float_info.max)
    location = float(np.ldexp(median, exponent))
    whole = most < 2.0**53 and high - low <= MOST_STEPS and bool((seen == np.floor(seen)).all())
    return Field(name, "numeric", (), round(location) if whole else location, scale, 1.0 if whole else 0.0, dtype)
