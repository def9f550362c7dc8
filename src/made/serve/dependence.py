r"""The strength of the dependence between each pair of columns, under the model.

The mutual information :math:`I(x_d; x_e) = \sum_v p(x_e = v)\, \mathrm{KL}(p(x_d \mid x_e = v) \,\|\, p(x_d))` takes
one pass for each column e: all values of e are rows of one batch, in which only e is observed. Numbers are shown at a
few quantiles, and their distributions are binned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from made.model.conditionals import Edges, edges_of, shares
from made.model.model import Model
from made.queries.conditional import Prediction
from made.queries.marginals import marginals
from made.tables.field import Field

__all__ = ["dependence"]

MOST_COLUMNS = 40
MOST_VALUES = 30  # of a column that is given, the most likely ones
QUANTILES = 8


def dependence(model: Model) -> dict[str, Any]:
    r"""The strength of each dependence, (of, by): :math:`\sqrt{1 - \exp(-2 I)}`, 0 for none and 1 for a function."""
    fields = model.schema.fields[:MOST_COLUMNS]
    alone = marginals(model.ensemble, model.known(None))
    edges = [edges_of(field, alone[d]) for d, field in enumerate(fields)]
    strength = np.zeros((len(fields), len(fields)))
    for e, field in enumerate(fields):
        values, weights = _contexts(field, alone[e])
        codes = np.full((len(values), len(model.schema.fields)), np.nan)
        codes[:, e] = values
        for d, prediction in marginals(model.ensemble, codes).items():
            if d < len(fields):
                strength[d, e] = _strength(fields[d], prediction, edges[d], weights)
    return {"columns": [field.name for field in fields], "strength": strength}


def _contexts(field: Field, prediction: Prediction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Codes of values of a column, and their probabilities."""
    if not field.listed:
        levels = ((np.arange(QUANTILES) + 0.5) / QUANTILES).tolist()
        values, counts = np.unique(prediction.quantiles(levels).flatten().cpu().numpy(), return_counts=True)
        return values, counts / counts.sum()
    weights = prediction.probabilities(len(field.labels()))[0].double().cpu().numpy()
    most = np.argsort(-weights, kind="stable")[:MOST_VALUES]
    return most.astype(np.float64), weights[most] / weights[most].sum()


def _strength(field: Field, prediction: Prediction, edges: Edges, weights: NDArray[np.float64]) -> float:
    p = shares(field, prediction, edges)  # (contexts, cells)
    mean = weights @ p
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / mean), 0.0)
    return float(np.sqrt(-np.expm1(-2 * max(0.0, float(weights @ terms.sum(axis=1))))))
