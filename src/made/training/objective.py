"""The loss of an update: which entries of a batch are given, missing or asked for, under which mask.

A network is only good at queries that it was trained on, so an any-order model is trained on such queries:

- **random queries**: some entries of each row are given, some missing, the others asked for;
- **orderless training** (Uria, Murray and Larochelle, 2014), if orderings are cut into segments: a random part of each
  row is given, and the NLL of the rest is weighted up to that of the row. Its mean is the mean over all orderings;
- **whole rows**, in one pass under one of the masks that queries average.

Which of these update t is, its mask and its random numbers are functions of (seed, t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from made.network.connectivity import Connectivity
from made.network.dense import dense_outputs
from made.network.masked import Network
from made.queries.evidence import Evidence
from made.queries.likelihood import log_likelihood
from made.training.config import TrainingConfig

__all__ = ["Loss", "Objective", "Questions", "give_at_random", "query_at_random", "random_bits"]

# Streams of random numbers, each a function of the seed.
DROPOUT, QUERY, ORDERINGS, WHOLE_ROW, WHOLE_ROW_MASK, ENTRIES = 2, 3, 5, 6, 7, 8

GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples, modulo 1, are spread evenly


def random_bits(seed: int, number: int, stream: int) -> int:
    """63 random bits, a function of the seed, a number and the stream."""
    return int(np.random.Philox(key=seed, counter=[0, 0, number, stream]).random_raw() >> 1)


class Loss(NamedTuple):
    """The loss of an update.

    Attributes:
        value: the mean NLL of the rows, to be differentiated.
        whole: whether it is the NLL of whole rows, which can be reported as that of training.
    """

    value: Tensor
    whole: bool


@dataclass(frozen=True)
class Questions:
    """What several updates ask of their rows; drawn together, because drawing for each would take as long as a pass.

    Attributes:
        rows: the rows, some entries hidden if rows are to be incomplete.
        parts: the same rows with a random part of each given, with the input units of that part alone.
        weights: the weight of the NLL of each entry of ``parts``, (rows, columns); 0 for what is not asked for.
    """

    rows: Evidence
    parts: Evidence | None = None
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> Questions:
        if self.parts is None or self.weights is None:
            return Questions(self.rows[rows])
        return Questions(self.rows[rows], self.parts[rows], self.weights[rows])


class Objective:
    """The loss of each update, and the estimate of the validation NLL that goes with it.

    Arguments:
        network: the network.
        config: how to train.
    """

    def __init__(self, network: Network, config: TrainingConfig) -> None:
        self.network, self.config = network, config

    def questions(self, rows: Evidence, update: int) -> Questions:
        """What the updates from ``update`` on ask of these rows."""
        config, generator = self.config, self._generator(update, ENTRIES, rows)
        parts = weights = None
        if config.segments > 1:
            parts, weights = self._parts(rows, generator)
        if config.whole_rows and config.incomplete_rows:
            rows = hide_at_random(rows, config.incomplete_rows, generator)
        return Questions(rows, parts, weights)

    def __call__(self, questions: Questions, update: int, first_row: int) -> Loss:
        """The loss of a batch in update ``update``; ``first_row`` rows were seen before it."""
        config, family, batch = self.config, self.network.connectivities, questions.rows
        generator = self._generator(update, DROPOUT, batch)
        whole, by_update = True, config.mask_for == "update"
        mask: int | Connectivity | range = update if by_update else range(first_row, first_row + len(batch))
        # With a segment for each column no unit is masked, and random queries are those of orderless training.
        masked = config.segments < len(self.network.columns)
        if config.whole_rows and self._bits(update, WHOLE_ROW) < config.whole_rows * 2**63:
            mask, whole = self._bits(update, WHOLE_ROW_MASK) % family.whole_rows, not config.incomplete_rows
        elif family.any_order and masked and self._bits(update, QUERY) < config.questions * 2**63:
            batch, whole = query_at_random(batch, generator), False
            mask = family.draw(update if by_update else first_row, lowest=0)
        elif questions.parts is not None and questions.weights is not None:
            return Loss(self._nll_of_parts(questions.parts, questions.weights, generator) / len(batch), whole)
        return Loss(-log_likelihood(self.network, batch, mask, generator=generator).mean(), whole)

    @torch.no_grad()
    def mean_over_orderings(self, evidence: Evidence, passes: int, batch_size: int = 1000) -> float:
        """Estimate the sum over rows of the NLL, the mean over orderings, with the same random numbers every time."""
        total = 0.0
        for number in range(passes):
            generator = self._generator(number, ORDERINGS, evidence)
            for _, batch in evidence.split(batch_size):
                total += float(self._nll_of_parts(*self._parts(batch, generator)))
        return total / passes

    def _parts(self, rows: Evidence, generator: torch.Generator) -> tuple[Evidence, Tensor]:
        """Rows with a random part of each given, its input units, and the weights of all other entries."""
        rows, weight = give_at_random(rows, generator)
        columns = self.network.columns
        inputs = columns.encode(rows.values) if rows.inputs is None else rows.inputs
        assert rows.given is not None
        weights = weight.unsqueeze(1) * rows.asked
        return replace(rows, inputs=inputs * columns.per_unit(rows.given)), weights

    def _nll_of_parts(self, parts: Evidence, weights: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The weighted sum of the NLL of each entry that is asked for, given what is given and nothing else."""
        network = self.network
        assert parts.inputs is not None
        assert parts.given is not None
        units = dense_outputs(network, parts.inputs, parts.given, dropout=network.training, generator=generator)
        return -(network.columns.log_prob(units.t(), parts.values, parts.targets) * weights).sum()

    def _generator(self, number: int, stream: int, evidence: Evidence) -> torch.Generator:
        return torch.Generator(evidence.values.device).manual_seed(self._bits(number, stream))

    def _bits(self, number: int, stream: int) -> int:
        return random_bits(self.config.seed, number, stream)


def query_at_random(evidence: Evidence, generator: torch.Generator) -> Evidence:
    """Make a random share of each row given and another missing; at least one entry is asked for."""
    values = evidence.values
    share = torch.rand(len(values), 2, generator=generator, device=values.device).sort(dim=1).values
    role = torch.rand(values.shape, generator=generator, device=values.device)
    given, asked = role < share[:, :1], role >= share[:, 1:]
    one = torch.rand(values.shape, generator=generator, device=values.device)
    if evidence.observed is not None:
        given, asked, one = given & evidence.observed, asked & evidence.observed, one * evidence.observed
    asked.scatter_(1, one.argmax(dim=1, keepdim=True), True)
    if evidence.observed is not None:
        asked &= evidence.observed  # a row without observed entries asks for nothing
    return evidence.asking(asked | given, given & ~asked)


def hide_at_random(evidence: Evidence, share: float, generator: torch.Generator) -> Evidence:
    """Hide entries of a share of the rows, each entry of a row with the same probability, which is uniform."""
    values = evidence.values
    uniform = torch.rand(len(values), values.shape[1] + 2, generator=generator, device=values.device)
    hidden = (uniform[:, 2:] < uniform[:, :1]) & (uniform[:, 1:2] < share)
    return evidence.asking(~hidden & evidence.is_observed, None)


def give_at_random(evidence: Evidence, generator: torch.Generator) -> tuple[Evidence, Tensor]:
    """Make a random part of each row given, and return the weight that the NLL of the rest has.

    The number of given entries is uniform, from none to all but one: if one entry is asked for and each other one is
    given with the same probability, which is uniform itself, then so is their number. The probabilities of the rows
    are spread evenly, which is less noisy than drawing each by itself.
    """
    values, observed = evidence.values, evidence.observed
    uniform = torch.rand(len(values), 2, values.shape[1], generator=generator, device=values.device)
    share = torch.arange(len(values), device=values.device).mul(GOLDEN).add_(uniform[:1, 1, 0]).frac_()
    place, one = uniform.unbind(dim=1)
    given = place < share.unsqueeze(1)
    if observed is not None:
        given, one = given & observed, one * observed
    given.scatter_(1, one.argmax(dim=1, keepdim=True), False)
    count = values.shape[1] if observed is None else observed.sum(dim=1)
    weight = count / (count - given.sum(dim=1)).clamp_(min=1)
    return evidence.asking(observed, given), weight.to(values.dtype)
