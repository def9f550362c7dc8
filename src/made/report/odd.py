"""The least likely rows, and the entries responsible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from made.columns.bins import Numbers
from made.errors import QuestionError
from made.model.model import Model
from made.report.rows import arrow, with_missing

Entry: TypeAlias = tuple[int, int]  # a row and a column

REASONS = 4
REFERENCE = 2000  # rows that give the median surprise of a column


@dataclass(frozen=True)
class Reason:
    """An entry that makes its row odd.

    Attributes:
        column, value: the entry.
        surprise: -log p of the entry given the columns before it, in nats, averaged over masks.
        usual: the median surprise of the column. That of a number depends on its unit, so only the excess is odd.
        probability: of the value given all other columns; None for a number.
        likeliest: the most likely value given all other columns, if the model can compute it.
    """

    column: str
    value: Any
    surprise: float
    usual: float
    probability: float | None = None
    likeliest: Any = None


@dataclass(frozen=True)
class OddRow:
    """A row, counted from 0: its log-likelihood, the entries responsible for it, and all observed values."""

    row: int
    log_prob: float
    reasons: tuple[Reason, ...]
    values: dict[str, Any]


def oddest(
    model: Model, rows: pa.Table, log_prob: Numbers, numbers: NDArray[np.intp], top: int, random: np.random.Generator
) -> tuple[OddRow, ...]:
    """The least likely rows, in order; ``numbers`` are the row numbers to report."""
    places = np.argsort(log_prob, kind="stable")[:top]
    others = np.sort(random.permutation(len(log_prob))[:REFERENCE])
    usual, odd = model.usual_surprise(rows.take(others)), rows.take(places)
    surprise = model.surprise_matrix(odd)
    above = np.where(np.isnan(surprise), -np.inf, surprise - usual)
    ranked = np.argsort(-above, axis=1, kind="stable")[:, :REASONS]
    entries = [(i, int(d)) for i, order in enumerate(ranked) for d in order if above[i, d] > 0]
    expected, lines, names = _expected(model, odd, entries), odd.to_pylist(), odd.column_names
    found = []
    for i, place in enumerate(places.tolist()):
        reasons = tuple(
            Reason(names[d], lines[i][names[d]], float(surprise[i, d]), float(usual[d]), *expected[i, d])
            for row, d in entries
            if row == i
        )
        observed = {name: lines[i][name] for d, name in enumerate(names) if not np.isnan(surprise[i, d])}
        found.append(OddRow(int(numbers[place]), float(log_prob[place]), reasons, observed))
    return tuple(found)


def _expected(model: Model, rows: pa.Table, entries: list[Entry]) -> dict[Entry, tuple[float | None, Any]]:
    """The probability of each entry, and the most likely value there, given the rest of its row."""
    expected: dict[Entry, tuple[float | None, Any]] = dict.fromkeys(entries, (None, None))
    fields = model.schema.fields
    listed, others = ([(i, d) for i, d in entries if fields[d].listed == each] for each in (True, False))
    try:
        for d in sorted({d for _, d in listed}):
            chosen = [i for i, column in listed if column == d]
            some = rows.take(np.array(chosen))
            probabilities = model.predict_proba(some, target=d)
            own, labels = fields[d].places(model.codes(some)[:, d]).astype(np.intp), fields[d].labels()
            for i, chances, code in zip(chosen, probabilities, own, strict=True):
                # A value that was not in the training rows has no class.
                expected[i, d] = float(chances[code]) if code < len(labels) else None, labels[int(chances.argmax())]
        if others:
            where = np.zeros((len(others), rows.num_columns), dtype=np.bool_)
            where[np.arange(len(others)), [d for _, d in others]] = True
            some = rows.take(np.array([i for i, _ in others]))
            filled = arrow(model.impute(with_missing(some, where), strategy="mode"), rows.column_names, named=True)
            for place, (i, d) in enumerate(others):
                expected[i, d] = None, filled.column(d)[place].as_py()
    except QuestionError:
        pass  # a model with a finite list of masks answers only what its orderings allow
    return expected
