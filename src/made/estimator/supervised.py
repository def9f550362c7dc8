"""`MADEClassifier` and `MADERegressor`: one column of a model, given the observed values of the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from made.columns.base import LEVELS
from made.errors import DataError, ParameterError, QuestionError
from made.estimator.face import Face
from made.estimator.made import MADE
from made.model.model import Model
from made.tables.plain import is_missing, plain


class Supervised(Face):
    """An estimator that predicts one column, the target."""

    def __init__(
        self,
        model: MADE | Model | None = None,
        *,
        target: str | int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.model = model
        self.target = target
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.target is None
        return tags

    def _checked(self, X: Any, y: Any) -> NDArray[Any] | None:
        """The target as an array; ``None`` if it is a column of X, or of a model that is fitted."""
        if y is None and self.target is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give y, or name the column "
                "of X to predict as 'target'."
            )
        if y is None:
            names = getattr(nw.from_native(X, pass_through=True), "columns", None)
            if isinstance(self.target, str) and names is not None and not self.is_prefit and self.target not in names:
                raise QuestionError(f"'target' is {self.target!r}, which is no column of X.", argument="target")
            return None
        values = cast(NDArray[Any], column_or_1d(y, warn=True))
        if is_missing(plain(values, "y")[0]).any():
            raise DataError("Input y contains NaN: leave out rows whose target is missing.")
        if self.target is not None and not self.is_prefit:
            raise ParameterError(
                f"'target' is {self.target!r}, and fit got y: name a column of X to predict, or give y.",
                argument="target",
            )
        return values

    def _may_change(self, columns: Collection[str]) -> bool:
        """Not the target, nor columns before it, if it is given by number."""
        return isinstance(self.target, str) and self.target not in columns

    def _column(self) -> str | int | None:
        """The column to predict."""
        if self.target is None and self.made.target_ is None:
            names = self.made.model_.schema.names
            raise QuestionError(
                f"there is no target: the fitted model has none, so name the column to predict, such as "
                f"{type(self).__name__}(model, target={names[-1]!r}). The columns are {', '.join(names[:20])}"
                f"{', ...' if len(names) > 20 else ''}.",
                argument="target",
            )
        return self.made.target_ if self.target is None else self.target


class MADEClassifier(ClassifierMixin, Supervised):  # type: ignore[misc]
    """Predicts a column with a list of values, given the observed values of the others.

    Arguments:
        model: the :class:`made.MADE` to fit; or a fitted one or a :class:`made.Model`, which is used as it is.
        target: the column to predict, by name or number, if ``fit`` gets no ``y``: any column of X, or of a fitted
            model. Default: the ``y`` of ``fit``, or the one that a fitted model was fitted with.
        random_state: seed of a model that has none.

    Attributes:
        made_: the fitted :class:`made.MADE`.
        classes_: the values of the target.
        n_features_in_, feature_names_in_: as in scikit-learn.

    Example:
        >>> from made import MADE, MADEClassifier
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> labels = np.where(rows[:, 0], "yes", "no")
        >>> classifier = MADEClassifier(MADE(hidden_sizes=(32,), max_epochs=20), random_state=0).fit(rows, labels)
        >>> classifier.predict([[1, np.nan, 1], [0, 0, np.nan]]).tolist()
        ['yes', 'no']
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MADEClassifier:
        """Learn the distribution of the rows, with the target ``y`` as one more column.

        A row with a ``sample_weight`` of 2 counts as the row twice.
        """
        values = self._checked(X, y)
        self.__dict__.pop("_classes", None)
        if values is None or self.is_prefit:
            self._fit(X, sample_weight=sample_weight)
            self.made.classes(self._column())  # refuses a column of numbers
            return self
        check_classification_targets(values)
        self._classes = np.unique(values)
        self._fit(X, y if hasattr(y, "name") else values, self._classes.tolist(), sample_weight)
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The values of the target, in the order of :meth:`predict_proba`."""
        if hasattr(self, "_classes"):
            return self._classes
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__!r} object is not fitted and has no attribute 'classes_'")
        return self.made.classes(self._column())

    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """The probability of each class, (rows, classes), given what is observed of each row."""
        return cast(NDArray[np.floating[Any]], self.made.predict_proba(X, self._column()))

    def predict_log_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """The logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return cast(NDArray[np.floating[Any]], np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each row."""
        places = self.predict_proba(X).argmax(axis=1)
        return cast(NDArray[Any], self.classes_[places])


class MADERegressor(RegressorMixin, Supervised):  # type: ignore[misc]
    """Predicts a numeric column, given the observed values of the others: mean, standard deviation and quantiles.

    Arguments:
        model: the :class:`made.MADE` to fit; or a fitted one or a :class:`made.Model`, which is used as it is.
        target: the column to predict, by name or number, if ``fit`` gets no ``y``: any column of X, or of a fitted
            model. Default: the ``y`` of ``fit``, or the one that a fitted model was fitted with.
        random_state: seed of a model that has none.

    Attributes:
        made_: the fitted :class:`made.MADE`.
        n_features_in_, feature_names_in_: as in scikit-learn.

    Example:
        >>> from made import MADE, MADERegressor
        >>> rows = np.random.default_rng(0).normal(size=(300, 2))
        >>> regressor = MADERegressor(MADE(hidden_sizes=(32,), max_epochs=40), random_state=0)
        >>> regressor = regressor.fit(rows, rows[:, 0] + 0.1 * rows[:, 1])
        >>> low, middle, high = regressor.predict_quantiles([[1.0, np.nan]])[0]
        >>> bool(low < middle < high)
        True
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MADERegressor:
        """Learn the distribution of the rows, with the target ``y`` as one more column.

        A row with a ``sample_weight`` of 2 counts as the row twice.
        """
        values = self._checked(X, y)
        if values is not None and not self.is_prefit:
            if values.dtype.kind in "mM":
                raise DataError("'y' should be numbers, not dates: MADE().fit(X, y) predicts them.")
            try:
                values = values.astype(np.float64)
            except (TypeError, ValueError):
                raise DataError("'y' should be numbers: MADEClassifier predicts other columns.") from None
            assert_all_finite(values, input_name="y")
        self._fit(X, y if hasattr(y, "name") else values, "numeric", sample_weight)
        self._numbers()
        return self

    def predict(self, X: Any, *, return_std: bool = False) -> Any:
        """The mean of the target in each row; with ``return_std``, also its standard deviation."""
        values, found = self._numbers(), self.made.forecast(X, self._column(), ())
        mean, deviation = found.mean, found.standard_deviation
        if values is not None:  # few numbers, each with a probability of its own
            mean = found.probabilities @ values
            deviation = np.sqrt(np.maximum(found.probabilities @ values**2 - mean**2, 0))
        return (mean, deviation) if return_std else mean

    def predict_quantiles(self, X: Any, *, quantiles: Sequence[float] = LEVELS) -> NDArray[np.float64]:
        """Quantiles of the target in each row, (rows, quantiles)."""
        return self.made.predict_quantiles(X, self._column(), quantiles=quantiles)

    def _numbers(self) -> NDArray[np.float64] | None:
        """The values of a target with a list of numbers; a target that is no number is refused."""
        model = self.made.model_
        field = model.schema.fields[model.target(self._column())]
        if field.temporal is not None:
            raise QuestionError(f"column {field.name!r} has dates, not numbers: MADE.predict predicts it.")
        if field.dtype == "text":
            raise QuestionError(f"column {field.name!r} has no numbers: MADEClassifier predicts it.")
        return np.array(field.values, dtype=np.float64) if field.listed else None
