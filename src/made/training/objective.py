"""The loss of an update: which entries of a batch are given, missing or asked for, under which mask.

A network is only good at queries that it was trained on, so an any-order model is trained on such queries:

- **random queries**: some entries of each row are given, some missing, the others asked for;
- **orderless training** (Uria, Murray and Larochelle, 2014), if orderings are cut into segments: a random part of each
  row is given, and the NLL of the rest is weighted up to that of the row. Its mean is the mean over all orderings. Some
  rows may be **nearly complete**, and questions with one given column answered by **counted pairs** of values;
- **whole rows**, in one pass under one of the masks that queries average.

Which of these update t is, its mask and its random numbers are functions of (seed, t).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.network.connectivity import Connectivity
from made.network.dense import dense_outputs
from made.network.dropout import BatchGenerator
from made.network.masked import Network
from made.queries.evidence import Evidence
from made.queries.likelihood import log_conditionals, log_likelihood
from made.streams import DROPOUT, ENTRIES, ORDERINGS, QUERY, WHOLE_ROW, WHOLE_ROW_MASK, random_bits
from made.training.config import TrainingConfig
from made.training.explicit import ExplicitLoss
from made.training.pairs import CountedPairs
from made.training.questions import Groups, give_at_random, hide_at_random, query_at_random
from made.training.workers import ALONE, Share, Workers

__all__ = ["Loss", "Objective", "Questions"]

PAIRS_EVERY = 4  # updates, and with a fourth of their rows: counted pairs hardly take time
MOST_UNITS = 2048  # input and output units of a network whose losses are worth preparing each batch for
MOST_PREPARED = 2**23  # numbers, of several batches together


class Loss(NamedTuple):
    """The loss of an update, or what the share of a worker contributes to it.

    Attributes:
        value: the loss, to be differentiated.
        nll: the mean NLL of whole rows, to be reported as that of training; ``None`` if the update does not tell.
        rows: the number of rows of which it is the mean.
    """

    value: Tensor
    nll: Tensor | None
    rows: int = 0


@dataclass(frozen=True)
class Parts:
    """Rows of which a part is seen.

    Attributes:
        rows: the evidence, with the input units of what is seen alone.
        asked: 1 for an entry that is asked for, otherwise 0, (rows, columns).
        weights: the weight of each row's NLL in the loss, (rows).
        scale: what makes each row's NLL an estimate of that of the whole row, (rows); 0 for rows that do not tell.
    """

    rows: Evidence
    asked: Tensor
    weights: Tensor
    scale: Tensor

    def __getitem__(self, rows: slice) -> Parts:
        return Parts(self.rows[rows], self.asked[rows], self.weights[rows], self.scale[rows])


@dataclass(frozen=True)
class Questions:
    """What several updates ask of their rows; drawn together, because drawing for each would take as long as a pass.

    Attributes:
        rows: the rows, some entries hidden if rows are to be incomplete.
        parts: the same rows with a random part of each given.
        whole: the rows again, with the input units of what is not hidden, for losses that are written out.
    """

    rows: Evidence
    parts: Parts | None = None
    whole: Parts | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> Questions:
        parts, whole = (None if each is None else each[rows] for each in (self.parts, self.whole))
        return Questions(self.rows[rows], parts, whole)


class Objective:
    """The loss of each update, and the estimate of the validation NLL that goes with it.

    Arguments:
        network: the network.
        config: how to train.
        rows: the training rows.
    """

    def __init__(
        self, network: Network, config: TrainingConfig, rows: Evidence, weights: NDArray[np.float64] | None = None
    ) -> None:
        self.network, self.config = network, config
        shares = torch.tensor([1.0 if kind.listed else config.number_weight for kind in network.columns]).to(network.c)
        self.shares = None if bool((shares == shares[0]).all()) else shares  # of the columns in the loss
        self.groups = Groups.of(network)
        self.pairs = CountedPairs(network, rows, weights) if config.pairs and config.segments > 1 else None
        prepared = rows.inputs is not None and rows.targets is not None
        stored = network.stores(0) if config.whole_rows else True
        self.units = network.columns.inputs + network.columns.outputs
        explicit = (prepared or self.units <= MOST_UNITS) and stored and ExplicitLoss.supported(network)
        self.explicit = ExplicitLoss(network, self.shares) if explicit else None

    def questions(self, rows: Evidence, update: int, places: Tensor | None = None, of: int = 0) -> Questions:
        """What the updates from ``update`` on ask of these rows; of some ``of`` more, ``places`` says which."""
        config, generator, rows = self.config, self._generator(update, ENTRIES, rows), self._prepared(rows)
        generator.rows, generator.of = places, of
        parts = self._parts(rows, generator, config.nearly_complete) if config.segments > 1 else None
        if config.whole_rows and config.incomplete_rows:
            rows = hide_at_random(rows, config.incomplete_rows, generator, self.groups)
        return Questions(rows, parts, self._whole(rows) if self.explicit is not None and config.whole_rows else None)

    def batches(self, data: Evidence, rows: Tensor, update: int, places: Tensor | None = None) -> list[Questions]:
        """What the updates from ``update`` on ask of these rows of the data, for each update.

        The rows are those of whole batches, one after the other; ``places`` says which of them a worker takes.
        """
        config, device = self.config, rows.device
        own = torch.arange(len(rows)) if places is None else places
        numbers = own // config.batch_size
        sizes = numbers.bincount().tolist()
        whole = [self._mask_of_whole_rows(update + number) is not None for number in range(len(sizes))]
        if self.explicit is None or config.segments < max(2, self.network.connectivities.positions):
            drawn = self.questions(data[rows if places is None else rows[own]], update, places, len(rows))
            return [drawn[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]
        # A loss that is written out needs the parts of rows or the whole ones, not both.
        generator, flags = self._generator(update, ENTRIES, data), torch.tensor(whole)[numbers]
        generator.of = len(rows)
        found: dict[bool, Questions] = {}
        for is_whole in sorted(set(whole)):
            which = own[flags == is_whole].to(device)
            generator.rows, some = which, self._prepared(data[rows[which]])
            if not is_whole:
                found[is_whole] = Questions(some, parts=self._parts(some, generator, config.nearly_complete))
                continue
            some = (
                hide_at_random(some, config.incomplete_rows, generator, self.groups) if config.incomplete_rows else some
            )
            found[is_whole] = Questions(some, whole=self._whole(some))
        ends, batches = {False: 0, True: 0}, []
        for size, is_whole in zip(sizes, whole, strict=True):
            ends[is_whole] += size
            batches.append(found[is_whole][ends[is_whole] - size : ends[is_whole]])
        return batches

    def __call__(
        self, questions: Questions, update: int, first_row: int, workers: Workers = ALONE, of: int | None = None
    ) -> Loss:
        """The loss of a batch in update ``update``; ``first_row`` rows were seen before it.

        Of several workers, each computes what its share contributes; the batch has ``of`` rows in all.
        """
        config, family, batch = self.config, self.network.connectivities, questions.rows
        generator, share = self._generator(update, DROPOUT, batch), workers.share(len(batch) if of is None else of)
        generator.rows, generator.of = None if share.whole else share.rows, share.of
        whole, by_update = True, config.mask_for == "update"
        mask: int | Connectivity | range = update if by_update else range(first_row, first_row + share.of)[share.rows]
        if (stored := self._mask_of_whole_rows(update)) is not None:
            mask, whole = stored, not config.incomplete_rows
        elif self._asks_questions(update):
            batch, whole = query_at_random(batch, generator, self.groups), False
            mask = family.draw(update if by_update else first_row, lowest=0)
        elif questions.parts is not None:
            return self._loss_of_parts(questions.parts, update, generator, share, workers)
        if self.shares is None:
            log_p = counted = log_likelihood(self.network, batch, mask, generator=generator)
        else:
            factors = log_conditionals(self.network, batch, mask, generator=generator)
            log_p, counted = factors.sum(dim=1), factors @ self.shares
        value = share.part(-counted.sum() / share.of)
        if not whole or not share.counts:
            return Loss(value, None)
        return Loss(value, -log_p.detach().mean(), len(batch))

    def differentiate(
        self, questions: Questions, update: int, first_row: int, workers: Workers = ALONE, of: int | None = None
    ) -> Loss:
        """The loss of a batch, as above; each parameter that it depends on gets its gradient."""
        explicit, config, mask = self.explicit, self.config, self._mask_of_whole_rows(update)
        share = workers.share(len(questions) if of is None else of)
        parts = questions.parts if mask is None else questions.whole
        if explicit is None or parts is None or (mask is None and self._asks_questions(update)):
            loss = self(questions, update, first_row, workers, of)
            loss.value.backward()
            return loss._replace(value=loss.value.detach())
        targets = parts.rows.targets
        targets = self.network.columns.targets(parts.rows.values) if targets is None else targets
        assert parts.rows.inputs is not None
        assert targets is not None
        masks, pairs = None if mask is None else self.network.stored_masks(mask), None
        if mask is None and self.pairs and update % PAIRS_EVERY == 0:
            which, own, weight = self.pairs.turn(update // PAIRS_EVERY, max(16, share.of // 4), workers)
            pairs = self.pairs, which, config.pairs * PAIRS_EVERY * weight * own.counts
        weights = parts.weights * (share.counts / share.of)
        rows = parts.rows.inputs, targets, parts.asked, weights
        nll, value = explicit.of_rows(*rows, masks=masks, pairs=pairs)
        return self._told(value, nll, parts, share)

    @torch.no_grad()
    def mean_over_orderings(
        self, evidence: Evidence, passes: int, batch_size: int = 1000, workers: Workers = ALONE
    ) -> float:
        """Estimate the sum over rows of the NLL, the mean over orderings, with the same random numbers every time.

        Of several workers, each computes the sum over its share of the rows.
        """
        total = 0.0
        for number in range(passes):
            generator = self._generator(number, ORDERINGS, evidence)
            for _, batch in evidence.split(batch_size):
                parts, share = self._parts(batch, generator), workers.share(len(batch))
                if share.counts:
                    parts = parts if share.whole else parts[share.rows]
                    total += float((self._surprise(parts).sum(dim=1) * parts.scale).sum())
        return total / passes

    def _loss_of_parts(
        self, parts: Parts, update: int, generator: BatchGenerator, share: Share, workers: Workers
    ) -> Loss:
        surprise = self._surprise(parts, generator)
        nll = surprise.sum(dim=1)
        loss = nll if self.shares is None else surprise @ self.shares
        value = share.part((loss * parts.weights).sum() / share.of)
        if self.pairs and update % PAIRS_EVERY == 0:
            loss = self.pairs.loss(update // PAIRS_EVERY, max(16, share.of // 4), generator, workers)
            value = value + self.config.pairs * PAIRS_EVERY * loss
        return self._told(value, nll.detach(), parts, share)

    def _told(self, value: Tensor, nll: Tensor, parts: Parts, share: Share) -> Loss:
        """A loss with the NLL of whole rows that parts of rows estimate: none, if all rows are nearly complete."""
        counted = int(parts.scale.count_nonzero()) if share.counts else 0
        return Loss(value, nll @ parts.scale / counted, counted) if counted else Loss(value, None)

    def _prepared(self, rows: Evidence) -> Evidence:
        """The rows with what losses that are written out need, unless that of so many rows takes too much memory."""
        few = self.explicit is not None and len(rows) * self.units <= MOST_PREPARED
        return rows.prepared(self.network) if few else rows

    def _parts(self, rows: Evidence, generator: torch.Generator, nearly_complete: float = 0.0) -> Parts:
        """Rows with a random part of each given, its input units, and the weights of all other entries."""
        rows, nearly = give_at_random(rows, generator, nearly_complete, groups=self.groups)
        inputs = self.network.columns.encode(rows.values) if rows.inputs is None else rows.inputs
        assert rows.given is not None
        given, observed = rows.given.to(inputs.dtype), rows.is_observed.to(inputs.dtype)
        asked = observed - given
        of_rows, of_asked = observed, asked
        if self.groups is not None:
            of_rows, of_asked = (self.groups.any_of(each).to(each.dtype) for each in (observed, asked))
        scale = of_rows.sum(dim=1) / of_asked.sum(dim=1).clamp_(min=1)
        weights, scale = (scale.sqrt(), scale.masked_fill(nearly, 0)) if nearly_complete else (scale, scale)
        return Parts(replace(rows, inputs=inputs * self.network.columns.per_unit(given)), asked, weights, scale)

    def _whole(self, rows: Evidence) -> Parts:
        """Rows of which all is asked for and, as far as the mask allows, seen."""
        asked = rows.is_observed.to(rows.values.dtype)
        inputs = self.network.columns.encode(rows.values) if rows.inputs is None else rows.inputs
        if rows.observed is not None:
            inputs = inputs * self.network.columns.per_unit(asked)
        ones = torch.ones_like(asked[:, 0])
        return Parts(replace(rows, inputs=inputs), asked, ones, ones * (not self.config.incomplete_rows))

    def _surprise(self, parts: Parts, generator: torch.Generator | None = None) -> Tensor:
        """The NLL of each entry that is asked for, given what is given and nothing else. Shape: (rows, columns)."""
        network, rows = self.network, parts.rows
        assert rows.inputs is not None
        assert rows.given is not None
        units = dense_outputs(network, rows.inputs, rows.given, dropout=network.training, generator=generator)
        logits = network.columns.coupled(units.t(), rows.values, rows.observed, rows.given)
        return -(network.columns.log_prob(logits, rows.values, rows.targets) * parts.asked)

    def _mask_of_whole_rows(self, update: int) -> int | None:
        """The mask of an update that predicts whole rows; ``None`` for all other updates."""
        if not self.config.whole_rows or self._bits(update, WHOLE_ROW) >= self.config.whole_rows * 2**63:
            return None
        return self._bits(update, WHOLE_ROW_MASK) % self.network.connectivities.whole_rows

    def _asks_questions(self, update: int) -> bool:
        """Whether an update for parts of rows has random queries and a mask."""
        # With a segment for each column no unit is masked, and random queries are those of orderless training.
        family = self.network.connectivities
        masked = family.any_order and self.config.segments < family.positions
        return masked and self._bits(update, QUERY) < self.config.questions * 2**63

    def _generator(self, number: int, stream: int, evidence: Evidence) -> BatchGenerator:
        generator = BatchGenerator(evidence.values.device)
        generator.manual_seed(self._bits(number, stream))
        return generator

    def _bits(self, number: int, stream: int) -> int:
        return random_bits(self.config.seed, stream, number)
