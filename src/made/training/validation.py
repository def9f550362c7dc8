"""The NLL of validation rows, used for early stopping."""

from __future__ import annotations

import math

from made.network.masked import Network
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.likelihood import log_prob
from made.queries.schedule import PassSchedule
from made.training.config import TrainingConfig
from made.training.objective import Objective
from made.training.workers import Workers


def validation_nll(
    objective: Objective, valid: Evidence | None, masks: int, *, quick: bool = False, workers: Workers
) -> float:
    """The mean NLL of the validation rows under the ensemble; NaN without rows. Workers share the rows.

    Arguments:
        objective: the objective, with the network and the config.
        valid: the validation rows.
        masks: the number of masks, if they are unlimited.
        quick: average at most ``masks`` masks. With segments, the result is then the mean over orderings, estimated by
            one pass for each mask.
        workers: the workers, which all get the same result.
    """
    if valid is None:
        return math.nan
    network, config = objective.network, objective.config
    family = network.connectivities
    most = masks if family.masks is None else family.masks
    numbers = [0] if family.single else range(min(masks, most) if quick else most)
    total = 0.0
    for group in PassSchedule(family, numbers, config.segments).groups(valid):
        if group.segments > 1 and quick:
            total += objective.mean_over_orderings(valid[group.rows], masks, workers=workers)
        elif (share := workers.share(len(group.rows))).counts:
            ensemble = Ensemble(network, group.masks, group.segments)
            total -= log_prob(ensemble, valid[group.rows[share.rows]]).double().sum().item()
    return workers.total(total) / len(valid)


def by_few_masks(network: Network, config: TrainingConfig) -> bool:
    """Whether epochs are compared by fewer masks than queries average."""
    family = network.connectivities
    return not family.single and (family.masks is None or family.masks > config.validation_masks)
