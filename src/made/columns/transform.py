r"""A scale for amounts that range over orders of magnitude: linear near a centre, logarithmic far from it.

.. math:: u = \operatorname{asinh}\frac{x - \text{center}}{\text{curve}}, \qquad
    \log \frac{du}{dx} = -\log \text{curve} - \log \cosh u.

A skewed amount is nearly symmetric on such a scale, and easier for a mixture of logistics. The slope turns a density of
u into one of x, in the units of the data.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

# The least gain of a curved scale: log-likelihood of a normal distribution, in nats per value.
GAIN = 0.05
# Candidates for the turn from linear to logarithmic: quantiles of the distance from the centre.
TURNS = (0.05, 0.25, 0.5, 0.75)
# Beyond it, the inverse of the scale would overflow.
FARTHEST = 300.0


def bend(values: Tensor, center: Tensor, curve: Tensor) -> Tensor:
    """Values on the curved scale.

    Example:
        >>> zero, one = torch.tensor(0.0), torch.tensor(1.0)
        >>> bend(torch.tensor([0.0, 1000.0, 1e6]), zero, one)
        tensor([ 0.0000,  7.6009, 14.5087])
    """
    return torch.asinh((values - center) / curve)


def unbend(bent: Tensor, center: Tensor, curve: Tensor) -> Tensor:
    """The inverse of :func:`bend`."""
    return center + curve * torch.sinh(bent.clamp(-FARTHEST, FARTHEST))


def log_slope(bent: Tensor, curve: Tensor) -> Tensor:
    """log du/dx, where ``bent`` is u."""
    size = bent.abs()
    return math.log(2) - size - F.softplus(-2 * size) - curve.log()


def choose_curve(values: NDArray[np.float64], center: float) -> float:
    """The ``curve`` of the scale for these values; 0 for a straight scale.

    Candidates are compared like Box-Cox transformations, by the likelihood of the values under a normal distribution on
    that scale. The outermost 1 % on each side is left out, so that a few outliers do not decide.
    """
    away = values - center
    least, most = np.quantile(away, [0.01, 0.99])
    inside = away[(away >= least) & (away <= most)]
    if len(inside) < 20 or inside.min() == inside.max():
        return 0.0
    # Divided by the largest, so that nothing overflows; the gain does not depend on units.
    unit = float(np.abs(inside).max())
    inside = inside / unit
    straight = -math.log(inside.std())
    best, found = GAIN, 0.0
    for turn in np.quantile(np.abs(inside), TURNS).tolist():
        curve = max(turn or float(np.abs(inside[inside != 0]).min()), 1e-100)  # so that quotients do not overflow
        bent = np.arcsinh(inside / curve)
        gain = -math.log(bent.std()) - float(np.log(curve * np.cosh(bent)).mean()) - straight
        if gain > best:
            best, found = gain, curve * unit
    return found
