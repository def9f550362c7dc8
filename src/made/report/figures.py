"""The pictures of a report, as SVG. Real shares are filled; sampled ones are an outline or a bar in another colour."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations

import numpy as np
from markupsafe import Markup

from made.columns.bins import Bars, Histogram
from made.pages.svg import element, picture, ticks
from made.pages.text import clip, number, percent, short, signed, width
from made.report.column import ColumnComparison
from made.report.dependence import Dependence
from made.report.report import Training
from made.tables.dates import DAY

LETTER = 7.6  # pixels, the width of a character in the widest font that a page may be shown in
MOST_POINTS = 400  # of a curve


def shares(column: ColumnComparison) -> Markup:
    """The shares of a column's values."""
    label = f"{column.name}: shares of values, real and sampled"
    if isinstance(column.shares, Bars):
        return bars(column.shares, label)
    return histogram(column.shares, label, dates=column.dates) if column.shares.edges else Markup()


def moment(seconds: float, span: float) -> str:
    """The nearest day, or the nearest minute if all values lie within a ``span`` of five days.

    Example:
        >>> moment(86400.0 * 364.5, 1e9), moment(3661.0, 100.0), moment(1e300, 1e300)
        ('1971-01-01', '01-01 01:01', '?')
    """
    if not abs(seconds) < 1e14:
        return "?"
    if span > 5 * DAY:
        return str(np.datetime64(math.floor(seconds / DAY + 0.5), "D"))
    return str(np.datetime64(math.floor(seconds / 60 + 0.5), "m"))[-11:].replace("T", " ")


def histogram(
    shares: Histogram, label: str, *, dates: bool = False, width: int = 320, height: int = 150, unit: str = ""
) -> Markup:
    """A histogram; bins are drawn with equal widths, whatever their edges."""
    left, right, top, bottom = 6, width - 6, 18, height - (34 if unit else 20)
    count, most = len(shares.edges) - 1, max([*shares.real, *shares.sampled, 1e-12])

    def across(place: float) -> float:
        return left + place / count * (right - left)

    def outline(heights: Sequence[float]) -> str:
        tops = [bottom - share / most * (bottom - top) for share in heights]
        steps = "".join(f"V{y:.1f}H{across(place + 1):.1f}" for place, y in enumerate(tops))
        return f"M{left} {bottom}{steps}V{bottom}"

    parts = []
    if shares.real:
        parts.append(element("path", class_="area", d=f"{outline(shares.real)}Z"))
    if shares.sampled:
        parts.append(element("path", class_="outline", d=outline(shares.sampled)))
    parts.append(element("line", class_="axis", x1=left, y1=bottom, x2=right, y2=bottom))
    parts.append(element("text", f"highest bin: {percent(most)}", class_="soft small", x=left, y=10))
    for place, mark in axis_marks(shares, dates):
        at = across(place)
        anchor = "start" if at < left + 24 else "end" if at > right - 24 else "middle"
        parts.append(element("line", class_="axis", x1=at, y1=bottom, x2=at, y2=bottom + 4))
        parts.append(element("text", mark, class_="soft", x=at, y=bottom + 16, text_anchor=anchor))
    if unit:
        parts.append(element("text", unit, class_="soft", x=width / 2, y=height - 3, text_anchor="middle"))
    for place in range(count):
        title = element("title", _bin(shares, place, dates))
        size = {"width": across(place + 1) - across(place), "height": bottom - top}
        parts.append(element("rect", title, class_="over", x=across(place), y=top, **size))
    return picture(width, height, label, *parts)


def _format(dates: bool, edges: Sequence[float]) -> Callable[[float], str]:
    return partial(moment, span=edges[-1] - edges[0]) if dates else short


def _bin(shares: Histogram, place: int, dates: bool) -> str:
    """The range and the shares of a bin, in words."""
    shown = _format(dates, shares.edges)
    low, high = (shown(edge) for edge in shares.edges[place : place + 2])
    first, last = place == 0 and shares.below, place == len(shares.edges) - 2 and shares.above
    words = "all" if first and last else f"up to {high}" if first else f"from {low}" if last else f"{low} to {high}"
    both = {"real": shares.real, "sampled": shares.sampled}
    return f"{words}: {', '.join(f'{name} {percent(each[place])}' for name, each in both.items() if each)}"


def axis_marks(shares: Histogram, dates: bool) -> list[tuple[float, str]]:
    """The marks of the axis: positions, counted in bins, and labels."""
    edges, count = shares.edges, len(shares.edges) - 1
    shown = _format(dates, edges)
    if dates or count < 2:
        places = [0.0, count / 2, float(count)] if count > 1 else [0.5]
        values = np.interp(places, range(count + 1), edges).tolist()
        return [(place, shown(value)) for place, value in zip(places, values, strict=True)]
    if shares.scale == "log":
        low, high = math.log10(edges[0]), math.log10(edges[-1])
        powers = [power for power in ticks(low, high, 5) if power == round(power)]
        return [((power - low) / (high - low) * count, short(10.0**power)) for power in powers]
    low, high = edges[0], edges[-1]
    # Halves, because the difference itself may overflow.
    return [((tick / 2 - low / 2) / (high / 2 - low / 2) * count, shown(tick)) for tick in ticks(low, high, 5)]


def bars(shares: Bars, label: str) -> Markup:
    """A real and a sampled bar for each value."""
    most = max([*shares.real, *shares.sampled, 1e-12])
    line, begin = 26, max(LETTER * width(clip(name, 18)) for name in shares.labels) + 18
    room = 320 - begin - 58  # leaves space for the percentage
    parts = []
    for place, name in enumerate(shares.labels):
        y = line * place + 2
        group = [element("title", clip(name, 200))]
        group.append(element("text", clip(name, 18), x=begin - 8, y=y + 15, text_anchor="end"))
        for kind, each, down in (("real", shares.real, 0), ("sampled", shares.sampled, 11)):
            if each:
                long = each[place] / most * room
                group.append(element("rect", class_=kind, x=begin, y=y + down, width=long, height=9))
                said = percent(each[place])
                group.append(element("text", said, class_="soft small", x=begin + long + 5, y=y + down + 8))
        parts.append(element("g", *group))
    height = line * len(shares.labels)
    axis = element("line", class_="axis", x1=begin, y1=0, x2=begin, y2=height)
    return picture(320, height + 2, label, *parts, axis)


def curve(training: Training, label: str) -> Markup:
    """The NLL of training and validation rows by epoch, and the epoch whose weights were kept."""
    if not training.epochs:
        return Markup()
    left, right, top, bottom = 52, 470, 30, 218
    epochs = list(training.epochs[:: max(1, len(training.epochs) // MOST_POINTS)])
    # The first epochs, often far above the rest, would flatten it.
    rest = epochs[len(epochs) // 10 :] if len(epochs) > 10 else epochs
    seen = [nll for epoch in rest for nll in epoch[1:] if math.isfinite(nll)] or [0.0]
    margin = 0.06 * (max(seen) - min(seen)) or 0.5
    low, high = min(seen) - margin, max(seen) + margin
    first, last = epochs[0][0], training.epochs[-1][0]

    def across(epoch: float) -> float:
        return left + (epoch - first) / (last - first) * (right - left) if last > first else (left + right) / 2

    def up(nll: float) -> float:
        return bottom - (nll - low) / (high - low) * (bottom - top)

    frame = element("rect", x=left, y=top, width=right - left, height=bottom - top)
    parts = [element("clipPath", frame, id="plot")]
    for tick in ticks(low, high, 6):
        parts.append(element("line", class_="grid", x1=left, y1=up(tick), x2=right, y2=up(tick)))
        parts.append(element("text", short(tick), class_="soft", x=left - 6, y=up(tick) + 4, text_anchor="end"))
    for tick in (each for each in ticks(first, last, 6) if each == round(each)):
        parts.append(element("text", f"{tick:g}", class_="soft", x=across(tick), y=bottom + 16, text_anchor="middle"))
    parts.append(element("text", "epoch", class_="soft", x=(left + right) / 2, y=254, text_anchor="middle"))
    for name, which in (("train", 1), ("valid", 2)):
        points = [(across(epoch[0]), up(epoch[which])) for epoch in epochs if math.isfinite(epoch[which])]
        if len(points) > 1:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            parts.append(element("path", class_=name, clip_path="url(#plot)", d=f"M{path}"))
        parts += [element("circle", class_=name, cx=x, cy=y, r=3) for x, y in points if len(points) == 1]
    kept = [epoch for epoch in training.epochs if epoch[0] == training.best_epoch and math.isfinite(epoch[2])]
    parts += [element("circle", class_="real", cx=across(epoch), cy=up(nll), r=5) for epoch, _, nll in kept]
    parts += [element("path", class_="train", d="M52 12h26"), element("text", "training", x=84, y=16)]
    if any(math.isfinite(epoch[2]) for epoch in epochs):
        parts += [element("path", class_="valid", d="M160 12h26"), element("text", "validation", x=192, y=16)]
    if kept:
        parts.append(element("circle", class_="real", cx=286, cy=12, r=5))
        parts.append(element("text", f"kept: epoch {kept[0][0]}, {short(kept[0][2])}", x=298, y=16))
    return picture(480, 260, label, *parts)


def heat(found: Dependence, label: str) -> Markup:
    """The association of all pairs: in the rows below the diagonal, in samples above it."""
    pairs = list(permutations(range(len(found.columns)), 2))
    known = [value for each in (found.real, found.sampled) for i, j in pairs if not math.isnan(value := each[i][j])]
    # Not below 0.3, or noise would look like strong association.
    most, cells = max([*known, 0.3]), []
    for i, j in pairs:
        value, kind = (found.real[i][j], "real") if j < i else (found.sampled[i][j], "sampled")
        if not math.isnan(value):
            names = _names(found, max(i, j), min(i, j))
            cells.append(_cell(i, j, kind, value / most, f"{names}: {value:.2f} {kind}"))
    legend = [("real", f"0 to {most:.2f} real"), ("sampled", f"0 to {most:.2f} sampled")]
    return _matrix(found.columns, cells, label, legend)


def differences(found: Dependence, label: str) -> Markup:
    """The association of each pair in samples minus that in the rows."""
    pairs = [(i, j) for i in range(len(found.columns)) for j in range(i)]
    gaps = {(i, j): gap for i, j in pairs if not math.isnan(gap := found.sampled[i][j] - found.real[i][j])}
    most, cells = max([*map(abs, gaps.values()), 0.3]), []
    for (i, j), gap in gaps.items():
        title = f"{_names(found, i, j)}: {number(gap, '+.2f')} in samples"
        cells.append(_cell(i, j, "sampled" if gap > 0 else "real", abs(gap) / most, title))
    legend = [("real", signed(f"0 to -{most:.2f}: weaker")), ("sampled", f"0 to +{most:.2f}: stronger")]
    return _matrix(found.columns, cells, label, legend)


def _names(found: Dependence, i: int, j: int) -> str:
    return f"{clip(found.columns[i], 30)}, {clip(found.columns[j], 30)}"


def _cell(i: int, j: int, kind: str, share: float, title: str) -> Markup:
    return element("rect", element("title", title), class_=kind, x=j, y=i, fill_opacity=_opacity(share))


def _opacity(share: float) -> float:
    """The opacity of a cell: a power below one keeps weak associations visible."""
    return float(share**0.6)


def _matrix(names: Sequence[str], cells: Sequence[str], label: str, legend: list[tuple[str, str]]) -> Markup:
    count, longest = len(names), max(LETTER * width(clip(name, 16)) for name in names)
    size = 26 if count <= 12 else 20 if count <= 22 else 15 if count <= 32 else 13
    small = "small" if size < 15 else None
    # Room for the longest name, horizontal on the left and slanted at the top.
    left, top, side = longest + 20, 0.9 * longest + 20, size * count
    wide, height = max(left + side + 0.5 * longest + 10, 372), top + side + 44
    parts = []
    for place, name in enumerate(names):
        middle, shown = size * (place + 0.5), clip(name, 16)
        slant = f"translate({left + middle + 3:g} {top - 6:g})rotate(-60)"
        parts.append(element("text", shown, class_=small, x=left - 6, y=top + middle + 4, text_anchor="end"))
        parts.append(element("text", shown, class_=small, transform=slant))
    diagonal = element("path", class_="diagonal", d=f"M0 0L{count} {count}")
    scale = f"translate({left:g} {top:g})scale({size})"
    parts.append(element("g", *cells, diagonal, class_="heat", transform=scale))
    parts.append(element("rect", class_="frame", x=left, y=top, width=side, height=side))
    for x, (kind, words) in zip((6, 186), legend, strict=True):
        y = round(top + side + 26)
        parts += [
            element("rect", class_=kind, x=x + 14 * step, y=y, width=14, height=12, fill_opacity=_opacity(step / 4))
            for step in range(5)
        ]
        parts.append(element("rect", class_="frame", x=x, y=y, width=70, height=12))
        parts.append(element("text", words, class_="small", x=x + 76, y=y + 10))
    # The smallest readable size; on a narrower screen the picture scrolls.
    return picture(wide, height, label, *parts, style=f"min-width:{0.78 * wide:.0f}px")
