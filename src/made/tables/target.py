"""The target ``y`` of ``fit`` as the last column of the table."""

from __future__ import annotations

import sys
from typing import Any

import narwhals as nw
import numpy as np

from made.errors import DataError

__all__ = ["with_target"]

NAMES = ("y", "target", "y_target")


def with_target(X: Any, y: Any) -> Any:
    """X with y as its last column: a frame if X is one, otherwise an array.

    The column keeps the name of y if it has one; default: "y", or another name if X has that already.

    Example:
        >>> with_target([[1.0, 2.0], [3.0, 4.0]], [0, 1])
        array([[1., 2., 0.],
               [3., 4., 1.]])
    """
    series: Any = nw.from_native(y, pass_through=True, allow_series=True)
    name = getattr(series, "name", None)
    if isinstance(series, nw.DataFrame):
        if series.shape[1] != 1:
            raise DataError(f"'y' should be one column, not {series.shape[1]}: put further ones into X.")
        name = series.columns[0]
        series = series[name]
    values: Any = series.to_numpy() if isinstance(series, nw.Series) else _array(series)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"'y' should be one column, of shape (rows,), not {values.shape}: put further ones into X.")
    frame = nw.from_native(X, pass_through=True)
    array = None if isinstance(frame, nw.DataFrame) else _array(X)
    rows = len(frame if array is None else array)
    if rows != len(values):
        raise DataError(f"Found input variables with inconsistent numbers of samples: {[rows, len(values)]}.")
    if array is None:
        names = list(frame.columns)
        free = [each for each in (name, *NAMES) if isinstance(each, str) and each not in names]
        return _into_frame(frame, series if isinstance(series, nw.Series) else values, free[0])
    if array.dtype.kind not in "biuf" or values.dtype.kind not in "biuf":
        array = array.astype(object)
    return np.concatenate([array, values.astype(np.result_type(array, values))[:, None]], axis=1)


def _into_frame(frame: nw.DataFrame[Any], y: Any, name: str) -> Any:
    if frame.implementation.is_pandas_like():
        native = frame.to_native().copy()
        column = y.to_native() if isinstance(y, nw.Series) else y
        # By position: scikit-learn ignores the index of y.
        native[name] = column.array if hasattr(column, "array") else np.asarray(column)
        return native
    values = y.to_list() if isinstance(y, nw.Series) else y.tolist()
    return frame.with_columns(nw.new_series(name, values, backend=frame.implementation)).to_native()


def _array(values: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        return values.detach().cpu().numpy()
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)
