"""A prediction as a table: the most likely value and all probabilities, or mean, spread and quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from made.queries.conditional import Forecast
from made.tables.dates import DAY
from made.tables.field import Field


def predicted(field: Field, found: Forecast, names: Sequence[str] = ("q05", "median", "q95")) -> pa.Table:
    """The forecast of a column; ``names`` are the names of its quantiles."""
    if found.probabilities.shape[1]:
        labels, best = field.labels(), found.probabilities.argmax(axis=1)
        shown = [f"p({'missing' if label is None else label})" for label in labels]
        most_likely = {field.name: pa.array([labels[code] for code in best.tolist()])}
        return pa.table(most_likely | dict(zip(shown, found.probabilities.T, strict=False)))
    places: list[Any] = [found.mean, *found.quantiles.T]
    spread = {"standard_deviation": found.standard_deviation}
    if field.temporal is not None:
        places = [pa.array(field.decode(each, "text")[0], pa.string()) for each in places]
        spread = {"standard_deviation_days": found.standard_deviation / DAY}
    return pa.table({"mean": places[0]} | spread | dict(zip(names, places[1:], strict=True)))
