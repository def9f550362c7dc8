"""A column of any library as a plain column.

A plain column is an array: numbers are float64 with NaN for missing values, dates are seconds since 1970
(:mod:`made.tables.dates`), and text is str objects with None for missing values. NaN, None, null, pd.NA and empty text
are all missing values.
"""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Collection
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from made.errors import DataError
from made.tables.dates import in_seconds

Values: TypeAlias = NDArray[Any]
Dtype: TypeAlias = Literal["float", "int", "bool", "text", "date", "datetime", "none"]

NOTHING = np.array(None, dtype=object)


def is_missing(values: Values) -> NDArray[np.bool_]:
    """Flags of the missing values of plain columns. Shape: as ``values``."""
    missing = np.equal(values, NOTHING) if values.dtype == object else np.isnan(values)
    return np.asarray(missing, dtype=np.bool_)


def plain_series(series: nw.Series[Any], label: str) -> tuple[Values, Dtype]:
    """A series of narwhals as a plain column, and its dtype."""
    native: Any = series.to_native()
    if is_numpy_number(getattr(native, "dtype", None)):
        return plain(native.to_numpy(copy=True), label)
    kind = kind_of(series)
    if kind == nw.String and str(getattr(native, "dtype", "")) != "object":
        text = _plain_text(series.to_arrow())
        if text is not None:
            return text, "text"
    if kind in (nw.Date, nw.Datetime):
        column, dtype = plain(series.to_numpy(), label)
        return column, dtype if dtype == "none" else "date" if kind == nw.Date else "datetime"
    if kind.is_temporal():
        raise _no_date(label, str(kind))
    if kind.is_nested():
        raise _no_value(label, str(kind))
    if kind.is_numeric() or kind == nw.Boolean:
        # pyarrow casts no integer that float64 cannot hold exactly; numpy takes no Decimal and no 128-bit integer
        digits = kind.is_integer() and kind not in (nw.Int128, nw.UInt128)
        column = _finite(np.array((series if digits else series.cast(nw.Float64)).to_numpy(), dtype=np.float64), label)
        return column, _dtype_of(column, "bool" if kind == nw.Boolean else "int" if kind.is_integer() else "float")
    values, missing = np.asarray(series.to_numpy()), series.is_null().to_numpy()
    if missing.any():  # the conversion gives another value for a null in a pyarrow dictionary
        values = values.astype(object)
        values[missing] = None
    return plain(values, label)


def is_numpy_number(dtype: Any) -> bool:
    """Whether a dtype, of any library, is one of numpy's numbers, as most columns of pandas have."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _plain_text(array: Any) -> Values | None:
    """An arrow array of text as a plain column, by way of its distinct values; None if all of them are missing."""
    encoded = array.dictionary_encode()
    parts = encoded.unify_dictionaries().chunks if hasattr(array, "chunks") else [encoded]
    if not parts:
        return None
    distinct = np.array([text or None for text in parts[0].dictionary.to_pylist()] + [None], dtype=object)
    missing = len(distinct) - 1
    places = np.concatenate([part.indices.fill_null(missing).to_numpy(zero_copy_only=False) for part in parts])
    return None if is_missing(distinct).all() else distinct[places]


def kind_of(series: nw.Series[Any]) -> Any:
    """The narwhals type of a series, with arrow's date64 as a date."""
    native: Any = series.to_native()
    arrow = getattr(native, "type", None) or getattr(getattr(native, "dtype", None), "pyarrow_dtype", None)
    return nw.Date() if str(arrow).startswith("date64") else series.dtype


def plain(values: Values, label: str) -> tuple[Values, Dtype]:
    """One column as a plain column, and its dtype; ``label`` names it in messages."""
    values = np.asarray(values)
    kind = values.dtype.kind
    if kind in "biuf":
        with np.errstate(over="ignore"):  # a long double may overflow to infinity, which is refused
            column: Values = _finite(values.astype(np.float64, copy=False), label)
        return column, _dtype_of(column, "bool" if kind == "b" else "float" if kind == "f" else "int")
    if kind == "c":
        raise DataError(f"Complex data not supported: {label} has {values.dtype} values, give real numbers.")
    if kind == "m":
        raise _no_date(label, str(values.dtype))
    if kind == "M":
        column = in_seconds(values, label)
        return column, _dtype_of(
            column, "date" if np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D") else "datetime"
        )
    return _plain_objects(values.astype(object) if kind in "UT" else values, label)


def _plain_objects(values: Values, label: str) -> tuple[Values, Dtype]:
    if values.dtype != object:
        raise _no_value(label, str(values.dtype))
    types = set(map(type, values.tolist()))
    missing = set(filter(_is_missing_type, types))
    text = {kind for kind in types if issubclass(kind, str)}
    number = {kind for kind in types if issubclass(kind, (numbers.Real, np.bool_, Decimal))}
    number -= {kind for kind in types if issubclass(kind, np.timedelta64)}  # a subclass of numpy's integers
    date = {kind for kind in types - missing if issubclass(kind, (datetime.date, np.datetime64))}
    for kind in types - missing - text - number - date:
        if issubclass(kind, (datetime.time, datetime.timedelta, np.timedelta64)):
            raise _no_date(label, kind.__name__)
        if issubclass(kind, numbers.Complex):
            raise DataError(f"Complex data not supported: {label} has {kind.__name__} values, give real numbers.")
        raise _no_value(label, kind.__name__)
    if date:
        return _plain_dates(values, date, label)
    if text:
        # NaN is the only number that is allowed among text.
        known = {each: str(each) if type(each) in text and each else None for each in dict.fromkeys(values.tolist())}
        example = next(filter(None, known.values()), None)
        if example is not None:
            for each in known:
                if type(each) in number and each == each:
                    raise DataError(
                        f"{label} has both numbers ({each!r}) and text ({example!r}): convert it to one of them."
                    )
            column = np.empty(len(values), dtype=object)
            column[:] = [known[each] for each in values.tolist()]
            return column, "text"
    if missing - {type(None)} or text:
        values = np.array([each if type(each) in number else None for each in values.tolist()], dtype=object)
    try:
        column = _finite(values.astype(np.float64), label)
    except OverflowError:
        raise DataError(f"{label} has a number too large for a float64, infinity: scale it.") from None
    number = set(map(type, values[~np.isnan(column)].tolist()))  # observed values only: NaN may stand among integers
    if all(issubclass(kind, (bool, np.bool_)) for kind in number):
        return column, _dtype_of(column, "bool")
    return column, _dtype_of(column, "int" if all(issubclass(kind, numbers.Integral) for kind in number) else "float")


def _plain_dates(values: Values, date: Collection[type], label: str) -> tuple[Values, Dtype]:
    """Objects that are dates, or missing values such as NaN and empty text."""
    known = {each: each if type(each) in date else None for each in dict.fromkeys(values.tolist())}
    for each, seen in known.items():
        if seen is None and not _is_missing_type(type(each)) and each == each and each != "":
            raise DataError(f"{label} has dates, but also {each!r}: convert all values to dates.")
        if getattr(seen, "tzinfo", None) is not None:
            raise DataError(
                f"{label} has times with a time zone as objects, such as {str(seen)!r}: make it a column of times, "
                "such as by pandas.to_datetime(column, utc=True)."
            )
    dates = [known[each] for each in values.tolist()]
    if not any(issubclass(kind, np.datetime64) for kind in date):
        column = in_seconds(np.array(dates, dtype="M8[us]"), label)
    else:  # one by one: units may differ, and numpy overflows silently when it converts them to one
        column = np.full(len(values), np.nan)
        for row, each in enumerate(dates):
            try:
                column[row] = np.nan if each is None else in_seconds(np.array([each], dtype="M8"), label)[0]
            except DataError as error:
                raise error.after(row) from None
    days = all(not issubclass(kind, (datetime.datetime, np.datetime64)) for kind in date)
    return column, _dtype_of(column, "date" if days else "datetime")


def _is_missing_type(kind: type) -> bool:
    return kind is type(None) or kind.__name__ in ("NAType", "NaTType")


def _finite(column: Values, label: str) -> Values:
    if np.isinf(column).any():
        row = int(np.flatnonzero(np.isinf(column))[0])
        raise DataError(f"{label}: infinity cannot be used: give a number, or NaN for a missing value.", row=row)
    return column


def _dtype_of(column: Values, dtype: Dtype) -> Dtype:
    return "none" if len(column) and np.isnan(column).all() else dtype


def _no_date(label: str, dtype: str) -> DataError:
    return DataError(
        f"{label} has times of day, or lengths of time ({dtype}): convert it to a number, such as hours, or "
        "leave it out."
    )


def _no_value(label: str, dtype: str) -> TypeError:
    return TypeError(
        f"{label}: argument must be a string or a number, not '{dtype}': convert it to numbers, text or dates, or "
        "leave it out."
    )


def as_text(value: str | float) -> str:
    """A value as text, a number in the shortest way: 1.0 is '1'."""
    if isinstance(value, (str, bool)):
        return str(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else repr(value)


def number_in(text: str, is_bool: bool = False) -> float | None:
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
