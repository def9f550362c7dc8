"""The order of the rows in an epoch, and evenly spread subsets of long tables."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.streams import ROW_ORDER, SPREAD, philox

SORTED = 2**22  # rows up to which an order is sorted; a longer table is permuted row by row, in parts
ROUNDS = 6
MIX = np.uint64(0x9E3779B97F4A7C15)


def epoch_rows(rows: int) -> int:
    """The number of rows in an epoch: all of them, up to 4,194,304; an epoch of a longer table is a part of a pass."""
    return min(rows, SORTED)


def row_order(rows: int, epoch: int, seed: int) -> Tensor:
    """The rows of an epoch, a function of (seed, epoch), (rows of an epoch).

    Epochs of a long table follow each other in one random permutation of its rows, then in the next.

    Example:
        >>> row_order(5, 0, seed=1).sort().values
        tensor([0, 1, 2, 3, 4])
    """
    if rows <= SORTED:
        bits = philox(seed, ROW_ORDER, epoch).random_raw(rows)
        return torch.from_numpy(np.argsort(bits, kind="stable"))
    places, parts = np.arange(epoch * SORTED, (epoch + 1) * SORTED, dtype=np.uint64), []
    turns = places // np.uint64(rows)
    for turn in np.unique(turns).tolist():
        keys = philox(seed, ROW_ORDER, turn).random_raw(ROUNDS)
        parts.append(_permuted(places[turns == turn] - np.uint64(turn * rows), rows, keys))
    return torch.from_numpy(np.concatenate(parts).astype(np.int64))


def _permuted(places: NDArray[np.uint64], rows: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Places in a pseudo-random permutation of ``rows`` rows: a Feistel network with cycle walking."""
    half = np.uint64(-(-max((rows - 1).bit_length(), 2) // 2))
    low = np.uint64((1 << int(half)) - 1)
    found, outside = places.copy(), np.arange(len(places))
    while len(outside):
        left, right = found[outside] >> half, found[outside] & low
        for key in keys:
            mixed = (right ^ key) * MIX
            mixed = (mixed ^ (mixed >> np.uint64(32))) * MIX
            left, right = right, left ^ ((mixed >> np.uint64(29)) & low)
        found[outside] = (left << half) | right
        outside = outside[found[outside] >= rows]
    return found


def some_rows(rows: int, most: int = 2**20) -> Tensor | slice:
    """All rows, or ``most`` of a long table, one at random in each of as many parts of equal length.

    Example:
        >>> some_rows(1000), len(some_rows(3_000_000))
        (slice(None, None, None), 1048576)
    """
    if rows <= most:
        return slice(None)
    ends = np.arange(most + 1) * rows // most
    share = philox(0, SPREAD).random_raw(most) / 2.0**64
    return torch.from_numpy(ends[:-1] + (share * np.diff(ends)).astype(np.int64))
