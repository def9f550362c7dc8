"""MADE: a masked autoencoder that turns a table into a distribution you can ask anything."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from made._version import __version__ as __version__

if TYPE_CHECKING:
    from made.columns.base import Column
    from made.columns.discrete import Binary, Categorical
    from made.columns.group import Columns
    from made.columns.logistic import Numeric
    from made.estimator import MADE
    from made.network.connectivity import Connectivities, Connectivity
    from made.network.masked import Network
    from made.queries.ensemble import Ensemble
    from made.queries.likelihood import log_conditionals, log_likelihood, log_prob, mean_and_interval
    from made.queries.sampling import sample

__all__ = [
    "MADE",
    "Binary",
    "Categorical",
    "Column",
    "Columns",
    "Connectivities",
    "Connectivity",
    "Ensemble",
    "Network",
    "Numeric",
    "log_conditionals",
    "log_likelihood",
    "log_prob",
    "mean_and_interval",
    "sample",
]

_MODULES = {
    "MADE": "estimator",
    "Column": "columns.base",
    "Columns": "columns.group",
    **dict.fromkeys(("Binary", "Categorical"), "columns.discrete"),
    **dict.fromkeys(("Connectivities", "Connectivity"), "network.connectivity"),
    **dict.fromkeys(("log_conditionals", "log_likelihood", "log_prob", "mean_and_interval"), "queries.likelihood"),
    "Ensemble": "queries.ensemble",
    "Network": "network.masked",
    "Numeric": "columns.logistic",
    "sample": "queries.sampling",
}


def __getattr__(name: str) -> Any:
    # Loaded when first used, because importing torch takes longer than printing a command's help.
    if name in _MODULES:
        return getattr(importlib.import_module(f"made.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'made' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
