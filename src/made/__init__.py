"""MADE: a masked autoencoder that turns a table into a distribution you can ask anything."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from made.columns import Binary, Categorical, Column, Columns
    from made.connectivity import Connectivities, Connectivity
    from made.estimator import MADE
    from made.likelihood import log_conditionals, log_likelihood, log_prob, mean_and_interval
    from made.network import Network
    from made.numeric import Numeric
    from made.sampling import sample

__version__ = "0.1.0"

__all__ = [
    "MADE",
    "Binary",
    "Categorical",
    "Column",
    "Columns",
    "Connectivities",
    "Connectivity",
    "Network",
    "Numeric",
    "log_conditionals",
    "log_likelihood",
    "log_prob",
    "mean_and_interval",
    "sample",
]

_ROOMS = {
    "MADE": "estimator",
    **dict.fromkeys(("Binary", "Categorical", "Column", "Columns"), "columns"),
    **dict.fromkeys(("Connectivities", "Connectivity"), "connectivity"),
    **dict.fromkeys(("log_conditionals", "log_likelihood", "log_prob", "mean_and_interval"), "likelihood"),
    "Network": "network",
    "Numeric": "numeric",
    "sample": "sampling",
}


def __getattr__(name: str) -> Any:
    # Loaded when first used, because importing torch takes longer than printing a command's help.
    if name in _ROOMS:
        return getattr(importlib.import_module(f"made.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'made' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
