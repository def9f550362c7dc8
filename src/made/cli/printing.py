"""Text and JSON for standard output, notes for standard error."""

from __future__ import annotations

import json
import math
import sys
from contextlib import suppress
from typing import Any

from made.display import visible

__all__ = ["cell", "note", "print_json", "say"]


def say(text: str) -> None:
    """Print text on standard output; control characters are escaped."""
    print(visible(text, lines=True), flush=True)


def note(text: str, quiet: bool = False) -> None:
    """Print a note on standard error."""
    if not quiet:
        with suppress(OSError, ValueError):  # there is nowhere to report that
            print(visible(text, lines=True), file=sys.stderr, flush=True)


def cell(text: str) -> Any:
    """Text for a table on the terminal, without markup and control characters."""
    from rich.text import Text

    return Text(visible(text))


def print_json(value: Any) -> None:
    """Print JSON on standard output; numbers that are not finite are null."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """A value in the types of JSON."""
    if value is None or isinstance(value, (str, bool)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if type(value) in (int, float):
        return value if isinstance(value, int) or math.isfinite(value) else None
    if not hasattr(value, "tolist") or getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
        return str(value)
    simple = value.tolist()
    if type(simple) is not type(value):
        return _plain(simple)
    return _plain(float(value)) if value.dtype.kind == "f" else str(value)  # longer than a Python float
