r"""Progressive sampling: the probability that many columns lie in given regions, estimated by sample paths.

A path visits the columns in an ordering. At each column it multiplies its weight by the probability, given the path so
far, of the column's region, and draws a value *within* the region. The mean weight is an unbiased estimate of the joint
probability of all regions (Yang et al., *Deep unsupervised cardinality estimation*, 2019), and no path is rejected.

Here paths go through a *union* of disjoint boxes: a path keeps the boxes that it can still end in, and the region of a
column is the union of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

from made.ask.boxes import Boxes, Region, columns_of, everything, is_points, values_in
from made.columns.base import Column
from made.columns.choice import choose
from made.errors import QuestionError
from made.hints import argument
from made.queries.conditional import column_units
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.random import uniform
from made.queries.sampling import complete

ROWS = 1000  # in a pass
NUMBERS = 2**18  # output units, of rows and cells together, worked on at once
MOST_CELLS = 2**22  # of all paths together, in one column


class Cells:
    """The cells of one column: each cell lies entirely inside or entirely outside of each box.

    Cells are the values of a discrete column, or the intervals between the ends of the boxes of a numeric one: ``low``
    and ``high`` of each cell that is in a box. ``flags`` are the cells of each box, (boxes, cells).
    """

    def __init__(self, d: int, kind: Column, boxes: Boxes) -> None:
        self.kind, self.discrete = kind, kind.listed
        ((least, most),) = everything(kind)
        regions = [box.get(d, ((least, most),)) for box in boxes]
        ends = {least, most, *(end for region in regions for interval in region for end in interval)}
        if self.discrete:
            ends = {code - 0.5 for code in range(round(most + 1.5))}
        bounds = torch.tensor(sorted(ends), dtype=torch.float64)
        flags = torch.stack([_inside(region, bounds[:-1]) for region in regions])
        used = flags.any(dim=0)
        self.low, self.high, self.flags = bounds[:-1][used], bounds[1:][used], flags[:, used]
        # A given real number may be a single value: then its density counts, the same for everything asked.
        self.points = all(is_points(region, kind) for region in regions)

    def __len__(self) -> int:
        return len(self.low)

    def log_intervals(self, units: Tensor) -> Tensor:
        """The log probability of each cell. Shapes: (..., outputs) to (..., cells)."""
        units = units.double()
        if self.discrete or self.points:
            values = [self._value(cell, units) for cell in range(len(self))]
            return torch.stack([self.kind.log_prob(units, value.expand(units.shape[:-1])) for value in values], dim=-1)
        some = max(1, NUMBERS // max(1, units.numel()))
        parts = zip(self.low.split(some), self.high.split(some), strict=True)
        return torch.cat([self.kind.log_interval(units.unsqueeze(-2), low, high) for low, high in parts], dim=-1)

    def draw(self, units: Tensor, cells: Tensor, uniform: Tensor) -> Tensor:
        """A value from within one cell of each row. Shapes: (rows, outputs), (rows), (rows) to (rows)."""
        units = units.double()
        if self.discrete or self.points:
            known = torch.stack([self._value(cell, units) for cell in range(len(self))])
            return known.to(uniform.dtype).index_select(0, cells)
        places = cells.cpu()
        return self.kind.draw_interval(units, self.low[places], self.high[places], uniform)

    def _value(self, cell: int, like: Tensor) -> Tensor:
        """The only value of a cell, coded."""
        low = self.low[cell].item()
        value = torch.tensor(low + 0.5 if self.discrete else max(low, -1e300), dtype=torch.float64)
        return self.kind.inner(value).to(like.device)


def _inside(region: Region, values: Tensor) -> Tensor:
    """Whether values are in a region. Shapes: (values) to (values)."""
    low, high = torch.tensor(region, dtype=torch.float64).t()
    place = torch.searchsorted(low.contiguous(), values, right=True) - 1
    inside: Tensor = (place >= 0) & (values < high[place.clamp(min=0)])
    return inside


class Paths:
    """Several paths: their values and the logarithms of their weights.

    They start at the coded values of the ``known`` columns. Shape of the values: (paths, columns).
    """

    def __init__(self, ensemble: Ensemble, values: Tensor, known: Tensor, generator: torch.Generator | None) -> None:
        self.ensemble, self.network, self.generator = ensemble, ensemble.network, generator
        self.values, self.known = values.clone(), known.expand_as(values).clone()
        self.log_weight = values.new_zeros(len(values), dtype=torch.float64)

    def enter(self, boxes: Boxes) -> None:
        """From now on paths must end in these boxes, which contain all that is known; weights are reset."""
        kinds = self.network.columns
        self._boxes, self._cells = boxes, {d: Cells(d, kinds[d], boxes) for d in columns_of(boxes)}
        for d, cells in self._cells.items():
            if len(cells) * len(self.values) > MOST_CELLS:
                raise QuestionError(
                    f"the values of '{kinds.names[d]}' fall into {len(cells):,} ranges, and an estimate by "
                    f"{len(self.values):,} paths takes at most {MOST_CELLS // len(self.values):,}: ask a simpler "
                    f"question, or use fewer {argument('samples')}."
                )
        self._alive = torch.ones(len(self.values), len(boxes), dtype=torch.bool, device=self.values.device)
        self.log_weight = torch.zeros_like(self.log_weight)

    @torch.no_grad()
    def visit(self, columns: Sequence[int], numbers: Tensor) -> None:
        """Visit columns, each path in the ordering of its mask.

        An any-order model puts these columns right after all that is known. In a fixed ordering others may come before
        the last of them; their values are drawn.
        """
        visit = self._visit_prefix
        if self.ensemble.any_order:
            visit = self._visit_any_order
            more = {d: Cells(d, self.network.columns[d], self._boxes) for d in columns if d not in self._cells}
            self._cells |= more
        for number in numbers.unique().tolist():
            visit((numbers == number).nonzero().squeeze(1).to(self.values.device), columns, number)

    def _visit_any_order(self, which: Tensor, columns: Sequence[int], number: int) -> None:
        known = self.known[which]
        given = known.clone() if known.any() else None
        known[:, list(columns)] = True
        # Every path asks for the same columns, so the passes of the first path serve all.
        first = Evidence(self.values[which[:1]], known[:1], None if given is None else given[:1])
        (group,) = self.ensemble.with_masks([number]).schedule.groups(first)
        (mask,) = group.masks
        for connectivity, flags in group.passes(mask):
            layout = self.network.layout(connectivity, rows=len(which))
            for d in layout.connectivity.ordering.argsort(kind="stable").tolist():
                if d in columns and (flags is None or flags[d]):
                    evidence = Evidence(self.values[which], known, given)
                    self._step(which, d, column_units(self.network, layout, evidence, d, ROWS))
        self.known[which] = known

    def _visit_prefix(self, which: Tensor, columns: Sequence[int], number: int) -> None:
        ordering = self.network.connectivities[number].ordering
        first, last = int(self.known[which[0]].sum()), max(ordering[d] for d in columns)
        layout = self.network.layout(number, rows=len(which))
        for asked, part in groupby(ordering.argsort().tolist()[first:last], key=self._cells.__contains__):
            if asked:
                for d in part:
                    self.known[which, d] = True
                    evidence = Evidence(self.values[which], self.known[which])
                    self._step(which, d, column_units(self.network, layout, evidence, d, ROWS))
            else:
                run = list(part)
                self._fill(which, run, number)
                self.known[which[:, None], torch.tensor(run, device=which.device)] = True

    def _fill(self, which: Tensor, columns: Sequence[int], number: int) -> None:
        """Draw columns that the boxes do not restrict, all of them in one pass."""
        rows = self.values[which].masked_fill(~self.known[which], torch.nan)
        noise = uniform(*rows.shape, like=rows, generator=self.generator)
        filled = complete(self.ensemble, rows, torch.full((len(rows),), number), noise, batch_size=ROWS)
        for d in columns:
            self.values[which, d] = filled[:, d]

    def _step(self, which: Tensor, d: int, units: Tensor) -> None:
        """Multiply weights by the probability of the boxes that paths can still end in, and draw within them."""
        cells, alive = self._cells[d], self._alive[which]
        flags = cells.flags.to(alive.device)
        allowed = (alive.double() @ flags.double()) > 0  # (paths, cells)
        masses = cells.log_intervals(units).masked_fill(~allowed, -torch.inf)
        self.log_weight[which] += masses.logsumexp(dim=1)
        noise = torch.rand(len(which), generator=self.generator, dtype=torch.float64, device=self.values.device)
        chosen, within = choose(masses, noise)  # a path without any box left has weight 0
        self.values[which, d] = cells.draw(units, chosen, within).to(self.values.dtype)
        self._alive[which] = alive & flags.t()[chosen]


class Estimate:
    """Means over paths, an equal number for each mask."""

    def __init__(self, ensemble: Ensemble, count: int, generator: torch.Generator | None) -> None:
        self.ensemble, self.network, self.count, self.generator = ensemble, ensemble.network, count, generator
        self.masks = torch.tensor(ensemble.numbers)
        self.any_order = ensemble.any_order

    def answer(self, both: Boxes, given: Boxes) -> tuple[float, float, str]:
        """The mean, its standard error, and how."""
        first = columns_of(given)
        second = [d for d in columns_of(both) if d not in first]
        how = f"progressive sampling, {self.count} paths through {len(first + second)} columns"
        how += "" if self.any_order else " and all that come before these in the orderings"
        state, beside = self._state(given), self._beside(both, given, second)
        if beside is not None and (not first or (self.any_order and state is not None)):
            paths = self._start(state or {})
            paths.enter(beside)
            paths.visit(second, self._mask_of(0))
            mean, error, scale = _mean(paths.log_weight, len(self.masks))
            return math.exp(scale) * mean, math.exp(scale) * error, how
        if beside is not None:
            paths = self._start({})
            paths.enter(given)
            paths.visit(first, self._mask_of(0))
            weight = paths.log_weight
            paths.enter(beside)
            paths.visit(second, self._mask_of(1))
            how += ", weighted by the probability of the given condition"
            return *_ratio(weight, paths.log_weight, self._strata), how
        above, below = self._start({}), self._start({})
        above.enter(both)
        below.enter(given)
        above.visit(first if self.any_order else first + second, self._mask_of(0))
        if self.any_order and second:
            above.visit(second, self._mask_of(1))
        below.visit(first, self._mask_of(0))
        mean, error, scale = _mean(above.log_weight, self._strata)
        given_mean, given_error, given_scale = _mean(below.log_weight, len(self.masks))
        if given_mean == 0:
            raise impossible()
        answer = math.exp(scale - given_scale) * mean / given_mean
        relative = math.hypot(error / mean if mean else 0.0, given_error / given_mean)
        return answer, answer * relative, how + ", and as many through the given columns"

    def _start(self, state: dict[int, float]) -> Paths:
        row = [state.get(d, math.nan) for d in range(len(self.network.columns))]
        evidence = Evidence.of(self.network, torch.tensor([row], dtype=torch.float64))
        return Paths(self.ensemble, evidence.values.expand(self.count, -1), evidence.is_observed[0], self.generator)

    def _mask_of(self, block: int) -> Tensor:
        """A mask for each path, in turn; in the second block of an any-order model, paired with each of the first."""
        path, masks = torch.arange(self.count), len(self.masks)
        return self.masks[(path // masks if block and self.any_order else path) % masks]

    @property
    def _strata(self) -> int:
        """The number of strata: masks, or pairs of masks of the two blocks if there are enough paths."""
        masks = len(self.masks)
        return masks**2 if self.any_order and self.count % masks**2 == 0 and self.count > masks**2 else masks

    def _state(self, given: Boxes) -> dict[int, float] | None:
        """The given values, if each given column is fixed to a single one."""
        if len(given) > 1:
            return None
        found = {d: values_in(region, self.network.columns[d], 1) for d, region in given[0].items()}
        return {d: values[0] for d, values in found.items() if values} if all(found.values()) else None

    def _beside(self, both: Boxes, given: Boxes, second: list[int]) -> Boxes | None:
        """The boxes of the other columns, if they do not depend on the given values and their columns come later."""
        first = columns_of(given)
        if not self.any_order and first and second:
            orderings = [self.network.connectivities[number].ordering for number in self.masks.tolist()]
            if any(max(ordering[first]) > min(ordering[second]) for ordering in orderings):
                return None
        parts: list[Boxes] = [[] for _ in given]
        for box in both:
            inside = {d: region for d, region in box.items() if d in first}
            if inside not in given or not second:
                return None
            parts[given.index(inside)].append({d: region for d, region in box.items() if d not in first})
        return parts[0] if all(part == parts[0] for part in parts) else None


def _mean(log_weight: Tensor, strata: int) -> tuple[float, float, float]:
    """The mean weight, its standard error, and the log of the factor of both.

    Paths are stratified by mask, so that differences between masks do not count as error.
    """
    scale = max(log_weight.max().item(), -1e300)
    weight = (log_weight - scale).exp()
    return weight.mean().item(), _error(weight, strata), scale


def _ratio(log_weight: Tensor, log_value: Tensor, strata: int) -> tuple[float, float]:
    """The mean value, weighted, and its standard error by the delta method."""
    weight = (log_weight - log_weight.max()).exp()
    if not weight.sum() > 0:
        raise impossible()
    weight, value = weight / weight.mean(), log_value.exp()
    mean = (weight * value).mean()
    return mean.item(), _error(weight * (value - mean), strata)


def _error(values: Tensor, strata: int) -> float:
    """The standard error of the mean of values in interleaved strata of equal size."""
    by_stratum = values.reshape(-1, strata)
    return math.sqrt(by_stratum.var(dim=0).mean().item() / len(values))


def impossible() -> QuestionError:
    """The error for a given condition of probability 0."""
    return QuestionError("what is given has probability 0 under the model: give something that is possible.")
