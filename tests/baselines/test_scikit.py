"""Estimators of scikit-learn as baselines."""

from __future__ import annotations

import numpy as np
import pytest

from made.baselines.scikit import Scikit
from made.errors import QuestionError
from small_baselines import COLUMNS, TRAIN, VALID, WORLDS


class Counts:
    """An estimator of scikit-learn's kind: frequencies, one more of each."""

    def fit(self, X):
        self.counts_ = np.bincount(X @ (1 << np.arange(COLUMNS)[::-1]), minlength=len(WORLDS)) + 1
        return self

    def score_samples(self, X):
        return np.log(self.counts_ / self.counts_.sum())[X @ (1 << np.arange(COLUMNS)[::-1])]


def test_anything_with_score_samples_can_be_entered() -> None:
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import KernelDensity
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = Scikit(Counts()).fit(TRAIN, VALID)
    assert np.exp(np.asarray(model.log_prob(WORLDS))).sum() == pytest.approx(1)
    assert (model.size, model.continuous) == (len(WORLDS), False)
    with pytest.raises(QuestionError, match="Counts cannot sample"):
        model.sample(3)
    with pytest.raises(QuestionError, match="object has no fit"):
        Scikit(object())
    density = Scikit(KernelDensity()).fit(TRAIN, VALID)
    assert density.continuous
    assert density.sample(4).shape == (4, COLUMNS)
    assert Scikit(make_pipeline(StandardScaler(), KernelDensity())).continuous
    assert Scikit(Counts(), continuous=True).continuous
    assert not Scikit(KernelDensity(), continuous=False).continuous
    mixture = Scikit(GaussianMixture(2, random_state=0)).fit(TRAIN, VALID)
    assert np.array_equal(mixture.sample(50, seed=1), mixture.sample(50, seed=1))
    assert not np.array_equal(mixture.sample(50, seed=1), mixture.sample(50, seed=2))
