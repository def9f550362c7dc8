"""`MADE`, the scikit-learn face over all of it."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from made.ask.exact import SAMPLES, Probability, probability
from made.errors import DataError, ModelError, QuestionError
from made.hints import hint
from made.model.denoising import denoise, put_back
from made.model.folder import is_begun, replace_folder
from made.model.memory_budget import check_memory
from made.model.model import (
    Config,
    Data,
    Model,
    checkpoint_content,
    data_digest,
    new_config,
    open_model,
)
from made.model.run import Run, check_same, longer
from made.network.connectivity import Connectivities
from made.network.limits import has_direct
from made.parameters import PARAMETERS
from made.queries.batches import blocks, counted_from
from made.queries.conditional import forecast, predictions
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.imputation import draw, fill, uncertainty
from made.queries.likelihood import log_conditionals, log_prob, passes, ways
from made.tables.schema import Kinds, Schema, dropped
from made.tables.table import Table
from made.tables.target import with_target
from made.training.config import TrainingConfig
from made.training.state import Epoch
from made.training.trainer import Trainer

__all__ = ["MADE"]

RandomState: TypeAlias = int | np.random.RandomState | torch.Generator | None

FEW = 128  # columns, up to which an answer may take a pass for each of them


def _has_discrete_column(estimator: MADE) -> bool:
    model: Model | None = getattr(estimator, "model_", None)
    if model is None:
        return True
    target = getattr(estimator, "target_", None)
    fields = model.schema.fields if target is None else [model.schema.fields[model.schema.names.index(target)]]
    return any(field.kind != "numeric" for field in fields)


class MADE(OneToOneFeatureMixin, TransformerMixin, DensityMixin, BaseEstimator):  # type: ignore[misc]
    r"""A distribution over the rows of a table, by a masked autoencoder.

    Every answer is a true log-likelihood. NaN (None, null, an empty text) means "not observed", in training too. With
    unlimited masks, the default, any columns can be given, asked for, or left out.

    Arguments:
        hidden_sizes: the number of units :math:`K^l` of each hidden layer.
        masks: R, the number of masks that updates cycle through and that answers average; or ``"unlimited"``.
        resample: what changes from mask to mask: ``"both"``, ``"ordering"``, ``"degrees"`` or ``"neither"``.
        ordering: the ordering :math:`m^0` of the first mask, ``"natural"`` or ``"random"``.
        activation: g, the activation of hidden units.
        direct: whether there are direct connections A; ``"auto"`` if they have up to 2**25 weights, as of 5,792 binary
            columns: more take most of the time of every answer.
        conditioning: whether there are connectivity conditioning weights U.
        residual: join hidden layers of equal size by residual connections.
        signed: code binary inputs as -1 and +1, so that 0, the input of what is masked or not observed, is neither; the
            paper has 0 and 1, which is better where ones are rare, unless questions have holes.
        standardized: code binary inputs less their mean, and by their spread, so that 0 is what is expected; better in
            any-order models of columns in which ones are rare. What ``signed`` says is then of no matter.
        dropout: the probability with which a hidden unit is left out in training.
        input_dropout: the same of an input unit.
        bias: where output biases begin: ``"zero"``, or ``"independent"``, where independent columns have them.
        initialization: ``"glorot"``, ``"orthogonal"``, or ``"zero-output"``: glorot, but V begins at zero.
        optimizer, learning_rate, schedule, epsilon, momentum, clip, average, mask_for, questions, whole_rows: see
            :class:`made.training.config.TrainingConfig`.
        weight_decay: see there; ``"auto"`` is 300 by the number of rows, 0.3 at most: the more rows, the less.
        segments: see there; ``"auto"`` is one for each column of an any-order model that has up to 128 of them: every
            unit then sees all that an answer is given, which is better, and takes a pass for each column. Otherwise 1.
        batch_size: the number of rows in an update; ``"auto"`` is 32 to 500, by the number of rows.
        max_epochs: the most passes over the rows; 0 gives a model in its initial weights, which answers everything.
        max_seconds: the most seconds of training, looked at after each epoch; a schedule comes to its end with them.
        patience: the look-ahead: training ends after this many epochs without progress.
        validation_fraction: the share of rows set apart to choose the epoch, if ``fit`` gets no ``X_valid``; 0: none.
        validation_masks: how many masks are averaged after each epoch, of an unlimited model or of a longer list.
        evaluation_masks: how many an unlimited model averages in every answer; samples are drawn from the same ones.
        columns: the kinds of the columns, ``"auto"``, or a kind (``"binary"``, ``"categorical"``, ``"ordinal"``,
            ``"numeric"``, ``"real"``, ``"drop"``, or a list of values in order) for each, or for some of them by name.
        missing: what an empty entry is: ``"unobserved"``, about which nothing is said, or a ``"category"``, a value
            like others, which samples have, too; for all columns, or for some of them by name.
        unseen: what to do about values that training never saw: ``"other"`` takes them for what they are, unlikely (of
            text, all are one more category, learned from what is seen only once; samples never have it) and warns;
            ``"error"`` refuses them.
        dtype: the precision of the network, ``"float32"`` or ``"float64"``.
        tensorboard: a folder for the curves of TensorBoard.
        random_state: the seed of everything that is random.
        device: the device that torch works on.
        verbose: 1 for a progress bar, on standard error if that is a terminal.

    Attributes:
        model_: schema, network and history.
        n_features_in_, feature_names_in_: as in scikit-learn, without the target.
        target_: the name of the column that ``y`` has become; ``None`` without one.
        classes_: the values of the target, if it has a list of them.
        n_epochs_, best_epoch_, valid_nll_: how training went; the last is of the ensemble that answers.

    Example:
        >>> from made import MADE
        >>> rows = np.random.default_rng(0).integers(2, size=(200, 1)).repeat(3, axis=1)
        >>> model = MADE(hidden_sizes=(32,), max_epochs=20, random_state=0).fit(rows)
        >>> model.score_samples([[1, 1, 1], [1, 1, 0]]).round(1).tolist()  # doctest: +SKIP
        [-0.7, -5.1]
        >>> model.impute([[1, np.nan, 1]], strategy="mode").tolist()
        [[1.0, 1.0, 1.0]]
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "hidden_sizes": ["array-like"],
        "masks": [Interval(numbers.Integral, 1, None, closed="left"), StrOptions({"unlimited"})],
        "dropout": [Interval(numbers.Real, 0, 1, closed="left")],
        "input_dropout": [Interval(numbers.Real, 0, 1, closed="left")],
        "learning_rate": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "epsilon": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "momentum": [Interval(numbers.Real, 0, 1, closed="left"), None],
        "weight_decay": [Interval(numbers.Real, 0, None, closed="left"), StrOptions({"auto"})],
        "clip": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "average": [Interval(numbers.Real, 0, 1, closed="left"), None],
        "batch_size": [Interval(numbers.Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_epochs": [Interval(numbers.Integral, 0, None, closed="left")],
        "max_seconds": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "patience": [Interval(numbers.Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(numbers.Real, 0, 1, closed="left")],
        "questions": [Interval(numbers.Real, 0, 1, closed="both")],
        "whole_rows": [Interval(numbers.Real, 0, 1, closed="both")],
        "segments": [Interval(numbers.Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "validation_masks": [Interval(numbers.Integral, 1, None, closed="left")],
        "evaluation_masks": [Interval(numbers.Integral, 1, None, closed="left")],
        "direct": ["boolean", StrOptions({"auto"})],
        "conditioning": ["boolean"],
        "residual": ["boolean"],
        "signed": ["boolean"],
        "standardized": ["boolean"],
        "columns": [str, "array-like", dict],
        "missing": [StrOptions({"unobserved", "category"}), dict],
        "tensorboard": [str, os.PathLike, None],
        "random_state": ["random_state"],
        "device": [str],
        "verbose": ["verbose"],
        **{name: [StrOptions(set(each.choices))] for name, each in PARAMETERS.items() if each.choices},
    }

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
        schedule: str = "falling",
        epsilon: float | None = None,
        momentum: float | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        clip: float | None = 1.0,
        average: float | None = 0.995,
        batch_size: int | Literal["auto"] = "auto",
        max_epochs: int = 80,
        max_seconds: float | None = None,
        patience: int = 30,
        validation_fraction: float = 0.1,
        mask_for: str = "update",
        questions: float = 0.5,
        segments: int | Literal["auto"] = "auto",
        whole_rows: float = 0.0,
        validation_masks: int = 4,
        evaluation_masks: int = 16,
        columns: Kinds = "auto",
        missing: str | Mapping[str | int, str] = "unobserved",
        unseen: Literal["error", "other"] = "other",
        dtype: str = "float32",
        tensorboard: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.masks = masks
        self.resample = resample
        self.ordering = ordering
        self.activation = activation
        self.direct = direct
        self.conditioning = conditioning
        self.residual = residual
        self.signed = signed
        self.standardized = standardized
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.bias = bias
        self.initialization = initialization
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.epsilon = epsilon
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.clip = clip
        self.average = average
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.max_seconds = max_seconds
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.mask_for = mask_for
        self.questions = questions
        self.segments = segments
        self.whole_rows = whole_rows
        self.validation_masks = validation_masks
        self.evaluation_masks = evaluation_masks
        self.columns = columns
        self.missing = missing
        self.unseen = unseen
        self.dtype = dtype
        self.tensorboard = tensorboard
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.classifier_tags = ClassifierTags()  # for predict_proba
        return cast(Tags, tags)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_valid: Any = None,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> MADE:
        """Learn the distribution of the rows.

        Arguments:
            X: the rows: an array, a sparse matrix, or a data frame; NaN means "not observed".
            y: one more column, the target: what :meth:`predict` and :meth:`predict_proba` predict. Rows to ask about
                may have it or not.
            X_valid: rows to choose the epoch by; unless told, ``validation_fraction`` of X.
            resume_from: a folder in which the state of training is kept as it goes, to go on from exactly, with the
                same rows and parameters (``max_epochs`` and ``max_seconds`` may grow, unless patience has ended it);
                in the end, it holds the model. Nothing there: training starts. Finished: the model is loaded.
        """
        return self._fit(X, X_valid, None if resume_from is None else Path(resume_from), y=y)

    def _fit(
        self,
        X: Any,
        X_valid: Any,
        folder: Path | None,
        overwrite: bool = False,
        after_epoch: Callable[[Epoch], None] | None = None,
        y: Any = None,
    ) -> MADE:
        """:meth:`fit`; to overwrite is to start anew, after all was found right, in a folder that has a model.

        What ``after_epoch`` raises ends training, and is raised.
        """
        self._validate_params()
        without = dropped(self.columns)
        table = Table.of(X, without)
        if y is not None:
            table = Table.of(with_target(X, y), without)
        valid_table = None if X_valid is None else Table.of(X_valid, without, len(table.columns))
        _check_feature_names(self, table.native(X) if y is None else X, reset=True)
        self.n_features_in_ = len(table.columns) - (y is not None)
        together = table if valid_table is None else table.with_rows_of(valid_table)
        try:
            schema = Schema.infer(together, self.columns, missing=self.missing, unseen=self.unseen)
        except DataError:
            raise
        except ValueError as error:
            name = "missing" if str(error).startswith("'missing'") else "columns"
            raise InvalidParameterError(f"The '{name}' parameter of MADE: {error}") from None
        codes = schema.encode(table, training=True)
        valid = None if valid_table is None else schema.encode(valid_table, training=True)
        self.target_ = None if y is None else schema.names[-1]
        go_on = folder is not None and not overwrite and is_begun(folder)
        before, state = open_model(cast(Path, folder)) if go_on else (None, None)
        seed = before.config.seed if before is not None and self.random_state is None else self._seed()
        if valid is None:
            codes, valid = self._split(codes, seed)
        count = 0 if valid is None else len(valid)
        data = Data(rows=len(codes), valid_rows=count, sha256=data_digest(codes, valid))
        if before is not None and before.config.data == data:
            schema = before.schema  # a later version may infer more of the same values, such as points among them
        elif self.standardized:
            schema = schema.standardized(codes)
        try:
            stored = self._stored_parameters(seed, schema)
            config = new_config(stored, seed, schema, _container(table), data, self.target_)
        except ValueError as error:
            raise InvalidParameterError(str(error)) from None
        self._template: Table | None = table.template()
        if folder is not None and before is not None:
            check_same(before.config, config, folder)
            grown = longer(config.parameters, before.config.parameters)
            if before.finished and not (grown and state is not None):
                self._state = state
                return self._take(before)
        check_memory(config)
        network = config.network().to(self.device)
        try:
            if self.bias == "independent" and state is None:
                rows = Evidence.of(network, codes)
                network.start_independent(rows.values, rows.observed)
            trainer = Trainer(network, codes, valid, self._training_config(config), state)
        except DataError:
            raise
        except (ValueError, RuntimeError, TypeError) as error:
            if state is None:
                raise InvalidParameterError(str(error)) from None
            raise ModelError(f"{folder}: its checkpoint cannot be gone on from: {error}") from None
        run = Run(trainer, config, schema, folder)
        try:
            run.go(before, state, verbose=bool(self.verbose), tensorboard=self.tensorboard, after_epoch=after_epoch)
        finally:
            if run.model is not None:
                self._state = run.state
                self._take(run.model)
        return self

    def _validate_params(self) -> None:
        super()._validate_params()
        sizes = list(self.hidden_sizes)
        if not all(isinstance(size, numbers.Integral) and not isinstance(size, bool) and size > 0 for size in sizes):
            raise InvalidParameterError(
                "The 'hidden_sizes' parameter of MADE should be whole numbers, at least 1, one for each layer. Got "
                f"{self.hidden_sizes!r} instead."
            )
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidParameterError(f"The 'device' parameter of MADE: {self.device!r}: {reason}") from None

    def score_samples(self, X: Any, *, given: Any = None) -> NDArray[np.floating[Any]]:
        """log p of each row, in nats (of a density, if columns are numeric), under the ensemble of masks.

        Arguments:
            X: the rows; NaN means "not observed", and the answer is the marginal likelihood of the others.
            given: names or numbers of the columns that are conditioned on; NaN there is an error.

        Returns:
            An array of shape (rows,), in the network's own precision.
        """
        codes = self._codes(self._table(X))
        named = [given] if isinstance(given, (str, numbers.Integral)) else given
        flags = None if given is None else np.isin(np.arange(codes.shape[1]), [self._place(c) for c in named])
        network = self.model_.network
        evidence, answers = Evidence.of(network, codes, flags), []
        for block in blocks(len(codes)):
            with counted_from(block.start):
                answers.append(log_prob(network, evidence[block], masks=self._masks(), segments=self._segments()))
        return torch.cat(answers).cpu().numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples`; of the rows with the target, if there is one, and ``y`` is given."""
        if y is not None and getattr(self, "target_", None) is not None and self._table(X).extra:  # X lacks it
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
            n_samples: how many; for each row, if ``given`` is rows.
            given: the values of some columns, ``{column: value}``; or rows, NaN where a value is to be drawn.
            temperature: below 1 nearer to the most likely values, above 1 farther from them.
            random_state: the seed, or torch's random numbers to go on with; that of the model unless told.
        """
        check_is_fitted(self, "model_")
        if isinstance(n_samples, bool) or not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"'n_samples' should be a whole number, at least 1, not {n_samples!r}.")
        known = np.full((1, len(self.model_.schema.fields)), np.nan)
        if isinstance(given, Mapping):
            for column, value in given.items():
                d = self._place(column)
                alone = Table.of([[value]])
                label = f"'given': column {d} ({self.model_.schema.names[d]!r})"
                known[0, d] = self.model_.schema.fields[d].encode(alone.columns[0], alone.dtypes[0], label)[0]
        elif given is not None:
            known = self._codes(self._table(given))
        known = known.repeat(n_samples, axis=0)
        return self._give(draw(self._ensemble(), known, self._generator(random_state), temperature))

    def impute(
        self,
        X: Any,
        *,
        n_draws: int = 1,
        strategy: Literal["sample", "mode", "mean"] = "sample",
        return_uncertainty: bool = False,
        random_state: RandomState = None,
    ) -> Any:
        """The rows, with their holes filled and everything else as it was.

        Arguments:
            X: the rows; NaN where a value is to be filled in.
            n_draws: how many times; more than one gives an array with a leading axis, or a list of frames.
            strategy: ``"sample"`` draws all holes of a row together; ``"mode"`` takes the most likely value of each
                given what is observed; ``"mean"`` the expected value, where columns are numeric.
            return_uncertainty: give back also how sure each filled entry is, a :class:`imputation.Uncertainty`.
            random_state: the seed, or torch's random numbers to go on with; that of the model unless told.
        """
        table = self._table(X)
        codes = self._codes(table)
        if strategy not in ("sample", "mode", "mean"):
            raise ValueError(f"'strategy' should be one of sample, mode, mean, not {strategy!r}.")
        if isinstance(n_draws, bool) or not isinstance(n_draws, numbers.Integral) or n_draws < 1:
            raise ValueError(f"'n_draws' should be a whole number, at least 1, not {n_draws!r}.")
        if strategy != "sample" and n_draws > 1:
            raise ValueError(f"'n_draws' is {n_draws}, but strategy {strategy!r} has only one answer.")
        schema, ensemble = self.model_.schema, self._ensemble()
        generator = self._generator(random_state) if strategy == "sample" else None
        several = fill(ensemble, codes, strategy, draws=n_draws, generator=generator)
        filled: Any = [schema.fill(table, each) for each in several]
        if n_draws == 1:
            filled = filled[0]
        elif isinstance(filled[0], (np.ndarray, torch.Tensor)):
            filled = np.stack(filled) if isinstance(filled[0], np.ndarray) else torch.stack(filled)
        if not return_uncertainty:
            return filled
        shown = slice(codes.shape[1] - table.extra)
        return filled, uncertainty(ensemble, codes, several if n_draws > 1 else several[0]).select(shown)

    def transform(self, X: Any) -> Any:
        """The rows, with the most likely value in each hole: ``impute(X, strategy="mode")``."""
        return self.impute(X, strategy="mode")

    @available_if(_has_discrete_column)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, target: Any = None) -> NDArray[np.floating[Any]]:
        """The probability of each value of a column, given what is observed of the others.

        Arguments:
            X: the rows; what they have in the column itself is not looked at, and a frame may lack it.
            target: the column, by name or number; by default the ``y`` that :meth:`fit` was given.

        Returns:
            An array of shape (rows, values), the values in the order of :meth:`classes`. They sum to one: values that
            training never saw have no column.
        """
        d, codes = self._asked(X, target)
        classes = self.classes(d)
        answer = np.empty((len(codes), len(classes)), dtype=self.dtype)
        for which, each in predictions(self._ensemble(), codes, d):
            answer[which.cpu().numpy()] = each.probabilities(len(classes)).cpu().numpy()
        return answer

    def predict(self, X: Any, target: Any = None) -> NDArray[Any]:
        """The most likely value of a column, given what is observed of the others; if it is numeric, the expected one.

        Arguments:
            X: the rows; what they have in the column itself is not looked at, and a frame may lack it.
            target: the column, by name or number; by default the ``y`` that :meth:`fit` was given.
        """
        d, codes = self._asked(X, target)
        field, found = self.model_.schema.fields[d], forecast(self._ensemble(), codes, d, ())
        if found.probabilities.shape[1]:
            return np.asarray(self.classes(d)[found.probabilities.argmax(axis=1)])
        return found.mean if field.temporal is None else field.decode(found.mean, "text")[0]

    def predict_quantiles(
        self, X: Any, target: Any = None, *, quantiles: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> NDArray[np.float64]:
        """The values that a column of numbers does not exceed with some probabilities, given what else is observed.

        Arguments:
            X: the rows; what they have in the column itself is not looked at, and a frame may lack it.
            target: the column, by name or number; by default the ``y`` that :meth:`fit` was given.
            quantiles: the probabilities.

        Returns:
            An array of shape (rows, quantiles); dates are seconds since the beginning of 1970.
        """
        if not all(0 <= each <= 1 for each in quantiles):
            raise ValueError(f"'quantiles' should be probabilities, from 0 to 1, not {quantiles!r}.")
        d, codes = self._asked(X, target)
        field = self.model_.schema.fields[d]
        if field.kind not in ("ordinal", "numeric"):
            raise QuestionError(f"column {field.name!r} has no order, and so no quantiles: ask for predict_proba.")
        found = forecast(self._ensemble(), codes, d, quantiles)
        if field.kind == "numeric":
            return found.quantiles
        below = found.probabilities.cumsum(axis=1)[:, :-1]
        places = [(below < level - 1e-9).sum(axis=1) for level in quantiles]
        return np.asarray(np.array(field.values, dtype=np.float64)[np.stack(places, axis=1)])

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
        """The rows as they were before some of their entries went wrong; :mod:`made.model.denoising` has the formulas.

        A wrong entry of a column with a list of values is any other of them; a wrong number is a draw from the column's
        marginal. Holes stay holes.

        Arguments:
            X: the noisy rows.
            error: the probability that an entry is wrong.
            column_error: the same for some columns, by name or number.
            strategy: ``"mode"`` for the most likely row; ``"mean"`` for what is expected of each entry by itself: a
                mean of numbers, otherwise the most likely value.
            return_uncertainty: give back also how sure that is, a :class:`denoising.Denoised`: the probability
                that each entry was wrong, and whether it is exact, a local optimum, or an estimate with its error.
            random_state: the seed, or torch's random numbers to go on with; that of the model unless told.
        """
        table = self._table(X)
        if strategy not in ("mode", "mean"):
            raise ValueError(f"'strategy' should be mode or mean, not {strategy!r}.")
        errors = np.full(len(self.model_.schema.fields), error, dtype=np.float64)
        for column, chance in (column_error or {}).items():
            errors[self._place(column)] = chance
        if not ((errors >= 0) & (errors < 1)).all():
            wrong = errors[~((errors >= 0) & (errors < 1))][0]
            raise QuestionError(f"'error' should be a probability, at least 0 and below 1, not {wrong:g}.")
        codes, expected = self._codes(table), strategy == "mean"
        clean = denoise(self._ensemble(), codes, errors, expected=expected, generator=self._generator(random_state))
        rows = put_back(self.model_.schema, table, clean)
        return (rows, clean) if return_uncertainty else rows

    def probability(self, condition: str, *, samples: int = SAMPLES, random_state: RandomState = None) -> Probability:
        """The probability of a condition, given another: ``"income > 50 and job = 'fixed' | age < 30"``.

        It is exact where columns are discrete or one of them has a range, and an estimate with its standard error
        otherwise: the answer says which. :mod:`made.ask.parser` says what can be asked.

        Arguments:
            condition: the condition; after a ``|``, what is given.
            samples: how many paths an estimate takes.
            random_state: the seed, or torch's random numbers to go on with; that of the model unless told.
        """
        check_is_fitted(self, "model_")
        return probability(
            self.model_.network,
            self.model_.schema.fields,
            condition,
            masks=self._masks(),
            segments=self._segments(),
            samples=samples,
            generator=self._generator(random_state),
        )

    def classes(self, target: Any = None) -> NDArray[Any]:
        """The values of a column that has a list of them, in order; by default of the ``y`` that fit was given."""
        field = self.model_.schema.fields[self._target(target)]
        if field.kind == "numeric":
            raise QuestionError(
                f"column {field.name!r} is numeric and has no list of values: name a 'target' that has one, or fill "
                "the column by impute(X, strategy='mean')."
            )
        return np.array(field.labels())

    @property
    def classes_(self) -> NDArray[np.generic]:
        """The values of the target, as scikit-learn's classifiers have them."""
        target = getattr(self, "target_", None)
        if target is None or self.model_.schema.fields[self._place(target)].kind == "numeric":
            raise AttributeError("'classes_' are the values of a target 'y' that has a list of them: fit with one.")
        return self.classes(target)

    def surprise(self, X: Any) -> Any:
        """What each entry adds to the oddness of its row: -log p(x_d | x_<d), the mean over masks; NaN for a hole.

        The sum over a row is a mean of NLLs, not the NLL of the ensemble, which is the lower of the two. A density may
        be above 1, so that a numeric column's surprise may be negative.
        """
        table = self._table(X)
        codes = self._codes(table)
        network, total = self.model_.network, np.zeros(codes.shape)
        every = network.connectivities.numbers(self._masks())
        with torch.no_grad():
            for block in blocks(len(codes)):
                evidence = Evidence.of(network, codes[block])
                for rows, masks, cut in ways(network, evidence, every, self._segments()):
                    part, index = evidence[rows], block.start + rows.cpu().numpy()
                    for connectivity, flags in (one for number in masks for one in passes(network, number, None, cut)):
                        factors = log_conditionals(network, part, connectivity).cpu().numpy() / len(masks)
                        total[index] -= factors if flags is None else np.where(flags, factors, 0)
        total = np.where(np.isnan(codes), np.nan, total).astype(self.dtype)
        return table.put_numbers(total, self.model_.schema.names)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model to a folder; a model that is there is replaced, other files in it are left alone.

        Whatever happens, the folder has the old model or the new one. A folder with files but without a model, or with
        files of a model that have changed since, is refused with a FileExistsError. A link to a folder is followed.
        """
        check_is_fitted(self, "model_")
        files = self.model_.files()
        if self._state is not None:
            name, content = checkpoint_content(self.model_.config, self._state)
            files[name] = content
        replace_folder(Path(folder), files, finished=self.model_.finished)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> MADE:
        """A model from its folder; one whose training is not finished has the best weights so far."""
        model, _ = open_model(folder, to_train=False)
        try:
            estimator = cls(**(model.config.parameters | {"device": "cpu"}))
            estimator._validate_params()
        except (TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json is not what it should be: {error}") from None
        estimator._template = estimator._state = None
        estimator.target_ = model.config.target
        names = [name for name in model.schema.names if name != estimator.target_]
        estimator.n_features_in_ = len(names)
        if model.schema.named:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return estimator._take(model)

    def _take(self, model: Model) -> MADE:
        """Become this model."""
        self.model_ = model
        scores = model.config.scores
        self.n_epochs_, self.best_epoch_ = len(model.history), scores.get("best_epoch")
        self.valid_nll_ = scores.get("valid_nll")
        return self

    def _seed(self) -> int:
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _generator(self, random_state: RandomState) -> torch.Generator:
        if isinstance(random_state, torch.Generator):
            return random_state
        chosen = self.random_state if random_state is None else random_state
        seed = int(check_random_state(chosen).randint(2**31 - 1))
        return torch.Generator(self.model_.network.c.device).manual_seed(seed)

    def _stored_parameters(self, seed: int, schema: Schema) -> dict[str, Any]:
        """The parameters as JSON has them."""
        parameters = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        names = {place: name for name, place in schema.dropped.items()}
        names |= dict(
            zip((d for d in range(len(schema.names) + len(names)) if d not in names), schema.names, strict=True)
        )
        for parameter in ("columns", "missing"):  # JSON has no numbers as keys
            told = getattr(self, parameter)
            if isinstance(told, Mapping):
                named = {key if isinstance(key, str) else names[key]: each for key, each in told.items()}
                parameters[parameter] = _plain(named)
        if self.direct == "auto":
            parameters["direct"] = has_direct(schema.columns.inputs, schema.columns.outputs)
        return parameters | {"random_state": seed}

    def _training_config(self, config: Config) -> TrainingConfig:
        names = set(TrainingConfig.__dataclass_fields__) - {"seed", "batch_size", "weight_decay", "segments"}
        rows, decay = config.data.rows, self.weight_decay
        return TrainingConfig(
            **{name: config.parameters[name] for name in names},
            seed=config.seed,
            batch_size=batch_size_for(rows) if self.batch_size == "auto" else int(self.batch_size),
            weight_decay=weight_decay_for(rows) if decay == "auto" else float(decay),
            segments=self._segments(config.connectivities()),
        )

    def _split(self, codes: NDArray[np.float64], seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Rows to train on, and rows to choose by, at least one, drawn by the seed."""
        if self.validation_fraction == 0 or (self.max_epochs == 0 and len(codes) < 2):
            return codes, None
        if len(codes) < 2:
            raise DataError(
                f"n_samples={len(codes)}, but at least 2 rows are needed, one of them to choose the epoch by; or use "
                f"{hint(validation_fraction=0)}."
            )
        count = min(max(1, round(self.validation_fraction * len(codes))), len(codes) - 1)
        order = np.argsort(np.random.Philox(key=seed, counter=[0, 0, 0, 4]).random_raw(len(codes)), kind="stable")
        return codes[np.sort(order[count:])], codes[np.sort(order[:count])]

    def _masks(self) -> int | None:
        family = self.model_.network.connectivities
        return self.evaluation_masks if family.masks is None and not family.single else None

    def _ensemble(self) -> Ensemble:
        return Ensemble(self.model_.network, self._masks(), self._segments())

    def _segments(self, family: Connectivities | None = None) -> int:
        """Into how many segments orderings are cut: those of the model, unless told."""
        family = self.model_.network.connectivities if family is None else family
        if self.segments == "auto":
            return family.columns if family.any_order and family.columns <= FEW else 1
        return min(int(self.segments), family.columns)

    def _table(self, X: Any, lacks: int | None = None) -> Table:
        check_is_fitted(self, "model_")
        schema = self.model_.schema
        table, target = schema.table(X), getattr(self, "target_", None)
        name = None if lacks is None else schema.names[lacks]
        if name is not None and table.names is not None and name not in table.names:
            table = table.with_empty_column(name)
        elif target is None or table.names is None or target not in table.names:
            try:
                _check_feature_names(self, table.native(X), reset=False)
            except ValueError as error:
                raise DataError(str(error)) from None
        if target is not None:
            without = len(table.columns) == len(schema.fields) - 1 if table.names is None else target not in table.names
            if without:
                table = table.with_empty_column(target)
            elif table.names is None and len(table.columns) != len(schema.fields):
                raise DataError(
                    f"X has {len(table.columns)} features, but MADE is expecting {len(schema.fields) - 1} features as "
                    "input."
                )
        return table

    def _asked(self, X: Any, target: Any) -> tuple[int, NDArray[np.float64]]:
        """The number of a column, and rows as codes, whatever they have there."""
        d = self._target(target)
        return d, self._codes(self._table(X, lacks=d), ignore=d)

    def _target(self, target: Any) -> int:
        """The number of the column to predict."""
        check_is_fitted(self, "model_")
        if target is None and getattr(self, "target_", None) is None:
            names = self.model_.schema.names
            raise QuestionError(
                f"there is no target: name a column, such as target={names[-1]!r}, or give 'y' to fit. The columns are "
                f"{', '.join(names[:20])}{', ...' if len(names) > 20 else ''}."
            )
        return self._place(self.target_ if target is None else target)

    def _codes(self, table: Table, ignore: int | None = None) -> NDArray[np.float64]:
        return self.model_.schema.encode(table, ignore=ignore)

    def _place(self, column: Any) -> int:
        names = self.model_.schema.names
        if isinstance(column, str):
            if column not in names:
                raise QuestionError(f"there is no column {column!r}: the columns are {', '.join(names[:20])}.")
            return names.index(column)
        whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        if not whole or not -len(names) <= column < len(names):
            raise QuestionError(f"a column is a name or a number from 0 to {len(names) - 1}, not {column!r}.")
        return int(column) % len(names)

    def _give(self, codes: NDArray[np.float64]) -> Any:
        """Codes as a table of the kind that the model was fitted on."""
        rows = self.model_.schema.decode(codes, self._template)
        kind = self.model_.config.container
        if self._template is None and kind in ("pandas", "polars") and find_spec(kind) is not None:
            return rows.to_pandas() if kind == "pandas" else import_module("polars").from_arrow(rows)
        return torch.from_numpy(rows) if self._template is None and kind == "torch" else rows


def batch_size_for(rows: int) -> int:
    """A batch for so many rows: small ones where there are few, so that an epoch is some thirty updates at least."""
    return int(np.clip(rows // 30, 32, 500))


def weight_decay_for(rows: int) -> float:
    """Weight decay for so many rows: the fewer, the more.

    Example:
        >>> [weight_decay_for(rows) for rows in (100, 1000, 30_000)]
        [0.3, 0.3, 0.01]
    """
    return min(0.3, 300 / rows)


def _container(table: Table) -> str:
    return table.given.implementation.value if table.container == "frame" else table.container


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)
