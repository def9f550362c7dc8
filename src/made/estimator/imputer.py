"""`MADEImputer`: a transformer that fills missing values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np
from sklearn.base import TransformerMixin

from made.errors import ParameterError
from made.estimator.face import Face
from made.estimator.made import MADE
from made.estimator.names import KeptNamesMixin
from made.model.model import Model, RandomState

STRATEGIES = ("mean", "mode", "sample")


class MADEImputer(KeptNamesMixin, TransformerMixin, Face):  # type: ignore[misc]
    """Fills missing values of numbers, text and dates from the observed values of each row.

    A column without any value is left out, with a warning, as by the imputers of scikit-learn.

    Arguments:
        model: the :class:`made.MADE` to fit; or a fitted one or a :class:`made.Model`, which is used as it is.
        strategy: ``"mean"`` fills in the mean of a number, and the most likely value of other columns; ``"mode"`` the
            most likely value of all; ``"sample"`` draws all missing values of a row together.
        random_state: seed of the draws, and of a model that has none.

    Attributes:
        made_: the fitted :class:`made.MADE`.
        n_features_in_, feature_names_in_: as in scikit-learn.

    Example:
        >>> from made import MADE, MADEImputer
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1).astype(float)
        >>> imputer = MADEImputer(MADE(hidden_sizes=(32,), max_epochs=20), random_state=0).fit(rows)
        >>> imputer.transform([[1, np.nan, 1]]).tolist()
        [[1.0, 1.0, 1.0]]
    """

    fills: ClassVar[bool] = True

    def __init__(
        self,
        model: MADE | Model | None = None,
        *,
        strategy: Literal["mean", "mode", "sample"] = "mean",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.model = model
        self.strategy = strategy
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MADEImputer:
        """Learn the distribution of the rows; ``y`` is ignored. A row of weight 2 counts as the row twice."""
        if self.strategy not in STRATEGIES:
            raise ParameterError(
                f"'strategy' should be one of {', '.join(STRATEGIES)}, not {self.strategy!r}.", argument="strategy"
            )
        self._fit(X, sample_weight=sample_weight)
        return self

    def transform(self, X: Any) -> Any:
        """The rows with their missing values filled in, and everything else as it was."""
        return self.made.impute(X, strategy=self.strategy, random_state=self.random_state)

    def impute(self, X: Any, *, n_draws: int = 5, random_state: RandomState = None) -> Any:
        """Multiple imputation: ``n_draws`` tables, with independent draws of the missing values.

        The differences between the tables are the uncertainty of what is filled in. Returns an array of shape
        (n_draws, rows, columns), or a list of frames.
        """
        state = self.random_state if random_state is None else random_state
        drawn = self.made.impute(X, n_draws=n_draws, random_state=state)
        if n_draws > 1:
            return drawn
        return [drawn] if nw.dependencies.is_into_dataframe(drawn) else drawn[None]

    @property
    def _left_out(self) -> Collection[int]:
        return self.made.model_.config.schema.dropped.values()
