"""Columns of numbers in a graph: standardization, steps, points and tails, as their kinds compute them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from made.columns.base import Column
from made.columns.logistic import CURVED_WIDE, FAR_SHARE, WIDE_SCALES, WIDE_SHARES
from made.columns.scale import FARTHEST, PLACES, STRAIGHT
from made.columns.transform import FARTHEST as FARTHEST_BENT
from made.columns.unseen import Unseen
from made.export.graph import WHOLE, Graph, Node
from made.export.likelihood import NOTHING, Listed, Rule, TargetNodes, array

NEAR = 1e-4  # where the arctangent is its argument, to double precision of its logarithm


def codes_of(beside: Unseen, numbers: Node) -> Node:
    """:meth:`made.columns.unseen.Unseen.code_on_grid`."""
    listed, last = np.array(beside.values), len(beside.values) - 1
    least, most = beside.values[0], beside.values[-1]
    if beside.step:
        numbers = (numbers / beside.step).round() * beside.step
    low = (numbers.unsqueeze(-1) >= listed).cast(WHOLE).sum().cast(numbers.dtype) - 1.0
    low = low.clip(0.0, float(max(last - 1, 0)))
    begin, end = (_at(listed, low + more) for more in (0.0, 1.0))
    inside = low + (numbers - begin) / (end - begin).maximum(math.ulp(0.0))
    beyond = (numbers < least).where((numbers - least) / beside.gap, (numbers - most) / beside.gap + float(last))
    outside = (numbers < least) | (numbers > most)
    return outside.where(beyond, inside).clip(-1e15, 1e15)


def _at(table: NDArray[np.float64], place: Node) -> Node:
    """The entry of a table at a place; the last beyond it."""
    index = place.minimum(float(len(table) - 1)).cast(WHOLE)
    return place.graph.constant(table).gather(index, axis=0)


class ListedNumbers(Listed):
    """Columns with a list of numbers, and a probability for all others."""

    def __init__(self, graph: Graph, kinds: Sequence[Column], dtype: np.dtype[Any]) -> None:
        super().__init__(graph, kinds, dtype)
        kind: Any = kinds[0]  # of one family, and so alike
        self.beside: Unseen | None = kind.unseen
        self.position = kind.inputs == kind.codes + 1

    def encode(self, codes: Node) -> Node:
        if not self.position:
            return super().encode(codes)
        count = self.kinds[0].codes
        spread = math.sqrt((count**2 - 1) / 12) or 1.0
        order = ((codes.cast(self.dtype) - (count - 1) / 2) / spread).asinh()
        return self.graph.concat([self._one_hot(codes), order.unsqueeze(-1)])

    def target(self, codes: Node) -> TargetNodes:
        found = super().target(codes)
        if self.beside is None:
            return found
        count = float(self.kinds[0].codes)
        listed = (codes >= 0.0) & (codes < count) & codes.equals(codes.floor())
        tail = (self._log_tail(codes) - self.beside.log_rest).cast(self.dtype)
        nothing = self.graph.constant(NOTHING, self.dtype)
        choice = listed.where(found.choice, self.graph.constant(0.0, self.dtype))
        return TargetNodes(choice, listed.where(found.log_choice, nothing), listed.where(nothing, tail))

    def _log_tail(self, codes: Node) -> Node:
        """log r T of :mod:`made.columns.unseen`."""
        assert self.beside is not None
        beside, listed = self.beside, np.array(self.beside.values)
        last, least, most = len(listed) - 1, beside.values[0], beside.values[-1]
        low = codes.floor().clip(0.0, float(max(last - 1, 0)))
        begin, end = (_at(listed, low + more) for more in (0.0, 1.0))
        inside = begin + (codes - low) * (end - begin)
        beyond = (codes < 0.0).where(codes * beside.gap + least, (codes - float(last)) * beside.gap + most)
        value = ((codes < 0.0) | (codes > float(last))).where(beyond, inside)
        middle = least / 2 + most / 2
        width = max(most / 2 - least / 2, beside.gap)
        place = (value - middle) / width
        if not beside.step:
            return -(place * place + 1.0).log() + (math.log(beside.share) - math.log(math.pi * width))
        half = beside.step / (2 * width)
        ratio = (place * place + (1 - half**2)).apply("Reciprocal") * (2 * half)
        # ONNX Runtime has the arctangent in single precision only, which is enough for its logarithm.
        angle = ratio.cast(np.dtype(np.float32)).apply("Atan").double()
        return (ratio < NEAR).where(ratio, angle).log() + math.log(beside.share / math.pi)


class Numbers(Rule):
    """Columns of numbers, with points or without."""

    def __init__(self, graph: Graph, kinds: Sequence[Column], dtype: np.dtype[Any]) -> None:
        super().__init__(graph, kinds, dtype)
        self.rests: list[Any] = [getattr(kind, "rest", kind) for kind in kinds]
        first = self.rests[0]
        self.stepped, self.curved, self.bounded = first.stepped, first.curve > 0, math.isfinite(first.low)
        self.location, self.scale, self.step, self.curve, self.center, self.low = (
            np.array([getattr(rest, name) for rest in self.rests], dtype=np.float64)
            for name in ("location", "scale", "step", "curve", "center", "low")
        )
        self.origin = self.center if self.curved else self.location
        self.points = np.array([getattr(kind, "points", ()) for kind in kinds], dtype=np.float64)  # (columns, points)
        self.magnitudes = getattr(kinds[0], "magnitudes", True)
        finite = np.where(np.isinf(self.points), 0, self.points)
        places = [array(rest.inner(torch.tensor(some))) for rest, some in zip(self.rests, finite, strict=True)]
        self.places = np.stack(places).reshape(self.points.shape)

    def encode(self, codes: Node) -> Node:
        z, at, which = self._standard(codes)
        units = self._encoded(z.unsqueeze(-1))
        if which is None or at is None:
            return units
        unseen = (which & np.isinf(self.points)).any() if self.magnitudes else at
        return self.graph.concat([which.cast(self.dtype), units * (~unseen).cast(self.dtype).unsqueeze(-1)])

    def _encoded(self, z: Node) -> Node:
        if not self.rests[0].pieces:
            return self.graph.concat([z.asinh(), ((z - np.array(PLACES)) * 2.0).tanh()])
        knots, cuts = (self._standardized(name).astype(self.dtype) for name in ("knots", "cuts"))
        begin, end = knots[:, :-1], knots[:, 1:]
        pieces = ((z - begin) / (end - begin)).clip(0.0, 1.0)
        units = [z.clip(-STRAIGHT, STRAIGHT), z.asinh(), pieces * 2.0 - 1.0]
        units += [(~(z < cuts)).cast(self.dtype) * 2.0 - 1.0] if cuts.size else []
        return self.graph.concat(units)

    def _standardized(self, name: str) -> NDArray[np.float64]:
        """Knots or cuts of each column, (columns, knots or cuts)."""
        return np.stack(
            [array(rest.inner(torch.tensor(getattr(rest, name), dtype=torch.float64))) for rest in self.rests]
        )

    def target(self, codes: Node) -> TargetNodes:
        z, at, which = self._standard(codes)
        mixture = self._of_mixture(z)
        nothing, zero = (self.graph.constant(each, self.dtype) for each in (NOTHING, 0.0))
        if which is None or at is None:
            return TargetNodes(zero, nothing, None, zero, *mixture)
        places = np.arange(self.points.shape[1], dtype=np.float64)
        choice = at.where((which.cast(self.dtype) * places).sum(), self.graph.constant(len(places), self.dtype))
        with_rest = ~at
        if self.stepped:  # at a point, a rest with steps adds its probability
            with_rest = with_rest | (which & np.isfinite(self.points)).any()
        return TargetNodes(choice, at.where(zero, nothing), None, with_rest.where(zero, nothing), *mixture)

    def _standard(self, codes: Node) -> tuple[Node, Node | None, Node | None]:
        """Standardized values, whether each is at a point, and at which; the place of a point is that of the rest."""
        if not self.points.size:
            return self.inner(codes).cast(self.dtype), None, None
        which = codes.unsqueeze(-1).equals(self.points)
        at = which.any()
        place = (which.double() * self.places).sum()
        z = at.where(place, self.inner(at.where(self.graph.constant(0.0), codes)))
        return z.cast(self.dtype), at, which

    def inner(self, values: Node) -> Node:
        """Values of the table, standardized, in double precision."""
        if self.curved:
            values = ((values - self.center) / self.curve).asinh()
        return ((values - self.location) / self.scale).clip(-FARTHEST, FARTHEST)

    def straight(self, z: Node) -> Node:
        """The inverse of :meth:`inner`, not rounded to steps."""
        found = z.double() * self.scale + self.location
        if not self.curved:
            return found
        bent = found.clip(-FARTHEST_BENT, FARTHEST_BENT)
        return (bent.exp() - (-bent).exp()) * (self.curve / 2) + self.center

    def outer(self, z: Node) -> Node:
        """Values of the table, rounded to steps, at least the least one."""
        found = self._nearest(z)
        return found.maximum(self.low) if self.bounded else found

    def _nearest(self, z: Node) -> Node:
        found = self.straight(z)
        if not self.stepped:
            return found
        found = ((found - self.origin) / self.step).round() * self.step + self.origin
        parts = np.round(1 / self.step)
        whole = np.abs(self.origin * parts - np.round(self.origin * parts)) < 1e-6
        decimal = (self.step < 1) & (np.abs(parts * self.step - 1) < 1e-9) & whole
        parts = np.where(decimal, parts, 1)
        return self.graph.constant(decimal).where((found * parts).round() / parts, found)

    def _slope(self, bent: Node) -> Node:
        """:func:`made.columns.transform.log_slope`."""
        size = bent.abs()
        return -size - (size * -2.0).softplus() + (math.log(2) - np.log(self.curve))

    def _of_mixture(self, z: Node) -> tuple[Node, ...]:
        """begin, width, wide, log_factor and log_far of a target."""
        double = z.double()
        begin, width = self._step_of(z) if self.stepped else (z, self.graph.constant(0.0, self.dtype))
        scales, shares = (np.array(each) for each in (CURVED_WIDE if self.curved else (WIDE_SCALES, WIDE_SHARES)))
        below, above = (each.double().unsqueeze(-1) for each in (begin, begin + width))
        factor = self.graph.constant(math.log1p(-FAR_SHARE))
        cell = self.graph.constant(0.0)
        if not self.stepped:
            area = self.graph.constant(1 / scales)
            cell = self.graph.constant(-np.log(self.scale))
            if self.curved:
                cell = cell + self._slope(double * self.scale + self.location)
            factor = factor + cell
        else:
            area = (width.double().unsqueeze(-1) / scales).one_minus_exp()
            cell = width.double().log()
        wide = ((above / scales).sigmoid() * (-below / scales).sigmoid() * area * shares).sum()
        far = -(double * double + 1.0).log() + math.log(FAR_SHARE / math.pi) + cell
        if self.bounded:
            low = np.array([rest.form.low for rest in self.rests])
            factor = (z < low).where(self.graph.constant(NOTHING), factor)
        return begin, width, *(each.cast(self.dtype) for each in (wide, factor, far))

    def _step_of(self, z: Node) -> tuple[Node, Node]:
        """The lower end and the width of the step of each standardized value."""
        if not self.curved:
            width = self.step.astype(self.dtype) / self.scale.astype(self.dtype)
            return z - width / 2, self.graph.constant(width)
        found = self._nearest(z)
        below, above = self.inner(found - self.step / 2), self.inner(found + self.step / 2)
        slope = self._slope(((found - self.center) / self.curve).asinh()).exp() / self.scale
        far = (found - self.center).abs() > 1e6 * self.step
        return below.cast(self.dtype), far.where(slope * self.step, above - below).cast(self.dtype)
