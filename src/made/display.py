"""Text of unknown origin, such as names and values of a table, safe to display."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import islice


def visible(text: str, *, lines: bool = False) -> str:
    r"""Text without characters that do something to a terminal: they are shown as Python would write them.

    What is escaped is what :func:`repr` escapes, but for spaces: control characters, which may move the cursor or set a
    title, marks that reverse the direction of writing, and halves of surrogate pairs.

    Arguments:
        text: the text.
        lines: whether the ends of lines are left as they are.

    Example:
        >>> print(visible("red: \x1b[31m, größe"))
        red: \x1b[31m, größe
    """
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or (lines and each == "\n") or unicodedata.category(each) == "Zs"
        else each.encode("unicode_escape").decode()
        for each in text
    )


def shortened(text: str, most: int) -> str:
    """Text truncated to a number of characters: the beginning and the end of a longer one.

    Example:
        >>> shortened("from the beginning to the end", 13)
        'from ... end'
    """
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[: most - 5 - half].rstrip()} ... {text[len(text) - half :].lstrip()}"


def listed(names: Iterable[str], most: int = 10) -> str:
    """Names with commas between them: the first ones, and an ellipsis if there are more.

    Example:
        >>> listed(["age", "job", "home"], most=2), listed([])
        ('age, job, ...', '')
    """
    names = iter(names)
    first = list(islice(names, most))
    return ", ".join([*first, *(["..."] if next(names, None) is not None else [])])
