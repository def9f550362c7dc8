"""Scores that are not log-probabilities are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import BernoulliRBM

from made.baselines import LogProb
from made.baselines.scikit import Scikit
from made.compare.evaluate import compare
from systems import ROWS, Coins, Says, said


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (Says([-0.1, -0.1, -0.1, -0.1]), "sum to 3.62, above 1"),
        (Says([5, 5, 5, 900]), "above 1. Is it a density over real numbers?"),
        (Says([-0.1, -0.1, -0.1, -0.1], "bound"), "sum to 3.62, above 1"),
        (Says([-3, -3, -3, np.inf], "estimate", 0.1), "log p of test row 3 is inf"),
        (Says([-3, -3, -3]), "shape"),
        (Says([-3, -3, -3, -3], "guess"), "guess"),
        (Says([-3, -3, -3, -3], "exact", 0.1), "standard error"),
        (Says([-3, -3, -3, -3], "estimate", float("nan")), "standard error"),
    ],
)
def test_values_that_are_not_log_probabilities_are_refused(system, reason) -> None:
    (result,) = compare({"it": system}, ROWS, ROWS, ROWS[:4])
    assert reason in result.error
    assert np.isnan(result.nll)


def test_an_estimate_may_be_above_the_truth() -> None:
    assert said([-0.1, -0.1, -0.1, -0.1], "estimate", 0.1).nll == pytest.approx(0.1)


def test_a_log_prob_needs_a_kind() -> None:
    class Bare(Coins):
        def log_prob(self, rows):
            return np.full(len(rows), -9.0)

    (result,) = compare({"bare": Bare()}, ROWS, ROWS, ROWS)
    assert "LogProb" in result.error


def test_of_few_columns_all_states_are_added_up() -> None:
    class Half(Coins):
        def log_prob(self, rows):
            return LogProb(super().log_prob(rows).values - np.log(2))

    few = ROWS[:, :5]
    coins, half = compare({"coins": Coins(), "half": Half()}, few, few, few)
    assert coins.error is None
    assert "all 32 possible rows sum to 0.5, but should sum to 1" in half.error


class Disguised:
    """A density of real numbers that shows neither by its name nor by its sum over the rows of a test."""

    def fit(self, X):
        self.mixture_ = GaussianMixture(reg_covar=1e-2, random_state=0).fit(X)
        return self

    def score_samples(self, X):
        return self.mixture_.score_samples(X)


def test_pseudo_likelihoods_and_densities_are_refused() -> None:
    systems = {
        "coins": Coins(),
        "density": Scikit(GaussianMixture(reg_covar=1e-2)),
        "disguised": Scikit(Disguised()),
        "pseudo": Scikit(BernoulliRBM(n_components=4, n_iter=2, random_state=0)),
    }
    coins, density, disguised, pseudo = compare(systems, ROWS, ROWS, ROWS)
    assert coins.error is None
    assert "density over real numbers" in density.error
    for refused in (disguised, pseudo):
        assert refused.error.startswith("in a trial on 8 of the columns: these are not probabilities of rows")
        assert "those of all 256 possible rows sum to" in refused.error
    # Not for nothing: on all columns its numbers look right, and better than they could be.
    scores = Scikit(Disguised()).fit(ROWS, ROWS).log_prob(ROWS).values
    assert np.exp(scores).sum() < 1
    assert -scores.mean() < coins.nll
