r"""The distribution of every column that is not observed, from one pass for each mask.

With all of them missing, no column sees another, and every output of an any-order model sees what is observed and
nothing else: the distribution of each is :math:`p(x_d \mid x_\text{observed})`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from made.columns.group import Rows
from made.network.connectivity import Connectivity
from made.network.dense import dense_outputs
from made.queries.conditional import Prediction, masks_agree, predict
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.likelihood import outputs
from made.queries.schedule import Pass, RowGroup


@torch.no_grad()
def marginals(ensemble: Ensemble, rows: Rows | Evidence) -> dict[int, Prediction]:
    """The distributions of the missing values, by column: :func:`made.queries.conditional.predict` for each.

    All rows lack the same columns. A model of fixed orderings refuses what its orderings do not allow.

    Example:
        >>> from made import Connectivities, Ensemble, Network
        >>> ensemble = Ensemble(Network(3, Connectivities(3, (8,), masks=None)))
        >>> list(marginals(ensemble, [[1, float("nan"), float("nan")]]))
        [1, 2]
    """
    network, evidence = ensemble.network, Evidence.of(ensemble.network, rows)
    observed = evidence.is_observed
    if not (observed == observed[:1]).all():
        raise ValueError("'rows' should all lack the same columns.")
    known = observed[:1].flatten().tolist()
    missing = [d for d, is_known in enumerate(known) if not is_known]
    if not ensemble.any_order or len(known) == 1 or not len(evidence):
        return {d: predict(ensemble, evidence, d) for d in missing}
    if masks_agree(ensemble, any(known)) or not network.depth:
        x = network.columns.encode(evidence.values) * network.columns.per_unit(observed)
        units = [network.columns.coupled(dense_outputs(network, x, observed).t(), evidence.values, observed, observed)]
        log_weights = [0.0]
    else:
        evidence = Evidence(evidence.values, observed, observed if any(known) else None)
        (group,) = ensemble.schedule.groups(evidence)
        units, log_weights = _under_each_mask(ensemble, evidence, group), group.log_weights
    together = torch.stack(units)  # (masks, rows, outputs)
    weights = together.new_tensor(log_weights).unsqueeze(1).expand(together.shape[:2]).log_softmax(dim=0)
    return {d: Prediction(network.columns[d], weights, together[..., network.output_units(d)]) for d in missing}


def _under_each_mask(ensemble: Ensemble, evidence: Evidence, group: RowGroup) -> list[Tensor]:
    """The output units under each mask, (rows, outputs)."""
    network, units = ensemble.network, []
    for number in group.masks:
        passes = group.passes(number)
        if evidence.given is not None:
            # Asked for alone, each column would be the last; the others are not seen, so that all can be.
            degrees = network.connectivities.draw(number, lowest=0).hidden
            last = np.full(len(network.columns), len(network.columns), dtype=np.int64)
            passes = [Pass(Connectivity(last, degrees), None)]
        together = evidence.values.new_empty(len(evidence), network.columns.outputs)
        for connectivity, columns in passes:
            layout = network.layout(connectivity, rows=len(evidence))
            found = layout.restore(outputs(network, layout, evidence), network.depth + 1)
            own = ... if columns is None else torch.from_numpy(columns[network.columns.output_columns])
            together[:, own] = found[:, own]
        units.append(together)
    return units
