"""Validation of the baselines' inputs: complete rows of zeros and ones, with the columns seen in fit."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.errors import DataError

__all__ = ["check_binary", "check_count", "check_integer", "check_rows", "check_train_valid"]


def check_binary(rows: ArrayLike, name: str, columns: int | None = None) -> NDArray[np.uint8]:
    """A table of zeros and ones. Shapes: (rows, columns) to (rows, columns).

    Example:
        >>> check_binary([[0, 2]], "train")
        Traceback (most recent call last):
        ...
        made.errors.DataError: 'train', row 0, column 1: 2 is not 0 or 1.
    """
    table = np.asarray(rows)
    if table.dtype.kind not in "biuf":
        raise DataError(f"'{name}' should be numbers, 0 and 1, not {table.dtype}: encode other values first.")
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
                f"'{name}', row {row}, column {column}: NaN, but this model needs complete rows: drop the row, or "
                "impute the missing value first (made.MADE does)."
            )
        raise DataError(f"'{name}', row {row}, column {column}: {table[row, column]:g} is not 0 or 1.")
    return table.astype(np.uint8)


def check_train_valid(train: ArrayLike, valid: ArrayLike) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The training rows and the validation rows."""
    table = check_binary(train, "train")
    return table, check_binary(valid, "valid", table.shape[1])


def check_rows(model: Any, rows: ArrayLike) -> NDArray[np.uint8]:
    """The rows of a query to a fitted model, which has ``columns_``."""
    return check_binary(rows, "rows", _columns(model))


def check_count(model: Any, n: int) -> int:
    """The number of rows to sample from a fitted model."""
    _columns(model)
    return check_integer("n", n, 1)


def check_integer(name: str, value: Any, least: int) -> int:
    """An integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"'{name}' should be a whole number, at least {least}, not {value!r}.")
    return int(value)


def _columns(model: Any) -> int:
    columns: int | None = getattr(model, "columns_", None)
    if columns is None:
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call 'fit' first.")
    return columns
