r"""The weights of the masks for whole rows in the mean of probabilities, :math:`p(x) = \sum_r w_r\, p_r(x)`.

One ordering suits a table better than another, so that some masks predict it better. The weights are fitted to
validation rows by expectation-maximization, as those of any mixture, with a prior of one row for each mask.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from made.network.masked import Network
from made.network.threads import single_thread
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.incremental import log_prob_in_order
from made.queries.likelihood import log_prob
from made.streams import BY_COLUMN, philox

PRIOR = 1.0  # rows of each mask
STEPS = 100
LEAST = 0.01  # a mask of less weight is left out: it takes as long as any other
ROWS, ORDERS = 256, 24  # by which the mean over orderings is compared with the masks


def weigh_masks(network: Network, valid: Evidence) -> tuple[float, ...]:
    """The weight of each mask for whole rows; empty if there are no rows by which to weigh several."""
    family = network.connectivities
    count = family.whole_rows
    if not family.incomplete_rows:
        valid = valid[valid.is_observed.all(dim=1)]
    if count < 2 or not len(valid):
        return ()
    found = [log_prob(Ensemble(network, [number]), valid).cpu().double() for number in range(count)]
    weights = mixture_weights(torch.stack(found))
    weights = weights.where(weights >= LEAST, 0)
    return tuple((weights / weights.sum()).tolist())


def better_by_column(network: Network, valid: Evidence, seed: int) -> bool:
    """Whether validation rows are likelier a column at a time, in random orderings, than under masks for whole rows.

    If so, new rows are drawn like that, each in an ordering of its own: a mean over many more orderings than masks.
    """
    family = network.connectivities
    valid = valid[valid.is_observed.all(dim=1)][:ROWS]
    if not len(valid):
        return False
    random = np.random.Generator(philox(seed, BY_COLUMN))
    orders = [random.permutation(family.positions).tolist() for _ in range(ORDERS)]
    with single_thread():
        found = [log_prob_in_order(network, valid, order) for order in orders]
    masks = log_prob(Ensemble(network, family.whole_rows), valid)
    by_column = torch.stack(found).logsumexp(dim=0).mean().item() - math.log(ORDERS)
    return by_column > masks.mean().item()


def mixture_weights(log_p: Tensor) -> Tensor:
    """The weights of the components of a mixture, given log p of each row under each, (components, rows).

    Example:
        >>> mixture_weights(torch.tensor([[-1.0] * 98, [-9.0] * 98]).double()).round(decimals=2)
        tensor([0.9900, 0.0100], dtype=torch.float64)
    """
    weights = log_p.new_full((len(log_p),), 1 / len(log_p))
    for _ in range(STEPS):
        shares = (log_p + weights.log().unsqueeze(1)).softmax(dim=0)
        weights = shares.sum(dim=1) + PRIOR
        weights = weights / weights.sum()
    return weights
