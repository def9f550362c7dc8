"""Restricted Boltzmann machines."""

from __future__ import annotations

from made.baselines import bipartite
from made.baselines.bipartite import log_partition
from small_baselines import SMALL, TRAIN, VALID, WORLDS


def test_an_estimated_rbm_says_so(monkeypatch) -> None:
    model = SMALL["rbm"]()
    exact = model.fit(TRAIN, VALID).log_prob(WORLDS)
    monkeypatch.setattr(bipartite, "EXACT", 0)
    model.log_partition_ = log_partition(model.machine_, model.base_, chains=100, temperatures=300)
    answer = model.log_prob(WORLDS)
    assert answer.kind == "estimate"
    assert 0 < answer.standard_error < 0.1
    assert abs(answer.mean() - exact.mean()) < 3 * answer.standard_error
