"""What one column may be, given what is observed of its row: the distribution of an entry, of each row at once.

Other holes stay holes, so that this is p(x_d | observed), not a draw; all masks answer in one pass each, or in a single
one where they agree (see :func:`predict`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.base import Column
from made.columns.group import Rows
from made.network.masked import Network
from made.queries.batches import blocks
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence, arrangements
from made.queries.incremental import Walk
from made.queries.likelihood import log_prob, passes, require_prefixes

__all__ = ["Forecast", "Prediction", "Summary", "forecast", "predict", "predictions", "sizes"]

POINTS = 1024
TAILS = (0.005, 0.995)


@dataclass(frozen=True)
class Summary:
    """What a column of numbers is expected to be in each row, in the units of the table.

    Attributes:
        mean: the expected value, (rows).
        standard_deviation: how far from it the value is expected to be, (rows).
        quantiles: the values that are not exceeded with some probabilities, (probabilities, rows).
    """

    mean: Tensor
    standard_deviation: Tensor
    quantiles: Tensor


@dataclass(frozen=True)
class Prediction:
    """The distribution of a column's entry in each row: a mixture over masks.

    Attributes:
        kind: the kind of the column.
        weights: the logarithm of each mask's share, (masks, rows).
        units: the output units of the column under each mask, (masks, rows, outputs); one of them if all agree.
    """

    kind: Column
    weights: Tensor
    units: Tensor

    def __len__(self) -> int:
        return self.weights.shape[1]

    def __getitem__(self, rows: slice | Tensor) -> Prediction:
        return Prediction(self.kind, self.weights[:, rows], self.units[:, rows])

    def log_prob(self, values: Tensor) -> Tensor:
        """log p of a value for each row, as the kind works on it. Shapes: (rows) to (rows)."""
        return torch.logsumexp(self.weights + self.kind.log_prob(self.units, values.expand(self.weights.shape)), dim=0)

    def probabilities(self, count: int) -> Tensor:
        """The probability of each value 0, ..., count - 1 of a discrete column. Shape: (rows, count)."""
        values = torch.arange(count, dtype=self.units.dtype, device=self.units.device)
        probabilities = torch.stack([self.log_prob(value) for value in values], dim=1).exp()
        return probabilities / probabilities.sum(dim=1, keepdim=True)

    def mode(self) -> Tensor:
        """Of the values that are most likely under one mask each, the one that is most likely under all. (rows)."""
        candidates = self.kind.mode(self.units)
        if len(candidates) == 1:
            return candidates[0]
        shape = self.weights.shape
        heights = [self.weights + self.kind.height(self.units, values.expand(shape)) for values in candidates]
        scores = torch.stack([torch.logsumexp(height, dim=0) for height in heights])
        return candidates.gather(0, scores.argmax(dim=0, keepdim=True)).squeeze(0)

    def mean(self) -> Tensor:
        """The expected value, of a kind that has one, otherwise :meth:`mode`. Shape: (rows)."""
        if type(self.kind).mean is Column.mean:
            return self.mode()
        return self.kind.average(self.weights.exp(), self.kind.mean(self.units))

    def draw(self, uniform: Tensor) -> Tensor:
        """A value for each row, by two uniform random numbers: for the mask, and for the value. Shapes: (2, rows)."""
        below = self.weights.exp().cumsum(dim=0)[:-1]
        mask = (uniform[0].to(below.dtype) >= below).sum(dim=0)
        units = self.units[mask, torch.arange(len(self), device=mask.device)]
        return self.kind.draw(units, self.kind.noise(uniform[1]).to(units.dtype))

    def points(self, count: int = POINTS) -> tuple[Tensor, Tensor]:
        """Values of the table that stand for the distribution, and the share of each: draws without chance.

        Each mask draws as often, by random numbers that are evenly spread, those of different masks side by side.
        Values that are rarer than one in ``count`` are left out: what the far tails add is a matter of taste, because
        no data are there. Shapes: (points, rows), twice.
        """
        masks, rows = self.weights.shape
        each = -(-count // masks)
        # In double precision, so that the answer for a row hardly depends on the rows beside it.
        double = torch.float64 if self.units.device.type != "mps" else self.units.dtype
        place = torch.arange(each, dtype=double, device=self.units.device)
        values = []
        for index, units in enumerate(self.units.to(double)):
            noise = self.kind.noise((place + (index + 0.5) / masks) / each)
            drawn = self.kind.draw(units.expand(each, *units.shape), noise.unsqueeze(1).expand(each, rows))
            values.append(self.kind.outer(drawn).to(double))
        return torch.cat(values), (self.weights.to(double).exp() / each).repeat_interleave(each, dim=0)

    def summary(self, levels: Sequence[float] = (0.05, 0.5, 0.95), *, batch_size: int = 200) -> Summary:
        """Mean, standard deviation and quantiles by :meth:`points`; a quantile is a value that the column can have.

        For mean and standard deviation, the outermost half per cent on each side counts as if it were where it begins:
        a tail, where there are no data, may be so heavy that it has no mean.

        Example:
            >>> from made import Connectivities, Network, Numeric
            >>> network = Network([Numeric(170, 10, step=1)], Connectivities(1, (8,), masks=None))
            >>> predict(network, [[float("nan")]], 0).summary().quantiles.flatten().tolist()
            [150.0, 170.0, 190.0]
        """
        parts = []
        for first in range(0, len(self), batch_size):
            values, shares = self[first : first + batch_size].points()
            # Infinity stands for what is missing, where that is a value of its own: then this is of the other values.
            shares = shares * values.isfinite()
            values, shares = values.nan_to_num(posinf=0), shares / shares.sum(dim=0)
            values, order = values.sort(dim=0)
            shares = shares.gather(0, order)
            below = shares.cumsum(dim=0)
            places = [(below < share - 1e-9).sum(dim=0).clamp(max=len(values) - 1) for share in (*levels, *TAILS)]
            quantiles = values.gather(0, torch.stack(places)).where(~below[-1].isnan(), torch.nan)
            values = values.clamp(quantiles[-2], quantiles[-1])
            mean = (shares * values).sum(dim=0)
            variance = (shares * (values - mean) ** 2).sum(dim=0)
            parts.append((mean, variance.sqrt(), quantiles[: len(levels)]))
        if not parts:
            empty = self.weights.new_empty(0, dtype=torch.float64)
            return Summary(empty, empty, empty.expand(len(levels), 0))
        means, deviations, quantile_parts = zip(*parts, strict=True)
        return Summary(torch.cat(means), torch.cat(deviations), torch.cat(quantile_parts, dim=1))


@torch.no_grad()
def predict(
    network: Network,
    rows: Rows | Evidence,
    column: int,
    *,
    masks: int | Sequence[int] | None = None,
    segments: int = 1,
    batch_size: int = 500,
) -> Prediction:
    """The distribution of one column given all that is observed of the others, whatever the rows have there.

    Arguments:
        network: the network.
        rows: the rows, NaN for a hole.
        column: which column, by number.
        masks: how many masks an unlimited model averages, or which; all of a finite list unless told.
        segments: see :func:`made.log_prob`; one column takes a single pass.
        batch_size: the number of rows in a pass.

    Example:
        >>> from made import Connectivities, Network
        >>> network = Network(3, Connectivities(3, (8,), masks=None))
        >>> predict(network, [[1, float("nan"), 0]], 1).probabilities(2).shape
        torch.Size([1, 2])
    """
    asked = Evidence.of(network, rows)
    values = asked.values.clone()
    given = torch.ones_like(values, dtype=torch.bool) if asked.observed is None else asked.observed.clone()
    values[:, column], given[:, column] = 0, False
    observed = given.clone()
    observed[:, column] = True
    evidence = Evidence(values, observed, given if given.any() else None)
    any_order = network.connectivities.any_order
    numbers = network.connectivities.numbers(masks)
    if len(values) and any_order and _agree(network, segments) and bool(given.any(dim=1).all()):
        parts = [Evidence(some.values, None, some.given) for _, some in evidence.split(batch_size)]
        units = torch.cat([Walk(network, part).units(column) for part in parts])
        return Prediction(network.columns[column], units.new_zeros(1, len(units)), units.unsqueeze(0))
    ours = torch.from_numpy(network.columns.output_columns == column).nonzero().squeeze(1).to(values.device)
    units = values.new_empty(len(numbers), len(values), len(ours))
    weights = values.new_zeros(len(numbers), len(values))
    everything = torch.arange(len(values), device=values.device)
    for which, last in arrangements(evidence, True) if any_order else [(everything, None)]:
        # Rows of which nothing is known are all alike.
        distinct = which[:1] if any_order and last is None else which
        for index, number in enumerate(numbers):
            drawn = passes(network, number, last, segments)
            (connectivity,) = [each for each, flags in drawn if flags is None or flags[column]]
            layout = network.layout(connectivity, rows=len(distinct))
            if not any_order:
                require_prefixes(network, evidence, layout.connectivity)
            for part in distinct.split(batch_size):
                some = evidence[part]
                outputs = network.run(
                    layout,
                    layout.arrange(some.values),
                    observed=layout.arrange(observed[part]),
                    given=layout.arrange(some.given) if any_order and some.given is not None else None,
                )
                found = layout.restore(outputs, network.depth + 1).index_select(1, ours)
                units[index, part if distinct is which else which] = found
    if not any_order and len(numbers) > 1:
        known = Evidence(values, given)
        each = [log_prob(network, known, masks=[number], batch_size=batch_size) for number in numbers]
        weights = torch.stack(each)
    return Prediction(network.columns[column], weights.log_softmax(dim=0), units)


def _agree(network: Network, segments: int) -> bool:
    """Whether all masks of an any-order model say the same of a single column, given some of the others.

    What is given is seen by every unit of the first layer, whatever its degree, and the column comes last, so that all
    units of the last layer serve it. Masks differ only between hidden layers, and not if the pass is that of a segment
    of one column, in which all degrees are the same.
    """
    return network.depth == 1 or (network.depth > 1 and segments > 1)


def sizes(network: Network) -> list[int]:
    """How many values each column has that can be shown; 0 for numbers, which have no list of them."""
    return [kind.cardinality for kind in network.columns]


def predictions(ensemble: Ensemble, rows: Rows | Evidence, column: int) -> Iterator[tuple[Tensor, Prediction]]:
    """The distribution of one column, and the numbers of the rows that it is for; all rows come once."""
    network = ensemble.network
    evidence = Evidence.of(network, rows)
    known = torch.ones_like(evidence.values, dtype=torch.bool) if evidence.observed is None else evidence.observed
    others = torch.arange(known.shape[1], device=known.device) != column
    for block in blocks(len(evidence)):
        some = known[block][:, others].any(dim=1)
        # Rows of which nothing is known are kept apart: for others, one mask may be enough.
        for which in (some.nonzero().squeeze(1), (~some).nonzero().squeeze(1)):
            if len(which):
                index = which + block.start
                part = predict(network, evidence[index], column, masks=ensemble.masks, segments=ensemble.segments)
                yield index, part


@dataclass(frozen=True)
class Forecast:
    """What one column is expected to be in each row of a table's codes.

    Attributes:
        probabilities: of each value, (rows, values); no values for a column of numbers.
        mean, standard_deviation: of a column of numbers, (rows); NaN for others.
        quantiles: of a column of numbers, (rows, probabilities); NaN for others.
        log_prob: log p of what the row has in the column, (rows); NaN if that is a hole, or not among the values.
    """

    probabilities: NDArray[np.float64]
    mean: NDArray[np.float64]
    standard_deviation: NDArray[np.float64]
    quantiles: NDArray[np.float64]
    log_prob: NDArray[np.float64]


def forecast(
    ensemble: Ensemble, codes: NDArray[np.float64], column: int, quantiles: Sequence[float] = (0.05, 0.5, 0.95)
) -> Forecast:
    """What a column is expected to be, given all that is observed of the others. Codes are (rows, columns)."""
    size, rows = sizes(ensemble.network)[column], len(codes)
    evidence = Evidence.of(ensemble.network, codes)
    answer = Forecast(*(np.full(shape, np.nan) for shape in ((rows, size), rows, rows, (rows, len(quantiles)), rows)))
    for which, prediction in predictions(ensemble, evidence, column):
        places = which.cpu().numpy()
        if size:
            answer.probabilities[places] = prediction.probabilities(size).cpu().numpy()
            continue
        answer.log_prob[places] = prediction.log_prob(evidence.values[which, column]).cpu().numpy()
        summary = prediction.summary(quantiles)
        answer.mean[places] = summary.mean.cpu().numpy()
        answer.standard_deviation[places] = summary.standard_deviation.cpu().numpy()
        answer.quantiles[places] = summary.quantiles.t().cpu().numpy()
    truth = codes[:, column]
    if size:
        listed = np.flatnonzero((truth >= 0) & (truth < size) & (truth == np.floor(truth)))
        with np.errstate(divide="ignore"):
            answer.log_prob[listed] = np.log(answer.probabilities[listed, truth[listed].astype(np.intp)])
    answer.log_prob[np.isnan(truth)] = np.nan
    return answer
