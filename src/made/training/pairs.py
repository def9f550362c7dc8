r"""Queries with one given column, whose targets can be counted: the frequencies of pairs of values.

Random parts of rows rarely consist of a single column, so that a conditional such as
:math:`p(\text{churn} \mid \text{contract} = \text{monthly})` would be learned from a few hundred draws only. For
columns with a list of values, the conditional can instead be counted in the training rows. The loss is the
cross-entropy with these frequencies, for every given value of every such column, and for the marginals:

.. math:: -\sum_e \sum_v f(x_e = v) \sum_{d \ne e} \sum_k f(x_d = k \mid x_e = v) \log p(x_d = k \mid x_e = v),

divided by the number of terms e (the marginals are one more term). It has no sampling noise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from made.columns.segments import Segments, Softmax
from made.network.dense import dense_outputs
from made.network.dropout import BatchGenerator
from made.network.masked import Network
from made.queries.batches import blocks
from made.queries.evidence import Evidence
from made.training.order import some_rows
from made.training.workers import ALONE, Share, Workers

MOST_VALUES = 4096  # of all columns together
COUNTED = 4096  # rows at a time
PRIOR = 1.0  # rows, distributed like the column itself, that are added to each count


class CountedPairs:
    """The frequencies of pairs of values in the training rows, and the cross-entropy loss of a network.

    Arguments:
        network: an any-order network.
        rows: the training rows; of a long table, 2**20 evenly spread ones are counted.
        weights: how often each of them counts, (rows); then all are counted. Default: once.
    """

    def __init__(self, network: Network, rows: Evidence, weights: NDArray[np.float64] | None = None) -> None:
        self.network = network
        columns, values = network.columns, rows.values[:0]
        forms = {d: kind.form for d, kind in enumerate(columns) if kind.listed}
        self.listed = [d for d, form in forms.items() if form is not None and form.choices in (1, columns[d].codes)]
        widths = [columns[d].codes for d in self.listed]
        if len(widths) < 2 or sum(widths) > MOST_VALUES:
            self.listed = widths = []
        own = torch.repeat_interleave(torch.arange(len(widths)), torch.tensor(widths, dtype=torch.long))
        own = own.to(values.device)
        code = torch.cat([torch.arange(width) for width in widths] or [own]).to(values)
        places = torch.tensor(self.listed, dtype=torch.long, device=values.device)
        counts = values.new_zeros(len(own), len(own), dtype=torch.float64)
        often = None if weights is None else torch.from_numpy(weights).float().to(values.device).unsqueeze(1)
        for part, some in _in_parts(rows, slice(None) if often is not None else some_rows(len(rows))):
            flags = (some.values[:, places[own]] == code).to(torch.float32)
            if some.observed is not None:
                flags *= some.observed[:, places[own]]
            counts += (flags.t() @ (flags if often is None else flags * often[part])).double()
        member = own == torch.arange(len(widths), device=values.device).unsqueeze(1)  # (columns, values)
        alone = counts.diagonal()
        share = alone / (member.double().t() @ (member.double() @ alone)).clamp(min=1)  # of each value in its column
        # A context is a given value; in the last one, nothing is given.
        seen = torch.cat([alone > 0, alone.new_ones(1, dtype=torch.bool)])
        both = torch.cat([counts, alone.unsqueeze(1)], dim=1)[:, seen] + PRIOR * share.unsqueeze(1)
        answer = both / (member.double().t() @ (member.double() @ both))
        weight = torch.cat([share, share.new_ones(1)])[seen] / (len(widths) + 1)
        other = torch.cat([~member, member.new_ones(len(widths), 1)], dim=1)[
            :, seen
        ]  # a column is not asked for itself
        self.weights = (other * weight).to(values.dtype)  # (columns, contexts)
        self.answers = (answer * (member.double().t() @ (other * weight))).to(values.dtype)  # (values, contexts)
        given = values.new_zeros(len(weight), len(columns), dtype=torch.bool)
        contexts = values.new_zeros(len(weight), len(columns))
        which = seen[:-1].nonzero().squeeze(1)
        row = torch.arange(len(which), device=values.device)
        given[row, places[own[which]]] = True
        contexts[row, places[own[which]]] = code[which]
        self.given, self.contexts, self.inputs = given, contexts, columns.encode(contexts) * columns.per_unit(given)
        self.order = torch.randperm(len(weight), generator=torch.Generator().manual_seed(0)).to(values.device)
        self._place_units(widths, values.device)

    def _place_units(self, widths: list[int], device: torch.device) -> None:
        """The output units: of columns with a single logit, and of the others, padded to one length."""
        starts = [self.network.output_units(d).start for d in self.listed]
        single = [index for index, d in enumerate(self.listed) if self.network.columns[d].outputs == 1]
        several = [index for index in range(len(widths)) if index not in single]
        widest = max((widths[index] for index in several), default=0)
        first = [sum(widths[:index]) for index in range(len(widths))]

        def tensor(places: list[int] | list[list[int]]) -> Tensor:
            return torch.tensor(places, dtype=torch.long, device=device)

        self.single, self.single_units = tensor(single), tensor([starts[index] for index in single])
        self.ones = tensor([first[index] + 1 for index in single])
        self.several = tensor(several)
        padded = [[starts[index] + min(k, widths[index] - 1) for k in range(widest)] for index in several]
        self.padded = tensor(padded).reshape(len(several), widest)
        lengths = tensor([widths[index] for index in several])
        self.padding = torch.arange(widest, device=device) >= lengths.unsqueeze(1)
        self.units = tensor([starts[index] + k for index in several for k in range(widths[index])])
        self.values = tensor([first[index] + k for index in several for k in range(widths[index])])
        # The same units as segments of a softmax.
        self.logits = torch.cat([self.single_units, self.units])
        self.of_logits = self.answers[torch.cat([self.ones, self.values])]
        self.of_segments = self.weights[torch.cat([self.single, self.several])]
        numbers = [
            *range(len(single)),
            *(len(single) + i for i, index in enumerate(several) for _ in range(widths[index])),
        ]
        self.segments = Segments(numbers, len(widths), len(single), self.answers)

    def __len__(self) -> int:
        """The number of contexts; 0 if there are not two columns with a list of values, or too many values."""
        return len(self.given) if self.listed else 0

    def turn(self, turn: int, most: int, workers: Workers = ALONE) -> tuple[Tensor, Share, float]:
        """All contexts, or ``most`` of them, other ones in each turn, for an estimate of the loss.

        Of several workers, each takes its share of the contexts.

        Returns:
            The contexts, the share of this worker, and the weight of their loss.
        """
        number = min(len(self), most)
        turns = torch.arange(turn * number, (turn + 1) * number, device=self.given.device) % len(self)
        share = workers.share(number)
        return self.order[turns[share.rows]], share, len(self) / number

    def loss(self, turn: int, most: int, generator: BatchGenerator | None = None, workers: Workers = ALONE) -> Tensor:
        """The loss of all contexts, or of ``most`` of them as an estimate of it; see :meth:`turn`."""
        which, share, weight = self.turn(turn, most, workers)
        if generator is not None:
            generator.rows, generator.of = None if share.whole else share.rows, share.of
        network, given = self.network, self.given[which]
        units = dense_outputs(network, self.inputs[which], given, dropout=network.training, generator=generator)
        if network.columns.coupling is not None:
            units = network.columns.coupled(units.t(), self.contexts[which], given, given).t()
        weights, answers = self.weights[:, which], self.answers[:, which]
        logits = units.index_select(0, self.single_units)
        loss = (weights[self.single] * F.softplus(logits) - answers[self.ones] * logits).sum()
        if len(self.several):
            padded = units[self.padded].masked_fill(self.padding.unsqueeze(2), -torch.inf)
            loss = loss + (weights[self.several] * padded.logsumexp(dim=1)).sum()
            loss = loss - (answers[self.values] * units.index_select(0, self.units)).sum()
        return share.part(loss * weight)

    def differentiate(self, units: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of some contexts, given their output units, (outputs, contexts), and its gradient, written out."""
        softmax = Softmax(self.segments, units.index_select(0, self.logits))
        softmax.evaluate()
        weights, answers = self.of_segments.index_select(1, which), self.of_logits.index_select(1, which)
        loss = (weights * softmax.log_sums).sum() - (answers * softmax.logits).sum()
        of_logits = softmax.gradient(weights, torch.empty_like(answers)).add_(answers).neg_()
        return loss, torch.zeros_like(units).index_copy_(0, self.logits, of_logits)


def _in_parts(rows: Evidence, which: Tensor | slice) -> Iterator[tuple[slice, Evidence]]:
    """Some rows, a few at a time."""
    plain = Evidence(rows.values, rows.observed)
    if isinstance(which, slice):
        yield from plain.split(COUNTED)
    else:
        for part in blocks(len(which), COUNTED):
            yield part, plain[which[part].to(rows.values.device)]
