"""The scikit-learn estimators over :class:`made.model.Model`."""

from __future__ import annotations

from made.estimator.fitted import Fitted, model_of
from made.estimator.imputer import MADEImputer
from made.estimator.made import MADE
from made.estimator.outliers import MADEOutlierDetector
from made.estimator.supervised import MADEClassifier, MADERegressor

__all__ = ["MADE", "Fitted", "MADEClassifier", "MADEImputer", "MADEOutlierDetector", "MADERegressor", "model_of"]
