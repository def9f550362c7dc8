"""What the columns of a table are, and its values as the codes that a network takes.

A binary column's code is 0 or 1, a categorical one's 0, ..., k - 1, a number stands for itself, and NaN is what was not
observed. Which column is of which kind can be read from the values: see :meth:`Schema.infer`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.columns import Binary, Categorical, Column, Columns
from made.errors import DataError
from made.numeric import Numeric
from made.table import Dtype, Table, Values, holes, plain

__all__ = ["Field", "Schema"]

Kind: TypeAlias = Literal["binary", "categorical", "numeric"]
Kinds: TypeAlias = str | Mapping[str | int, Any] | Sequence[Any]

CHOICES = "'auto', 'binary', 'categorical', 'numeric', or a list of values"
MOST_CATEGORIES = 1000
MOST_STEPS = 100_000
TYPES: dict[str, tuple[type, ...]] = {"text": (str,), "bool": (bool,), "int": (int,), "float": (float, int)}


@dataclass(frozen=True)
class Field:
    """One column: its name, its kind, and what its codes stand for.

    Arguments:
        name: of the column.
        kind: ``"binary"``, ``"categorical"`` or ``"numeric"``.
        values: what the codes 0, 1, ... stand for; none if numeric.
        location, scale, step: of a numeric column, see :class:`made.numeric.Numeric`.
        dtype: how values are given back: ``"float"``, ``"int"``, ``"bool"`` or ``"text"``.

    Example:
        >>> field = Field("grade", "categorical", ("low", "mid", "high"), dtype="text")
        >>> field.column()
        Categorical(k=3)
        >>> field.decode(np.array([2.0, np.nan]))
        (array(['high', None], dtype=object), 'text')
    """

    name: str
    kind: Kind
    values: tuple[str | float | int | bool, ...] = ()
    location: float = 0.0
    scale: float = 1.0
    step: float = 0.0
    dtype: Dtype = "float"

    def __post_init__(self) -> None:
        """Everything is checked, because it may come from a file."""
        if not isinstance(self.name, str):
            raise DataError(f"'name' should be text, not {self.name!r}.")
        for key, choices in (("kind", ("binary", "categorical", "numeric")), ("dtype", tuple(TYPES))):
            if not isinstance(getattr(self, key), str) or getattr(self, key) not in choices:
                raise self._wrong(key, f"one of {', '.join(choices)}")
        for key in ("location", "scale", "step"):
            value = getattr(self, key)
            if type(value) not in (int, float) or not _is_finite(value):
                raise self._wrong(key, "a finite number")
            object.__setattr__(self, key, float(value))
        if self.scale <= 0 or self.step < 0:
            raise self._wrong("scale", "above 0") if self.scale <= 0 else self._wrong("step", "at least 0")
        if not isinstance(self.values, tuple):
            raise self._wrong("values", "a tuple")
        for value in self.values:
            if type(value) not in TYPES[self.dtype] or value == "" or not (isinstance(value, str) or _is_finite(value)):
                raise DataError(f"'values' of column {self.name!r} should be of type {self.dtype}, not {value!r}.")
        if self.dtype == "float":
            object.__setattr__(self, "values", tuple(map(float, self.values)))
        if len(set(self.values)) != len(self.values):
            raise self._wrong("values", "different from each other")
        if self.kind == "numeric" and (self.values or self.dtype not in ("int", "float")):
            raise DataError(f"Column {self.name!r} is numeric: its 'values' should be (), its 'dtype' int or float.")
        if self.kind != "numeric" and (len(self.values) < 1 or (self.kind == "binary") > (len(self.values) == 2)):
            raise self._wrong("values", "two" if self.kind == "binary" else "at least one")

    def _wrong(self, key: str, allowed: str) -> DataError:
        shown = repr(getattr(self, key))
        return DataError(f"'{key}' of column {self.name!r} should be {allowed}, not {shown[:200]}.")

    def column(self, signed: bool = True) -> Column:
        """The kind of column that the network takes; ``signed`` is for :class:`made.Binary`."""
        if self.kind == "numeric":
            return Numeric(self.location, self.scale, self.step)
        return Binary(signed) if self.kind == "binary" else Categorical(len(self.values))

    def to_json(self) -> dict[str, Any]:
        """All of it as what JSON can hold."""
        return {**asdict(self), "values": list(self.values)}

    @classmethod
    def from_json(cls, content: Any) -> Field:
        """What :meth:`to_json` gave. Nothing else is taken."""
        keys = {field.name for field in fields(cls)}
        if not isinstance(content, dict) or set(content) != keys:
            found = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
            raise DataError(f"A column should have the keys {', '.join(sorted(keys))}, not {found[:200]}.")
        if not isinstance(content["values"], list):
            raise DataError(f"'values' of column {content['name']!r} should be a list.")
        return cls(**{**content, "values": tuple(content["values"])})

    def encode(self, values: Values, dtype: Dtype, label: str) -> NDArray[np.float64]:
        """A plain column as codes. Shapes: (rows,) to (rows,)."""
        hole = holes(values)
        if self.kind == "numeric":
            if values.dtype == object:
                row = int(np.flatnonzero(~hole)[0])
                raise DataError(
                    f"row {row}, {label}: {values[row]!r} is text, where the model has numbers: give a number, or NaN "
                    "for 'not observed'."
                )
            return self._on_steps(values, label)
        if values.dtype == object:
            known: dict[Any, float] = {None: np.nan}
            known |= {text: self._code_of_text(text) for text in dict.fromkeys(values[~hole].tolist())}
            codes = np.fromiter(map(known.__getitem__, values.tolist()), np.float64, len(values))
        else:
            keys, order = self._numbers(dtype == "bool")
            place = np.searchsorted(keys, values).clip(max=max(len(keys) - 1, 0))
            codes = np.full(len(values), -1.0)
            if len(keys):
                codes = np.where(keys[place] == values, order[place], -1.0)
            codes[hole] = np.nan
        if (codes < 0).any():
            raise self._unseen(values, dtype, int(np.flatnonzero(codes < 0)[0]), label)
        return codes

    def decode(self, codes: NDArray[np.float64], dtype: Dtype = "none") -> tuple[Values, Dtype]:
        """Codes as a plain column, and its family: ``dtype`` if the values can be of that, otherwise the field's own.

        Shapes: (rows,) to (rows,).
        """
        hole = np.isnan(codes)
        if self.kind == "numeric":
            values: Values = np.rint(codes) if self.dtype == "int" else codes.copy()
            return values, _fitting(values[~hole], dtype, self.dtype)
        categories, family = self._categories(dtype)
        places = np.where(hole, 0, codes).astype(np.intp)
        wrong = ~hole & ((places != codes) | (places < 0) | (places >= len(categories)))
        if wrong.any():
            most = len(categories) - 1
            raise ValueError(f"'codes' of column {self.name!r} should be 0 to {most}, not {codes[wrong][0]:g}.")
        values = categories.take(places)
        values[hole] = None if family == "text" else np.nan
        return values, family

    def _categories(self, dtype: Dtype) -> tuple[Values, Dtype]:
        """The values in the order of their codes, as a plain column of family ``dtype`` if they can be."""
        if (self.dtype == "text") == (dtype == "text") or dtype == "none":
            values = np.array(self.values, dtype=object if self.dtype == "text" else np.float64)
            return values, self.dtype if self.dtype == "text" else _fitting(values, dtype, self.dtype)
        if dtype == "text":
            return np.array(list(map(_text, self.values)), dtype=object), "text"
        keys, order = self._numbers(dtype == "bool")
        if len(keys) < len(self.values):  # not all are numbers
            return np.array(self.values, dtype=object), "text"
        values = keys[np.argsort(order)]
        return values, _fitting(values, dtype, "float")

    def _numbers(self, is_bool: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The values that are numbers, ascending, and their codes. Of text, those that read as a number."""
        found: dict[float, float] = {}
        for code, value in enumerate(self.values):
            number = float(value) if not isinstance(value, str) else _number(value, is_bool)
            # '1' and '01' are both 1, which then means the one that is written in the shortest way
            if number is not None and (number not in found or _text(number) == value):
                found[number] = code
        keys = np.array(sorted(found), dtype=np.float64)
        return keys, np.array([found[key] for key in keys.tolist()], dtype=np.float64)

    @cached_property
    def _texts(self) -> dict[str, float]:
        texts = {_text(value): float(code) for code, value in enumerate(self.values)}
        return texts | {_text(v).lower(): float(code) for code, v in enumerate(self.values) if self.dtype == "bool"}

    def _code_of_text(self, text: str) -> float:
        code = self._texts.get(text, -1.0)
        if code >= 0 or self.dtype == "text":
            return code
        number = _number(text, False)
        return float(self.values.index(number)) if number in self.values else -1.0

    def _on_steps(self, values: Values, label: str) -> NDArray[np.float64]:
        if self.step:
            steps = (values - self.location) / self.step
            off = np.abs(steps - np.rint(steps)) >= 1e-6 * (1 + np.abs(steps))  # NaN is not
            if off.any():
                row = int(np.flatnonzero(off)[0])
                raise DataError(
                    f"row {row}, {label}: {values[row]:g} is not among the values in steps of {self.step:g} that the "
                    "model was fitted on: round it, or give NaN for 'not observed'."
                )
        return values.astype(np.float64)

    def _unseen(self, values: Values, dtype: Dtype, row: int, label: str) -> DataError:
        value = _typed(values[row : row + 1], dtype)[0]
        shown = ", ".join(map(repr, self.values[:10])) + (", ..." if len(self.values) > 10 else "")
        remedy = f", or fit with columns={{{self.name!r}: 'numeric'}}" if self.dtype in ("int", "float") else ""
        return DataError(
            f"row {row}, {label}: {value!r} is not among the known values ({shown}): give one of them, or NaN for "
            f"'not observed'{remedy}."
        )


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
        return Columns([field.column() for field in self.fields], self.names)

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


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")


def _text(value: str | float) -> str:
    """A value as text, a number in the shortest way: 1.0 is '1'."""
    if isinstance(value, (str, bool)):
        return str(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else repr(value)


def _number(text: str, is_bool: bool) -> float | None:
    """The number that a text reads as, if it does."""
    if is_bool and text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _fitting(values: Values, asked: Dtype, own: Dtype) -> Dtype:
    """The family asked for if all the numbers are of it, otherwise their own."""
    if asked == "bool" and np.isin(values, (0, 1)).all():
        return "bool"
    if asked == "int" and (values == np.rint(values)).all():
        return "int"
    return "float" if asked == "float" else own


def _typed(values: Values, dtype: Dtype) -> tuple[Any, ...]:
    convert = {"text": str, "bool": bool, "int": int}.get(dtype, float)
    return tuple(map(convert, values.tolist()))


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
        if is_text and all(_number(text, False) is not None for text in distinct.tolist()):
            hint = "it looks like numbers: convert it, or leave it out"
        raise DataError(f"{label} has {len(distinct)} distinct values, more than {MOST_CATEGORIES}; {hint}.")
    return Field(name, kind, _typed(distinct, dtype), dtype=dtype)


def _listed(name: str, values: Any, dtype: Dtype, label: str) -> Field:
    """A column whose values are told."""
    column = np.empty(len(values), dtype=object)
    column[:] = list(values)
    told, family = plain(column, f"the list for {label}")
    if not len(told) or holes(told).any():
        raise ValueError(f"The list for {label} should have at least one value, and none that is empty or NaN.")
    if "text" not in (family, dtype):
        family = _fitting(told, dtype, family)
    return Field(name, _kind_of_categories(len(told)), _typed(told, family), dtype=family)


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
