"""Fields by the name of their kind and its settings in config.json."""

from __future__ import annotations

from typing import Any

from made.columns.logistic import Numeric
from made.columns.point_masses import PointMasses
from made.columns.settings import NUMERIC_SETTINGS
from made.tables.field import Field


def make_field(name: str, kind: str, values: tuple[Any, ...] = (), *, dtype: str = "float", **more: Any) -> Field:
    content = {"name": name, "kind": kind, "values": list(values), "dtype": dtype}
    return Field.from_json(content | NUMERIC_SETTINGS | more)


def numeric(field: Field) -> Numeric:
    """The settings of a column of numbers, beside its point masses."""
    column = field.column.rest if isinstance(field.column, PointMasses) else field.column
    assert isinstance(column, Numeric)
    return column
