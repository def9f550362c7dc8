"""Text and numbers as pages show them."""

from __future__ import annotations

import math
import re
import unicodedata

# Control characters, and surrogates, which have no UTF-8 encoding.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    r"""Text with control characters and surrogates replaced by U+FFFD.

    Example:
        >>> printable("a\0b")
        'a�b'
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def clip(value: object, longest: int) -> str:
    """Text at most ``longest`` characters wide, with normalized white space. East Asian wide characters count as two.

    Example:
        >>> clip("short", 5), clip("too long", 5), clip("東京都庁", 5)
        ('short', 'too …', '東京…')
    """
    # Cut first: a cell may hold a whole book.
    text = " ".join(str(value)[: 4 * longest + 4].split())
    if width(text) <= longest:
        return text
    kept = text
    while width(kept) > longest - 1:
        kept = kept[:-1]
    return kept + "…"


def width(text: str) -> int:
    """The width of a text in characters; East Asian wide characters count as two, combining ones as none."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def percent(share: float) -> str:
    """A share in percent, with more decimals the smaller it is.

    Example:
        >>> percent(0.341), percent(0.0012), percent(1.0), percent(0.0), percent(1e-6)
        ('34.1 %', '0.12 %', '100 %', '0 %', '< 0.01 %')
    """
    if 0 < share < 1e-4:
        return "< 0.01 %"
    return f"{100 * share:.{1 if share >= 0.01 else 2}f}".rstrip("0").rstrip(".") + " %" if share else "0 %"


def short(value: float) -> str:
    """A number with at most four significant digits.

    Example:
        >>> [short(each) for each in (0, 12.3456, 1234.5, 12345678.0, 1e300, 0.000123, math.nan)]
        ['0', '12.35', '1,234', '1.235e7', '1e300', '1.23e−4', '?']
    """
    if not math.isfinite(value):
        return "?"
    if 1000 <= abs(value) < 1e6:
        return number(value, ",.0f")
    shown = f"{value:.4g}"
    digits, _, exponent = (f"{value:.3e}" if "e" in shown or 0 < abs(value) < 1e-3 else shown).partition("e")
    return signed(f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}" if exponent else digits)


def number(value: float, form: str) -> str:
    """A number in a format.

    Example:
        >>> number(-1.25, ".1f")
        '−1.2'
    """
    return signed(f"{value:{form}}")


def signed(text: str) -> str:
    """A number with a minus sign, which is as wide as a plus sign, in place of a hyphen."""
    return text.replace("-", "\N{MINUS SIGN}")
