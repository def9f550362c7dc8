r"""Columns of numbers: a mixture of logistics on standardized values, and of integers by areas under its density.

With :math:`z = (x - \text{location}) / \text{scale}` and :math:`t_k = (z - \mu_k) / s_k`, the density is

.. math:: p(x) = \frac{1}{\text{scale}} \sum_k \pi_k \frac{\sigma(t_k) \sigma(-t_k)}{s_k}

in the units of the data. Where values have a step (integers), the probability of one is the area from half a step below
it to half a step above. Areas, and the probability of any interval [a, b), are computed from

.. math:: \sigma(b) - \sigma(a) = \sigma(b) \sigma(-a) (1 - e^{a - b}),

which loses no digits in the tails. A draw at u from a component truncated to [a, b) has the odds

.. math:: \frac{\sigma(a) + u (\sigma(b) - \sigma(a))}{\sigma(-b) + (1 - u) (\sigma(b) - \sigma(a))}.

Amounts that range over orders of magnitude are standardized on a curved scale (:mod:`made.columns.transform`), whose
slope is part of the density. The mixture of a column with a least value is truncated there:
:math:`p(x) / \sum_k \pi_k \sigma((\mu_k - z_\text{low}) / s_k)`.

A billionth of every such distribution is spread over the whole line, so that no finite number is impossible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from made.columns.base import Bound, Column, Summary
from made.columns.choice import choose
from made.columns.form import Form, Target
from made.columns.mixture import LogisticMixture
from made.columns.scale import FARTHEST_BENT, Scaled
from made.columns.settings import NUMERIC_SETTINGS, read_settings
from made.columns.transform import log_slope

# A ten-thousandth of every mixture belongs to ever wider logistics, whose sum has a tail like a power of z: a value far
# from all training data costs tens of nats, not thousands. On a curved scale, one logistic has such a tail.
WIDE_SCALES = (4.0, 20.0, 100.0, 500.0, 2500.0)
WIDE_SHARES = (8e-5, 1.6e-5, 3.2e-6, 6.4e-7, 1.6e-7)
CURVED_WIDE = ((2.0,), (1e-4,))

# A billionth belongs to a Cauchy distribution over the whole line, beyond a bound too: no finite number is impossible,
# and even one 1e15 scales away costs no more than a hundred nats. It is never drawn from.
FAR_SHARE = 1e-9

FIELDS = ("location", "scale", "step", "curve", "center", "low", "knots", "extent", "cuts")
TAIL = 0.025
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)


@dataclass(frozen=True)
class Numeric(Scaled):
    r"""A column of numbers: a mixture of logistics.

    Input units are z, asinh z, which grows slowly in heavy tails, the share of each interval between two knots that
    lies below the value (a piecewise linear encoding), and the side of each cut on which it lies. Output units are, for
    each component, the logit of :math:`\pi_k`, the mean :math:`\mu_k`, and :math:`\log s_k`, which has a lower limit: a
    value that often repeats cannot make a density infinite.

    Arguments:
        location, scale: standardize the values (on the curved scale, if there is one), for example median and spread.
        step: the spacing of values, counted from ``center`` on a curved scale, otherwise from ``location``; 0 for real
            numbers.
        components: the number of logistics.
        curve, center: of :mod:`made.columns.transform`; ``curve=0`` for a straight scale.
        low: the least value that is drawn, on the grid if there is a step. Lower values cost as much as outliers.
        knots: of the piecewise linear encoding, such as quantiles; without any, z is encoded by fixed soft steps.
        extent: the range in which means lie, such as the range of the training values.
        cuts: numbers at which other columns jump (:mod:`made.tables.cuts`).

    Example:
        >>> kind = Numeric(location=170, scale=10, step=1)
        >>> units = kind.initial().expand(401, -1)
        >>> heights = torch.arange(-30.0, 371.0)
        >>> round(kind.log_prob(units, kind.inner(heights)).exp().sum().item(), 4)
        1.0
        >>> amount = Numeric(location=3, scale=1.5, curve=1.0, low=0.0)
        >>> amounts = amount.outer(amount.draw(amount.initial().expand(1000, -1), torch.linspace(0, 0.999, 1000)))
        >>> bool((amounts >= 0).all())
        True
        >>> probability = kind.log_interval(kind.initial(), 179.5, 189.5).exp()
        >>> bool(probability.isclose(kind.log_prob(units, kind.inner(heights)).exp()[210:220].sum().float()))
        True
    """

    kind = "numeric"

    location: float
    scale: float
    step: float = 0.0
    components: int = 8
    curve: float = 0.0
    center: float = 0.0
    low: float = -math.inf
    knots: tuple[float, ...] = ()
    extent: tuple[float, float] = (-math.inf, math.inf)
    cuts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, sound, wanted in (
            ("location", True, ""),
            ("scale", self.scale > 0, " above 0"),
            ("step", self.step >= 0, ", at least 0"),
            ("curve", self.curve >= 0, ", at least 0"),
            ("center", True, ""),
        ):
            if not (math.isfinite(getattr(self, name)) and sound):
                raise ValueError(f"'{name}' should be a finite number{wanted}, not {getattr(self, name)!r}.")
        if not self.low < math.inf:
            raise ValueError(f"'low' should be a number, or -inf for none, not {self.low!r}.")
        if self.components < 1:
            raise ValueError(f"'components' should be at least 1, not {self.components}.")
        if self.curve and max(abs(self.location), self.scale) > FARTHEST_BENT:
            raise ValueError(f"'location' and 'scale' should be at most {FARTHEST_BENT:g} on a curved scale.")
        if self.step:
            self._check_step()
        self._check_inputs()

    @property
    def outputs(self) -> int:
        return 3 * self.components

    @property
    def log_widths(self) -> range:
        return range(2 * self.components, 3 * self.components)

    @property
    def family(self) -> object:
        return Numeric, self.components, self.step > 0, self.curve > 0, self._bounded, self.pieces, len(self.cuts)

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        together = object.__new__(Numeric)
        for name in FIELDS:
            field = torch.tensor([getattr(kind, name) for kind in kinds], dtype=torch.float64)
            object.__setattr__(together, name, field)
        object.__setattr__(together, "components", getattr(kinds[0], "components"))  # noqa: B009
        return together

    def describe(self, show: Callable[[float], str], unit: str = "") -> str:
        parts = [f"around {show(self.middle.item())}", f"spread {self.spread:g}{unit}"]
        parts += [f"steps of {self.step:g}"] if self.step else []
        return ", ".join(parts + ([f"at least {show(self.low)}"] if self._bounded else []))

    def to_json(self) -> dict[str, Any]:
        later = {"curve": self.curve, "center": self.center, "knots": list(self.knots), "cuts": list(self.cuts)}
        later |= {"low": self.low} if self._bounded else {}
        later |= {"extent": list(self.extent)} if math.isfinite(self.extent[0]) else {}
        settings = {key: getattr(self, key) for key in NUMERIC_SETTINGS}
        return settings | {key: value for key, value in later.items() if key == "low" or value}

    @classmethod
    def from_json(
        cls, settings: Mapping[str, Any], values: tuple[Any, ...] = (), missing: bool = False, other: float = 0.0
    ) -> Numeric:
        if values or missing:
            raise ValueError("'values' should be empty, and 'missing' false, where the column is numeric.")
        found = read_settings(
            settings, {"curve": 0.0, "center": 0.0, "low": None, "knots": (), "extent": (), "cuts": ()}
        )
        found["low"] = -math.inf if found["low"] is None else found["low"]
        return cls(**found | {"extent": found["extent"] or (-math.inf, math.inf)})

    def with_cuts(self, cuts: Sequence[float]) -> Numeric:
        return replace(self, cuts=tuple(cuts)) if self.knots else self

    def initial(self) -> Tensor:
        """The components at quantiles of a standard normal distribution, the outermost ones wide."""
        means = torch.special.ndtri((torch.arange(self.components) + 0.5) / self.components)
        log_scales = torch.full((self.components,), -1.0)
        log_scales[[0, -1]] = -0.5
        return torch.cat([torch.zeros(self.components), means, log_scales])

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        weight, mean, scale = self._components(units)
        far = math.log(FAR_SHARE / math.pi) - torch.log1p(values.square())
        if self.stepped:
            begin, width = self._step_of(values)
            far = far + width.log()
            below, width = begin.unsqueeze(-1), width.unsqueeze(-1)
            above = below + width
            area = torch.log(-torch.expm1(-width / scale))
            parts = F.logsigmoid((above - mean) / scale) + F.logsigmoid((mean - below) / scale) + area
        else:
            t = (values.unsqueeze(-1) - mean) / scale
            parts = F.logsigmoid(t) + F.logsigmoid(-t) - scale.log()
        log_p = torch.logsumexp(weight + parts, dim=-1) + math.log1p(-FAR_SHARE)
        if not self.stepped:
            # In double precision: the scale may be out of the range of the network's own.
            slope = -self._like(self.scale, values, double=True).log()
            if self._curved:
                slope = slope + log_slope(self._unstandard(values), self._like(self.curve, values, double=True))
            log_p, far = log_p + slope.to(values.dtype), far + slope.to(values.dtype)
        if not self._bounded:
            return torch.logaddexp(log_p, far)
        low = self._edge(values)
        log_p = log_p - torch.logsumexp(weight + F.logsigmoid((mean - low.unsqueeze(-1)) / scale), dim=-1)
        return torch.where(values < low, far, torch.logaddexp(log_p, far))

    @property
    def form(self) -> Form:
        low, least = (float(self._least) if self._bounded else None), self._least_scale(torch.zeros(0).double())
        scales, shares = self._wide(torch.zeros(0).double())
        above = 0.0 if low is None else float((shares * torch.sigmoid(-low / scales)).sum())
        return Form(0, self.components, self.stepped, float(least), 1 - float(shares.sum()), low, above)

    def target(self, values: Tensor) -> Target:
        # In double precision: the scale may be out of the range of the network's own.
        double = values.double()
        begin, width = self._step_of(values) if self.stepped else (values, torch.zeros_like(values))
        below, above = (each.double().unsqueeze(-1) for each in (begin, begin + width))
        scales, shares = self._wide(double)
        if self.stepped:
            area = -torch.expm1(-width.double().unsqueeze(-1) / scales)
            factor, cell = torch.zeros_like(double), width.double().log()
        else:
            area, factor = 1 / scales, (-self._like(self.scale, double).log()).expand_as(double)
            if self._curved:
                factor = factor + log_slope(self._unstandard(values), self._like(self.curve, double))
            cell = factor
        wide = (shares * torch.sigmoid(above / scales) * torch.sigmoid(-below / scales) * area).sum(dim=-1)
        far = math.log(FAR_SHARE / math.pi) - torch.log1p(double.square()) + cell
        factor = factor + math.log1p(-FAR_SHARE)
        if self._bounded:
            factor = factor.masked_fill(values < self._edge(values), -math.inf)
        nothing, always = torch.full_like(values, -math.inf), torch.zeros_like(values)
        mixture = (part.to(values.dtype) for part in (begin, width.expand_as(begin), wide, factor, far))
        return Target(always, nothing, nothing, always, *mixture)

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        weight, mean, scale = self._cut_off(units)
        share = weight.exp()
        above = share.cumsum(dim=-1)
        chosen = (noise.unsqueeze(-1) >= above[..., :-1]).sum(dim=-1, keepdim=True)
        share, mean, scale = (each.gather(-1, chosen).squeeze(-1) for each in (share, mean, scale))
        # The position of the number within its component's share is uniform again.
        eps = torch.finfo(units.dtype).eps
        within = ((noise - above.gather(-1, chosen).squeeze(-1)) / share + 1).clamp(eps, 1 - eps)
        return self._on_steps(self._quantile(within, mean, scale, self._edge(units)))

    def log_interval(self, units: Tensor, low: Bound, high: Bound) -> Tensor:
        weight, _, _, _, _, log_share, log_all = self._between(units, low, high)
        return (weight + log_share).logsumexp(dim=-1) - log_all

    def draw_interval(self, units: Tensor, low: Bound, high: Bound, uniform: Tensor) -> Tensor:
        weight, mean, scale, begin, end, log_share, _ = self._between(units, low, high)
        chosen, within = choose(weight + log_share, uniform)
        eps = torch.finfo(units.dtype).eps
        within, place = within.clamp(eps, 1 - eps), chosen.unsqueeze(-1)
        mean, scale, log_share = (each.gather(-1, place).squeeze(-1) for each in (mean, scale, log_share))
        below = torch.logaddexp(F.logsigmoid((begin - mean) / scale), within.log() + log_share)
        above = torch.logaddexp(F.logsigmoid((mean - end) / scale), torch.log1p(-within) + log_share)
        return self._on_steps((mean + scale * (below - above)).clamp(begin, end))

    def cdf(self, units: Tensor, values: Tensor) -> Tensor:
        return self.log_interval(units, -math.inf, values + self.step / 2).exp()

    def mode(self, units: Tensor) -> Tensor:
        """Of the modes of the components, the one with the highest density."""
        _, mean, scale = (each[..., : self.components] for each in self._components(units))
        candidates = [mean]
        if self._curved:
            # The slope of the scale moves a component's mode, for a wide one as far as the bound.
            stretch = self._like(self.scale, units).unsqueeze(-1) if isinstance(self.scale, Tensor) else self.scale
            bent = self._unstandard(mean.movedim(-1, 0)).movedim(0, -1).to(units.dtype)
            candidates.append(mean - 2 * scale * torch.atanh((scale * stretch * bent.tanh()).clamp(-0.99, 0.99)))
        if self._bounded:
            low = self._edge(units).unsqueeze(-1)
            candidates = [torch.maximum(each, low) for each in candidates]
        places = self._on_steps(torch.cat(candidates, dim=-1).movedim(-1, 0))
        density = torch.stack([self.log_prob(units, place) for place in places])
        return places.gather(0, density.argmax(dim=0, keepdim=True)).squeeze(0)

    def mean(self, units: Tensor) -> Tensor:
        """The expected value; on a curved scale, of the learned components without far tails.

        A heavy tail has no mean, and a component of small weight that is wide on a curved scale can have one far from
        all data. There, the mean is over 32 quantiles of each component, winsorized at :data:`TAIL` on either side.
        """
        weight, mean, scale = self._cut_off(units)
        if self._curved:
            weight, mean, scale = (each[..., : self.components] for each in (weight, mean, scale))
            nodes = torch.from_numpy((NODES + 1) / 2).to(units)
            low = self._edge(units)
            low = low.unsqueeze(-1).unsqueeze(-1) if low.ndim else low
            places = self._quantile(nodes, mean.unsqueeze(-1), scale.unsqueeze(-1), low)
            # Columns last, to be straightened.
            values = self.straight(places.movedim((-2, -1), (0, 1))).movedim((0, 1), (-2, -1))
            shares = weight.softmax(dim=-1).to(values).unsqueeze(-1) * torch.from_numpy(NODE_WEIGHTS / 2).to(values)
            values, order = values.flatten(-2).sort(dim=-1)
            shares = shares.flatten(-2).gather(-1, order)
            below = shares.cumsum(dim=-1)
            ends = [(below < share).sum(dim=-1, keepdim=True) for share in (TAIL, 1 - TAIL)]
            least, most = (values.gather(-1, end.clamp(max=values.shape[-1] - 1)) for end in ends)
            return self.inner(self.within((shares * values.clamp(least, most)).sum(dim=-1))).to(units.dtype)
        if self._bounded:
            low = self._edge(units).unsqueeze(-1)
            t = ((mean - low) / scale).clamp(min=-15)  # far below, the rest of a component has its scale as mean
            mean = low + scale * F.softplus(t) / t.sigmoid()
        return self.inner(self.within(self.straight((weight.exp() * mean).sum(dim=-1)))).to(units.dtype)

    def average(self, weights: Tensor, values: Tensor) -> Tensor:
        if not self._curved:
            return super().average(weights, values)
        return self.inner((weights.double() * self.straight(values)).sum(dim=0)).to(values.dtype)

    def summary(self, log_weights: Tensor, units: Tensor, levels: Sequence[float]) -> Summary:
        return self.mixture(log_weights, units).summary(levels)

    def quantiles(self, log_weights: Tensor, units: Tensor, levels: Sequence[float]) -> Tensor:
        return self.mixture(log_weights, units).quantiles(levels)

    def mixture(self, log_weights: Tensor, units: Tensor) -> LogisticMixture:
        """The mixture over masks. Shapes: (masks, rows), (masks, rows, outputs)."""
        weight, mean, scale = self._components(units.double())
        if self._bounded:
            cut_off = weight + F.logsigmoid((mean - self._edge(mean)) / scale)
            weight = weight - cut_off.logsumexp(dim=-1, keepdim=True)
        weight = (log_weights.unsqueeze(-1) + weight).exp()
        parts = (each.transpose(0, 1).flatten(1) for each in (weight, mean, scale))
        return LogisticMixture(self, mean.new_empty(0), mean.new_empty(mean.shape[1], 0), *parts)

    def tempered(self, units: Tensor, temperature: float) -> Tensor:
        weight, mean, log_scale = units.unflatten(-1, (3, self.components)).unbind(dim=-2)
        return torch.cat([weight / temperature, mean, log_scale + math.log(temperature)], dim=-1)

    def _quantile(self, share: Tensor, mean: Tensor, scale: Tensor, low: Tensor) -> Tensor:
        """The quantile of a component, truncated at the least value."""
        if not self._bounded:
            return mean + scale * share.logit()
        # In logarithms of the upper tail: a component may lie almost entirely below the least value.
        above = torch.log1p(-share) + F.logsigmoid((mean - low) / scale)
        return torch.maximum(mean + scale * ((-torch.expm1(above)).log() - above), low)

    def _cut_off(self, units: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As :meth:`_components`, with the components' shares above the least value."""
        weight, mean, scale = self._components(units)
        if self._bounded:
            low = self._edge(units).unsqueeze(-1)
            weight = (weight + F.logsigmoid((mean - low) / scale)).log_softmax(dim=-1)
        return weight, mean, scale

    def _components(self, units: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The logarithm of each share, the means, and the scales. Shapes: (..., components)."""
        weight, mean, log_scale = units.unflatten(-1, (3, self.components)).unbind(dim=-2)
        least = self._least_scale(units)
        least = least.unsqueeze(-1) if least.ndim else least
        scales, shares = (each.expand(*mean.shape[:-1], -1) for each in self._wide(units))
        learned = weight.log_softmax(dim=-1) + torch.log1p(-shares.sum(dim=-1, keepdim=True))
        scale = torch.cat([log_scale.clamp(max=20).exp() + least, scales], dim=-1)
        return torch.cat([learned, shares.log()], dim=-1), torch.cat([mean, torch.zeros_like(scales)], dim=-1), scale

    def _wide(self, like: Tensor) -> Tensor:
        """The scales and the shares of the components of fixed width, (2, components)."""
        wide = CURVED_WIDE if self._curved else (WIDE_SCALES, WIDE_SHARES)
        return torch.tensor(wide, dtype=like.dtype, device=like.device)

    def _least_scale(self, like: Tensor) -> Tensor:
        """The lower limit of a component's scale."""
        if not self.stepped:
            return self._like(1e-3, like)
        # On a curved scale, steps get ever narrower: a component may still have to fit into one.
        return self._like(1e-5, like) if self._curved else (self._width(like) / 10).clamp(1e-6, 1e-3)

    def _between(self, units: Tensor, low: Bound, high: Bound) -> tuple[Tensor, ...]:
        """The components, the transformed limits, the log probability of the interval under each component, and of all
        values above the least one under the mixture (0 without a least value).

        All but the limits and the last have the shape (..., components).
        """
        weight, mean, scale = self._components(units)
        bounds = [torch.as_tensor(end, dtype=torch.float64) for end in (low, high)]
        ends = self.inner(torch.stack(torch.broadcast_tensors(*bounds))).to(units)
        log_all = torch.zeros_like(weight[..., 0])
        if self._bounded:
            edge = self._edge(units)
            ends = torch.maximum(ends, edge)
            log_all = (weight + F.logsigmoid((mean - edge) / scale)).logsumexp(dim=-1)
        begin, end = ends
        first, last = begin.unsqueeze(-1), end.unsqueeze(-1)
        parts = F.logsigmoid((last - mean) / scale) + F.logsigmoid((mean - first) / scale)
        return weight, mean, scale, begin, end, parts + (-torch.expm1((first - last) / scale)).log(), log_all
