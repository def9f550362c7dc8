"""Dates and times as seconds since 1970-01-01, and back.

A time with a time zone is counted in UTC, one without as if it were UTC. The years are 1 to 9999, as in Python and ISO
8601. Whole seconds are exact; the resolution of a float64 is a microsecond in this century, and 32 microseconds in the
year 9999.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from made.errors import DataError
from made.io.time_zones import zone_of

Temporal: TypeAlias = Literal["date", "datetime"]

DAY = 86_400.0
# The steps that times may have.
STEPS = (DAY, 3600.0, 60.0, 1.0)
EPOCH = datetime.datetime(1970, 1, 1)
# The first moment of the year 1, and the last of the year 9999 that a float64 tells from the next year.
LEAST, MOST = -62_135_596_800.0, float(np.nextafter(253_402_300_800.0, 0))
ZONE = r"(Z|[+-](?:0\d|1[0-5]):[0-5]\d)?"
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:([T ])\d\d:\d\d(:\d\d(\.\d{1,6})?)?" + ZONE + ")?", re.ASCII)
# How times are written as text: the separator, seconds and their fraction, if any, and the time zone.
FORM = re.compile(r"YYYY-MM-DD([T ])hh:mm(:ss(\.s)?)?" + ZONE, re.ASCII)


class Dates(NamedTuple):
    """Texts as dates: their seconds, whether any has a time of day, and how these are written, as in :data:`FORM`."""

    seconds: NDArray[np.float64]
    kind: Temporal
    written: str


def in_seconds(values: NDArray[Any], label: str = "the column") -> NDArray[np.float64]:
    """An array of datetime64 as seconds; NaN for NaT. ``label`` names the column in messages.

    Example:
        >>> in_seconds(np.array(["1970-01-02", "9999-12-31", "NaT"], dtype="M8[D]"))
        array([8.64000000e+04, 2.53402214e+11,            nan])
    """
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    missing = np.isnat(values)
    # A cast between units overflows silently, so the bounds are cast, not the values. Nanoseconds and finer units have
    # no room for other years. One day more, for a time in UTC whose local time is in these years.
    if np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us"):
        ends = np.array(["0000-12-31", "10000-01-02"], dtype="M8[D]").astype(values.dtype).view(np.int64)
        wrong = ~missing & ((values.view(np.int64) < ends[0]) | (values.view(np.int64) > ends[1]))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(
                f"{label}: {str(values[row])[:40]} is a date outside the years 1 to 9999: give one of these, or leave "
                "it empty.",
                row=row,
            )
    whole, rest = np.divmod(np.where(missing, 0, values.astype("M8[us]").astype(np.int64)), 1_000_000)
    seconds = whole + rest / 1e6
    seconds[missing] = np.nan
    return np.asarray(seconds, dtype=np.float64)


def ends_in(zone: str | None) -> tuple[float, float]:
    """The first and the last moment, in UTC, whose local time is in the years 1 to 9999.

    Example:
        >>> [(each - end) / 3600 for each, end in zip(ends_in("+02:00"), (LEAST, MOST))]
        [-2.0, -2.0]
    """
    local = None if zone is None else zone_of(zone)
    edges = (edge.replace(tzinfo=local) for edge in (datetime.datetime.min, datetime.datetime.max))
    first, last = ((edge.utcoffset() or datetime.timedelta()).total_seconds() for edge in edges)
    return LEAST - first, MOST - last


def as_datetime64(seconds: NDArray[np.float64], zone: str | None = None, unit: str = "us") -> NDArray[Any]:
    """The inverse of :func:`in_seconds`; times are clipped to the years 1 to 9999 in a time zone.

    The result is in microseconds, rounded to ``unit`` if that is coarser: a cast would truncate.
    """
    missing, (first, last) = np.isnan(seconds), ends_in(zone)
    within = np.where(missing, 0, seconds).clip(first, last)
    if unit in ("s", "ms"):
        within = np.minimum(np.round(within, 0 if unit == "s" else 3), np.floor(last))
    whole = np.floor(within)
    micros = whole.astype(np.int64) * 1_000_000 + np.rint((within - whole) * 1e6).astype(np.int64)
    values: NDArray[Any] = micros.astype("M8[us]")
    values[missing] = np.datetime64("NaT")
    return values


def objects(seconds: NDArray[np.float64], kind: Temporal) -> NDArray[Any]:
    """Seconds as Python dates or datetimes; None for NaN."""
    values = as_datetime64(seconds).astype(object)
    if kind == "date":
        values[:] = [each if each is None else each.date() for each in values.tolist()]
    return np.asarray(values, dtype=object)


def in_text(seconds: NDArray[np.float64], kind: Temporal, written: str = "") -> NDArray[Any]:
    """Seconds as text in ISO 8601, ``written`` as in :data:`FORM`; None for NaN.

    Example:
        >>> in_text(np.array([0.0, 43_200.0, np.nan]), "datetime")
        array(['1970-01-01T00:00:00', '1970-01-01T12:00:00', None], dtype=object)
        >>> in_text(np.array([43_200.4]), "datetime", "YYYY-MM-DD hh:mm:ss+02:00")
        array(['1970-01-01 14:00:00+02:00'], dtype=object)
    """
    form = FORM.fullmatch(written)
    options, zone = {}, ""
    if form is not None and kind == "datetime":
        separator, of_seconds, fraction, zone = (part or "" for part in form.groups())
        precision = "auto" if fraction else "seconds" if of_seconds else "minutes"
        options = {"sep": separator, "timespec": precision}
        step = {"auto": 1e-6, "seconds": 1.0, "minutes": 60.0}[precision]
        seconds = np.rint((seconds + _ahead(zone)) / step) * step
    texts = np.empty(len(seconds), dtype=object)
    texts[:] = [each if each is None else each.isoformat(**options) + zone for each in objects(seconds, kind).tolist()]
    return texts


def is_form(written: object) -> bool:
    """Whether this is a form of :data:`FORM`, or empty, for the default."""
    return isinstance(written, str) and (not written or FORM.fullmatch(written) is not None)


def _ahead(zone: str) -> float:
    """The seconds by which a time zone such as Z or +02:00 is ahead of UTC."""
    return 0.0 if zone in ("", "Z") else float(zone[0] + "1") * (int(zone[1:3]) * 3600 + int(zone[4:]) * 60)


def joint_form(forms: Collection[str]) -> str | None:
    """The form in which all times can be written, "" if there are none; None if their time zones differ.

    Example:
        >>> joint_form(["YYYY-MM-DD hh:mmZ", "", "YYYY-MM-DDThh:mm:ssZ"])
        'YYYY-MM-DDThh:mm:ssZ'
        >>> joint_form(["YYYY-MM-DD hh:mm", "YYYY-MM-DD hh:mmZ"])
    """
    parts = [found.groups("") for found in map(FORM.fullmatch, forms) if found is not None]
    if not parts:
        return ""
    separators, of_seconds, _, zones = (set(each) for each in zip(*parts, strict=True))
    return None if len(zones) > 1 else f"YYYY-MM-DD{max(separators)}hh:mm{max(of_seconds)}{zones.pop()}"


def seconds_in(texts: Iterable[str]) -> Dates | None:
    """The dates that texts in ISO 8601 stand for; None if a text is not a date, or if their time zones differ.

    Example:
        >>> seconds_in(["1970-01-02", "1970-01-03"])
        Dates(seconds=array([ 86400., 172800.]), kind='date', written='')
        >>> seconds_in(["1970-01-02 02:00+02:00"])
        Dates(seconds=array([86400.]), kind='datetime', written='YYYY-MM-DD hh:mm+02:00')
        >>> seconds_in(["1970-01-02", "last week"])
    """
    found, forms = [], set()
    for text in texts:
        match = ISO.fullmatch(text)
        if match is None:
            return None
        separator, of_seconds, fraction, zone = match.groups("")
        try:
            since = datetime.datetime.fromisoformat(text.removesuffix(zone) if zone else text) - EPOCH
        except ValueError:  # such as the thirteenth month
            return None
        found.append(since.days * DAY + since.seconds + since.microseconds / 1e6 - _ahead(zone))
        if separator:
            forms.add(f"YYYY-MM-DD{separator}hh:mm{':ss' if of_seconds else ''}{'.s' if fraction else ''}{zone}")
    written = joint_form(forms)
    if written is None:
        return None
    return Dates(np.array(found, dtype=np.float64), "datetime" if forms else "date", written)
