"""One column, of any library: as a plain column, and a plain column as one of the same kind.

A plain column is an array: numbers are float64 with NaN where nothing was observed, dates are numbers of seconds
(:mod:`made.tables.dates`), and text is objects of str with None. NaN, None, null, pd.NA and empty text all mean "not
observed".
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Collection
from contextlib import suppress
from decimal import Decimal
from importlib import import_module
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from made.errors import DataError
from made.tables.dates import as_datetime64, in_seconds, objects
from made.tables.storage import ends_of, storage_of

__all__ = [
    "Dtype",
    "Values",
    "as_objects",
    "as_series",
    "can_hold",
    "filled",
    "holes",
    "plain",
    "plain_series",
    "storage",
    "whole",
]

Values: TypeAlias = NDArray[Any]
Dtype: TypeAlias = Literal["float", "int", "bool", "text", "date", "datetime", "none"]

NOTHING = np.array(None, dtype=object)


def holes(values: Values) -> NDArray[np.bool_]:
    """Where a plain column has nothing. Shapes: (rows,) to (rows,)."""
    hole = np.equal(values, NOTHING) if values.dtype == object else np.isnan(values)
    return np.asarray(hole, dtype=np.bool_)


def plain_series(series: nw.Series[Any], label: str) -> tuple[Values, Dtype]:
    """A series as :func:`plain` has it."""
    kind = kind_of(series)
    if kind in (nw.Date, nw.Datetime):
        column, dtype = plain(series.to_numpy(), label)
        return column, dtype if dtype == "none" else "date" if kind == nw.Date else "datetime"
    if kind.is_temporal():
        raise _no_date(label, str(kind))
    if kind.is_nested():
        raise TypeError(f"{label}: argument must be a string or a number, not '{kind}'.")
    if kind.is_numeric() or kind == nw.Boolean:
        # pyarrow casts no integer that a float64 cannot hold to the digit, numpy no Decimal and no integer of 128 bits
        digits = kind.is_integer() and kind not in (nw.Int128, nw.UInt128)
        column = _finite(np.array((series if digits else series.cast(nw.Float64)).to_numpy(), dtype=np.float64), label)
        return column, _family(column, "bool" if kind == nw.Boolean else "int" if kind.is_integer() else "float")
    values, missing = np.asarray(series.to_numpy()), series.is_null().to_numpy()
    if missing.any():  # never trusted to the conversion: of a pyarrow dictionary, it gives another value for null
        values = values.astype(object)
        values[missing] = None
    return plain(values, label)


def kind_of(series: nw.Series[Any]) -> Any:
    """The type of a series as narwhals has it, which knows nothing of arrow's days in milliseconds."""
    native: Any = series.to_native()
    arrow = getattr(native, "type", None) or getattr(getattr(native, "dtype", None), "pyarrow_dtype", None)
    return nw.Date() if str(arrow).startswith("date64") else series.dtype


def storage(series: nw.Series[Any]) -> str | None:
    """The exact type of a series, by name (:mod:`made.tables.storage`)."""
    native: Any = series.to_native()
    short = {"halffloat", "float16", "Float16"} & {str(getattr(native, each, "")) for each in ("type", "dtype")}
    return "float16" if short else storage_of(kind_of(series))


def plain(values: Values, label: str) -> tuple[Values, Dtype]:
    """One column as float64 with NaN, or as objects of str with None, and its family. ``label`` is for messages."""
    values = np.asarray(values)
    kind = values.dtype.kind
    if kind in "biuf":
        with np.errstate(over="ignore"):  # a long double may be infinity to a float64, which is refused
            column: Values = _finite(values.astype(np.float64, copy=False), label)
        return column, _family(column, "bool" if kind == "b" else "float" if kind == "f" else "int")
    if kind == "c":
        raise DataError(f"Complex data not supported: {label} has {values.dtype} values, give real numbers.")
    if kind == "m":
        raise _no_date(label, str(values.dtype))
    if kind == "M":
        column = in_seconds(values, label)
        return column, _family(
            column, "date" if np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D") else "datetime"
        )
    return _plain_objects(values.astype(object) if kind in "UT" else values, label)


def _plain_objects(values: Values, label: str) -> tuple[Values, Dtype]:
    if values.dtype != object:
        raise TypeError(f"{label}: argument must be a string or a number, not {values.dtype}.")
    types = set(map(type, values.tolist()))
    missing = set(filter(_is_nothing, types))
    text = {kind for kind in types if issubclass(kind, str)}
    number = {kind for kind in types if issubclass(kind, (numbers.Real, np.bool_, Decimal))}
    number -= {kind for kind in types if issubclass(kind, np.timedelta64)}  # which is an integer to numpy
    date = {kind for kind in types - missing if issubclass(kind, (datetime.date, np.datetime64))}
    for kind in types - missing - text - number - date:
        if issubclass(kind, (datetime.time, datetime.timedelta, np.timedelta64)):
            raise _no_date(label, kind.__name__)
        if issubclass(kind, numbers.Complex):
            raise DataError(f"Complex data not supported: {label} has {kind.__name__} values, give real numbers.")
        raise TypeError(f"{label}: argument must be a string or a number, not '{kind.__name__}'.")
    if date:
        return _plain_dates(values, date, label)
    if text:
        # Each distinct value is looked at once; NaN is the one number that may stand among text.
        known = {each: str(each) if type(each) in text and each else None for each in dict.fromkeys(values.tolist())}
        example = next(filter(None, known.values()), None)
        if example is not None:
            for each in known:
                if type(each) in number and each == each:
                    raise DataError(
                        f"{label} has both numbers ({each!r}) and text ({example!r}): make it all one or the other."
                    )
            column = np.empty(len(values), dtype=object)
            column[:] = [known[each] for each in values.tolist()]
            return column, "text"
    if missing - {type(None)} or text:
        values = np.array([each if type(each) in number else None for each in values.tolist()], dtype=object)
    try:
        column = _finite(values.astype(np.float64), label)
    except OverflowError:
        raise DataError(f"{label} has a number that is infinity to a float64, being too large: scale it.") from None
    number = set(map(type, values[~np.isnan(column)].tolist()))  # of those observed: NaN may stand among integers
    if all(issubclass(kind, (bool, np.bool_)) for kind in number):
        return column, _family(column, "bool")
    return column, _family(column, "int" if all(issubclass(kind, numbers.Integral) for kind in number) else "float")


def _plain_dates(values: Values, date: Collection[type], label: str) -> tuple[Values, Dtype]:
    """Objects that are dates: NaN may stand among them, and empty text, but nothing else."""
    known = {each: each if type(each) in date else None for each in dict.fromkeys(values.tolist())}
    for each, seen in known.items():
        if seen is None and not _is_nothing(type(each)) and each == each and each != "":
            raise DataError(f"{label} has dates, and among them {each!r}: make it all dates.")
        if getattr(seen, "tzinfo", None) is not None:
            raise DataError(
                f"{label} has times with a time zone as objects, such as {str(seen)!r}: make it a column of times, "
                "such as by pandas.to_datetime(column, utc=True)."
            )
    dates = [known[each] for each in values.tolist()]
    if not any(issubclass(kind, np.datetime64) for kind in date):
        column = in_seconds(np.array(dates, dtype="M8[us]"), label)
    else:  # one by one: each may be of another unit, and numpy overflows in silence when it makes them one
        column = np.full(len(values), np.nan)
        for row, each in enumerate(dates):
            try:
                column[row] = np.nan if each is None else in_seconds(np.array([each], dtype="M8"), label)[0]
            except DataError as error:
                raise error.after(row) from None
    days = all(not issubclass(kind, (datetime.datetime, np.datetime64)) for kind in date)
    return column, _family(column, "date" if days else "datetime")


def _is_nothing(kind: type) -> bool:
    return kind is type(None) or kind.__name__ in ("NAType", "NaTType")


def _finite(column: Values, label: str) -> Values:
    if np.isinf(column).any():
        row = int(np.flatnonzero(np.isinf(column))[0])
        raise DataError(f"{label}: infinity cannot be used: give a number, or NaN for 'not observed'.", row=row)
    return column


def _family(column: Values, dtype: Dtype) -> Dtype:
    return "none" if len(column) and np.isnan(column).all() else dtype


def _no_date(label: str, dtype: str) -> DataError:
    return DataError(
        f"{label} has times of day, or lengths of time ({dtype}): convert it to a number, such as hours, or "
        "leave it out."
    )


def whole(values: Values) -> Values:
    """Whole numbers as integers, unsigned ones if that is what it takes; as they were, if no integer can hold them."""
    name = next((name for name in ("int64", "uint64") if can_hold(name, values)), None)
    return values if name is None else values.astype(name)


def can_hold(storage: str, values: Values) -> bool:
    """Whether a type of numbers, by its name, can hold these: none is missing, cut off or wrapped around."""
    ends, seen = ends_of(storage) or (-np.inf, np.inf), values[~np.isnan(values)]
    if storage == "bool":
        ends = (0.0, 1.0)
    if len(seen) and not ends[0] <= seen.min() <= seen.max() <= ends[1]:
        return False
    return storage.startswith("float") or (len(seen) == values.size and bool((seen == np.rint(seen)).all()))


def as_objects(values: Values, dtype: Dtype) -> Values:
    """A plain column as Python's own values."""
    if dtype == "date" or dtype == "datetime":
        return objects(values, dtype)
    out = values.astype(object)
    if dtype in ("int", "bool"):
        seen = ~np.isnan(values)
        out[seen] = [bool(each) if dtype == "bool" else int(each) for each in values[seen].tolist()]
    return out


def as_series(given: nw.Series[Any], values: Values, dtype: Dtype) -> nw.Series[Any]:
    """A plain column as a series of the same library, of the same type as ``given`` if it can be."""
    kind, native = kind_of(given), given.to_native()
    library: Any = given.implementation.to_native_namespace()
    temporal = dtype in ("date", "datetime")
    zone, unit = getattr(kind, "time_zone", None), getattr(kind, "time_unit", "us")
    fits = kind in (nw.Categorical, nw.Enum, nw.Object) or (kind == nw.String, kind.is_temporal()) == (
        dtype == "text",
        temporal,
    )
    if given.implementation.is_pandas_like():
        made = _pandas(
            library, native.dtype if fits or str(native.dtype) == "object" else None, values, dtype, zone, unit
        )
        made.name = native.name
        return nw.from_native(made, series_only=True)
    array = _arrow(values, dtype, zone, unit)
    if given.implementation.is_polars():
        made = library.Series(given.name, array)
        with suppress(library.exceptions.PolarsError):  # such as a value that an Enum has not
            if temporal and zone:
                made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(native.dtype.time_zone)
            same = made.cast(native.dtype) if fits and kind != nw.Object else made
            made = same if not kind.is_integer() or (same == made).all() else made
        return nw.from_native(made, series_only=True)
    with suppress(library.ArrowInvalid, library.ArrowNotImplementedError):
        if library.types.is_dictionary(native.type):
            array = _dictionary(library, array.cast(native.type.value_type), native)
        elif fits and not library.types.is_null(native.type):
            array = array.cast(native.type)
    series: nw.Series[Any] = nw.from_native(library.chunked_array([array]), series_only=True)
    return series.alias(given.name)


def filled(
    given: nw.Series[Any], observed: Values, hole: NDArray[np.bool_], values: Values, dtype: Dtype
) -> nw.Series[Any]:
    """A series with plain values where it has holes."""
    kind = kind_of(given)
    # What was observed is taken from what was given: large integers and decimals are more than a float64 can hold.
    if kind.is_numeric() or kind.is_temporal() or (kind == nw.Object and not given.implementation.is_polars()):
        alone = values.copy()
        alone[~hole] = values[hole][0]
        made = as_series(given, alone, dtype)
        if made.dtype == given.dtype:
            seen = nw.new_series("seen", ~hole, nw.Boolean, backend=given.implementation)
            return given.zip_with(seen, made)
    merged = observed.copy() if observed.dtype == values.dtype else values.copy()
    merged[hole] = values[hole]
    return as_series(given, merged, dtype)


def _arrow(values: Values, dtype: Dtype, zone: str | None, unit: str) -> Any:
    arrow = nw.Implementation.PYARROW.to_native_namespace()
    if dtype == "text":
        return arrow.array(values, type=arrow.string())
    if dtype == "date" or dtype == "datetime":
        times = arrow.array(as_datetime64(values, zone, unit))
        return times.cast(arrow.date32(), safe=False) if dtype == "date" else times
    hole = np.isnan(values)
    if dtype in ("int", "bool"):
        values = whole(np.where(hole, 0, values))
    return arrow.array(values.astype(np.bool_) if dtype == "bool" else values, mask=hole)


def _dictionary(arrow: Any, array: Any, native: Any) -> Any:
    """An array as one with a dictionary; if that is in an order, with the same one, as long as it has all values."""
    if native.type.ordered and native.num_chunks:
        values = native.unify_dictionaries().chunk(0).dictionary
        places = import_module("pyarrow.compute").index_in(array, values)
        if places.null_count == array.null_count:
            return arrow.DictionaryArray.from_arrays(places.cast(native.type.index_type), values, ordered=True)
    return array.dictionary_encode().cast(native.type)


def _pandas(pandas: Any, kind: Any, values: Values, dtype: Dtype, zone: str | None, unit: str) -> Any:
    hole = holes(values).any()
    if str(kind) == "object" or (dtype == "bool" and hole):
        made = pandas.Series(as_objects(values, dtype), dtype=object)
        return made if str(kind) in ("None", "object", "bool") else made.astype(kind)
    if dtype == "date" or dtype == "datetime":
        made = pandas.Series(as_datetime64(values, zone, unit))
        local = getattr(kind, "tz", None) or getattr(getattr(kind, "pyarrow_dtype", None), "tz", None)
        if local is not None:
            made = made.dt.tz_localize("UTC").dt.tz_convert(local)
    else:
        if dtype in ("int", "bool") and not hole:
            values = whole(values) if dtype == "int" else values.astype(np.bool_)
        made = pandas.Series(values)
    if isinstance(kind, pandas.CategoricalDtype):
        new = made.dropna().drop_duplicates()
        new = new[~new.isin(kind.categories)]
        if len(new) and (dtype == "text") != (kind.categories.dtype.kind == "O"):
            return made
        return made.astype(pandas.CategoricalDtype([*kind.categories, *new], kind.ordered))
    if kind is not None:
        with suppress(ValueError, TypeError, OverflowError):
            same = made.astype(kind)
            # A cast to integers of numpy drops fractions and wraps around.
            return same if kind.kind not in "iub" or bool((same == made).all()) else made
    return made
