"""What one column may be, given what is observed of its row: the distribution of an entry, of each row at once.

Other holes stay holes, so that this is p(x_d | observed), not a draw; all masks answer in one pass each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from made.columns import Column, Rows
from made.likelihood import Question, arrangements, log_prob, passes, require_prefixes
from made.network import Network

__all__ = ["Prediction", "predict"]


@dataclass(frozen=True)
class Prediction:
    """The distribution of a column's entry in each row: a mixture over masks.

    Attributes:
        kind: the kind of the column.
        weights: the logarithm of each mask's share, (masks, rows).
        units: the output units of the column under each mask, (masks, rows, outputs).
    """

    kind: Column
    weights: Tensor
    units: Tensor

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
        scores = torch.stack([self.log_prob(values) for values in candidates])
        return candidates.gather(0, scores.argmax(dim=0, keepdim=True)).squeeze(0)

    def mean(self) -> Tensor:
        """The expected value, of a kind that has one, otherwise :meth:`mode`. Shape: (rows)."""
        if type(self.kind).mean is Column.mean:
            return self.mode()
        return (self.weights.exp() * self.kind.mean(self.units)).sum(dim=0)


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
    numbers = network.connectivities.numbers(masks)
    ours = torch.from_numpy(network.columns.output_columns == column).nonzero().squeeze(1).to(values.device)
    units = values.new_empty(len(numbers), len(values), len(ours))
    weights = values.new_zeros(len(numbers), len(values))
    any_order = network.connectivities.any_order
    everything = torch.arange(len(values), device=values.device)
    for which, last in arrangements(question, True) if any_order else [(everything, None)]:
        for index, number in enumerate(numbers):
            parts = passes(network, number, last, segments)
            (connectivity,) = [each for each, flags in parts if flags is None or flags[column]]
            plan = network.plan(connectivity, rows=len(which))
            if not any_order:
                require_prefixes(network, question, plan.connectivity)
            for part in which.split(batch_size):
                some = question[part]
                outputs = network.run(
                    plan,
                    plan.arrange(some.values),
                    observed=plan.arrange(observed[part]),
                    given=plan.arrange(some.given) if any_order and some.given is not None else None,
                )
                units[index, part] = plan.restore(outputs, network.depth + 1).index_select(1, ours)
    if not any_order and len(numbers) > 1:
        known = Question(values, given)
        each = [log_prob(network, known, masks=[number], batch_size=batch_size) for number in numbers]
        weights = torch.stack(each)
    return Prediction(network.columns[column], weights.log_softmax(dim=0), units)
