"""Train a network in one call, without a folder or a schema."""

from __future__ import annotations

from collections.abc import Callable

from made.columns.group import Rows
from made.network.masked import Network
from made.queries.evidence import Evidence
from made.training.config import TrainingConfig
from made.training.state import Epoch
from made.training.trainer import Trainer


def train(
    network: Network,
    rows: Rows | Evidence,
    valid: Rows | Evidence | None,
    config: TrainingConfig | None = None,
    *,
    report: Callable[[Epoch], None] = lambda epoch: None,
) -> list[Epoch]:
    """Train a network by maximum likelihood; it ends with the weights of its best epoch. See :class:`Trainer`.

    Example:
        >>> import torch
        >>> from made import Connectivities, Network
        >>> rows = torch.randint(2, (100, 1)).float().expand(-1, 3)
        >>> network = Network(3, Connectivities(3, (16,)))
        >>> history = train(network, rows[:80], rows[80:], TrainingConfig(max_epochs=5))
        >>> len(history)
        5
    """
    trainer = Trainer(network, rows, valid, TrainingConfig() if config is None else config)
    history = trainer.run(report=report)
    trainer.choose()
    return history
