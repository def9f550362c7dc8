"""The distribution of each unknown column given others, with what is needed to draw it."""

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

__all__ = ["Conditional", "Conditionals", "Edges", "conditional", "edges_of"]

LEVELS = 400  # quantiles of a column of numbers, from which its bins are chosen
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
    """Bins that show a distribution: those of a report, from its quantiles."""
    if field.listed:
        return Edges()
    levels = ((np.arange(LEVELS) + 0.5) / LEVELS).tolist()
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
    """What there is to know of a distribution, of one row."""
    kind, nothing = field.column, np.full(len(levels), np.nan)
    if field.listed:
        labels = field.labels()
        shares = prediction.probabilities(len(labels))[0].double().cpu().numpy()
        about: tuple[Any, ...] = (labels, shares, np.empty(0), "linear", 0.0, 0.0, 0.0, math.nan, math.nan, nothing)
        return Conditional(field.kind, *about)
    summary = prediction.summary(levels)
    ends = torch.tensor([min(kind.support[0], *edges.values), *edges.values, MISSING], dtype=torch.float64)
    shares = _intervals(prediction, ends)
    return Conditional(
        field.kind,
        (),
        shares[1:-1],
        np.array(edges.values),
        edges.scale,
        float(shares[0]),
        float(shares[-1]),
        max(0.0, 1.0 - float(shares.sum())) if math.inf in kind.atoms else 0.0,
        float(summary.mean[0]),
        float(summary.standard_deviation[0]),
        summary.quantiles[:, 0].double().cpu().numpy(),
    )


def _intervals(prediction: Prediction, ends: Tensor) -> NDArray[np.float64]:
    """The probability of each interval between two ends. Shapes: (ends) to (ends - 1)."""
    low, high = (each.to(prediction.units.device).reshape(-1, 1, 1) for each in (ends[:-1], ends[1:]))
    units = prediction.units.double().expand(len(low), *prediction.units.shape)
    log_p = prediction.weights.double() + prediction.kind.log_interval(units, low, high)
    shares: NDArray[np.float64] = log_p.logsumexp(dim=1)[:, 0].exp().nan_to_num(0.0).cpu().numpy()
    return shares
