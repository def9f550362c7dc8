"""Estimators of scikit-learn as baselines."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


def test_any_estimator_with_score_samples_can_be_compared() -> None:
    model = Scikit(Counts()).fit(TRAIN, VALID)
    assert np.exp(np.asarray(model.log_prob(WORLDS))).sum() == pytest.approx(1)
    assert (model.size, model.continuous) == (len(WORLDS), False)


def test_missing_methods_of_an_estimator_are_named() -> None:
    with pytest.raises(QuestionError, match="Counts cannot sample"):
        Scikit(Counts()).fit(TRAIN, VALID).sample(3)
    with pytest.raises(QuestionError, match="object has no fit"):
        Scikit(object())


def test_densities_are_recognized_or_declared() -> None:
    assert Scikit(KernelDensity()).continuous
    assert Scikit(make_pipeline(StandardScaler(), KernelDensity())).continuous
    assert Scikit(Counts(), continuous=True).continuous
    assert not Scikit(KernelDensity(), continuous=False).continuous


def test_samples_of_an_estimator_depend_on_the_seed() -> None:
    assert Scikit(KernelDensity()).fit(TRAIN, VALID).sample(4).shape == (4, COLUMNS)
    mixture = Scikit(GaussianMixture(2, random_state=0)).fit(TRAIN, VALID)
    assert np.array_equal(mixture.sample(50, seed=1), mixture.sample(50, seed=1))
    assert not np.array_equal(mixture.sample(50, seed=1), mixture.sample(50, seed=2))
