r"""Find mutually exclusive binary columns, and code each group as one categorical column.

A table with one-hot coded categories is harder to learn than necessary: the network has to find out which columns
exclude each other, and an any-order model in every ordering. Such groups are found in the training rows and coded as
one column each, with the values 0 (none of them) to k.

The likelihood is still defined for *all* binary rows. Those with two ones in a group, which have no code, share a small
probability :math:`\delta = 1 / (n + 2)`, the rule of succession for an event that n training rows never had:

.. math:: p(x) = (1 - \delta)\, p(\text{codes}) \quad\text{or}\quad \delta / (2^D - \prod_g (k_g + 1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.errors import DataError

EXPECTED = 10.0  # the least expected number of pairs of ones of a group, if its columns were independent


@dataclass(frozen=True)
class Exclusive:
    """Groups of mutually exclusive binary columns.

    Attributes:
        starts: the first column of each group, and the number of columns at the end.
        rows: how many rows the groups were found in.

    Example:
        >>> rows = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]] * 50)
        >>> groups = Exclusive.find(rows)
        >>> groups.sizes
        (3, 1)
        >>> codes, allowed = groups.encode([[0, 1, 0, 1], [1, 1, 0, 0]])
        >>> codes[0], allowed
        (array([2., 1.]), array([ True, False]))
        >>> groups.decode(codes[:1])
        array([[0., 1., 0., 1.]])
    """

    starts: tuple[int, ...]
    rows: int

    @classmethod
    def find(cls, rows: ArrayLike) -> Exclusive:
        """The groups of a table of zeros and ones: neighbours that are never 1 together, more often than by chance."""
        table = _binary(rows).astype(np.float32)
        return cls.of_counts(table.T @ table, len(table))

    @classmethod
    def of_counts(cls, together: NDArray[Any], rows: int) -> Exclusive:
        """The groups, from how many of the rows have ones in both of two columns, (columns, columns)."""
        width, starts = len(together), [0]
        for d in range(1, width):
            if together[d, starts[-1] : d].any():
                starts.append(d)
        starts.append(width)
        mean = np.diagonal(together).astype(np.float64) / rows
        believed: list[int] = []
        for start, end in pairwise(starts):
            some = mean[start:end]
            pairs = rows * (some.sum() ** 2 - (some**2).sum()) / 2
            believed += [start] if pairs >= EXPECTED else range(start, end)
        return cls((*believed, width), rows)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of columns in each group."""
        return tuple(end - start for start, end in pairwise(self.starts))

    @property
    def kinds(self) -> list[Any]:
        """The kinds of the coded columns, for the parameter ``columns`` of :class:`made.MADE`."""
        return ["binary" if size == 1 else list(range(size + 1)) for size in self.sizes]

    def encode(self, rows: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Rows to codes, and which rows have codes. Shapes: (rows, columns) to (rows, groups) and (rows)."""
        table = _binary(rows)
        if table.shape[1] != self.starts[-1]:
            raise DataError(f"'rows' should have {self.starts[-1]} columns, not {table.shape[1]}.")
        place = np.concatenate([np.arange(1, size + 1) for size in self.sizes])
        codes = np.add.reduceat(table * place, self.starts[:-1], axis=1)
        ones = np.add.reduceat(table.astype(np.int64), self.starts[:-1], axis=1)
        allowed: NDArray[np.bool_] = ones.max(axis=1) <= 1
        codes[~allowed] = 0
        return codes.astype(np.float64), allowed

    def decode(self, codes: ArrayLike) -> NDArray[np.float64]:
        """The inverse of :meth:`encode`. Shapes: (rows, groups) to (rows, columns)."""
        groups = np.repeat(np.arange(len(self.sizes)), self.sizes)
        place = np.concatenate([np.arange(1, size + 1) for size in self.sizes])
        rows: NDArray[np.float64] = (np.asarray(codes)[:, groups] == place).astype(np.float64)
        return rows

    def log_prob(self, log_codes: ArrayLike, allowed: ArrayLike) -> NDArray[np.float64]:
        """log p of the rows, from log p of their codes. Shapes: (rows), (rows) to (rows)."""
        said, width = sum(math.log(size + 1) for size in self.sizes), self.starts[-1] * math.log(2)
        if len(self.sizes) == self.starts[-1]:  # no groups: codes are the rows
            return np.asarray(log_codes, dtype=np.float64)
        other = math.log(1 / (self.rows + 2)) - (width + math.log1p(-math.exp(said - width)))
        return np.where(allowed, np.asarray(log_codes, dtype=np.float64) + math.log1p(-1 / (self.rows + 2)), other)


def neighbour_rank(together: NDArray[Any], rows: int, sizes: Sequence[int]) -> float:
    """How closely neighbours are associated: 1 if each is closest to the next one, 0.5 if their order tells nothing.

    The association of two columns is their squared correlation, that of two groups the sum of these, divided by the
    size of the smaller group. Of each group, the association with the next one is ranked among those with all others.

    Arguments:
        together: how many of the rows have ones in both of two columns, (columns, columns).
        rows: the number of rows.
        sizes: the number of columns in each group.

    Example:
        >>> steps = np.arange(100)[:, None] > np.arange(10, 100, 10)  # thermometers
        >>> round(neighbour_rank(steps.T.astype(float) @ steps, 100, [1] * 9), 2)
        0.93
    """
    mean = np.diagonal(together) / rows
    deviation = np.sqrt(np.maximum(mean * (1 - mean), 1e-300))
    squared = ((together / rows - np.outer(mean, mean)) / np.outer(deviation, deviation)) ** 2
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    groups = np.add.reduceat(np.add.reduceat(squared, starts, axis=0), starts, axis=1)
    groups /= np.minimum.outer(sizes, sizes)
    np.fill_diagonal(groups, np.nan)
    near = np.diagonal(groups, offset=1)[:, None]
    below = (groups[:-1] < near).sum(axis=1) + ((groups[:-1] == near).sum(axis=1) - 1) / 2
    return float(below.mean() / max(len(sizes) - 2, 1))


def _binary(rows: ArrayLike) -> NDArray[Any]:
    table = np.asarray(rows)
    if table.ndim != 2 or 0 in table.shape or not ((table == 0) | (table == 1)).all():
        raise DataError("'rows' should be a table of zeros and ones, without missing values.")
    return table
