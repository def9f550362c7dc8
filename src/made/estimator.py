"""`MADE`, the scikit-learn estimator over :class:`made.model.Model`."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from made.ask.exact import SAMPLES, Probability
from made.errors import DataError, ModelError, ParameterError
from made.model.conditionals import Conditionals
from made.model.config import number_of_masks, number_of_segments
from made.model.model import Model, RandomState
from made.model.prepare import check_parameters, prepare
from made.parameters import PARAMETERS
from made.tables.schema import Kinds, dropped
from made.tables.table import Table, with_target
from made.training.state import Epoch

__all__ = ["MADE"]


def _has_classes(estimator: MADE) -> bool:
    model: Model | None = getattr(estimator, "model_", None)
    return model is None or model.has_classes


class MADE(OneToOneFeatureMixin, TransformerMixin, DensityMixin, BaseEstimator):  # type: ignore[misc]
    r"""A distribution over the rows of a table, modelled by a masked autoencoder.

    Answers are probabilities under the fitted model, or densities where columns are numeric. A missing value (NaN,
    None, null, an empty text) is not observed, in training too. With unlimited masks, the default, any columns can be
    given, asked for, or left out. The ``random_state`` of a query is a seed, or a generator of torch to continue; by
    default that of the estimator.

    Arguments:
        hidden_sizes: number of units :math:`K^l` of each hidden layer.
        masks: number of masks R that updates cycle through and queries average, or ``"unlimited"``.
        resample: what changes from mask to mask: ``"both"``, ``"ordering"``, ``"degrees"`` or ``"neither"``.
        ordering: ordering :math:`m^0` of the first mask, ``"natural"`` or ``"random"``.
        activation: activation g of hidden units, such as ``"relu"`` or ``"softplus"``.
        direct: direct connections A; ``"auto"``: if they have up to 2**25 weights, as with 5,792 binary columns.
        conditioning, residual: connectivity conditioning weights U; residual connections between layers of equal size.
        signed: code binary inputs as -1 and +1, so that 0, a masked or missing input, is neither (the paper: 0 and 1).
        standardized: standardize binary inputs; better for any-order models of rare ones. Overrides ``signed``.
        dropout, input_dropout: dropout probability of hidden and of input units.
        bias: initial output biases: ``"zero"``, or ``"independent"`` for those of independent columns.
        initialization: ``"glorot"``, ``"orthogonal"``, or ``"zero-output"``, which is glorot with V = 0.
        optimizer, learning_rate, schedule, epsilon, momentum, clip, average, mask_for, questions,
            incomplete_rows, nearly_complete, pairs: see :class:`made.training.config.TrainingConfig`.
        whole_rows: share of an any-order model's updates that predict whole rows in one pass under one of the
            ``evaluation_masks``, which then also score rows. ``"auto"``: a half of an any-order model's.
        weight_decay: ``"auto"``: 300 divided by the number of rows, at most 0.3.
        segments: number of segments of an ordering, each evaluated in a pass in which every unit sees all columns
            before it. ``"auto"``: one for each column of an any-order model with up to 128 columns, otherwise 1.
        batch_size: rows in an update; ``"auto"``: a thirtieth of the rows, from 32 to 500.
        max_epochs: most passes over the rows; 0 gives an untrained model, which answers every query. ``"auto"``: 240
            for up to 7,000 rows, then fewer, though with more updates: 37 for 300,000.
        max_seconds: most seconds of training, checked after each epoch; the schedule ends with them.
        patience: epochs without progress on validation rows before early stopping.
        validation_fraction: share of rows for validation, if ``fit`` gets no ``X_valid``; 0 for none.
        validation_masks: most masks to average after each epoch.
        evaluation_masks: masks that a query averages if masks are unlimited; samples are drawn from the same masks.
        columns: kinds of the columns: ``"auto"``, or for each column, or for some by name, ``"binary"``,
            ``"categorical"``, ``"ordinal"``, ``"numeric"``, ``"real"``, ``"drop"``, a list of values in order, or a
            :class:`made.Column`.
        missing: what a missing value is: ``"unobserved"``, or a ``"category"`` of its own, which samples have, too; for
            all columns, or for some by name.
        unseen: values that training never saw: ``"other"`` gives them a small probability and warns (all such texts are
            one more category, which is never sampled); ``"error"`` refuses them.
        extrapolate: let the mean of a number (:meth:`predict`, :meth:`impute`) lie beyond all numbers in training.
        dtype, device: precision of the network, ``"float32"`` or ``"float64"``, and the device of torch.
        tensorboard, random_state: folder for the curves of TensorBoard; seed of all random numbers.
        verbose: 1 for a progress bar, on standard error if that is a terminal.

    Attributes:
        model_: the fitted :class:`made.model.Model`.
        n_features_in_, feature_names_in_: as in scikit-learn, without the target.
        target_: name of the column that ``y`` has become; ``None`` without one.
        classes_: values of the target, if it has a list of them.
        n_epochs_, best_epoch_, valid_nll_: length and result of training; the last is of the ensemble.

    Example:
        >>> from made import MADE
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = MADE(hidden_sizes=(32,), max_epochs=20, random_state=0).fit(rows)
        >>> model.score_samples([[1, 1, 1], [1, 1, 0]]).round(1).tolist()  # doctest: +SKIP
        [-0.7, -5.1]
        >>> model.impute([[1, np.nan, 1]], strategy="mode").tolist()
        [[1.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        *,
        hidden_sizes: Sequence[int] = (256, 256),
        masks: int | Literal["unlimited"] = "unlimited",
        resample: str = "both",
        ordering: str = "random",
        activation: str = "relu",
        direct: bool | Literal["auto"] = "auto",
        conditioning: bool = False,
        residual: bool = True,
        signed: bool = True,
        standardized: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        bias: str = "independent",
        initialization: str = "glorot",
        optimizer: str = "adamw",
        learning_rate: float | None = None,
        schedule: str = "cosine",
        epsilon: float | None = None,
        momentum: float | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        clip: float | None = 1.0,
        average: float | None = 0.995,
        batch_size: int | Literal["auto"] = "auto",
        max_epochs: int | Literal["auto"] = "auto",
        max_seconds: float | None = None,
        patience: int = 30,
        validation_fraction: float = 0.1,
        mask_for: str = "update",
        questions: float = 0.5,
        segments: int | Literal["auto"] = "auto",
        whole_rows: float | Literal["auto"] = "auto",
        incomplete_rows: float = 0.5,
        nearly_complete: float = 0.5,
        pairs: float = 1.0,
        validation_masks: int = 4,
        evaluation_masks: int = 8,
        columns: Kinds = "auto",
        missing: str | Mapping[str | int, str] = "unobserved",
        unseen: Literal["error", "other"] = "other",
        extrapolate: bool = False,
        dtype: str = "float32",
        tensorboard: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.__dict__.update({name: value for name, value in locals().items() if name in PARAMETERS})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.input_tags.string = True
        tags.classifier_tags = ClassifierTags()  # for predict_proba
        return cast(Tags, tags)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_valid: Any = None,
        resume_from: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        after_epoch: Callable[[Epoch], None] | None = None,
    ) -> MADE:
        """Learn the distribution of the rows.

        Arguments:
            X: the rows: an array, a sparse matrix, or a data frame.
            y: one more column, the target: what :meth:`predict` and :meth:`predict_proba` predict. Rows to query about
                may have it or not.
            X_valid: validation rows. Default: a random ``validation_fraction`` of X.
            resume_from: a folder for checkpoints, and for the model at the end. A run that it holds is resumed exactly,
                with the same rows and parameters; ``max_epochs`` and ``max_seconds`` may be greater than before, unless
                early stopping ended it. A finished model is loaded.
            overwrite: start anew, and replace what the folder holds.
            after_epoch: called after each epoch; an exception that it raises ends training.
        """
        self.check_parameters()
        without = dropped(self.columns)
        table = Table.of(X, without)
        if y is not None:
            table = Table.of(with_target(X, y), without)
        left_out: list[str | int] = [*table.dropped, *table.dropped.values()]
        valid_table = None if X_valid is None else Table.of(X_valid, left_out, len(table.columns))
        _check_feature_names(self, table.native(X) if y is None else X, reset=True)
        self.n_features_in_ = len(table.columns) - (y is not None)
        seed = self.random_state
        if not (seed is None or isinstance(seed, numbers.Integral)):
            seed = check_random_state(seed).randint(2**31 - 1)
        seed = None if seed is None else int(seed)
        target = None if y is None else table.all_names()[-1]
        folder, parameters = None if resume_from is None else Path(resume_from), self.get_params(deep=False)
        run = prepare(table, valid_table, parameters, seed=seed, target=target, folder=folder, overwrite=overwrite)
        try:
            run.go(verbose=bool(self.verbose), tensorboard=self.tensorboard, after_epoch=after_epoch)
        finally:
            if run.model is not None:
                self._take(run.model)
        return self

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        try:
            check_random_state(self.random_state)
        except ValueError as wrong:
            raise ParameterError(f"'random_state' is {self.random_state!r}: {wrong}", argument="random_state") from None
        check_parameters(self.get_params(deep=False))

    def score_samples(self, X: Any, *, given: Any = None) -> NDArray[np.floating[Any]]:
        """log p of each row, in nats (of a density, if columns are numeric), under the ensemble of masks.

        Arguments:
            X: the rows; with missing values, the answer is the marginal likelihood of the others.
            given: names or numbers of the columns that are conditioned on, which may not be missing.
        """
        return self._model().score_samples(self._table(X), given=given)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples`, with ``y`` as the target if the model has one that X lacks."""
        if y is not None and getattr(self, "target_", None) is not None and self._table(X).extra:
            X = with_target(X, y)
        return float(self.score_samples(X).mean(dtype=np.float64))

    def sample(
        self,
        n_samples: int = 1,
        *,
        given: Mapping[Any, Any] | Any = None,
        temperature: float = 1.0,
        random_state: RandomState = None,
    ) -> Any:
        """New rows, in the kind of container that the model was fitted on.

        Arguments:
            n_samples: number of rows; for each row of ``given``, if that is rows.
            given: values of some columns, ``{column: value}``; or rows, whose missing values are drawn.
            temperature: below 1 for more likely values, above 1 for less likely ones.
        """
        rows = given if given is None or isinstance(given, Mapping) else self._table(given)
        state = self._random(random_state)
        return self._model().sample(n_samples, given=rows, temperature=temperature, random_state=state)

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
        options: Any = {"n_draws": n_draws, "strategy": strategy, "return_uncertainty": return_uncertainty}
        return self._model().impute(self._table(X), random_state=self._random(random_state), **options)

    def transform(self, X: Any) -> Any:
        """The rows with the most likely value for each missing one, :meth:`impute` by mode."""
        return self.impute(X, strategy="mode")

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
        """The most likely value of a column, or the mean of a numeric one; arguments as of :meth:`predict_proba`."""
        return self._model().predict(self._table(X, target, to_predict=True), target)

    def predict_quantiles(
        self, X: Any, target: Any = None, *, quantiles: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> NDArray[np.float64]:
        """Quantiles of a column of numbers, (rows, quantiles); dates are seconds since 1970-01-01."""
        return self._model().predict_quantiles(self._table(X, target, to_predict=True), target, quantiles=quantiles)

    def conditionals(
        self, given: Mapping[Any, Any] | None = None, *, quantiles: Sequence[float] = (0.05, 0.5, 0.95)
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
            return_uncertainty: also return a :class:`made.queries.denoising.Denoised`, with each error's probability.
        """
        options: Any = {"column_error": column_error, "strategy": strategy, "return_uncertainty": return_uncertainty}
        return self._model().denoise(self._table(X), error, random_state=self._random(random_state), **options)

    def probability(self, condition: str, *, samples: int = SAMPLES, random_state: RandomState = None) -> Probability:
        """The probability of a condition, given another: ``"income > 50 and job = 'fixed' | age < 30"``.

        The answer says how: by sums and integrals, or by ``samples``, with an error. Language: :mod:`made.ask.parser`.
        """
        return self._model().probability(condition, samples=samples, random_state=self._random(random_state))

    def surprise(self, X: Any) -> Any:
        """Contribution of each entry to the NLL of its row: -log p(x_d | x_<d), averaged over masks; NaN if missing.

        The sum over a row is an upper bound of the NLL of the ensemble. That of a number may be negative.
        """
        return self._model().surprise(self._table(X))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model to a folder; see :meth:`made.model.Model.save`."""
        self._model().save(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> MADE:
        """Read a model from its folder; one whose training is not finished has the best weights so far."""
        model = Model.load(folder)
        try:
            estimator = cls(**(model.config.parameters | {"device": "cpu"}))
            estimator.check_parameters()
        except (TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json is not valid: {error}") from None
        names = [name for name in model.schema.names if name != model.config.target]
        estimator.n_features_in_ = len(names)
        if model.schema.named:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return estimator._take(model)

    def _take(self, model: Model) -> MADE:
        self.model_, self.target_ = model, model.config.target
        self.n_epochs_ = len(model.history)
        self.best_epoch_, self.valid_nll_ = (model.config.scores.get(name) for name in ("best_epoch", "valid_nll"))
        return self

    def _model(self) -> Model:
        """The fitted model, with the number of masks and of segments that the parameters ask for now."""
        check_is_fitted(self, "model_")
        model: Model = self.model_
        of = model.network.connectivities
        return model.with_ensemble(number_of_masks(of, self.evaluation_masks), number_of_segments(of, self.segments))

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
                _check_feature_names(self, table.native(X), reset=False)
            except ValueError as error:
                raise DataError(str(error)) from None
        return table
