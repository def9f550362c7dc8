"""Plain columns as a table of the same library, container and types as the one that was given."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from made.errors import DataError
from made.tables.dates import as_datetime64, objects
from made.tables.plain import Dtype, Values, is_missing, kind_of
from made.tables.storage import ends_of, storage_of
from made.tables.table import TEMPORAL, Table


def rebuild(table: Table, columns: Sequence[Values], dtypes: Sequence[Dtype]) -> Any:
    """Plain columns, of any number of rows, in the same container as a table, of the same types where values fit."""
    if table.container == "frame":
        given = table.given.iter_columns()
        made = [_as_series(*each) for each in zip(given, columns, dtypes, strict=True)]
        return nw.from_dict({each.name: each for each in made}).to_native()
    if _stays(table, "M", dtypes, TEMPORAL):
        return _dates(table, columns)
    if {"text", *TEMPORAL} & set(dtypes) or (table.container == "numpy" and table.given.dtype.kind in "OUT"):
        _refuse_text(table, dtypes)
        out = np.stack([_as_objects(*each) for each in zip(columns, dtypes, strict=True)], axis=1)
        return out.astype(str) if _stays(table, "U", dtypes, ["text"]) and not is_missing(out).any() else out
    return _numbers(table, np.stack(columns, axis=1))


def fill_missing(table: Table, columns: Sequence[Values], dtypes: Sequence[Dtype]) -> Any:
    """A table as it was given, with its missing values filled from plain columns."""
    if table.extra:
        count = len(table.columns) - table.extra
        names = None if table.names is None else table.names[:count]
        own = replace(table, names=names, columns=table.columns[:count], dtypes=table.dtypes[:count], extra=0)
        return fill_missing(own, columns[:count], dtypes[:count])
    missing = [is_missing(column) for column in table.columns]
    if table.container == "frame":
        new = [
            _filled(each, table.columns[d], missing[d], columns[d], dtypes[d])
            for d, each in enumerate(table.given.iter_columns())
            if missing[d].any()
        ]
        return (table.given.with_columns(*new) if new else table.given.clone()).to_native()
    if not any(each.any() for each in missing):
        return table.given.clone() if table.container == "torch" else table.given.copy()
    needed: list[Dtype] = ["none" if not each.any() else dtype for each, dtype in zip(missing, dtypes, strict=True)]
    if _stays(table, "M", needed, TEMPORAL):
        return np.where(np.stack(missing, axis=1), _dates(table, columns), table.given)
    if not {"text", *TEMPORAL} & set(needed) and (table.container != "numpy" or table.given.dtype.kind in "biuf"):
        where, matrix = np.stack(missing, axis=1), np.zeros((table.rows, len(missing)))
        for d, each in enumerate(missing):
            matrix[each, d] = columns[d][each] if each.any() else 0
        filling = _numbers(table, matrix)
        if table.container == "torch":
            torch: Any = sys.modules["torch"]
            return torch.where(torch.from_numpy(where).to(table.given.device), filling, table.given)
        return np.where(where, filling, table.given)
    _refuse_text(table, dtypes)
    out = table.given.astype(object)
    for d, each in enumerate(missing):
        out[each, d] = _as_objects(columns[d][each], dtypes[d])
    if _stays(table, "U", needed, ["text"]):
        out[is_missing(out)] = ""
        return out.astype(str)
    return out


def _numbers(table: Table, matrix: Values) -> Any:
    """Numbers as an array or a tensor of the type that was given if it can hold them, otherwise float64."""
    kind, name = table.given.dtype, storage_of(table.given.dtype)
    exact = name is None or _can_hold(name, matrix)
    if table.container != "torch":
        exactly = _whole(matrix) if exact and kind.kind in "biu" else matrix
        return exactly.astype(kind if exact else np.float64)
    torch: Any = sys.modules["torch"]
    exactly = _whole(matrix) if exact and not kind.is_floating_point else matrix
    return torch.from_numpy(exactly).to(device=table.given.device, dtype=kind if exact else torch.float64)


def _stays(table: Table, kind: str, dtypes: Sequence[Dtype], allowed: Sequence[str]) -> bool:
    """Whether the table was an array of a kind of numpy's, "M" for dates and "U" for text, and columns can be one."""
    return table.container == "numpy" and table.given.dtype.kind == kind and set(dtypes) <= {*allowed, "none"}


def _dates(table: Table, columns: Sequence[Values]) -> Values:
    """Dates in the unit of the array that was given."""
    unit = np.datetime_data(table.given.dtype)[0]
    times = as_datetime64(np.stack(columns, axis=1), unit=unit)
    cast = times.astype(table.given.dtype)
    fine = unit in ("ns", "ps", "fs", "as")
    if fine and (wrong := ~np.isnat(times) & (cast.astype(times.dtype) != times)).any():
        row, column = (int(each[0]) for each in np.nonzero(wrong))
        raise DataError(
            f"{table.label(column)}: {times[row, column]} is beyond what {cast.dtype} can hold: give the dates as "
            "datetime64[us].",
            row=row,
        )
    return cast


def _refuse_text(table: Table, dtypes: Sequence[Dtype]) -> None:
    if table.container == "torch" and "text" in dtypes:
        d = list(dtypes).index("text")
        raise DataError(f"{table.label(d)} is text, which a tensor cannot hold: give an array of objects, or a frame.")


def _whole(values: Values) -> Values:
    """Whole numbers as int64, or uint64 if they need it; unchanged if neither can hold them."""
    name = next((name for name in ("int64", "uint64") if _can_hold(name, values)), None)
    return values if name is None else values.astype(name)


def _can_hold(storage: str, values: Values) -> bool:
    """Whether a type of numbers, by name, can hold these values without loss."""
    ends, seen = ends_of(storage) or (-np.inf, np.inf), values[~np.isnan(values)]
    if storage == "bool":
        ends = (0.0, 1.0)
    if len(seen) and not ends[0] <= seen.min() <= seen.max() <= ends[1]:
        return False
    return storage.startswith("float") or (len(seen) == values.size and bool((seen == np.rint(seen)).all()))


def _as_objects(values: Values, dtype: Dtype) -> Values:
    """A plain column as Python objects."""
    if dtype == "date" or dtype == "datetime":
        return objects(values, dtype)
    out = values.astype(object)
    if dtype in ("int", "bool"):
        seen = ~np.isnan(values)
        out[seen] = [bool(each) if dtype == "bool" else int(each) for each in values[seen].tolist()]
    return out


def _as_series(given: nw.Series[Any], values: Values, dtype: Dtype) -> nw.Series[Any]:
    """A plain column as a series of the same library as ``given``, and of the same type if values fit."""
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
        with suppress(library.exceptions.PolarsError):  # such as a value that an Enum lacks
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


def _filled(
    given: nw.Series[Any], observed: Values, missing: NDArray[np.bool_], values: Values, dtype: Dtype
) -> nw.Series[Any]:
    """A series whose missing values are filled with plain values."""
    kind = kind_of(given)
    # Observed values are taken from the series itself: a float64 cannot hold all integers and decimals.
    if kind.is_numeric() or kind.is_temporal() or (kind == nw.Object and not given.implementation.is_polars()):
        alone = values.copy()
        alone[~missing] = values[missing][0]
        made = _as_series(given, alone, dtype)
        if made.dtype == given.dtype:
            seen = nw.new_series("seen", ~missing, nw.Boolean, backend=given.implementation)
            return given.zip_with(seen, made)
    merged = observed.copy() if observed.dtype == values.dtype else values.copy()
    merged[missing] = values[missing]
    return _as_series(given, merged, dtype)


def _arrow(values: Values, dtype: Dtype, zone: str | None, unit: str) -> Any:
    arrow = nw.Implementation.PYARROW.to_native_namespace()
    if dtype == "text":
        return arrow.array(values, type=arrow.string())
    if dtype == "date" or dtype == "datetime":
        times = arrow.array(as_datetime64(values, zone, unit))
        return times.cast(arrow.date32(), safe=False) if dtype == "date" else times
    missing = np.isnan(values)
    if dtype in ("int", "bool"):
        values = _whole(np.where(missing, 0, values))
    return arrow.array(values.astype(np.bool_) if dtype == "bool" else values, mask=missing)


def _dictionary(arrow: Any, array: Any, native: Any) -> Any:
    """An array as a dictionary array; an ordered dictionary is kept if it has all values."""
    if native.type.ordered and native.num_chunks:
        values = native.unify_dictionaries().chunk(0).dictionary
        places = import_module("pyarrow.compute").index_in(array, values)
        if places.null_count == array.null_count:
            return arrow.DictionaryArray.from_arrays(places.cast(native.type.index_type), values, ordered=True)
    return array.dictionary_encode().cast(native.type)


def _pandas(pandas: Any, kind: Any, values: Values, dtype: Dtype, zone: str | None, unit: str) -> Any:
    missing = is_missing(values).any()
    if str(kind) == "object" or (dtype == "bool" and missing):
        made = pandas.Series(_as_objects(values, dtype), dtype=object)
        return made if str(kind) in ("None", "object", "bool") else made.astype(kind)
    if dtype == "date" or dtype == "datetime":
        made = pandas.Series(as_datetime64(values, zone, unit))
        local = getattr(kind, "tz", None) or getattr(getattr(kind, "pyarrow_dtype", None), "tz", None)
        if local is not None:
            made = made.dt.tz_localize("UTC").dt.tz_convert(local)
    else:
        if dtype in ("int", "bool") and not missing:
            values = _whole(values) if dtype == "int" else values.astype(np.bool_)
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
            # A cast to integers by numpy drops fractions and wraps around.
            return same if kind.kind not in "iub" or bool((same == made).all()) else made
    return made
