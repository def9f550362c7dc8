"""The model behind what a caller has: a model, a fitted estimator, or the folder of a model."""

from __future__ import annotations

import os
from typing import TypeAlias

from sklearn.utils.validation import check_is_fitted

from made.estimator.face import Face
from made.estimator.made import MADE
from made.model.model import Model

__all__ = ["Fitted", "model_of"]

Fitted: TypeAlias = Model | MADE | Face | str | os.PathLike[str]


def model_of(fitted: Fitted) -> Model:
    """The model of a fitted estimator or of a folder; a model is returned as it is."""
    if isinstance(fitted, Model):
        return fitted
    if isinstance(fitted, (MADE, Face)):
        check_is_fitted(fitted)
        return fitted.made.model_ if isinstance(fitted, Face) else fitted.model_
    return Model.load(fitted)
