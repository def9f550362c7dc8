"""The loss of an update: which entries of a batch are given, missing or asked for, under which mask.

A network is only good at queries that it was trained on, so an any-order model is trained on such queries:

- **random queries**: some entries of each row are given, some missing, the others asked for;
- **orderless training** (Uria, Murray and Larochelle, 2014), if orderings are cut into segments: a random part of each
  row is given, and the NLL of the rest is weighted up to that of the row. Its mean is the mean over all orderings;
- **whole rows**, in one pass under one of the masks that queries average.

Which of these update t is, its mask and its random numbers are functions of (seed, t).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from made.network.connectivity import Connectivity
from made.network.masked import Network
from made.queries.evidence import Evidence
from made.queries.likelihood import log_likelihood
from made.training.config import TrainingConfig

__all__ = ["Loss", "Objective", "give_at_random", "query_at_random", "random_bits"]

# Streams of random numbers, each a function of the seed.
DROPOUT, QUERY, ORDERINGS, WHOLE_ROW, WHOLE_ROW_MASK = 2, 3, 5, 6, 7


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
        whole, weight, by_update = True, None, config.mask_for == "update"
        mask: int | Connectivity | range = update if by_update else range(first_row, first_row + len(batch))
        # With a segment for each column no unit is masked, and random queries are those of orderless training.
        masked = config.segments < len(self.network.columns)
        if self._bits(update, WHOLE_ROW) < config.whole_rows * 2**63:
            mask = self._bits(update, WHOLE_ROW_MASK) % family.whole_rows
        elif family.any_order and masked and self._bits(update, QUERY) < config.questions * 2**63:
            batch, whole = query_at_random(batch, generator), False
            mask = family.draw(update if by_update else first_row, lowest=0)
        elif config.segments > 1:
            batch, weight = give_at_random(batch, generator)
            mask = family.blind()
        log_p = log_likelihood(self.network, batch, mask, generator=generator)
        return Loss(-(log_p if weight is None else weight * log_p).mean(), whole)

    @torch.no_grad()
    def mean_over_orderings(self, evidence: Evidence, passes: int, batch_size: int = 1000) -> float:
        """Estimate the sum over rows of the NLL, the mean over orderings, with the same random numbers every time."""
        total = 0.0
        for number in range(passes):
            generator = torch.Generator(evidence.values.device).manual_seed(self._bits(number, ORDERINGS))
            for _, batch in evidence.split(batch_size):
                asked, weight = give_at_random(batch, generator)
                log_p = log_likelihood(self.network, asked, self.network.connectivities.blind())
                total -= float((weight * log_p).sum())
        return total / passes

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
    return Evidence(values, asked | given, given & ~asked)


def give_at_random(evidence: Evidence, generator: torch.Generator) -> tuple[Evidence, Tensor]:
    """Make a random part of each row given, of any size, and return the weight that the NLL of the rest has."""
    values = evidence.values
    place = torch.rand(values.shape, generator=generator, device=values.device)
    observed = torch.ones_like(values, dtype=torch.bool) if evidence.observed is None else evidence.observed
    rank = place.masked_fill(~observed, 2).argsort(dim=1).argsort(dim=1)
    count = observed.sum(dim=1, keepdim=True)
    share = torch.rand(len(values), 1, generator=generator, device=values.device)
    size = (share * count).long()
    asked = Evidence(values, evidence.observed, (rank < size) & observed)
    return asked, (count / (count - size).clamp(min=1)).squeeze(1).to(values.dtype)
