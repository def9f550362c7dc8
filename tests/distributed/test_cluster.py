"""Two hosts, each with its own address and its own copy of the rows. `make test-cluster` runs this, where root may."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from command import run
from hosts import Hosts
from made.distributed.launch import launch

pytestmark = pytest.mark.skipif("MADE_CLUSTER" not in os.environ, reason="make test-cluster runs it")

FIT = ("--hidden-sizes", "8", "--evaluation-masks", "2", "--patience", "1000", "--max-epochs", "25", "--seed", "1")


@pytest.fixture(scope="module")
def hosts():
    try:
        found = Hosts()
    except PermissionError as error:
        pytest.skip(f"network namespaces cannot be made here: {error}")
    yield found
    found.close()


@pytest.fixture
def homes(tmp_path) -> list[Path]:
    """A folder for each host, with the rows."""
    random = np.random.default_rng(0)
    state = random.integers(3, size=(300, 1))
    rows = np.hstack([state, state + random.integers(2, size=(300, 3))])
    homes = [tmp_path / "first", tmp_path / "second"]
    for home in homes:
        home.mkdir()
        np.savetxt(home / "rows.csv", rows, fmt="%d", delimiter=",", header="a,b,c,d", comments="")
    return homes


@pytest.fixture
def reference(homes):
    """The weights of two workers on one machine that were never killed."""
    folder = homes[0] / "reference"
    assert launch(["fit", str(homes[0] / "rows.csv"), "--out", str(folder), *FIT, "--quiet"], 2, folder) == 0
    return load_file(folder / "model.safetensors")


def same(weights, folder: Path) -> bool:
    found = load_file(folder / "model.safetensors")
    return found.keys() == weights.keys() and all((found[name] == weights[name]).all() for name in weights)


def wait_for(path: Path, pattern: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not list(path.glob(pattern)):
        assert time.monotonic() < deadline, f"{path} has no {pattern}"
        time.sleep(0.05)


def worker_of(process: int) -> int:
    """The worker that a launcher has started."""
    with open(f"/proc/{process}/task/{process}/children") as file:
        return min(map(int, file.read().split()))


def torchrun(hosts, homes, *words) -> list:
    """One worker on each host."""
    started = []
    for number, (host, home) in enumerate(zip((hosts.first, hosts.second), homes, strict=True)):
        group = ["--nnodes", 2, "--node-rank", number, "--nproc-per-node", 1, "--max-restarts", 2]
        group += ["--master-addr", hosts.first.address, "--master-port", 29511]
        command = [sys.executable, "-m", "torch.distributed.run", *group, "-m", "made", "fit", *words]
        started.append(host.start(*command, log=home / "log", folder=home))
    return started


def test_torchrun_on_two_hosts_survives_a_kill_with_the_same_bits(hosts, homes, reference) -> None:
    first, second = torchrun(hosts, homes, "rows.csv", "--out", "model", *FIT)
    wait_for(homes[0], "model/checkpoint-*")
    os.kill(worker_of(second.pid), signal.SIGKILL)
    assert [first.wait(60), second.wait(60)] == [0, 0], (homes[0] / "log").read_text()
    assert same(reference, homes[0] / "model")
    assert not (homes[1] / "model").exists()
    assert "NLL" in run("evaluate", homes[0] / "model", homes[0] / "rows.csv").stdout


def test_a_host_that_lacks_the_file_is_named(hosts, homes) -> None:
    (homes[1] / "rows.csv").unlink()
    begin = time.monotonic()
    first, second = torchrun(hosts, homes, "rows.csv", "--out", "model", *FIT)
    wait_for(homes[0], "log")
    while "worker 1 on " not in (text := (homes[0] / "log").read_text()):
        assert time.monotonic() - begin < 30, text
        time.sleep(0.1)
    assert "rows.csv" in text
    for process in (first, second):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
    assert not (homes[0] / "model").exists()
