"""The check of scikit-learn that rows have the column names of the rows in `fit`."""

from __future__ import annotations

from typing import Any

import narwhals as nw
from sklearn.utils.validation import _check_feature_names


def check_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Keep the column names of X as ``feature_names_in_``, or compare them with those that are kept.

    scikit-learn before 1.9 sees no names in frames of polars 2, so it gets those of an empty Arrow table.
    """
    if nw.dependencies.is_polars_dataframe(X):
        X = X.head(0).to_arrow()
    _check_feature_names(estimator, X, reset=reset)
