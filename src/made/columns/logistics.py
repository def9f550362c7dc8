r"""Mixtures of logistics, all columns at once: the log-likelihood of :mod:`made.columns.form`, and its gradient.

.. math:: \log R(x) = \log (\alpha(x)\, N(x) / N_\text{low} + \beta(x))

Operations on small tensors take longer to begin than to compute, and so do views of them. So tensors are stacked: the
ends of a step and the least value are the first axis of one tensor, the sums N and :math:`N_\text{low}` that of
another. All of them are parts of a :class:`Mixture`, memory that training uses again in each update.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from made.columns.form import Form, Target

LARGEST_LOG_SCALE = 20.0
# Of a likelihood, which has further terms that are larger where it would be smaller.
TINY = 1e-37


class Logistics:
    """The mixtures of several columns, of as many components each.

    Arguments:
        forms: the forms of the columns, those without steps first.

    Attributes:
        numbers: how many numbers the targets of a row are.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self.forms = forms
        self.components = forms[0].components if forms else 0
        self.densities = sum(not form.stepped for form in forms)
        self.bounded = any(form.low is not None for form in forms)
        self.numbers = (8 if self.bounded else 6) * len(forms)
        self._made: dict[tuple[torch.device, torch.dtype], tuple[Tensor, ...]] = {}

    def targets(self, targets: Sequence[Target]) -> list[Tensor]:
        """The numbers that values ask of the units: each of them for all columns, then the next."""
        found: dict[str, list[Tensor]] = {}
        for form, target in zip(self.forms, targets, strict=True):
            begin, width = cast(Tensor, target.begin), cast(Tensor, target.width)
            low, above = (0.0, 1.0) if form.low is None else (form.low, form.wide_above)
            numbers = {
                "begin": begin,
                "minus_end": -(begin + width),
                "low": torch.full_like(begin, low),
                "minus_width": -width,
                "wide": cast(Tensor, target.wide),
                "wide_above": torch.full_like(begin, above),
                "log_factor": cast(Tensor, target.log_factor),
                "log_far": cast(Tensor, target.log_far),
            }
            for name, each in numbers.items():
                if self.bounded or name not in ("low", "wide_above"):
                    found.setdefault(name, []).append(each)
        return [each for parts in found.values() for each in parts]

    def constants(self, like: Tensor) -> tuple[Tensor, ...]:
        """The signs of the ends, what is added to each scale, the factors of the sums, and of their gradients."""
        key = like.device, like.dtype
        if key not in self._made:
            with torch.inference_mode(False):  # made in evaluation, and used in training
                ends = 3 if self.bounded else 2
                signs = torch.tensor([1.0, -1.0, 1.0])[:ends].view(-1, 1, 1, 1)
                least = torch.tensor([form.least_scale for form in self.forms], dtype=torch.float64).unsqueeze(-1)
                learned = [-form.learned if form.stepped else form.learned for form in self.forms]
                above_low = [0.0 if form.low is None else form.learned for form in self.forms]
                factors = torch.tensor([learned, above_low][: ends - 1], dtype=torch.float64).unsqueeze(-1)
                of_gradients = factors * torch.tensor([1.0, -1.0])[: ends - 1].view(-1, 1, 1)  # N is divided by N_low
                self._made[key] = tuple(each.to(like) for each in (signs, least, factors, of_gradients))
        return self._made[key]


class Mixture:
    """Memory for an evaluation of mixtures. Tensors of components are (components, columns, rows).

    Arguments:
        logistics: the mixtures.
        units: memory of their units, (units, rows).
        targets: memory of the numbers of :meth:`Logistics.targets`, (numbers, rows).
        log_p: memory of log R, (columns, rows).
    """

    def __init__(self, logistics: Logistics, units: Tensor, targets: Tensor, log_p: Tensor) -> None:
        columns, rows = log_p.shape
        self.logistics, self.log_p, self._shape = logistics, log_p, (logistics.components, columns, rows)
        sums = 2 if logistics.bounded else 1
        self._logit, self._mean, self._log_scale = units.view(3, *self._shape).unbind()
        numbers = targets.view(-1, columns, rows).split([sums + 1, 1, sums, 1, 1])
        self._bounds, (minus_width,), self._wide, (self._log_factor,), (self._log_far,) = numbers
        self._bounds = self._bounds.unsqueeze(1)
        of_components = units.new_empty(3 * sums + 7, *self._shape).split([5, sums + 1, sums + 1, sums])
        self._singles, self._places, self._sides, self._parts = of_components
        self._share, self._scale, self._per_scale, self._minus_steps, self._area = self._singles.unbind()
        self._below, self._above, *self._over = self._sides.unbind()
        self._part, *self._mass = self._parts.unbind()
        self._sums, self._logs = units.new_empty(2, sums, columns, rows).unbind()
        self._log_n, *self._log_low = self._logs.unbind()
        self._stepped = [minus_width, self._per_scale, self._minus_steps, self._area]
        if steps := logistics.densities:
            self._stepped = [each[..., steps:, :] for each in self._stepped]

    def evaluate(self) -> None:
        """Compute log R of every column."""
        signs, least, factors, _ = self.logistics.constants(self.log_p)
        torch.softmax(self._logit, 0, out=self._share)
        torch.clamp(self._log_scale, max=LARGEST_LOG_SCALE, out=self._scale).exp_()
        torch.add(self._scale, least, out=self._per_scale).reciprocal_()
        torch.mul(self._mean, signs, out=self._places).sub_(self._bounds).mul_(self._per_scale)
        torch.sigmoid(self._places, out=self._sides)
        # The area of a step is negative here, and so is the factor of its sum.
        minus_width, per_scale, minus_steps, area = self._stepped
        torch.expm1(torch.mul(per_scale, minus_width, out=minus_steps), out=area)
        if densities := self.logistics.densities:
            self._area[:, :densities] = self._per_scale[:, :densities]
        torch.mul(self._below, self._above, out=self._part).mul_(self._area).mul_(self._share)
        for over, mass in zip(self._over, self._mass, strict=True):
            torch.mul(self._share, over, out=mass)
        torch.sum(self._parts, 1, out=self._sums)
        torch.addcmul(self._wide, self._sums, factors, out=self._sums).clamp_min_(TINY)
        torch.log(self._sums, out=self._logs)
        self._log_n.add_(self._log_factor)
        for log_low in self._log_low:
            self._log_n.sub_(log_low)
        torch.logaddexp(self._log_n, self._log_far, out=self.log_p)

    def gradient(self, gradient: Tensor, out: Tensor) -> None:
        """Write the gradient of the units, given the gradient of log R. Shapes: (columns, rows), (units, rows)."""
        back, densities = self._back, self.logistics.densities
        to_logit, to_mean, to_scale = out.view(3, *self._shape).unbind()
        torch.sub(self._log_n, self.log_p, out=back.to_log).exp_().mul_(gradient)
        # The gradients of the logarithms of the terms of N and N_low.
        factors = self.logistics.constants(self.log_p)[3]
        torch.mul(factors, back.to_log, out=back.to_sums).div_(self._sums)
        torch.mul(self._parts, back.to_sums.unsqueeze(1), out=back.weights)
        torch.sub(self._sides, 1, out=back.to_sides)
        back.to_ends.mul_(back.weight)
        torch.sub(back.to_end, back.to_begin, out=to_mean)
        total = back.weight
        if self._mass:
            back.to_low.mul_(back.less)
            to_mean.sub_(back.to_low)
            total = torch.add(back.weight, back.less, out=back.total)
        to_mean.mul_(self._per_scale)
        torch.sum(back.to_sides.mul_(self._places), 0, out=back.of_scale)
        _, _, minus_steps, area = self._stepped
        torch.div(minus_steps, area, out=back.of_area).add_(minus_steps)
        if densities:
            back.of_scale[:, :densities].sub_(back.weight[:, :densities])
            back.of_scale[:, densities:].addcmul_(back.of_area, back.weight[:, densities:], value=-1)
        else:
            back.of_scale.addcmul_(back.of_area, back.weight, value=-1)
        torch.mul(self._scale, self._per_scale, out=to_scale).mul_(back.of_scale)
        to_scale.mul_(torch.le(self._log_scale, LARGEST_LOG_SCALE, out=back.learned))
        torch.sum(total, 0, out=back.to_log)
        torch.addcmul(total, self._share, back.to_log, value=-1, out=to_logit)

    @cached_property
    def _back(self) -> _Back:
        return _Back(self._parts, self.logistics.densities)


class _Back:
    """Memory for the gradient."""

    def __init__(self, parts: Tensor, densities: int) -> None:
        sums, components, columns, rows = parts.shape
        of_components = parts.new_empty(2 * sums + 3, components, columns, rows).split([sums + 1, sums, 1, 1])
        self.to_sides, self.weights, (self.total,), (self.of_scale,) = of_components
        self.to_ends, (self.to_begin, self.to_end, *low) = self.to_sides[:2], self.to_sides.unbind()
        self.weight, *less = self.weights.unbind()
        self.to_low, self.less = low[0] if low else self.to_end, less[0] if less else self.weight
        self.to_log, self.to_sums = parts.new_empty(columns, rows), parts.new_empty(sums, columns, rows)
        self.of_area = parts.new_empty(components, columns - densities, rows)
        self.learned = parts.new_empty(components, columns, rows)
