"""The pictures of a report, as SVG: real shares are filled, sampled ones are a line or a bar of another colour."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from made.pages.html import clip, letters, short, signed, text, ticks
from made.report.column import DAY, Bars, Histogram
from made.report.dependence import Dependence
from made.report.numbers import Training

__all__ = ["STYLE", "bars", "curve", "differences", "heat", "histogram", "moment", "percent"]

STYLE = """
svg .small { font-size: 10px; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .real { fill: var(--mark); }
svg .area { fill: var(--mark); fill-opacity: 0.4; }
svg .sampled { fill: var(--other); }
svg .outline { fill: none; stroke: var(--other); stroke-width: 2; stroke-linejoin: round; }
svg .train { fill: none; stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 4 3; }
svg .valid { fill: none; stroke: var(--mark); stroke-width: 2; stroke-linejoin: round; }
svg .over { fill: transparent; }
svg .over:hover { fill: var(--soft); fill-opacity: 0.25; }
.heat rect { width: 1px; height: 1px; }
.heat rect:hover { stroke: var(--text); stroke-width: 0.08; }
.diagonal { stroke: var(--line); stroke-width: 0.06; }
.frame { fill: none; stroke: var(--line); }
"""
LETTER = 7.6  # pixels, of the widest fonts that a page may be shown in
MOST_POINTS = 400  # of a curve; more cannot be seen


def percent(share: float) -> str:
    """A share, with the decimals that it takes to see it.

    Example:
        >>> percent(0.341), percent(0.0012), percent(1.0), percent(0.0), percent(1e-6)
        ('34.1 %', '0.12 %', '100 %', '0 %', '< 0.01 %')
    """
    if 0 < share < 1e-4:
        return "< 0.01 %"
    return f"{100 * share:.{1 if share >= 0.01 else 2}f}".rstrip("0").rstrip(".") + " %" if share else "0 %"


def moment(seconds: float, span: float) -> str:
    """The nearest day, or, where all are within five days, the nearest minute.

    Example:
        >>> moment(86400.0 * 364.5, 1e9), moment(3661.0, 100.0), moment(1e300, 1e300)
        ('1971-01-01', '01-01 01:01', '?')
    """
    if not abs(seconds) < 1e14:
        return "?"
    if span > 5 * DAY:
        return str(np.datetime64(math.floor(seconds / DAY + 0.5), "D"))
    return str(np.datetime64(math.floor(seconds / 60 + 0.5), "m"))[-11:].replace("T", " ")


def _open(width: float, height: float, label: str, extra: str = "") -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" aria-label="{text(label)}"{extra}>'


def histogram(
    shares: Histogram, label: str, *, dates: bool = False, width: int = 320, height: int = 150, unit: str = ""
) -> str:
    """Bins side by side, each as wide as any other."""
    left, right, top, bottom = 6, width - 6, 18, height - (34 if unit else 20)
    count, most = len(shares.edges) - 1, max([*shares.real, *shares.sampled, 1e-12])
    lines = [_open(width, height, label)]

    def across(place: float) -> float:
        return left + place / count * (right - left)

    def steps(heights: Sequence[float]) -> str:
        path = "".join(
            f"V{bottom - share / most * (bottom - top):.1f}H{across(place + 1):.1f}"
            for place, share in enumerate(heights)
        )
        return f"M{left} {bottom}{path}V{bottom}"

    if shares.real:
        lines.append(f'<path class="area" d="{steps(shares.real)}Z"/>')
    if shares.sampled:
        lines.append(f'<path class="outline" d="{steps(shares.sampled)}"/>')
    lines.append(f'<line class="axis" x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}"/>')
    lines.append(f'<text class="soft small" x="{left}" y="10">highest bin: {percent(most)}</text>')
    for place, mark in _marks(shares, dates):
        at = across(place)
        anchor = "start" if at < left + 24 else "end" if at > right - 24 else "middle"
        lines.append(f'<line class="axis" x1="{at:.1f}" y1="{bottom}" x2="{at:.1f}" y2="{bottom + 4}"/>')
        lines.append(f'<text class="soft" x="{at:.1f}" y="{bottom + 16}" text-anchor="{anchor}">{mark}</text>')
    if unit:
        lines.append(f'<text class="soft" x="{width / 2:g}" y="{height - 3}" text-anchor="middle">{text(unit)}</text>')
    for place in range(count):
        said = _bin(shares, place, dates)
        begin, wide = across(place), across(place + 1) - across(place)
        lines.append(
            f'<rect class="over" x="{begin:.1f}" y="{top}" width="{wide:.1f}" height="{bottom - top}">'
            f"<title>{said}</title></rect>"
        )
    return "\n".join([*lines, "</svg>"])


def _shown(dates: bool, edges: Sequence[float]) -> Callable[[float], str]:
    return (lambda value: moment(value, edges[-1] - edges[0])) if dates else short


def _bin(shares: Histogram, place: int, dates: bool) -> str:
    """What a bin holds, in words."""
    shown = _shown(dates, shares.edges)
    low, high = (shown(edge) for edge in shares.edges[place : place + 2])
    first, last = place == 0 and shares.below, place == len(shares.edges) - 2 and shares.above
    words = "all" if first and last else f"up to {high}" if first else f"from {low}" if last else f"{low} to {high}"
    parts = [
        f"{name} {percent(each[place])}" for name, each in (("real", shares.real), ("sampled", shares.sampled)) if each
    ]
    return f"{words}: {', '.join(parts)}"


def _marks(shares: Histogram, dates: bool) -> list[tuple[float, str]]:
    """Where marks are on the axis, in bins, and what they say."""
    edges, count = shares.edges, len(shares.edges) - 1
    shown = _shown(dates, edges)
    if dates or count < 2:
        places = [0.0, count / 2, float(count)] if count > 1 else [0.5]
        values = [float(np.interp(place, range(count + 1), edges)) for place in places]
        return [(place, shown(value)) for place, value in zip(places, values, strict=True)]
    if shares.scale == "log":
        low, high = math.log10(edges[0]), math.log10(edges[-1])
        powers = [power for power in ticks(low, high, 5) if power == round(power)]
        return [((power - low) / (high - low) * count, short(10.0**power)) for power in powers]
    low, high = edges[0], edges[-1]
    # Halves, because the whole may be too large for a float.
    return [((tick / 2 - low / 2) / (high / 2 - low / 2) * count, shown(tick)) for tick in ticks(low, high, 5)]


def bars(shares: Bars, label: str) -> str:
    """A real and a sampled bar for each value, below each other."""
    most = max([*shares.real, *shares.sampled, 1e-12])
    line, begin = 26, max(LETTER * letters(clip(name, 18)) for name in shares.labels) + 18
    room = 320 - begin - 58  # beside which there is a share, in small letters
    lines = [_open(320, line * len(shares.labels) + 2, label)]
    for place, name in enumerate(shares.labels):
        y = line * place + 2
        lines.append(f"<g><title>{text(name, 200)}</title>")
        lines.append(f'<text x="{begin - 8:g}" y="{y + 15}" text-anchor="end">{text(name, 18)}</text>')
        for kind, each, down in (("real", shares.real, 0), ("sampled", shares.sampled, 11)):
            if each:
                wide = each[place] / most * room
                lines.append(f'<rect class="{kind}" x="{begin:g}" y="{y + down}" width="{wide:.1f}" height="9"/>')
                said = percent(each[place])
                lines.append(f'<text class="soft small" x="{begin + wide + 5:.1f}" y="{y + down + 8}">{said}</text>')
        lines.append("</g>")
    lines.append(f'<line class="axis" x1="{begin:g}" y1="0" x2="{begin:g}" y2="{line * len(shares.labels)}"/>')
    return "\n".join([*lines, "</svg>"])


def curve(training: Training, label: str) -> str:
    """The NLL of training and validation rows, epoch by epoch, and the epoch that was kept."""
    width, height, left, right, top, bottom = 480, 260, 52, 470, 30, 218
    epochs = list(training.epochs[:: max(1, len(training.epochs) // MOST_POINTS)])
    # The first epochs are often far above all others, which are what one looks for.
    rest = epochs[len(epochs) // 10 :] if len(epochs) > 10 else epochs
    seen = [nll for epoch in rest for nll in epoch[1:] if math.isfinite(nll)] or [0.0]
    margin = 0.06 * (max(seen) - min(seen)) or 0.5
    low, high = min(seen) - margin, max(seen) + margin
    first, last = epochs[0][0], training.epochs[-1][0]

    def across(epoch: float) -> float:
        return left + (epoch - first) / (last - first) * (right - left) if last > first else (left + right) / 2

    def up(nll: float) -> float:
        return bottom - (nll - low) / (high - low) * (bottom - top)

    lines = [_open(width, height, label)]
    lines.append(
        f'<clipPath id="plot"><rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/></clipPath>'
    )
    for tick in ticks(low, high, 6):
        lines.append(f'<line class="grid" x1="{left}" y1="{up(tick):.1f}" x2="{right}" y2="{up(tick):.1f}"/>')
        lines.append(f'<text class="soft" x="{left - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for tick in (each for each in ticks(first, last, 6) if each == round(each)):
        lines.append(
            f'<text class="soft" x="{across(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
        )
    lines.append(f'<text class="soft" x="{(left + right) / 2}" y="{height - 6}" text-anchor="middle">epoch</text>')
    for name, which in (("train", 1), ("valid", 2)):
        points = [(across(epoch[0]), up(epoch[which])) for epoch in epochs if math.isfinite(epoch[which])]
        if len(points) > 1:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            lines.append(f'<path class="{name}" clip-path="url(#plot)" d="M{path}"/>')
        lines += [f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points if len(points) == 1]
    kept = [epoch for epoch in training.epochs if epoch[0] == training.best_epoch and math.isfinite(epoch[2])]
    for number, _, nll in kept:
        lines.append(f'<circle class="real" cx="{across(number):.1f}" cy="{up(nll):.1f}" r="5"/>')
    lines.append('<path class="train" d="M52 12h26"/><text x="84" y="16">training</text>')
    if any(math.isfinite(epoch[2]) for epoch in epochs):
        lines.append('<path class="valid" d="M160 12h26"/><text x="192" y="16">validation</text>')
    if kept:
        lines.append('<circle class="real" cx="286" cy="12" r="5"/>')
        lines.append(f'<text x="298" y="16">kept: epoch {kept[0][0]}, {short(kept[0][2])}</text>')
    return "\n".join([*lines, "</svg>"])


def heat(found: Dependence, label: str) -> str:
    """All pairs twice: below the diagonal as they are in the rows, above it as they are in samples."""
    count = len(found.columns)
    off_diagonal = (
        each[i][j] for each in (found.real, found.sampled) for i in range(count) for j in range(count) if i != j
    )
    # Or what is but chance would look as if it were much.
    most = max([value for value in off_diagonal if not math.isnan(value)] + [0.3])
    cells = []
    for i in range(count):
        for j in range(count):
            value, kind = (found.real[i][j], "real") if j < i else (found.sampled[i][j], "sampled")
            if i == j or math.isnan(value):
                continue
            names = f"{text(found.columns[max(i, j)], 30)}, {text(found.columns[min(i, j)], 30)}"
            cells.append(
                f'<rect class="{kind}" x="{j}" y="{i}" fill-opacity="{_depth(value / most)}">'
                f"<title>{names}: {value:.2f} {kind}</title></rect>"
            )
    return _matrix(
        found.columns, cells, label, [("real", f"0 to {most:.2f} real"), ("sampled", f"0 to {most:.2f} sampled")]
    )


def differences(found: Dependence, label: str) -> str:
    """Each pair once: how much more, or less, dependent it is in samples."""
    gaps = {
        (i, j): found.sampled[i][j] - found.real[i][j]
        for i in range(len(found.columns))
        for j in range(i)
        if not math.isnan(found.sampled[i][j] - found.real[i][j])
    }
    most = max([abs(gap) for gap in gaps.values()] + [0.3])
    cells = [
        f'<rect class="{"sampled" if gap > 0 else "real"}" x="{j}" y="{i}" fill-opacity="{_depth(abs(gap) / most)}">'
        f"<title>{text(found.columns[i], 30)}, {text(found.columns[j], 30)}: "
        f"{signed(f'{gap:+.2f}')} in samples</title></rect>"
        for (i, j), gap in gaps.items()
    ]
    legend = [("real", signed(f"0 to -{most:.2f}: less")), ("sampled", f"0 to +{most:.2f}: more")]
    return _matrix(found.columns, cells, label, legend)


def _depth(share: float) -> str:
    """How dark a cell is: most pairs are but little dependent, and should be told from none all the same."""
    return f"{share**0.6:.2f}"


def _matrix(names: Sequence[str], cells: Sequence[str], label: str, legend: list[tuple[str, str]]) -> str:
    count, longest = len(names), max(LETTER * letters(clip(name, 16)) for name in names)
    size = 26 if count <= 12 else 20 if count <= 22 else 15 if count <= 32 else 13
    small = ' class="small"' if size < 15 else ""
    # Room for the longest name, beside the map as it is, above it at a slope.
    left, top, side = longest + 20, 0.9 * longest + 20, size * count
    wide, height = max(left + side + 0.5 * longest + 10, 372), top + side + 44
    # As small as it still can be read; below that, it is moved in its frame.
    lines = [_open(wide, height, label, f' style="min-width:{0.78 * wide:.0f}px"')]
    for place, name in enumerate(names):
        middle = size * (place + 0.5)
        shown, y = text(name, 16), top + middle + 4
        lines.append(f'<text{small} x="{left - 6:g}" y="{y:g}" text-anchor="end">{shown}</text>')
        lines.append(f'<text{small} transform="translate({left + middle + 3:g} {top - 6:g})rotate(-60)">{shown}</text>')
    lines.append(f'<g class="heat" transform="translate({left:g} {top:g})scale({size})">')
    lines += [*cells, f'<path class="diagonal" d="M0 0L{count} {count}"/>', "</g>"]
    lines.append(f'<rect class="frame" x="{left:g}" y="{top:g}" width="{side}" height="{side}"/>')
    for place, (kind, words) in enumerate(legend):
        x, y = 6 + 180 * place, round(top + side + 26)
        for step in range(5):
            box = f'x="{x + 14 * step}" y="{y}" width="14" height="12"'
            lines.append(f'<rect class="{kind}" {box} fill-opacity="{_depth(step / 4)}"/>')
        lines.append(f'<rect class="frame" x="{x}" y="{y}" width="70" height="12"/>')
        lines.append(f'<text class="small" x="{x + 76}" y="{y + 10}">{words}</text>')
    return "\n".join([*lines, "</svg>"])
