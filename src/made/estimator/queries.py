"""The queries of `MADE`: each checks its rows as scikit-learn does, and asks the fitted :class:`made.model.Model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from made.ask.exact import SAMPLES, Probability
from made.columns.base import LEVELS
from made.errors import DataError
from made.estimator.names import check_names
from made.model.conditionals import Conditionals
from made.model.config import number_of_masks, number_of_segments
from made.model.dependence import SAMPLES as PAIR_SAMPLES
from made.model.dependence import Association, MutualInformation
from made.model.distribution import RowDistribution
from made.model.model import Model, RandomState
from made.queries.conditional import Forecast
from made.tables.table import Table, with_target


def _has_classes(estimator: Queries) -> bool:
    model: Model | None = getattr(estimator, "model_", None)
    return model is None or model.has_classes


class Queries:
    """The queries of an estimator with a fitted ``model_``."""

    model_: Model
    target_: str | None
    evaluation_masks: int
    segments: int | Literal["auto"]
    random_state: int | np.random.RandomState | None

    def score_samples(self, X: Any, *, given: Any = None) -> NDArray[np.floating[Any]]:
        """log p of each row, in nats (of a density, if columns are numeric), under the ensemble of masks.

        Arguments:
            X: the rows; with missing values, the answer is the marginal likelihood of the others.
            given: names or numbers of the columns that are conditioned on, which may not be missing.
        """
        return self._model().score_samples(self._table(X), given=given)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean of :meth:`score_samples`, with ``y`` as the target if the model has one that X lacks.

        With a ``sample_weight``, the weighted mean.
        """
        if y is not None and getattr(self, "target_", None) is not None and self._table(X).extra:
            X = with_target(X, y)
        return self._model().score(self._table(X), sample_weight)

    def sample(
        self,
        n_samples: int = 1,
        *,
        given: Mapping[Any, Any] | Any = None,
        temperature: float = 1.0,
        missing: bool = False,
        random_state: RandomState = None,
    ) -> Any:
        """New rows, in the kind of container that the model was fitted on.

        Arguments:
            n_samples: number of rows; for each row of ``given``, if that is rows.
            given: values of some columns, ``{column: value}``; or rows, whose missing values are drawn.
            temperature: below 1 for more likely values, above 1 for less likely ones.
            missing: include missing values, distributed as in the training rows, except in given columns.
        """
        model, state = self._model(), self._random(random_state)
        rows = given if given is None or isinstance(given, Mapping) else self._table(given)
        return model.sample(n_samples, given=rows, temperature=temperature, missing=missing, random_state=state)

    def impute(
        self,
        X: Any,
        *,
        n_draws: int = 1,
        strategy: Literal["sample", "mode", "mean"] = "sample",
        return_uncertainty: bool = False,
        random_state: RandomState = None,
    ) -> Any:
        """The rows with their missing values filled in, and everything else as it was.

        Arguments:
            X: the rows.
            n_draws: number of imputations; more than one gives an array with a leading axis, or a list of frames.
            strategy: ``"sample"`` draws all missing values of a row together; ``"mode"`` takes the most likely value of
                each given what is observed; ``"mean"`` the expected value, where columns are numeric.
            return_uncertainty: also return a :class:`made.queries.imputation.Uncertainty` of the filled entries.
        """
        table, state = self._table(X), self._random(random_state)
        return self._model().impute(
            table, n_draws=n_draws, strategy=strategy, return_uncertainty=return_uncertainty, random_state=state
        )

    @available_if(_has_classes)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, target: Any = None) -> NDArray[np.floating[Any]]:
        """The probability of each value of a column, given what is observed of the others.

        Arguments:
            X: the rows; values of the target are ignored, and a frame may lack the column.
            target: the column, by name or number. Default: the ``y`` of :meth:`fit`.

        Returns:
            An array of shape (rows, values), in the order of :meth:`classes`, without values that training never saw.
        """
        return self._model().predict_proba(self._table(X, target, to_predict=True), target)

    def predict(self, X: Any, target: Any = None) -> NDArray[Any]:
        """The most likely value of a column, or the mean of a numeric one; arguments as in :meth:`predict_proba`."""
        return self._model().predict(self._table(X, target, to_predict=True), target)

    def predict_quantiles(
        self, X: Any, target: Any = None, *, quantiles: Sequence[float] = LEVELS
    ) -> NDArray[np.float64]:
        """Quantiles of a column of numbers, (rows, quantiles); dates are seconds since 1970-01-01."""
        return self._model().predict_quantiles(self._table(X, target, to_predict=True), target, quantiles=quantiles)

    def forecast(self, X: Any, target: Any = None, quantiles: Sequence[float] = LEVELS) -> Forecast:
        """The distribution of a column in each row, given what is observed of the others: probabilities of its values,
        or mean, standard deviation and quantiles of a number. Arguments as in :meth:`predict_proba`."""
        return self._model().forecast(self._table(X, target, to_predict=True), target, quantiles)

    def conditionals(
        self, given: Mapping[Any, Any] | None = None, *, quantiles: Sequence[float] = LEVELS
    ) -> Conditionals:
        """The distribution of every column but those given, ``{column: value}``, from one pass for each mask."""
        return self._model().conditionals(given, quantiles=quantiles)

    def classes(self, target: Any = None) -> NDArray[Any]:
        """The values of a column that has a list of them, in order. Default: of the ``y`` of :meth:`fit`."""
        return self._model().classes(target)

    @property
    def classes_(self) -> NDArray[np.generic]:
        """The values of the target, as scikit-learn's classifiers have them."""
        target = getattr(self, "target_", None)
        if target is None or not _has_classes(self):
            raise AttributeError("'classes_' needs a target 'y' with a list of values: fit with one.")
        return self.classes(target)

    def denoise(
        self,
        X: Any,
        error: float = 0.05,
        *,
        column_error: Mapping[Any, float] | None = None,
        strategy: Literal["mode", "mean"] = "mode",
        return_uncertainty: bool = False,
        random_state: RandomState = None,
    ) -> Any:
        """The rows as they were before some entries were corrupted (the noise model: :mod:`made.queries.denoising`).

        Arguments:
            X: the noisy rows.
            error: probability that an entry is corrupted.
            column_error: the same for some columns, by name or number.
            strategy: ``"mode"`` for the most likely row; ``"mean"`` for the mean of each number by itself, and the most
                likely value of other columns.
            return_uncertainty: also return a :class:`made.queries.denoising.Denoised`: the probability that each entry
                was corrupted, and how it was computed.
        """
        ask, table, state = self._model().denoise, self._table(X), self._random(random_state)
        uncertain: Any = {"return_uncertainty": return_uncertainty}
        return ask(table, error, column_error=column_error, strategy=strategy, random_state=state, **uncertain)

    def probability(self, condition: str, *, samples: int = SAMPLES, random_state: RandomState = None) -> Probability:
        """The probability of a condition, given another: ``"income > 50 and job = 'fixed' | age < 30"``.

        The answer says how: by sums and integrals, or by ``samples``, with an error. Language: :mod:`made.ask.parser`.
        """
        return self._model().probability(condition, samples=samples, random_state=self._random(random_state))

    def condition(self, given: Mapping[Any, Any]) -> Model:
        """The distribution of the other columns, given values of some, ``{column: value}``.

        A view of the same model, with the same methods: it can be scored, sampled, asked, conditioned again and saved.
        """
        return self._model().condition(given)

    def marginal(self, columns: Sequence[Any]) -> Model:
        """The marginal distribution of some columns, by name or number: a view, as :meth:`condition`."""
        return self._model().marginal(columns)

    def distribution(self, given: Mapping[Any, Any] | None = None) -> RowDistribution:
        """The rows as a distribution of ``torch.distributions``, given values of some columns, ``{column: value}``."""
        return self._model().distribution(given)

    def mutual_information(
        self, first: Any, second: Any, *, samples: int = PAIR_SAMPLES, random_state: RandomState = None
    ) -> MutualInformation:
        """How much two columns, by name or number, say about each other under the model, in nats, with its error.

        A sum for columns with lists of values; otherwise an estimate by ``samples``. For conditional mutual
        information, ask a view (:meth:`condition`).
        """
        return self._model().mutual_information(first, second, samples=samples, random_state=self._random(random_state))

    def association(self, *, samples: int = PAIR_SAMPLES, random_state: RandomState = None) -> Association:
        """:meth:`mutual_information` of all pairs of columns."""
        return self._model().association(samples=samples, random_state=self._random(random_state))

    def surprise(self, X: Any) -> Any:
        """Contribution of each entry to the NLL of its row: -log p(x_d | x_<d), averaged over masks; NaN if missing.

        The sum over a row is an upper bound of the NLL of the ensemble. That of a number may be negative.
        """
        return self._model().surprise(self._table(X))

    def _model(self) -> Model:
        """The fitted model, with the number of masks and of segments that the parameters ask for now."""
        check_is_fitted(self, "model_")
        model: Model = self.model_
        family = model.network.connectivities
        masks = number_of_masks(family, self.evaluation_masks)
        return model.with_ensemble(masks, number_of_segments(family, self.segments))

    def _random(self, random_state: RandomState) -> RandomState:
        if isinstance(random_state, torch.Generator):
            return random_state
        return cast(RandomState, check_random_state(self.random_state if random_state is None else random_state))

    def _table(self, X: Any, target: Any = None, *, to_predict: bool = False) -> Table:
        """Rows as a table, after scikit-learn's check of their names, unless the column to predict is absent."""
        model = self._model()
        d = model.target(target) if to_predict else None
        table = model.table(X, d)
        names = None if table.names is None else table.names[: len(table.names) - table.extra]
        asked = d is not None and names is not None and model.schema.names[d] not in names
        if not asked and (self.target_ is None or names is None or self.target_ not in names):
            try:
                check_names(self, table.native(X), reset=False)
            except ValueError as error:
                raise DataError(str(error)) from None
        return table
