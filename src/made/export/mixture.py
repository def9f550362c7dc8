"""Quantiles and moments of a numeric column in a graph, as :class:`made.columns.mixture.LogisticMixture` has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from made.columns.base import LEAST_LEVEL, TAILS
from made.columns.logistic import CURVED_WIDE, WIDE_SCALES, WIDE_SHARES
from made.columns.logistics import LARGEST_LOG_SCALE
from made.columns.mixture import FARTHEST, MOST_STEPS, NODE_WEIGHTS, NODES
from made.export.graph import Node
from made.export.numbers import Numbers

BISECTIONS = 100
BEYOND = 40.0  # no quantile is so far from the mean of every component, in scales
SURE = 1e-12  # of a level from 0 and 1


@dataclass(frozen=True, eq=False)
class Mixture:
    """The distribution of values that are not missing, over all masks.

    Attributes:
        rule: of the column.
        points: the values of the points, ascending.
        shares: the probability of each, (rows, points); ``None`` without points.
        weights: the probability of each component, divided by its share above the least value, (rows, components).
        means, scales: of the components, (rows, components).
        rest: the probability of all components, (rows, 1).
    """

    rule: Numbers
    points: NDArray[np.float64]
    shares: Node | None
    weights: Node
    means: Node
    scales: Node
    rest: Node

    @classmethod
    def of(cls, rule: Numbers, units: Node, log_weights: NDArray[np.float64]) -> Mixture:
        """From output units under each mask, (masks, rows, units), and the log weights of the masks, (masks, 1)."""
        form, points, shares = rule.form, rule.points[0], None
        units, log_weight = units.double(), rule.graph.constant(log_weights[:, :, None])
        order = np.argsort(points)[: np.isfinite(points).sum()]
        points = points[order]
        if form.choices:
            chosen = [*order.tolist(), form.choices - 1]
            log_shares = units.slice(0, form.choices).log_softmax().gather(chosen) + log_weight
            log_shares = log_shares - log_shares.logsumexp(-1).logsumexp(0).unsqueeze(0, -1)
            shares = log_shares.slice(0, len(points)).exp().sum(0) if len(points) else None
            log_weight = log_shares.slice(len(points), len(points) + 1)
        parts = _components(rule, units.slice(form.choices, form.choices + 3 * form.components), log_weight)
        one = parts[0].sum(keep=True) * 0.0 + 1.0
        rest = one if shares is None else (one - shares.sum(keep=True)).maximum(1e-300)
        return cls(rule, points, shares, *parts, rest)

    def quantiles(self, levels: Sequence[float]) -> Node:
        """The least values at which P(X <= value) reaches each level. Shape: (rows, levels)."""
        graph, rule, points = self.rule.graph, self.rule, self.points
        level = graph.constant(np.clip(np.array(levels), LEAST_LEVEL, 1 - LEAST_LEVEL)[None] - 1e-9)
        if self.shares is None:
            return rule.outer(self._inverse(self.rest - level))
        # A value with steps begins half a step below it: there is the place of a point among the logistics.
        begin = rule.inner(graph.constant(points[None] - rule.step / 2))
        reached = self.rest - self._above(begin) + self.shares.cumsum()  # P(X <= point), but for steps
        after = level.unsqueeze(2) > reached.unsqueeze(1)  # (rows, levels, points)
        passed = (after.double() * self.shares.unsqueeze(1)).sum()
        next_point = after.double().sum().minimum(float(len(points) - 1))
        which = next_point.unsqueeze(-1).equals(np.arange(len(points))).double()
        at = ~after.all() & (level > (which * (reached - self.shares).unsqueeze(1)).sum())
        above = at.where(self.rest * 0.5, self.rest - (level - passed))  # of a point, any number will do
        return at.where((which * points).sum(), rule.outer(self._inverse(above)))

    def moments(self) -> tuple[Node, Node]:
        """Mean and standard deviation, winsorized, (rows, 1)."""
        ends = self.quantiles(TAILS).clip(*np.array([rest.extent for rest in self.rule.rests]).T)
        low, high = ends.slice(0, 1), ends.slice(1, 2)
        first, second = self._integrals(low, high)
        if self.rule.stepped:
            few = high - low <= MOST_STEPS * self.rule.step
            first, second = (few.where(*each) for each in zip(self._sums(low, high), (first, second), strict=True))
        if self.shares is not None:
            away = (low * 0.0 + self.points).clip(low, high) - low
            first, second = (
                total + (self.shares * each).sum(keep=True) for total, each in ((first, away), (second, away * away))
            )
        return low + first, (second - first * first).maximum(0.0).sqrt()

    def _above(self, z: Node) -> Node:
        """The probability of the logistics above z. Shapes: (rows, n) to (rows, n)."""
        t = (self.means.unsqueeze(1) - z.unsqueeze(2)) / self.scales.unsqueeze(1)
        return (t.sigmoid() * self.weights.unsqueeze(1)).sum().minimum(self.rest)

    def _inverse(self, above: Node) -> Node:
        """Where the probability of the logistics above falls to ``above``, by bisection. Shapes: (rows, n)."""
        target = (above / self.rest).clip(SURE, 1 - SURE) * self.rest
        far = self.scales * BEYOND
        ends = [(self.means - far).min(keep=True) + target * 0.0, (self.means + far).max(keep=True) + target * 0.0]

        def halved(state: list[Node]) -> list[Node]:
            low, high = state
            middle = (low + high) * 0.5
            more = self._above(middle) > target
            return [more.where(middle, low), more.where(high, middle)]

        low, high = target.graph.repeat(BISECTIONS, ends, halved)
        return (low + high) * 0.5

    def _sums(self, low: Node, high: Node) -> tuple[Node, Node]:
        """The first and second moment about ``low`` of the clipped values of the logistics, over all steps."""
        between, step = np.arange(MOST_STEPS) + 0.5, self.rule.step
        inside = (((high - low) / step).round() > between).double()
        above = self._above(self.rule.inner(low + between * step)) * inside * step
        return above.sum(keep=True), (above * (2 * step * between)).sum(keep=True)

    def _integrals(self, low: Node, high: Node) -> tuple[Node, Node]:
        """As :meth:`_sums`, as integrals."""
        rule, half = self.rule, self.rule.step / 2
        begin, end = rule.inner(low + half), rule.inner(high - half)
        if rule.form.low is not None:
            begin = begin.maximum(rule.form.low)
        first, last = (
            ((each.maximum(begin) - self.means) / self.scales).clip(-FARTHEST, FARTHEST).unsqueeze(2)
            for each in (begin, end)
        )
        wide = (last - first) * 0.5
        t = (first + last) * 0.5 + wide * NODES  # (rows, components, nodes)
        values = rule.straight(self.means.unsqueeze(2) + self.scales.unsqueeze(2) * t)
        if rule.stepped:  # a component narrower than a step is rounded, for the others it makes no difference
            middle = rule.straight(self.means)
            narrow = self.scales < (rule.inner(middle + half) - rule.inner(middle - half)) * 0.5
            rounded = ((values - rule.origin) / rule.step).round() * rule.step + rule.origin
            values = narrow.unsqueeze(2).where(rounded, values)
        away = (values - low.unsqueeze(2)).maximum(0.0)
        p = t.sigmoid()
        moment = p * (-p + 1.0) * NODE_WEIGHTS * wide * self.weights.unsqueeze(2) * away
        beyond, width = self._above(end), high - low
        total, square = (each.sum().sum(keep=True) for each in (moment, moment * away))
        return total + width * beyond, square + width * width * beyond


def _components(rule: Numbers, units: Node, log_weight: Node) -> tuple[Node, Node, Node]:
    """Weights, means and scales of the components of all masks. Shapes: (masks, rows, units) to (rows, components)."""
    count, form, graph = rule.form.components, rule.form, rule.graph
    wide_scales, wide_shares = np.array(CURVED_WIDE if rule.curved else (WIDE_SCALES, WIDE_SHARES))
    logit, mean, log_scale = (units.slice(part * count, (part + 1) * count) for part in range(3))
    zeros = mean.slice(0, 1) * np.zeros(len(wide_scales))
    scale = graph.concat([log_scale.minimum(LARGEST_LOG_SCALE).exp() + form.least_scale, zeros + wide_scales])
    mean = graph.concat([mean, zeros])
    weight = graph.concat([logit.log_softmax() + math.log(form.learned), zeros + np.log(wide_shares)])
    if form.low is not None:
        over = weight + ((mean - form.low) / scale).log_sigmoid()
        weight = weight - over.logsumexp(-1).unsqueeze(-1)
    weight = (weight + log_weight).exp()
    weight, mean, scale = (each.transpose(1, 0, 2).reshape(0, -1) for each in (weight, mean, scale))
    return weight, mean, scale
