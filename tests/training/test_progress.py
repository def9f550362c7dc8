"""The bar: on a terminal and only there; and threads that are given back."""

from __future__ import annotations

import io
import sys

import torch

from made import MADE, Connectivities, Network
from made.training import trainer as room
from made.training.config import TrainingConfig
from made.training.trainer import Trainer

ROWS = [[0, 1, 1], [1, 0, 0]] * 30


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_on_a_terminal_if_wanted(monkeypatch) -> None:
    shown = {}
    for terminal in (True, False):
        for verbose in (0, 1):
            stream = Terminal() if terminal else io.StringIO()
            monkeypatch.setattr(sys, "stderr", stream)
            MADE(hidden_sizes=(4,), max_epochs=3, verbose=verbose, random_state=0).fit(ROWS)
            shown[terminal, verbose] = stream.getvalue()
    text = shown.pop((True, 1))
    assert "epoch 3/3" in text
    assert "valid" in text
    assert "left" in text
    assert set(shown.values()) == {""}


def test_a_small_network_is_trained_by_one_thread_and_a_large_one_by_all(monkeypatch) -> None:
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        for small in (room.SMALL, 0):
            monkeypatch.setattr(room, "SMALL", small)
            trainer = Trainer(Network(3, Connectivities(3, (4,))), ROWS, None, TrainingConfig(max_epochs=1))
            trainer.run(tick=lambda update: seen.append(torch.get_num_threads()))
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 2]
