"""What every system asks of the rows that it gets: zeros and ones, none missing, as many columns as before."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.errors import DataError

__all__ = ["asked", "at_least", "binary", "learned", "whole"]


def binary(rows: ArrayLike, name: str, columns: int | None = None) -> NDArray[np.uint8]:
    """A table of zeros and ones, or an error that has its name. Shapes: (rows, columns) to (rows, columns).

    Example:
        >>> binary([[0, 2]], "train")
        Traceback (most recent call last):
        ...
        made.errors.DataError: 'train', row 0, column 1: 2 is not 0 or 1.
    """
    table = np.asarray(rows)
    if table.dtype.kind not in "biuf":
        raise DataError(f"'{name}' should be numbers, 0 and 1, not {table.dtype}: code other values first.")
    if table.ndim != 2 or (columns is not None and table.shape[1] != columns):
        expected = "columns" if columns is None else columns
        raise DataError(f"'{name}' should have the shape (rows, {expected}), not {table.shape}.")
    if table.size == 0:
        raise DataError(f"'{name}' should have at least one row and one column; its shape is {table.shape}.")
    allowed = (table == 0) | (table == 1)
    if not allowed.all():
        row, column = np.argwhere(~allowed)[0].tolist()
        if np.isnan(table[row, column]):
            raise DataError(
                f"'{name}', row {row}, column {column}: NaN, a hole, but this system takes whole rows only: leave the "
                "row out, or fill the hole first (made.MADE fills holes)."
            )
        raise DataError(f"'{name}', row {row}, column {column}: {table[row, column]:g} is not 0 or 1.")
    return table.astype(np.uint8)


def learned(train: ArrayLike, valid: ArrayLike) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The rows to learn from, and those to choose by."""
    table = binary(train, "train")
    return table, binary(valid, "valid", table.shape[1])


def asked(model: Any, rows: ArrayLike) -> NDArray[np.uint8]:
    """Rows that a model is asked about, which has ``columns_`` once it is fitted."""
    return binary(rows, "rows", _columns(model))


def whole(model: Any, n: int) -> int:
    """How many rows a model is asked to draw."""
    _columns(model)
    return at_least("n", n, 1)


def at_least(name: str, value: Any, least: int) -> int:
    """A whole number that is not below the least, or an error that has its name."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"'{name}' should be a whole number, at least {least}, not {value!r}.")
    return int(value)


def _columns(model: Any) -> int:
    columns: int | None = getattr(model, "columns_", None)
    if columns is None:
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"this {type(model).__name__} has learned nothing yet: call 'fit' first.")
    return columns
