"""Dates and times as numbers, seconds since the beginning of 1970, and back.

A time with a zone is counted in UTC, one without as if it were. A microsecond is the least that is told apart.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["DAY", "STEPS", "Temporal", "as_datetime64", "in_seconds", "in_text", "objects", "seconds_in"]

Temporal: TypeAlias = Literal["date", "datetime"]

DAY = 86_400.0
# How far apart times may be, if they all are.
STEPS = (DAY, 3600.0, 60.0, 1.0)
EPOCH = datetime.datetime(1970, 1, 1)
# The days that Python has: the first of the year 1, and the last of the year 9999.
LEAST, MOST = -62_135_596_800.0, 253_402_214_400.0
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?", re.ASCII)


def in_seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    """Dates of numpy as numbers; NaN for NaT.

    Example:
        >>> in_seconds(np.array(["1970-01-02", "NaT"], dtype="M8[D]"))
        array([86400.,    nan])
    """
    seconds = values.astype("M8[us]").astype(np.int64) / 1e6
    seconds[np.isnat(values)] = np.nan
    return np.asarray(seconds, dtype=np.float64)


def as_datetime64(seconds: NDArray[np.float64]) -> NDArray[Any]:
    """The inverse of :func:`in_seconds`, in microseconds; what Python has no date for is the nearest that it has."""
    hole = np.isnan(seconds)
    whole = np.rint(np.where(hole, 0, seconds).clip(LEAST, MOST) * 1e6).astype(np.int64)
    values = whole.astype("M8[us]")
    values[hole] = np.datetime64("NaT")
    return values


def objects(seconds: NDArray[np.float64], kind: Temporal) -> NDArray[Any]:
    """Numbers as Python's dates, or dates with a time of day; None for NaN."""
    values = as_datetime64(seconds).astype(object)
    if kind == "date":
        values[:] = [each if each is None else each.date() for each in values.tolist()]
    return np.asarray(values, dtype=object)


def in_text(seconds: NDArray[np.float64], kind: Temporal) -> NDArray[Any]:
    """Numbers as text in the form of ISO 8601; None for NaN.

    Example:
        >>> in_text(np.array([0.0, 43_200.0, np.nan]), "datetime")
        array(['1970-01-01T00:00:00', '1970-01-01T12:00:00', None], dtype=object)
    """
    texts = np.empty(len(seconds), dtype=object)
    texts[:] = [each if each is None else each.isoformat() for each in objects(seconds, kind).tolist()]
    return texts


def seconds_in(texts: Iterable[str]) -> tuple[NDArray[np.float64], Temporal] | None:
    """The numbers of dates that are written as text, and whether they are all without a time; None if one is none.

    Example:
        >>> seconds_in(["1970-01-02", "1970-01-03"])
        (array([ 86400., 172800.]), 'date')
        >>> seconds_in(["1970-01-02", "last week"])
    """
    found, days = [], True
    for text in texts:
        if ISO.fullmatch(text) is None:
            return None
        try:
            found.append((datetime.datetime.fromisoformat(text) - EPOCH).total_seconds())
        except ValueError:  # such as the thirteenth month
            return None
        days = days and len(text) == 10
    return np.array(found, dtype=np.float64), "date" if days else "datetime"
