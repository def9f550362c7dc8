"""The number of threads of an update: one or all, whichever is faster, if the gradient does not depend on it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from made.network.threads import Threads
from made.queries.evidence import Evidence
from made.training.objective import Objective

__all__ = ["update_threads"]


def update_threads(objective: Objective, parameters: Sequence[Tensor], batch: Evidence) -> Threads:
    """Threads for updates, checked by the gradient of a batch.

    Arguments:
        objective: the loss.
        parameters: what it is differentiated by.
        batch: as many rows as an update has.
    """

    def gradient() -> list[Tensor]:
        loss = objective(objective.questions(batch, 0), 0, 0).value
        found = torch.autograd.grad(loss, list(parameters), allow_unused=True)
        gradients = [each for each in found if each is not None]
        return [*gradients, get_total_norm(gradients)]  # which clipping takes

    threads = Threads()
    if torch.get_num_threads() > 1:
        threads.check(len(batch), gradient)
    return threads
