"""Denoised rows as a table of the kind that was given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from made.queries.denoising import Denoised
from made.tables.schema import Schema
from made.tables.table import Table

__all__ = ["put_back"]


def put_back(schema: Schema, table: Table, clean: Denoised) -> Any:
    """The table as it was given, with clean values in the entries that have changed."""
    columns = list(table.columns)
    for d in np.flatnonzero(clean.changed.any(axis=0)).tolist():
        place = table.names.index(schema.names[d]) if schema.named and table.names is not None else d
        columns[place] = columns[place].copy()
        columns[place][clean.changed[:, d]] = None if columns[place].dtype == object else np.nan
    return schema.fill(replace(table, columns=columns), clean.codes)
