r"""A scale for amounts that range over orders of magnitude: straight near a centre, logarithmic far from it.

.. math:: u = \operatorname{asinh}\frac{x - \text{center}}{\text{curve}}, \qquad
    \log \frac{du}{dx} = -\log \text{curve} - \log \cosh u.

A skewed amount is nearly symmetric on such a scale, and a mixture of logistics has far less to do. The slope is exact,
so that a density of u is one of x, in the data's own units.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

__all__ = ["bend", "choose_curve", "log_slope", "unbend"]

# How much better a normal distribution has to fit on the curved scale, in nats for a value, for a scale to be curved.
GAIN = 0.05
# Where the scale may turn from straight to logarithmic: quantiles of the distance from the centre.
TURNS = (0.05, 0.25, 0.5, 0.75)
# Beyond it, the inverse of the scale would overflow; amounts are never e^300 times as large as others.
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
    """Where the scale should turn logarithmic for these values; 0 for a straight scale.

    Each candidate is judged as a Box-Cox transformation is: by the likelihood of a normal distribution on that scale,
    of the values themselves. The outermost hundredth on each side has no say, so that a few outliers do not decide.
    """
    away = values - center
    least, most = np.quantile(away, [0.01, 0.99])
    inside = away[(away >= least) & (away <= most)]
    if len(inside) < 20 or inside.min() == inside.max():
        return 0.0
    # In units of the largest, so that nothing overflows; what is gained does not depend on units.
    unit = float(np.abs(inside).max())
    inside = inside / unit
    straight = -math.log(inside.std())
    best, found = GAIN, 0.0
    for turn in np.quantile(np.abs(inside), TURNS).tolist():
        curve = max(turn or float(np.abs(inside[inside != 0]).min()), 1e-100)  # lest a quotient overflow
        bent = np.arcsinh(inside / curve)
        gain = -math.log(bent.std()) - float(np.log(curve * np.cosh(bent)).mean()) - straight
        if gain > best:
            best, found = gain, curve * unit
    return found
