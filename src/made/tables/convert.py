"""Single values as text, numbers and Python objects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from made.tables.plain import Dtype, Values

__all__ = ["as_text", "fitting", "number_in", "typed"]


def as_text(value: str | float) -> str:
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
