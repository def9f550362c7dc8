"""A comparison as one page of HTML, from the template ``compare.html``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from made.compare.conclusions import decimals, differences, ranked, sentences
from made.compare.result import Result, Setting
from made.pages.render import render
from made.pages.svg import element, picture, ticks
from made.pages.text import clip

# Of the picture: the ends of the axis, the total width, the height of a line, and the top of the first line.
LEFT, RIGHT, WIDTH, LINE, TOP = 220, 740, 960, 32, 34
LONGEST = 26  # characters that fit on the left of the axis


def page(results: Sequence[Result], setting: Setting) -> str:
    """The page of a comparison."""
    order, found = ranked(results), differences(results)
    return render(
        "compare.html",
        command="compare",
        setting=setting,
        results=order,
        sentences=sentences(results, setting.test),
        picture=intervals(order),
        kinds={each.kind for each in results if not each.error},
        places=decimals([each.ci95 for each in order]),
        differences=found,
        difference_places=decimals([each.ci95 for each in found]),
        titles={each.name: each.title for each in results},
        speed=speed,
        duration=duration,
    )


def speed(value: float) -> str:
    """A speed to three digits, empty if unknown.

    Example:
        >>> speed(1234567.0), speed(1.2345), speed(float("nan"))
        ('1,230,000', '1.23', '')
    """
    if not value > 0:
        return ""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def duration(seconds: float) -> str:
    """Seconds, with two decimals below ten and one above.

    Example:
        >>> duration(0.0123), duration(61.26)
        ('0.01', '61.3')
    """
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:,.1f}"


def intervals(results: Sequence[Result]) -> Markup:
    """The NLLs and their intervals as SVG, one line for each system that has an NLL; empty if none has."""
    scored = [each for each in results if not each.error]
    if not scored:
        return Markup()
    places = decimals([each.ci95 for each in scored])
    low, high = min(each.nll - each.ci95 for each in scored), max(each.nll + each.ci95 for each in scored)
    room = 0.08 * (high - low) or 0.5
    low, high = low - room, high + room

    def across(nll: float) -> float:
        return LEFT + (nll - low) / (high - low) * (RIGHT - LEFT)

    bottom = TOP + LINE * len(scored)
    parts = []
    for tick in ticks(low, high):
        at = across(tick)
        parts.append(element("line", class_="grid", x1=at, y1=TOP - 8, x2=at, y2=bottom))
        parts.append(element("text", f"{tick:g}", class_="soft", x=at, y=TOP - 14, text_anchor="middle"))
    best = across(min(each.nll for each in scored))
    parts.append(element("line", class_="lead", x1=best, y1=TOP - 8, x2=best, y2=bottom))
    for index, each in enumerate(scored):
        middle = TOP + LINE * index + LINE // 2
        kind = "" if each.kind == "exact" else f", {each.known.partition(' (')[0]}"
        number = f"{each.shown(places)} ± {each.ci95:.{places}f}{kind}"
        name = element("text", clip(each.title, LONGEST), x=LEFT - 12, y=middle + 5, text_anchor="end")
        said = element("text", number, x=RIGHT + 12, y=middle + 5)
        title = element("title", f"{each.title}: {number}")
        parts.append(element("g", title, name, *_mark(each, across, middle), said))
    label = "; ".join(f"{each.title}: {each.shown(places)} ± {each.ci95:.{places}f}, {each.known}" for each in scored)
    return picture(WIDTH, bottom + 8, label, *parts)


def _mark(each: Result, across: Callable[[float], float], middle: int) -> list[Markup]:
    """An interval with its ends, and on it a circle, or for a bound an arrow to the left."""
    centre, left, right = (across(nll) for nll in (each.nll, each.nll - each.ci95, each.nll + each.ci95))
    lines = [(left, middle, right, middle), *((end, middle - 5, end, middle + 5) for end in (left, right))]
    drawn = [element("line", class_=each.kind, x1=a, y1=b, x2=c, y2=d) for a, b, c, d in lines]
    if each.kind == "bound":
        shape = f"M{centre - 12:.1f} {middle} L{centre:.1f} {middle - 7} L{centre:.1f} {middle + 7} Z"
        return [*drawn, element("path", class_="bound", d=shape)]
    return [*drawn, element("circle", class_=each.kind, cx=centre, cy=middle, r=5)]
