"""The surprise of an entry is the mean over masks of its factor's NLL."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from made import Connectivities, Ensemble, Network, log_prob
from made.queries.surprise import surprise
from oracle import Dense, networks, randomize, worlds

NAN = float("nan")


@given(networks())
def test_it_is_the_mean_over_masks_of_the_factors_of_the_oracle(network) -> None:
    rows, masks = worlds(network.columns), [0, 1, 2]
    expected = [-Dense(network, network.connectivities[number]).log_factors(rows).detach() for number in masks]
    found = surprise(Ensemble(network, masks), rows.numpy())
    np.testing.assert_allclose(found, torch.stack(expected).mean(dim=0).numpy(), rtol=0, atol=1e-9)


@given(networks("unlimited"), st.integers(1, 5))
def test_the_sum_over_a_row_is_the_mean_nll_of_its_observed_entries(network, segments) -> None:
    rows = worlds(network.columns)
    rows[::2, 0] = NAN
    each = [log_prob(Ensemble(network, [number], segments), rows) for number in (0, 1, 5)]
    found = surprise(Ensemble(network, [0, 1, 5], segments), rows.numpy())
    assert np.array_equal(np.isnan(found), np.isnan(rows.numpy()))
    np.testing.assert_allclose(np.nansum(found, axis=1), -torch.stack(each).mean(dim=0).numpy(), rtol=0, atol=1e-8)


def test_blocks_do_not_change_it(monkeypatch) -> None:
    network = randomize(Network(4, Connectivities(4, (8, 8), masks=None)))
    rows = worlds(network.columns).numpy()
    whole = surprise(Ensemble(network, 3), rows)
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 5)
    assert surprise(Ensemble(network, 3), rows) == pytest.approx(whole, abs=1e-12)
