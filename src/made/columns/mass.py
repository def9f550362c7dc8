r"""How much of a column's distribution lies between two values, and draws from what lies there.

Of a logistic, what lies between a and b is :math:`\sigma(b) - \sigma(a) = \sigma(b) \sigma(-a) (1 - e^{a - b})`, and
the value below which the share u of it lies has the odds

.. math:: \frac{\sigma(a) + u (\sigma(b) - \sigma(a))}{\sigma(-b) + (1 - u) (\sigma(b) - \sigma(a))},

both in logarithms, so that no digits are lost where almost nothing is.
"""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor
from torch.nn import functional as F

from made.columns.base import Column
from made.columns.logistic import Numeric
from made.columns.point_masses import CODE, Spiked

__all__ = ["MISSING", "draw_within", "log_mass"]

# Where an answer that is missing is among the numbers: after all of them.
MISSING = sys.float_info.max


def log_mass(kind: Column, units: Tensor, low: float | Tensor, high: float | Tensor) -> Tensor:
    """The log probability of the values of a column of numbers from ``low`` up to, but without, ``high``.

    They are values of the table; where there are steps, they lie between two of them. Both may be tensors, of a shape
    that goes with that of the answer. Shapes: (..., outputs) to (...).

    Example:
        >>> kind = Numeric(location=170, scale=10, step=1)
        >>> units = kind.initial().double()
        >>> ages = kind.inner(torch.arange(180.0, 190.0))
        >>> one_by_one = kind.log_prob(units.expand(10, -1), ages).exp().sum()
        >>> bool(log_mass(kind, units, 179.5, 189.5).exp().isclose(one_by_one))
        True
    """
    if isinstance(kind, Spiked):
        shares, rest = kind._parts(units)
        log_rest = (shares[..., -1] + log_mass(kind.rest, rest, low, high)).unsqueeze(-1)
        points = shares[..., :-1].where(_spikes_inside(kind, low, high, units), -math.inf)
        return torch.cat([points.expand(*log_rest.shape[:-1], -1), log_rest], dim=-1).logsumexp(dim=-1)
    assert isinstance(kind, Numeric)
    weight, _, _, _, _, log_share, log_all = _between(kind, units, low, high)
    return (weight + log_share).logsumexp(dim=-1) - log_all


def draw_within(kind: Column, units: Tensor, low: float | Tensor, high: float | Tensor, uniform: Tensor) -> Tensor:
    """Values from what lies between two, as the kind works on them, by uniform random numbers.

    Shapes: (..., outputs), (...) to (...).
    """
    if isinstance(kind, Spiked):
        shares, rest = kind._parts(units)
        log_rest = shares[..., -1:] + log_mass(kind.rest, rest, low, high).unsqueeze(-1)
        points = shares[..., :-1].where(_spikes_inside(kind, low, high, units), -math.inf)
        weight = torch.cat([points, log_rest], dim=-1)
        chosen, within = choose(weight, uniform)
        beside = kind._from_rest(draw_within(kind.rest, rest, low, high, within))
        return torch.where(chosen < kind.count, ((chosen + 1) * CODE).to(beside.dtype), beside)
    assert isinstance(kind, Numeric)
    weight, mean, scale, begin, end, log_share, _ = _between(kind, units, low, high)
    chosen, within = choose(weight + log_share, uniform)
    eps = torch.finfo(units.dtype).eps
    within = within.clamp(eps, 1 - eps)
    mean, scale, log_share = (each.gather(-1, chosen.unsqueeze(-1)).squeeze(-1) for each in (mean, scale, log_share))
    below = torch.logaddexp(F.logsigmoid((begin - mean) / scale), within.log() + log_share)
    above = torch.logaddexp(F.logsigmoid((mean - end) / scale), torch.log1p(-within) + log_share)
    return kind._on_steps((mean + scale * (below - above)).clamp(begin, end))


def _spikes_inside(kind: Spiked, low: float | Tensor, high: float | Tensor, units: Tensor) -> Tensor:
    """Which points lie between two values. Shape: (..., points)."""
    low, high = (torch.as_tensor(end, dtype=torch.float64).unsqueeze(-1) for end in (low, high))
    spikes = torch.tensor([min(spike, MISSING) for spike in kind.spikes], dtype=torch.float64)
    return ((low <= spikes) & (spikes < high)).to(units.device)


def choose(log_weight: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """One of several, by their weights, and a random number that is uniform again: where in its share the first lies.

    Where no weight is above zero, all are as likely. Shapes: (..., several), (...) to (...), twice.
    """
    share = log_weight.softmax(dim=-1).nan_to_num(1 / log_weight.shape[-1])
    above = share.cumsum(dim=-1)
    uniform = uniform * above[..., -1]
    chosen = (uniform.unsqueeze(-1) >= above[..., :-1]).sum(dim=-1, keepdim=True)
    # Rounding may lead beyond the last one that has a share.
    chosen = torch.where(share.gather(-1, chosen) > 0, chosen, share.argmax(dim=-1, keepdim=True))
    share, above = share.gather(-1, chosen).squeeze(-1), above.gather(-1, chosen).squeeze(-1)
    return chosen.squeeze(-1), ((uniform - above) / share + 1).clamp(0, 1)


def _between(kind: Numeric, units: Tensor, low: float | Tensor, high: float | Tensor) -> tuple[Tensor, ...]:
    """The components, the limits as the kind works on them, and in logarithms what each component has between them.

    The last is what the whole mixture has, which is 1 unless it is cut off at a least value. All but the limits and the
    last are (..., components).
    """
    weight, mean, scale = kind._components(units)
    ends = kind.inner(torch.stack([torch.as_tensor(end, dtype=torch.float64) for end in (low, high)])).to(units)
    log_all = torch.zeros_like(weight[..., 0])
    if kind._bounded:
        edge = kind._edge(units)
        ends = torch.maximum(ends, edge)
        log_all = (weight + F.logsigmoid((mean - edge) / scale)).logsumexp(dim=-1)
    begin, end = ends
    first, last = begin.unsqueeze(-1), end.unsqueeze(-1)
    parts = F.logsigmoid((last - mean) / scale) + F.logsigmoid((mean - first) / scale)
    return weight, mean, scale, begin, end, parts + (-torch.expm1((first - last) / scale)).log(), log_all
