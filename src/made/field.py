"""What one column of a person's table is, and its values as the codes that a network takes.

A binary column's code is 0 or 1, a categorical one's 0, ..., k - 1, a number stands for itself, and NaN is what was not
observed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from made.columns import Binary, Categorical, Column
from made.errors import DataError
from made.numeric import Numeric
from made.table import Dtype, Values, holes

__all__ = ["Field", "Kind", "fitting", "number_in", "typed"]

Kind: TypeAlias = Literal["binary", "categorical", "numeric"]

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
                seen = np.flatnonzero(~hole).tolist()
                row = next((row for row in seen if number_in(values[row], False) is None), seen[0])
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
            return values, fitting(values[~hole], dtype, self.dtype)
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
            return values, self.dtype if self.dtype == "text" else fitting(values, dtype, self.dtype)
        if dtype == "text":
            return np.array(list(map(_text, self.values)), dtype=object), "text"
        keys, order = self._numbers(dtype == "bool")
        if len(keys) < len(self.values):  # not all are numbers
            return np.array(self.values, dtype=object), "text"
        values = keys[np.argsort(order)]
        return values, fitting(values, dtype, "float")

    def _numbers(self, is_bool: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The values that are numbers, ascending, and their codes. Of text, those that read as a number."""
        found: dict[float, float] = {}
        for code, value in enumerate(self.values):
            number = float(value) if not isinstance(value, str) else number_in(value, is_bool)
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
        number = number_in(text, False)
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
        value = typed(values[row : row + 1], dtype)[0]
        shown = ", ".join(map(repr, self.values[:10])) + (", ..." if len(self.values) > 10 else "")
        remedy = f", or fit with columns={{{self.name!r}: 'numeric'}}" if self.dtype in ("int", "float") else ""
        return DataError(
            f"row {row}, {label}: {value!r} is not among the known values ({shown}): give one of them, or NaN for "
            f"'not observed'{remedy}."
        )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _text(value: str | float) -> str:
    """A value as text, a number in the shortest way: 1.0 is '1'."""
    if isinstance(value, (str, bool)):
        return str(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else repr(value)


def number_in(text: str, is_bool: bool) -> float | None:
    """The number that a text reads as, if it does."""
    if is_bool and text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def fitting(values: Values, asked: Dtype, own: Dtype) -> Dtype:
    """The family asked for if all the numbers are of it, otherwise their own."""
    if asked == "bool" and np.isin(values, (0, 1)).all():
        return "bool"
    if asked == "int" and (values == np.rint(values)).all():
        return "int"
    return "float" if asked == "float" else own


def typed(values: Values, dtype: Dtype) -> tuple[Any, ...]:
    """Values as Python has them."""
    convert = {"text": str, "bool": bool, "int": int}.get(dtype, float)
    return tuple(map(convert, values.tolist()))
