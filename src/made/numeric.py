r"""Columns of numbers: a mixture of logistics on standardised values, and integers as the areas between them.

With :math:`z = (x - \text{location}) / \text{scale}` and :math:`t_k = (z - \mu_k) / s_k`, the density is

.. math:: p(x) = \frac{1}{\text{scale}} \sum_k \pi_k \frac{\sigma(t_k) \sigma(-t_k)}{s_k}

in the data's own units. Where values are steps apart (integers), the probability of one is the area from half a step
below it to half a step above. Both are computed from

.. math:: \sigma(b) - \sigma(a) = \sigma(b) \sigma(-a) (1 - e^{a - b}),

which loses no digits far out in the tails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from made.columns import Column

__all__ = ["Numeric"]

# A ten-thousandth of every mixture is spread over logistics that are ever wider, a tail like a power of z: what is far
# from everything that was seen costs tens of nats, not thousands.
WIDE_SCALES = (4.0, 20.0, 100.0, 500.0, 2500.0)
WIDE_SHARES = (8e-5, 1.6e-5, 3.2e-6, 6.4e-7, 1.6e-7)

# The input units beside z itself: where along the values it is, at places where standardised values usually are.
PLACES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Numeric(Column):
    r"""A column of numbers: a mixture of logistics.

    Input units are z, its growth slowed so that a heavy tail does no harm, and smooth steps at :data:`PLACES`. Output
    units are, for each component, the logit of :math:`\pi_k`, the mean :math:`\mu_k`, and :math:`\log s_k`, which has
    a floor, so that a value that often repeats cannot make a density infinite. Beside them, every mixture has a small
    share of wide logistics that are not learned, :data:`WIDE_SCALES`, for heavy tails.

    Arguments:
        location, scale: what standardises the values, such as median and spread.
        step: how far apart values are, counted from ``location``; 0 for real numbers.
        components: the number of logistics.

    Example:
        >>> kind = Numeric(location=170, scale=10, step=1)
        >>> units = kind.initial().expand(401, -1)
        >>> heights = torch.arange(-30.0, 371.0)
        >>> round(kind.log_prob(units, kind.inner(heights)).exp().sum().item(), 4)
        1.0
    """

    location: float
    scale: float
    step: float = 0.0
    components: int = 8

    inputs = 1 + len(PLACES)

    def __post_init__(self) -> None:
        for name, least in (("location", -math.inf), ("scale", math.ulp(0.0)), ("step", 0.0)):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= least):
                raise ValueError(f"'{name}' should be a finite number, at least {least:g}, not {value!r}.")
        if self.components < 1:
            raise ValueError(f"'components' should be at least 1, not {self.components}.")

    @property
    def outputs(self) -> int:
        return 3 * self.components

    @property
    def allowed(self) -> str:
        return f"a number in steps of {self.step:g} from {self.location:g}" if self.step else "a finite number"

    @property
    def family(self) -> object:
        return Numeric, self.components, self.step > 0

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        fields = [[getattr(kind, name) for kind in kinds] for name in ("location", "scale", "step")]
        together = object.__new__(Numeric)
        for name, field in zip(("location", "scale", "step"), fields, strict=True):
            object.__setattr__(together, name, torch.tensor(field, dtype=torch.float64))
        object.__setattr__(together, "components", getattr(kinds[0], "components"))  # noqa: B009
        return together

    def valid(self, values: Tensor) -> Tensor:
        if not self._stepped:
            return values.isfinite()
        steps = (values.double() - self._like(self.location, values, double=True)) / self._like(self.step, values, True)
        return values.isfinite() & ((steps - steps.round()).abs() < 1e-3)

    def inner(self, values: Tensor) -> Tensor:
        double = values.double()
        return (double - self._like(self.location, double)) / self._like(self.scale, double)

    def outer(self, values: Tensor) -> Tensor:
        double = values.double()
        if self._stepped:
            step = self._like(self.step, double)
            return self._like(self.location, double) + (double * self._like(self.scale, double) / step).round() * step
        return self._like(self.location, double) + double * self._like(self.scale, double)

    def encode(self, values: Tensor) -> Tensor:
        z = values.unsqueeze(-1)
        places = torch.tensor(PLACES, dtype=values.dtype, device=values.device)
        return torch.cat([z.asinh(), torch.tanh(2 * (z - places))], dim=-1)

    def initial(self) -> Tensor:
        """The components side by side, as a standard normal would have them, the outermost ones wide."""
        means = torch.special.ndtri((torch.arange(self.components) + 0.5) / self.components)
        log_scales = torch.full((self.components,), -1.0)
        log_scales[[0, -1]] = -0.5
        return torch.cat([torch.zeros(self.components), means, log_scales])

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        weight, mean, scale = self._components(units)
        away = values.unsqueeze(-1) - mean
        if self._stepped:
            width = self._width(values).unsqueeze(-1)
            above, below = (away + width / 2) / scale, (away - width / 2) / scale
            area = torch.log(-torch.expm1(-width / scale))
            return torch.logsumexp(weight + F.logsigmoid(above) + F.logsigmoid(-below) + area, dim=-1)
        t = away / scale
        density = torch.logsumexp(weight + F.logsigmoid(t) + F.logsigmoid(-t) - scale.log(), dim=-1)
        # The logarithm in double precision: a scale may be too small, or too large, for the network's own.
        return density - self._like(self.scale, values, double=True).log().to(values.dtype)

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        weight, mean, scale = self._components(units)
        share = weight.exp()
        above = share.cumsum(dim=-1)
        chosen = (noise.unsqueeze(-1) >= above[..., :-1]).sum(dim=-1, keepdim=True)
        share, mean, scale = (each.gather(-1, chosen).squeeze(-1) for each in (share, mean, scale))
        # Where in its component's share the number lies is uniform again.
        eps = torch.finfo(units.dtype).eps
        within = ((noise - above.gather(-1, chosen).squeeze(-1)) / share + 1).clamp(eps, 1 - eps)
        return self._on_steps(mean + scale * within.logit())

    def mode(self, units: Tensor) -> Tensor:
        """Of the components' means, the one where the density is highest."""
        means = self._on_steps(self._components(units)[1][..., : self.components].movedim(-1, 0))
        density = torch.stack([self.log_prob(units, mean) for mean in means])
        return means.gather(0, density.argmax(dim=0, keepdim=True)).squeeze(0)

    def mean(self, units: Tensor) -> Tensor:
        weight, mean, _ = self._components(units)
        return (weight.exp() * mean).sum(dim=-1)

    def tempered(self, units: Tensor, temperature: float) -> Tensor:
        weight, mean, log_scale = units.unflatten(-1, (3, self.components)).unbind(dim=-2)
        return torch.cat([weight / temperature, mean, log_scale + math.log(temperature)], dim=-1)

    @property
    def _stepped(self) -> bool:
        return bool((self.step > 0).all()) if isinstance(self.step, Tensor) else self.step > 0

    def _like(self, field: float | Tensor, values: Tensor, double: bool = False) -> Tensor:
        return torch.as_tensor(field, dtype=torch.float64 if double else values.dtype, device=values.device)

    def _width(self, values: Tensor) -> Tensor:
        """A step, of standardised values."""
        return self._like(self.step, values) / self._like(self.scale, values)

    def _on_steps(self, values: Tensor) -> Tensor:
        if not self._stepped:
            return values
        width = self._width(values)
        return (values / width).round() * width

    def _components(self, units: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The logarithm of each share, the means, and the scales. Shapes: (..., components)."""
        weight, mean, log_scale = units.unflatten(-1, (3, self.components)).unbind(dim=-2)
        least: float | Tensor = 1e-3
        if self._stepped:
            least = (self._width(units) / 10).clamp(max=1e-3)
            least = least.unsqueeze(-1) if least.ndim else least
        wide = torch.tensor([WIDE_SCALES, WIDE_SHARES], dtype=units.dtype, device=units.device)
        wide = wide.expand(*mean.shape[:-1], 2, len(WIDE_SCALES))
        weight = torch.cat([weight.log_softmax(dim=-1) + math.log1p(-sum(WIDE_SHARES)), wide[..., 1, :].log()], dim=-1)
        scale = torch.cat([log_scale.clamp(max=20).exp() + least, wide[..., 0, :]], dim=-1)
        return weight, torch.cat([mean, torch.zeros_like(wide[..., 0, :])], dim=-1), scale
