"""MADE: a masked autoencoder that turns a table into a distribution. The public names, imported when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from made._version import __version__ as __version__
from made.errors import DataError, Diverged, MadeError, ModelError, ParameterError, QuestionError, UnseenWarning

if TYPE_CHECKING:
    from made.columns.base import Column
    from made.columns.discrete import Binary, Categorical
    from made.columns.group import Columns
    from made.columns.logistic import Numeric
    from made.columns.onehot import Exclusive
    from made.columns.ordinal import Ordinal
    from made.columns.registry import register
    from made.estimator import MADE, MADEClassifier, MADEImputer, MADEOutlierDetector, MADERegressor
    from made.model.model import Model
    from made.network.connectivity import Connectivities, Connectivity
    from made.network.masked import Network
    from made.queries.ensemble import Ensemble
    from made.queries.evidence import Evidence
    from made.queries.likelihood import log_conditionals, log_likelihood, log_prob, mean_and_interval
    from made.queries.sampling import sample
    from made.training.config import TrainingConfig
    from made.training.train import train

# The module of each public name. It is imported when the name is first used, because importing torch takes longer than
# printing the help of a command.
_MODULES = {
    "MADE": "estimator",
    "MADEClassifier": "estimator",
    "MADEImputer": "estimator",
    "MADEOutlierDetector": "estimator",
    "MADERegressor": "estimator",
    "Model": "model.model",
    "Column": "columns.base",
    "Columns": "columns.group",
    "Binary": "columns.discrete",
    "Categorical": "columns.discrete",
    "Ordinal": "columns.ordinal",
    "Numeric": "columns.logistic",
    "Exclusive": "columns.onehot",
    "register": "columns.registry",
    "Connectivities": "network.connectivity",
    "Connectivity": "network.connectivity",
    "Network": "network.masked",
    "Ensemble": "queries.ensemble",
    "Evidence": "queries.evidence",
    "log_conditionals": "queries.likelihood",
    "log_likelihood": "queries.likelihood",
    "log_prob": "queries.likelihood",
    "mean_and_interval": "queries.likelihood",
    "sample": "queries.sampling",
    "TrainingConfig": "training.config",
    "train": "training.train",
}

__all__ = [
    "MADE",
    "Binary",
    "Categorical",
    "Column",
    "Columns",
    "Connectivities",
    "Connectivity",
    "DataError",
    "Diverged",
    "Ensemble",
    "Evidence",
    "Exclusive",
    "MADEClassifier",
    "MADEImputer",
    "MADEOutlierDetector",
    "MADERegressor",
    "MadeError",
    "Model",
    "ModelError",
    "Network",
    "Numeric",
    "Ordinal",
    "ParameterError",
    "QuestionError",
    "TrainingConfig",
    "UnseenWarning",
    "log_conditionals",
    "log_likelihood",
    "log_prob",
    "mean_and_interval",
    "register",
    "sample",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"made.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'made' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
