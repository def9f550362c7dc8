"""What a network takes is known before it is taken."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from made import MADE
from made.errors import DataError, QuestionError
from made.model.memory_budget import free_bytes, training_bytes
from made.network.limits import check_sizes


def test_a_network_that_does_not_fit_is_refused_before_it_is_allocated(monkeypatch) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"city": [f"city {d}" for d in random.integers(900, size=3000)], "a": random.random(3000) < 0.5}
    )
    monkeypatch.setattr("made.model.memory_budget.free_bytes", lambda: 2**20)
    message = (
        r"would take \d[\d,]* bytes \(\d+\.\d GiB\) to train, more than the 1,048,576 that are free: of its [\d,]+ "
        r"parameters, \d+ % are in A, .*direct=False.*'city' \(\d+\), 'a' \(2\): columns=\{'city': 'drop'\}"
    )
    with pytest.raises(DataError, match=message):
        MADE().fit(frame)
    with pytest.raises(DataError, match=r"are in (W1|V), .*smaller 'hidden_sizes'"):
        MADE(direct=False).fit(frame)
    with pytest.raises(DataError, match=r"are in W2, 400 x 500; smaller 'hidden_sizes'"):
        MADE(hidden_sizes=(500, 400), direct=False).fit(frame[["a"]])
    MADE(hidden_sizes=(4,), max_epochs=0).fit(frame[["a"]])


def test_free_memory_is_part_of_the_total() -> None:
    assert 2**20 < free_bytes() < 2**50


def test_six_thousand_columns() -> None:
    """Handled without direct connections; with them, the memory is known: several copies of A."""
    rows = np.random.default_rng(0).integers(2, size=(64, 6000))
    model = MADE(hidden_sizes=(8,), direct=False, max_epochs=1, batch_size=32, masks=1, evaluation_masks=1)
    model.fit(rows)
    assert training_bytes(model.model_.config) < 2**27
    assert np.isfinite(model.score_samples(rows[:2])).all()
    wide = replace(model.model_.config, parameters=model.model_.config.parameters | {"direct": True})
    assert 4 < training_bytes(wide) / (4 * 6000**2) < 20


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"hidden_sizes": (99_999_999,)}, r"'hidden_sizes' should have at most 1,048,576 units in all, not 99,999,999"),
        ({"hidden_sizes": (10**30,)}, r"'hidden_sizes' should have at most 1,048,576 units"),
        ({"hidden_sizes": (1,) * 1000}, r"'hidden_sizes' should have at most 256 layers, not 1,000"),
        ({"evaluation_masks": 99_999_999_999}, r"'evaluation_masks' should be from 1 to 65,536, not 99,999,999,999"),
        ({"validation_masks": 10**30}, r"'validation_masks' should be from 1 to 65,536"),
        ({"masks": 10**9}, r"'masks' should be from 1 to 65,536, or 'unlimited', not 1,000,000,000"),
        ({"evaluation_masks": 60_000, "segments": 10**12}, r"'segments' should be at most 1,048,576, not 1,200,000"),
        ({"batch_size": 10**30}, r"'batch_size' should be from 1 to 2,147,483,647"),
    ],
)
def test_absurd_sizes_are_refused_at_once(monkeypatch, parameters, said) -> None:
    """Before a single degree is drawn, in closed form."""
    monkeypatch.setattr("made.network.connectivity.Connectivities.draw", None)
    with pytest.raises(ValueError, match=said):
        MADE(**parameters).fit(np.arange(60).reshape(3, 20) % 2)


def test_the_largest_allowed_parameters_are_accepted() -> None:
    largest = {"hidden_sizes": [2**12] * 256, "evaluation_masks": 2**16, "segments": 16, "batch_size": 2**31 - 1}
    check_sizes(largest | {"masks": "unlimited", "validation_masks": 2**16}, columns=20)


def test_more_masks_than_there_may_be_are_not_averaged() -> None:
    model = MADE(hidden_sizes=(4,), max_epochs=0).fit(np.eye(4))
    with pytest.raises(QuestionError, match=r"'masks' should be at most 65,536, not 99,999,999,999"):
        model.set_params(evaluation_masks=99_999_999_999).score_samples(np.eye(4))


def test_there_are_direct_connections_unless_they_are_too_many(monkeypatch) -> None:
    monkeypatch.setattr("made.network.limits.DIRECT", 16)
    for columns, direct in ((4, True), (5, False)):
        model = MADE(hidden_sizes=(4,), max_epochs=0).fit(np.eye(columns))
        assert model.model_.config.parameters["direct"] is direct
        assert ("A" in dict(model.model_.network.named_parameters())) is direct
    assert "A" in dict(MADE(direct=True, max_epochs=0).fit(np.eye(5)).model_.network.named_parameters())


SCRIPT = """
import re
from pathlib import Path
import numpy as np, torch
from made import MADE
from made.network.limits import check_sizes
from made.model.memory_budget import training_bytes
torch.set_num_threads(1)
rows = np.random.default_rng(0).integers(2, size=(80, 1500)).astype(np.float64)
small = MADE(hidden_sizes=(8,), max_epochs=2).fit(rows[:, :10])
peak = lambda: 1024 * int(re.search("VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
model = MADE(hidden_sizes=(1000,), max_epochs=1, validation_masks=1, evaluation_masks=1).fit(rows)
print(training_bytes(model.model_.config), peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured in other units there")
def test_the_estimate_is_close_to_the_measured_peak() -> None:
    """Measured: not below nine tenths, or it would not protect, and not many times as much."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    estimate, taken = map(int, done.stdout.split())
    assert 0.9 * taken < estimate < 4 * taken
