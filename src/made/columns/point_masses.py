r"""Numbers with point masses: no debt at all, a cap, or no answer.

Such a column is a mixture of points :math:`v_k` and a continuous rest. One softmax gives the probabilities of all
points and of the rest:

.. math:: p(x) = \pi_k \text{ at } x = v_k, \qquad p(x) = \pi_\text{rest}\, p_\text{rest}(x) \text{ elsewhere.}

The likelihood is a probability at a point and a density elsewhere. If the rest has steps, all values have
probabilities; the rest then also has mass at the points, and theirs is
:math:`\pi_k + \pi_\text{rest}\, p_\text{rest}(v_k)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from made.columns.base import MISSING, Bound, Column, Summary
from made.columns.choice import choose
from made.columns.form import Form, Target
from made.columns.logistic import Numeric
from made.columns.mixture import LogisticMixture
from made.columns.settings import is_finite

# The transformed points are multiples of this, far beyond any standardized value.
CODE = 2.0**100


@dataclass(frozen=True)
class PointMasses(Column):
    r"""A column of numbers with point masses.

    Input units are one for each point, 1 there, and those of the rest, 0 where a value is missing. Output units are the
    logits of the points and of the rest, then those of the rest.

    Arguments:
        rest: the kind of all other numbers.
        points: the points, as values of the table; infinity stands for "missing", where that is a value of its own.
        magnitudes: whether the input units of the rest tell how large a point is, as in all new models; otherwise they
            are 0 there.

    Example:
        >>> kind = PointMasses(Numeric(location=3, scale=1.5, step=1, low=0), points=(0.0, math.inf))
        >>> values = kind.inner(torch.tensor([*range(1000), math.inf], dtype=torch.float64))
        >>> round(kind.log_prob(kind.initial().double().expand(1001, -1), values).exp().sum().item(), 3)
        1.0
    """

    kind = "numeric"

    rest: Numeric
    points: tuple[float, ...]
    magnitudes: bool = True

    def __post_init__(self) -> None:
        if not self.points or len(set(self.points)) != len(self.points) or any(math.isnan(x) for x in self.points):
            raise ValueError(f"'points' should be different numbers, at least one, not {self.points!r}.")
        finite = torch.tensor([point for point in self.points if point != math.inf], dtype=torch.float64)
        if not (self.rest.valid(finite) & (finite >= self.rest.low)).all():
            least = f", at least {self.rest.low:g}" if math.isfinite(self.rest.low) else ""
            raise ValueError(f"'points' should each be {self.rest.allowed}{least}, not {self.points!r}.")

    @property
    def count(self) -> int:
        """The number of points."""
        return self.points.shape[-1] if isinstance(self.points, Tensor) else len(self.points)

    @property
    def inputs(self) -> int:
        return self.count + self.rest.inputs

    @property
    def outputs(self) -> int:
        return self.count + 1 + self.rest.outputs

    @property
    def log_widths(self) -> range:
        own, rest = self.count + 1, self.rest.log_widths
        return range(own + rest.start, own + rest.stop)

    @property
    def support(self) -> tuple[float, float]:
        return self.rest.support

    @property
    def grid(self) -> tuple[float, float]:
        return self.rest.grid

    @property
    def atoms(self) -> tuple[float, ...]:
        return self.points

    @property
    def allowed(self) -> str:
        return self.rest.allowed + (", or infinity for 'missing'" if math.inf in self.points else "")

    @property
    def family(self) -> object:
        return PointMasses, self.count, self.magnitudes, self.rest.family

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        together = object.__new__(PointMasses)
        several = cast(Sequence[PointMasses], kinds)
        object.__setattr__(together, "rest", Numeric.joint([kind.rest for kind in several]))
        points = torch.tensor([kind.points for kind in several], dtype=torch.float64)
        object.__setattr__(together, "points", points)
        object.__setattr__(together, "magnitudes", several[0].magnitudes)
        return together

    def describe(self, show: Callable[[float], str], unit: str = "") -> str:
        finite = [point for point in self.points if point < math.inf]
        parts = [self.rest.describe(show, unit)] + (["often " + " or ".join(map(show, finite))] if finite else [])
        return ", ".join(parts + ["or missing"] * (math.inf in self.points))

    def to_json(self) -> dict[str, Any]:
        finite = [point for point in self.points if point < math.inf]
        return self.rest.to_json() | ({"spikes": finite} if finite else {}) | {"magnitudes": self.magnitudes}

    @classmethod
    def from_json(
        cls, settings: Mapping[str, Any], values: tuple[Any, ...] = (), missing: bool = False, other: float = 0.0
    ) -> PointMasses | Numeric:
        """Both kinds are ``"numeric"`` in config.json: without points, this is a :class:`Numeric`."""
        own = ("spikes", "magnitudes")
        rest = Numeric.from_json({key: value for key, value in settings.items() if key not in own}, values)
        points, magnitudes = settings.get("spikes", []), settings.get("magnitudes", False)
        if not isinstance(magnitudes, bool):
            raise ValueError(f"'magnitudes' should be true or false, not {repr(magnitudes)[:200]}.")
        if not isinstance(points, (list, tuple)) or not all(map(is_finite, points)):
            raise ValueError(f"'spikes' should be a list of finite numbers, not {repr(points)[:200]}.")
        points = tuple(map(float, points)) + (math.inf,) * missing
        return cls(rest, points, magnitudes) if points else rest

    def with_cuts(self, cuts: Sequence[float]) -> PointMasses:
        return replace(self, rest=self.rest.with_cuts(cuts))

    def valid(self, values: Tensor) -> Tensor:
        return self.rest.valid(values) | self._points(values).any(dim=-1)

    def inner(self, values: Tensor) -> Tensor:
        at, point = self._among(self._points(values))
        return torch.where(at, (point + 1) * CODE, self.rest.inner(values.masked_fill(at, 0)))

    def outer(self, values: Tensor) -> Tensor:
        at, point = self._among(self._coded(values))
        points = self._point_values(values).expand(*values.shape, self.count)
        found = points.gather(-1, point.unsqueeze(-1)).squeeze(-1)
        return torch.where(at, found, self.rest.outer(values.masked_fill(at, 0)))

    def encode(self, values: Tensor) -> Tensor:
        coded = self._coded(values)
        at, point = self._among(coded)
        place = self._place(values, point)
        unseen = at & place.isnan() if self.magnitudes else at
        rest = self.rest.encode(torch.where(at, place.nan_to_num(0), values)) * ~unseen.unsqueeze(-1)
        return torch.cat([coded.to(values.dtype), rest], dim=-1)

    def initial(self) -> Tensor:
        return torch.cat([torch.zeros(self.count + 1), self.rest.initial()])

    def independent(self, values: Tensor) -> Tensor:
        coded = self._coded(values)
        counts = torch.cat([coded.sum(dim=0), (~coded.any(dim=-1)).sum(dim=0, keepdim=True)]).to(values.dtype) + 1
        rest = self.rest.independent(values[~coded.any(dim=-1)])
        return torch.cat([(counts / counts.sum()).log(), rest.to(values)])

    def log_prob(self, units: Tensor, values: Tensor) -> Tensor:
        shares, of_rest = self._parts(units)
        at, point = self._among(self._coded(values))
        # At a point, a rest with steps adds its probability; the density of a continuous one counts for nothing.
        place = self._place(values, point)
        log_rest = shares[..., -1] + self.rest.log_prob(of_rest, torch.where(at, place.nan_to_num(0), values))
        log_point = shares.gather(-1, point.unsqueeze(-1)).squeeze(-1)
        if self.rest.stepped:
            log_point = torch.where(place.isnan(), log_point, torch.logaddexp(log_point, log_rest))
        return torch.where(at, log_point, log_rest)

    @property
    def form(self) -> Form:
        return self.rest.form._replace(choices=self.count + 1)

    def target(self, values: Tensor) -> Target:
        at, point = self._among(self._coded(values))
        place = self._places.to(values)[point]
        rest = self.rest.target(torch.where(at, place.nan_to_num(0), values))
        nothing = torch.full_like(values, -math.inf)
        # At a point, a rest with steps adds its probability; the density of a continuous one counts for nothing.
        with_rest = ~at | ~place.isnan() if self.rest.stepped else ~at
        return rest._replace(
            choice=torch.where(at, point, self.count),
            log_choice=nothing.masked_fill(at, 0),
            log_rest=nothing.masked_fill(with_rest, 0),
        )

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        shares, of_rest = self._parts(units)
        share = shares.exp()
        above = share.cumsum(dim=-1)
        chosen = (noise.unsqueeze(-1) >= above[..., :-1]).sum(dim=-1)
        of_others = share[..., :-1].sum(dim=-1)
        within = ((noise - of_others) / share[..., -1]).clamp(0, 1 - torch.finfo(units.dtype).eps)
        return torch.where(chosen < self.count, (chosen + 1) * CODE, self._from_rest(self.rest.draw(of_rest, within)))

    def log_interval(self, units: Tensor, low: Bound, high: Bound) -> Tensor:
        return self._log_weights(units, low, high).logsumexp(dim=-1)

    def draw_interval(self, units: Tensor, low: Bound, high: Bound, uniform: Tensor) -> Tensor:
        chosen, within = choose(self._log_weights(units, low, high), uniform)
        rest = self._from_rest(self.rest.draw_interval(self._parts(units)[1], low, high, within))
        return torch.where(chosen < self.count, ((chosen + 1) * CODE).to(rest.dtype), rest)

    def cdf(self, units: Tensor, values: Tensor) -> Tensor:
        high = values + self.rest.step / 2 if self.rest.stepped else torch.nextafter(values, values + 1)
        return self.log_interval(units, -math.inf, high).exp()

    def _log_weights(self, units: Tensor, low: Bound, high: Bound) -> Tensor:
        """The log probability of each point in an interval, and of the rest in it. Shape: (..., points + 1)."""
        shares, of_rest = self._parts(units)
        log_rest = (shares[..., -1] + self.rest.log_interval(of_rest, low, high)).unsqueeze(-1)
        low, high = (torch.as_tensor(end, dtype=torch.float64).unsqueeze(-1) for end in (low, high))
        points = self._point_values(units).cpu().clamp(max=MISSING)
        inside = ((low <= points) & (points < high)).to(units.device)
        log_points = shares[..., :-1].where(inside, -math.inf)
        return torch.cat([log_points.expand(*log_rest.shape[:-1], -1), log_rest], dim=-1)

    def mode(self, units: Tensor) -> Tensor:
        """The most likely point, if it is as likely as all of the rest; otherwise the mode of the rest.

        A point is far more likely than any single other number, even where most numbers are other ones.
        """
        shares, of_rest = self._parts(units)
        log_point, point = shares[..., :-1].max(dim=-1)
        rest = self._from_rest(self.rest.mode(of_rest))
        return torch.where(log_point >= shares[..., -1], (point + 1).to(units.dtype) * CODE, rest)

    def height(self, units: Tensor, values: Tensor) -> Tensor:
        """The log probability of a point; elsewhere that of the rest, less what its mode is more likely than it."""
        shares, of_rest = self._parts(units)
        at, point = self._among(self._coded(values))
        log_point = shares.gather(-1, point.unsqueeze(-1)).squeeze(-1)
        best, here = (
            self.rest.log_prob(of_rest, each) for each in (self.rest.mode(of_rest), values.masked_fill(at, 0))
        )
        return torch.where(at, log_point, shares[..., -1] + here - best)

    def mean(self, units: Tensor) -> Tensor:
        """The expected value, given that it is not missing."""
        shares, of_rest = self._parts(units)
        points = self._point_values(units)
        shares = shares.double()
        missing = torch.cat([points.isinf(), torch.zeros_like(points[..., :1], dtype=torch.bool)], dim=-1)
        share = shares.masked_fill(missing, -math.inf).softmax(dim=-1)
        points = (share[..., :-1] * self._finite(points)).sum(dim=-1)
        rest = self.rest.straight(self.rest.mean(of_rest))
        return self.rest.inner(points + share[..., -1] * rest).to(units.dtype)

    def average(self, weights: Tensor, values: Tensor) -> Tensor:
        return self.rest.average(weights, values)

    def summary(self, log_weights: Tensor, units: Tensor, levels: Sequence[float]) -> Summary:
        return self._mixture(log_weights, units).summary(levels)

    def quantiles(self, log_weights: Tensor, units: Tensor, levels: Sequence[float]) -> Tensor:
        return self._mixture(log_weights, units).quantiles(levels)

    def _mixture(self, log_weights: Tensor, units: Tensor) -> LogisticMixture:
        """The mixture over masks, given that the value is not missing."""
        log_shares, of_rest = self._parts(units.double())
        points, order = self._point_values(units).sort()
        points = points[points.isfinite()]
        log_shares = (log_weights.unsqueeze(-1) + log_shares)[..., [*order[: len(points)].tolist(), self.count]]
        log_shares = log_shares - log_shares.logsumexp(dim=(0, 2), keepdim=True)[0]
        rest = self.rest.mixture(log_shares[..., -1], of_rest)
        return replace(rest, points=points, shares=log_shares[..., :-1].exp().sum(dim=0))

    def tempered(self, units: Tensor, temperature: float) -> Tensor:
        shares, rest = units.split([self.count + 1, self.rest.outputs], dim=-1)
        return torch.cat([shares / temperature, self.rest.tempered(rest, temperature)], dim=-1)

    def _parts(self, units: Tensor) -> tuple[Tensor, Tensor]:
        """The log probabilities of the points and of the rest, and the units of the rest."""
        shares, rest = units.split([self.count + 1, self.rest.outputs], dim=-1)
        return shares.log_softmax(dim=-1), rest

    def _point_values(self, values: Tensor) -> Tensor:
        return torch.as_tensor(self.points, dtype=torch.float64, device=values.device)

    @cached_property
    def _places(self) -> Tensor:
        """The points as the rest transforms them; NaN for "missing"."""
        points = torch.as_tensor(self.points, dtype=torch.float64)
        # The points move to the first axis: the rest has its columns on the last.
        places = self.rest.inner(self._finite(points).movedim(-1, 0)).movedim(0, -1)
        return places.masked_fill(points.isinf(), math.nan)

    def _place(self, values: Tensor, point: Tensor) -> Tensor:
        """The place of the point with this number, for each value; NaN for "missing"."""
        places = self._places.to(values).expand(*values.shape, self.count)
        return places.gather(-1, point.unsqueeze(-1)).squeeze(-1)

    def _finite(self, values: Tensor) -> Tensor:
        return values.masked_fill(values.isinf(), 0)

    def _points(self, values: Tensor) -> Tensor:
        """Which point each value of the table is. Shapes: (...) to (..., points)."""
        return values.unsqueeze(-1) == self._point_values(values).to(values.dtype)

    def _coded(self, values: Tensor) -> Tensor:
        """Which point each transformed value is. Shapes: (...) to (..., points)."""
        codes = CODE * torch.arange(1, self.count + 1, dtype=values.dtype, device=values.device)
        return values.unsqueeze(-1) == codes

    def _among(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Whether it is a point, and which (the first if none)."""
        return which.any(dim=-1), which.to(torch.int8).argmax(dim=-1)

    def _from_rest(self, values: Tensor) -> Tensor:
        """Values drawn from the rest; one that equals a point is coded as the point."""
        return self.inner(self.rest.outer(values)).to(values.dtype) if self.rest.stepped else values
