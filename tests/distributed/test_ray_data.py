"""Questions on a Ray cluster, without a cluster."""

from __future__ import annotations

import time

import pytest

from made.distributed import ray_data


@pytest.mark.parametrize("fails", [False, True])
def test_a_machine_that_does_not_answer_is_named_once(monkeypatch, fails) -> None:
    looks: list[int] = []

    def unreachable(ray) -> dict[str, float]:
        looks.append(1)
        if fails and len(looks) < 3:
            raise RuntimeError("the head is gone")
        return {"10.0.0.2": 4.0} | ({"10.0.0.3": 4.0} if len(looks) > 5 else {})

    monkeypatch.setattr(ray_data, "LOOK", 0.001)
    monkeypatch.setattr(ray_data, "unreachable", unreachable)
    notes: list[str] = []
    with ray_data._watching(None, notes.append):
        while len(looks) < 10:
            time.sleep(0.001)
    ended = len(looks)
    assert [note.split()[1] for note in notes] == ["10.0.0.2", "10.0.0.3"]
    time.sleep(0.02)
    assert len(looks) == ended
