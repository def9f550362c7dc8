"""The query language: ``income > 50 and job = 'fixed' | age < 30``, parsed by recursive descent.

A condition compares columns with values: ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in {a, b}``, ``between a and
b``, or ``20 < age <= 30``, joined by ``and``, ``or``, ``not`` and parentheses. The condition after ``|`` is given. A
name is bare, or in backticks or double quotes; a value is a number, a bare word, or text in quotes; a quote within
quotes is doubled. An error marks the place in the text.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from made.ask.expressions import (
    KEYWORDS,
    NUMBER,
    WORD,
    And,
    Comparison,
    Condition,
    Membership,
    Missing,
    Not,
    Or,
    Query,
    Range,
    Value,
    written_name,
    written_value,
)
from made.display import listed, shortened, visible
from made.errors import QuestionError
from made.tables.dates import seconds_in
from made.tables.field import OTHER, Field

MOST_NESTED = 50
MOST_CHARACTERS = 1_000_000
SHOWN = 60  # characters before and after the place that an error marks
TOKEN = re.compile(
    r"""(?P<text>'(?:[^']|'')*') | (?P<quoted>"(?:[^"]|"")*") | (?P<name>`(?:[^`]|``)*`)
    | (?P<operator><=|>=|==|!=|<>|[<>=≤≥≠]) | (?P<mark>[(){}\[\],|]) | """
    + f"(?P<word>{WORD.pattern})",
    re.VERBOSE,
)
SAME_OPERATOR = {"==": "=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!="}
TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
HINTS = {"&": "write 'and'", "!": "write 'not', or != for 'differs from'", "~": "write 'not'", ";": "ask one at a time"}
CLOSING = {"(": ")", "{": "}", "[": "]"}


def parse(question: str | Query, fields: Sequence[Field]) -> Query:
    """Parse a question about columns; a parsed one is returned as it is.

    Example:
        >>> from made import Binary, Numeric
        >>> age = Field("age", Numeric(40, 10, step=1), dtype="int")
        >>> fields = [age, Field("job", Binary(), ("fixed", "none"), dtype="text")]
        >>> print(parse("(20<age<=30 or not job == none) | age between 18 and 65", fields))
        20 < age <= 30 or not job = 'none' | 18 <= age <= 65
        >>> parse("age > 30 and jib = fixed", fields)
        Traceback (most recent call last):
        ...
        made.errors.QuestionError: there is no column 'jib': did you mean job?
          age > 30 and jib = fixed
                       ^^^
    """
    return question if isinstance(question, Query) else _Parser(question, fields).query()


@dataclass(frozen=True)
class _Token:
    """A token: its kind, its text without quotes, and its position."""

    kind: str
    text: str
    begin: int
    end: int

    @property
    def keyword(self) -> str:
        return self.text.lower() if self.kind == "word" and self.text.lower() in KEYWORDS else ""

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else repr(shortened(self.text, 80))


class _Parser:
    """The tokens, and the position of the next one."""

    def __init__(self, text: str, fields: Sequence[Field]) -> None:
        if len(text) > MOST_CHARACTERS:
            raise QuestionError(
                f"the question has {len(text):,} characters, more than the limit of {MOST_CHARACTERS:,}: ask a shorter "
                "one."
            )
        self.text = text
        self.fields = {field.name: field for field in fields}
        self.labels: dict[str, dict[str | float, Value]] = {}
        self.tokens, self.place, self.nested = self._tokens(), 0, 0

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        place = 0
        while place < len(self.text):
            found = TOKEN.match(self.text, place)
            character = self.text[place]
            if found is not None:
                kind, text = str(found.lastgroup), found.group()
                if kind in ("text", "quoted", "name"):
                    text = text[1:-1].replace(2 * text[0], text[0])
                elif kind == "operator":
                    text = SAME_OPERATOR.get(text, text)
                tokens.append(_Token(kind, text, place, found.end()))
                place = found.end()
            elif character.isspace():
                place += 1
            elif character in "'\"`":
                self.fail(f"this quote is not closed: expected another {character}", place)
            else:
                hint = f": {HINTS[character]}" if character in HINTS else ""
                self.fail(f"{character!r} is not part of the language{hint}", place)
        end = len(self.text.rstrip())
        return [*tokens, _Token("end", "", end, end + 1)]

    def fail(self, said: str, begin: int, end: int | None = None) -> NoReturn:
        """Raise an error that marks the place."""
        place = begin, begin + 1 if end is None else end
        # On one line; visible characters are longer than control characters.
        line = re.sub(r"\s", " ", self.text)
        text = visible(line.rstrip())
        end = len(visible(line[: begin + 1 if end is None else end]))
        begin = len(visible(line[:begin]))
        if len(text) > 4 * SHOWN:
            cut = max(0, begin - SHOWN)
            begin, end = begin - cut + 4 * bool(cut), min(end, begin + SHOWN) - cut + 4 * bool(cut)
            last = cut + 4 * SHOWN < len(text)
            text = f"{'... ' if cut else ''}{text[cut : cut + 4 * SHOWN]}{' ...' if last else ''}"
        error = QuestionError(f"{shortened(said, 1000)}\n  {text}\n  {' ' * begin}{'^' * max(1, end - begin)}")
        error.place = place
        raise error

    def fail_at(self, token: _Token, said: str) -> NoReturn:
        self.fail(said, token.begin, token.end)

    @property
    def now(self) -> _Token:
        return self.tokens[self.place]

    def ahead(self, count: int) -> _Token:
        return self.tokens[min(self.place + count, len(self.tokens) - 1)]

    def take(self) -> _Token:
        token = self.now
        self.place += 1
        return token

    def took(self, word: str) -> bool:
        """Consume a keyword or a mark, if it is next."""
        here = self.now.keyword == word or (self.now.kind == "mark" and self.now.text == word)
        self.place += here
        return here

    def query(self) -> Query:
        # As in mathematics, P(A | B); no column is followed by a parenthesis.
        written = [(each.kind, each.text) for each in self.tokens[:2]] == [("word", "P"), ("mark", "(")]
        self.place += 2 * written
        asked = self.condition()
        given = self.condition() if self.took("|") else None
        if self.now.text == "|" and self.now.kind == "mark":
            self.fail_at(self.now, "there is a second '|': join given conditions by 'and'")
        if written and not self.took(")"):
            self.fail_at(self.now, f"expected 'and', 'or', '|' or ')', found {self.now.shown}")
        if self.now.kind != "end":
            expected = "the end" if written else "'and', 'or', '|' or the end"
            self.fail_at(self.now, f"expected {expected}, found {self.now.shown}")
        return Query(asked, given)

    def condition(self) -> Condition:
        return self.joined("or", Or, lambda: self.joined("and", And, self.negation))

    def joined(self, word: str, kind: type[And | Or], part: Callable[[], Condition]) -> Condition:
        """One or more parts with a word between them."""
        parts = [part()]
        while self.took(word):
            parts.append(part())
        flat = [each for some in parts for each in (some.parts if isinstance(some, kind) else (some,))]
        return flat[0] if len(flat) == 1 else kind(tuple(flat))

    def negation(self) -> Condition:
        opened = self.now
        if not (self.took("not") or self.took("(")):
            return self.comparison()
        if self.nested == MOST_NESTED:
            self.fail_at(opened, f"more than {MOST_NESTED} levels of parentheses and 'not' cannot be read")
        self.nested += 1
        if opened.keyword == "not":
            part: Condition = Not(self.negation())
        else:
            part = self.condition()
            if self.now.kind == "mark" and self.now.text == "|":
                self.fail_at(self.now, "'|' is for the whole question, and cannot be inside of parentheses")
            if not self.took(")"):
                self.fail_at(self.now, f"expected 'and', 'or' or ')', found {self.now.shown}")
        self.nested -= 1
        return part

    def comparison(self) -> Condition:
        if self.starts_with_value():
            return self.turned()
        field = self.column()
        token = self.now
        if token.kind == "operator":
            self.place += 1
            value = self.value(field, token)
            if self.now.kind == "operator":
                self.fail_at(self.now, f"join two comparisons by 'and', or put {_name(field.name)} in the middle")
            return Comparison(field.name, token.text, value)
        if self.took("is"):
            return self.missing(field, token)
        contrary = self.took("not")
        if self.took("in"):
            condition: Condition = Membership(field.name, self.values(field))
        elif self.now.keyword == "between":
            between = self.take()
            low = self.value(field, between)
            if not self.took("and"):
                self.fail_at(self.now, f"expected 'and' of 'between ... and ...', found {self.now.shown}")
            condition = Range(low, "<=", field.name, "<=", self.value(field, between))
        else:
            wanted = "'in' or 'between'" if contrary else "=, !=, <, <=, >, >=, 'in' or 'between'"
            self.fail_at(self.now, f"expected {wanted} after {_name(field.name)}, found {self.now.shown}")
        return Not(condition) if contrary else condition

    def starts_with_value(self) -> bool:
        """Whether this is ``30 < age``: a number, text, or a word that is not a column, before a column."""
        token, after = self.now, self.ahead(2)
        if token.kind == "text" or (token.kind == "word" and NUMBER.fullmatch(token.text)):
            return True
        column_after = after.kind in ("word", "quoted", "name") and after.text in self.fields
        return self.ahead(1).kind == "operator" and token.text not in self.fields and column_after

    def turned(self) -> Condition:
        """``30 > age``, or ``20 < age <= 30``."""
        left, first = self.take(), self.take()
        if first.kind != "operator":
            self.fail_at(first, f"expected a comparison such as < after the value {left.shown}, found {first.shown}")
        field = self.column()
        if self.now.kind != "operator":
            return Comparison(field.name, TURNED[first.text], self.value(field, first, left))
        second = self.take()
        for operator in (first, second):
            if operator.text in ("=", "!=") or operator.text[0] != first.text[0]:
                self.fail_at(operator, "both comparisons should be < or <=, or both > or >=, as in 20 < age <= 30")
        low, high = self.value(field, first, left), self.value(field, second)
        if first.text[0] == ">":
            return Range(high, TURNED[second.text], field.name, TURNED[first.text], low)
        return Range(low, first.text, field.name, second.text, high)

    def missing(self, field: Field, token: _Token) -> Condition:
        """``is missing`` or ``is not missing``, for a column in which missingness is modelled."""
        contrary = self.took("not")
        last = self.take()
        if last.text.lower() not in ("missing", "null"):
            self.fail_at(token, "'is' is for 'is missing' only: write = for 'is'")
        if not field.missing:
            self.fail(
                f"{_name(field.name)} has no probability of being missing: missing values are not modelled, and a "
                "column that is not mentioned may have any value",
                token.begin,
                last.end,
            )
        return Not(Missing(field.name)) if contrary else Missing(field.name)

    def column(self) -> Field:
        token = self.now
        if token.kind not in ("word", "quoted", "name") or token.keyword:
            quoted = f"; a column of that name is written `{token.text}`" if token.keyword else ""
            self.fail_at(token, f"expected a column, found {token.shown}{quoted}")
        if token.text not in self.fields:
            self.fail_at(token, f"there is no column {token.shown}: {_suggestion(token.text, list(self.fields))}")
        self.place += 1
        return self.fields[token.text]

    def values(self, field: Field) -> tuple[Value, ...]:
        opened = self.now
        if opened.kind != "mark" or opened.text not in CLOSING:
            self.fail_at(opened, f"expected a list such as {{a, b}} after 'in', found {opened.shown}")
        self.place += 1
        values = [self.value(field, None)]
        while self.took(","):
            values.append(self.value(field, None))
        if not self.took(CLOSING[opened.text]):
            self.fail_at(self.now, f"expected ',' or {CLOSING[opened.text]!r}, found {self.now.shown}")
        return tuple(dict.fromkeys(values))

    def value(self, field: Field, operator: _Token | None, token: _Token | None = None) -> Value:
        """A token, by default the next one, as a value of the column, after an operator or in a list."""
        token = token or self.take()
        if token.kind not in ("word", "text", "quoted") or token.keyword:
            quoted = f"; as a value, it is written '{token.text}'" if token.keyword else ""
            self.fail_at(token, f"expected a value of {_name(field.name)}, found {token.shown}{quoted}")
        by_order = operator is not None and operator.text not in ("=", "!=")
        if operator is not None and by_order and not field.ordered:
            self.fail_at(operator, f"{_name(field.name)} has no order, only =, != and in: {_known(field)}")
        if field.column.quantitative or (by_order and field.dtype != "text"):
            return self.number(field, token)
        written = str(self.number(field, token)) if field.temporal else token.text
        if field.name not in self.labels:
            self.labels[field.name] = _labels_by_key(field)
        known = self.labels[field.name]
        found = next((known[key] for key in _keys(written, field) if key in known), None)
        if found is None:
            self.fail_at(token, f"{_name(field.name)} has no value {token.shown}: {_known(field, token.text)}")
        return found

    def number(self, field: Field, token: _Token) -> Value:
        """A number; a date as it is written, if the column has dates."""
        if field.temporal:
            if seconds_in([token.text]) is None:
                name = _name(field.name)
                self.fail_at(token, f"expected a date such as 2024-03-01 for {name}, found {token.shown}")
            return token.text
        if not NUMBER.fullmatch(token.text):
            other = f": {_name(token.text)} is a column, and columns are compared with values only"
            other = other if token.text in self.fields and token.kind != "text" else ""
            self.fail_at(token, f"expected a number for {_name(field.name)}, found {token.shown}{other}")
        if math.isinf(float(token.text)):
            self.fail_at(token, "this number is too large")
        return float(token.text)


def _labels(field: Field) -> list[Value]:
    """The labels of a column, without 'missing'; dates as text."""
    return [label.isoformat() if field.temporal else label for label in field.labels(other=True) if label is not None]


def _labels_by_key(field: Field) -> dict[str | float, Value]:
    """The values of a column by every spelling; the first one if two share a spelling."""
    found: dict[str | float, Value] = {}
    for label in _labels(field):
        keys = _keys(label, field) if isinstance(label, str) else [float(label)]
        for key in [*keys, *([str(label).lower()] if isinstance(label, bool) else [])]:
            found.setdefault(key, label)
    return found


def _keys(text: str, field: Field) -> list[str | float]:
    """What a text may mean: a date with or without a time, a number, a truth value, itself."""
    if field.temporal:
        seconds = seconds_in([text])
        return [text] if seconds is None else [float(seconds[0][0])]
    if field.dtype == "text":
        return [text]
    return [*([float(text)] if NUMBER.fullmatch(text) else []), *([text.lower()] if field.dtype == "bool" else [])]


def _suggestion(name: str, names: Sequence[str]) -> str:
    name = name[:100]
    lower = {each.lower(): each for each in reversed(names)}
    close = [lower[each] for each in difflib.get_close_matches(name.lower(), list(lower), n=3)]
    if close:
        return f"did you mean {' or '.join(map(_name, close))}?"
    return f"the columns are {listed(map(_name, names), 20)}"


def _known(field: Field, near: str | None = None) -> str:
    """The values of a column, in words."""
    labels = [label for label in _labels(field) if not (field.bucket and label == OTHER)]
    shown = listed(map(_value, labels), 20)
    texts = {str(label).lower(): label for label in labels}
    close = [] if near is None else difflib.get_close_matches(near[:100].lower(), list(texts), n=1)
    return (f"did you mean {_value(texts[close[0]])}? " if close else "") + f"its values are {shown}"


def _name(name: str) -> str:
    """A column's name, for messages."""
    return visible(written_name(name))


def _value(value: Value) -> str:
    """A value, for messages."""
    return visible(written_value(value))
