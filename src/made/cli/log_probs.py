"""The log-likelihood of each row of a stream, for `made score` and `made evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from made.cli.on_error import OnError, RowFilter
from made.cli.parsing import columns
from made.cli.rows import stream_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from made.model.model import Model

__all__ = ["given_columns", "log_probs"]


def log_probs(
    model: Model, data: str, given: str | None, quiet: bool, row_filter: RowFilter | None = None
) -> Iterator[NDArray[Any]]:
    """log p of rows, batch by batch; NaN for rows that are skipped."""
    import numpy as np

    names = given_columns(given, model)
    row_filter = RowFilter(model, OnError.stop) if row_filter is None else row_filter
    for first, rows in stream_rows(data, model, quiet):
        rows = row_filter.settle(rows)
        log_p = np.full(len(rows), np.nan, dtype=model.config.parameters["dtype"])
        for places, values in row_filter.answers(first, rows, lambda some: model.score_samples(some, given=names)):
            log_p[places] = values
        yield log_p


def given_columns(given: str | None, model: Model) -> list[str | int] | None:
    """The columns of ``--given``."""
    return None if given is None else columns("--given", given, model)
