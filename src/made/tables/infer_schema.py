"""Infer the kind of a column from its values, or from a summary of very many."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from made.columns.base import Column
from made.columns.discrete import Binary, Categorical
from made.columns.logistic import FAR_SHARE, Numeric
from made.columns.ordinal import Ordinal
from made.columns.point_masses import PointMasses
from made.columns.registry import find_kind, kind_names
from made.columns.transform import choose_curve
from made.columns.unseen import Unseen
from made.errors import DataError, ModelError, ParameterError, UninformativeError
from made.hints import hint
from made.tables.field import OTHER, Field
from made.tables.plain import Dtype, Values, fitting, is_missing, plain, typed
from made.tables.summary import ColumnSummary, on_steps
from made.tables.table import TEMPORAL
from made.tables.text_forms import remedy

BUILT_IN = ("auto", "binary", "categorical", "ordinal", "numeric", "real")
MOST_CATEGORIES = 1000
MOST_STEPS = 1_000_000
# Up to so many values may all be different without being identifiers.
FEW = 20
# The most point masses of a column of numbers, and the least number of other values.
MOST_POINTS, LEAST_REST = 128, 5
# Rows that make a value frequent. Few numbers of which half are not have no list of values, but a tail.
FREQUENT = 5
# The number of rows from which a spacing above 1 is not a coincidence.
ROWS_OF_GRID = 100
# Quantiles between which numbers are encoded piecewise linearly, and the rows between two of them.
MOST_PIECES, ROWS_OF_PIECE = 16, 200
# The probability of all numbers together that training has not seen, beside a list of several, and of two.
UNSEEN_NUMBER, UNSEEN_FLAG = 1e-6, 1e-9
KEY = re.compile(
    r"(?i:(^|[_\W])(id|key|uuid|guid|index|row|rownames?|nr|no|number)$)|[a-z](ID|Id|Key|Index|Nr|No|Number)$"
)


def infer(
    column: ColumnSummary,
    name: str,
    kind: Any,
    missing: bool = False,
    unseen: Literal["error", "other"] = "error",
    extrapolate: bool = False,
    *,
    label: str,
) -> Field:
    """The field of a column, of a given kind or ``"auto"``; see :meth:`made.tables.schema.Schema.infer`."""
    listed = not isinstance(kind, str) and isinstance(kind, (Sequence, np.ndarray))
    own = None if listed or (isinstance(kind, str) and kind in BUILT_IN) else _plugin(kind, label)
    dtype, declared, missing = column.dtype, column.declared, missing and column.missing > 0
    if not column.count:
        message = f"{label} has no observed value, so nothing can be learned about it"
        raise _uninformative(f"{message}: leave it out, {hint(columns={name: 'drop'})}.", name, None)
    if own is not None:
        return _of_plugin(name, own, column, label, missing)
    reserved = 0.0
    if unseen == "other":
        # The probability of unseen text: a tenth of what the rule of succession gives. Most columns have no further
        # values, and where some are seen only once, the share of others is learned from these.
        reserved = 0.1 / (column.count + column.missing + 2)
    if listed or (isinstance(declared, tuple) and kind in ("auto", "categorical")):
        return _listed(name, kind if listed else declared, dtype, label, missing, reserved)
    if dtype == "text" and not declared and kind != "categorical" and (dates := column.as_dates()) is not None:
        field = infer(dates, name, kind, missing, unseen, extrapolate, label=label)
        return replace(field, written=dates.written)
    if kind == "auto" and not declared:
        (_refuse_names if dtype == "text" else _refuse_keys)(column, name, label)
    distinct = _distinct(column, kind)
    if kind == "auto" and (dtype in ("text", "bool") or declared):
        kind = "binary" if len(distinct) == 2 else "categorical"
    elif kind == "auto":
        kind = _kind_of_numbers(distinct, column)
    if kind in ("ordinal", "numeric", "real"):
        dtype = _dtype_of_numbers(column, kind, label)
    if kind in ("numeric", "real"):
        other = FAR_SHARE if unseen == "other" else 0.0
        numeric = _numeric(column, missing, plainly=kind == "real", extrapolate=extrapolate)
        return Field(name, numeric, dtype=dtype, missing=missing, other=other)
    if kind == "ordinal" and not missing and len(distinct) <= MOST_CATEGORIES:
        return _ordinal(name, distinct, dtype, unseen)
    if kind == "binary" and len(distinct) != 2:
        raise DataError(
            f"{label} has {len(distinct)} distinct values and cannot be binary, which has 2: choose "
            f"{hint(columns={name: 'categorical'})}."
        )
    if kind == "binary" and dtype not in ("text", "bool") and not missing:
        return _ordinal(name, distinct, dtype, unseen, binary=True)
    return _categorical(name, column, distinct, label, missing, reserved)


def _plugin(kind: Any, label: str) -> Column:
    """A kind that is not inferred: an instance, the name of a registered class, or the settings of a saved one."""
    if isinstance(kind, Column):
        if kind.kind in kind_names():
            return kind
        wrong = "not registered, so that a saved model could not be loaded: decorate its class with @made.register."
    elif isinstance(kind, type):
        wrong = f"a class: give an instance, {kind.__name__}(...)."
    else:
        settings = dict(kind) if isinstance(kind, Mapping) else {"kind": kind}
        try:
            return find_kind(str(settings.pop("kind", None))).from_json(settings)
        except ModelError:
            names = ", ".join(map(repr, ("auto", *kind_names(), "real", "drop")))
            wrong = f"unknown: choose from {names}, a list of values, or a made.Column."
        except (TypeError, ValueError) as error:
            wrong = f"not complete: {error}"
    raise ParameterError(f"{label}: the kind {kind!r} is {wrong}", argument="columns")


def _of_plugin(name: str, kind: Column, column: ColumnSummary, label: str, missing: bool) -> Field:
    if missing:
        raise ParameterError(
            f"{label}: the kind {kind.kind!r} has no category for missing values: choose 'unobserved'.",
            argument="missing",
        )
    if not kind.listed:
        dtype = _dtype_of_numbers(column, kind.kind, label)
        return Field(name, kind.fitted(column.seen.astype(np.float64)), dtype=dtype)
    values = typed(_distinct(column, "categorical"), column.dtype)
    if len(values) != kind.codes:
        raise DataError(f"{label} has {len(values)} distinct values, but its kind {kind!r} has {kind.codes}.")
    return Field(name, kind, values, dtype=column.dtype)


def _dtype_of_numbers(column: ColumnSummary, kind: str, label: str) -> Dtype:
    if column.dtype == "text":
        raise DataError(f"{label} has text such as {column.seen[0]!r} and cannot be {kind}: convert it to numbers.")
    return "int" if column.dtype == "bool" else column.dtype


def _distinct(column: ColumnSummary, kind: str) -> Values:
    """The distinct values, in order; both truth values, if there are any."""
    dtype = column.dtype
    if dtype == "text":
        return np.array(sorted(column.frequencies()), dtype=object)
    distinct = column.counted()[0]
    flags = dtype in ("int", "float") and kind in ("auto", "binary") and np.isin(distinct, (0, 1)).all()
    return np.array([0.0, 1.0]) if flags or dtype == "bool" else distinct


def _ordinal(name: str, distinct: Values, dtype: Dtype, unseen: str, *, binary: bool = False) -> Field:
    """A few distinct numbers: each has its own probability, and any other number a very small one."""
    other = 0.0 if unseen == "error" else UNSEEN_FLAG if len(distinct) == 2 else UNSEEN_NUMBER
    step = _step(ColumnSummary.of(distinct, dtype), ()) if other else 0.0
    numbers = tuple(map(float, distinct.tolist()))
    flag = Binary(signed=True, unseen=Unseen(numbers, step, other) if other else None)
    column = flag if binary else Ordinal(numbers, step, other)
    return Field(name, column, typed(distinct, dtype), dtype=dtype, other=other)


def _categorical(
    name: str, column: ColumnSummary, distinct: Values, label: str, missing: bool, reserved: float
) -> Field:
    dtype = column.dtype
    reserved = 0.0 if dtype == "bool" else reserved
    if reserved and dtype == "text":
        distinct = _frequent(column, distinct)
    if len(distinct) > MOST_CATEGORIES:
        instead = f"choose 'numeric', {hint(columns={name: 'numeric'})}"
        if dtype == "text":
            instead = f"{hint(unseen='other')} keeps the most frequent ones and makes one of all others"
            instead = remedy(distinct.tolist()) or instead
        raise DataError(
            f"{label} has {len(distinct)} distinct values, more than {MOST_CATEGORIES}; {instead}, or leave it out, "
            f"{hint(columns={name: 'drop'})}."
        )
    return _field_of_list(name, typed(distinct, dtype), dtype, missing, reserved)


def _field_of_list(name: str, values: tuple[Any, ...], dtype: Dtype, missing: bool, reserved: float) -> Field:
    column: Column = Categorical(len(values) + missing + (reserved > 0), reserved=reserved)
    if not missing and not reserved and len(values) == 2:
        column = Binary(signed=True)
    return Field(name, column, values, dtype=dtype, missing=missing, other=reserved)


def _frequent(column: ColumnSummary, distinct: Values) -> Values:
    """The values that are seen more than once, up to the limit; all of them, if there are none."""
    counts = column.frequencies()
    del counts[OTHER]
    kept = {value for value, count in counts.most_common(MOST_CATEGORIES - 2) if count > 1}
    return distinct[[value in (kept or counts) for value in distinct.tolist()]]


def _listed(name: str, values: Any, dtype: Dtype, label: str, missing: bool, reserved: float) -> Field:
    """A column with a given list of values."""
    column = np.empty(len(values), dtype=object)
    column[:] = list(values)
    given, family = plain(column, f"the list for {label}")
    if not len(given) or is_missing(given).any():
        raise ParameterError(
            f"The list for {label} should have at least one value, and none that is empty or NaN.", argument="columns"
        )
    if "text" not in (family, dtype):
        family = fitting(given, dtype, family)
    reserved = reserved if family == "text" else 0.0
    return _field_of_list(name, typed(given, family), family, missing, reserved)


def _kind_of_numbers(distinct: Values, column: ColumnSummary) -> str:
    counts = column.counted()[1]
    whole, count, rows = column.numbers.all_whole, len(distinct), column.count
    if count == 2:
        return "binary" if whole or rows >= 20 else "numeric"
    few = (whole and count <= 20 and rows >= 10 * count) or (count <= 10 and rows >= 20 * count)
    return "ordinal" if count == 1 or (few and 2 * (counts >= FREQUENT).sum() >= count) else "numeric"


def _refuse_names(column: ColumnSummary, name: str, label: str) -> None:
    """Refuse text that hardly ever repeats, from which nothing can be learned."""
    seen = column.seen
    distinct = np.array(list(dict.fromkeys(seen.tolist())), dtype=object)
    if len(distinct) <= FEW or len(distinct) <= 0.9 * len(seen):
        return
    if (convert := remedy(distinct.tolist())) is not None:
        raise DataError(f"{label} has {convert}, or leave it out, {hint(columns={name: 'drop'})}.")
    raise _identifier(f"{label}: {len(distinct)} texts in {len(seen)} rows are different", name, "categorical")


def _refuse_keys(column: ColumnSummary, name: str, label: str) -> None:
    """Refuse distinct integers that count the rows, or whose column is named like a key."""
    seen, rows, numbers = column.seen, column.count, column.numbers
    if rows <= FEW or not numbers.all_whole or len(np.unique(seen)) < len(seen):
        return
    low, high = numbers.low, numbers.high
    if KEY.search(name) or (low in (0, 1) and high - low == rows - 1):
        counted = f"the numbers from {low:g} to {high:g}, each once" if high - low == rows - 1 else "all different"
        raise _identifier(f"{label}: its {rows} values are {counted}", name, "numeric")


def _identifier(found: str, name: str, other: str) -> UninformativeError:
    message = (
        f"{found}, so it looks like an identifier, which says nothing about other rows: leave it out, "
        f"{hint(columns={name: 'drop'})}, or use it anyway, {hint(columns={name: other})}."
    )
    return _uninformative(message, name, other)


def _uninformative(message: str, name: str, kind: str | None) -> UninformativeError:
    error = UninformativeError(message, column=name)
    error.kinds = {name: kind}
    return error


def _numeric(summary: ColumnSummary, missing: bool, *, plainly: bool, extrapolate: bool) -> Column:
    """Numbers: point masses, steps, a least value and a curved scale, unless ``plainly``; and the standardization."""
    temporal, step = summary.dtype in TEMPORAL, 0.0
    seen, least, most = summary.seen, summary.numbers.low, summary.numbers.high
    points: tuple[float, ...] = ()
    if not plainly:
        points = _points(seen)
        step = _step(summary, points)
        if step:
            seen, least, most = on_steps(seen, step), _on_grid(least, step), _on_grid(most, step)
            points = _points(seen, step)
    rest = seen[~np.isin(seen, points)]
    low = 0.0 if not plainly and not temporal and least >= 0 else -math.inf
    curve = center = 0.0
    if not plainly and not temporal:
        center = 0.0 if low == 0 else _on_grid(float(np.median(rest)), step)
        curve = choose_curve(rest, center)
    location, scale = _location_and_scale(np.arcsinh((rest - center) / curve) if curve else rest)
    location = location if curve else _on_grid(location, step)
    column = Numeric(location, scale, step, curve=curve, center=center if curve else 0.0, low=low)
    extent = (-math.inf, math.inf) if extrapolate else (least, most)
    column = replace(column, knots=_knots(rest, column), extent=extent)
    points += (math.inf,) * missing
    return PointMasses(column, points) if points else column


def _knots(rest: Values, column: Numeric) -> tuple[float, ...]:
    """Quantiles between which numbers are encoded, each distinguishable from the one before; none for a few rows."""
    pieces = min(MOST_PIECES, len(rest) // ROWS_OF_PIECE)
    knots = np.unique(np.quantile(rest, np.linspace(0, 1, pieces + 1))) if pieces > 1 else rest[:0]
    places = column.inner(torch.from_numpy(knots)).numpy()
    kept = [place for place in range(len(knots)) if place == 0 or places[place] - places[place - 1] > 1e-3]
    return tuple(knots[kept].tolist()) if len(kept) > 1 else ()


def _on_grid(value: float, step: float) -> float:
    return float(on_steps(np.array(value), step)) if step else value


def _step(column: ColumnSummary, points: Sequence[float]) -> float:
    """The step of numbers or times, if they have one and do not range over too many steps; else 0."""
    numbers, temporal = column.numbers, column.dtype in TEMPORAL
    rest = column.seen[~np.isin(column.seen, points)]
    with np.errstate(over="ignore"):
        size, extent = max(abs(numbers.low), abs(numbers.high)), float(rest.max() - rest.min())
    if temporal:  # ignore dates such as 9999-12-31
        first, third = np.quantile(rest, [0.25, 0.75]).tolist()
        extent = min(extent, 20 * (third - first))
    for step in numbers.steps:
        if size >= 2.0**53 * min(step, 1.0) or extent > MOST_STEPS * step:
            continue
        if step > 1 and not temporal and (column.count < ROWS_OF_GRID or len(np.unique(rest)) < FEW):
            continue
        if numbers.are_multiples(step):
            return step
    return 0.0


def _points(seen: Values, step: float = 0.0) -> tuple[float, ...]:
    """The point masses: values with at least twice as many rows as would be there by their neighbours alone, by three
    standard deviations. Where numbers have a step, the rows of the neighbours are spread over the steps between them.
    """
    values, counts = np.unique(seen, return_counts=True)
    if len(values) < LEAST_REST:
        return ()
    # Medians of the two values before and the two after, as far as they exist: a neighbour may be a point, too.
    expected = np.nanmedian(_beside(counts)[[0, 1, 3, 4]], axis=0)
    if step:
        apart = np.nanmedian(_beside(np.append(np.diff(values), np.nan))[:4], axis=0)
        expected *= np.minimum(step / apart, 1)
    stand_out = counts >= 2 * expected + 3 * np.sqrt(counts)
    found = sorted(np.flatnonzero(stand_out).tolist(), key=lambda place: -counts[place])[:MOST_POINTS]
    if len(values) - len(found) < LEAST_REST:
        return ()
    return tuple(sorted(values[found].tolist()))


def _beside(numbers: Values) -> Values:
    """Each number with the two before and the two after it; NaN beyond the ends. Shape: (5, numbers)."""
    padded = np.pad(numbers.astype(np.float64), 2, constant_values=np.nan)
    return np.stack([padded[place : place + len(numbers)] for place in range(5)])


def _location_and_scale(values: Values) -> tuple[float, float]:
    """Median and spread, computed on values scaled into [-1, 1] by a power of two, so that nothing overflows."""
    low, high = float(values.min()), float(values.max())
    exponent = int(np.frexp(max(abs(low), abs(high)))[1])
    unit = np.ldexp(values, -exponent)
    first, median, third = np.quantile(unit, [0.25, 0.5, 0.75])
    spread = 0.0 if low == high else float((third - first) / 1.349 or unit.std())
    # Outliers may be many scales away, but within the precision of float32.
    spread = max(spread, 1e-12 * float(np.abs(unit - median).max()))
    with np.errstate(over="ignore"):
        scale = float(np.ldexp(spread, exponent)) if spread else 1.0
    return float(np.ldexp(median, exponent)), min(max(scale, sys.float_info.min), sys.float_info.max)
