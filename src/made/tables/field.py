"""One column of the user's table: what it is, and its values as the codes that a network takes, and back.

The code of a value from a list is 0, 1, ...; a number is its own code; NaN is a missing value. Where "missing" is a
value of its own, it has a code too: one more category, or infinity among numbers. A value that training has not seen is
one more category, or a code beside those of listed numbers (:mod:`made.columns.unseen`), or refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from made.columns.base import Column
from made.columns.registry import FIELD_KEYS, find_kind
from made.columns.settings import is_finite
from made.display import listed
from made.errors import DataError
from made.hints import hint
from made.tables.dates import DAY, Temporal, in_text, is_form, objects, seconds_in
from made.tables.plain import Dtype, Values, as_text, fitting, is_missing, number_in, typed
from made.tables.storage import ends_of, is_storage
from made.tables.summary import has_multiples, on_steps

# The Python types of listed values.
TYPES: dict[str, tuple[type, ...]] = {"text": (str,), "bool": (bool,), "int": (int,)}
TYPES |= dict.fromkeys(("float", "date", "datetime"), (float, int))
# The label of the category for all text that training has not seen.
OTHER = "<other>"


@dataclass(frozen=True)
class Field:
    """One column: its name, its kind, and what its codes stand for. It may come from a file, so all of it is checked.

    Arguments:
        name: the name of the column.
        column: its kind, with all settings.
        values: the values with the codes 0, 1, ...; empty for kinds without a list.
        dtype: how values are returned: ``"float"``, ``"int"``, ``"bool"``, ``"text"``, ``"date"`` or ``"datetime"``.
        missing: whether missingness is modelled; "missing" then has the code after the last value.
        other: the probability reserved for values that training has not seen; 0: they are refused.
        storage: the exact type of the values, see :mod:`made.tables.storage`. Default: ``dtype``.
        written: how times that were text are written, as in :data:`made.tables.dates.FORM`.

    Example:
        >>> from made import Categorical
        >>> field = Field("grade", Categorical(3), ("low", "mid", "high"), dtype="text")
        >>> field.decode(np.array([2.0, np.nan]))
        (array(['high', None], dtype=object), 'text')
    """

    name: str
    column: Column
    values: tuple[str | float | int | bool, ...] = ()
    dtype: Dtype = "float"
    missing: bool = False
    other: float = 0.0
    storage: str | None = None
    written: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DataError(f"'name' should be text, not {self.name!r}.")
        for key, sound, allowed in (
            ("dtype", isinstance(self.dtype, str) and self.dtype in TYPES, f"one of {', '.join(TYPES)}"),
            ("values", isinstance(self.values, tuple), "a tuple"),
            ("missing", type(self.missing) is bool, "true or false"),
            ("other", is_finite(self.other) and 0 <= self.other < 1, "at least 0 and below 1"),
            ("storage", self.storage is None or is_storage(self.storage), "the name of a type"),
            ("written", is_form(self.written), "such as YYYY-MM-DD hh:mm:ssZ"),
            ("other", not self.other or OTHER not in self.values, f"0, where one of the values is {OTHER}"),
        ):
            if not sound:
                raise self._wrong(key, allowed)
        object.__setattr__(self, "other", float(self.other))
        self._check_values()

    def _check_values(self) -> None:
        for value in self.values:
            if type(value) not in TYPES[self.dtype] or value == "" or not (isinstance(value, str) or is_finite(+value)):
                raise DataError(f"'values' of column {self.name!r} should be of type {self.dtype}, not {value!r}.")
        if float in TYPES[self.dtype]:
            object.__setattr__(self, "values", tuple(map(float, self.values)))
        if len(set(self.values)) != len(self.values):
            raise self._wrong("values", "different from each other")
        if self.listed and len(self.values) + self.missing + self.bucket != self.column.codes:
            raise self._wrong("values", f"{self.column.codes - self.missing - self.bucket}, as the kind has")
        if not self.listed and self.values:
            raise self._wrong("values", f"empty where the column is {self.kind}")
        numbers = not self.listed or self.column.quantitative or (self.other and not self.bucket)
        if self.dtype in ("text", "bool") and numbers:
            raise self._wrong("dtype", "that of numbers or dates")

    def _wrong(self, key: str, allowed: str) -> DataError:
        shown = repr(getattr(self, key))
        return DataError(f"'{key}' of column {self.name!r} should be {allowed}, not {shown[:200]}.")

    @property
    def kind(self) -> str:
        """The name of the column's kind."""
        return self.column.kind

    @property
    def listed(self) -> bool:
        """Whether the column has a list of values."""
        return self.column.listed

    @property
    def temporal(self) -> Temporal | None:
        """Which kind of dates the values are, if any."""
        return self.dtype if self.dtype == "date" or self.dtype == "datetime" else None

    @property
    def bucket(self) -> bool:
        """Whether there is one more category, for all values that training has not seen."""
        return self.column.cardinality < self.column.codes

    @property
    def ordered(self) -> bool:
        """Whether values can be compared by < and >."""
        return self.dtype not in ("text", "bool") or self.column.ordered

    def labels(self, *, other: bool = False) -> tuple[Any, ...]:
        """The value of each code, dates as Python objects, None for "missing".

        With ``other``, the category for all values that training has not seen comes last, if there is one.
        """
        values: tuple[Any, ...] = self.values
        if self.temporal:
            values = tuple(objects(np.array(self.values, dtype=np.float64), self.temporal).tolist())
        return values + (None,) * self.missing + (OTHER,) * (other and self.bucket)

    def about(self) -> str:
        """The values, in a few words."""
        if not self.listed:
            return self.column.describe(self.shown, " seconds" if self.temporal else "")
        labels = ["missing" if label is None else str(label) for label in self.labels()]
        return ", ".join(labels[:8]) + (f", ... ({len(labels)} in all)" if len(labels) > 8 else "")

    def shown(self, value: float) -> str:
        """A number of this column, for messages."""
        return f"{value:g}" if self.temporal is None else str(in_text(np.array([value]), self.temporal)[0])

    def to_json(self) -> dict[str, Any]:
        """The field for config.json: its own keys, and the settings of its kind."""
        content = {"name": self.name, "kind": self.kind, "values": list(self.values), **self.column.to_json()}
        content["dtype"] = self.dtype
        later = {"missing": self.missing, "other": self.other, "storage": self.storage, "written": self.written}
        return content | {key: value for key, value in later.items() if value}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """The inverse of :meth:`to_json`. Anything else is refused."""
        if not isinstance(content, dict) or not {"name", "kind", "values", "dtype"} <= content.keys():
            found = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
            raise DataError(f"A column should have the keys name, kind, values and dtype, not {found[:200]}.")
        name, kind = content["name"], content["kind"]
        own = {key: content[key] for key in ("missing", "other", "storage", "written") if key in content}
        if not isinstance(kind, str) or not isinstance(content["values"], list):
            raise DataError(f"'kind' of column {name!r} should be text, and 'values' a list.")
        values, missing, other = tuple(content["values"]), own.get("missing", False), own.get("other", 0.0)
        settings = {key: value for key, value in content.items() if key not in FIELD_KEYS}
        try:
            if type(missing) is not bool or not is_finite(other):
                raise ValueError("'missing' should be true or false, and 'other' a finite number.")
            column = find_kind(kind).from_json(settings, values, missing, other)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"column {name!r}: {error}") from None
        return cls(name, column, values, content["dtype"], **own)

    def encode(self, values: Values, dtype: Dtype, label: str) -> NDArray[np.float64]:
        """A plain column as codes. Shapes: (rows,) to (rows,)."""
        values, dtype = self.in_own_terms(values, dtype, label)
        if not self.listed:
            codes = self._on_steps(values.astype(np.float64), label)
            codes[is_missing(values)] = math.inf if self.missing else np.nan
            return codes
        if values.dtype == object:
            texts = values.tolist()
            known: dict[Any, float] = {text: text and self._code_of_text(text) for text in dict.fromkeys(texts)}
            known[None] = len(self.values) if self.missing else np.nan
            codes = np.fromiter(map(known.__getitem__, texts), np.float64, len(values))
        else:
            found = self._numbers(dtype == "bool")
            keys, order = np.array([*found, math.inf]), np.array([*found.values(), -1.0])
            place = np.searchsorted(keys[:-1], values)
            codes = np.where(keys[place] == values, order[place], -1.0)
            codes[np.isnan(values)] = len(self.values) if self.missing else np.nan
        unseen = codes < 0
        if not unseen.any():
            return codes
        if self.bucket:
            codes[unseen] = len(self.values) + self.missing
            return codes
        numbers = values
        if values.dtype == object:
            numbers = np.array([value and number_in(value) for value in values.tolist()], dtype=np.float64)
        beside = self.column.codes_of(numbers)
        refused = unseen if beside is None else unseen & np.isnan(numbers)
        if beside is None or refused.any():
            raise self._unseen(values, dtype, int(np.flatnonzero(refused)[0]), label)
        codes[unseen] = beside[unseen]
        return codes

    def foreign(self, values: Values, codes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which entries are values that training has not seen: not listed, below the least value, or off the grid.

        Other numbers are never foreign to a column without a list. Shapes: (rows,), (rows,) to (rows,).
        """
        if self.listed:
            return np.asarray(~np.isnan(codes) & (self.places(codes) == len(self.labels())))
        below = np.isfinite(codes) & (codes < self.column.support[0])
        return np.asarray(below | self.rounded(values, codes))

    def rounded(self, values: Values, codes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which entries lie off the grid, and not below the least value: they are coded as the nearest step."""
        step = 0.0 if self.listed or values.dtype == object else self.column.grid[1]
        if not step:
            return np.zeros(len(codes), dtype=np.bool_)
        off = np.isfinite(codes) & (np.abs(codes - values) > 1e-6 * (step + np.abs(codes)))
        return np.asarray(off & (codes >= self.column.support[0]))

    def places(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The codes of listed values, and one more for all others; NaN stays NaN."""
        most = len(self.labels())
        listed = np.isnan(codes) | ((codes >= 0) & (codes < most) & (codes == np.floor(codes)))
        return np.where(listed, codes, most)

    def decode(self, codes: NDArray[np.float64], dtype: Dtype = "none") -> tuple[Values, Dtype]:
        """Codes as a plain column, and its dtype: the one asked for, if the values allow it, otherwise the field's.

        Shapes: (rows,) to (rows,).
        """
        found = self.column.numbers_of(torch.from_numpy(codes)) if self.listed else None
        if found is not None or not self.listed:  # a mean, or a value that training has not seen, is not listed
            numbers = found.numpy() if found is not None else np.where(np.isinf(codes), np.nan, codes)
            return self._given_back(self._held(np.rint(numbers) if self.dtype == "int" else numbers), dtype)
        absent = np.isnan(codes)
        categories, family = self._categories(dtype)
        places = np.where(absent, 0, codes).astype(np.intp)
        wrong = ~absent & ((places != codes) | (places < 0) | (places >= len(categories)))
        if wrong.any():
            most = len(categories) - 1
            raise ValueError(f"'codes' of column {self.name!r} should be 0 to {most}, not {codes[wrong][0]:g}.")
        values = categories.take(places)
        values[absent] = None if family == "text" else np.nan
        return values if family == "text" else self._held(values), family

    def _held(self, values: Values) -> Values:
        """Numbers clipped to the range of the column's storage type."""
        ends = ends_of(self.storage)
        return values if ends is None else values.clip(*ends)

    def in_own_terms(self, values: Values, dtype: Dtype, label: str) -> tuple[Values, Dtype]:
        """A plain column with text as dates or numbers, or dates as text, whichever this column has."""
        temporal, text = dtype in ("date", "datetime"), dtype == "text"
        if not (temporal or self.temporal or (text and self.column.quantitative)):
            return values, dtype
        seen = np.flatnonzero(~is_missing(values))
        if not len(seen) or (temporal and self.temporal):
            return values, dtype
        if temporal and self.dtype == "text":
            return in_text(values, "date" if dtype == "date" else "datetime"), "text"
        row = int(seen[0])
        if text:
            read = _seconds if self.temporal else number_in
            known = {each: read(each) for each in dict.fromkeys(values[seen].tolist())}
            found = np.array([each and known[each] for each in values.tolist()], dtype=np.float64)
            wrong = seen[np.isnan(found[seen])]
            if not len(wrong):
                return found, self.temporal or "float"
            row = int(wrong[0])
        value = in_text(values[row : row + 1], "datetime")[0] if temporal else values.tolist()[row]
        has = "a date" if temporal else "text" if text else "a number"
        wants = "dates, such as 2024-03-01" if self.temporal else "numbers"
        raise self._refused(
            label,
            row,
            f"{value!r} is {has}, where the model has {wants}: give what it was fitted on, or NaN for a missing value.",
        )

    def _given_back(self, values: Values, dtype: Dtype) -> tuple[Values, Dtype]:
        """Numbers, with the dtype asked for, if they allow it; or dates as text."""
        if self.temporal is None:
            return values, fitting(values[~np.isnan(values)], dtype, self.dtype)
        if dtype == "text":
            return in_text(values, self.temporal, self.written), "text"
        return values, "datetime" if dtype == "datetime" else self.dtype

    def _categories(self, dtype: Dtype) -> tuple[Values, Dtype]:
        """The value of each code, with the dtype asked for, if they allow it."""
        own: Values = np.array(self.values, dtype=object if self.dtype == "text" else np.float64)
        if self.temporal:
            values, family = self._given_back(own, dtype)
        elif (self.dtype == "text") == (dtype == "text") or dtype == "none" or self.bucket:
            values, family = own, "text" if self.dtype == "text" else fitting(own, dtype, self.dtype)
        elif dtype == "text":
            values, family = np.array(list(map(as_text, self.values)), dtype=object), "text"
        elif len(found := self._numbers(dtype == "bool")) < len(own):  # not all are numbers
            values, family = own, "text"
        else:
            values = np.array(sorted(found, key=found.__getitem__), dtype=np.float64)
            family = fitting(values, dtype, "float")
        nothing = None if family == "text" else np.nan
        more = [nothing] * self.missing + [OTHER if family == "text" else nothing] * self.bucket
        return np.concatenate([values, np.array(more, dtype=values.dtype)]), family

    def _numbers(self, is_bool: bool) -> dict[float, float]:
        """The codes of the values that are numbers, ascending by number. Of text, those that read as a number."""
        found: dict[float, float] = {}
        for code, value in enumerate(self.values):
            number = float(value) if not isinstance(value, str) else number_in(value, is_bool)
            # '1' and '01' both read as 1: the shortest spelling wins.
            if number is not None and (number not in found or as_text(number) == value):
                found[number] = code
        return dict(sorted(found.items()))

    @cached_property
    def _texts(self) -> dict[str, float]:
        texts = {as_text(value): float(code) for code, value in enumerate(self.values)}
        return texts | {text.lower(): code for text, code in texts.items() if self.dtype == "bool"}

    def _code_of_text(self, text: str) -> float:
        code = self._texts.get(text, -1.0)
        if code >= 0 or self.dtype == "text":
            return code
        number = number_in(text)
        return float(self.values.index(number)) if number in self.values else -1.0

    def _on_steps(self, values: Values, label: str) -> NDArray[np.float64]:
        """Numbers rounded to the grid; unless ``other``, those off the grid or below the least value are refused."""
        (origin, step), least = self.column.grid, self.column.support[0]
        steps = (values - origin) / step if step else np.zeros(len(values))
        off = np.abs(steps - np.rint(steps)) >= 1e-6 * (1 + np.abs(steps))
        codes = np.where(off, origin + np.rint(steps) * step, values)
        if step and has_multiples(origin, step):
            codes = np.where(np.abs(codes) < 2.0**53 * step, on_steps(codes, step), codes)
        if self.other:
            return codes
        below = values < least
        if not (off | below).any():
            return codes
        row = int(np.flatnonzero(off | below)[0])
        if below[row]:
            why = (
                f"is below {least + step / 2:g}, the least value of the column: give NaN for a missing value, or fit "
                f"with {hint(columns={self.name: 'real'})}."
            )
        else:
            steps_of = "whole days" if self.temporal and step == DAY else f"steps of {step:g}"
            why = (
                f"is not among the values in {steps_of} that the model was fitted on: round it, or give NaN for a "
                "missing value."
            )
        raise self._refused(label, row, f"{self.shown(values[row])} {why}")

    def _unseen(self, values: Values, dtype: Dtype, row: int, label: str) -> DataError:
        value = self.shown(values[row]) if self.temporal else repr(typed(values[row : row + 1], dtype)[0])
        known = listed(self.shown(float(each)) if self.temporal else repr(each) for each in self.values)
        remedy = "" if self.dtype == "bool" else f", or fit with {hint(unseen='other')}"
        return self._refused(
            label,
            row,
            f"{value} is not among the known values ({known}): give one of them, or NaN for a missing value{remedy}.",
        )

    def _refused(self, label: str, row: int, why: str) -> DataError:
        return DataError(f"{label}: {why}", row=row, column=self.name)


def _seconds(text: str) -> float | None:
    found = seconds_in([text])
    return None if found is None else float(found[0][0])
