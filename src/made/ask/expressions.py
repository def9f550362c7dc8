"""Conditions on the columns of a table; ``str`` of one is text that :mod:`made.ask.parser` can parse."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | float | int | bool

# Reserved words, and the syntax of bare words and numbers.
KEYWORDS = ("and", "or", "not", "in", "between", "is")
WORD = re.compile(r"[\w.+\-/:%]+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def written_name(name: str) -> str:
    """A column's name in the query language: bare, or quoted if necessary."""
    if WORD.fullmatch(name) and name.lower() not in KEYWORDS and not NUMBER.fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def written_value(value: Value) -> str:
    """A value in the query language: text in quotes."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if abs(value) < 1e16 and value == int(value) else repr(float(value))


@dataclass(frozen=True)
class Comparison:
    """A column compared with a value; a date is text."""

    column: str
    operator: str
    value: Value

    def __str__(self) -> str:
        return f"{written_name(self.column)} {self.operator} {written_value(self.value)}"


@dataclass(frozen=True)
class Membership:
    """A column's value is in a list."""

    column: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return self.written("in")

    def written(self, word: str) -> str:
        """The condition, or its negation with ``not in``."""
        return f"{written_name(self.column)} {word} {{{', '.join(map(written_value, self.values))}}}"


@dataclass(frozen=True)
class Range:
    """A column's value is between two; the operators are ``<`` or ``<=``."""

    low: Value
    low_operator: str
    column: str
    high_operator: str
    high: Value

    def __str__(self) -> str:
        name = written_name(self.column)
        return f"{written_value(self.low)} {self.low_operator} {name} {self.high_operator} {written_value(self.high)}"


@dataclass(frozen=True)
class Missing:
    """A column is missing; for columns in which missingness is modelled."""

    column: str

    def __str__(self) -> str:
        return self.written("is")

    def written(self, word: str) -> str:
        """The condition, or its negation with ``is not``."""
        return f"{written_name(self.column)} {word} missing"


@dataclass(frozen=True)
class Not:
    """The negation of a condition."""

    part: Condition

    def __str__(self) -> str:
        if isinstance(self.part, Membership):
            return self.part.written("not in")
        if isinstance(self.part, Missing):
            return self.part.written("is not")
        return f"not ({self.part})" if isinstance(self.part, (And, Or)) else f"not {self.part}"


@dataclass(frozen=True)
class And:
    """A conjunction."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Or:
    """A disjunction."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(f"({part})" if isinstance(part, And) else str(part) for part in self.parts)


Condition: TypeAlias = Comparison | Membership | Range | Missing | Not | And | Or


@dataclass(frozen=True)
class Query:
    """The condition asked for, and the condition given, if any."""

    asked: Condition
    given: Condition | None = None

    def __str__(self) -> str:
        return str(self.asked) if self.given is None else f"{self.asked} | {self.given}"
