"""The number of threads of an update: one or all, whichever is faster, if gradients are bitwise equal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from made.network.threads import Threads
from made.queries.evidence import Evidence
from made.training.objective import Objective


def update_threads(objective: Objective, parameters: Sequence[Tensor], batch: Evidence) -> Threads:
    """Threads for updates, checked by the gradient of a batch.

    Arguments:
        objective: the loss.
        parameters: the parameters to differentiate by.
        batch: as many rows as an update has.
    """

    def gradient() -> list[Tensor]:
        for weight in parameters:
            weight.grad = None
        objective.differentiate(objective.questions(batch, 0), 0, 0)
        gradients = [weight.grad for weight in parameters if weight.grad is not None]
        return [*gradients, *torch._foreach_norm(gradients)]  # noqa: SLF001  # which clipping takes

    threads = Threads()
    if torch.get_num_threads() > 1:
        threads.check(len(batch), gradient)
    return threads
