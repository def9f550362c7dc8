"""A condition as a union of disjoint boxes, each a region of values for each column that the condition mentions.

A *region* is a set of values of one column: disjoint half-open intervals [low, high). One algebra serves every column
kind. A value on a grid (a code, an integer) is the interval of half a spacing on each side; among real numbers,
``x <= v`` ends at the float after v.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import eq, ge, gt, le, lt
from typing import TypeAlias

from made.ask.expressions import And, Comparison, Condition, Membership, Missing, Not, Or, Range, Value
from made.columns.base import MISSING, Column
from made.errors import QuestionError
from made.tables.dates import seconds_in
from made.tables.field import Field

Region: TypeAlias = tuple[tuple[float, float], ...]
Box: TypeAlias = Mapping[int, Region]
Boxes: TypeAlias = list[dict[int, Region]]

MOST_BOXES = 1000
# Interval operations, about as many as take a few seconds.
MOST_STEPS = 3_000_000
COMPARE: dict[str, Callable[[float, float], bool]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


def everything(kind: Column) -> Region:
    """The region of all values of a column; a modelled "missing" comes after all numbers."""
    return (kind.support,)


def union(*regions: Region) -> Region:
    """The union of regions.

    Example:
        >>> union(((0.0, 1.0), (4.0, 5.0)), ((1.0, 2.0),))
        ((0.0, 2.0), (4.0, 5.0))
    """
    joined: list[tuple[float, float]] = []
    for low, high in sorted(interval for region in regions for interval in region):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def intersect(first: Region, second: Region) -> Region:
    """The intersection of two regions.

    Example:
        >>> intersect(((0.0, 2.0), (4.0, 6.0)), ((1.0, 5.0),))
        ((1.0, 2.0), (4.0, 5.0))
    """
    shared: list[tuple[float, float]] = []
    one = other = 0
    while one < len(first) and other < len(second):
        low, high = max(first[one][0], second[other][0]), min(first[one][1], second[other][1])
        if low < high:
            shared.append((low, high))
        if first[one][1] < second[other][1]:
            one += 1
        else:
            other += 1
    return tuple(shared)


def complement(region: Region, kind: Column) -> Region:
    """The values of the column that are not in the region."""
    ((least, most),) = everything(kind)
    ends = [least, *(end for interval in region for end in interval), most]
    return tuple((low, high) for low, high in zip(ends[::2], ends[1::2], strict=True) if low < high)


def values_in(region: Region, kind: Column, most: int) -> list[float] | None:
    """The values in a region, if there are at most ``most``."""
    origin, spacing = kind.grid
    values: list[float] = []
    for low, high in region:
        if low == MISSING:
            values.append(math.inf)
        elif spacing:
            if not (math.isfinite(low) and math.isfinite(high)) or len(values) + (high - low) / spacing > most + 0.5:
                return None
            first, last = (round((end - origin) / spacing + 0.5) for end in (low, high))
            values += [origin + number * spacing for number in range(first, last)]
        elif high == math.nextafter(low, math.inf):
            values.append(low)
        else:
            return None
    if not spacing and not is_points(region, kind):  # beside an atom, single values have probability 0
        values = [value for value in values if value in kind.atoms]
    return values if len(values) <= most else None


def is_points(region: Region, kind: Column) -> bool:
    """Whether the region consists of single real numbers, which have a density but no probability."""
    atoms = [min(atom, MISSING) for atom in kind.atoms]
    return not kind.grid[1] and all(high == math.nextafter(low, math.inf) and low not in atoms for low, high in region)


def boxes_of(condition: Condition | None, fields: Sequence[Field], kinds: Sequence[Column]) -> Boxes:
    """The disjoint boxes whose union is the set of rows that satisfy a condition; none if no row does.

    A column that is not in a box may have any value. ``kinds`` are the column kinds of the network.

    Example:
        >>> from made import Binary, Numeric
        >>> fields = [Field("sex", Binary(), ("f", "m"), dtype="text"), Field("age", Numeric(40, 10, step=1))]
        >>> condition = Or((Comparison("sex", "=", "f"), Comparison("age", "<", 30)))
        >>> for box in boxes_of(condition, fields, [field.column for field in fields]):
        ...     print(box)
        {0: ((-0.5, 0.5),)}
        {1: ((-inf, 29.5),), 0: ((0.5, 1.5),)}
    """
    return [{}] if condition is None else _Algebra(kinds, fields).boxes(condition, False)


def box_of(known: Mapping[int, float], fields: Sequence[Field], kinds: Sequence[Column]) -> dict[int, Region]:
    """The box of the codes of some columns, by number.

    Example:
        >>> from made import Binary, Numeric
        >>> fields = [Field("sex", Binary(), ("f", "m"), dtype="text"), Field("age", Numeric(40, 10, step=1))]
        >>> box_of({0: 1, 1: 30}, fields, [field.column for field in fields])
        {0: ((0.5, 1.5),), 1: ((29.5, 30.5),)}
    """
    box: dict[int, Region] = {}
    for d, code in known.items():
        kind = kinds[d]
        if kind.listed and code not in range(kind.codes):
            raise QuestionError(
                f"column {fields[d].name!r} is given a value that training never saw, so the probability is "
                "undefined: give another value."
            )
        ends = (code - 0.5, code + 0.5) if kind.listed else _ends(code, kind)
        box[d] = ((MISSING, math.inf) if math.isinf(code) else ends,)
    return box


def columns_of(boxes: Boxes) -> list[int]:
    """The columns that boxes restrict."""
    return sorted({d for box in boxes for d in box})


def common(first: Boxes, second: Boxes, kinds: Sequence[Column]) -> Boxes:
    """The intersection of two unions of boxes."""
    return _few(_Algebra(kinds).both(first, second))


class _Algebra:
    """Unions and intersections of boxes, in a bounded number of steps."""

    def __init__(self, kinds: Sequence[Column], fields: Sequence[Field] = ()) -> None:
        self.kinds, self.steps = kinds, 0
        self.places = {field.name: (d, field) for d, field in enumerate(fields)}

    def boxes(self, part: Condition, contrary: bool) -> Boxes:
        """The disjoint boxes of a condition, or of its negation."""
        if isinstance(part, Not):
            return self.boxes(part.part, not contrary)
        if isinstance(part, (And, Or)):
            parts = [self.boxes(each, contrary) for each in part.parts]
            return self._all(parts) if isinstance(part, And) != contrary else self._any(parts)
        d, field = self.places[part.column]
        region = _region(part, field, self.kinds[d])
        region = complement(region, self.kinds[d]) if contrary else region
        return _plain([{d: region}], self.kinds)

    def _all(self, parts: Sequence[Boxes]) -> Boxes:
        """The intersection of unions of boxes; restrictions of a single column are merged first."""
        excluded: dict[int, list[Region]] = {}
        rest = []
        for boxes in parts:
            if len(boxes) == 1 and len(boxes[0]) == 1:
                ((d, region),) = boxes[0].items()
                excluded.setdefault(d, []).append(complement(region, self.kinds[d]))
            else:
                rest.append(boxes)
        regions = {d: complement(union(*each), self.kinds[d]) for d, each in excluded.items()}
        result = _plain([regions], self.kinds)
        for boxes in rest:
            result = self._fewer(self.both(result, boxes))
        return _few(result)

    def _any(self, parts: Sequence[Boxes]) -> Boxes:
        """The union of unions of boxes; boxes that differ in a single column are merged first."""
        every = self._merge([box for boxes in parts for box in boxes])
        if {} in every:
            return [{}]
        result: Boxes = []
        for box in every:
            result = self._fewer(self._either(result, box))
        return _few(self._merge(result))

    def _merge(self, boxes: Boxes) -> Boxes:
        if len(boxes) < 2:
            return boxes
        width = len(columns_of(boxes))
        self._spend(sum(width + len(region) for box in boxes for region in box.values()))
        return _plain(_merged(boxes), self.kinds)

    def _fewer(self, boxes: Boxes) -> Boxes:
        return _few(self._merge(boxes)) if len(boxes) > MOST_BOXES else boxes

    def both(self, first: Boxes, second: Boxes) -> Boxes:
        """The intersection of two unions of boxes."""
        joined: Boxes = []
        for one in first:
            for other in second:
                self._spend(4)
                box = self._both(one, other)
                joined += [box] if all(box.values()) else []
            joined = self._fewer(joined)
        return self._merge(_plain(joined, self.kinds))

    def _either(self, first: Boxes, box: dict[int, Region]) -> Boxes:
        """The disjoint union of boxes and one more box."""
        rest = [box]
        for taken in first:
            rest = [piece for each in rest for piece in self._without(each, taken)]
        return [*first, *rest]

    def _both(self, one: Box, other: Box) -> dict[int, Region]:
        shared = {d: self._intersect(one[d], other[d]) for d in one if d in other}
        return {**one, **other, **shared}

    def _without(self, box: dict[int, Region], taken: Box) -> Boxes:
        """The difference of two boxes: one piece for each column, in which the columns before it agree."""
        if any(not self._intersect(box[d], taken[d]) for d in taken if d in box):
            return [box]
        pieces, agreeing = [], dict(box)
        for d, region in taken.items():
            kind = self.kinds[d]
            outside = self._intersect(agreeing.get(d, everything(kind)), complement(region, kind))
            pieces.append({**agreeing, d: outside})
            agreeing = self._both(agreeing, {d: region})
        return _plain(pieces, self.kinds)

    def _intersect(self, first: Region, second: Region) -> Region:
        self._spend(4 + len(first) + len(second))
        return intersect(first, second)

    def _spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise QuestionError(
                f"the condition takes more than {MOST_STEPS:,} steps to evaluate: ask a simpler question."
            )


def _plain(boxes: Iterable[dict[int, Region]], kinds: Sequence[Column]) -> Boxes:
    """Drop empty boxes, and columns that may have any value."""
    return [
        {d: region for d, region in box.items() if region != everything(kinds[d])} for box in boxes if all(box.values())
    ]


def _merged(boxes: Boxes) -> Boxes:
    """Merge boxes, disjoint or not, that differ in a single column."""
    for d in columns_of(boxes):
        groups: dict[tuple[object, ...], list[dict[int, Region]]] = {}
        for box in boxes:
            groups.setdefault((d in box, *sorted((c, region) for c, region in box.items() if c != d)), []).append(box)
        boxes = []
        for group in groups.values():
            merged = dict(group[0])
            if len(group) > 1 and d in merged:
                merged[d] = union(*(each[d] for each in group))
            boxes.append(merged)
    return boxes


def _few(boxes: Boxes) -> Boxes:
    if len(boxes) > MOST_BOXES:
        raise QuestionError(f"the condition has more than {MOST_BOXES} disjoint parts: ask a simpler question.")
    return boxes


def _region(part: Comparison | Membership | Range | Missing, field: Field, kind: Column) -> Region:
    """The values that satisfy a comparison."""
    if isinstance(part, Missing):
        code = len(field.values)
        return ((code - 0.5, code + 0.5),) if kind.listed else ((MISSING, math.inf),)
    if isinstance(part, Range):
        low = _region(Comparison(part.column, part.low_operator.replace("<", ">"), part.low), field, kind)
        return intersect(low, _region(Comparison(part.column, part.high_operator, part.high), field, kind))
    if isinstance(part, Membership):
        return union(*(_region(Comparison(part.column, "=", value), field, kind) for value in part.values))
    if part.operator == "!=":
        return complement(_region(Comparison(part.column, "=", part.value), field, kind), kind)
    if kind.listed:
        return union(tuple((code - 0.5, code + 0.5) for code in _codes(part, field)))
    before, after = _ends(_number(part.value, field), kind)
    most = MISSING if math.inf in kind.atoms else math.inf
    least = {"=": before, ">=": before, ">": after}.get(part.operator, -math.inf)
    greatest = {"=": after, "<=": after, "<": before}.get(part.operator, most)
    return intersect(((least, greatest),), everything(kind)) if least < greatest else ()


def _codes(part: Comparison, field: Field) -> list[int]:
    """The codes that satisfy a comparison; text is in the order of the column."""
    if field.dtype == "text":
        labels = field.labels(other=True)
        place = labels.index(part.value)
        known = range(len(labels) if part.operator == "=" else len(field.values))
        return [code for code in known if COMPARE[part.operator](code, place)]
    number = _number(part.value, field)
    return [code for code, value in enumerate(field.values) if COMPARE[part.operator](float(value), number)]


def _number(value: Value, field: Field) -> float:
    """A value as a number of the column; a date, written as text, is seconds since 1970."""
    seconds = seconds_in([value]) if field.temporal and isinstance(value, str) else None
    return float(value) if seconds is None else float(seconds[0][0])


def _ends(value: float, kind: Column) -> tuple[float, float]:
    """The ends of the interval of one value; equal if the value is not on the grid."""
    origin, spacing = kind.grid
    if not spacing:
        return value, math.nextafter(value, math.inf)
    steps = (value - origin) / spacing
    if math.isinf(steps):
        return value, value
    slack = 1e-6 * (1 + abs(steps))  # the tolerance for values of a table
    before, after = math.ceil(steps - slack), math.floor(steps + slack) + 1
    return origin + (before - 0.5) * spacing, origin + (after - 0.5) * spacing
