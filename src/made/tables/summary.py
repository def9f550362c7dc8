r"""What one pass over the rows keeps of each column, for the inference of a schema.

Of a table with up to :func:`most_rows` rows it keeps every value. Of a longer one it keeps a uniform sample of so many
rows, and exactly: the number of values, the least and the greatest number, the spacings of which all numbers are
multiples, whether all texts are dates, and how often each value occurs, as long as there are at most 65,536 of them.

What is inferred from a sample of n rows, quantiles and shares, is off by more than :math:`\sqrt{7.3 / n}` with a
probability of one in a million: 0.3 % for a million rows, 1.1 % for 65,536, the least sample.

A summary is a function of the rows and their order, whether they come whole or in pieces.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from made.errors import DataError
from made.streams import SAMPLE, philox
from made.tables.dates import STEPS, joint_form, seconds_in
from made.tables.plain import Dtype, Values, is_missing
from made.tables.table import TEMPORAL, Table

LEAST, MOST, NUMBERS = 2**16, 2**20, 2**24  # rows of a sample, and numbers of a sample of many columns
MOST_DISTINCT = 2**16  # values of a column of a long table that are counted
# Numbers that were computed, or written with 15 digits, miss a multiple of their spacing by less than this share.
ROUNDING = 1e-14
# Spacings of numbers.
GRIDS = (100.0, 50.0, 25.0, 10.0, 5.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0001)


def most_rows(columns: int) -> int:
    """The largest number of rows for which every value is kept.

    Example:
        >>> [most_rows(columns) for columns in (10, 50, 1000)]
        [1048576, 335544, 65536]
    """
    return max(LEAST, min(MOST, NUMBERS // columns))


def multiple(count: Any, step: float) -> Any:
    """A multiple of a step; of a decimal fraction, the nearest double."""
    return count * step if step >= 1 else count / round(1 / step)


def on_steps(values: Values, step: float) -> Values:
    """The nearest multiples of a step.

    Example:
        >>> on_steps(np.array([1.600000023841858, 10.3 - 10]), 0.1)
        array([1.6, 0.3])
    """
    return np.asarray(multiple(np.rint(values / step), step))


def has_multiples(origin: float, step: float) -> bool:
    """Whether :func:`on_steps` gives the points of a grid: its origin is a multiple of the step, 1/n or at least 1."""
    return (step >= 1 or abs(round(1 / step) * step - 1) < 1e-9) and float(on_steps(np.array(origin), step)) == origin


class NumberTally:
    """The distinct numbers of a column and their counts; if there are too many, what is true of all of them.

    Arguments:
        temporal: whether they are dates, in seconds.
        most: the number of distinct values up to which they are counted. Default: any number.
    """

    def __init__(self, temporal: bool, most: float = math.inf) -> None:
        self.steps = STEPS if temporal else GRIDS
        self.most, self.count = most, 0
        self.counted: tuple[Values, NDArray[np.int64]] | None = (np.empty(0), np.empty(0, dtype=np.int64))
        self.low, self.high, self.whole, self.single = math.inf, -math.inf, True, True
        self._fits = {step: [True, True] for step in self.steps}  # in double and in single precision

    def add(self, numbers: Values) -> int:
        """Count more numbers, and return how many are missing."""
        values, counts = np.unique(numbers, return_counts=True)
        missing = int(counts[-1]) if len(values) and np.isnan(values[-1]) else 0
        self.count += len(numbers) - missing
        if missing == len(numbers):
            return missing
        if missing:
            values, counts = values[:-1], counts[:-1]
        if self.counted is not None:
            if self.counted[0].size:
                values, place = np.unique(np.concatenate([self.counted[0], values]), return_inverse=True)
                counts = np.bincount(place, np.concatenate([self.counted[1], counts])).astype(np.int64)
            self.counted = values, counts
            self.low, self.high = float(values[0]), float(values[-1])
            if len(values) <= self.most:
                return missing
            self.counted = None
        self.low, self.high = min(self.low, float(values[0])), max(self.high, float(values[-1]))
        self.whole, self.single = self.whole and _are_whole(values), self.single and _are_single(values)
        for step, fits in self._fits.items():
            if any(fits):
                fits[:] = [
                    fit and _on_grid(values, step, single) for fit, single in zip(fits, (False, True), strict=True)
                ]

        return missing

    @property
    def all_whole(self) -> bool:
        """Whether all are whole numbers."""
        return self.whole if self.counted is None else _are_whole(self.counted[0])

    def are_multiples(self, step: float) -> bool:
        """Whether all are multiples of a step, in single precision if that is theirs."""
        if self.counted is None:
            return self._fits[step][self.single]
        return _on_grid(self.counted[0], step, _are_single(self.counted[0]))

    def repeated(self) -> Values | None:
        """All numbers, ascending; None if they are too many to be counted."""
        return None if self.counted is None else np.repeat(*self.counted)


def _are_whole(values: Values) -> bool:
    return bool((values == np.floor(values)).all())


def _are_single(values: Values) -> bool:
    """Whether all are numbers of single precision, up to the rounding of 15 digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.abs(values - values.astype(np.float32)) <= ROUNDING * np.abs(values)).all())


def _on_grid(values: Values, step: float, single: bool) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = on_steps(values, step)
        nearest = nearest.astype(np.float32).astype(np.float64) if single else nearest
        return bool((np.abs(values - nearest) <= np.minimum(ROUNDING * np.abs(values), 1e-6 * step)).all())


class TextTally:
    """The distinct texts of a column and their counts; None if there are too many. And their dates, if all are dates.

    Arguments:
        most: the number of distinct values up to which they are counted. Default: any number.
    """

    def __init__(self, most: float = math.inf) -> None:
        self.most, self.count = most, 0
        self.counted: Counter[str] | None = Counter()
        self.dates: NumberTally | None = NumberTally(True, most)
        self.written: str | None = ""

    def add(self, texts: Values) -> int:
        """Count more texts, and return how many are missing."""
        counts = Counter(texts.tolist())
        missing = counts.pop(None, 0)
        self.count += len(texts) - missing
        if self.counted is not None:
            self.counted.update(counts)
            self.counted = self.counted if len(self.counted) <= self.most else None
        if self.dates is not None:
            found = seconds_in(counts)
            self.written = None if found is None else joint_form({self.written or "", found.written})
            if found is None or self.written is None:
                self.dates = None
            else:
                self.dates.add(np.repeat(found.seconds, list(counts.values())))
        return missing

    def repeated(self) -> Values | None:
        """All texts, equal ones together; None if they are too many to be counted."""
        return None if self.counted is None else np.array(list(self.counted.elements()), dtype=object)


Tally: TypeAlias = NumberTally | TextTally


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """What is known of a column.

    Attributes:
        seen: the observed values, all of them or those of a sample of the rows, (values).
        dtype: their dtype.
        count: the number of observed values in the table.
        missing: the number of missing ones.
        declared: see :class:`made.tables.table.Table`.
        tally: of a long table, what is known of all values.
        written: how times were written as text, as in :data:`made.tables.dates.FORM`.
    """

    seen: Values
    dtype: Dtype
    count: int
    missing: int = 0
    declared: bool | tuple[Any, ...] = False
    tally: Tally | None = None
    written: str = ""

    @classmethod
    def of(cls, seen: Values, dtype: Dtype) -> ColumnSummary:
        """The summary of a complete list of values, none of them missing."""
        return cls(seen, dtype, len(seen))

    def as_dates(self) -> ColumnSummary | None:
        """The dates that texts stand for; None if one of them is not a date."""
        if isinstance(self.tally, TextTally) and self.tally.dates is None:
            return None
        found = seconds_in(self.seen.tolist())
        if found is None:
            return None
        if isinstance(self.tally, TextTally):
            written = self.tally.written or ""
            dtype: Dtype = "datetime" if written else "date"
            return replace(self, seen=found.seconds, dtype=dtype, tally=self.tally.dates, written=written)
        return replace(self, seen=found.seconds, dtype=found.kind, written=found.written)

    @property
    def numbers(self) -> NumberTally:
        """What is known of all numbers."""
        if isinstance(self.tally, NumberTally):
            return self.tally
        tally = NumberTally(self.dtype in TEMPORAL)
        tally.add(self.seen)
        object.__setattr__(self, "tally", tally)
        return tally

    def frequencies(self) -> Counter[str]:
        """How often each text was seen, in the order of their first rows."""
        counted = self.tally.counted if isinstance(self.tally, TextTally) else None
        return Counter(self.seen.tolist()) if counted is None else Counter(counted)

    def counted(self) -> tuple[Values, NDArray[np.int64]]:
        """The distinct numbers, ascending, and how often each was seen."""
        found = self.numbers.counted
        return np.unique(self.seen, return_counts=True) if found is None else found


class TableSummary:
    """The summary of the columns of a table.

    Arguments:
        head: a table with the same columns; its rows do not count.

    Example:
        >>> table = Table.of([[1.5, "a"], [2.5, "b"], [np.nan, "a"]])
        >>> summary = TableSummary.of(table)
        >>> summary.rows, [(column.count, column.missing) for column in summary.columns]
        (3, [(2, 1), (3, 0)])
    """

    def __init__(self, head: Table) -> None:
        self.head, self.rows = head, 0
        width = len(head.columns)
        self.size = most_rows(width)
        self._kinds: list[set[Dtype]] = [set() for _ in range(width)]
        self._declared = list(head.declared)
        self._storage = [True] * width  # whether all pieces have the type of the first
        self._pending: list[list[Values]] = [[] for _ in range(width)]
        self._waiting = 0
        self._sample: list[Values] | None = None
        self._bits = np.empty(0, dtype=np.uint64)
        self._random = philox(0, SAMPLE)
        self._tallies: list[Tally | None] = [None] * width
        self._missing = [0] * width
        self._columns: list[ColumnSummary] | None = None

    @classmethod
    def of(cls, *tables: Table) -> TableSummary:
        """The summary of the rows of tables with the same columns."""
        summary = cls(tables[0])
        for table in tables:
            summary.add(table, training=table is tables[0])
        return summary

    def add(self, table: Table, *, training: bool = True) -> None:
        """Take in the rows of a table; validation rows do not add to the categories that a frame declares."""
        places = self._places(table)
        for d, place in enumerate(places):
            self._check_kind(d, table.dtypes[place])
            self._storage[d] = self._storage[d] and (not training or self.head.same_type(d, table, place))
            mine, theirs = self._declared[d], table.declared[place]
            if training and isinstance(mine, tuple) and isinstance(theirs, tuple):
                self._declared[d] = tuple(dict.fromkeys(mine + theirs))
        begin = 0
        while begin < table.rows:
            if self._waiting == self.size:
                self._flush()
            end = min(table.rows, begin + self.size - self._waiting)
            for pieces, place in zip(self._pending, places, strict=True):
                pieces.append(table.columns[place][begin:end])
            self._waiting, begin = self._waiting + end - begin, end
        self.rows += table.rows

    @property
    def columns(self) -> list[ColumnSummary]:
        """The summary of each column; no more rows can follow."""
        if self._columns is None:
            if self._sample is not None and self._waiting:
                self._flush()
            self._columns = [self._column(d) for d in range(len(self._kinds))]
            self._pending, self._sample = [], None
        return self._columns

    @property
    def dtypes(self) -> list[Dtype]:
        """The dtype of each column."""
        return [_widest(kinds) for kinds in self._kinds]

    def storage(self, d: int, dtype: Dtype) -> str | None:
        """See :meth:`Table.storage`; None if the tables differ in it."""
        return self.head.storage(d, dtype) if self._storage[d] else None

    def _places(self, table: Table) -> Sequence[int]:
        """The position of each column in a table, by name if both have names."""
        head = self.head
        if head.names is not None and table.names is not None:
            if differing := sorted(set(head.names) ^ set(table.names)):
                raise DataError(f"The two tables should have the same columns, but only one has {differing[0]!r}.")
            return [table.names.index(name) for name in head.names]
        if len(head.columns) != len(table.columns):
            raise DataError(
                f"The tables differ in their numbers of columns: {len(head.columns)} and {len(table.columns)}."
            )
        return range(len(head.columns))

    def _check_kind(self, d: int, dtype: Dtype) -> None:
        kinds = self._kinds[d]
        if dtype == "none" or dtype in kinds:
            return
        kinds.add(dtype)
        for family, what in ((("text",), "text"), (TEMPORAL, "dates")):
            if kinds & set(family) and kinds - set(family):
                raise DataError(f"{self.head.label(d)} is {what} in one of the two tables, and not in the other.")

    def _flush(self) -> None:
        """Tally the rows that wait, and draw from them and the sample a new sample."""
        before = [np.empty(0)] * len(self._kinds) if self._sample is None else self._sample
        bits = np.concatenate([self._bits, self._random.random_raw(self._waiting)])
        kept = bits <= np.partition(bits, self.size - 1)[self.size - 1] if len(bits) > self.size else slice(None)
        after = []
        for d, pieces in enumerate(self._pending):
            rows = _joined(pieces)
            if self._tallies[d] is None and self._kinds[d]:
                self._tallies[d] = self._tally(d)
            tally = self._tallies[d]
            self._missing[d] += len(rows) if tally is None else tally.add(rows)
            after.append(_joined([before[d], rows])[kept])
            pieces.clear()
        self._sample, self._bits, self._waiting = after, bits[kept], 0

    def _tally(self, d: int) -> Tally:
        kinds = self._kinds[d]
        return TextTally(MOST_DISTINCT) if "text" in kinds else NumberTally(bool(kinds & set(TEMPORAL)), MOST_DISTINCT)

    def _column(self, d: int) -> ColumnSummary:
        rows = _joined(self._pending[d]) if self._sample is None else self._sample[d]
        seen, tally = rows[~is_missing(rows)], self._tallies[d]
        if self._sample is None:
            return ColumnSummary(seen, self.dtypes[d], len(seen), len(rows) - len(seen), self._declared[d])
        count = 0 if tally is None else tally.count
        if tally is not None and count <= self.size and (every := tally.repeated()) is not None:
            seen = every  # a column with few observed values
        return ColumnSummary(seen, self.dtypes[d], count, self._missing[d], self._declared[d], tally)


def _joined(pieces: Iterable[Values]) -> Values:
    """Plain columns as one; those without observed values may be of another type than the others."""
    pieces = [piece for piece in pieces if len(piece)] or [np.empty(0)]
    if any(piece.dtype == object for piece in pieces):
        pieces = [piece if piece.dtype == object else np.full(len(piece), None, dtype=object) for piece in pieces]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _widest(kinds: set[Dtype]) -> Dtype:
    if len(kinds) < 2:
        return next(iter(kinds), "none")
    return cast(Dtype, next((dtype for dtype in ("datetime", "float") if dtype in kinds), "int"))
