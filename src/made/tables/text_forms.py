"""Text that stands for numbers, dates or times in a form that is not read: what to do with such a column."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from made.tables.plain import number_in

MOST = 0.9  # of the texts should have a form, so that a few of another form, such as "unknown", are allowed
DATE = re.compile(r"(\d{1,4}([-/.])\d{1,2}\2\d{1,4}|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4})([T, ].*)?")
TIME = re.compile(r"\d{1,3}(:\d\d){1,2}([.,]\d+)?( ?[ap]m)?", re.IGNORECASE)
AMOUNT = re.compile(r"[-+(]?[$£¥€]?\s?(\d{1,3}([,.'\s]\d{3})+|\d+)?([.,]\d+)?\s?[)%$£¥€]?")


def _is_amount(text: str) -> bool:
    return number_in(text) is not None or (any(map(str.isdigit, text)) and AMOUNT.fullmatch(text) is not None)


FORMS: tuple[tuple[str, str, Callable[[str], object]], ...] = (
    ("dates", " to the form 2024-03-14", DATE.fullmatch),
    ("times", " to a number, such as hours", TIME.fullmatch),
    ("numbers", "", _is_amount),
)


def remedy(texts: Sequence[str]) -> str | None:
    """What different texts look like, and how to convert them; None if they are not such text.

    Example:
        >>> remedy(["3/14/2024", "3/15/2024"])
        "2 texts that look like dates, such as '3/14/2024': convert it to the form 2024-03-14"
        >>> remedy(["$1,200.00", "$80.50", "$9.99"])
        "3 texts that look like numbers, such as '$1,200.00': convert it"
        >>> remedy(["192.168.0.1", "10.0.0.1"])
    """
    for what, how, fits in FORMS:
        found = [text for text in texts if fits(text.strip())]
        if len(found) > MOST * len(texts):
            return f"{len(texts)} texts that look like {what}, such as {found[0]!r}: convert it{how}"
    return None
