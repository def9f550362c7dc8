"""A network and the masks that its answers average."""

from __future__ import annotations

from dataclasses import dataclass

from made.network.masked import Network

__all__ = ["Ensemble"]


@dataclass(frozen=True)
class Ensemble:
    """A network, and how it answers.

    Attributes:
        network: the network.
        masks: how many masks an unlimited model averages; ``None`` for all of a finite list.
        segments: see :func:`made.log_prob`.
    """

    network: Network
    masks: int | None = None
    segments: int = 1
