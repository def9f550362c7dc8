"""The rows of a query: a user's table to codes of a model, and back."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from made.display import listed
from made.errors import DataError, QuestionError, UnseenWarning
from made.hints import argument
from made.model.config import Config
from made.model.view import View
from made.queries.ensemble import Ensemble
from made.tables.schema import Schema
from made.tables.table import Table, plain_value


class RowCodec:
    """The columns of a model, and the conversion of rows."""

    config: Config
    ensemble: Ensemble
    template: Table | None

    @cached_property
    def view(self) -> View:
        """The columns that queries are about: all, unless others are given or left out."""
        return View(self.ensemble, self.config)

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.view.schema

    @property
    def default_target(self) -> str | None:
        """The column that was ``y`` in training; none in a view in which it is not the last column, as it was there."""
        target = self.config.target
        return target if target == self.schema.names[-1] else None

    def position(self, column: Any) -> int:
        """The number of a column, given by name or number."""
        names = self.schema.names
        if isinstance(column, str):
            if column not in names:
                raise QuestionError(f"there is no column {column!r}: the columns are {listed(names, 20)}.")
            return names.index(column)
        whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        if not whole or not -len(names) <= column < len(names):
            raise QuestionError(f"a column is a name or a number from 0 to {len(names) - 1}, not {column!r}.")
        return int(column) % len(names)

    def target(self, target: Any = None) -> int:
        """The number of the column to predict; by default of the ``y`` that it was fitted with."""
        if target is None and self.default_target is None:
            names = self.schema.names
            raise QuestionError(
                f"there is no target: name a column, such as target={names[-1]!r}, or give 'y' to fit. The columns are "
                f"{listed(names, 20)}."
            )
        return self.position(self.default_target if target is None else target)

    def table(self, X: Any, lacks: int | None = None) -> Table:
        """Rows to query about; the target of the model, or the column ``lacks``, may be absent, and is then missing."""
        if isinstance(X, Table):
            return X
        schema, target = self.schema, self.default_target
        table = schema.table(X)
        if given := [name for name in self.view.evidence if name in (table.names or ())]:
            raise DataError(f"The table has {', '.join(map(repr, given))}, which the view is given: leave it out.")
        name = None if lacks is None else schema.names[lacks]
        if name is not None and table.names is not None and name not in table.names:
            table = table.with_empty_column(name)
        if target is not None:
            width = len(schema.fields)
            if len(table.columns) == width - 1 if table.names is None else target not in table.names:
                table = table.with_empty_column(target)
            elif table.names is None and len(table.columns) != width:
                raise DataError(
                    f"X has {len(table.columns)} features, but MADE is expecting {width - 1} features as input."
                )
        return table

    def codes(self, X: Any, target: int | None = None) -> NDArray[np.float64]:
        """Rows as codes; the column ``target`` may be absent, and its values are ignored."""
        return self.schema.encode(self.table(X, target), ignore=target)

    def known(self, given: Mapping[Any, Any] | None, rows: int = 1) -> NDArray[np.float64]:
        """Values of some columns as one coded row; a warning counts values that training never saw in ``rows`` rows."""
        codes = np.full((1, len(self.schema.fields)), np.nan)
        if not (given is None or isinstance(given, Mapping)):
            example = f"{{{self.schema.names[0]!r}: value}}"
            raise QuestionError(f"{argument('given')} should be values by column, such as {example}, not {given!r}.")
        for column, value in (given or {}).items():
            d = self.position(column)
            field = self.schema.fields[d]
            label = f"{argument('given')}: column {d} ({field.name!r})"
            if (
                isinstance(value, Collection)
                and not isinstance(value, (str, bytes))
                and getattr(value, "ndim", None) != 0
            ):
                message = f"{label} should be one value, not {value!r}: ask 'probability' about several."
                raise QuestionError(message, column=field.name)
            try:
                alone, dtype = plain_value(value, label)
                codes[:, d] = field.encode(alone, dtype, label)
            except DataError as error:  # of no row
                raise DataError(error.message, column=field.name) from None
            if field.other and field.foreign(alone, codes[:, d]).any():
                rounded = rows if field.rounded(alone, codes[:, d]).any() else 0
                warnings.warn(UnseenWarning({field.name: rows}, {field.name: rounded}), stacklevel=3)
        return codes

    def decode(self, codes: NDArray[np.float64]) -> Any:
        """Codes as a table of the kind that the model was fitted on."""
        schema, kind = self.schema, self.config.container
        framed = self.template is None and kind in ("pandas", "polars") and find_spec(kind) is not None
        rows = schema.decode(codes, schema.blank(named=True) if framed else self.template)
        if framed and kind == "pandas":
            frame = rows.to_pandas()
            if not schema.named:  # the names were no text, such as numbers
                places = range(len(schema.fields) + len(schema.dropped))
                frame.columns = [place for place in places if place not in schema.dropped.values()]
            return frame
        if framed:
            return import_module("polars").from_arrow(rows)
        return torch.from_numpy(rows) if self.template is None and kind == "torch" else rows
