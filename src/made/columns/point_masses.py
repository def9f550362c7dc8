r"""Numbers of which some single values have a share of their own: no debt at all, a cap, or no answer.

Such a column is a mixture of points :math:`v_k` and a rest that is spread out. One softmax says how likely each of the
points is, and the rest:

.. math:: p(x) = \pi_k \text{ at } x = v_k, \qquad p(x) = \pi_\text{rest}\, p_\text{rest}(x) \text{ elsewhere.}

The likelihood is with respect to counting at the points and to length elsewhere: a probability at a point, a density
beside it. If the rest has steps, all of it is counting; the rest may then have some of a point's share, too, and its
probability is :math:`\pi_k + \pi_\text{rest}\, p_\text{rest}(v_k)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from made.columns.base import Column
from made.columns.logistic import Numeric

__all__ = ["Spiked"]

# Points are multiples of this among the values that the network works on, where no standardised value ever is.
CODE = 2.0**100
# Which is the more likely, a point or a number of the rest? A density counts as the mass in this part of the spread.
WINDOW = 0.1


@dataclass(frozen=True)
class Spiked(Column):
    r"""A column of numbers some of which are points with a probability.

    Input units are one for each point, 1 there, and those of the rest, 0 at points. Output units are the logits of the
    points and of the rest, and then those of the rest.

    Arguments:
        rest: the kind of all other numbers.
        spikes: the points, in the table's own units; infinity stands for an answer that is missing, where that is a
            value of its own.

    Example:
        >>> kind = Spiked(Numeric(location=3, scale=1.5, step=1, low=0), spikes=(0.0, math.inf))
        >>> values = kind.inner(torch.tensor([*range(1000), math.inf], dtype=torch.float64))
        >>> round(kind.log_prob(kind.initial().double().expand(1001, -1), values).exp().sum().item(), 3)
        1.0
    """

    rest: Numeric
    spikes: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.spikes or len(set(self.spikes)) != len(self.spikes) or any(math.isnan(x) for x in self.spikes):
            raise ValueError(f"'spikes' should be different numbers, at least one, not {self.spikes!r}.")
        finite = torch.tensor([spike for spike in self.spikes if spike != math.inf], dtype=torch.float64)
        if not (self.rest.valid(finite) & (finite >= self.rest.low)).all():
            least = f", at least {self.rest.low:g}" if math.isfinite(self.rest.low) else ""
            raise ValueError(f"'spikes' should each be {self.rest.allowed}{least}, not {self.spikes!r}.")

    @property
    def count(self) -> int:
        """The number of points."""
        return self.spikes.shape[-1] if isinstance(self.spikes, Tensor) else len(self.spikes)

    @property
    def inputs(self) -> int:
        return self.count + self.rest.inputs

    @property
    def outputs(self) -> int:
        return self.count + 1 + self.rest.outputs

    @property
    def allowed(self) -> str:
        return self.rest.allowed + (", or infinity for 'missing'" if math.inf in self.spikes else "")

    @property
    def family(self) -> object:
        return Spiked, self.count, self.rest.family

    @staticmethod
    def joint(kinds: Sequence[Column]) -> Column:
        together = object.__new__(Spiked)
        several = cast(Sequence[Spiked], kinds)
        object.__setattr__(together, "rest", Numeric.joint([kind.rest for kind in several]))
        spikes = torch.tensor([kind.spikes for kind in several], dtype=torch.float64)
        object.__setattr__(together, "spikes", spikes)
        return together

    def valid(self, values: Tensor) -> Tensor:
        return self.rest.valid(values) | self._points(values).any(dim=-1)

    def inner(self, values: Tensor) -> Tensor:
        at, point = self._among(self._points(values))
        return torch.where(at, (point + 1) * CODE, self.rest.inner(values.masked_fill(at, 0)))

    def outer(self, values: Tensor) -> Tensor:
        at, point = self._among(self._coded(values))
        spikes = self._spikes(values).expand(*values.shape, self.count)
        found = spikes.gather(-1, point.unsqueeze(-1)).squeeze(-1)
        return torch.where(at, found, self.rest.outer(values.masked_fill(at, 0)))

    def encode(self, values: Tensor) -> Tensor:
        coded = self._coded(values)
        at = coded.any(dim=-1)
        rest = self.rest.encode(values.masked_fill(at, 0)) * ~at.unsqueeze(-1)
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
        # At a point, the rest is asked for that very value, if it has steps; its density there counts for nothing.
        places = self._places.to(values).expand(*values.shape, self.count)
        place = places.gather(-1, point.unsqueeze(-1)).squeeze(-1)
        log_rest = shares[..., -1] + self.rest.log_prob(of_rest, torch.where(at, place.nan_to_num(0), values))
        log_point = shares.gather(-1, point.unsqueeze(-1)).squeeze(-1)
        if self.rest._stepped:
            log_point = torch.where(place.isnan(), log_point, torch.logaddexp(log_point, log_rest))
        return torch.where(at, log_point, log_rest)

    def draw(self, units: Tensor, noise: Tensor) -> Tensor:
        shares, of_rest = self._parts(units)
        share = shares.exp()
        above = share.cumsum(dim=-1)
        chosen = (noise.unsqueeze(-1) >= above[..., :-1]).sum(dim=-1)
        of_others = share[..., :-1].sum(dim=-1)
        within = ((noise - of_others) / share[..., -1]).clamp(0, 1 - torch.finfo(units.dtype).eps)
        return torch.where(chosen < self.count, (chosen + 1) * CODE, self._from_rest(self.rest.draw(of_rest, within)))

    def mode(self, units: Tensor) -> Tensor:
        """The most likely point, or the mode of the rest, whichever is the higher: see :meth:`height`."""
        shares, of_rest = self._parts(units)
        point = (shares[..., :-1].argmax(dim=-1) + 1).to(units.dtype) * CODE
        rest = self._from_rest(self.rest.mode(of_rest))
        return torch.where(self.height(units, point) >= self.height(units, rest), point, rest)

    def height(self, units: Tensor, values: Tensor) -> Tensor:
        """The log-likelihood; of a density, that of lying in a tenth of the spread about the value."""
        log_p = self.log_prob(units, values)
        if self.rest._stepped:
            return log_p
        near = WINDOW * torch.as_tensor(self.rest.spread, dtype=torch.float64, device=values.device)
        return torch.where(self._coded(values).any(dim=-1), log_p, log_p + near.log().to(log_p.dtype))

    def mean(self, units: Tensor) -> Tensor:
        """The expected value of what is not missing."""
        shares, of_rest = self._parts(units)
        spikes = self._spikes(units)
        shares = shares.double()
        missing = torch.cat([spikes.isinf(), torch.zeros_like(spikes[..., :1], dtype=torch.bool)], dim=-1)
        share = shares.masked_fill(missing, -math.inf).softmax(dim=-1)
        points = (share[..., :-1] * self._finite(spikes)).sum(dim=-1)
        rest = self.rest._straight(self.rest.mean(of_rest))
        return self.rest.inner(points + share[..., -1] * rest).to(units.dtype)

    def average(self, weights: Tensor, values: Tensor) -> Tensor:
        return self.rest.average(weights, values)

    def tempered(self, units: Tensor, temperature: float) -> Tensor:
        shares, rest = units.split([self.count + 1, self.rest.outputs], dim=-1)
        return torch.cat([shares / temperature, self.rest.tempered(rest, temperature)], dim=-1)

    def _parts(self, units: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms of the points' shares and of the rest's, and the rest's own units."""
        shares, rest = units.split([self.count + 1, self.rest.outputs], dim=-1)
        return shares.log_softmax(dim=-1), rest

    def _spikes(self, values: Tensor) -> Tensor:
        return torch.as_tensor(self.spikes, dtype=torch.float64, device=values.device)

    @cached_property
    def _places(self) -> Tensor:
        """Where the points would be among the values that the rest works on; NaN for what is missing."""
        spikes = torch.as_tensor(self.spikes, dtype=torch.float64)
        # Points come first in the rest's own order of axes: each is a row of values, one for each column.
        places = self.rest.inner(self._finite(spikes).movedim(-1, 0)).movedim(0, -1)
        return places.masked_fill(spikes.isinf(), math.nan)

    def _finite(self, values: Tensor) -> Tensor:
        return values.masked_fill(values.isinf(), 0)

    def _points(self, values: Tensor) -> Tensor:
        """Which point each value of the table is. Shapes: (...) to (..., points)."""
        return values.unsqueeze(-1) == self._spikes(values).to(values.dtype)

    def _coded(self, values: Tensor) -> Tensor:
        """The same of values that the network works on."""
        codes = CODE * torch.arange(1, self.count + 1, dtype=values.dtype, device=values.device)
        return values.unsqueeze(-1) == codes

    def _among(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Whether it is a point at all, and which; the first if it is none."""
        return which.any(dim=-1), which.to(torch.int8).argmax(dim=-1)

    def _from_rest(self, values: Tensor) -> Tensor:
        """What was drawn from the rest; a step that is a point is coded as one."""
        return self.inner(self.rest.outer(values)).to(values.dtype) if self.rest._stepped else values
