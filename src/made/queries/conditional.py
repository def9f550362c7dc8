r"""The distribution of one column given what is observed of the others, :math:`p(x_d \mid x_\text{observed})`.

Other missing values are left out, not drawn. Each mask takes one pass; if all masks agree, one pass serves all of them
(see :func:`predict`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.columns.base import LEVELS, Column, Summary
from made.columns.group import Rows
from made.network.layout import Layout
from made.network.masked import Network
from made.queries.batches import in_blocks
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.incremental import alone, rows_at_a_time
from made.queries.likelihood import log_prob, outputs, require_prefixes

MOST_UNITS = 2**18  # output units, in probabilities of several values at a time
SMALL = 2**22  # weights, whose copy in double precision is worth its time


@dataclass(frozen=True)
class Prediction:
    """The distribution of a column's entry in each row: a mixture over masks.

    Attributes:
        kind: the kind of the column.
        weights: the log weight of each mask, (masks, rows).
        units: the output units of the column under each mask, (masks, rows, outputs). One mask if all agree.
    """

    kind: Column
    weights: Tensor
    units: Tensor

    def __len__(self) -> int:
        return self.weights.shape[1]

    def __getitem__(self, rows: slice | Tensor) -> Prediction:
        return Prediction(self.kind, self.weights[:, rows], self.units[:, rows])

    def log_prob(self, values: Tensor) -> Tensor:
        """log p of a coded value for each row. Shapes: (rows) to (rows)."""
        return torch.logsumexp(self.weights + self.kind.log_prob(self.units, values.expand(self.weights.shape)), dim=0)

    def probabilities(self, count: int) -> Tensor:
        """The probability of each value 0, ..., count - 1 of a discrete column. Shape: (rows, count)."""
        values = torch.arange(count, dtype=self.units.dtype, device=self.units.device)
        some = max(1, MOST_UNITS // max(self.units.numel(), 1))  # values at a time
        parts = []
        for each in values.split(some):
            units, shape = self.units.expand(len(each), *self.units.shape), (len(each), *self.weights.shape)
            log_p = self.weights + self.kind.log_prob(units, each.reshape(-1, 1, 1).expand(shape))
            parts.append(log_p.logsumexp(dim=1))
        probabilities = torch.cat(parts).t().exp()
        return probabilities / probabilities.sum(dim=1, keepdim=True)

    def mode(self) -> Tensor:
        """Of the modes under each mask, the one of the highest density under all masks. Shape: (rows)."""
        candidates = self.kind.mode(self.units)
        if len(candidates) == 1:
            return candidates[0]
        shape = self.weights.shape
        heights = [self.weights + self.kind.height(self.units, values.expand(shape)) for values in candidates]
        scores = torch.stack([torch.logsumexp(height, dim=0) for height in heights])
        return candidates.gather(0, scores.argmax(dim=0, keepdim=True)).squeeze(0)

    def mean(self) -> Tensor:
        """The expected value; of a kind without one, :meth:`mode`. Shape: (rows)."""
        if not self.kind.quantitative:
            return self.mode()
        return self.kind.average(self.weights.exp(), self.kind.mean(self.units))

    def draw(self, uniform: Tensor) -> Tensor:
        """A value for each row, from two uniform random numbers, for the mask and for the value. Shapes: (2, rows)."""
        below = self.weights.exp().cumsum(dim=0)[:-1]
        mask = (uniform[0].to(below.dtype) >= below).sum(dim=0)
        units = self.units[mask, torch.arange(len(self), device=mask.device)]
        return self.kind.draw(units, self.kind.noise(uniform[1]).to(units.dtype))

    def summary(self, levels: Sequence[float] = LEVELS) -> Summary:
        """Mean, standard deviation and quantiles, of values that are not missing (:meth:`made.Column.summary`).

        A quantile is a value that the column can have. Mean and standard deviation are winsorized at 0.5 % on each
        side: a tail without data may be so heavy that it has no mean.

        Example:
            >>> from made import Connectivities, Ensemble, Network, Numeric
            >>> network = Network([Numeric(170, 10, step=1)], Connectivities(1, (8,), masks=None))
            >>> predict(Ensemble(network), [[float("nan")]], 0).summary().quantiles.flatten().tolist()
            [150.0, 170.0, 190.0]
        """
        parts = [self.kind.summary(some.weights, some.units, levels) for some in self._batches()]
        together = ([getattr(part, field.name) for part in parts] for field in fields(Summary))
        return Summary(*(torch.cat(each, dim=-1) for each in together))

    def quantiles(self, levels: Sequence[float]) -> Tensor:
        """The quantiles of :meth:`summary` alone. Shape: (levels, rows)."""
        return torch.cat([self.kind.quantiles(some.weights, some.units, levels) for some in self._batches()], dim=-1)

    def _batches(self) -> Iterator[Prediction]:
        """A few rows at a time, at least one batch."""
        return (self[first : first + 500] for first in range(0, max(len(self), 1), 500))


def column_units(network: Network, layout: Layout, evidence: Evidence, column: int, batch_size: int) -> Tensor:
    """The output units of one column, in passes of ``batch_size`` rows. Shape: (rows, outputs of the column)."""
    parts = []
    for _, batch in evidence.split(batch_size):
        units = layout.restore(outputs(network, layout, batch), network.depth + 1)
        parts.append(units[:, network.output_units(column)])
    return torch.cat(parts)


@torch.no_grad()
def predict(ensemble: Ensemble, rows: Rows | Evidence, column: int, *, batch_size: int = 500) -> Prediction:
    """The distribution of one column given all that is observed of the others; its own entries are ignored.

    A pass has ``batch_size`` rows, or more where one mask is enough.

    Example:
        >>> from made import Connectivities, Ensemble, Network
        >>> ensemble = Ensemble(Network(3, Connectivities(3, (8,), masks=None)))
        >>> predict(ensemble, [[1, float("nan"), 0]], 1).probabilities(2).shape
        torch.Size([1, 2])
    """
    network, any_order = ensemble.network, ensemble.any_order
    evidence = Evidence.of(network, rows)
    values = evidence.values.clone()
    given = evidence.is_observed.clone()
    values[:, column], given[:, column] = 0, False
    observed = given.clone()
    observed[:, column] = True
    evidence = Evidence(values, observed, given if given.any() else None)
    if len(values) and any_order and masks_agree(ensemble, bool(given.any(dim=1).all())):
        size = max(batch_size, rows_at_a_time(network))
        parts = [Evidence(some.values, None, some.given) for _, some in evidence.split(size)]
        alike = torch.cat([alone(network, part, column) for part in parts])
        return Prediction(network.columns[column], alike.new_zeros(1, len(alike)), alike.unsqueeze(0))
    numbers = ensemble.numbers
    units = values.new_empty(len(numbers), len(values), network.columns[column].outputs)
    weights = values.new_zeros(len(numbers), len(values))
    for group in ensemble.schedule.groups(evidence):
        # Rows without known values are identical: one pass of one row serves all of them.
        which = group.rows[:1] if any_order and group.asked is None else group.rows
        weights[:, group.rows] = weights.new_tensor(group.log_weights).unsqueeze(1)
        for index, number in enumerate(group.masks):
            passes = group.passes(number)
            (connectivity,) = (each for each, columns in passes if columns is None or columns[column])
            layout = network.layout(connectivity, rows=len(which))
            require_prefixes(network, evidence, layout.connectivity)
            if len(which):
                units[index, group.rows] = column_units(network, layout, evidence[which], column, batch_size)
    if not any_order and len(numbers) > 1:
        known = Evidence(values, given)
        members = [ensemble.with_masks([number]) for number in numbers]
        weights = torch.stack([log_prob(member, known, batch_size=batch_size) for member in members])
    return Prediction(network.columns[column], weights.log_softmax(dim=0), units)


def masks_agree(ensemble: Ensemble, some_given: bool) -> bool:
    """Whether all masks of an any-order model give a single column the same distribution.

    If some columns are given, every unit of the first layer sees them, whatever its degree, and the column comes last,
    so that all units of the last layer serve it. Masks differ only between hidden layers, and not in the pass of a
    segment of one column, in which all degrees are equal. If nothing is given, they agree if every column is a segment,
    unless such rows have masks of their own.
    """
    family, depth = ensemble.network.connectivities, ensemble.network.depth
    if not some_given:
        return ensemble.one_by_one and not (family.whole_rows and family.incomplete_rows)
    return depth == 1 or (depth > 1 and ensemble.segments > 1)


def predictions(ensemble: Ensemble, rows: Rows | Evidence, column: int) -> Iterator[tuple[Tensor, Prediction]]:
    """The distribution of one column, and the numbers of the rows that it is for; each row once.

    Rows with known values come first; one mask may suffice for them.
    """
    evidence = Evidence.of(ensemble.network, rows)
    known = evidence.is_observed.sum(dim=1) - evidence.is_observed[:, column].long() > 0
    for which in (known.nonzero().squeeze(1), (~known).nonzero().squeeze(1)):
        if len(which):
            yield which, predict(ensemble, evidence if len(which) == len(evidence) else evidence[which], column)


@dataclass(frozen=True)
class Forecast:
    """The distribution of one column in each row of coded data, as arrays.

    Attributes:
        probabilities: of each value, (rows, values); no values for a column of numbers.
        mean, standard_deviation: of a column of numbers, (rows); NaN for others.
        quantiles: of a column of numbers, (rows, levels); NaN for others.
        log_prob: log p of the entry that the row has, (rows); NaN if it is missing or not among the values.
    """

    probabilities: NDArray[np.float64]
    mean: NDArray[np.float64]
    standard_deviation: NDArray[np.float64]
    quantiles: NDArray[np.float64]
    log_prob: NDArray[np.float64]


@in_blocks
def quantiles(
    ensemble: Ensemble, codes: NDArray[np.float64], column: int, levels: Sequence[float]
) -> NDArray[np.float64]:
    """The quantiles of one column of numbers, as in :func:`forecast`. Shape: (rows, levels)."""
    ensemble = ensemble.in_double
    answer = np.empty((len(codes), len(levels)))
    for which, prediction in predictions(ensemble, codes, column):
        answer[which.cpu().numpy()] = prediction.quantiles(levels).t().cpu().numpy()
    return answer


@in_blocks
def forecast(
    ensemble: Ensemble, codes: NDArray[np.float64], column: int, quantiles: Sequence[float] = LEVELS
) -> Forecast:
    """The distribution of one column of coded rows, (rows, columns), given all that is observed of the others.

    The network of a column of numbers is evaluated in double precision: where the distribution is nearly flat, or falls
    between two steps, the last digit of a float moves a quantile or a standard deviation by much more. So is a small
    network of any column, because the last digit of a float depends on the order of the rows; probabilities are rounded
    to the precision of the network.
    """
    size, rows, dtype = ensemble.cardinalities[column], len(codes), ensemble.network.c.dtype
    if not size or sum(each.numel() for each in ensemble.network.parameters()) <= SMALL:
        ensemble = ensemble.in_double
    evidence = Evidence.of(ensemble.network, codes)
    answer = Forecast(*(np.full(shape, np.nan) for shape in ((rows, size), rows, rows, (rows, len(quantiles)), rows)))
    for which, prediction in predictions(ensemble, evidence, column):
        places = which.cpu().numpy()
        if size:
            answer.probabilities[places] = prediction.probabilities(size).to(dtype).cpu().numpy()
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
