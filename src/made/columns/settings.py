"""The settings of the built-in kinds in config.json. A file may be forged, so every value is checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# Format 1 has these for every built-in kind, and the defaults where they mean nothing.
NUMERIC_SETTINGS = {"location": 0.0, "scale": 1.0, "step": 0.0}


def read_settings(settings: Mapping[str, Any], optional: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a built-in kind, the optional ones with their defaults; a default's type is the type required.

    Example:
        >>> read_settings({"location": 0, "scale": 1, "step": 0}, {"ordered": False})
        {'location': 0.0, 'scale': 1.0, 'step': 0.0, 'ordered': False}
    """
    if missing := NUMERIC_SETTINGS.keys() - settings.keys():
        raise ValueError(f"it should have the keys {', '.join(sorted(missing))}.")
    if unknown := settings.keys() - NUMERIC_SETTINGS.keys() - optional.keys():
        raise ValueError(f"it should not have the keys {', '.join(sorted(map(str, unknown)))[:200]}.")
    return {
        key: _checked(key, settings[key], default) if key in settings else default
        for key, default in {**NUMERIC_SETTINGS, **optional}.items()
    }


def _checked(key: str, value: Any, default: Any) -> Any:
    if isinstance(default, bool):
        if type(value) is bool:
            return value
        wanted = "true or false"
    elif isinstance(default, tuple):
        if isinstance(value, (list, tuple)) and all(map(is_finite, value)):
            return tuple(map(float, value))
        wanted = "a list of finite numbers"
    elif is_finite(value) or (value is None and default is None):
        return None if value is None else float(value)
    else:
        wanted = "a finite number"
    raise ValueError(f"'{key}' should be {wanted}, not {repr(value)[:200]}.")


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number: no truth value, and no integer too large for a float."""
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:
        return False
