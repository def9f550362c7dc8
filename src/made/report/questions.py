"""Short questions: P(a value of one column | a value of another), under the model and counted in the rows.

Frequencies are counted in the rows in which both columns are observed, as in training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from made.columns.bins import Numbers
from made.display import shortened
from made.hints import hint
from made.model.model import Model
from made.queries.marginals import marginals
from made.tables.field import Field

Places: TypeAlias = NDArray[np.intp]

LEAST_ROWS = 50  # with a value, for it to be given or asked for
MOST_COLUMNS = 60
MOST_VALUES = 2000
MOST_SHOWN = 8
ERRORS = 5.0  # standard errors, that chance explains
MATERIAL = 0.05  # smaller errors trigger no warning
ROWS_AT_A_TIME = 2000


@dataclass(frozen=True)
class ShortQuestion:
    """P(asked = value | given = given_value), by the model and in the rows in which the second holds."""

    asked: str
    value: str
    given: str
    given_value: str
    answer: float
    frequency: float
    rows: int

    def __str__(self) -> str:
        return f"P({self.asked} = {self.value} | {self.given} = {self.given_value})"


@dataclass(frozen=True)
class ShortQuestions:
    """All questions that enough rows answer.

    Attributes:
        asked: number of questions.
        difference: mean absolute difference between answers and frequencies.
        wrong: number of answers that are off by more than chance explains, and by more than 0.05.
        worst: the questions with the largest errors beyond chance, the wrong ones first.
    """

    asked: int = 0
    difference: float = float("nan")
    wrong: int = 0
    worst: tuple[ShortQuestion, ...] = ()

    def warning(self, pairs: float, remedy: str) -> str | None:
        """A warning with its remedy, if answers are wrong; ``pairs`` is the parameter."""
        if not self.wrong:
            return None
        worst = self.worst[0]
        more = f"count such questions in training, {hint(pairs=1.0)}"
        if pairs > 0:
            more = f"give such questions more weight, {hint(pairs=4 * pairs)}"
        return (
            f"{self.wrong:,} of {self.asked:,} answers to questions about two columns differ from the rows by more "
            f"than chance, most {worst}: {worst.answer:.2f} by the model, {worst.frequency:.2f} in {worst.rows:,} "
            f"rows. Remedy: {remedy}; or {more}."
        )


def ask(model: Model, codes: Numbers) -> ShortQuestions:
    """Ask all questions about two columns that at least 50 rows answer. Shape of the codes: (rows, columns).

    A model of fixed orderings cannot be asked.
    """
    fields = model.schema.fields
    columns, values = _frequent(fields, codes) if model.ensemble.any_order else (np.empty(0, dtype=np.intp),) * 2
    both, known = _counts(codes, columns, values)
    apart = (columns[:, None] != columns) & (known >= LEAST_ROWS)
    if not apart.any():
        return ShortQuestions()
    answers = _answers(model, columns, values)
    with np.errstate(invalid="ignore", divide="ignore"):
        frequency = both / known
        smooth = (both + 1) / (known + 2)
        chance = np.sqrt(np.maximum(answers * (1 - answers), smooth * (1 - smooth)) / known)
    error = np.abs(answers - frequency)
    wrong = apart & (error > MATERIAL) & (error > ERRORS * chance)
    order = np.argsort(-np.where(apart, error - chance + wrong, -9.0), axis=None, kind="stable")[:MOST_SHOWN]

    def question(place: int) -> ShortQuestion:
        given, asked = divmod(place, len(values))
        (name, value), (second, held) = (_words(fields[columns[each]], values[each]) for each in (asked, given))
        answer, share = float(answers[given, asked]), float(frequency[given, asked])
        return ShortQuestion(name, value, second, held, answer, share, int(known[given, asked]))

    return ShortQuestions(
        asked=int(apart.sum()),
        difference=float(error[apart].mean()),
        wrong=int(wrong.sum()),
        worst=tuple(question(place) for place in order.tolist() if apart.flat[place]),
    )


def _frequent(fields: Sequence[Field], codes: Numbers) -> tuple[Places, Places]:
    """The columns and codes of frequent values, of columns with a list of values."""
    found = []
    for d, field in enumerate(fields):
        if field.listed and field.column.cardinality:
            places = field.places(codes[:, d])
            known = places[places < min(field.column.cardinality, len(field.labels()))]
            counts = np.bincount(known.astype(np.intp), minlength=1)
            found += [(int(counts[k]), d, k) for k in np.flatnonzero(counts >= LEAST_ROWS).tolist()]
    number = Counter(d for _, d, _ in found)
    several = {d for d, _ in number.most_common(MOST_COLUMNS)}
    found = sorted((each for each in found if each[1] in several), reverse=True)[:MOST_VALUES]
    return np.array([d for _, d, _ in found], dtype=np.intp), np.array([k for _, _, k in found], dtype=np.intp)


def _counts(codes: Numbers, columns: Places, values: Places) -> tuple[Numbers, Numbers]:
    """The numbers of rows with the first value and the second, and with the first and the second column observed."""
    both, known = np.zeros((len(values), len(values))), np.zeros((len(values), codes.shape[1]))
    for begin in range(0, len(codes) if len(values) else 0, ROWS_AT_A_TIME):
        some = codes[begin : begin + ROWS_AT_A_TIME]
        ones = (some[:, columns] == values).astype(np.float32)
        both += ones.T @ ones
        known += ones.T @ (~np.isnan(some)).astype(np.float32)
    return both, known[:, columns]


def _answers(model: Model, columns: Places, values: Places) -> Numbers:
    """The probability of each value given each other one, (given values, asked values); NaN in the same column."""
    answers = np.full((len(values), len(values)), np.nan)
    for e in np.unique(columns).tolist():
        given = np.flatnonzero(columns == e)
        rows = np.full((len(given), len(model.schema.fields)), np.nan)
        rows[:, e] = values[given]
        found = marginals(model.ensemble, rows)
        for d in np.unique(columns).tolist():
            if d != e:
                asked = np.flatnonzero(columns == d)
                chances = found[d].probabilities(model.ensemble.cardinalities[d]).double().cpu().numpy()
                answers[np.ix_(given, asked)] = chances[:, values[asked]]
    return answers


def _words(field: Field, code: int) -> tuple[str, str]:
    """The name of a column and its value."""
    label = field.labels()[code]
    shown = f"{label:g}" if isinstance(label, float) else "missing" if label is None else str(label)
    return field.name, shortened(shown, 40)
