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
    """Print lines for the person on standard output; what names and values may do to a terminal is escaped."""
    print(visible(text, lines=True), flush=True)


def note(text: str, quiet: bool = False) -> None:
    """A sentence for the person, on standard error."""
    if not quiet:
        with suppress(OSError, ValueError):  # nobody can be told that nobody can be told
            print(visible(text, lines=True), file=sys.stderr, flush=True)


def cell(text: str) -> Any:
    """Text for a table on the terminal, as it is: no markup, nothing that the terminal would obey."""
    from rich.text import Text

    return Text(visible(text))


def print_json(value: Any) -> None:
    """JSON on standard output; what is not a finite number is null."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """A value as JSON has it, whatever type a library gave it."""
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
    return _plain(float(value)) if value.dtype.kind == "f" else str(value)  # longer than what Python has
