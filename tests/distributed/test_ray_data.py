"""Questions on a Ray cluster, without a cluster."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from made.distributed import cluster, ray_data
from made.errors import WorkerLost


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


def test_a_head_that_is_gone_ends_the_command(monkeypatch) -> None:
    monkeypatch.setattr(cluster, "LOOK", 0.01)
    monkeypatch.setattr(cluster, "SILENT", 0.1)
    errors: list[Exception] = []
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
        words = (f"127.0.0.1:{port}", "127.0.0.1", port, errors.append, ended)
        watcher = threading.Thread(target=cluster._watch, args=words, daemon=True)
        watcher.start()
        time.sleep(0.5)
        assert errors == []
    watcher.join(60)
    assert [type(error) for error in errors] == [WorkerLost]
    assert f"the head of the Ray cluster at 127.0.0.1:{port} does not answer" in str(errors[0])
    ended.set()
    cluster._watch(*words)  # a connection that is closed is not watched
    assert len(errors) == 1
