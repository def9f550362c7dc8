"""Base class of the estimators for a single task: the `MADE` that they fit, or a fitted one that they use."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import _num_features

from made.errors import ParameterError, UninformativeError
from made.estimator.made import MADE
from made.model.model import Model
from made.tables.schema import Kinds


class Face(BaseEstimator):  # type: ignore[misc]
    """An estimator for a single task, delegated to a :class:`made.MADE`.

    Its parameter ``model`` is a :class:`made.MADE` to be fitted, or a fitted one or a :class:`made.Model`. A fitted
    model is used as it is, by clones too: ``fit`` does not train it, and is not needed. Its parameter ``random_state``
    is the seed of a model that has none.
    """

    model: MADE | Model | None
    random_state: int | np.random.RandomState | None
    made_: MADE
    fills: ClassVar[bool] = False  # whether it returns the columns of X, and so may not leave one out that has values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.input_tags.string = True
        return cast(Tags, tags)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "made_") or self.is_prefit

    def __sklearn_clone__(self) -> Self:
        twin = cast(Self, super().__sklearn_clone__())
        if self.is_prefit:
            twin.model = copy.copy(self.model)
        return twin

    def set_params(self, **params: Any) -> Self:
        """Set parameters; parameters of the model, such as ``model__max_epochs``, even if ``model`` is the default."""
        if self.model is None and "model" not in params and any(name.startswith("model__") for name in params):
            self.model = MADE()
        return cast(Self, super().set_params(**params))

    @property
    def is_prefit(self) -> bool:
        """Whether the parameter ``model`` is fitted."""
        return isinstance(self.model, Model) or (isinstance(self.model, MADE) and hasattr(self.model, "model_"))

    @property
    def made(self) -> MADE:
        """The fitted :class:`made.MADE` that answers."""
        if hasattr(self, "made_"):
            return self.made_
        if not self.is_prefit:
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet: call 'fit', or give it a fitted 'model'.")
        return MADE.of(self.model) if isinstance(self.model, Model) else cast(MADE, self.model)

    @property
    def n_features_in_(self) -> int:
        """The number of columns that the model was fitted on, without the target."""
        return int(self._attribute("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Their names, if they have any."""
        return cast(NDArray[np.object_], self._attribute("feature_names_in_"))

    def _attribute(self, name: str) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__!r} object is not fitted and has no attribute {name!r}")
        return getattr(self.made, name)

    def _fit(self, X: Any, y: Any = None, kind: Any = None, sample_weight: Any = None) -> None:
        """Fit a model of the rows, and of the target ``y``, a column of this kind; a fitted model is taken as it is."""
        if self.is_prefit:
            self.__dict__.pop("made_", None)
            self.made_ = self.made
            return
        if not (self.model is None or isinstance(self.model, MADE)):
            raise ParameterError(
                f"'model' should be a made.MADE, a made.Model or None, not {self.model!r}.", argument="model"
            )
        made = MADE() if self.model is None else clone(self.model)
        if made.random_state is None:
            made.random_state = self.random_state
        if y is not None:
            with suppress(TypeError):  # rows without columns, which are refused below
                made.columns = _with_target(made.columns, _num_features(X), kind)
        try:
            made.fit(X, y, sample_weight)
        except UninformativeError as error:
            if y is None and not self._may_change(error.kinds):
                raise
            made.columns = _with_kinds(made.columns, self._kinds_of_useless(error.kinds), X)
            made.fit(X, y, sample_weight)
        self.made_ = made

    def _may_change(self, columns: Collection[str]) -> bool:
        """Whether these columns may be left out, or be of another kind."""
        return True

    def _kinds_of_useless(self, kinds: Mapping[str, str | None]) -> dict[str, str]:
        """The kinds of columns that say nothing, instead of an error: a fold of a cross-validation may have some."""
        empty = [name for name, kind in kinds.items() if kind is None]
        keys = {name: kind for name, kind in kinds.items() if kind is not None}
        if empty:
            warnings.warn(f"columns without a value are left out: {', '.join(map(repr, empty))}.", stacklevel=4)
        if keys and not self.fills:
            warnings.warn(
                f"columns that look like identifiers are left out: {', '.join(map(repr, keys))}. To use them, set "
                f"their kinds: MADE(columns={keys!r}).",
                stacklevel=4,
            )
        return dict.fromkeys(kinds, "drop") | (keys if self.fills else {})


def _with_kinds(columns: Kinds, kinds: Mapping[str, str], X: Any) -> Kinds:
    """The kinds of the columns, with others for some of them."""
    if isinstance(columns, str):
        columns = {} if columns == "auto" else [columns] * _num_features(X)
    changed: dict[str | int, Any] = dict(columns if isinstance(columns, Mapping) else enumerate(columns))
    changed.update(kinds)
    return changed


def _with_target(columns: Kinds, width: int, kind: Any) -> Kinds:
    """The kinds of the columns of X and of the target."""
    if isinstance(columns, Mapping):
        return {width: kind, **columns}
    if isinstance(columns, str):
        return {width: kind} if columns == "auto" else [*[columns] * width, kind]
    return [*columns, kind]
