"""Numbers at which the distribution of another column jumps, such as the limits of a tariff or of an age group.

An encoding between quantiles is too coarse for such a jump. Cuts are found one after another, as in a decision tree:
each separates the rows before it from those after it by the values of another column. A cut is kept if the rows next to
it differ by more than chance: a gradual change takes no cut.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_CUTS = 16  # of a column
MOST_OF_PAIR = 16
LEAST_ROWS = 500  # in which to look for cuts
LEAST_SIDE = 10  # rows on each side of a cut
NEXT_TO = 50  # rows on each side that have to differ; at least the 32nd part of all rows
MOST_VALUES = 32  # of the other column


def find_cuts(numbers: Floats, others: list[NDArray[np.intp]]) -> list[float]:
    """The cuts of a column of numbers, ascending.

    Arguments:
        numbers: the numbers, NaN for a missing one, (rows).
        others: of each other column the values 0, 1, ..., or -1 for a missing one, (rows).
    """
    order = np.argsort(numbers, kind="stable")
    order = order[: np.isfinite(numbers).sum()]
    found: list[tuple[float, float, float]] = []
    for values in others:
        known = order[values[order] >= 0]
        found += jumps(numbers[known], values[known])
    cuts: list[float] = []
    for _, below, above in sorted(found, reverse=True):
        if len(cuts) < MOST_CUTS and not any(below <= cut <= above for cut in cuts):
            cuts.append((below + above) / 2)
    return sorted(cuts)


def jumps(numbers: Floats, values: NDArray[np.intp]) -> list[tuple[float, float, float]]:
    """The cuts of ascending numbers by the values beside them: nats gained near a cut, and the numbers on either side.

    Example:
        >>> numbers = np.arange(1000.0)
        >>> [(below, above) for _, below, above in jumps(numbers, (numbers >= 300).astype(int))]
        [(299.0, 300.0)]
    """
    names, codes = np.unique(values, return_inverse=True)
    if not 2 <= len(names) <= MOST_VALUES or len(codes) < LEAST_ROWS:
        return []
    before = np.zeros((len(codes) + 1, len(names)))  # how often each value stands before a place
    np.cumsum(codes[:, None] == np.arange(len(names)), axis=0, out=before[1:])
    apart = np.concatenate([[False], numbers[1:] > numbers[:-1], [False]])
    near, least = max(NEXT_TO, len(codes) // 32), (len(names) - 1) / 2
    found: list[tuple[float, float, float]] = []
    parts = [(0, len(codes))]
    while parts and len(found) < MOST_OF_PAIR:
        begin, end = parts.pop()
        places = np.arange(begin + LEAST_SIDE, end - LEAST_SIDE + 1)
        places = places[apart[places]]
        if not len(places):
            continue
        gains = _gain(before, begin, places, end)
        place = int(places[gains.argmax()])
        if gains.max() <= least * math.log(end - begin) + math.log(len(codes)):
            continue
        parts += [(begin, place), (place, end)]
        around = max(begin, place - near), min(end, place + near)
        gain = float(_gain(before, around[0], np.array([place]), around[1])[0])
        if gain > least * math.log(around[1] - around[0]) + math.log(len(codes)):
            found.append((gain, float(numbers[place - 1]), float(numbers[place])))
    return found


def _gain(before: Floats, begin: int, places: NDArray[np.intp], end: int) -> Floats:
    """The gain in log-likelihood if values from begin to end have one distribution before a place and another after."""
    left, right = before[places] - before[begin], before[end] - before[places]
    gain: Floats = _log_likelihood(left) + _log_likelihood(right) - _log_likelihood(before[end] - before[begin])
    return gain


def _log_likelihood(counts: Floats) -> Floats:
    total = counts.sum(axis=-1)
    found: Floats = (counts * np.log(np.maximum(counts, 1))).sum(axis=-1) - total * np.log(np.maximum(total, 1))
    return found
