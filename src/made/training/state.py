"""The state of a training run: its epochs, and everything needed to resume it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from made.network.layout import SortedLayout
from made.network.masked import Network

FINALISTS = 3  # the best epochs by few masks, among which the ensemble chooses


@dataclass(frozen=True)
class Epoch:
    """The result of an epoch: mean negative log-likelihoods in nats.

    The training NLL is measured during the updates, with their masks and dropout, over batches of whole rows; NaN if
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
        """An epoch from untrusted facts."""
        names = [each.name for each in dataclasses.fields(cls)]
        if facts.keys() != set(names) or not all(_is_number(value) for value in facts.values()):
            raise ValueError("an epoch of the history is malformed.")
        return cls(**facts)


@dataclass
class State:
    """The state of a run after some update.

    Attributes:
        update: number of updates so far.
        loss: sum of the loss over batches of whole rows, in this epoch so far.
        rows: number of these rows.
        waited: epochs since the best one.
        seconds: duration so far.
        history: the epochs so far.
        finalists: the best epochs, the best first: validation NLL and number.
        tensors: weights by name, such as ``weights.W1``, ``optimizer.W1.exp_avg``, ``average.W1``, ``best0.W1``.
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
        """A copy that does not share tensors."""
        return State.of(self.facts(), {name: tensor.clone() for name, tensor in self.tensors.items()})

    @classmethod
    def of(cls, facts: dict[str, Any], tensors: dict[str, Tensor]) -> State:
        """The inverse of :meth:`facts`; the facts may be untrusted."""
        history = [Epoch.of(epoch) for epoch in facts["history"]]
        finalists = [(float(nll), int(number)) for nll, number in facts["finalists"]]
        state = cls(**(facts | {"history": history, "finalists": finalists}), tensors=tensors)
        counts = (state.update, state.waited, state.rows)
        if not all(isinstance(count, int) and 0 <= count < 2**62 for count in counts) or len(finalists) > FINALISTS:
            raise ValueError("the state of training is malformed.")
        if not all(_is_number(x) and math.isfinite(x) for x in (state.loss, state.seconds, *(n for n, _ in finalists))):
            raise ValueError("the state of training has a number that is not finite.")
        return state


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def unpacked(network: Network, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The tensors of a state as the network stores its weights.

    Earlier versions packed the matrices of small networks of a single connectivity, too.
    """
    if network.packed or not network.connectivities.single:
        return tensors
    layout, found = network.layout(packed=True), dict(tensors)
    assert isinstance(layout, SortedLayout)
    for key, numbers in tensors.items():
        matrix = network.matrices.get(key.split(".")[1]) if "." in key else None
        if matrix is not None and numbers.shape == (layout.stairs(matrix).size,):
            found[key] = layout.stairs(matrix).unpack(numbers.to(network.c.device))
    return found
