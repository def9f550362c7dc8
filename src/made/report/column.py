"""One column in rows and in samples: the shares of its values in the same bins, and the distance between the two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from made.columns.base import Column
from made.columns.bins import Bars, Histogram, Numbers
from made.tables.dates import DAY

DRAWS = 200  # simulated distances between two samples of the same distribution


@dataclass(frozen=True)
class Spike:
    """A frequent number, often 0, and its share."""

    value: float
    real: float
    sampled: float


@dataclass(frozen=True)
class ColumnComparison:
    """A column in rows and in samples.

    Attributes:
        dates: whether its numbers are seconds since 1970.
        missing: the share of missing values in the rows.
        distinct: the number of distinct values in the rows.
        measure: the measure of ``distance``.
        distance: between rows and samples, from 0 to 1; None if no value is observed.
        chance: the 95 % quantile of the distance between two samples of the same distribution.
        spike: the most frequent number of a numeric column, if its share is at least a tenth.
    """

    name: str
    kind: str
    dates: bool
    missing: float
    distinct: int
    measure: Literal["total variation", "Kolmogorov-Smirnov"]
    distance: float | None
    chance: float | None
    shares: Histogram | Bars
    spike: Spike | None = None

    @property
    def differs(self) -> bool:
        """Whether the distance exceeds what chance explains."""
        return self.distance is not None and self.chance is not None and self.distance > self.chance


def compare(
    name: str,
    kind: Column,
    real: Numbers,
    sampled: Numbers,
    *,
    labels: tuple[Any, ...] | None = None,
    dates: bool = False,
    random: np.random.Generator,
) -> ColumnComparison:
    """Compare the values of a column in rows and in samples: numbers, or codes of ``labels``; NaN if missing."""
    missing = float(np.isnan(real).mean()) if len(real) else 0.0
    real, sampled = real[~np.isnan(real)], sampled[~np.isnan(sampled)]
    known, about = len(real) > 0 and len(sampled) > 0, (name, kind.kind, dates, missing, len(np.unique(real)))
    distance = chance = None
    if labels is not None:
        rows, draws = (np.bincount(each.astype(np.intp), minlength=len(labels)) for each in (real, sampled))
        if known:
            distance, chance = total_variation(rows, draws), _chance(rows, draws, random)
        return ColumnComparison(*about, "total variation", distance, chance, kind.bins(real, sampled, labels))
    if known:
        distance = kolmogorov_smirnov(real, sampled)
        chance = min(1.0, 1.358 * float(np.sqrt(1 / len(real) + 1 / len(sampled))))
    shares = kind.bins(real, sampled)
    if dates and isinstance(shares, Histogram) and not (real % DAY).any():
        days = kind.bins(real / DAY, sampled / DAY)
        if isinstance(days, Histogram):
            shares = replace(days, edges=tuple(edge * DAY for edge in days.edges))
    spike = _spike(real, sampled) if known else None
    return ColumnComparison(*about, "Kolmogorov-Smirnov", distance, chance, shares, spike)


def _spike(real: Numbers, sampled: Numbers) -> Spike | None:
    values, counts = np.unique(real, return_counts=True)
    value, share = float(values[counts.argmax()]), float(counts.max() / len(real))
    if len(values) == 1 or share < max(0.1, 3 / len(values)):
        return None
    return Spike(value, share, float((sampled == value).mean()))


def kolmogorov_smirnov(real: Numbers, sampled: Numbers) -> float:
    """The Kolmogorov-Smirnov statistic: the largest difference between the empirical distribution functions.

    Example:
        >>> kolmogorov_smirnov(np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0, 5.0, 6.0]))
        0.5
    """
    with np.errstate(divide="ignore"):  # in the p-value of one row and one sample
        return float(stats.ks_2samp(real, sampled, method="asymp").statistic)


def total_variation(real: NDArray[np.intp], sampled: NDArray[np.intp]) -> float:
    """The total variation distance between two distributions, given as counts of values.

    Example:
        >>> total_variation(np.array([3, 1]), np.array([2, 2]))
        0.25
    """
    return float(np.abs(real / real.sum() - sampled / sampled.sum()).sum() / 2)


def _chance(real: NDArray[np.intp], sampled: NDArray[np.intp], random: np.random.Generator) -> float:
    """The 95 % quantile of the total variation between two samples of the pooled distribution, by simulation."""
    together = real + sampled
    shares = together[together > 0] / together.sum()
    pairs = [random.multinomial(each.sum(), shares, size=DRAWS) / each.sum() for each in (real, sampled)]
    return float(np.quantile(np.abs(pairs[0] - pairs[1]).sum(axis=1) / 2, 0.95))
