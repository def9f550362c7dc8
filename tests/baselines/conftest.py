"""Short epochs for all tests of the baselines."""

from __future__ import annotations

import pytest

from made.baselines import bipartite


@pytest.fixture(scope="module", autouse=True)
def short_epochs():
    before, bipartite.EPOCH_ROWS = bipartite.EPOCH_ROWS, 1
    yield
    bipartite.EPOCH_ROWS = before
