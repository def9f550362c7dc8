"""The pairwise association between the columns of a table, of any kinds.

Numbers are put into bins of equal frequency, so that two columns form a contingency table. Its association is
Cramér's V with Bergsma's bias correction: 0 for independent columns, 1 if each determines the other. Rows in which
either value is missing are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from made.columns.bins import Numbers

BINS = 8
MOST_VALUES = 12
MOST_SHOWN = 40
MOST_COLUMNS = 400  # whose pairs are measured
ROWS_AT_A_TIME = 2000
RESAMPLED = 30  # times, for a standard error
ERRORS = 5.0  # standard errors, that chance explains
MATERIAL = 0.1  # smaller differences trigger no warning


@dataclass(frozen=True)
class ColumnPair:
    """Two columns, and the association between them in the rows and in samples."""

    first: str
    second: str
    real: float
    sampled: float
    error: float | None = None  # standard error of the difference, if it was computed


@dataclass(frozen=True)
class Dependence:
    """The association between all pairs of columns.

    Attributes:
        columns: names of the columns shown; of many columns, those with the strongest associations.
        real, sampled: the associations between them; NaN where undefined. Shape: (columns, columns).
        measured: number of columns whose pairs were measured.
        pairs: number of pairs with an association in rows and samples.
        difference: mean absolute difference between samples and rows over these pairs.
        strongest: the pairs with the strongest association in the rows.
        farthest: the pairs with the largest difference between samples and rows.
    """

    columns: tuple[str, ...]
    real: tuple[tuple[float, ...], ...]
    sampled: tuple[tuple[float, ...], ...]
    measured: int
    pairs: int
    difference: float
    strongest: tuple[ColumnPair, ...]
    farthest: tuple[ColumnPair, ...]

    def sentence(self) -> str:
        """A conclusion in words; requires at least one pair."""
        far = self.farthest[0]
        over = f"on average over {self.pairs:,} pairs, most for" if self.pairs > 1 else "for"
        pair = f"{far.first} and {far.second}: {far.real:.2f} in the rows, {far.sampled:.2f} in samples"
        return f"The association between two columns is off by {self.difference:.3f} {over} {pair}."

    def warning(self, remedy: str) -> str | None:
        """A warning with its remedy, if an association differs by more than chance and by more than 0.1."""
        gaps = [(abs(each.real - each.sampled), each) for each in self.farthest]
        wrong = [each for gap, each in gaps if gap > MATERIAL and each.error is not None and gap > ERRORS * each.error]
        if not wrong:
            return None
        shown = "; ".join(
            f"{each.first} and {each.second}, {each.real:.2f} in the rows and {each.sampled:.2f} in samples"
            for each in wrong[:3]
        )
        return f"Samples do not have the association between some columns: {shown}. Remedy: {remedy}."


def compare(names: tuple[str, ...], real: NDArray[np.intp], sampled: NDArray[np.intp], most: int = 8) -> Dependence:
    """Compare rows and samples, both coded by :func:`binned`. Shapes: (rows, columns) and (samples, columns)."""
    chosen = np.arange(len(names))
    if len(names) > MOST_COLUMNS:
        spread = np.array([_entropy(column) for column in real.T])
        chosen = np.sort(np.argsort(-spread, kind="stable")[:MOST_COLUMNS])
    matrices = [cramers_v(each[:, chosen]) for each in (real, sampled)]
    first, second = np.triu_indices(len(chosen), 1)
    values = [each[first, second] for each in matrices]
    known = ~np.isnan(values[0]) & ~np.isnan(values[1])
    gaps = np.where(known, np.abs(values[0] - values[1]), -1.0)

    def pairs(weight: Numbers, *, with_error: bool = False) -> tuple[ColumnPair, ...]:
        found = []
        for p in np.argsort(-weight, kind="stable")[:most].tolist():
            two = [int(chosen[first[p]]), int(chosen[second[p]])]
            error = _error(real[:, two], sampled[:, two]) if with_error and known[p] else None
            if known[p]:
                found.append(ColumnPair(names[two[0]], names[two[1]], float(values[0][p]), float(values[1][p]), error))
        return tuple(found)

    strength = np.nan_to_num(np.maximum(*matrices), nan=-1.0)
    np.fill_diagonal(strength, -1.0)
    shown = np.sort(np.argsort(-strength.max(axis=1, initial=-1.0), kind="stable")[:MOST_SHOWN])
    real_shown, sampled_shown = (tuple(map(tuple, each[np.ix_(shown, shown)].tolist())) for each in matrices)
    return Dependence(
        columns=tuple(names[chosen[place]] for place in shown),
        real=real_shown,
        sampled=sampled_shown,
        measured=len(chosen),
        pairs=int(known.sum()),
        difference=float(gaps[known].mean()) if known.any() else float("nan"),
        strongest=pairs(np.where(known, values[0], -1.0)),
        farthest=pairs(gaps, with_error=True),
    )


def _error(*tables: NDArray[np.intp]) -> float:
    """The standard error of the difference between the associations of two columns in two tables, by resampling."""
    random, variance = np.random.default_rng(0), 0.0
    for codes in tables:
        draws = [cramers_v(codes[random.integers(len(codes), size=len(codes))])[0, 1] for _ in range(RESAMPLED)]
        known = [value for value in draws if not np.isnan(value)]
        variance += float(np.var(known, ddof=1)) if len(known) > 1 else float("inf")
    return float(np.sqrt(variance))


def binned(real: Numbers, sampled: Numbers, *, discrete: bool) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The values of a column in bins, the same for rows and samples; -1 for a missing value.

    Example:
        >>> binned(np.array([5.0, 1.0, np.nan, 1.0]), np.array([0.0, 3.0, 9.0]), discrete=False)
        (array([ 2,  0, -1,  0]), array([0, 1, 2]))
    """
    seen = real[~np.isnan(real)] if not np.isnan(real).all() else sampled[~np.isnan(sampled)]
    if discrete:
        codes, counts = np.unique(seen, return_counts=True)
        frequent = np.sort(codes[np.argsort(-counts, kind="stable")[: MOST_VALUES - 1]])
    edges = _edges(seen) if len(seen) and not discrete else seen

    def places(values: Numbers) -> NDArray[np.intp]:
        if discrete:
            place = np.where(np.isin(values, frequent), np.searchsorted(frequent, values), len(frequent))
        else:
            place = np.searchsorted(edges, values, side="right")
        return np.where(np.isnan(values), -1, place).astype(np.intp)

    return places(real), places(sampled)


def _edges(seen: Numbers) -> Numbers:
    """The inner edges of bins of equal frequency; a number more frequent than a bin, often 0, gets its own."""
    values, counts = np.unique(seen, return_counts=True)
    alone = values[counts * BINS > len(seen)]
    rest = seen[~np.isin(seen, alone)]
    bins = max(BINS - len(alone), 2)
    # An edge is an observed number: the middle of two may overflow.
    shares = np.quantile(rest, np.arange(1, bins) / bins, method="higher") if len(rest) else rest
    with np.errstate(over="ignore"):  # infinity, after the largest float, is dropped below
        edges = np.unique(np.concatenate([shares, alone, np.nextafter(alone, np.inf)]))
    return np.asarray(edges[(edges > values[0]) & (edges <= values[-1])], dtype=np.float64)


def cramers_v(codes: NDArray[np.intp]) -> Numbers:
    """Bias-corrected Cramér's V of all pairs of columns; NaN if either is constant. Shape: (columns, columns).

    Example:
        >>> rows = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]] * 25)
        >>> cramers_v(rows).round(6).tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows, columns = codes.shape
    values = int(codes.max(initial=0)) + 1
    counts = np.zeros((columns * values, columns * values), dtype=np.float32)
    for begin in range(0, rows, ROWS_AT_A_TIME):
        # All contingency tables in one product of one-hot codes.
        ones = codes[begin : begin + ROWS_AT_A_TIME, :, None] == np.arange(values)
        flat = ones.reshape(len(ones), -1).astype(np.float32)
        counts += flat.T @ flat
    result = np.empty((columns, columns))
    for d in range(columns):
        block = counts[d * values : (d + 1) * values].astype(np.float64).reshape(values, columns, values)
        result[d] = _cramers_v(block.transpose(1, 0, 2))
    return result


def _cramers_v(tables: Numbers) -> Numbers:
    """Cramér's V of contingency tables. Shapes: (tables, values, values) to (tables,)."""
    total = tables.sum(axis=(1, 2))
    across, down = tables.sum(axis=2), tables.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = across[:, :, None] * down[:, None, :] / total[:, None, None]
        parts = np.where(expected > 0, (tables - expected) ** 2 / expected, 0.0)
        heights, widths = (across > 0).sum(axis=1), (down > 0).sum(axis=1)
        share = parts.sum(axis=(1, 2)) / total - (heights - 1) * (widths - 1) / (total - 1)
        smaller = np.minimum(*(size - (size - 1) ** 2 / (total - 1) for size in (heights, widths))) - 1
        answer = np.sqrt(np.maximum(share, 0) / smaller)
    defined = (heights > 1) & (widths > 1) & (total > 1) & (smaller > 0)
    return np.where(defined, np.minimum(answer, 1.0), np.nan)


def _entropy(codes: NDArray[np.intp]) -> float:
    counts = np.bincount(codes[codes >= 0], minlength=1)
    return float(stats.entropy(counts)) if counts.any() else 0.0
