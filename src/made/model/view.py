"""Some columns of a model, given values of others: what a model says about the rest is left out, or conditioned on.

Every query is about coded rows of the view's columns. The ensemble is asked with all columns: what is given is seen by
every unit, in the pass that answers, and what is left out by none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from made.ask.exact import Probability, probability
from made.ask.expressions import Query
from made.ask.parser import parse
from made.columns.base import LEVELS
from made.errors import QuestionError
from made.model.config import Config
from made.queries.conditional import Forecast, Prediction, forecast, quantiles
from made.queries.denoising import Denoised, denoise
from made.queries.ensemble import Ensemble
from made.queries.imputation import Uncertainty, draw, fill
from made.queries.likelihood import score, surprise
from made.queries.marginals import marginals
from made.queries.missingness import Missingness, draw_incomplete
from made.tables.field import Field
from made.tables.schema import Schema

Codes = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class View:
    """The columns of a model that queries are about, as :attr:`made.model.config.Config.view` says."""

    ensemble: Ensemble
    config: Config

    @cached_property
    def known(self) -> Codes:
        """The codes of what is given, NaN for every other column of the model. Shape: (columns)."""
        return self.config.known

    @cached_property
    def kept(self) -> list[int]:
        """The columns of the view, by their number in the model."""
        return self.config.kept

    @cached_property
    def schema(self) -> Schema:
        """The columns of the view. A frame may have those that are left out, too."""
        whole = self.config.schema
        if self.config.view is None:
            return whole
        names, chosen = whole.names, set(self.kept)
        rest = (place for place in range(len(names) + len(whole.dropped)) if place not in whole.dropped.values())
        left_out = {names[d]: p for d, p in enumerate(rest) if d not in chosen and np.isnan(self.known[d])}
        return Schema([whole.fields[d] for d in self.kept], whole.named, whole.dropped | left_out)

    @cached_property
    def evidence(self) -> dict[str, Any]:
        """The values that are given, by the name of their column; None for "missing", a date as text."""
        fields = self.config.schema.fields
        return {
            fields[d].name: _value(fields[d], self.known[d]) for d in np.flatnonzero(~np.isnan(self.known)).tolist()
        }

    def given(self, known: Codes) -> Config:
        """The config of the same columns, but for those with a code in ``known``, which are given."""
        codes = self.known.copy()
        codes[self.kept] = known
        rest = [d for d in self.kept if np.isnan(codes[d])]
        return self._config(rest, codes)

    def limited(self, columns: Sequence[int]) -> Config:
        """The config of some of the columns, by their number in the view."""
        if len(set(columns)) < len(columns):
            raise QuestionError("a column is named twice: name each column once.")
        return self._config([self.kept[d] for d in columns], self.known)

    def _config(self, kept: Sequence[int], known: Codes) -> Config:
        if not kept:
            raise QuestionError("no column is left: a view needs at least one that is not given.")
        names = self.config.schema.names
        given = {names[d]: None if np.isinf(known[d]) else float(known[d]) for d in np.flatnonzero(~np.isnan(known))}
        return replace(self.config, view={"given": given, "columns": [names[d] for d in kept]})

    def rows(self, codes: Codes) -> Codes:
        """Rows of the view as rows of the model. Shapes: (rows, columns of the view) to (rows, columns)."""
        if self.config.view is None:
            return codes
        rows = np.repeat(self.known[None], len(codes), axis=0)
        rows[:, self.kept] = codes
        return rows

    @cached_property
    def wanted(self) -> NDArray[np.bool_] | None:
        """Flags of the columns of the view, (columns); ``None`` if no column is left out."""
        wanted = np.isin(np.arange(len(self.known)), self.kept)
        return None if (wanted | ~np.isnan(self.known)).all() else wanted

    def _flags(self, given: Sequence[int] = ()) -> NDArray[np.bool_] | None:
        """Flags of the given columns, (columns); ``None`` if there are none."""
        flags = ~np.isnan(self.known)
        flags[[self.kept[d] for d in given]] = True
        return flags if flags.any() else None

    def score(self, codes: Codes, given: Sequence[int] = ()) -> NDArray[np.floating[Any]]:
        """:func:`made.queries.likelihood.score`."""
        return score(self.ensemble, self.rows(codes), self._flags(given))

    def surprise(self, codes: Codes) -> Codes:
        """:func:`made.queries.likelihood.surprise`."""
        return surprise(self.ensemble, self.rows(codes), self._flags())[:, self.kept]

    def draw(self, known: Codes, generator: torch.Generator, temperature: float) -> Codes:
        """:func:`made.queries.imputation.draw`."""
        return draw(self.ensemble, self.rows(known), generator, temperature, self.wanted)[:, self.kept]

    def draw_incomplete(
        self, known: Codes, missingness: Missingness | None, generator: torch.Generator, temperature: float
    ) -> Codes:
        """:func:`made.queries.missingness.draw_incomplete`."""
        return draw_incomplete(self.ensemble, self.rows(known), missingness, generator, temperature)[:, self.kept]

    def fill(
        self,
        codes: Codes,
        strategy: str,
        *,
        draws: int = 1,
        generator: torch.Generator | None = None,
        uncertain: int = 0,
    ) -> tuple[Codes, Uncertainty | None]:
        """:func:`made.queries.imputation.fill`."""
        rows, width = self.rows(codes), max(self.kept[:uncertain], default=-1) + 1
        options: Any = {"draws": draws, "generator": generator, "uncertain": width, "wanted": self.wanted}
        filled, how = fill(self.ensemble, rows, strategy, **options)
        own = self.kept[:uncertain]
        shown = None if how is None else type(how)(*(getattr(how, each.name)[..., own] for each in fields(how)))
        return filled[..., self.kept], shown

    def forecast(self, codes: Codes, column: int, levels: Sequence[float] = LEVELS) -> Forecast:
        """:func:`made.queries.conditional.forecast`."""
        return forecast(self.ensemble, self.rows(codes), self.kept[column], levels)

    def quantiles(self, codes: Codes, column: int, levels: Sequence[float]) -> Codes:
        """:func:`made.queries.conditional.quantiles`."""
        return quantiles(self.ensemble, self.rows(codes), self.kept[column], levels)

    def marginals(self, codes: Codes) -> dict[int, Prediction]:
        """:func:`made.queries.marginals.marginals`, by the number in the view."""
        found = marginals(self.ensemble, self.rows(codes))
        return {number: found[d] for number, d in enumerate(self.kept) if d in found}

    def denoise(self, codes: Codes, error: Codes, *, expected: bool, generator: torch.Generator) -> Denoised:
        """:func:`made.queries.denoising.denoise`; what is given is right."""
        errors = np.zeros(len(self.known))
        errors[self.kept] = error
        clean = denoise(self.ensemble, self.rows(codes), errors, expected=expected, generator=generator)
        if self.config.view is None:
            return clean
        own = {name: each[:, self.kept] for name, each in vars(clean).items() if getattr(each, "ndim", 0) == 2}
        return replace(clean, **own)

    def probability(self, condition: str | Query, *, samples: int, generator: torch.Generator) -> Probability:
        """:func:`made.ask.exact.probability`."""
        query = parse(condition, self.schema.fields)
        known = {int(d): float(self.known[d]) for d in np.flatnonzero(~np.isnan(self.known))}
        options: Any = {"samples": samples, "generator": generator, "known": known}
        return probability(self.ensemble, self.config.schema.fields, query, **options)


def _value(field: Field, code: float) -> Any:
    values, dtype = field.decode(np.array([code]))
    (value,) = values.tolist()
    if value is None or value != value:
        return None
    if field.temporal is not None:
        return field.shown(value)
    return int(value) if dtype == "int" else bool(value) if dtype == "bool" else value
