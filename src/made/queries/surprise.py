r"""The surprise of each entry: :math:`-\log p(x_d \mid x_{<d})`, the mean over masks."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from made.queries.batches import blocks
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.likelihood import log_conditionals

__all__ = ["surprise"]


@torch.no_grad()
def surprise(ensemble: Ensemble, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The surprise of each entry, NaN for a missing value. Shapes: (rows, columns) to (rows, columns).

    The sum over a row is the mean over masks of its NLL, an upper bound of the NLL of the ensemble.

    Example:
        >>> from made import Connectivities, Ensemble, Network
        >>> ensemble = Ensemble(Network(2, Connectivities(2, (4,), masks=None), initialization="zero-output"))
        >>> surprise(ensemble, np.array([[1, np.nan]])).round(3)
        array([[0.693,   nan]])
    """
    network, total = ensemble.network, np.zeros(codes.shape)
    for block in blocks(len(codes)):
        evidence = Evidence.of(network, codes[block])
        for group in ensemble.schedule.groups(evidence):
            part, index, masks = evidence[group.rows], block.start + group.rows.cpu().numpy(), group.distinct_masks
            for connectivity, columns in (each for number in masks for each in group.passes(number)):
                factors = log_conditionals(network, part, connectivity).cpu().numpy() / len(masks)
                total[index] -= factors if columns is None else np.where(columns, factors, 0)
    return np.where(np.isnan(codes), np.nan, total)
