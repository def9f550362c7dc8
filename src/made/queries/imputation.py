"""Holes of a table's codes filled, by draws or by what is most likely or expected; and how sure each entry is.

Random numbers are taken block by block (see :mod:`made.queries.batches`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from made.queries.batches import blocks
from made.queries.conditional import Prediction, predictions, sizes
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.sampling import check_temperature, sample

__all__ = ["Uncertainty", "draw", "fill", "uncertainty"]

INTERVAL = (0.05, 0.95)


@dataclass(frozen=True)
class Uncertainty:
    """How sure each filled entry is, by p(x_d | observed). All are (rows, columns).

    NaN is where nothing was filled, and where a number has no meaning for the column.

    Attributes:
        probability: of the value that was filled in, of a column that has a list of values; (draws, rows, columns) if
            there were several draws.
        entropy: of such a column, in nats: 0 if the value is certain, log k if all k are as likely.
        standard_deviation: of a column of numbers.
        low, high: the ends of an interval that has the number with a probability of 90 %: each end is exceeded with
            5 %. As codes: a number stands for itself.
    """

    probability: NDArray[np.float64]
    entropy: NDArray[np.float64]
    standard_deviation: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def select(self, columns: slice) -> Uncertainty:
        """That of some columns."""
        parts = (self.probability, self.entropy, self.standard_deviation, self.low, self.high)
        return Uncertainty(*(part[..., columns] for part in parts))


def draw(
    ensemble: Ensemble,
    known: NDArray[np.float64],
    generator: torch.Generator,
    temperature: float = 1.0,
    *,
    one_by_one: bool = False,
) -> NDArray[np.float64]:
    """Rows with NaN drawn. Rows that lack many different things share one ordering, for speed (``one_by_one``)."""
    check_temperature(temperature)  # also where there is nothing to draw
    network, drawn = ensemble.network, known.copy()
    apart = one_by_one and network.connectivities.any_order
    for block in blocks(len(known)):
        some = known[block]
        count = np.isnan(some).sum(axis=1)
        if apart:
            _draw_single(ensemble, drawn[block], np.flatnonzero(count == 1), generator)
        rows = np.flatnonzero(count > apart)
        if len(rows):
            values = sample(
                network,
                known=some[rows],
                masks=ensemble.masks,
                temperature=temperature,
                segments=ensemble.segments,
                asked_last=not apart,
                generator=generator,
            )
            drawn[block.start + rows] = np.where(np.isnan(some[rows]), values.cpu().numpy(), some[rows])
    return drawn


def _draw_single(
    ensemble: Ensemble, rows: NDArray[np.float64], which: NDArray[np.intp], generator: torch.Generator
) -> None:
    """Fill the only hole of some rows, in place: a pass for each column is enough."""
    like = ensemble.network.c
    double = like.dtype if like.device.type == "mps" else torch.float64
    # Two numbers for each row, in the order of the rows.
    uniform = torch.rand(len(which), 2, generator=generator, dtype=double, device=like.device).t()
    uniform = uniform.clamp(min=torch.finfo(double).eps / 4)
    lacking = np.isnan(rows[which]).argmax(axis=1) if len(which) else which
    for column in np.unique(lacking).tolist():
        places = np.flatnonzero(lacking == column)
        index = torch.from_numpy(places).to(like.device)
        for part, prediction in predictions(ensemble, rows[which[places]], column):
            values = prediction.draw(uniform[:, index[part]])
            rows[which[places[part.cpu().numpy()]], column] = prediction.kind.outer(values).cpu().numpy()


def fill(
    ensemble: Ensemble,
    codes: NDArray[np.float64],
    strategy: str,
    *,
    draws: int = 1,
    generator: torch.Generator | None = None,
) -> NDArray[np.float64]:
    """The codes with their holes filled, so many times. Shapes: (rows, columns) to (draws, rows, columns)."""
    filled, hole = np.repeat(codes[None], draws, axis=0), np.isnan(codes)
    if strategy == "sample":
        assert generator is not None
        for block in blocks(len(codes)):
            rows = block.start + np.flatnonzero(hole[block].any(axis=1))
            # All draws of a row together: passes for many rows are hardly longer than for few.
            drawn = draw(ensemble, codes[rows].repeat(draws, axis=0), generator, one_by_one=True)
            filled[:, rows] = drawn.reshape(len(rows), draws, codes.shape[1]).swapaxes(0, 1)
        return filled
    for places, d, prediction in _holes(ensemble, codes):
        values = prediction.mode() if strategy == "mode" else prediction.mean()
        filled[:, places, d] = prediction.kind.outer(values).cpu().numpy()
    return filled


def _holes(ensemble: Ensemble, codes: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.intp], int, Prediction]]:
    """Of each column, the rows that lack it, and its distribution in them."""
    for block in blocks(len(codes)):
        hole = np.isnan(codes[block])
        evidence = Evidence.of(ensemble.network, codes[block])
        for d in np.flatnonzero(hole.any(axis=0)).tolist():
            rows = torch.from_numpy(np.flatnonzero(hole[:, d])).to(evidence.values.device)
            for which, prediction in predictions(ensemble, evidence[rows], d):
                yield block.start + rows[which].cpu().numpy(), d, prediction


def uncertainty(ensemble: Ensemble, codes: NDArray[np.float64], filled: NDArray[np.float64]) -> Uncertainty:
    """How sure the filled entries are.

    Arguments:
        ensemble: the network, and how it answers.
        codes: the rows, NaN for a hole, (rows, columns).
        filled: the same with all holes filled, (rows, columns) or (draws, rows, columns).
    """
    counts, several = sizes(ensemble.network), filled.reshape(-1, *codes.shape)
    probability = np.full(several.shape, np.nan)
    entropy, deviation, low, high = (np.full(codes.shape, np.nan) for _ in range(4))
    for places, d, prediction in _holes(ensemble, codes):
        if not counts[d]:
            summary = prediction.summary(INTERVAL)
            deviation[places, d] = summary.standard_deviation.cpu().numpy()
            low[places, d], high[places, d] = summary.quantiles.cpu().numpy()
            continue
        chances = prediction.probabilities(counts[d]).double()
        entropy[places, d] = torch.special.entr(chances).sum(dim=1).cpu().numpy()
        values = several[:, places, d].astype(np.intp)
        probability[:, places, d] = np.take_along_axis(chances.t().cpu().numpy(), values, axis=0)
    return Uncertainty(probability.reshape(filled.shape), entropy, deviation, low, high)
