"""The queries of a model as the API asks them: rows and options in, rows and facts out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from made.errors import DataError, UnseenWarning
from made.io.write import as_table
from made.model.conditionals import Conditionals
from made.model.model import Model
from made.model.predicted import predicted
from made.serve.answers import Answer
from made.serve.bodies import Scalar
from made.serve.dependence import dependence
from made.serve.describe import distributions
from made.serve.problems import Problem

__all__ = ["Served", "surprises", "with_unseen"]


@dataclass(frozen=True, eq=False)
class Served:
    """A model that is served: every query as the API asks it.

    Arguments:
        name: what clients call it.
        model: the model; whatever it was fitted on, it returns pyarrow tables here.
        folder: where it was read from.
    """

    name: str
    model: Model
    folder: str | None = None
    _usual: dict[int | None, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", replace(self.model, template=self.model.schema.blank(named=True)))

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.model.schema.names)

    def warm(self) -> None:
        """Make what the first questions would have to make, so that they are answered as fast as later ones."""
        self.model.conditionals()
        self.model.score_samples(self.model.sample(1))

    def known(self, rows: pa.Table, optional: int | None = None) -> pa.Table:
        """The columns of the model, in its order; the column ``optional`` need not be there, others are left out."""
        if not self.model.schema.named:
            return rows
        names = [name for d, name in enumerate(self.names) if d != optional or name in rows.column_names]
        if lacking := [name for name in names if name not in rows.column_names]:
            raise Problem(
                "data",
                f"the body has no column {', '.join(map(repr, lacking[:10]))}.",
                "Add it, empty if it is not observed, or ask with absent=missing.",
                column=lacking[0],
            )
        return rows.select(names)

    def complete(self, rows: pa.Table) -> tuple[pa.Table, dict[str, list[str]]]:
        """Rows with all columns of the model, those that are absent full of missing values; and what differs."""
        names = self.names if self.model.schema.named else rows.column_names
        absent = [name for name in names if name not in rows.column_names]
        ignored = [name for name in rows.column_names if name not in {*names, *self.model.schema.dropped}]
        if absent == names:
            raise DataError(
                f"the body has none of the model's columns, which are {', '.join(names[:20])}; it has "
                f"{', '.join(rows.column_names[:20])}."
            )
        for name in absent:
            rows = rows.append_column(name, pa.nulls(len(rows)))
        differs = {"absent": absent, "ignored": ignored}
        return rows, {key: each for key, each in differs.items() if each}

    def conditionals(self, given: Mapping[str, Scalar], quantiles: Sequence[float]) -> dict[str, Any]:
        """The distribution of every column that is not given."""
        found: Conditionals = self.model.conditionals(given, quantiles=quantiles)
        return distributions(found) | {"levels": list(quantiles)}

    @cached_property
    def dependence(self) -> dict[str, Any]:
        """The strength of the dependence between each pair of columns."""
        return dependence(self.model)

    def probability(self, question: str, samples: int, seed: int | None) -> dict[str, Any]:
        """The probability of a condition, given another."""
        found = self.model.probability(question, samples=samples, random_state=seed)
        return asdict(found) | {"interval": list(found.interval), "text": str(found)}

    def sample(self, count: int, given: Mapping[str, Scalar], temperature: float, seed: int | None) -> Answer:
        """New rows."""
        return Answer(self.model.sample(count, given=given, temperature=temperature, random_state=seed))

    def score(self, rows: pa.Table, given: Sequence[str]) -> Answer:
        """log p of each row, or of one part given another."""
        return Answer(pa.table({"log_prob": self.model.score_samples(self.known(rows), given=list(given) or None)}))

    def impute(
        self, rows: pa.Table, strategy: Literal["sample", "mode", "mean"], uncertainty: bool, seed: int | None
    ) -> Answer:
        """The rows with missing values filled in."""
        options: Any = {"strategy": strategy, "return_uncertainty": uncertainty, "random_state": seed}
        found = self.model.impute(self.known(rows), **options)
        if not uncertainty:
            return Answer(as_table(found, None))
        filled, how = found
        places = np.argwhere(~np.isnan(how.entropy) | ~np.isnan(how.standard_deviation) | ~np.isnan(how.probability))
        entries = [
            {"row": row, "column": self.names[d]} | {name: each[row, d] for name, each in vars(how).items()}
            for row, d in places.tolist()
        ]
        return Answer(as_table(filled, None), {"filled": entries})

    def predict(self, rows: pa.Table, target: str | None, quantiles: Sequence[float]) -> Answer:
        """One column, given what is observed of the others."""
        d = self.model.target(target)
        about = self.model.schema.fields[d]
        quantiles = list(dict.fromkeys(quantiles))  # each is a column
        found = self.model.forecast(self.known(rows, d), d, quantiles)
        names = [f"q{np.format_float_positional(level, trim='-')}" for level in quantiles]
        return Answer(predicted(about, found, names), {"target": about.name, "levels": quantiles})

    def explain(self, rows: pa.Table, seed: int | None) -> Answer:
        """The surprise of each entry; log p of each row, and the usual surprise of a column, in JSON only."""
        rows = self.known(rows)
        log_prob, surprise = surprises(self.model, rows)
        facts = {"log_prob": log_prob, "usual": dict(zip(self.names, self.usual(seed), strict=True))}
        return Answer(pa.table(list(surprise.T), names=self.names), facts)

    def denoise(self, rows: pa.Table, error: float, strategy: Literal["mode", "mean"], seed: int | None) -> Answer:
        """The rows as they were before some entries were corrupted, and which entries were, in JSON only."""
        options: Any = {"strategy": strategy, "return_uncertainty": True, "random_state": seed}
        clean, how = self.model.denoise(self.known(rows), error, **options)
        places = np.argwhere(how.changed).tolist()
        changed = [{"row": row, "column": self.names[d], "wrong": how.wrong[row, d]} for row, d in places]
        return Answer(as_table(clean, None), {"changed": changed, "method": how.method})

    def usual(self, seed: int | None = None) -> NDArray[np.float64]:
        """The median surprise of each column, over rows that are drawn from the model."""
        if seed not in self._usual:
            self._usual.clear()
            self._usual[seed] = self.model.usual_surprise(random_state=0 if seed is None else seed)
        return self._usual[seed]


def surprises(model: Model, rows: pa.Table) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64]]:
    """log p of rows, (rows), and the surprise of their entries, (rows, columns); values are counted as unseen once."""
    log_prob = model.score_samples(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWarning)
        return log_prob, model.surprise_matrix(rows)


def with_unseen(work: Callable[[], Any]) -> tuple[Any, UnseenWarning | None]:
    """An answer, and a warning if training has never seen some of its values. In one thread at a time."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnseenWarning)
        answer = work()
    unseen = [each.message for each in caught if isinstance(each.message, UnseenWarning)]
    return answer, UnseenWarning.together(unseen)
