"""What a report draws of a column: the shares of values in rows and in samples, as a histogram or as bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]

BINS = 24
MOST_BARS = 12
MOST_ORDERED = 20  # bars of numbers, which stay in order
TAIL = 0.005  # share of values on either side that may be cut off, so that outliers do not flatten the rest


@dataclass(frozen=True)
class Histogram:
    """The shares of numbers in bins.

    Attributes:
        edges: of the bins; one more than bins.
        real, sampled: the share of values in each bin; empty if there are no values.
        scale: ``"linear"``, or ``"log"`` if bins have equal widths in the logarithm.
        below, above: whether the first and the last bin include values beyond their edges.
    """

    edges: tuple[float, ...]
    real: tuple[float, ...]
    sampled: tuple[float, ...]
    scale: Literal["linear", "log"] = "linear"
    below: bool = False
    above: bool = False


@dataclass(frozen=True)
class Bars:
    """The shares of the values of a list.

    Attributes:
        labels: the values; the last label may stand for all others.
        real, sampled: the share of each; empty if there are no values.
        rest: the number of values that the last label stands for; 0 if it is a value itself.
    """

    labels: tuple[str, ...]
    real: tuple[float, ...]
    sampled: tuple[float, ...]
    rest: int = 0


def bars(labels: tuple[Any, ...], real: NDArray[np.intp], sampled: NDArray[np.intp]) -> Bars:
    """The most frequent values; a short list of numbers is shown in full and in order.

    Example:
        >>> bars(("a", "b"), np.array([1, 3]), np.array([0, 0]))
        Bars(labels=('b', 'a'), real=(0.75, 0.25), sampled=(), rest=0)
    """
    ordered = len(labels) <= MOST_ORDERED and not isinstance(labels[0], str)
    order = np.arange(len(labels)) if ordered else np.lexsort((-sampled, -real))
    shown = order if ordered or len(labels) <= MOST_BARS + 1 else order[:MOST_BARS]
    names = [_label(labels[place]) for place in shown]
    columns = []
    for counts in (real, sampled):
        shares = [] if not counts.sum() else (counts[shown] / counts.sum()).tolist()
        if shares and len(shown) < len(labels):
            shares.append(float((counts.sum() - counts[shown].sum()) / counts.sum()))
        columns.append(tuple(shares))
    rest = len(labels) - len(shown)
    return Bars((*names, f"{rest:,} others") if rest else tuple(names), columns[0], columns[1], rest)


def _label(value: Any) -> str:
    if isinstance(value, float) and value == round(value) and abs(value) < 1e16:
        return str(int(value))
    return str(value)


def histogram(real: Numbers, sampled: Numbers) -> Histogram:
    """Numbers in bins chosen by the real ones, on a linear or logarithmic scale; integers are centered in their bins.

    Example:
        >>> histogram(np.array([1.0, 1.0, 2.0, 3.0]), np.array([3.0, 4.0]))
        Histogram(edges=(0.5, 1.5, 2.5, 3.5), real=(0.5, 0.25, 0.25), sampled=(0.0, 0.0, 1.0), scale='linear', \
below=False, above=True)
    """
    guide = real if len(real) else sampled
    if not len(guide):
        return Histogram((), (), ())
    edges = _linear(guide)
    if guide.min() > 0 and edges[-1] / 1e3 > guide.min() and max(_shares(guide, edges)) > 0.5:
        return _counted(real, sampled, _logarithmic(guide), "log")
    return _counted(real, sampled, edges, "linear")


def common(real: Numbers, sampled: Numbers) -> Histogram:
    """Numbers in bins that cover both distributions."""
    real, sampled = real[np.isfinite(real)], sampled[np.isfinite(sampled)]
    if not len(real) or not len(sampled):
        return histogram(real, sampled)
    ends = [end for each in (real, sampled) for end in _ends(each)]
    return _counted(real, sampled, _even(min(ends), max(ends)), "linear")


def _counted(real: Numbers, sampled: Numbers, edges: Numbers, scale: Literal["linear", "log"]) -> Histogram:
    both = np.concatenate([real, sampled])
    return Histogram(
        tuple(edges.tolist()),
        _shares(real, edges),
        _shares(sampled, edges),
        scale,
        below=bool((both < edges[0]).any()),
        above=bool((both > edges[-1]).any()),
    )


def _linear(guide: Numbers) -> Numbers:
    if np.abs(guide).max() < 2.0**52 and (guide == np.rint(guide)).all():
        low, high = (np.rint(end) for end in _ends(guide))
        width = max(1, np.ceil((high - low + 1) / BINS))
        count = int(np.ceil((high - low + 1) / width))
        return np.asarray(low - 0.5 + width * np.arange(count + 1), dtype=np.float64)
    # Scaled into [-1, 1] by a power of two, so that no difference overflows.
    exponent = int(np.frexp(np.abs(guide).max())[1])
    most = 1 - 2.0**-53  # the significand of the largest float
    return np.ldexp(np.clip(_even(*_ends(np.ldexp(guide, -exponent))), -most, most), exponent)


def _logarithmic(guide: Numbers) -> Numbers:
    powers = np.log10(guide)
    low, high = _ends(powers)
    with np.errstate(over="ignore"):
        edges = np.clip(10 ** _even(low, high), guide.min(), guide.max())
    # Logarithms are rounded: make sure that the ends are inside.
    edges[0] = min(edges[0], guide[powers >= low].min())
    edges[-1] = max(edges[-1], guide[powers <= high].max())
    return edges


def _even(low: float, high: float) -> Numbers:
    if low == high:
        room = abs(low) * 1e-3 or 1.0
        return np.array([low - room, high + room])
    return np.linspace(low, high, BINS + 1)


def _ends(guide: Numbers) -> tuple[float, float]:
    """The range of numbers, without far tails."""
    low, high = np.quantile(guide, [TAIL, 1 - TAIL])
    least, most = guide.min(), guide.max()
    if low == high:
        return float(least), float(most)
    room = (high - low) / 4
    return float(least if least >= low - room else low), float(most if most <= high + room else high)


def _shares(values: Numbers, edges: Numbers) -> tuple[float, ...]:
    if not len(values):
        return ()
    place = np.searchsorted(edges, values, side="right") - 1
    counts = np.bincount(place.clip(0, len(edges) - 2), minlength=len(edges) - 1)
    return tuple((counts / len(values)).tolist())
