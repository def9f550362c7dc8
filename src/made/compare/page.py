"""A comparison as one page of HTML: what may be concluded, a picture of the intervals, and the table.

The page is complete in itself, and readable in the light and in the dark (:mod:`html`). The picture is SVG that is
drawn here. In it as in the table, what is not exact has a mark of its own and says what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from made.baselines.protocol import SIGNS
from made.compare.comparison import Result, Setting, decimals, differences, ranked, sentences
from made.pages.html import Cell, clip, document, row, scroll, signed, table, text, ticks

__all__ = ["duration", "page", "picture", "shown", "speed"]

# Of the picture: where the axis begins and ends, how wide all is, how high a line and what is above the first one.
LEFT, RIGHT, WIDTH, LINE, TOP = 220, 740, 960, 32, 34
LONGEST = 26  # letters that have room to the left of the axis

STYLE = """
:root { --estimate: #b05a00; --bound: #8a3a8f; }
@media (prefers-color-scheme: dark) { :root { --estimate: #f0a85a; --bound: #d79adb; } }
tr.best > * { font-weight: 600; }
small { display: block; color: var(--soft); font-weight: 400; }
.estimate { color: var(--estimate); }
.bound { color: var(--bound); }
svg { width: 100%; min-width: 40rem; max-width: none; }
svg text { font-size: 14px; }
svg text.soft { font-size: 12px; }
svg .lead { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 4; }
svg .exact { stroke: var(--mark); fill: var(--mark); stroke-width: 2; }
svg .estimate { stroke: var(--estimate); fill: var(--back); stroke-width: 2; }
svg .bound { stroke: var(--bound); fill: var(--bound); stroke-width: 2; }
"""


def page(results: Sequence[Result], setting: Setting) -> str:
    """The whole page."""
    order, title = ranked(results), f"Which model for {setting.data}?"
    rows = f"{setting.train:,} rows to learn from, {setting.valid:,} to choose by, {setting.test:,} to be asked about"
    minutes = "no limit of" if setting.budget is None else f"{setting.budget / 60:g} minutes of"
    body = [
        f"<h1>{text(title)}</h1>",
        f'<p class="soft">{setting.columns:,} columns of zeros and ones; {rows}. '
        f"Seed {setting.seed}; {minutes} time to train all models.</p>",
        *(f'<p class="soft">Note: {text(each)}</p>' for each in setting.notes),
        "<ul>",
        *(f"<li>{text(each)}</li>" for each in sentences(results, setting.test)),
        "</ul>",
        "<h2>Negative log-likelihood of test rows</h2>",
    ]
    if drawn := picture(order):
        body += ["<figure>", scroll(drawn, "picture"), f"<figcaption>{_caption(order)}</figcaption>", "</figure>"]
    body += [
        scroll(_table(order), "table"),
        *_against(results),
        '<p class="soft">NLL is the mean over test rows, in nats; lower is better. After ± is half of a 95 % interval. '
        "Speeds are of this one run, on the machine that it was made on. A number that is not exact says so: an "
        "estimate (≈), with its standard error (s.e.), which is in the interval, too; or an upper bound (≤): the true "
        "NLL is this or lower.</p>",
    ]
    return document(title, body, command="compare", style=STYLE)


def shown(result: Result, places: int) -> str:
    """An NLL, with a sign in front of it if it is not exact.

    Example:
        >>> shown(Result("some", "some", 1.5, kind="bound"), 2)
        '≤ 1.50'
    """
    return f"{SIGNS[result.kind or 'exact']}{result.nll:.{places}f}"


def speed(value: float) -> str:
    """Three digits, because a speed is no more certain than that; nothing if it is not known.

    Example:
        >>> speed(1234567.0), speed(1.2345), speed(float("nan"))
        ('1,230,000', '1.23', '')
    """
    if not value > 0:
        return ""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def duration(seconds: float) -> str:
    """Seconds, with the more decimals the fewer they are.

    Example:
        >>> duration(0.0123), duration(61.26)
        ('0.01', '61.3')
    """
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:,.1f}"


def _caption(results: Sequence[Result]) -> str:
    kinds = {each.kind for each in results if not each.error}
    marks = {
        "exact": "a full circle is exact",
        "estimate": "an empty circle is an estimate",
        "bound": "an arrow is an upper bound: the truth is there or to the left of it",
    }
    said = "; ".join(words for kind, words in marks.items() if kind in kinds) if kinds != {"exact"} else "all are exact"
    return f"Mean NLL in nats, with 95 % intervals: further left is better. {said[:1].upper()}{said[1:]}."


def _table(results: Sequence[Result]) -> str:
    places = decimals([each.ci95 for each in results])
    heads = [("model", False), ("NLL", True), ("95 % interval", True), ("likelihood", False)]
    heads += [(head, True) for head in ("seconds to train", "rows scored per second", "samples per second")]
    lines = []
    for place, each in enumerate(results):
        name = text(each.title) + (f"<small>{text(each.name)}</small>" if each.name != each.title else "")
        if each.error:
            lines.append(f'<tr><th scope="row">{name}</th><td colspan="7">no number: {text(each.error)}</td></tr>')
            continue
        cells: list[Cell] = [
            (name, False),
            (shown(each, places), True),
            (f"± {each.ci95:.{places}f}", True),
            (f'<span class="{each.kind}">{text(each.known).replace("s.e. ", "s.e.&nbsp;")}</span>', False),
            (duration(each.seconds) + ("<small>all that it had</small>" if each.stopped else ""), True),
            (speed(each.rows_per_second), True),
            (speed(each.samples_per_second) or "none", True),
            (f"{each.parameters:,}" if each.parameters else "not known", True),
        ]
        lines.append(row(cells, attribute=' class="best"' if place == 0 else ""))
    return table([*heads, ("parameters", True)], lines)


def _against(results: Sequence[Result]) -> list[str]:
    """The differences from the best system, row by row."""
    found, titles = differences(results), {each.name: each.title for each in results}
    if not found:
        return []
    places = decimals([each.ci95 for each in found])
    words = {
        "worse": "worse",
        "not told apart": "not told apart: the interval has 0 in it",
        "unknown": "not known to be worse: only an upper bound is known",
    }
    heads = [("model", False), ("NLL above the best one's", True), ("95 % interval", True)]
    lines = []
    for each in found:
        cells: list[Cell] = [
            (text(titles[each.name]), False),
            (signed(f"{each.nll:+.{places}f}"), True),
            (f"± {each.ci95:.{places}f}", True),
            ("yes" if each.overlap else "no", False),
            (words[each.verdict], False),
        ]
        lines.append(row(cells))
    return [
        f"<h2>Against {text(titles[found[0].best])}, on the same rows</h2>",
        '<p class="soft">All systems were asked about the same test rows, so that they are best compared row by row: '
        "the interval of the mean difference may tell systems apart whose own intervals overlap.</p>",
        scroll(
            table([*heads, ("own intervals overlap", False), ("on these rows, it is", False)], lines), "differences"
        ),
    ]


def picture(results: Sequence[Result]) -> str:
    """The NLLs and their intervals as SVG, a line for each system that has one; nothing if none has."""
    scored = [each for each in results if not each.error]
    if not scored:
        return ""
    places = decimals([each.ci95 for each in scored])
    low, high = min(each.nll - each.ci95 for each in scored), max(each.nll + each.ci95 for each in scored)
    room = 0.08 * (high - low) or 0.5
    low, high = low - room, high + room

    def across(nll: float) -> float:
        return LEFT + (nll - low) / (high - low) * (RIGHT - LEFT)

    bottom = TOP + LINE * len(scored)
    said = "; ".join(f"{each.title}: {shown(each, places)} ± {each.ci95:.{places}f}, {each.known}" for each in scored)
    lines = [f'<svg viewBox="0 0 {WIDTH} {bottom + 8}" role="img" aria-label="{text(said)}">']
    for tick in ticks(low, high):
        place = f"{across(tick):.1f}"
        lines.append(f'<line class="grid" x1="{place}" y1="{TOP - 8}" x2="{place}" y2="{bottom}"/>')
        lines.append(f'<text class="soft" x="{place}" y="{TOP - 14}" text-anchor="middle">{tick:g}</text>')
    best = f"{across(min(each.nll for each in scored)):.1f}"
    lines.append(f'<line class="lead" x1="{best}" y1="{TOP - 8}" x2="{best}" y2="{bottom}"/>')
    for index, each in enumerate(scored):
        middle = TOP + LINE * index + LINE // 2
        kind = "" if each.kind == "exact" else f", {each.known.partition(' (')[0]}"
        number = f"{shown(each, places)} ± {each.ci95:.{places}f}{kind}"
        lines += [
            f"<g><title>{text(each.title)}: {number}</title>",
            f'<text x="{LEFT - 12}" y="{middle + 5}" text-anchor="end">{text(clip(each.title, LONGEST))}</text>',
            *_mark(each, across, middle),
            f'<text x="{RIGHT + 12}" y="{middle + 5}">{number}</text>',
            "</g>",
        ]
    return "\n".join([*lines, "</svg>"])


def _mark(each: Result, across: Callable[[float], float], middle: int) -> list[str]:
    """An interval with its ends, and on it a circle, or an arrow to where the truth may be."""
    centre = across(each.nll)
    left, right = (f"{across(end):.1f}" for end in (each.nll - each.ci95, each.nll + each.ci95))
    lines = [(left, middle, right, middle), *((end, middle - 5, end, middle + 5) for end in (left, right))]
    drawn = [f'<line class="{each.kind}" x1="{a}" y1="{b}" x2="{c}" y2="{d}"/>' for a, b, c, d in lines]
    if each.kind == "bound":
        shape = f"M{centre - 12:.1f} {middle} L{centre:.1f} {middle - 7} L{centre:.1f} {middle + 7} Z"
        return [*drawn, f'<path class="bound" d="{shape}"/>']
    return [*drawn, f'<circle class="{each.kind}" cx="{centre:.1f}" cy="{middle}" r="5"/>']
