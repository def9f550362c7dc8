r"""Calibration: how far the output units of a column stray from their biases, by how many other columns they see.

One network is fitted to all columns and to all questions at once. Its answers about columns that are mostly noise are
too sure, those about columns that nearly follow from the others not sure enough. So the output units y of a column with
the biases c become :math:`c + s\,(y - c) + t`, where

.. math:: \log s = f\,(\alpha + \beta\, 2^{-h}), \qquad t = f\,(\gamma + \delta\, 2^{-h}),

f is the share of the other columns that the units see, and h the number of those that they do not see. The shift t is
added to logarithms of widths only (:attr:`made.columns.base.Column.log_widths`): intervals get wider or narrower. Where
nothing is seen, s is 1, and t is 0. Neither depends on the value of the column, so that distributions remain proper.
The four numbers of each column are fitted to validation rows (:mod:`made.training.calibrate`).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

MOST = 4.0  # of |log s| and of |t|
NUMBERS = 4  # of each column


def calibrated(y: Tensor, c: Tensor, scale: Tensor, shift: Tensor, log_widths: Tensor) -> Tensor:
    """Calibrated output units.

    Arguments:
        y: output units.
        c: their biases.
        scale, shift: s and t of each unit.
        log_widths: 1 for the logarithm of a width, otherwise 0.
    """
    return c + (y - c) * scale + log_widths * shift


def adjustments(calibration: Tensor, seen: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """The factors s, and the shifts t.

    Arguments:
        calibration: alpha, beta, gamma and delta of columns, (4, ...).
        seen: the number of other columns that are seen; broadcasts with alpha.
        columns: the number of columns of the table.

    Example:
        >>> adjustments(torch.tensor([[0.0], [1.0], [2.0], [0.0]]), torch.tensor([0, 1, 2]), columns=3)
        (tensor([1.0000, 1.2840, 2.7183]), tensor([0., 1., 2.]))
    """
    alpha, beta, gamma, delta = calibration
    seen = seen.to(alpha.dtype)
    share, missed = seen / max(columns - 1, 1), columns - 1 - seen
    unseen = torch.exp2(-missed)
    log_scale, shift = share * (alpha + beta * unseen), share * (gamma + delta * unseen)
    return log_scale.clamp(-MOST, MOST).exp(), shift.clamp(-MOST, MOST)


def completed(calibration: Tensor) -> Tensor:
    """The calibration of a model folder of an earlier format, which has no gamma and no delta."""
    return F.pad(calibration, (0, 0, 0, NUMBERS - len(calibration)))
