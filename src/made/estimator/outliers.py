"""`MADEOutlierDetector`: unlikely rows, and the entries responsible."""

from __future__ import annotations

import copy
import numbers
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from made.errors import ParameterError
from made.estimator.face import Face
from made.estimator.made import MADE
from made.model.model import Model

NO_THRESHOLD = "This %(name)s instance has no threshold yet: call 'fit' with rows of the usual kind."


class MADEOutlierDetector(OutlierMixin, Face):  # type: ignore[misc]
    """Finds unlikely rows, and the entries responsible.

    Arguments:
        model: the :class:`made.MADE` to fit; or a fitted one or a :class:`made.Model`, which is used as it is. ``fit``
            is needed for the threshold.
        contamination: share of the rows given to ``fit`` that are outliers, above 0 and up to 0.5.
        random_state: seed of a model that has none.

    Attributes:
        made_: the fitted :class:`made.MADE`.
        offset_: the threshold: :meth:`decision_function` is :meth:`score_samples` less this.
        usual_: the median surprise of each column of the model in the rows given to ``fit``, 0 if it was missing.
        n_features_in_, feature_names_in_: as in scikit-learn.

    Example:
        >>> from made import MADE, MADEOutlierDetector
        >>> rows = np.random.default_rng(0).normal(size=(200, 1)).repeat(3, axis=1)
        >>> detector = MADEOutlierDetector(MADE(hidden_sizes=(32,), max_epochs=20), random_state=0).fit(rows)
        >>> detector.predict([[0.5, 0.5, 0.5], [0.5, 9, 0.5]]).tolist()
        [1, -1]
        >>> int(detector.reasons([[0.5, 9, 0.5]]).argmax())
        1
    """

    usual_: NDArray[np.float64]
    offset_: float

    def __init__(
        self,
        model: MADE | Model | None = None,
        *,
        contamination: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.model = model
        self.contamination = contamination
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> MADEOutlierDetector:
        """Learn the distribution of the rows, and below which log-likelihood a row is an outlier; ``y`` is ignored."""
        share = self.contamination
        if isinstance(share, bool) or not isinstance(share, numbers.Real) or not 0 < share <= 0.5:
            raise ParameterError(
                f"'contamination' should be a number above 0 and up to 0.5, not {share!r}.", argument="contamination"
            )
        self._fit(X)
        surprise = _matrix(self.made.surprise(X))
        self.usual_ = np.zeros(len(self.made.model_.schema.fields))
        self.usual_[: surprise.shape[1]] = np.nanmedian(np.where(np.isnan(surprise).all(axis=0), 0, surprise), axis=0)
        self.offset_ = float(np.percentile(self._scores(X), 100 * share))
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """log p of each row, in nats; a missing entry counts as one that is as likely as usual in its column."""
        self._check_fitted()
        return self._scores(X)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        precise = copy.copy(self.made)  # the last digit of a float depends on the order of the rows
        precise.model_ = precise.model_.in_double
        missing = np.isnan(precise.model_.codes(X))
        return precise.score_samples(X).astype(np.float64) - missing @ self.usual_

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """:meth:`score_samples` less the threshold: negative for an outlier."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.intp]:
        """-1 for an outlier, 1 for any other row."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def reasons(self, X: Any) -> Any:
        """For each entry its surprise above the median of its column, in nats; NaN if it is missing.

        The largest of a row say why it is odd. A frame if X is one.
        """
        self._check_fitted()
        surprise = self.made.surprise(X)
        frame = nw.from_native(surprise, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return surprise - self.usual_[: surprise.shape[1]]
        usual = zip(frame.columns, self.usual_.tolist(), strict=False)
        return frame.with_columns(*(nw.col(name) - each for name, each in usual)).to_native()

    def _check_fitted(self) -> None:
        """A fitted model is not enough: the threshold comes from the rows given to ``fit``."""
        check_is_fitted(self, "offset_", msg=NO_THRESHOLD)


def _matrix(table: Any) -> NDArray[np.float64]:
    frame = nw.from_native(table, pass_through=True)
    return np.asarray(frame.to_numpy() if isinstance(frame, nw.DataFrame) else frame, dtype=np.float64)
