"""The scale of a column of numbers: standardization on a straight or curved scale, steps, and a least value."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from made.columns.base import Column
from made.columns.transform import bend, log_slope, unbend

# The largest standardized value: its square fits into single precision.
FARTHEST = 1e15

# Limits against forged settings, far beyond any data, past which likelihoods underflow in single precision.
LEAST_STEP, MOST_STEP = 1e-12, 1e15  # a step near the middle, in standardized values
NARROWEST, WIDEST = 1e-30, 1e30  # a step, and the scale of a column with steps
FARTHEST_BENT = 1e4  # location and scale on a curved scale, where numbers are logarithms
MOST_KNOTS = 256  # and cuts

# Without knots, the input units beside asinh z are soft steps at these standardized values.
PLACES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
STRAIGHT = 8.0  # the largest input z


class Scaled(Column):
    """A kind that works on standardized numbers. A subclass is a dataclass with these fields; see :class:`Numeric`."""

    location: float
    scale: float
    step: float
    curve: float
    center: float
    low: float
    knots: tuple[float, ...]
    extent: tuple[float, float]
    cuts: tuple[float, ...]

    @property
    def inputs(self) -> int:
        return (1 + len(PLACES) if not self.pieces else 2 + self.pieces) + _count(self.cuts)

    @property
    def pieces(self) -> int:
        """The number of intervals between knots."""
        return max(0, _count(self.knots) - 1)

    def encode(self, values: Tensor) -> Tensor:
        z = values.unsqueeze(-1)
        sides = torch.where(z >= self._cuts.to(values), 1.0, -1.0).to(values)
        if not self.pieces:
            places = torch.tensor(PLACES, dtype=values.dtype, device=values.device)
            return torch.cat([z.asinh(), torch.tanh(2 * (z - places)), sides], dim=-1)
        knots = self._knots.to(values)
        begin, end = knots[..., :-1], knots[..., 1:]
        pieces = ((z - begin) / (end - begin)).clamp(0, 1)
        return torch.cat([z.clamp(-STRAIGHT, STRAIGHT), z.asinh(), 2 * pieces - 1, sides], dim=-1)

    @cached_property
    def _knots(self) -> Tensor:
        """The standardized knots; of several columns, (columns, knots)."""
        return self._standard(self.knots)

    @cached_property
    def _cuts(self) -> Tensor:
        """The standardized cuts; of several columns, (columns, cuts)."""
        return self._standard(self.cuts)

    def _standard(self, numbers: tuple[float, ...]) -> Tensor:
        places = torch.as_tensor(numbers, dtype=torch.float64)
        return self.inner(places.movedim(-1, 0)).movedim(0, -1)

    def _check_inputs(self) -> None:
        if self.knots:
            apart = np.diff(self._knots.float().numpy())
            if not 2 <= len(self.knots) <= MOST_KNOTS or not (apart > 0).all():
                raise ValueError(f"'knots' should be 2 to {MOST_KNOTS} ascending numbers, or none, not {self.knots!r}.")
        if len(self.cuts) > MOST_KNOTS or not (np.diff(self._cuts.numpy()) > 0).all():
            raise ValueError(f"'cuts' should be at most {MOST_KNOTS} ascending numbers, not {self.cuts!r}.")
        if len(self.extent) != 2 or not self.extent[0] <= self.extent[1]:
            raise ValueError(f"'extent' should be two numbers, the lower one first, not {self.extent!r}.")

    def within(self, values: Tensor) -> Tensor:
        """Values of the table, clipped to the range of training."""
        least, most = (self._like(end, values) for end in torch.as_tensor(self.extent, dtype=torch.float64).unbind(-1))
        return values.clamp(least, most)

    @property
    def grid(self) -> tuple[float, float]:
        return self.center if self.curve else self.location, self.step

    @property
    def support(self) -> tuple[float, float]:
        return self.low - self.step / 2, math.inf

    @property
    def allowed(self) -> str:
        origin, step = self.grid
        return f"a number in steps of {step:g} from {origin:g}" if step else "a finite number"

    @property
    def middle(self) -> Tensor:
        """The value whose standardized value is 0, not rounded to a step."""
        return self.straight(torch.zeros(1, dtype=torch.float64))

    @property
    def spread(self) -> float | Tensor:
        """The size of a standardized unit near the middle, in the units of the data."""
        if not self._curved:
            return self.scale
        location, curve = (torch.as_tensor(each, dtype=torch.float64) for each in (self.location, self.curve))
        spread = torch.as_tensor(self.scale, dtype=torch.float64) / log_slope(location, curve).exp()
        return spread if isinstance(self.scale, Tensor) else spread.item()

    def _check_step(self) -> None:
        for name, value in (("step", self.step), ("scale", self.scale)):
            if not NARROWEST <= value <= WIDEST:
                raise ValueError(
                    f"'{name}' should be {NARROWEST:g} to {WIDEST:g} where values have a step, not {value:g}."
                )
        spread = max(float(self.spread), math.ulp(0.0))
        lost = self.curve and self.step < 8 * max(math.ulp(self.center), math.ulp(self.middle.item() - self.center))
        if lost or not LEAST_STEP <= self.step / spread <= MOST_STEP:
            raise ValueError(
                f"'step' should be {LEAST_STEP:g} to {MOST_STEP:g} times the scale near the middle, {spread:g}, and "
                f"distinguishable from its neighbours, not {self.step:g}."
            )
        if self._bounded and not self._is_step(torch.tensor(self.low, dtype=torch.float64)).item():
            raise ValueError(f"'low' should be on the grid with a step of {self.step:g}, not {self.low:g}.")

    def valid(self, values: Tensor) -> Tensor:
        valid = values.isfinite()
        if self.stepped:
            valid &= self._is_step(values)
        return valid

    def inner(self, values: Tensor) -> Tensor:
        double = values.double()
        if self._curved:
            double = bend(double, self._like(self.center, double), self._like(self.curve, double))
        standard = (double - self._like(self.location, double)) / self._like(self.scale, double)
        return standard.clamp(-FARTHEST, FARTHEST)

    def outer(self, values: Tensor) -> Tensor:
        found = self._nearest(values)
        return found.clamp(min=self._like(self.low, found)) if self._bounded else found

    # A setting is a number, or, for several columns evaluated together, a tensor with one for each.

    @cached_property
    def stepped(self) -> bool:
        return bool((self.step > 0).all()) if isinstance(self.step, Tensor) else self.step > 0

    @cached_property
    def _curved(self) -> bool:
        return bool((self.curve > 0).all()) if isinstance(self.curve, Tensor) else self.curve > 0

    @cached_property
    def _bounded(self) -> bool:
        return bool(self.low.isfinite().all()) if isinstance(self.low, Tensor) else math.isfinite(self.low)

    @property
    def _origin(self) -> float | Tensor:
        """The origin of the grid."""
        return self.center if self._curved else self.location

    def _like(self, field: float | Tensor, values: Tensor, double: bool = False) -> Tensor:
        return torch.as_tensor(field, dtype=torch.float64 if double else values.dtype, device=values.device)

    def _is_step(self, values: Tensor) -> Tensor:
        steps = (values.double() - self._like(self._origin, values, True)) / self._like(self.step, values, True)
        return (steps - steps.round()).abs() < 1e-3

    def _unstandard(self, values: Tensor) -> Tensor:
        """Undo standardization, in double precision; on a curved scale, the result is still bent."""
        double = values.double()
        return self._like(self.location, double) + double * self._like(self.scale, double)

    def straight(self, values: Tensor) -> Tensor:
        """Values of the table, not rounded to steps."""
        found = self._unstandard(values)
        if self._curved:
            found = unbend(found, self._like(self.center, found), self._like(self.curve, found))
        return found

    def _nearest(self, values: Tensor) -> Tensor:
        """Values of the table, rounded to steps; they may be below the least one."""
        found = self.straight(values)
        if not self.stepped:
            return found
        origin, step = self._like(self._origin, found), self._like(self.step, found)
        found = origin + ((found - origin) / step).round() * step
        # The nearest double of a decimal fraction is a quotient of integers, not a multiple of a rounded step.
        parts = (1 / step).round()
        from_origin = origin * parts
        decimal = (step < 1) & ((parts * step - 1).abs() < 1e-9) & ((from_origin - from_origin.round()).abs() < 1e-6)
        return torch.where(decimal, (found * parts).round() / parts, found)

    def _step_of(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The lower end and the width of the step of each standardized value."""
        if not self._curved:
            width = self._width(values)
            return values - width / 2, width
        found, step = self._nearest(values), self._like(self.step, values, double=True)
        below, above = self.inner(found - step / 2), self.inner(found + step / 2)
        # Far from the centre, the difference of the two has no digits left, and the slope is accurate.
        curve, scale = self._like(self.curve, values, double=True), self._like(self.scale, values, double=True)
        slope = log_slope(bend(found, self._like(self.center, found), curve), curve).exp() / scale
        far = (found - self._like(self.center, found)).abs() > 1e6 * step
        return below.to(values.dtype), torch.where(far, step * slope, above - below).to(values.dtype)

    def _edge(self, units: Tensor) -> Tensor:
        """The least standardized value; half a step below the least one, if there are steps."""
        return self._least.to(device=units.device, dtype=units.dtype)

    @cached_property
    def _least(self) -> Tensor:
        low, step = (torch.as_tensor(field, dtype=torch.float64) for field in (self.low, self.step))
        return self.inner(low - step / 2)

    def _width(self, values: Tensor) -> Tensor:
        """A step on a straight scale, in standardized values."""
        return self._like(self.step, values) / self._like(self.scale, values)

    def _on_steps(self, values: Tensor) -> Tensor:
        if not self.stepped:
            return values
        if self._curved or self._bounded:
            return self.inner(self.outer(values)).to(values.dtype)
        width = self._width(values)
        return (values / width).round() * width


def _count(numbers: tuple[float, ...] | Tensor) -> int:
    """How many numbers a column has of them; of several columns, each."""
    return numbers.shape[-1] if isinstance(numbers, Tensor) else len(numbers)
