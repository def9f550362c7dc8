"""Missing values of coded rows, filled with draws, modes or means; and the uncertainty of each filled entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from made.queries.batches import in_blocks
from made.queries.conditional import Prediction, predictions
from made.queries.ensemble import Ensemble
from made.queries.random import uniform
from made.queries.sampling import check_temperature, sample

INTERVAL = (0.05, 0.95)


@dataclass(frozen=True)
class Uncertainty:
    """The uncertainty of each filled entry under p(x_d | observed). All arrays are (rows, columns).

    NaN for entries that were not filled, and for quantities that the column does not have.

    Attributes:
        probability: of the value that was filled in, for a column with a list of values; (draws, rows, columns) if
            there were several draws.
        entropy: of such a column, in nats: 0 if the value is certain, log k if all k are equally likely.
        standard_deviation: of a column of numbers.
        low, high: the 5 % and 95 % quantiles of a column of numbers, as codes: a number stands for itself.
    """

    probability: NDArray[np.float64]
    entropy: NDArray[np.float64]
    standard_deviation: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@in_blocks
def draw(
    ensemble: Ensemble,
    known: NDArray[np.float64],
    generator: torch.Generator,
    temperature: float = 1.0,
    wanted: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Rows with every NaN replaced by a draw, in the columns that are ``wanted``. Shapes: (rows, columns) to the same.

    A model of fixed orderings draws all columns.
    """
    check_temperature(temperature)  # even if there is nothing to draw
    drawn = known.copy()
    _draw_missing(ensemble, drawn, generator, temperature, wanted=wanted)
    return drawn


def _draw_missing(
    ensemble: Ensemble,
    rows: NDArray[np.float64],
    generator: torch.Generator,
    temperature: float = 1.0,
    *,
    shared_ordering: bool = False,
    wanted: NDArray[np.bool_] | None = None,
) -> None:
    """Replace the NaN of rows by draws, in place.

    ``shared_ordering`` is faster where rows lack many different columns: all rows share the orderings of the masks, but
    for those that lack a single value.
    """
    missing = np.isnan(rows) if wanted is None else np.isnan(rows) & wanted
    count = missing.sum(axis=1)
    apart = shared_ordering and ensemble.any_order and not ensemble.one_by_one
    if apart:
        _draw_single(ensemble, rows, np.flatnonzero(count == 1), generator, missing)
    which = np.flatnonzero(count > apart)
    if len(which):
        values = sample(
            ensemble,
            known=rows[which],
            temperature=temperature,
            asked_last=not apart,
            generator=generator,
            wanted=wanted,
        )
        rows[which] = np.where(missing[which], values.cpu().numpy(), rows[which])


def _draw_single(
    ensemble: Ensemble,
    rows: NDArray[np.float64],
    which: NDArray[np.intp],
    generator: torch.Generator,
    missing: NDArray[np.bool_],
) -> None:
    """Fill the only missing value of some rows, in place: one pass for each column is enough."""
    like = ensemble.network.c
    noise = uniform(len(which), 2, like=like, generator=generator).t()
    lacking = missing[which].argmax(axis=1) if len(which) else which
    for column in np.unique(lacking).tolist():
        places = np.flatnonzero(lacking == column)
        index = torch.from_numpy(places).to(like.device)
        for part, prediction in predictions(ensemble, rows[which[places]], column):
            values = prediction.draw(noise[:, index[part]])
            rows[which[places[part.cpu().numpy()]], column] = prediction.kind.outer(values).cpu().numpy()


@in_blocks
def fill(
    ensemble: Ensemble,
    codes: NDArray[np.float64],
    strategy: str,
    *,
    draws: int = 1,
    generator: torch.Generator | None = None,
    uncertain: int = 0,
    wanted: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float64], Uncertainty | None]:
    """The codes with missing values filled, ``draws`` times, (draws, rows, columns); and the uncertainty of the first
    ``uncertain`` columns, if there are any. Only columns that are ``wanted`` are filled."""
    filled, missing = np.repeat(codes[None], draws, axis=0), np.isnan(codes) & (True if wanted is None else wanted)
    if strategy == "sample":
        assert generator is not None
        rows = np.flatnonzero(missing.any(axis=1))
        # All draws of a row together: larger batches are more efficient.
        drawn = codes[rows].repeat(draws, axis=0)
        _draw_missing(ensemble, drawn, generator, shared_ordering=True, wanted=wanted)
        filled[:, rows] = drawn.reshape(len(rows), draws, codes.shape[1]).swapaxes(0, 1)
    else:
        for places, d, prediction in _missing(ensemble, codes, missing):
            values = prediction.mode() if strategy == "mode" else prediction.mean()
            filled[:, places, d] = prediction.kind.outer(values).cpu().numpy()
    return filled, _uncertainty(ensemble, codes, filled[..., :uncertain], missing) if uncertain else None


def _missing(
    ensemble: Ensemble, codes: NDArray[np.float64], missing: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.intp], int, Prediction]]:
    """For each column with ``missing`` values, the rows that lack it, and its distribution in them, as forecasts are.

    See :func:`made.queries.conditional.forecast`.
    """
    columns, counts = np.flatnonzero(missing.any(axis=0)).tolist(), ensemble.cardinalities
    double = ensemble if all(counts[d] for d in columns) else ensemble.in_double
    for d in columns:
        rows = np.flatnonzero(missing[:, d])
        for which, prediction in predictions(ensemble if counts[d] else double, codes[rows], d):
            yield rows[which.cpu().numpy()], d, prediction


def _uncertainty(
    ensemble: Ensemble, codes: NDArray[np.float64], filled: NDArray[np.float64], missing: NDArray[np.bool_]
) -> Uncertainty:
    """The uncertainty of the filled entries of rows, (draws, rows, columns), of the first columns."""
    counts, width = ensemble.cardinalities, filled.shape[-1]
    entropy, deviation, low, high = (np.full((len(codes), width), np.nan) for _ in range(4))
    probability = np.full(filled.shape, np.nan)
    for places, d, prediction in _missing(ensemble, codes, missing[:, :width]):
        if not counts[d]:
            summary = prediction.summary(INTERVAL)
            deviation[places, d] = summary.standard_deviation.cpu().numpy()
            low[places, d], high[places, d] = summary.quantiles.cpu().numpy()
            continue
        chances = prediction.probabilities(counts[d]).double()
        entropy[places, d] = torch.special.entr(chances).sum(dim=1).cpu().numpy()
        values = filled[:, places, d].astype(np.intp)
        probability[:, places, d] = np.take_along_axis(chances.t().cpu().numpy(), values, axis=0)
    return Uncertainty(probability if len(filled) > 1 else probability[0], entropy, deviation, low, high)
