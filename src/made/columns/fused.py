"""The log-likelihood of all columns of a table in a few operations, forward and back.

Columns whose likelihood has the common form of :mod:`made.columns.form` differ by numbers only, so that one segmented
softmax and one mixture of logistics serve all of them. Targets, the numbers that depend on the values alone, are
computed once for a table, not in each update or under each mask. A kind without such a form is evaluated by its own
``log_prob``.

Units come first, (units, rows), as in a pass of the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from made.columns.base import Column
from made.columns.form import Form, Target

__all__ = ["Likelihood", "Targets", "take"]

# The most, and the inverse of the least, that exponentials of logits may add up to.
MOST_SUM = 1e25
LARGEST_LOG_SCALE = 20.0
# Of the likelihood of a mixture, which has further terms that are larger where it would be smaller.
TINY = 1e-37

LISTED, SINGLE, MIXED = ("log_choice", "log_floor"), ("choice", "log_choice", "log_floor"), Target._fields[1:]


@dataclass(frozen=True)
class Targets:
    """What the rows of a table ask of the output units.

    Attributes:
        values: the coded values, (rows, columns), for kinds without the common form.
        units: the number of the unit that each column with a softmax chooses, among those of all, (rows, segments).
        numbers: all other targets, (rows, numbers).
        floors: whether a value has a probability that is not learned.
    """

    values: Tensor
    units: Tensor
    numbers: Tensor
    floors: bool

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Tensor | slice) -> Targets:
        return Targets(take(self.values, rows), take(self.units, rows), take(self.numbers, rows), self.floors)


def take(table: Tensor, rows: Tensor | slice) -> Tensor:
    """Some rows of a table; by numbers, faster than ``table[rows]``."""
    return table[rows] if isinstance(rows, slice) or rows.dtype == torch.bool else table.index_select(0, rows)


class Likelihood:
    """The joint evaluation of the columns of a table.

    Arguments:
        kinds: the kinds of the columns.
    """

    def __init__(self, kinds: Sequence[Column]) -> None:
        self.kinds = kinds
        forms = [kind.form for kind in kinds]
        starts = [0, *accumulate(kind.outputs for kind in kinds)]
        most = max((form.components for form in forms if form is not None), default=0)
        self.single: list[int] = []
        self.listed: list[int] = []
        self.mixed: list[int] = []
        self.others: list[int] = []
        for d, form in enumerate(forms):
            if form is None or form.components not in (0, most):
                self.others.append(d)
            elif form.components:
                self.mixed.append(d)
            else:
                (self.single if form.choices == 1 else self.listed).append(d)
        # Densities before steps, and truncated mixtures in the middle: both are slices.
        self.mixed.sort(key=lambda d: ((form := cast(Form, forms[d])).stepped, (form.low is None) == form.stepped))
        self.order = [*self.single, *self.listed, *self.mixed, *self.others]
        mixed = [cast(Form, forms[d]) for d in self.mixed]
        self.densities = sum(not form.stepped for form in mixed)
        bounded = [place for place, form in enumerate(mixed) if form.low is not None]
        self.bounded = slice(bounded[0], bounded[-1] + 1) if bounded else slice(0, 0)
        with_points = [d for d in self.mixed if cast(Form, forms[d]).choices]
        self.pointed = [place for place, d in enumerate(self.mixed) if d in with_points]
        # The units of each part, and the segments of the softmax, in the order of the columns above.
        segments = [range(starts[d], starts[d] + cast(Form, forms[d]).choices) for d in (*self.listed, *with_points)]
        self.widths = [len(segment) for segment in segments]
        self.softmax_units = [unit for segment in segments for unit in segment]
        self.single_units = [starts[d] for d in self.single]
        self.mixture_units = [
            starts[d] + form.choices + part * most + k
            for part in range(3)
            for k in range(most)
            for d, form in zip(self.mixed, mixed, strict=True)
        ]
        self.components = most
        columns = [[form.least_scale, form.learned, form.low or 0.0, form.wide_above] for form in mixed]
        self._constants = torch.tensor(columns, dtype=torch.float64).t().unsqueeze(-1)  # (4, columns, 1)
        self._indices: dict[torch.device, _Indices] = {}
        self._made: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    def targets(self, values: Tensor) -> Targets:
        """The targets of coded values, (rows, columns)."""
        rows = len(values)
        found = {d: kind.target(values[:, d]) for d, kind in enumerate(self.kinds) if d not in self.others}
        units, begin = [], 0
        with_points = [self.mixed[place] for place in self.pointed]
        for d, width in zip((*self.listed, *with_points), self.widths, strict=True):
            units.append(found[d].choice.long() + begin)
            begin += width
        numbers = []
        for d in self.single:
            found[d] = found[d]._replace(choice=2 * found[d].choice - 1)  # the sign of the logit
        for members, names in ((self.single, SINGLE), (self.listed, LISTED), (self.mixed, MIXED)):
            numbers += [cast(Tensor, getattr(found[d], name)).to(values.dtype) for name in names for d in members]
        floors = any(bool((found[d].log_floor > -math.inf).any()) for d in (*self.single, *self.listed))
        empty = values.new_empty(rows, 0)
        return Targets(
            values,
            torch.stack(units, dim=1) if units else empty.long(),
            torch.stack(numbers, dim=1) if numbers else empty,
            floors,
        )

    def log_prob(self, units: Tensor, targets: Targets) -> Tensor:
        """The log-likelihood of each value. Shapes: (outputs, rows) to (columns, rows)."""
        parts: list[Tensor] = []
        if len(self.others) < len(self.kinds):
            parts.append(_LogProb.apply(units, targets, self))  # type: ignore[no-untyped-call]
        for d in self.others:
            begin = self.indices(units.device).starts[d]
            own = units[begin : begin + self.kinds[d].outputs].t()
            parts.append(self.kinds[d].log_prob(own, targets.values[:, d]).unsqueeze(0))
        found = parts[0] if len(parts) == 1 else torch.cat(parts)
        indices = self.indices(units.device)
        return found if indices.sorted else found.index_select(0, indices.inverse)

    def indices(self, device: torch.device) -> _Indices:
        """The places of units and columns, as tensors on a device."""
        if device not in self._indices:
            with torch.inference_mode(False):  # made in evaluation, and used in training
                self._indices[device] = _Indices(self, device)
        return self._indices[device]

    def constants(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Which units are in each segment, (segments, units), and the numbers of the mixtures, (4, columns, 1)."""
        key = like.device, like.dtype
        if key not in self._made:
            with torch.inference_mode(False):
                segment = torch.repeat_interleave(torch.arange(len(self.widths)), torch.tensor(self.widths).long())
                member = (segment == torch.arange(len(self.widths)).unsqueeze(1)).to(like)
                self._made[key] = member, self._constants.to(like)
        return self._made[key]


class _Indices:
    def __init__(self, likelihood: Likelihood, device: torch.device) -> None:
        def tensor(places: Sequence[int]) -> Tensor:
            return torch.tensor(places, dtype=torch.long, device=device)

        self.single, self.softmax = tensor(likelihood.single_units), tensor(likelihood.softmax_units)
        self.mixture, self.pointed = tensor(likelihood.mixture_units), tensor(likelihood.pointed)
        lasts = list(accumulate(likelihood.widths))[len(likelihood.listed) :]
        self.rests = tensor([last - 1 for last in lasts])  # the rest is the last choice beside the points
        self.starts = [0, *accumulate(kind.outputs for kind in likelihood.kinds)]
        self.inverse = tensor(likelihood.order).argsort()
        self.sorted = likelihood.order == sorted(likelihood.order)


class _LogProb(torch.autograd.Function):
    """The log-likelihood of all columns that have the common form, in the order of :attr:`Likelihood.order`."""

    @staticmethod
    def forward(ctx: Any, units: Tensor, targets: Targets, joint: Likelihood) -> Tensor:
        indices = joint.indices(units.device)
        singles, listed, mixed = len(joint.single), len(joint.listed), len(joint.mixed)
        numbers = targets.numbers.t().contiguous()
        sizes = [len(SINGLE) * singles, len(LISTED) * listed, len(MIXED) * mixed]
        of_single, of_listed, of_mixed = numbers.split(sizes)
        answers: list[Tensor] = []
        if singles:
            sign, log_choice, floor = of_single.view(len(SINGLE), singles, -1)
            toward = sign * units.index_select(0, indices.single)
            log_p = F.logsigmoid(toward) + log_choice
            ctx.single = toward, sign, None
            if targets.floors:
                learned, log_p = log_p, torch.logaddexp(log_p, floor)
                ctx.single = toward, sign, (learned - log_p).exp()
            answers.append(log_p)
        if joint.widths:
            chosen = targets.units.t().contiguous()
            log_pi, ctx.softmax = _softmax(joint, units.index_select(0, indices.softmax), chosen, indices.rests)
        if listed:
            log_choice, floor = of_listed.view(len(LISTED), listed, -1)
            log_p = log_pi[:listed] + log_choice
            ctx.listed = None
            if targets.floors:
                learned, log_p = log_p, torch.logaddexp(log_p, floor)
                ctx.listed = (learned - log_p).exp()
            answers.append(log_p)
        if mixed:
            log_choice, _, log_rest, *of_mixture = of_mixed.view(len(MIXED), mixed, -1)
            log_p, ctx.mixture = _mixture(joint, units.index_select(0, indices.mixture), of_mixture)
            log_p = log_p + log_rest
            ctx.points = None
            if joint.pointed:
                everywhere = len(joint.pointed) == mixed
                at = slice(None) if everywhere else indices.pointed
                point = log_pi[listed : len(joint.widths)] + log_choice[at]
                rest = log_p[at] + log_pi[len(joint.widths) :]
                either = torch.logaddexp(point, rest)
                ctx.points = (point - either).exp(), (rest - either).exp()
                log_p = either if everywhere else log_p.index_copy(0, indices.pointed, either)
            answers.append(log_p)
        ctx.joint, ctx.units = joint, units
        return answers[0] if len(answers) == 1 else torch.cat(answers)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        joint: Likelihood = ctx.joint
        indices = joint.indices(gradient.device)
        singles, listed, mixed = len(joint.single), len(joint.listed), len(joint.mixed)
        of_single, of_listed, of_mixed = gradient.split([singles, listed, mixed])
        found = torch.zeros_like(ctx.units) if joint.others else torch.empty_like(ctx.units)
        if singles:
            toward, sign, learned = ctx.single
            to_logit = (-toward).sigmoid_().mul_(sign).mul_(of_single)
            found.index_copy_(0, indices.single, to_logit if learned is None else to_logit * learned)
        to_choice = [of_listed if not listed or ctx.listed is None else of_listed * ctx.listed]
        to_rest = None
        if mixed:
            of_mixture = of_mixed
            if ctx.points is not None:
                everywhere = len(joint.pointed) == mixed
                here = of_mixed if everywhere else of_mixed.index_select(0, indices.pointed)
                at_point, elsewhere = ctx.points
                to_rest = here * elsewhere
                to_choice.append(here * at_point)
                of_mixture = to_rest if everywhere else of_mixed.index_copy(0, indices.pointed, to_rest)
            found.index_copy_(0, indices.mixture, _mixture_back(joint, ctx.mixture, of_mixture))
        if joint.widths:
            to_choice_ = to_choice[0] if len(to_choice) == 1 else torch.cat(to_choice)
            found.index_copy_(0, indices.softmax, _softmax_back(joint, ctx.softmax, to_choice_, to_rest))
        return found, None, None


def _softmax(joint: Likelihood, logits: Tensor, chosen: Tensor, rests: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The log probability of the choice in each segment, then that of the rest in those that have one."""
    member, _ = joint.constants(logits)
    shares = logits.exp()
    sums = member @ shares
    if not all(1 / MOST_SUM < end < MOST_SUM for end in torch.stack(sums.aminmax()).tolist()):
        # Rarely, logits are so large or so small that each segment has to be relative to its own maximum.
        tops = [part.amax(dim=0).expand_as(part) for part in logits.split(joint.widths)]
        logits = logits - torch.cat(tops)
        shares = logits.exp()
        sums = member @ shares
    log_sums = sums.log()
    log_pi = logits.gather(0, chosen) - log_sums
    if len(rests):
        log_pi = torch.cat([log_pi, logits.index_select(0, rests) - log_sums[-len(rests) :]])
    return log_pi, (shares, sums, chosen)


def _softmax_back(joint: Likelihood, saved: tuple[Tensor, ...], to_choice: Tensor, to_rest: Tensor | None) -> Tensor:
    """The gradient of the logits."""
    shares, sums, chosen = saved
    member, _ = joint.constants(shares)
    total = to_choice
    if to_rest is not None:
        total = to_choice.clone()
        total[-len(to_rest) :] += to_rest
    found = (member.t() @ (total / sums)).mul_(shares).neg_()
    found.scatter_add_(0, chosen, to_choice)
    if to_rest is not None:
        found.index_add_(0, joint.indices(found.device).rests, to_rest)
    return found


def _mixture(joint: Likelihood, units: Tensor, targets: Sequence[Tensor]) -> tuple[Tensor, tuple[Any, ...]]:
    """log R of every column with a mixture. Tensors of components are (components, columns, rows)."""
    begin, width, wide, log_factor, log_far = targets
    least, learned, low, wide_above = joint.constants(units)[1]
    logit, mean, log_scale = units.view(3, joint.components, len(joint.mixed), -1)
    share = logit.softmax(dim=0)
    scale = log_scale.clamp(max=LARGEST_LOG_SCALE).exp_()
    per_scale = (scale + least).reciprocal_()
    place = (mean - begin).mul_(per_scale)
    below, above = place.sigmoid(), (begin + width - mean).mul_(per_scale).sigmoid_()
    area = per_scale.clone()
    area[:, joint.densities :].mul_(-width[joint.densities :]).expm1_().neg_()
    part = (share * below).mul_(above).mul_(area)
    total = part.sum(dim=0).mul_(learned).add_(wide).clamp_(min=TINY)
    log_n = total.log().add_(log_factor)
    truncated: tuple[Tensor, ...] = ()
    if joint.bounded.stop:
        cut = joint.bounded
        from_low = (mean[:, cut] - low[cut]).mul_(per_scale[:, cut])
        over = from_low.sigmoid()
        mass = share[:, cut] * over
        above_low = mass.sum(dim=0).mul_(learned[cut]).add_(wide_above[cut]).clamp_(min=TINY)
        log_n[cut] -= above_low.log()
        truncated = from_low, over, mass, above_low
    log_p = torch.logaddexp(log_n, log_far)
    sides = share, scale, log_scale, per_scale, place, below, above, area, part
    return log_p, (*sides, total, log_n, log_p, truncated, width)


def _mixture_back(joint: Likelihood, saved: tuple[Any, ...], gradient: Tensor) -> Tensor:
    """The gradient of the units of the mixtures."""
    share, scale, log_scale, per_scale, place, below, above, area, part, total, log_n, log_p, truncated, width = saved
    _, learned, _, _ = joint.constants(share)[1]
    to_log = (log_n - log_p).exp_().mul_(gradient)
    weight = part * (to_log * learned).div_(total)  # the gradient of the logarithm of each component's likelihood
    found = weight.new_empty(3, *weight.shape)
    to_logit, to_mean, to_scale = found
    slope = above - below
    torch.mul(weight, slope, out=to_mean)
    torch.mul(place, slope, out=to_scale).neg_()
    steps = joint.densities
    to_scale[:, :steps] -= 1
    if steps < len(joint.mixed):
        x, area = per_scale[:, steps:] * width[steps:], area[:, steps:]
        to_scale[:, steps:] -= (1 - area).div_(area).add_(1).sub_(above[:, steps:]).mul_(x)
    to_scale.mul_(weight)
    if truncated:
        from_low, over, mass, above_low = truncated
        cut = joint.bounded
        less = mass * (to_log[cut] * learned[cut]).div_(above_low).neg_()
        outside = (1 - over).mul_(less)
        to_mean[:, cut] += outside
        to_scale[:, cut] -= outside.mul_(from_low)
        weight[:, cut] += less
    to_mean.mul_(per_scale)
    to_scale.mul_(per_scale).mul_(scale * (log_scale <= LARGEST_LOG_SCALE))
    torch.sub(weight, share * weight.sum(dim=0), out=to_logit)
    return cast(Tensor, found.view(-1, found.shape[-1]))
