"""Fit the calibration of a network to validation rows, by maximum a posteriori (:mod:`made.network.calibration`).

The queries are drawn as in training: each column given all others or random parts of the rows, and whole rows under the
masks of the ensemble. The weights are fixed, so output units are computed only once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.network.calibration import adjustments, calibrated
from made.network.dense import dense_outputs
from made.network.masked import Network
from made.queries.evidence import Evidence
from made.queries.likelihood import outputs
from made.streams import CALIBRATION, random_bits
from made.training.config import TrainingConfig
from made.training.questions import Groups, give_at_random, query_at_random

MOST_ROWS, MOST_UNITS = 2048, 2**18  # of each kind of question
MOST_TIMES = 64  # each validation row is used, if there are few
MASKS = 4  # for whole rows
STEPS = 30

# Output units, rows, and how many columns are seen, (rows, columns).
Answers = tuple[Tensor, Evidence, Tensor]


def calibrate(network: Network, valid: Evidence, config: TrainingConfig) -> None:
    """Set the calibration of a network that has one; each number has a normal prior with mean 0 and variance 1."""
    assert network.calibration is not None
    network.eval()
    network.calibration.zero_()
    columns, c = network.columns, network.c.detach()
    log_widths = columns.log_widths.to(c)
    with torch.no_grad():
        answers = [each for each in _answers(network, valid, config) if each[1].asked.any()]
        if not answers:
            return
        rows = [rows for _, rows, _ in answers]
        asked = [each.asked.to(c.dtype) for each in rows]
        weights = torch.cat([each / each.sum() for each in asked]) * (len(columns) * len(valid) / len(answers))
        units, seen = (torch.cat(part) for part in zip(*((units, seen) for units, _, seen in answers), strict=True))
        values, observed = (torch.cat(part) for part in zip(*((e.values, e.is_observed) for e in rows), strict=True))
        given = torch.cat([torch.zeros_like(each.is_observed) if each.given is None else each.given for each in rows])
        targets = columns.targets(values)
    from scipy.optimize import minimize  # loaded models, which import this module, do not need it

    shape = network.calibration.shape

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        found = torch.from_numpy(parameters).to(c).view(shape).requires_grad_()
        of_columns = adjustments(found.unsqueeze(2), seen.t(), len(columns))
        scale, shift = (columns.per_output(each).t() for each in of_columns)
        y = columns.coupled(calibrated(units, c, scale, shift, log_widths), values, observed, given)
        log_prob = columns.log_prob(y, values, targets)
        total = found.square().sum() / 2 - (log_prob * weights).sum()
        (gradient,) = torch.autograd.grad(total, found)
        return total.item(), gradient.flatten().double().cpu().numpy()

    with torch.enable_grad():
        best = minimize(loss, np.zeros(shape.numel()), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    if np.isfinite(best.x).all():
        network.calibration.copy_(torch.from_numpy(best.x).view(shape))


def _answers(network: Network, valid: Evidence, config: TrainingConfig) -> Iterator[Answers]:
    """Uncalibrated output units, with the values and flags needed to score them."""
    size = max(1, min(MOST_ROWS, MOST_UNITS // network.columns.outputs, MOST_TIMES * len(valid)))
    rows = valid[torch.arange(max(len(valid), size), device=valid.values.device)[:size] % len(valid)]
    generator = torch.Generator(valid.values.device).manual_seed(random_bits(config.seed, CALIBRATION))
    groups = Groups.of(network)
    if config.segments > 1:
        for nearly_complete, most_hidden in ((1.0, 1), (1.0, 3), (0.0, 1)):
            part, _ = give_at_random(rows, generator, nearly_complete, most_hidden, groups)
            assert part.given is not None
            x = network.columns.encode(part.values) * network.columns.per_unit(part.given)
            seen = part.given.sum(dim=1, keepdim=True).expand_as(part.given)
            yield dense_outputs(network, x, part.given).t(), part, seen
    else:
        yield _masked(network, query_at_random(rows, generator, groups), 0)
    for mask in range(min(MASKS, network.connectivities.whole_rows)):
        yield _masked(network, valid[:size], mask)


def _masked(network: Network, rows: Evidence, mask: int) -> Answers:
    """The answers of one pass under a mask."""
    layout = network.layout(mask)
    observed, given = rows.is_observed, rows.given
    flags = observed if given is None else observed & ~given
    arranged = None if given is None else layout.arrange(given)
    seen = network.count_seen(layout, layout.arrange(flags).t().to(rows.values.dtype), arranged)
    units = layout.restore(outputs(network, layout, rows, coupled=False), network.depth + 1)
    return units, rows, layout.restore(seen.t()).expand_as(rows.values)
