"""What our pages share: a style for the light and the dark, text that is harmless, tables, and the marks of an axis.

A page is complete in itself: it loads nothing, needs no script, and its pictures are SVG that is drawn here, so that
nothing has to be installed for them. Whatever comes from data goes through :func:`text`, and is shown, never obeyed.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from made._version import __version__

__all__ = [
    "STYLE",
    "Cell",
    "clip",
    "document",
    "generator",
    "letters",
    "row",
    "scroll",
    "short",
    "signed",
    "table",
    "text",
    "ticks",
]

Cell: TypeAlias = tuple[str, bool]  # HTML, and whether it is a number

# mark and other are the two things that a picture compares: blue and orange, which most eyes tell apart.
STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --back: #ffffff; --card: #f7f8fa; --soft: #5f6368; --line: #d9dce1;
        --mark: #1f5fa8; --other: #b85400; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e8e8; --back: #14161a; --card: #1c1f25; --soft: #a3a8b0; --line: #383d45;
          --mark: #7db4f0; --other: #f5a04c; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 64rem;
       margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 0.25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 0.5rem; }
a { color: var(--mark); }
.soft, figcaption, caption { color: var(--soft); font-size: 0.9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.95rem; }
caption { text-align: left; padding-bottom: 0.4rem; }
th, td { padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
         overflow-wrap: break-word; }
th { font-weight: 600; }
thead th { vertical-align: bottom; }
tbody th { font-weight: 400; }
td.number, th.number { text-align: right; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; }
svg { display: block; max-width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; fill: var(--text); }
svg .soft { fill: var(--soft); }
svg .grid { stroke: var(--line); stroke-width: 1; }
"""

# What no page may hold: control characters, and halves of characters, which UTF-8 has no bytes for.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def text(value: object, longest: int | None = None) -> str:
    """Anything as text that is safe within an element and within an attribute, clipped if it is longer.

    Example:
        >>> text("<script>"), text("a\\0b"), text("a long name", 6)
        ('&lt;script&gt;', 'a�b', 'a lon…')
    """
    shown = _UNPRINTABLE.sub("\ufffd", str(value))
    return escape(shown if longest is None else clip(shown, longest))


def clip(value: str, longest: int) -> str:
    """Text that is no wider than so many letters, its white space made even; one of East Asia is as wide as two.

    Example:
        >>> clip("short", 5), clip("too long", 5), clip("東京都庁", 5)
        ('short', 'too …', '東京…')
    """
    # No more is looked at than may have room: a cell may hold a book.
    value = " ".join(value[: 4 * longest + 4].split())
    widths = [_width(letter) for letter in value]
    if sum(widths) <= longest:
        return value
    room = longest - 1
    for place, width in enumerate(widths):
        room -= width
        if room < 0:
            return value[:place] + "…"
    return value


def letters(value: str) -> int:
    """How many letters wide a text is."""
    return sum(map(_width, value))


def _width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def generator(command: str) -> str:
    """The element by which a page is known as one of ours, that may be replaced; its version is to follow.

    Example:
        >>> generator("compare")
        '<meta name="generator" content="made compare'
    """
    return f'<meta name="generator" content="made {command}'


def document(title: str, body: Iterable[str], *, command: str, style: str = "") -> str:
    """A whole page: its title is text, its body HTML, its style what is added to :data:`STYLE`."""
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'{generator(command)} {text(__version__)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title>",
        f"<style>{STYLE}{style}</style>",
        "</head>",
        "<body>",
        *body,
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def row(cells: Sequence[Cell], *, head: bool = False, attribute: str = "") -> str:
    """A row of a table; its first cell is its name."""
    lines = []
    for place, (content, number) in enumerate(cells):
        tag = 'th scope="col"' if head else 'th scope="row"' if place == 0 else "td"
        kind = ' class="number"' if number else ""
        lines.append(f"<{tag}{kind}>{content}</{tag[:2]}>")
    return f"<tr{attribute}>{''.join(lines)}</tr>"


def table(heads: Sequence[Cell], rows: Iterable[str], *, caption: str = "") -> str:
    """A table of rows that :func:`row` has made; its caption is HTML."""
    parts = [f"<caption>{caption}</caption>"] if caption else []
    parts += ["<thead>", row(heads, head=True), "</thead>", "<tbody>", *rows, "</tbody>"]
    return "\n".join(["<table>", *parts, "</table>"])


def scroll(content: str, label: str) -> str:
    """What may be wider than the page, to be moved within its own frame, by keys too; its label is text."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{text(label)}">\n{content}\n</div>'


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers from one number to another, at most so many.

    Example:
        >>> ticks(15.7, 25.9), ticks(0.1, 0.32), ticks(3.0, 3.0)
        ([16.0, 18.0, 20.0, 22.0, 24.0], [0.1, 0.15, 0.2, 0.25, 0.3], [3.0])
    """
    half = high / 2 - low / 2  # the whole may be too large for a float
    if not 0 < half < math.inf:
        return [low]
    power = math.floor(math.log10(half / most * 2))
    for step in (float(f"{factor}e{power + more}") for more in (0, 1) for factor in (1, 2, 5)):
        if 0 < step < math.inf and math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) < most:
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            return [float(f"{step * index:.12g}") for index in range(first, last + 1)]
    return [low, high]


def short(number: float) -> str:
    """A number in a few letters, of four digits at most.

    Example:
        >>> [short(each) for each in (0, 12.3456, 1234.5, 12345678.0, 1e300, 0.000123, math.nan)]
        ['0', '12.35', '1,234', '1.235e7', '1e300', '1.23e−4', '?']
    """
    if not math.isfinite(number):
        return "?"
    if 1000 <= abs(number) < 1e6:
        return signed(f"{number:,.0f}")
    shown = f"{number:.4g}"
    digits, _, exponent = (f"{number:.3e}" if "e" in shown or 0 < abs(number) < 1e-3 else shown).partition("e")
    if not exponent:
        return signed(digits)
    digits = digits.rstrip("0").rstrip(".")
    return signed(f"{digits}e{int(exponent)}")


def signed(number: str) -> str:
    """A number with a minus in place of a hyphen, which is as wide as a plus.

    Example:
        >>> signed("-1.5")
        '−1.5'
    """
    return number.replace("-", "\N{MINUS SIGN}")
