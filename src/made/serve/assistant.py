"""The queries of a model as an assistant asks them: values of JSON in, plain and bounded answers out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from made.columns.base import LEVELS
from made.errors import QuestionError
from made.model.conditionals import Conditional
from made.model.model import REFERENCE, Model
from made.queries.conditional import Forecast
from made.serve.answers import plain
from made.serve.arguments import no_column
from made.serve.bodies import column_of
from made.serve.operations import surprises
from made.tables.dates import DAY
from made.tables.field import Field

__all__ = ["MOST_COLUMNS", "Assistant"]

MOST_COLUMNS = 100  # that are described at a time
MOST_VALUES = 20  # of a distribution
Row = Mapping[str, Any]


class Assistant:
    """The queries of a model. Rows are objects of JSON, in which an unknown column is left out or null.

    Arguments:
        model: the model.
        name: its display name.
    """

    def __init__(self, model: Model, name: str) -> None:
        self.model, self.name = replace(model, template=model.schema.blank(named=True)), name
        self.fields, self.names = model.schema.fields, list(model.schema.names)

    @cached_property
    def marginals(self) -> Mapping[str, Conditional]:
        """The distribution of each column; empty for a model whose orderings do not allow that."""
        with suppress(QuestionError):
            return self.model.conditionals(None, quantiles=LEVELS).columns
        return {}

    @cached_property
    def example(self) -> dict[str, Any]:
        """Typical values of a few columns, categories and numbers, as an example of a row."""
        listed = [name for name in self.names if self.is_listed(name)]
        numbers = [name for name in self.names if name not in listed]
        typical = {name: self._typical(name) for name in (*listed[: 3 - len(numbers[:1])], *numbers[:1])}
        return {name: value for name, value in typical.items() if value is not None}

    def is_listed(self, name: str) -> bool:
        """Whether a column has a list of values."""
        return self.fields[self.names.index(name)].listed

    def _typical(self, name: str) -> Any:
        field, found = self.fields[self.names.index(name)], self.marginals.get(name)
        if field.listed:
            labels = field.labels()
            return plain(labels[0 if found is None else int(found.probabilities.argmax())])
        return None if found is None else self._number(field, found.quantiles[1])

    @staticmethod
    def _number(field: Field, value: float) -> Any:
        """A number of a column without a list of values; a date as text."""
        if math.isnan(value):
            return None
        return str(field.decode(np.array([value]), "text")[0][0]) if field.temporal else plain(float(value))

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Rows as a table with all columns of the model."""
        for row in rows:
            for name in row.keys() - set(self.names):
                raise QuestionError(no_column(name, self.names))
        return pa.table([column_of(name, [row.get(name) for row in rows]) for name in self.names], names=self.names)

    def info(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """What the model and its columns are."""
        config, chosen = self.model.config, self.names[:MOST_COLUMNS] if columns is None else columns
        return {
            "name": self.name,
            "training_rows": config.data.rows,
            "validation_nll": config.scores.get("valid_nll"),
            "any_columns_can_be_given": self.model.ensemble.any_order,
            "number_of_columns": len(self.names),
            "columns": [self._about(self.fields[self.model.position(name)]) for name in chosen],
        }

    def _about(self, field: Field) -> dict[str, Any]:
        about = {"name": field.name, "kind": field.kind, "type": field.dtype, "about": field.about()}
        if (found := self.marginals.get(field.name)) is None:
            return about | ({"values": field.labels()[:MOST_VALUES]} if field.listed else {})
        if field.listed:
            return about | _shares(found.values, found.probabilities)
        low, median, high = (self._number(field, each) for each in found.quantiles)
        return about | {"low": low, "median": median, "high": high}

    def ask(self, questions: Sequence[str], seed: int | None = None) -> dict[str, Any]:
        """The probability of each question."""
        answers = []
        for number, question in enumerate(questions):
            try:
                found = self.model.probability(question, random_state=seed)
            except QuestionError as error:
                raise QuestionError(f"questions[{number}]: {error}") from None
            low, high = found.interval
            answers.append(
                {"question": found.question, "probability": found.probability, "low": low, "high": high}
                | {"exact": found.kind == "exact", "text": str(found)}
            )
        return {"answers": answers}

    def predict(self, rows: Sequence[Row], target: str) -> dict[str, Any]:
        """The distribution of a column in each row."""
        d = self.model.position(target)
        found = self.model.forecast(self.table(rows), d, LEVELS)
        return {"target": target, "predictions": [self._prediction(self.fields[d], found, n) for n in range(len(rows))]}

    def _prediction(self, field: Field, found: Forecast, row: int) -> dict[str, Any]:
        if found.probabilities.shape[1]:
            shares = found.probabilities[row]
            return {"most_likely": field.labels()[int(shares.argmax())]} | _shares(field.labels(), shares)
        spread = found.standard_deviation[row] / (DAY if field.temporal else 1)
        numbers = [self._number(field, each) for each in (found.mean[row], *found.quantiles[row])]
        return {"mean": numbers[0], "standard_deviation": spread} | dict(
            zip(("low", "median", "high"), numbers[1:], strict=True)
        )

    def sample(self, count: int = 5, given: Row | None = None, seed: int | None = None) -> dict[str, Any]:
        """New rows."""
        for name in (given or {}).keys() - set(self.names):
            raise QuestionError(no_column(name, self.names))
        known = {name: value for name, value in (given or {}).items() if value is not None}
        return {"rows": self.model.sample(count, given=known, random_state=seed).to_pylist()}

    def impute(
        self, rows: Sequence[Row], strategy: Literal["mode", "mean", "sample"] = "mode", seed: int | None = None
    ) -> dict[str, Any]:
        """Complete rows, and how certain each filled value is."""
        table = self.table(rows)
        complete, sure = self.model.impute(table, strategy=strategy, return_uncertainty=True, random_state=seed)
        filled, found = [], complete.to_pylist()
        for row, d in np.argwhere(_missing(table)).tolist():
            field, entry = self.fields[d], {"row": row, "column": self.names[d], "value": found[row][self.names[d]]}
            if field.listed:
                entry["probability"] = sure.probability[row, d]
            else:
                entry |= {"low": self._number(field, sure.low[row, d]), "high": self._number(field, sure.high[row, d])}
            filled.append(entry)
        return {"rows": found, "filled": filled}

    def score(self, rows: Sequence[Row], given: Sequence[str] | None = None) -> dict[str, Any]:
        """The log-likelihood of each row."""
        return {"log_probs": self.model.score_samples(self.table(rows), given=given)}

    def explain(self, rows: Sequence[Row]) -> dict[str, Any]:
        """How unusual each row is, and its entries, the most surprising first."""
        table = self.table(rows)
        log_probs, surprise = surprises(self.model, table)
        drawn, usual = self._reference
        explained = []
        for row, log_prob in enumerate(log_probs.astype(float).tolist()):
            known = np.flatnonzero(~np.isnan(surprise[row]))
            excess = surprise[row] - usual
            order = known[np.argsort(-excess[known], kind="stable")][:MOST_VALUES]
            entries = [
                {"column": self.names[d], "value": rows[row].get(self.names[d])}
                | {"surprise": surprise[row, d], "usual": usual[d], "excess": excess[d]}
                for d in order.tolist()
            ]
            share = float((drawn > log_prob).mean()) if len(known) == len(self.names) else None
            explained.append({"row": row, "log_prob": log_prob, "less_likely_than": share, "entries": entries})
        return {"rows": explained}

    @cached_property
    def _reference(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """log p of rows drawn from the model, and the median surprise of each column in them."""
        rows = self.model.sample(REFERENCE, random_state=0)
        return self.model.score_samples(rows), self.model.usual_surprise(rows)


def _missing(table: pa.Table) -> NDArray[np.bool_]:
    return np.stack([column.is_null().to_numpy() for column in table.columns], axis=1)


def _shares(values: Sequence[Any], probabilities: NDArray[np.float64]) -> dict[str, Any]:
    """The most likely values with their probabilities, and the probability of all others if there are more."""
    order = np.argsort(-probabilities, kind="stable")
    shares = [{"value": values[place], "probability": probabilities[place]} for place in order[:MOST_VALUES].tolist()]
    rest = {"probability_of_others": probabilities[order[MOST_VALUES:]].sum()} if len(values) > MOST_VALUES else {}
    return {"probabilities": shares} | rest
