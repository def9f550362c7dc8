"""The names of columns, as scikit-learn checks them in `fit` and wants them from `transform`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted


def check_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Keep the column names of X as ``feature_names_in_``, or compare them with those that are kept.

    scikit-learn before 1.9 sees no names in frames of polars 2, so it gets those of an empty Arrow table.
    """
    if nw.dependencies.is_polars_dataframe(X):
        X = X.head(0).to_arrow()
    _check_feature_names(estimator, X, reset=reset)


def without_columns(X: Any, names: Collection[str]) -> Any:
    """X without columns of these names, if it is a frame that has them."""
    frame = nw.from_native(X, pass_through=True)
    left_out = [name for name in names if name in frame.columns] if isinstance(frame, nw.DataFrame) else []
    return frame.drop(left_out).to_native() if left_out else X


class KeptNamesMixin(OneToOneFeatureMixin):  # type: ignore[misc]
    """The names of what :meth:`transform` returns: those of X, without the columns that are left out."""

    @property
    def _left_out(self) -> Collection[int]:
        """The numbers of the columns of X that the model has not."""
        raise NotImplementedError

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the output, which are those of X but for the columns that are left out."""
        check_is_fitted(self)
        left_out = self._left_out
        if input_features is not None and len(input_features) == self.n_features_in_ + len(left_out):
            input_features = [name for place, name in enumerate(input_features) if place not in left_out]
        return cast(NDArray[np.object_], super().get_feature_names_out(input_features))
