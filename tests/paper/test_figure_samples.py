"""Figure 3."""

from __future__ import annotations

import numpy as np

from made.paper import figure_samples


def test_the_nearest_row_does_not_depend_on_batches(monkeypatch) -> None:
    random = np.random.default_rng(0)
    samples, train = random.integers(0, 2, (20, 30)), random.integers(0, 2, (50, 30))
    at_once = figure_samples.nearest(samples, train)
    monkeypatch.setattr(figure_samples, "BATCH", 7)
    assert (figure_samples.nearest(samples, train) == at_once).all()
