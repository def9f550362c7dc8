"""How far a run of training has come: its epochs, and all that it takes to go on."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

__all__ = ["FINALISTS", "Epoch", "State"]

FINALISTS = 3  # the best epochs by few masks, among which many masks choose


@dataclass(frozen=True)
class Epoch:
    """What is known after an epoch: negative log-likelihoods in nats, the mean over rows.

    That of training is under the masks of its updates, with dropout, of the rows that were asked for whole; NaN if
    there were none. Without validation rows, the other two are NaN.
    """

    number: int
    updates: int
    train_nll: float
    valid_nll: float
    best_nll: float
    learning_rate: float
    seconds: float

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Epoch:
        """An epoch from a file, of which nothing is believed."""
        names = [each.name for each in dataclasses.fields(cls)]
        if facts.keys() != set(names) or not all(_is_number(value) for value in facts.values()):
            raise ValueError("an epoch of the history is not one.")
        return cls(**facts)


@dataclass
class State:
    """All that a run is at some update, beside what it was started with.

    Attributes:
        update: how many updates were made.
        loss: the sum of the loss over the rows that were asked for whole, in this epoch so far.
        rows: how many those were.
        waited: the epochs since the best one.
        seconds: how long it ran.
        history: the epochs so far.
        finalists: the best epochs, the best first: validation NLL and number.
        tensors: the weights by name, as ``weights.W1``, ``optimizer.W1.exp_avg``, ``average.W1``, ``best0.W1``.
    """

    update: int = 0
    loss: float = 0.0
    rows: int = 0
    waited: int = 0
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)
    finalists: list[tuple[float, int]] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Everything but the tensors, for JSON."""
        kept = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name != "tensors"}
        return kept | {"history": [dataclasses.asdict(epoch) for epoch in self.history]}

    def copy(self) -> State:
        """The same, of which a run that goes on changes nothing."""
        return State.of(self.facts(), {name: tensor.clone() for name, tensor in self.tensors.items()})

    @classmethod
    def of(cls, facts: dict[str, Any], tensors: dict[str, Tensor]) -> State:
        """The inverse of :meth:`facts`; they may be from a file, so that nothing in them is believed."""
        history = [Epoch.of(epoch) for epoch in facts["history"]]
        finalists = [(float(nll), int(number)) for nll, number in facts["finalists"]]
        state = cls(**(facts | {"history": history, "finalists": finalists}), tensors=tensors)
        counts = (state.update, state.waited, state.rows)
        if not all(isinstance(count, int) and 0 <= count < 2**62 for count in counts) or len(finalists) > FINALISTS:
            raise ValueError("the state of training is not one.")
        if not all(_is_number(x) and math.isfinite(x) for x in (state.loss, state.seconds, *(n for n, _ in finalists))):
            raise ValueError("the state of training has a number that is not finite.")
        return state


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
