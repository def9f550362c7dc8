r"""Calibration: how far the output units of a column stray from their biases, by how many other columns they see.

One network is fitted to all columns and to all questions at once. Its answers about columns that are mostly noise are
too sure, those about columns that nearly follow from the others not sure enough. So the output units y of a column with
the biases c become :math:`c + s\,(y - c)`, where

.. math:: \log s = f\,(\alpha + \beta\, 2^{-h}),

f is the share of the other columns that the units see, and h the number of those that they do not see. Where nothing is
seen, s is 1. It does not depend on the value of the column, so that distributions remain proper. Alpha and beta of each
column are fitted to validation rows (:mod:`made.training.calibrate`).
"""

from __future__ import annotations

import torch
from torch import Tensor

MOST = 4.0  # of |log s|


def scales(calibration: Tensor, seen: Tensor, columns: int) -> Tensor:
    """The factors s.

    Arguments:
        calibration: alpha and beta of columns, (2, ...).
        seen: the number of other columns that are seen; broadcasts with alpha.
        columns: the number of columns of the table.

    Example:
        >>> scales(torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1, 2]), columns=3)
        tensor([1.0000, 1.2840, 2.7183])
    """
    alpha, beta = calibration
    seen = seen.to(alpha.dtype)
    share, missed = seen / max(columns - 1, 1), columns - 1 - seen
    factors: Tensor = (share * (alpha + beta * torch.exp2(-missed))).clamp(-MOST, MOST).exp()
    return factors
