"""The values of one column of a person's table as the codes that a network takes, and codes as values.

A binary column's code is 0 or 1, that of a categorical or ordinal one 0, ..., k - 1, a number stands for itself, and
NaN is what was not observed. Where what is missing is a value of its own, it has a code, too: one more category, or
infinity among numbers. So has, unless it is to be an error, a value that training never saw: one more category for all
of them, or a place beside the codes of listed numbers (:mod:`made.columns.unseen`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from made.columns.unseen import Unseen
from made.errors import DataError
from made.hints import hint
from made.tables.dates import DAY, in_text, seconds_in
from made.tables.facts import OTHER, Facts, Kind
from made.tables.plain import Dtype, Values, is_missing
from made.tables.storage import ends_of

__all__ = ["Field", "Kind", "fitting", "number_in", "typed"]


@dataclass(frozen=True)
class Field(Facts):
    """One column: what is known of it, and values to codes and back.

    Example:
        >>> field = Field("grade", "categorical", ("low", "mid", "high"), dtype="text")
        >>> field.column()
        Categorical(k=3)
        >>> field.decode(np.array([2.0, np.nan]))
        (array(['high', None], dtype=object), 'text')
    """

    def encode(self, values: Values, dtype: Dtype, label: str) -> NDArray[np.float64]:
        """A plain column as codes. Shapes: (rows,) to (rows,)."""
        hole = is_missing(values)
        values, dtype = self._in_own_terms(values, dtype, label)
        if self.kind == "numeric":
            codes = self._on_steps(values.astype(np.float64), label)
            codes[hole] = math.inf if self.missing else np.nan
            return codes
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
        codes[hole] = len(self.values) if self.missing else np.nan
        unseen = codes < 0
        if not unseen.any():
            return codes
        if self.bucket:
            codes[unseen] = len(self.values) + self.missing
            return codes
        numbers = values
        if values.dtype == object:
            read = (math.nan if value is None else number_in(value, False) for value in values.tolist())
            numbers = np.array([math.nan if number is None else number for number in read])
        refused = unseen & (np.isnan(numbers) if self.beside is not None else True)
        if self.beside is None or refused.any():
            raise self._unseen(values, dtype, int(np.flatnonzero(refused)[0]), label)
        codes[unseen] = self.beside.code(np.rint(numbers / self.step) * self.step if self.step else numbers)[unseen]
        return codes

    def foreign(self, values: Values, codes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which entries are values that training never saw: not listed, below a bound, or between steps.

        Numbers that are not in a list are otherwise no surprise. Shapes: (rows,), (rows,) to (rows,).
        """
        if self.kind != "numeric":
            return np.asarray(~np.isnan(codes) & (self.places(codes) == len(self.labels())))
        finite = np.isfinite(codes)
        below = finite & (codes < (-math.inf if self.low is None else self.low))
        if values.dtype == object or not self.step:
            return np.asarray(below)
        return np.asarray(below | (finite & (np.abs(codes - values) > 1e-6 * (self.step + np.abs(codes)))))

    def places(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The codes of a column with a list of values, with one more for all that is not listed; NaN stays NaN."""
        most = len(self.labels())
        listed = np.isnan(codes) | ((codes >= 0) & (codes < most) & (codes == np.floor(codes)))
        return np.where(listed, codes, most)

    def decode(self, codes: NDArray[np.float64], dtype: Dtype = "none") -> tuple[Values, Dtype]:
        """Codes as a plain column, and its family: ``dtype`` if the values can be of that, otherwise the field's own.

        Shapes: (rows,) to (rows,).
        """
        hole = np.isnan(codes)
        if self.kind == "numeric":
            values: Values = np.where(np.isinf(codes), np.nan, np.rint(codes) if self.dtype == "int" else codes)
            return self._given_back(self._held(values), dtype)
        if self.kind == "ordinal" or self.beside is not None:
            # A mean is no listed value, and neither is what training never saw.
            found = Unseen(tuple(map(float, self.values)), self.step).value(torch.from_numpy(codes)).numpy()
            return self._given_back(self._held(np.rint(found) if self.dtype == "int" else found), dtype)
        categories, family = self._categories(dtype)
        places = np.where(hole, 0, codes).astype(np.intp)
        wrong = ~hole & ((places != codes) | (places < 0) | (places >= len(categories)))
        if wrong.any():
            most = len(categories) - 1
            raise ValueError(f"'codes' of column {self.name!r} should be 0 to {most}, not {codes[wrong][0]:g}.")
        values = categories.take(places)
        values[hole] = None if family == "text" else np.nan
        return values if family == "text" else self._held(values), family

    def _held(self, values: Values) -> Values:
        """A number beyond what the column's own type holds cannot be of that column: it is the nearest that can."""
        ends = ends_of(self.storage)
        return values if ends is None else values.clip(*ends)

    def _in_own_terms(self, values: Values, dtype: Dtype, label: str) -> tuple[Values, Dtype]:
        """Dates that are written as text are dates, or the other way round, as this column has them."""
        seen = np.flatnonzero(~is_missing(values)).tolist()
        temporal = dtype in ("date", "datetime")
        if not seen or (temporal and self.temporal):
            return values, dtype
        if temporal and self.dtype == "text":
            return in_text(values, "date" if dtype == "date" else "datetime"), "text"
        has, wants = "a date" if temporal else "text" if dtype == "text" else "a number", "numbers"
        row: int | None = None
        if self.temporal:
            wants, row = "dates, such as 2024-03-01", seen[0]
            if dtype == "text":
                known = {text: seconds_in([text]) for text in dict.fromkeys(values[seen].tolist())}
                row = next((row for row in seen if known[values[row]] is None), None)
                if row is None:
                    found = np.full(len(values), np.nan)
                    found[seen] = [each[0][0] for text in values[seen].tolist() if (each := known[text]) is not None]
                    return found, self.dtype
        elif temporal:
            row = seen[0]
        elif self.kind in ("ordinal", "numeric") and dtype == "text":
            read = {text: number_in(text, False) for text in dict.fromkeys(values[seen].tolist())}
            row = next((row for row in seen if read[values[row]] is None), None)
            if row is None:
                found = np.full(len(values), np.nan)
                found[seen] = [read[text] for text in values[seen].tolist()]
                return found, "float"
        if row is not None:
            value = in_text(values[row : row + 1], "datetime")[0] if temporal else values.tolist()[row]
            raise DataError(
                f"{label}: {value!r} is {has}, where the model has {wants}: give what it was fitted on, or "
                "NaN for 'not observed'.",
                row=row,
                column=self.name,
            )
        return values, dtype

    def _given_back(self, values: Values, dtype: Dtype) -> tuple[Values, Dtype]:
        """Numbers, and the family asked for if they are of it, or text if they are dates."""
        if self.temporal is None:
            return values, fitting(values[~np.isnan(values)], dtype, self.dtype)
        if dtype == "text":
            return in_text(values, self.temporal), "text"
        return values, "datetime" if dtype == "datetime" else self.dtype

    def _categories(self, dtype: Dtype) -> tuple[Values, Dtype]:
        """What the codes stand for, in order, as a plain column of family ``dtype`` if it can be."""
        values, family = self._known(dtype)
        nothing = None if family == "text" else np.nan
        more = [nothing] * self.missing + [OTHER if family == "text" else nothing] * self.bucket
        return np.concatenate([values, np.array(more, dtype=values.dtype)]), family

    def _known(self, dtype: Dtype) -> tuple[Values, Dtype]:
        if self.temporal:
            return self._given_back(np.array(self.values, dtype=np.float64), dtype)
        if (self.dtype == "text") == (dtype == "text") or dtype == "none" or self.bucket:
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
        """Numbers, each the nearest step; one that is none, or is below the least, may be refused. NaN is neither."""
        steps = (values - self.origin) / self.step if self.step else np.zeros(len(values))
        off = np.abs(steps - np.rint(steps)) >= 1e-6 * (1 + np.abs(steps))
        below = np.zeros(len(values), dtype=np.bool_) if self.low is None else values < self.low
        if self.other:
            return np.where(off, self.origin + np.rint(steps) * self.step, values)
        if not (off | below).any():
            return values
        row = int(np.flatnonzero(off | below)[0])
        if below[row]:
            raise DataError(
                f"{label}: {self.shown(values[row])} is below {self.low:g}, as no value was that the model "
                f"was fitted on: give NaN for 'not observed', or fit with {hint(columns={self.name: 'real'})}.",
                row=row,
                column=self.name,
            )
        steps_of = "whole days" if self.temporal and self.step == DAY else f"steps of {self.step:g}"
        raise DataError(
            f"{label}: {self.shown(values[row])} is not among the values in {steps_of} that the model was "
            "fitted on: round it, or give NaN for 'not observed'.",
            row=row,
            column=self.name,
        )

    def _unseen(self, values: Values, dtype: Dtype, row: int, label: str) -> DataError:
        value = self.shown(values[row]) if self.temporal else repr(typed(values[row : row + 1], dtype)[0])
        known = [self.shown(float(each)) if self.temporal else repr(each) for each in self.values[:10]]
        remedy = "" if self.dtype == "bool" else f", or fit with {hint(unseen='other')}"
        return DataError(
            f"{label}: {value} is not among the known values ({', '.join(known)}"
            f"{', ...' if len(self.values) > 10 else ''}): give one of them, or NaN for 'not observed'{remedy}.",
            row=row,
            column=self.name,
        )


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
