"""`made serve`: what it refuses, a process that drains, and a model that is replaced while it is served."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

import pytest

from command import run
from made import MADE
from made.serve.bounds import Bounds
from people import fitted_people, people

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "people"
    fitted_people().save(path)
    return path


@pytest.fixture
def process(folder):
    command = [sys.executable, "-m", "made", "serve", str(folder), "--port", "0", "--json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    content = ""
    while not content.rstrip().endswith("}"):
        content += started.stdout.readline()
    with httpx.Client(base_url=json.loads(content)["url"], timeout=60, trust_env=False) as client:
        yield started, client
    if started.poll() is None:
        started.kill()
    started.wait()
    started.stdout.close()


def test_a_process_drains_and_keeps_the_model_it_has_read(process, folder) -> None:
    """A model that is replaced on disk is served after a restart; SIGTERM waits for the answer under way."""
    started, client = process
    asked = {"rows": [{"age": 30, "job": "cook"}]}
    before = client.post("/api/models/people/score", json=asked).json()
    MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=2).fit(people()).save(folder)
    assert client.post("/api/models/people/score", json=asked).json() == before
    assert client.get("/api/models/people/info").json()["settings"]["hidden_sizes"] == [16]
    shutil.rmtree(folder)
    assert client.post("/api/models/people/score", json=asked).json() == before

    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(client.post("/api/models/people/sample", json={"count": 50_000}))
    )
    thread.start()
    while "made_computing_requests 1.0" not in client.get("/metrics").text:
        assert thread.is_alive(), "the answer came too soon"
    started.send_signal(signal.SIGTERM)
    thread.join()
    assert len(answers[0].json()["rows"]) == 50_000
    assert started.wait(30) == 0
    with pytest.raises(httpx.ConnectError):
        client.get("/healthz")


def test_another_address_needs_a_token(folder) -> None:
    result = run("serve", folder, "--host", "0.0.0.0", code=2)
    assert "token-file" in result.stderr


@pytest.mark.parametrize("content", [b"", b"short", b"with a space in the token", b"\xff" * 20])
def test_a_token_that_cannot_be_used(folder, tmp_path, content) -> None:
    (tmp_path / "token").write_bytes(content)
    assert "at least 16" in run("serve", folder, "--token-file", tmp_path / "token", code=2).stderr


def test_a_token_file_that_is_not_there(folder, tmp_path) -> None:
    run("serve", folder, "--token-file", tmp_path / "nothing", code=3)


def test_two_models_of_one_name(folder) -> None:
    assert "two models are called 'people'" in run("serve", folder, folder, code=2).stderr


def test_a_folder_without_a_model(tmp_path) -> None:
    run("serve", tmp_path, code=4)


def test_a_port_that_is_taken(tmp_path) -> None:
    fitted_people().save(tmp_path / "people")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", tmp_path / "people", "--port", taken.getsockname()[1], code=2)
    assert "Choose another '--port'" in result.stderr


NAMES = ("body", "rows", "samples", "waiting", "seconds", "connections")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], Bounds(8 * 2**20, 10_000, 100_000, 64, 30.0, 1024)),
        ([f"--max-{name}={number}" for number, name in enumerate(NAMES, 1)], Bounds(1, 2, 3, 4, 5.0, 6)),
    ],
)
def test_every_bound_is_an_option(tmp_path, monkeypatch, options, expected) -> None:
    fitted_people().save(tmp_path / "people")
    used = []
    monkeypatch.setattr("made.serve.run.run", lambda app, listener, bounds: used.extend([bounds, app.bounds]))
    run("serve", tmp_path / "people", "--port", 0, *options)
    assert used == [expected, expected]


def test_without_the_extra(folder, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("made.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'made[serve]'" in run("serve", folder, code=2).stderr
