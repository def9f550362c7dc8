"""`MADE`, the scikit-learn estimator over :class:`made.model.Model`: its parameters, fitting, saving and loading."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags, check_random_state

from made.errors import ModelError, ParameterError
from made.estimator.names import KeptNamesMixin, check_names, without_columns
from made.estimator.queries import Queries
from made.io.files import Files, are_paths
from made.model.encode import AnyTable
from made.model.model import Model
from made.model.prepare import check_parameters, prepare
from made.model.update import EPOCHS, updated
from made.parameters import PARAMETERS
from made.tables.schema import Kinds, dropped
from made.tables.stream import TableStream
from made.tables.table import Table, with_target
from made.training.state import Epoch
from made.training.weights import checked_weights
from made.training.workers import ALONE, Workers


class MADE(Queries, KeptNamesMixin, TransformerMixin, DensityMixin, BaseEstimator):  # type: ignore[misc]
    r"""A distribution over the rows of a table, modelled by a masked autoencoder.

    Answers are probabilities under the fitted model, or densities where columns are numeric. A missing value (NaN,
    None, null, an empty text) is not observed, in training too. With unlimited masks, the default, any columns can be
    given, asked for, or left out. The ``random_state`` of a query is a seed, or a generator of torch to continue; by
    default that of the estimator.

    Arguments:
        hidden_sizes: number of units :math:`K^l` of each hidden layer. ``"auto"``: two layers of 256; in an any-order
            model of more than 64 columns that are all binary, with 8 rows for each, of 512, and of 1,024 from 2**21
            entries on.
        masks: number of masks R that updates cycle through and queries average, or ``"unlimited"``.
        resample: what changes from mask to mask: ``"both"``, ``"ordering"``, ``"degrees"`` or ``"neither"``.
        ordering: ordering :math:`m^0` of the first mask, ``"natural"`` or ``"random"``; or ``"selected"``: half of the
            masks for whole rows have orderings that a small network finds likely (:mod:`made.training.orders`).
            ``"auto"``: natural if an any-order model has one mask for whole rows, or if all columns are binary and
            neighbours are more closely associated than others, as pixels are; otherwise selected, if there are masks
            for whole rows and a segment for each column; otherwise random.
        activation: activation g of hidden units, such as ``"relu"`` or ``"softplus"``.
        direct: direct connections A; ``"auto"``: if they have up to 2**25 weights, as with 5,792 binary columns.
        conditioning, residual: connectivity conditioning weights U; residual connections between layers of equal size.
        signed: code binary inputs as -1 and +1, so that 0, a masked or missing input, is neither (the paper: 0 and 1).
            ``"auto"``: in an any-order model, if all columns are binary, with 8 rows for each, 1 is coded as 1, and 0
            so that the mean of the input is 0; in all others as -1 and +1.
        standardized: standardize binary inputs; better for any-order models if ones are rare. Overrides ``signed``.
        dropout, input_dropout: dropout probability of hidden and of input units; ``"auto"``: 0; where layers
            are wider by ``"auto"`` 0.1, or 0.2 with one mask for whole rows; 0.3 for few rows of many columns.
        bias: initial output biases: ``"zero"``, or ``"independent"`` for those of independent columns.
        initialization: ``"glorot"``, ``"orthogonal"``, or ``"zero-output"``, which is glorot with V = 0.
        learning_rate: ``None`` for that of the optimizer; ``"auto"`` is the same, but 0.001 to 0.004 for AdamW: more
            for many rows, few updates, or more than 64 columns.
        optimizer, schedule, epsilon, momentum, adaptive_decay, clip, average, mask_for, questions,
            incomplete_rows, nearly_complete, pairs, number_weight: see :class:`made.training.config.TrainingConfig`.
        whole_rows: share of an any-order model's updates that predict whole rows in one pass under one of the
            ``whole_row_masks``, which then also score rows. ``"auto"``: a half of an any-order model's.
        whole_row_masks: ``"auto"``: as many as ``evaluation_masks``; with more than 128 columns, at most as many as
            there are rows for each column; one for more than 64 binary columns (32, if neighbours are associated) with
            at least 100 rows (50) for each.
        weight_decay: ``"auto"``: 0.03 for each weight of the direct connections per row, at most 1; with more than 128
            columns 300 divided by the number of rows, at most 0.3.
        segments: number of segments of an ordering, each evaluated in a pass in which every unit sees all columns
            before it. ``"auto"``: one for each column of an any-order model with up to 128 columns, otherwise 1.
        batch_size: rows in an update; ``"auto"``: a fortieth of the rows, from 32 to 500.
        exclusive: groups of binary columns of which at most one is 1, as in one-hot codes. Each is modelled by a
            softmax (:mod:`made.columns.exclusive`); queries and tables have the single columns all the same.
            ``"auto"``: those that are found among neighbours in the training rows, if all columns are binary and the
            model is any-order; ``"none"``.
        calibrate: fit to the validation rows how far the distribution of each column strays from its mean, and how wide
            that of a number is, given how many other columns are known (:mod:`made.network.calibration`); and how much
            each mask for whole rows weighs (:mod:`made.training.mixing`). For any-order models.
        max_epochs: maximum number of passes over the rows, or over 4,194,304 of a longer table; 0 gives an untrained
            model, which answers every query. ``"auto"``: 220 for up to 8,000 rows (up to 600, with more than 64
            columns), then fewer, though with more updates: 37 for 300,000. Ten times as many rows have 3.2 times as
            many updates.
        max_seconds: maximum training time in seconds, checked after each epoch; the schedule ends with it.
        patience: epochs without progress on validation rows before early stopping.
        validation_fraction: share of rows for validation, up to 65,536 of them, if ``fit`` gets no ``X_valid``; 0 for
            none.
        validation_masks: maximum number of masks to average after each epoch.
        evaluation_masks: number of masks that a query averages if masks are unlimited; samples are from the same masks,
            or, where validation rows are likelier so, drawn a column at a time.
        columns: kinds of the columns: ``"auto"``, or for each column, or for some by name, ``"binary"``,
            ``"categorical"``, ``"ordinal"``, ``"numeric"``, ``"real"``, ``"drop"``, a list of values in order, or a
            :class:`made.Column`.
        missing: what a missing value is: ``"unobserved"``, or a ``"category"`` of its own, which samples have, too; for
            all columns, or for some by name.
        unseen: values that training never saw: ``"other"`` gives them a small probability and warns (all such texts are
            one more category, which is never sampled); ``"error"`` refuses them.
        extrapolate: let the predicted mean of a number (:meth:`predict`, :meth:`impute`) lie beyond all in training.
        dtype, device: precision of the network, ``"float32"`` or ``"float64"``, and the device of torch.
        tensorboard, random_state: folder for the curves of TensorBoard; seed of all random numbers.
        verbose: 1 for a progress bar, on standard error if that is a terminal.

    Attributes:
        model_: the fitted :class:`made.model.Model`.
        n_features_in_, feature_names_in_: as in scikit-learn, without the target.
        target_: name of the column that ``y`` has become; ``None`` without one.
        classes_: values of the target, if it has a list of them.
        n_epochs_, best_epoch_, valid_nll_: length and result of training; the last is of the ensemble.
        observed_: after ``fit``, of each column the share of missing values, and the range of numbers.

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
        hidden_sizes: Sequence[int] | Literal["auto"] = "auto",
        masks: int | Literal["unlimited"] = "unlimited",
        resample: str = "both",
        ordering: str = "auto",
        activation: str = "relu",
        direct: bool | Literal["auto"] = "auto",
        conditioning: bool = False,
        residual: bool = True,
        signed: bool | Literal["auto"] = "auto",
        standardized: bool = False,
        dropout: float | Literal["auto"] = "auto",
        input_dropout: float = 0.0,
        bias: str = "independent",
        initialization: str = "zero-output",
        optimizer: str = "adamw",
        learning_rate: float | Literal["auto"] | None = "auto",
        schedule: str = "cosine",
        epsilon: float | None = None,
        momentum: float | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        adaptive_decay: bool = True,
        clip: float | None = 1.0,
        average: float | None = 0.995,
        batch_size: int | Literal["auto"] = "auto",
        max_epochs: int | Literal["auto"] = "auto",
        max_seconds: float | None = None,
        patience: int = 60,
        validation_fraction: float = 0.1,
        mask_for: str = "update",
        questions: float = 0.5,
        segments: int | Literal["auto"] = "auto",
        whole_rows: float | Literal["auto"] = "auto",
        whole_row_masks: int | Literal["auto"] = "auto",
        incomplete_rows: float = 0.5,
        nearly_complete: float = 0.5,
        pairs: float = 1.0,
        number_weight: float = 0.5,
        exclusive: Literal["auto", "none"] = "auto",
        calibrate: bool = True,
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
        sample_weight: Any = None,
        *,
        X_valid: Any = None,
        resume_from: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        after_epoch: Callable[[Epoch], None] | None = None,
        workers: Workers = ALONE,
    ) -> MADE:
        """Learn the distribution of the rows.

        Arguments:
            X: the rows: an array, a sparse matrix, or a data frame; or files, which are read piece by piece and may
                be larger than memory: a path, a folder, a glob such as ``"data/*.parquet"``, or a list of these.
            y: one more column, the target: what :meth:`predict` and :meth:`predict_proba` predict. Rows to query about
                may have it or not.
            sample_weight: how often each row counts: a weight of 2 is the row twice. Weights that are not all whole
                numbers are relative: they are scaled to a mean of 1. Rows of ``X_valid`` count once.
            X_valid: validation rows, like X. Default: a random ``validation_fraction`` of X.
            resume_from: a folder for checkpoints, and for the model at the end. A run that it holds is resumed exactly,
                with the same rows and parameters; ``max_epochs`` and ``max_seconds`` may be greater than before, unless
                early stopping ended it. A finished model is loaded.
            overwrite: start anew, and replace what the folder holds.
            after_epoch: called after each epoch; an exception that it raises ends training.
            workers: the processes that train together (:func:`made.distributed.joined`), each of which calls ``fit``
                with the same rows. Only the first one gets a fitted model, and writes to ``resume_from``; the others
                need a folder with the same files to resume from.
        """
        self.check_parameters()
        without = dropped(self.columns)
        table = _table(X, without)
        if isinstance(table, TableStream) and (y is not None or sample_weight is not None):
            raise ParameterError(
                "'y' and 'sample_weight' are for tables in memory: read the files first, or leave them out.",
                argument="y" if y is not None else "sample_weight",
            )
        if y is not None:
            table = Table.of(with_target(X, y), without)
        head = table.head
        left_out: list[str | int] = [*head.dropped, *head.dropped.values()]
        valid_table = None if X_valid is None else _table(X_valid, left_out, len(head.columns))
        rows = X if isinstance(table, Table) else None
        check_names(self, head.native(rows) if y is None else without_columns(X, head.dropped), reset=True)
        self.n_features_in_ = len(head.columns) - (y is not None)
        seed = self.random_state
        if not (seed is None or isinstance(seed, numbers.Integral)):
            seed = check_random_state(seed).randint(2**31 - 1)
        seed = None if seed is None else int(seed)
        target = None if y is None else head.all_names()[-1]
        folder, parameters = None if resume_from is None else Path(resume_from), self.get_params(deep=False)
        weights = None
        if isinstance(table, Table) and (weights := checked_weights(sample_weight, table.rows)) is not None:
            table, weights = table.repeated(weights > 0), weights[weights > 0]
        options: Any = {"seed": seed, "target": target, "folder": folder, "overwrite": overwrite, "weights": weights}
        with workers.together():
            run = prepare(table, valid_table, parameters, **options, workers=workers, verbose=bool(self.verbose))
        same = {name: each for name, each in run.config.parameters.items() if name not in ("device", "verbose")}
        workers.check_same({"digest of the rows": run.config.data.sha256, **same})
        self.observed_ = run.dataset.described
        try:
            run.go(verbose=bool(self.verbose), tensorboard=self.tensorboard, after_epoch=after_epoch)
        finally:
            if run.model is not None:
                self._take(run.model)
        return self

    def update(self, X: Any, y: Any = None, sample_weight: Any = None, *, epochs: int = EPOCHS) -> MADE:
        """Train the fitted model on new rows of the same columns, beside rows that it draws itself.

        The drawn rows stand for those that it was fitted on, which are not needed: each part has the weight of its
        number of rows. Some of what was learned is still forgotten; docs/models.md has measurements. The columns stay
        as they are: a value that was not in the first training rows is one of the others (``unseen="other"``).

        Arguments:
            X, y, sample_weight: the new rows, as in :meth:`fit`.
            epochs: the number of passes over new and drawn rows.
        """
        model = self._model()
        if y is not None and self.target_ is not None and self._table(X).extra:
            X = with_target(X, y)
        codes = model.codes(self._table(X))
        weights = checked_weights(sample_weight, len(codes))
        if weights is not None:
            codes, weights = codes[weights > 0], weights[weights > 0]
        return self._take(updated(self.model_, codes, weights, epochs=epochs))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MADE:
        """:meth:`fit` the first rows, and :meth:`update` the model with all others."""
        return (self.update if hasattr(self, "model_") else self.fit)(X, y, sample_weight)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        try:
            check_random_state(self.random_state)
        except ValueError as wrong:
            raise ParameterError(f"'random_state' is {self.random_state!r}: {wrong}", argument="random_state") from None
        check_parameters(self.get_params(deep=False))

    def transform(self, X: Any) -> Any:
        """The rows with the most likely value for each missing one, :meth:`impute` by mode."""
        return self.impute(X, strategy="mode")

    @property
    def _left_out(self) -> Collection[int]:
        return self.model_.config.schema.dropped.values()

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model to a folder; see :meth:`made.model.Model.save`."""
        self._model().save(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> MADE:
        """Read a model from its folder; one whose training is not finished has the best weights so far."""
        model = Model.load(folder)
        try:
            return cls.of(model)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{folder}: config.json is not valid: {error}") from None

    @classmethod
    def of(cls, model: Model) -> MADE:
        """The estimator of a fitted model, with its parameters."""
        estimator = cls(**(model.config.parameters | {"device": "cpu"}))
        estimator.check_parameters()
        names = [name for name in model.schema.names if name != model.default_target]
        estimator.n_features_in_ = len(names)
        if model.schema.named:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return estimator._take(model)

    def _take(self, model: Model) -> MADE:
        self.model_, self.target_ = model, model.default_target
        self.n_epochs_ = len(model.history)
        self.best_epoch_, self.valid_nll_ = (model.config.scores.get(name) for name in ("best_epoch", "valid_nll"))
        return self


def _table(X: Any, without: Collection[str | int], kept: int | None = None) -> AnyTable:
    """Rows as a table, or as a stream of tables if they are in files."""
    if are_paths(X):
        X = Files.of(X)
        if X.ignored:
            warnings.warn(f"files that are not tables are ignored: {', '.join(X.ignored[:5])}.", stacklevel=3)
    return TableStream(X, without, kept) if isinstance(X, Files) else Table.of(X, without, kept)
