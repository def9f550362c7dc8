"""What one column may be, given what is observed of its row: the distribution of an entry, of each row at once.

Other holes stay holes, so that this is p(x_d | observed), not a draw; all masks answer in one pass each, or in a single
one where they agree (see :func:`predict`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from made.columns import Column, Rows
from made.likelihood import log_prob, passes, require_prefixes
from made.network import Network
from made.question import Question, arrangements

__all__ = ["Prediction", "Summary", "predict"]

POINTS = 1024


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
        place = torch.arange(each, dtype=torch.float64, device=self.units.device)
        values = []
        for index, units in enumerate(self.units):
            noise = self.kind.noise((place + (index + 0.5) / masks) / each).to(units.dtype)
            drawn = self.kind.draw(units.expand(each, *units.shape), noise.unsqueeze(1).expand(each, rows))
            values.append(self.kind.outer(drawn).double())
        return torch.cat(values), (self.weights.double().exp() / each).repeat_interleave(each, dim=0)

    def summary(self, probabilities: Sequence[float] = (0.05, 0.5, 0.95), *, batch_size: int = 500) -> Summary:
        """Mean, standard deviation and quantiles by :meth:`points`; a quantile is a value that the column can have.

        Example:
            >>> from made import Connectivities, Network, Numeric
            >>> network = Network([Numeric(170, 10, step=1)], Connectivities(1, (8,), masks=None))
            >>> predict(network, [[float("nan")]], 0).summary().quantiles.flatten().tolist()
            [150.0, 170.0, 190.0]
        """
        parts = []
        for first in range(0, len(self), batch_size):
            values, shares = self[first : first + batch_size].points()
            mean = (shares * values).sum(dim=0)
            variance = (shares * (values - mean) ** 2).sum(dim=0)
            values, order = values.sort(dim=0)
            below = shares.gather(0, order).cumsum(dim=0)
            places = [(below < share - 1e-9).sum(dim=0).clamp(max=len(values) - 1) for share in probabilities]
            quantiles = values.gather(0, torch.stack(places)) if places else values[:0]
            parts.append((mean, variance.sqrt(), quantiles))
        if not parts:
            empty = self.weights.new_empty(0, dtype=torch.float64)
            return Summary(empty, empty, empty.expand(len(probabilities), 0))
        means, deviations, quantile_parts = zip(*parts, strict=True)
        return Summary(torch.cat(means), torch.cat(deviations), torch.cat(quantile_parts, dim=1))


@torch.no_grad()
def predict(
    network: Network,
    rows: Rows | Question,
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
    asked = Question.ask(network, rows)
    values = asked.values.clone()
    given = torch.ones_like(values, dtype=torch.bool) if asked.observed is None else asked.observed.clone()
    values[:, column], given[:, column] = 0, False
    observed = given.clone()
    observed[:, column] = True
    question = Question(values, observed, given if given.any() else None)
    any_order = network.connectivities.any_order
    numbers = network.connectivities.numbers(masks)
    if any_order and _agree(network, segments) and bool(given.any(dim=1).all()):
        numbers = numbers[:1]
    ours = torch.from_numpy(network.columns.output_columns == column).nonzero().squeeze(1).to(values.device)
    units = values.new_empty(len(numbers), len(values), len(ours))
    weights = values.new_zeros(len(numbers), len(values))
    everything = torch.arange(len(values), device=values.device)
    for which, last in arrangements(question, True) if any_order else [(everything, None)]:
        # Rows of which nothing is known are all alike.
        distinct = which[:1] if any_order and last is None else which
        for index, number in enumerate(numbers):
            parts = passes(network, number, last, segments)
            (connectivity,) = [each for each, flags in parts if flags is None or flags[column]]
            plan = network.plan(connectivity, rows=len(distinct))
            if not any_order:
                require_prefixes(network, question, plan.connectivity)
            for part in distinct.split(batch_size):
                some = question[part]
                outputs = network.run(
                    plan,
                    plan.arrange(some.values),
                    observed=plan.arrange(observed[part]),
                    given=plan.arrange(some.given) if any_order and some.given is not None else None,
                )
                found = plan.restore(outputs, network.depth + 1).index_select(1, ours)
                units[index, part if distinct is which else which] = found
    if not any_order and len(numbers) > 1:
        known = Question(values, given)
        each = [log_prob(network, known, masks=[number], batch_size=batch_size) for number in numbers]
        weights = torch.stack(each)
    return Prediction(network.columns[column], weights.log_softmax(dim=0), units)


def _agree(network: Network, segments: int) -> bool:
    """Whether all masks of an any-order model say the same of a single column, given any of the others.

    What is given is seen by every unit of the first layer, whatever its degree, and the column comes last, so that all
    units of the last layer serve it. Masks differ only between hidden layers, and not if the pass is that of a segment
    of one column, in which all degrees are the same.
    """
    return network.depth <= 1 or segments > 1
