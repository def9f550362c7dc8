"""Names of exact column types, so that rows are returned in their original types.

A name is a numpy dtype (``uint8``, ``float32``), ``string``, ``category`` (of text), ``date``, or, as in pandas,
``datetime64[ms]`` or ``datetime64[ms, Europe/Paris]``.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np

from made.io.time_zones import OFFSET, zone_of
from made.tables.dates import DAY

# The default type of each dtype of a field.
DEFAULTS = {
    "int": "int64",
    "float": "float64",
    "bool": "bool",
    "text": "string",
    "date": "date",
    "datetime": "datetime64[us]",
}
WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REAL = ("float16", "float32", "float64")
TIME = re.compile(r"datetime64\[(s|ms|us|ns)(?:, ([A-Za-z0-9_+:/-]{1,64}))?\]", re.ASCII)
# The range of nanoseconds, in whole days.
NANOSECONDS = 106_751 * DAY


def is_storage(name: object) -> bool:
    """Whether this is the name of a type that is known here."""
    plain = (*WHOLE, *REAL, "bool", "string", "category", "date")
    return isinstance(name, str) and (name in plain or TIME.fullmatch(name) is not None)


def storage_of(kind: Any) -> str | None:
    """The name of a numpy, torch or narwhals type; None if it has none.

    Example:
        >>> storage_of(np.dtype("<u2")), storage_of(nw.Datetime("ms", "UTC")), storage_of(np.dtype(object))
        ('uint16', 'datetime64[ms, UTC]', None)
    """
    if isinstance(kind, np.dtype):
        if kind.kind == "M":
            unit = np.datetime_data(kind)[0]
            name = "date" if unit in ("Y", "M", "W", "D") else f"datetime64[{unit}]"
        else:
            name = "string" if kind.kind in "UT" else kind.name
    elif isinstance(kind, nw.Datetime):
        zone = kind.time_zone
        zone = zone.removeprefix("UTC") if zone and OFFSET.fullmatch(zone) else zone
        name = f"datetime64[{kind.time_unit}{f', {zone}' if zone else ''}]"
    elif kind in (nw.Categorical, nw.Enum):
        name = "category"
    else:
        # Int8, String and Boolean of narwhals; torch.int8
        name = str(kind).lower().removeprefix("torch.").replace("boolean", "bool")
    return name if is_storage(name) else None


def ends_of(name: str | None) -> tuple[float, float] | None:
    """The least and the greatest float64 that a type can hold; None if it holds every float64.

    Example:
        >>> ends_of("uint8"), ends_of("int64")[1] < 2**63, ends_of("float64")
        ((0.0, 255.0), True, None)
    """
    if name in WHOLE:
        info = np.iinfo(name)
        most = float(info.max)
        return float(info.min), most if most <= info.max else float(np.nextafter(most, 0))
    if name in ("float16", "float32"):
        return -float(np.finfo(name).max), float(np.finfo(name).max)
    if name is not None and name.startswith("datetime64[ns"):
        return -NANOSECONDS, NANOSECONDS
    return None


def numpy_type(name: str | None) -> np.dtype[Any] | None:
    """The numpy type of a name; None if it is not numeric."""
    return np.dtype(name) if name in (*WHOLE, *REAL, "bool") else None


def arrow_type(name: str) -> Any:
    """The pyarrow type of a name; an unknown time zone becomes UTC."""
    arrow = import_module("pyarrow")
    if found := TIME.fullmatch(name):
        unit, zone = found.groups()
        return arrow.timestamp(unit, zone if zone is None or zone_of(zone) else "UTC")
    if name == "category":
        return arrow.dictionary(arrow.int32(), arrow.string())
    return {"date": arrow.date32(), "bool": arrow.bool_(), "string": arrow.string()}.get(name) or getattr(arrow, name)()
