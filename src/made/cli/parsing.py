"""Values of options: comma-separated lists, with double quotes around an entry that has a comma."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from made.cli.errors import usage
from made.display import shortened

if TYPE_CHECKING:
    from made.model.model import Model

MOST_DIGITS = 9


def whole_number(text: str) -> int | None:
    """A whole number of at most nine ASCII digits; None if the text is something else."""
    return int(text) if re.fullmatch(f"[0-9]{{1,{MOST_DIGITS}}}", text) else None


def whole_numbers(option: str, text: str, least: int, empty: bool = False) -> list[int]:
    """A comma-separated list of whole numbers."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    numbers = [number for part in parts if (number := whole_number(part)) is not None and number >= least]
    if (not parts and not empty) or len(numbers) < len(parts):
        wanted = f"whole numbers, at least {least}, such as 1,2,4"
        raise usage(f"'{option}' should be {wanted}, not {shortened(text, 80)!r}.")
    return numbers


def place(name: str, names: Sequence[str]) -> str | int:
    """A column by name, ignoring surrounding spaces, or by number if no column has that name."""
    if name in names:
        return name
    name = name.strip()
    number = whole_number(name)
    return name if name in names or number is None else number


def columns(option: str, text: str | None, model: Model) -> list[str | int] | None:
    """Parse 'age, job' as columns."""
    if text is None:
        return None
    names = model.schema.names
    found = [place(entry, names) for entry in _entries(option, text) if entry.strip()]
    if not found:
        raise usage(f"'{option}' should name columns, such as age,job, not {text!r}.")
    return found


def assignments(option: str, text: str | None, model: Model) -> dict[str | int, Any] | None:
    """Parse 'a=1, b=x' as values by column; a value may be in quotes, and a column's name may contain =."""
    if text is None:
        return None
    names, known = model.schema.names, dict[str | int, Any]()
    for entry in _entries(option, text):
        places = [found.start() for found in re.finditer("=", entry)]
        fitting = [each for each in places if {entry[:each], entry[:each].strip()} & set(names)] or places[:1]
        middle = fitting[-1] if fitting else 0
        name, value = entry[:middle], entry[middle + 1 :].strip()
        if not name.strip() or not value:
            raise usage(f"'{option}' should be a list such as 'Status=bad, Home=rent', not {shortened(entry, 80)!r}.")
        known[place(name, names)] = _number(value)
    return known


def kinds(option: str, text: str) -> dict[str, str]:
    """Parse 'age=numeric, job=drop' as kinds by column; a column's name may contain =."""
    found: dict[str, str] = {}
    for entry in _entries(option, text):
        name, sign, word = entry.rpartition("=")
        if not sign or not name.strip() or not word.strip():
            raise usage(f"'{option}' should be a list such as 'age=numeric, job=drop', not {shortened(entry, 80)!r}.")
        found[name] = word.strip()
    return found


def _entries(option: str, text: str) -> list[str]:
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    except csv.Error as error:
        raise usage(f"'{option}' cannot be read: {error}.") from None
    if len(lines) > 1:
        raise usage(f"'{option}' should be on one line: put a name with a line break in double quotes.")
    return lines[0] if lines else []


def _number(value: str) -> Any:
    """A value as a number if it looks like one; the model's columns accept either."""
    try:
        number = math.nan if "_" in value else float(value)
    except ValueError:
        number = math.nan
    return number if math.isfinite(number) else value.strip("'\"")
