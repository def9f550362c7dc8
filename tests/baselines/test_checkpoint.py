"""Training that is stopped after an epoch, and resumed from its file."""

from __future__ import annotations

import numpy as np
import pytest

from made.baselines.eonade import EoNADE
from made.baselines.nade import NADE
from made.errors import ModelError
from small_baselines import TRAIN, VALID, WORLDS

SYSTEMS = {
    "nade": lambda **others: NADE(5, max_epochs=5, dropout=0.2, **others),
    "eonade": lambda **others: EoNADE((5, 4), orderings=2, max_epochs=5, batch_size=2000, **others),
}


def stop_after(epochs: int):
    """A report that interrupts training."""

    def report(epoch: int, score: float, seconds: float) -> None:
        if epoch + 1 == epochs:
            raise KeyboardInterrupt

    return report


def stopped(name: str, file) -> None:
    """Train for two epochs of five."""
    system = SYSTEMS[name](report=stop_after(2))
    system.checkpoint = file
    with pytest.raises(KeyboardInterrupt):
        system.fit(TRAIN, VALID)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_a_resumed_training_ends_with_the_same_bits(name, tmp_path) -> None:
    file, seen = tmp_path / "new" / "state.safetensors", []
    stopped(name, file)
    resumed = SYSTEMS[name](report=lambda epoch, score, seconds: seen.append(epoch))
    resumed.checkpoint = file
    resumed.fit(TRAIN, VALID)
    whole = SYSTEMS[name]().fit(TRAIN, VALID)
    assert seen == [2, 3, 4]
    assert (resumed.epochs, resumed.best_epoch_) == (whole.epochs, whole.best_epoch_)
    assert np.array_equal(resumed.log_prob(WORLDS).values, whole.log_prob(WORLDS).values)


def test_a_finished_training_is_not_repeated(tmp_path) -> None:
    first, again = (SYSTEMS["nade"]() for _ in range(2))
    first.checkpoint = again.checkpoint = tmp_path / "state.safetensors"
    values = first.fit(TRAIN, VALID).log_prob(WORLDS).values
    again.report = stop_after(1)
    assert np.array_equal(again.fit(TRAIN, VALID).log_prob(WORLDS).values, values)


@pytest.mark.parametrize("settings", [{"learning_rate": 0.02}, {"input_dropout": 0.1}, {"seed": 1}])
def test_the_state_of_other_settings_is_not_used(settings, tmp_path) -> None:
    file, seen = tmp_path / "state.safetensors", []
    stopped("nade", file)
    other = SYSTEMS["nade"](**settings, report=lambda epoch, score, seconds: seen.append(epoch))
    other.checkpoint = file
    other.fit(TRAIN, VALID)
    assert seen == [0, 1, 2, 3, 4]


def test_another_file_is_refused(tmp_path) -> None:
    file = tmp_path / "state.safetensors"
    file.write_bytes(b"something else")
    system = SYSTEMS["nade"]()
    system.checkpoint = file
    with pytest.raises(ModelError, match="cannot be read"):
        system.fit(TRAIN, VALID)
