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

from made.columns.base import Column
from made.columns.logistics import Logistics, Mixture
from made.columns.segments import Segments, Softmax


@dataclass(frozen=True)
class Targets:
    """What the rows of a table ask of the output units.

    Attributes:
        values: the coded values, (rows, columns), for kinds without the common form.
        units: the logit that each column with a softmax chooses, by its number among all logits, (rows, segments).
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
    """The joint evaluation of the columns of a table, given by their kinds.

    Attributes:
        order: the columns in the order of evaluation: those with a single logit, those with several, mixtures, and
            those without the common form, :attr:`others`.
    """

    def __init__(self, kinds: Sequence[Column]) -> None:
        self.kinds = kinds
        forms = [kind.form for kind in kinds]
        starts = [0, *accumulate(kind.outputs for kind in kinds)]
        most = max((form.components for form in forms if form is not None), default=0)
        common = {d: form for d, form in enumerate(forms) if form is not None and form.components in (0, most)}
        self.others = [d for d in range(len(kinds)) if d not in common]
        self.single = [d for d, form in common.items() if form.choices == 1 and not form.components]
        self.listed = [d for d, form in common.items() if form.choices > 1 and not form.components]
        # Densities before steps, and columns with points in the middle: both are slices.
        self.mixed = sorted(
            (d for d, form in common.items() if form.components),
            key=lambda d: (common[d].stepped, bool(common[d].choices) != common[d].stepped),
        )
        self.order = [*self.single, *self.listed, *self.mixed, *self.others]
        self.pointed = [d for d in self.mixed if common[d].choices]
        self.before_points = self.mixed.index(self.pointed[0]) if self.pointed else len(self.mixed)
        self.logistics = Logistics([common[d] for d in self.mixed])
        # Logits, those of the rests beside points last, then the units of the mixtures.
        segments = [range(starts[d], starts[d] + common[d].choices) for d in (*self.single, *self.listed)]
        segments += [range(starts[d], starts[d] + common[d].choices - 1) for d in self.pointed]
        self.widths = [len(segment) for segment in segments]
        rests = [starts[d] + common[d].choices - 1 for d in self.pointed]
        self.logits = [unit for segment in segments for unit in segment] + rests
        parts = [
            starts[d] + common[d].choices + part * most + k
            for part in range(3)
            for k in range(most)
            for d in self.mixed
        ]
        self.units = self.logits + parts
        self.starts = starts
        self._made: dict[tuple[torch.device, torch.dtype], _Constants] = {}

    def targets(self, values: Tensor) -> Targets:
        """The targets of coded values, (rows, columns)."""
        found = {d: kind.target(values[:, d]) for d, kind in enumerate(self.kinds) if d not in self.others}
        listed, pointed = (*self.single, *self.listed), self.pointed
        units, begin, rest = [], 0, len(self.logits) - len(pointed)
        for d, width in zip((*listed, *pointed), self.widths, strict=True):
            choice = found[d].choice.long()
            units.append(torch.zeros_like(choice) + begin if d in self.single else choice + begin)
            if d in pointed:
                units[-1] = torch.where(choice == width, rest, units[-1])
                rest += 1
            begin += width
        numbers = [found[d].choice for d in self.single]
        numbers += [found[d].log_choice for d in listed] + [found[d].log_floor for d in listed]
        numbers += [found[d].log_choice for d in pointed] + [cast(Tensor, found[d].log_rest) for d in pointed]
        numbers += self.logistics.targets([found[d] for d in self.mixed])
        empty = values.new_empty(len(values), 0)
        return Targets(
            values,
            torch.stack(units, dim=1) if units else empty.long(),
            torch.stack([each.to(values.dtype) for each in numbers], dim=1) if numbers else empty,
            any(bool((found[d].log_floor > -math.inf).any()) for d in listed),
        )

    def log_prob(self, units: Tensor, targets: Targets) -> Tensor:
        """The log-likelihood of each value. Shapes: (outputs, rows) to (columns, rows)."""
        parts: list[Tensor] = []
        if len(self.others) < len(self.kinds):
            if torch.is_grad_enabled() and units.requires_grad:
                parts.append(_LogProb.apply(units, targets, self))  # type: ignore[no-untyped-call]
            else:
                parts.append(Evaluation(self, units.shape[1], units).log_prob(units, targets))
        for d in self.others:
            own = units[self.starts[d] : self.starts[d + 1]].t()
            parts.append(self.kinds[d].log_prob(own, targets.values[:, d]).unsqueeze(0))
        found = parts[0] if len(parts) == 1 else torch.cat(parts)
        inverse = self.constants(units).inverse_order
        return found if inverse is None else found.index_select(0, inverse)

    def constants(self, like: Tensor) -> _Constants:
        """What depends on the columns only, with the dtype and on the device of a tensor."""
        key = like.device, like.dtype
        if key not in self._made:
            with torch.inference_mode(False):  # made in evaluation, and used in training
                self._made[key] = _Constants(self, like)
        return self._made[key]


class _Constants:
    """Places of units and columns, ``None`` for those that are in order, and the segments of the logits."""

    def __init__(self, joint: Likelihood, like: Tensor) -> None:
        def tensor(places: Sequence[int]) -> Tensor:
            return torch.tensor(places, dtype=torch.long, device=like.device)

        self.places = tensor(joint.units)
        in_order = joint.units == list(range(len(joint.units)))
        self.units = None if in_order and not joint.others else self.places
        self.inverse = None if in_order else self.places.argsort()
        self.inverse_order = None if joint.order == sorted(joint.order) else tensor(joint.order).argsort()
        segments = [number for number, width in enumerate(joint.widths) for _ in range(width)]
        segments += range(len(joint.widths) - len(joint.pointed), len(joint.widths))
        self.segments = Segments(segments, len(joint.widths), len(joint.single), like)


class Evaluation:
    """Memory for an evaluation, which training uses again in each update.

    Arguments:
        joint: the columns.
        rows: the number of rows.
        like: a tensor of the dtype and device to work with.
    """

    def __init__(self, joint: Likelihood, rows: int, like: Tensor) -> None:
        self.joint, self._rows, self._constants = joint, rows, joint.constants(like)
        singles, mixed, pointed, logits = map(len, (joint.single, joint.mixed, joint.pointed, joint.logits))
        listed = singles + len(joint.listed)
        self._units = like.new_empty(len(joint.units), rows)
        self._logits, of_mixtures = self._units.split([logits, len(joint.units) - logits])
        sizes = [singles, listed, listed, pointed, pointed, joint.logistics.numbers]
        self._numbers = like.new_empty(sum(sizes), rows)
        self._chosen = torch.empty(len(joint.widths), rows, dtype=torch.long, device=like.device)
        self._choice, self._log_choice, self._log_floor, self._log_point, self._log_rest, of_logistics = (
            self._numbers.split(sizes)
        )
        self._softmax = Softmax(self._constants.segments, self._logits)
        self._log_pi = torch.empty_like(self._softmax.sums)
        self.log_p = like.new_empty(listed + mixed, rows)
        self._of_listed, self._of_mixed = self.log_p.split([listed, mixed])
        self._floors, self._points, self._sizes = False, pointed > 0, [listed, mixed]
        self._mixture: Mixture | None = None
        if mixed:
            log_p = torch.empty_like(self._of_mixed) if pointed else self._of_mixed
            self._mixture = Mixture(joint.logistics, of_mixtures, of_logistics, log_p)
        if pointed:
            around = [joint.before_points, pointed, mixed - joint.before_points - pointed]
            self._with_points, self._of_rest = (each.split(around)[1] for each in (self._of_mixed, log_p))

    def log_prob(self, units: Tensor, targets: Targets) -> Tensor:
        """The log-likelihood of each value of the columns that have the common form, in the order of the evaluation.

        It is overwritten by the next one. Shapes: (outputs, rows) to (columns, rows).
        """
        constants, joint = self._constants, self.joint
        if constants.units is None:
            self._units.copy_(units)
        else:
            torch.index_select(units, 0, constants.units, out=self._units)
        self._numbers.copy_(targets.numbers.t())
        self._floors = targets.floors
        if joint.widths:
            self._chosen.copy_(targets.units.t())
            self._softmax.evaluate()
            torch.gather(self._logits, 0, self._chosen, out=self._log_pi)
            if joint.single:
                self._log_pi[: len(joint.single)].mul_(self._choice)  # the logit of 0 is 0
            self._log_pi.sub_(self._softmax.log_sums)
            learned = self._log_pi[: self._sizes[0]] if self._points else self._log_pi
            torch.add(learned, self._log_choice, out=self._of_listed)
            if self._floors:
                torch.logaddexp(self._of_listed, self._log_floor, out=self._of_listed)
        if self._mixture is not None:
            self._mixture.evaluate()
            if self._points:
                self._of_mixed.copy_(self._mixture.log_p)
                torch.logaddexp(*self._either(), out=self._with_points)
        return self.log_p

    def gradient(self, gradient: Tensor) -> Tensor:
        """The gradient of the output units, given that of the log-likelihoods; shapes as in :meth:`log_prob`."""
        joint, constants = self.joint, self._constants
        of_listed, of_mixed = gradient.split(self._sizes)
        found = torch.empty_like(self._units)
        to_logits, to_mixtures = found.split([len(joint.logits), len(joint.units) - len(joint.logits)])
        if self._floors:
            learned = self._log_pi[: self._sizes[0]] + self._log_choice
            of_listed = learned.sub_(self._of_listed).exp_().mul_(of_listed)
        to_choice = total = of_listed
        if self._points:
            point, rest = (each.sub_(self._with_points).exp_() for each in self._either())
            pointed = slice(joint.before_points, joint.before_points + len(joint.pointed))
            here = of_mixed[pointed]
            to_rest = rest.mul_(here)
            to_choice, total = torch.cat([of_listed, point.mul_(here)]), torch.cat([of_listed, here])
            of_mixed = of_mixed.clone()
            of_mixed[pointed] = to_rest
        if self._mixture is not None:
            self._mixture.gradient(of_mixed, to_mixtures)
        if joint.widths:
            self._softmax.gradient(total, to_logits)
            if joint.single:
                to_choice = to_choice.clone()
                to_choice[: len(joint.single)].mul_(self._choice)
            to_logits.scatter_add_(0, self._chosen, to_choice)
            if self._points:
                to_logits[-len(joint.pointed) :].add_(to_rest)
        if joint.others:
            return gradient.new_zeros(joint.starts[-1], self._rows).index_copy_(0, constants.places, found)
        return found if constants.inverse is None else found.index_select(0, constants.inverse)

    def _either(self) -> tuple[Tensor, Tensor]:
        """The logarithms of both terms of the likelihood of columns with points: the point, and the rest."""
        listed, pointed = self._sizes[0], len(self.joint.pointed)
        rest = (self._logits[-pointed:] - self._softmax.log_sums[listed:]).add_(self._log_rest).add_(self._of_rest)
        return self._log_pi[listed:] + self._log_point, rest


class _LogProb(torch.autograd.Function):
    """The log-likelihood of all columns that have the common form, in the order of :attr:`Likelihood.order`."""

    @staticmethod
    def forward(ctx: Any, units: Tensor, targets: Targets, joint: Likelihood) -> Tensor:
        ctx.evaluation = Evaluation(joint, units.shape[1], units)
        return cast(Tensor, ctx.evaluation.log_prob(units, targets)).clone()  # so that it does not refer to itself

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.evaluation.gradient(gradient), None, None
