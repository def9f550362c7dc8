"""Logistic autoregression."""

from __future__ import annotations

import numpy as np
import pytest

from made.baselines.made import FVSBN
from small_baselines import COLUMNS, TRAIN, VALID, WORLDS


def test_fvsbn_selects_parameters_by_validation_rows() -> None:
    none, much = {"learning_rate": 0.05}, {"learning_rate": 1e-6}
    better, worse, both = (
        FVSBN(tries=tries, max_epochs=20).fit(TRAIN, VALID) for tries in ([none], [much], [much, none])
    )
    assert np.array_equal(np.asarray(both.log_prob(WORLDS)), np.asarray(better.log_prob(WORLDS)))
    assert better.log_prob(VALID).mean() > worse.log_prob(VALID).mean()


def test_parameters_of_fvsbn_override_those_of_every_try() -> None:
    none, much = {"learning_rate": 0.05}, {"learning_rate": 1e-6}
    worse = FVSBN(tries=[much], max_epochs=20).fit(TRAIN, VALID)
    told = FVSBN(tries=[much, none], max_epochs=20, learning_rate=1e-6).fit(TRAIN, VALID)
    assert np.array_equal(np.asarray(told.log_prob(WORLDS)), np.asarray(worse.log_prob(WORLDS)))
    assert told.size == COLUMNS * (COLUMNS - 1) // 2 + COLUMNS


def test_fvsbn_needs_at_least_one_try() -> None:
    with pytest.raises(ValueError, match="'tries' should have at least one"):
        FVSBN(tries=[])
