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

__all__ = ["Loss", "Objective", "give_at_random", "query_at_random", "random_bits"]

# Streams of random numbers, each a function of the seed.
DROPOUT, QUERY, ORDERINGS, WHOLE_ROW, WHOLE_ROW_MASK = 2, 3, 5, 6, 7

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


class Objective:
    """The loss of each update, and the estimate of the validation NLL that goes with it.

    Arguments:
        network: the network.
        config: how to train.
    """

    def __init__(self, network: Network, config: TrainingConfig) -> None:
        self.network, self.config = network, config

    def __call__(self, batch: Evidence, update: int, first_row: int) -> Loss:
        """The loss of a batch in update ``update``; ``first_row`` rows were seen before it."""
        config, family = self.config, self.network.connectivities
        generator = torch.Generator(batch.values.device).manual_seed(self._bits(update, DROPOUT))
        whole, by_update = True, config.mask_for == "update"
        mask: int | Connectivity | range = update if by_update else range(first_row, first_row + len(batch))
        # With a segment for each column no unit is masked, and random queries are those of orderless training.
        masked = config.segments < len(self.network.columns)
        if config.whole_rows and self._bits(update, WHOLE_ROW) < config.whole_rows * 2**63:
            mask = self._bits(update, WHOLE_ROW_MASK) % family.whole_rows
            if config.incomplete_rows:
                batch, whole = hide_at_random(batch, config.incomplete_rows, generator), False
        elif family.any_order and masked and self._bits(update, QUERY) < config.questions * 2**63:
            batch, whole = query_at_random(batch, generator), False
            mask = family.draw(update if by_update else first_row, lowest=0)
        elif config.segments > 1:
            batch, weight = give_at_random(batch, generator)
            log_p = self._rest_of_rows(batch, generator)
            return Loss(-torch.dot(weight, log_p) / len(batch), whole)
        log_p = log_likelihood(self.network, batch, mask, generator=generator)
        return Loss(-log_p.mean(), whole)

    @torch.no_grad()
    def mean_over_orderings(self, evidence: Evidence, passes: int, batch_size: int = 1000) -> float:
        """Estimate the sum over rows of the NLL, the mean over orderings, with the same random numbers every time."""
        total = 0.0
        for number in range(passes):
            generator = torch.Generator(evidence.values.device).manual_seed(self._bits(number, ORDERINGS))
            for _, batch in evidence.split(batch_size):
                asked, weight = give_at_random(batch, generator)
                total -= float(torch.dot(weight, self._rest_of_rows(asked)))
        return total / passes

    def _rest_of_rows(self, batch: Evidence, generator: torch.Generator | None = None) -> Tensor:
        """log p of each entry that is asked for, given what is given and nothing else; the sum over each row."""
        network, given = self.network, batch.given
        assert given is not None
        inputs = network.columns.encode(batch.values) if batch.inputs is None else batch.inputs
        units = dense_outputs(
            network, inputs * network.columns.per_unit(given), given, dropout=network.training, generator=generator
        )
        factors = network.columns.log_prob(units.t(), batch.values, batch.targets)
        return factors.where(batch.asked, 0).sum(dim=1)

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
