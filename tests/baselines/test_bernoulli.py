"""Mixtures of Bernoullis."""

from __future__ import annotations

import math

import numpy as np
import pytest

from made.baselines.bernoulli import BernoulliMixture
from small_baselines import TRAIN, VALID


def test_the_mixture_selects_components_by_validation_rows() -> None:
    model = BernoulliMixture((1, 4), seed=0).fit(TRAIN, VALID)
    assert len(model.prior_) == 4
    assert model.log_prob(VALID).mean() > BernoulliMixture(1).fit(TRAIN, VALID).log_prob(VALID).mean()


def test_a_column_that_was_always_zero_may_be_one() -> None:
    """One of 30 + 2 rows, by the rule of succession."""
    rows = np.zeros((30, 3), dtype=np.uint8)
    assert BernoulliMixture(1).fit(rows, rows).log_prob([[1, 1, 1]]).values == pytest.approx([-3 * math.log(32)])
