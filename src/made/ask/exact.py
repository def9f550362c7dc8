r"""The probability of a condition, given another: a sum over states where possible, otherwise an estimate.

:math:`P(A \mid B) = P(A \wedge B) / P(B)` is computed under one distribution, so that the probabilities of a condition
and of its negation add up to one. An any-order model puts the columns of B first, then those of A, as in all its
conditional answers, and leaves out all others. A model of fixed orderings keeps its own.

*Exact* is a sum over the states in the condition: all values of discrete columns, and of bounded numbers in steps. One
column may have a range: it comes last, and the probability of an interval under its mixture is exact, too. With more
states than :data:`MOST_STATES`, or with more ranges, :mod:`made.ask.progressive` estimates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.ask.boxes import Box, Boxes, box_of, boxes_of, columns_of, common, everything, is_points, values_in
from made.ask.expressions import Condition, Not, Query
from made.ask.parser import parse
from made.ask.progressive import MOST_CELLS, Cells, Estimate, impossible
from made.columns.base import Column
from made.errors import QuestionError
from made.hints import argument
from made.queries.conditional import predict
from made.queries.ensemble import Ensemble
from made.queries.likelihood import log_prob
from made.tables.field import Field

MOST_STATES = 10_000
SAMPLES = 4096
OF_NEGATION = ", for the negation, subtracted from 1"


@dataclass(frozen=True)
class Probability:
    """The probability of a condition.

    Attributes:
        question: the question as it was parsed.
        probability: the answer.
        kind: ``"exact"``, a sum over states, or ``"estimate"``.
        standard_error: the standard error of an estimate; 0 if exact.
        how: how it was computed, in words.
        states: the number of states that an exact answer sums over.
        samples: the number of paths that an estimate averages.

    Example:
        >>> print(Probability("age < 30", 0.18312, "estimate", 0.00204, "", samples=4096))
        P(age < 30) = 0.1831 ± 0.0040 (estimate: 95 % interval, 4096 paths)
        >>> print(Probability("job = 'fixed'", 0.25, "exact", 0.0, "", states=1))
        P(job = 'fixed') = 0.25 (computed directly)
    """

    question: str
    probability: float
    kind: Literal["exact", "estimate"]
    standard_error: float
    how: str
    states: int | None = None
    samples: int | None = None

    def __float__(self) -> float:
        return self.probability

    def __str__(self) -> str:
        if self.kind == "exact":
            count = f"computed by summing {self.states} states" if self.states != 1 else "computed directly"
            return f"P({self.question}) = {self.probability:.4g} ({count if self.states else self.how})"
        half = 1.96 * self.standard_error
        shown = f"{self.probability:.4g} ± {half:.2g}"
        if half > 1e-6:  # two significant digits of the error
            digits = max(0, 1 - math.floor(math.log10(half)))
            shown = f"{self.probability:.{digits}f} ± {half:.{digits}f}"
        return f"P({self.question}) = {shown} (estimate: 95 % interval, {self.samples} paths)"

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval."""
        half = 1.96 * self.standard_error
        return max(0.0, self.probability - half), min(1.0, self.probability + half)


def probability(
    ensemble: Ensemble,
    fields: Sequence[Field],
    question: str | Query,
    *,
    samples: int = SAMPLES,
    most_states: int = MOST_STATES,
    generator: torch.Generator | None = None,
    known: Mapping[int, float] | None = None,
) -> Probability:
    """The probability of a condition, given another, under the ensemble; see :mod:`made.ask.parser`.

    An estimate takes as many paths as ``samples``, rounded up to the same number for each mask. A sum has at most
    ``most_states`` states; 0 forces an estimate. ``known`` are codes of columns that are given as well, by number.
    """
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 2:
        raise ValueError(f"{argument('samples')} should be a whole number, at least 2, not {samples!r}.")
    query = parse(question, fields)
    kinds = list(ensemble.network.columns)
    conditions = boxes_of(query.given, fields, kinds)
    if known:
        conditions = common(conditions, [box_of(known, fields, kinds)], kinds)
    given, points = _possible(conditions, kinds, query)
    text, sides = str(query), [(False, _inside(query.asked, given, points, fields, kinds))]
    with suppress(QuestionError):  # the negation may fall into too many boxes; then it is not used
        sides.append((True, _inside(Not(query.asked), given, points, fields, kinds)))
    for turned, boxes in sides:
        if not boxes:
            how = "the condition always holds" if turned else "the condition never holds"
            return Probability(text, float(turned), "exact", 0.0, how, states=0)
    exact = _Exact(ensemble, most_states)
    for turned, boxes in sides:
        answer = exact.answer(boxes, given)
        if answer is not None:
            log_p, states, how = answer
            p = min(1.0, math.exp(log_p))
            return Probability(text, 1 - p if turned else p, "exact", 0.0, how + OF_NEGATION * turned, states=states)
    # Equally many paths of each mask, and if possible of each pair of masks.
    masks = len(ensemble.numbers)
    each = masks**2 if samples >= 2 * masks**2 else masks
    paths = each * max(2, -(-int(samples) // each))
    # The fewer boxes paths can end in, the less their weights differ.
    turned, boxes = min(sides, key=lambda side: len(side[1]))
    mean, error, how = Estimate(ensemble, paths, generator).answer(boxes, given)
    p = min(1.0, mean)
    return Probability(text, 1 - p if turned else p, "estimate", error, how + OF_NEGATION * turned, samples=paths)


def _inside(
    condition: Condition, given: Boxes, points: frozenset[int], fields: Sequence[Field], kinds: Sequence[Column]
) -> Boxes:
    """A condition within what is given, without boxes of probability 0: single real numbers that are not given."""
    boxes = common(boxes_of(condition, fields, kinds), given, kinds)
    return [box for box in boxes if _points(box, kinds) == points]


def _points(box: Box, kinds: Sequence[Column]) -> frozenset[int]:
    """The columns of real numbers that a box fixes to single values."""
    return frozenset(d for d, region in box.items() if is_points(region, kinds[d]))


def _possible(given: Boxes, kinds: Sequence[Column], query: Query) -> tuple[Boxes, frozenset[int]]:
    """The boxes of what is given that are not infinitely less likely than others, and the columns they fix."""
    if not given:
        raise QuestionError(f"the given condition is impossible: no row satisfies {query.given}.")
    fixed = [_points(box, kinds) for box in given]
    least = min(map(len, fixed))
    chosen = {each for each in fixed if len(each) == least}
    if len(chosen) > 1:
        raise QuestionError(
            f"the given condition, {query.given}, fixes real numbers in different columns, whose densities cannot be "
            "compared: give ranges, such as 'between 49 and 51', or ask about each separately."
        )
    return [box for box, each in zip(given, fixed, strict=True) if len(each) == least], chosen.pop()


class _Exact:
    """Sums over states."""

    def __init__(self, ensemble: Ensemble, most: int) -> None:
        self.ensemble, self.network, self.most = ensemble, ensemble.network, most
        self.kinds: list[Column] = list(ensemble.network.columns)
        self._known: dict[object, Tensor] = {}  # numerator and denominator share p(given)

    def answer(self, both: Boxes, given: Boxes) -> tuple[float, int, str] | None:
        """log P, the number of states, and how; ``None`` if there are too many states or ranges."""
        found = self._any_order(both, given) if self.ensemble.any_order else self._fixed(both, given)
        if found is None:
            return None
        (above, above_states), (below, below_states), last = found
        if below == -math.inf:
            raise impossible()
        states = max(above_states, below_states)
        how = f"summing {states} states" if states > 1 else "evaluating 1 state"
        if last is not None:
            how += f", integrating '{self.network.columns.names[last]}' between its limits in each"
        return above - below, states, how

    def _any_order(self, both: Boxes, given: Boxes) -> tuple[tuple[float, int], tuple[float, int], int | None] | None:
        first = columns_of(given)
        second = [d for d in columns_of(both) if d not in first]
        last = self._last(both, given, first, second)
        before = [d for d in first if d != last]
        above = self._total(both, before, [d for d in second if d != last], last, self.ensemble)
        # If the last column is given, it comes after the columns asked for in the denominator, too.
        after, end = (second, last) if last in first else ([], None)
        below = None if above is None else self._total(given, before, after, end, self.ensemble)
        return None if above is None or below is None else (above, below, last)

    def _last(self, both: Boxes, given: Boxes, first: list[int], second: list[int]) -> int | None:
        """The column to put last and integrate: one with too many values, or else a number that is asked for."""
        counts: dict[int, float] = {}
        for d in first + second:
            boxes = both + given if d in first else both
            found = [values_in(box.get(d, everything(self.kinds[d])), self.kinds[d], self.most) for box in boxes]
            counts[d] = max(math.inf if values is None else len(values) for values in found)
        ranges = [d for d in counts if counts[d] == math.inf]
        numbers = [d for d in second if not self.kinds[d].listed]
        return max(ranges or numbers, key=counts.__getitem__, default=None)

    def _fixed(self, both: Boxes, given: Boxes) -> tuple[tuple[float, int], tuple[float, int], int | None] | None:
        """Each mask sums over all columns up to the last one mentioned; columns not mentioned take all their values."""
        totals: list[list[tuple[float, int]]] = [[], []]
        last = None
        for number in self.ensemble.numbers:
            ordering, member = self.network.connectivities[number].ordering, self.ensemble.with_masks([number])
            for boxes, found in ((both, totals[0]), (given, totals[1])):
                end = max((int(ordering[d]) for d in columns_of(boxes)), default=0)
                prefix = ordering.argsort().tolist()[:end]
                numeric = bool(prefix) and not self.kinds[prefix[-1]].listed
                last = prefix[-1] if numeric else last
                rest = prefix[:-1] if numeric else prefix
                total = self._total(boxes, [], rest, prefix[-1] if numeric else None, member)
                if total is None:
                    return None
                found.append(total)
        logs = [torch.tensor([log_p for log_p, _ in found], dtype=torch.float64) for found in totals]
        counts = [sum(count for _, count in found) for found in totals]
        above, below = ((log.logsumexp(dim=0).item(), count) for log, count in zip(logs, counts, strict=True))
        return above, below, last

    def _total(
        self, boxes: Boxes, first: list[int], second: list[int], last: int | None, ensemble: Ensemble
    ) -> tuple[float, int] | None:
        """log P of boxes, and the number of states: p(first) p(second | first) p(last in its range | both)."""
        columns = first + second
        states = self._states(boxes, columns)
        if states is None:
            return None
        rows = np.full((len(states), len(self.kinds)), np.nan)
        rows[:, columns] = np.array(list(states)).reshape(len(states), len(columns))
        total = torch.zeros(len(rows), dtype=torch.float64)
        if first:
            distinct, place = np.unique(rows[:, first], axis=0, return_inverse=True)
            alone = np.full((len(distinct), len(self.kinds)), np.nan)
            alone[:, first] = distinct
            total += self._log_prob(alone, None, ensemble)[torch.from_numpy(place.reshape(-1))]
        if second:
            total += self._log_prob(rows, first or None, ensemble)
        if last is not None:
            cells = Cells(last, self.kinds[last], boxes)
            if len(cells) * len(rows) * len(ensemble.numbers) > MOST_CELLS:
                return None
            total += self._log_area(rows, last, cells, list(states.values()), ensemble)
        return total.logsumexp(0).item(), len(states)

    def _states(self, boxes: Boxes, columns: list[int]) -> dict[tuple[float, ...], list[int]] | None:
        """The states of some columns that boxes allow, and the boxes that allow each."""
        states: dict[tuple[float, ...], list[int]] = {}
        looked_at = 0
        for number, box in enumerate(boxes):
            found = [values_in(box.get(d, everything(self.kinds[d])), self.kinds[d], self.most) for d in columns]
            values = [each for each in found if each is not None]
            if len(values) < len(found) or math.prod(map(len, values)) > self.most:
                return None
            for state in product(*values):
                states.setdefault(state, []).append(number)
            looked_at += math.prod(map(len, values))
            if len(states) > self.most or looked_at > 10 * self.most:
                return None
        return states

    def _log_prob(self, rows: NDArray[np.float64], given: list[int] | None, ensemble: Ensemble) -> Tensor:
        key = rows.tobytes(), tuple(given or ()), tuple(ensemble.numbers)
        if key not in self._known:
            self._known[key] = log_prob(ensemble, rows, given=given).double().cpu()
        return self._known[key]

    def _log_area(
        self, rows: NDArray[np.float64], last: int, cells: Cells, which: list[list[int]], ensemble: Ensemble
    ) -> Tensor:
        """log P that the last column is in the boxes of a row, given the row."""
        allowed = torch.stack([cells.flags[numbers_of].any(dim=0) for numbers_of in which])
        answers = []
        for part in torch.arange(len(rows)).split(1000):
            prediction = predict(ensemble, rows[part.numpy()], last)
            mass = (prediction.weights.double().unsqueeze(-1) + cells.log_intervals(prediction.units)).cpu()
            answers.append(mass.masked_fill(~allowed[part], -torch.inf).logsumexp(dim=(0, 2)))
        return torch.cat(answers)
