"""SVG pictures, built from elements whose text and attributes are escaped."""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from made.pages.text import printable


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """An SVG element.

    Arguments:
        tag: its name.
        children: other elements, and text, which is escaped.
        attributes: a float is rounded to two decimals, and None omits the attribute. ``class_`` stands for ``class``,
            and an underscore inside a name for a hyphen.

    Example:
        >>> print(element("text", "a < b", x=1 / 3, class_="soft", text_anchor="end"))
        <text x="0.33" class="soft" text-anchor="end">a &lt; b</text>
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    content = "".join(map(_escaped, children))
    return Markup(f"<{tag}{given}>{content}</{tag}>" if content else f"<{tag}{given}/>")


def _escaped(value: str | float) -> str:
    if isinstance(value, Markup):
        return value
    return escape(printable(value) if isinstance(value, str) else f"{round(value, 2):.10g}")


def picture(width: float, height: float, label: str, *parts: str, style: str | None = None) -> Markup:
    """A whole picture; ``label`` describes it to a screen reader."""
    return element(
        "svg", *parts, viewBox=f"0 0 {width:g} {height:g}", width=width, role="img", aria_label=label, style=style
    )


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """At most ``most`` round numbers between two numbers.

    Example:
        >>> ticks(15.7, 25.9), ticks(0.1, 0.32), ticks(3.0, 3.0)
        ([16.0, 18.0, 20.0, 22.0, 24.0], [0.1, 0.15, 0.2, 0.25, 0.3], [3.0])
    """
    half = high / 2 - low / 2  # the difference itself may overflow
    if not 0 < half < math.inf:
        return [low]
    power = math.floor(math.log10(half / most * 2))
    for step in (float(f"{factor}e{power + more}") for more in (0, 1) for factor in (1, 2, 5)):
        if 0 < step < math.inf and math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) < most:
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            return [float(f"{step * index:.12g}") for index in range(first, last + 1)]
    return [low, high]
