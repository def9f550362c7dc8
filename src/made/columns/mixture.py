r"""Quantiles and moments of a mixture of points and truncated logistics, in the values of the table.

A column of numbers is such a mixture (:mod:`made.columns.logistic`, :mod:`made.columns.point_masses`), and so is the
mean of its distributions over masks. With the probability :math:`p_j` of the point :math:`v_j`,

.. math:: P(X > x) = \sum_{v_j > x} p_j + \sum_k c_k \, \sigma\left(\frac{\mu_k - z(x)}{s_k}\right).

A quantile is a point, or inverts the second sum by Newton's method, within a bracket. A moment is the integral of each
component between two quantiles; if only a few steps lie between them, the sum over all of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from made.columns.base import LEAST_LEVEL, TAILS, Summary
from made.columns.scale import Scaled

MOST_ITERATIONS = 100
TOLERANCE = 1e-9  # of the logit of a probability
NEAR = 1e-5  # the last step of an inversion, in the least scale of the components
NEGLIGIBLE = 1e-4  # the probability of all components that do not widen a bracket
MOST_STEPS = 128  # that a moment is a sum over
FARTHEST = 14.0  # the limit of an integral over a logistic, in its scales: a millionth lies beyond
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)


@dataclass(frozen=True)
class LogisticMixture:
    """A mixture in each row, in double precision.

    Attributes:
        on: the scale on which logistics have their means and scales, and are truncated.
        points: the values of the points, ascending, (points).
        shares: the probability of each point, (rows, points).
        weights: :math:`c_k`, the probability of each component, divided by its share above the least value,
            (rows, components).
        means, scales: of the components, (rows, components).
    """

    on: Scaled
    points: Tensor
    shares: Tensor
    weights: Tensor
    means: Tensor
    scales: Tensor

    def __getitem__(self, rows: Tensor | slice) -> LogisticMixture:
        kept = {field.name: getattr(self, field.name)[rows] for field in fields(self)[2:]}
        return replace(self, **kept)

    def summary(self, levels: Sequence[float]) -> Summary:
        """See :meth:`made.Column.summary`."""
        found = self.quantiles([*levels, *TAILS])
        return Summary(*self.moments(found[-2], found[-1]), found[: len(levels)])

    def quantiles(self, levels: Sequence[float]) -> Tensor:
        """The least value of the table at which P(X <= value) reaches each level. Shape: (levels, rows)."""
        # A level that is reached but for rounding is reached.
        levels = [min(max(level, LEAST_LEVEL), 1 - LEAST_LEVEL) - 1e-9 for level in levels]
        level = self.weights.new_tensor(levels).expand(len(self.weights), -1)  # (rows, levels)
        if not self.shares.numel():
            return self.on.outer(self._inverse(1 - level)).t()
        # A value with steps begins half a step below it: there is the place of a point among the logistics.
        begin = self.on.inner(self.points - self.on.step / 2).expand_as(self.shares)
        reached = self._rest - self._above(begin) + self.shares.cumsum(dim=1)  # P(X <= point), but for steps
        after = level.unsqueeze(2) > reached.unsqueeze(1)  # (rows, levels, points)
        passed = (after * self.shares.unsqueeze(1)).sum(dim=2)
        next_point = after.sum(dim=2).clamp(max=len(self.points) - 1)
        at = ~after.all(dim=2) & (level > (reached - self.shares).gather(1, next_point))
        above = (self._rest - (level - passed)).where(~at, self._rest / 2)  # of a point, any number will do
        return torch.where(at, self.points[next_point], self.on.outer(self._inverse(above))).t()

    def moments(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the values, clipped to [low, high] and to the range of training.

        Shapes: (rows), twice, to (rows).
        """
        low, high = self.on.within(low), self.on.within(high)
        away = self.points.clamp(low.unsqueeze(1), high.unsqueeze(1)) - low.unsqueeze(1)
        first, second = ((self.shares * away**power).sum(dim=1) for power in (1, 2))
        few = high - low <= MOST_STEPS * self.on.step if self.on.stepped else torch.zeros_like(low, dtype=torch.bool)
        for rows, method in ((few, LogisticMixture._sums), (~few, LogisticMixture._integrals)):
            for some in rows.nonzero().squeeze(1).split(250) if rows.any() else ():
                more = method(self[some], low[some].unsqueeze(1), high[some].unsqueeze(1))
                first[some] += more[0]
                second[some] += more[1]
        return low + first, (second - first.square()).clamp(min=0).sqrt()

    @property
    def _edge(self) -> Tensor:
        """The place of the least value, far below all others if there is none."""
        return self.on.inner(self.weights.new_tensor(max(self.on.support[0], -sys.float_info.max)))

    @property
    def _rest(self) -> Tensor:
        """The probability of all logistics. Shape: (rows, 1)."""
        return (1 - self.shares.sum(dim=1, keepdim=True)).clamp(min=1e-300)

    def _above(self, z: Tensor) -> Tensor:
        """The probability of the logistics above z. Shapes: (rows, n) to (rows, n)."""
        t = (self.means.unsqueeze(1) - z.unsqueeze(2)).div_(self.scales.unsqueeze(1))
        return torch.minimum(t.sigmoid_().mul_(self.weights.unsqueeze(1)).sum(dim=2), self._rest)

    def _inverse(self, above: Tensor) -> Tensor:
        """Where the probability of the logistics above falls to ``above``. Shapes: (rows, n) to (rows, n)."""
        target = (above / self._rest).clamp(1e-12, 1 - 1e-12)
        weights, means, scales = (each.unsqueeze(1) for each in (self.weights / self._rest, self.means, self.scales))
        uncut = ((means - self._edge) / scales).sigmoid() if math.isfinite(self.on.low) else torch.ones_like(means[:1])
        shares = weights * uncut
        minor = shares < NEGLIGIBLE / shares.shape[2]
        without = (shares * minor).sum(dim=2)
        # Without the minor components, the answer lies between the same quantile of all others.
        ends = (each.clamp(1e-12, 1 - 1e-12).unsqueeze(2) for each in (target, target - without))
        first, last = (
            means - scales * (end / (1 - without).unsqueeze(2) * uncut).clamp(1e-300, 1 - 1e-12).logit() for end in ends
        )
        low, high = (each.masked_fill(minor, far) for each, far in ((first, torch.inf), (last, -torch.inf)))
        low, high = low.amin(dim=2), high.amax(dim=2)
        z = (shares * (first + last) / 2).sum(dim=2).clamp(low, high)
        answer, shape = torch.empty_like(z).flatten(), (*z.shape, weights.shape[2])
        todo = torch.arange(len(answer), device=z.device)
        weights, means, scales = (each.expand(shape).flatten(0, 1) for each in (weights, means, scales))
        state = [each.flatten() for each in (z, low, high, target, target.logit(), torch.full_like(z, torch.inf))]
        for _ in range(MOST_ITERATIONS):
            z, low, high, target, wanted, last = state
            p = (means - z.unsqueeze(1)).div_(scales).sigmoid_()
            part = weights * p
            share = part.sum(dim=1)
            slope = part.addcmul_(part, p, value=-1).div_(scales).sum(dim=1)
            low, high = low.where(share <= target, z), high.where(share > target, z)
            # Newton's method on the logit of the probability, which is a straight line for a single logistic.
            away = share.logit() - wanted
            step = away * share * (1 - share) / slope
            new, middle = z + step, (low + high) / 2
            sound = (new > low) & (new < high) & (step.abs() <= last / 2)
            new = new.where(sound, middle)
            close = away.abs() <= TOLERANCE
            answer[todo] = z.where(close, new)
            # The error that a step leaves is of the order of its square.
            left = ~close & (step.abs().where(sound, high - middle) > NEAR * scales.amin(dim=1))
            left = left.nonzero().squeeze(1)
            if not len(left):
                break
            state = [new, low, high, target, wanted, (new - z).abs()]
            if len(left) < len(todo):
                todo, weights, means, scales = (each[left] for each in (todo, weights, means, scales))
                state = [each[left] for each in state]
        return answer.reshape(shape[:2])

    def _sums(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """The first and second moment about ``low`` of the clipped values of the logistics, over all steps.

        Shapes: (rows, 1), twice, to (rows).
        """
        step = self.on.step
        count = ((high - low) / step).round()
        between = torch.arange(int(count.max()), dtype=low.dtype, device=low.device) + 0.5
        above = step * self._above(self.on.inner(low + between * step)) * (between < count)
        return above.sum(dim=1), (2 * step * between * above).sum(dim=1)

    def _integrals(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`_sums`, as integrals."""
        half = self.on.step / 2
        begin, end = self.on.inner(low + half).clamp(min=self._edge), self.on.inner(high - half)
        ends = ((torch.maximum(each, begin) - self.means) / self.scales for each in (begin, end))
        first, last = (each.clamp(-FARTHEST, FARTHEST).unsqueeze(2) for each in ends)
        nodes, node_weights = (torch.from_numpy(each).to(low.device) for each in (NODES, NODE_WEIGHTS))
        t = (first + last) / 2 + (last - first) / 2 * nodes  # (rows, components, nodes)
        values = self.on.straight(self.means.unsqueeze(2) + self.scales.unsqueeze(2) * t)
        if self.on.stepped:  # a component narrower than a step is rounded, for the others it makes no difference
            (origin, step), middle = self.on.grid, self.on.straight(self.means)
            narrow = self.scales < (self.on.inner(middle + half) - self.on.inner(middle - half)) / 2
            values = torch.where(narrow.unsqueeze(2), origin + ((values - origin) / step).round() * step, values)
        away = (values - low.unsqueeze(2)).clamp_(min=0)
        p = t.sigmoid_()
        shares = p.mul_(1 - p).mul_(node_weights).mul_((last - first) / 2 * self.weights.unsqueeze(2)).flatten(1)
        away, beyond = away.flatten(1), self._above(end).squeeze(1)
        width = (high - low).squeeze(1)
        moment = shares.mul_(away)
        return moment.sum(dim=1) + width * beyond, (moment * away).sum(dim=1) + width.square() * beyond
