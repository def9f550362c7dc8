"""The distribution of each unknown column given others, in a form that can be plotted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.base import MISSING
from made.columns.bins import Histogram
from made.queries.conditional import Prediction
from made.tables.dates import DAY
from made.tables.field import Field

QUANTILES = 400  # quantiles of a column of numbers, from which its bins are chosen
NUDGE = 1e-9  # of a step, by which rounding may move an edge


class Edges(NamedTuple):
    """The edges of the bins of a column of numbers, halfway between two values of a grid; empty for other columns."""

    values: tuple[float, ...] = ()
    scale: Literal["linear", "log"] = "linear"


@dataclass(frozen=True, eq=False)
class Conditional:
    """The distribution of one column.

    Numbers are in the units of the table; dates are seconds since 1970-01-01.

    Attributes:
        kind: the kind of the column.
        values: the values of a column that has a list of them, in order; None for "missing". Otherwise empty.
        probabilities: of the values; of a column of numbers, of its bins.
        edges: of the bins of a column of numbers, one more than bins; a bin contains its lower edge.
        scale: ``"log"`` if bins have equal widths in the logarithm.
        below, above: the probability of numbers outside all bins.
        missing: the probability that a number is missing, where that is a value of its own.
        mean, standard_deviation: of a column of numbers; NaN for others.
        quantiles: of a column of numbers, at the levels asked for; NaN for others.
    """

    kind: str
    values: tuple[Any, ...]
    probabilities: NDArray[np.float64]
    edges: NDArray[np.float64]
    scale: Literal["linear", "log"]
    below: float
    above: float
    missing: float
    mean: float
    standard_deviation: float
    quantiles: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Conditionals:
    """The distributions of all columns that are not given.

    Attributes:
        log_prob: log p of what is given; 0 if nothing is.
        columns: the distributions, by the name of the column.
    """

    log_prob: float
    columns: dict[str, Conditional]


def edges_of(field: Field, prediction: Prediction) -> Edges:
    """The bins in which a report would show a distribution, computed from its quantiles."""
    if field.listed:
        return Edges()
    levels = ((np.arange(QUANTILES) + 0.5) / QUANTILES).tolist()
    guide = prediction[:1].quantiles(levels).flatten().double().cpu().numpy()
    unit = DAY if field.temporal and not (guide % DAY).any() else 1
    shares = field.column.bins(guide / unit, np.empty(0))
    if not isinstance(shares, Histogram):
        return Edges()
    edges, (origin, step) = np.array(shares.edges) * unit, field.column.grid
    if step:
        places = (edges - origin) / step
        below = np.floor(places[:-1] + 0.5 + NUDGE) - 0.5  # the value at an edge is in the bin above it,
        above = np.ceil(places[-1:] - 0.5 - NUDGE) + 0.5  # and the last value in the last bin
        edges = origin + step * np.concatenate([below, above])
    else:
        edges[-1] = np.nextafter(edges[-1], math.inf)
    return Edges(tuple(np.unique(edges).tolist()), shares.scale)


def conditional(field: Field, prediction: Prediction, edges: Edges, levels: Sequence[float]) -> Conditional:
    """The summary of the distribution in one row."""
    if field.listed:
        found, nothing = shares(field, prediction, edges)[0], np.full(len(levels), np.nan)
        none: tuple[Any, ...] = (np.empty(0), "linear", 0.0, 0.0, 0.0, math.nan, math.nan, nothing)
        return Conditional(field.kind, field.labels(), found, *none)
    summary, (below, *bins, above) = prediction.summary(levels), shares(field, prediction, edges)[0].tolist()
    return Conditional(
        field.kind,
        (),
        np.array(bins),
        np.array(edges.values),
        edges.scale,
        below,
        above,
        max(0.0, 1.0 - below - sum(bins) - above) if math.inf in field.column.atoms else 0.0,
        float(summary.mean[0]),
        float(summary.standard_deviation[0]),
        summary.quantiles[:, 0].double().cpu().numpy(),
    )


def shares(field: Field, prediction: Prediction, edges: Edges) -> NDArray[np.float64]:
    """The probability of each value; of a column of numbers, below its bins, in each, and above. (rows, cells)"""
    if field.listed:
        found: NDArray[np.float64] = prediction.probabilities(len(field.labels())).double().cpu().numpy()
        return found
    least = min(field.column.support[0], *edges.values)
    return _intervals(prediction, torch.tensor([least, *edges.values, MISSING], dtype=torch.float64))


def _intervals(prediction: Prediction, ends: Tensor) -> NDArray[np.float64]:
    """The probability of each interval between two ends. Shapes: (ends) to (rows, ends - 1)."""
    low, high = (each.to(prediction.units.device).reshape(-1, 1, 1) for each in (ends[:-1], ends[1:]))
    units = prediction.units.double().expand(len(low), *prediction.units.shape)
    log_p = prediction.weights.double() + prediction.kind.log_interval(units, low, high)
    found: NDArray[np.float64] = log_p.logsumexp(dim=1).exp().nan_to_num(0.0).t().cpu().numpy()
    return found
