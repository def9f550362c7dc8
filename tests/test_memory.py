"""What a network takes is known before it is taken."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from made import MADE
from made.errors import DataError
from made.memory import free_bytes, training_bytes


def test_what_does_not_fit_is_refused_before_it_is_made(monkeypatch) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"city": [f"city {d}" for d in random.integers(900, size=3000)], "a": random.random(3000) < 0.5}
    )
    monkeypatch.setattr("made.memory.free_bytes", lambda: 2**20)
    message = (
        r"would take \d[\d,]* bytes \(\d+\.\d GiB\) to train, more than the 1,048,576 that are free: of its [\d,]+ "
        r"parameters, \d+% are in A, .*direct=False.*'city' \(\d+\), 'a' \(2\): columns=\{'city': 'drop'\}"
    )
    with pytest.raises(DataError, match=message):
        MADE().fit(frame)
    with pytest.raises(DataError, match=r"are in (W1|V), .*smaller 'hidden_sizes'"):
        MADE(direct=False).fit(frame)
    with pytest.raises(DataError, match=r"are in W2, 400 x 500; smaller 'hidden_sizes'"):
        MADE(hidden_sizes=(500, 400), direct=False).fit(frame[["a"]])
    MADE(hidden_sizes=(4,), max_epochs=0).fit(frame[["a"]])


def test_what_is_free_is_some_of_what_there_is() -> None:
    assert 2**20 < free_bytes() < 2**50


def test_sixteen_thousand_columns() -> None:
    """Handled without direct connections; with them, the memory is known: a gigabyte for each copy of A."""
    rows = np.random.default_rng(0).integers(2, size=(64, 16_000))
    model = MADE(hidden_sizes=(8,), direct=False, max_epochs=1, batch_size=32, masks=1, evaluation_masks=1)
    model.fit(rows)
    assert training_bytes(model.model_.config) < 2**28
    assert np.isfinite(model.score_samples(rows[:2])).all()
    wide = model.model_.config.model_copy(update={"parameters": model.model_.config.parameters | {"direct": True}})
    assert 2**30 * 4 < training_bytes(wide) < 2**30 * 20


SCRIPT = """
import re
from pathlib import Path
import numpy as np, torch
from made import MADE
from made.memory import training_bytes
torch.set_num_threads(1)
rows = np.random.default_rng(0).integers(2, size=(300, 1500)).astype(np.float64)
small = MADE(hidden_sizes=(8,), max_epochs=2).fit(rows[:, :10])
peak = lambda: 1024 * int(re.search("VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
model = MADE(hidden_sizes=(1000,), max_epochs=2).fit(rows)
print(training_bytes(model.model_.config), peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured in other units there")
def test_the_estimate_is_what_is_taken() -> None:
    """Measured: not below nine tenths, or it would not protect, and not many times as much."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    estimate, taken = map(int, done.stdout.split())
    assert 0.9 * taken < estimate < 4 * taken
