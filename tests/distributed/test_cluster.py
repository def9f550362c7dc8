"""Two hosts, each with its own address and its own copy of the rows. `make test-cluster` runs this, where root may."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from command import run
from hosts import Hosts
from made import _version
from made.distributed.launch import launch

pytestmark = pytest.mark.skipif("MADE_CLUSTER" not in os.environ, reason="make test-cluster runs it")

FIT = ("--hidden-sizes", "8", "--evaluation-masks", "2", "--patience", "1000", "--max-epochs", "20", "--seed", "1")


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
    return make_homes(tmp_path)


def make_homes(tmp_path) -> list[Path]:
    random = np.random.default_rng(0)
    state = random.integers(3, size=(300, 1))
    rows = np.hstack([state, state + random.integers(2, size=(300, 3))])
    homes = [tmp_path / "first", tmp_path / "second"]
    for home in homes:
        home.mkdir()
        np.savetxt(home / "rows.csv", rows, fmt="%d", delimiter=",", header="a,b,c,d", comments="")
    return homes


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The weights of two workers on one machine that were never killed."""
    homes = make_homes(tmp_path_factory.mktemp("reference"))
    folder = homes[0] / "reference"
    assert launch(["fit", str(homes[0] / "rows.csv"), "--out", str(folder), *FIT, "--quiet"], 2, folder) == 0
    return load_file(folder / "model.safetensors")


def same(weights, folder: Path) -> bool:
    found = load_file(folder / "model.safetensors")
    return found.keys() == weights.keys() and all((found[name] == weights[name]).all() for name in weights)


LONG = 600  # seconds: only for what hangs, on however busy a machine


def wait_for(home: Path, pattern: str, *processes: subprocess.Popen) -> None:
    """Wait for a file, as long as the processes that are to write it run."""
    deadline = time.monotonic() + LONG
    while not list(home.glob(pattern)):
        ended = [process.returncode for process in processes if process.poll() is not None]
        assert ended == [], (home / "log").read_text()
        assert time.monotonic() < deadline, f"{home} has no {pattern}"
        time.sleep(0.05)


def worker_of(process: int) -> int:
    """The worker that a launcher has started."""
    with open(f"/proc/{process}/task/{process}/children") as file:
        return min(map(int, file.read().split()))


def torchrun(hosts, homes, *words, restarts: int = 2) -> list[subprocess.Popen]:
    """One worker on each host."""
    started = []
    for number, (host, home) in enumerate(zip((hosts.first, hosts.second), homes, strict=True)):
        group = ["--nnodes", 2, "--node-rank", number, "--nproc-per-node", 1, "--max-restarts", restarts]
        group += ["--master-addr", hosts.first.address, "--master-port", 29511]
        command = [sys.executable, "-m", "torch.distributed.run", *group, "-m", "made", "fit", *words]
        started.append(host.start(*command, log=home / "log", folder=home))
    return started


def test_torchrun_on_two_hosts_survives_a_kill_with_the_same_bits(hosts, homes, reference) -> None:
    first, second = torchrun(hosts, homes, "rows.csv", "--out", "model", *FIT)
    wait_for(homes[0], "model/checkpoint-*", first, second)
    os.kill(worker_of(second.pid), signal.SIGKILL)
    assert [first.wait(LONG), second.wait(LONG)] == [0, 0], (homes[0] / "log").read_text()
    assert same(reference, homes[0] / "model")
    assert not (homes[1] / "model").exists()
    assert "NLL" in run("evaluate", homes[0] / "model", homes[0] / "rows.csv").stdout


@pytest.mark.parametrize("lost", [0, 1])
def test_a_host_that_vanishes_is_noticed_and_the_run_is_resumed_with_the_same_bits(hosts, homes, reference, lost):
    """The worker that is paused sends nothing, which is no reason to give it up; its host answers for it."""
    both = (hosts.first, hosts.second)
    processes = torchrun(hosts, homes, "rows.csv", "--out", "model", *FIT, restarts=0)
    wait_for(homes[0], "model/checkpoint-*", *processes)
    worker = worker_of(processes[1].pid)
    os.kill(worker, signal.SIGSTOP)
    time.sleep(15)
    assert [process.poll() for process in processes] == [None, None]
    both[lost].set_link("down")
    os.kill(worker, signal.SIGCONT)
    assert 0 not in [process.wait(LONG) for process in processes]
    both[lost].set_link("up")
    for here, there in ((0, 1), (1, 0)):  # each of them has lost the other one
        said = (homes[here] / "log").read_text()
        assert f"Error: another worker on {both[there].address} has ended or cannot be reached" in said
        assert "(exitcode: 6)" in said
    again = torchrun(hosts, homes, "rows.csv", "--out", "model", *FIT, "--resume")
    assert [process.wait(LONG) for process in again] == [0, 0], (homes[0] / "log").read_text()
    assert same(reference, homes[0] / "model")


@pytest.fixture(scope="module")
def own_folder(tmp_path_factory) -> Path:
    """A folder that is empty on the second host, whatever the first one writes there."""
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def ray_address(hosts, own_folder, tmp_path_factory):
    """A Ray cluster of both hosts, with token authentication, and its address."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    home = tmp_path_factory.mktemp("ray")
    hide = ["sh", "-c", f'mount -t tmpfs none {own_folder} && exec "$@"', "sh"]
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", 1]
    start += ["--object-store-memory", 80_000_000, "--disable-usage-stats"]
    address = f"{hosts.first.address}:6379"
    with tempfile.TemporaryDirectory(
        prefix="ray", dir="/tmp"
    ) as sockets:  # a longer name would be too long for a socket
        for host, own in (
            (hosts.first, ["--head", "--port", 6379, "--include-dashboard", "false"]),
            (hosts.second, []),
        ):
            own += ["--temp-dir", sockets] if host is hosts.first else ["--address", address]
            words = [*(hide if host is hosts.second else []), *start, "--node-ip-address", host.address, *own]
            start_ray(host, words, home)
        yield address
        hosts.first.close()
        hosts.second.close()


def start_ray(host, words, home: Path) -> None:
    """Start a node; again if Ray gives up because the machine is busy."""
    log = home / host.name
    for _ in range(5):
        process = host.start(*words, log=log, folder=home, **TOKEN, RAY_worker_niceness="0")
        while process.poll() is None:
            if "block forever" in log.read_text():
                return
            time.sleep(0.1)
        host.close()
    raise AssertionError(log.read_text())


TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef"}


def made(hosts, home: Path, *words, **environment: str):
    """`made` on the first host, which the cluster knows."""
    command = [sys.executable, "-m", "made", *words]
    return hosts.first.start(*command, log=home / "log", folder=home, **(TOKEN | environment))


def test_ray_on_two_hosts_survives_a_kill_with_the_same_bits(hosts, homes, reference, ray_address, refused) -> None:
    options = ("--out", "model", *FIT, "--workers", 2, "--ray", ray_address)
    process = made(hosts, homes[0], "fit", "rows.csv", *options)
    os.kill(paused(hosts, homes[0], process), signal.SIGKILL)
    assert process.wait(LONG) == 0, (homes[0] / "log").read_text()
    assert "Note: a worker of the Ray cluster was lost; training resumes" in (homes[0] / "log").read_text()
    assert same(reference, homes[0] / "model")


def processes_with(host, word: bytes) -> list[int]:
    """The processes of a host that have a word in their command line."""
    listed = ["ip", "netns", "pids", host.name]
    found = []
    for number in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split():
        with suppress(OSError):  # it has ended
            found += [int(number)] * (word in Path(f"/proc/{number}/cmdline").read_bytes())
    return found


def trainers(host) -> list[int]:
    return processes_with(host, b"\0made\0fit\0")


def has_written(process: int) -> bool:
    """Whether a worker of Ray has written a checkpoint to its own folder."""
    with suppress(OSError, ValueError):  # it has ended
        words = Path(f"/proc/{process}/cmdline").read_text().split("\0")
        folder = Path(words[-words[::-1].index("--out")])  # the last one
        return folder.is_absolute() and any(folder.glob("checkpoint-*"))
    return False


def paused(hosts, home: Path, process: subprocess.Popen) -> int:
    """The worker on the second host, paused after a checkpoint has been copied, and before the run ends.

    On a busy machine, a run may end before its first checkpoint is copied, unless a worker is paused.
    """
    deadline = time.monotonic() + LONG
    while not any(map(has_written, trainers(hosts.first) + trainers(hosts.second))):
        assert process.poll() is None, (home / "log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    worker = trainers(hosts.second)[0]
    while True:
        os.kill(worker, signal.SIGSTOP)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            if list(home.glob("model/checkpoint-*")):
                return worker
            time.sleep(0.05)
        os.kill(worker, signal.SIGCONT)  # it may have been writing
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("ended", ["worker killed", "killed", "terminated"])
def test_answers_of_ray_survive_a_kill(hosts, homes, ray_address, ended) -> None:
    """They are those without a cluster, in the same order."""
    home = homes[0]
    codes = np.loadtxt(home / "rows.csv", delimiter=",", skiprows=1)
    rows = np.where(np.random.default_rng(1).random((150_000, 4)) < 0.2, np.nan, np.resize(codes, (150_000, 4)))
    np.save(home / "many.npy", rows)
    run("fit", home / "rows.csv", "--out", home / "model", *FIT, "--quiet")
    run("impute", home / "model", home / "many.npy", "--out", home / "local.npy")
    question = ("impute", "model", "many.npy", "--out", "parts.npy", "--ray", ray_address)
    process = made(hosts, home, *question)
    if ended == "worker killed":
        while not (found := processes_with(hosts.second, b"ray::Map(answer)")):
            assert process.poll() is None, (home / "log").read_text()
        os.kill(found[0], signal.SIGKILL)
    else:
        wait_for(home, "parts.npy/part-000000.npy", process)
        for number in processes_with(hosts.first, b"\0made\0impute\0"):
            os.kill(number, signal.SIGKILL if ended == "killed" else signal.SIGTERM)
        assert process.wait(LONG) == (-9 if ended == "killed" else 143)
        stopped = "stopped; the parts in parts.npy are kept, and the same command continues.\n"
        assert (home / "log").read_text() == ("" if ended == "killed" else stopped)
        process = made(hosts, home, *question)
    assert process.wait(LONG) == 0, (home / "log").read_text()
    said = (home / "log").read_text()
    assert ("parts.npy has 1 part already" in said) == (ended != "worker killed")
    assert "raylet" not in said
    parts = [np.load(path) for path in sorted((home / "parts.npy").glob("part-*"))]
    assert list(map(len, parts)) == [100_000, 50_000]
    np.testing.assert_array_equal(np.concatenate(parts), np.load(home / "local.npy"))


@pytest.fixture(scope="module")
def refused(hosts, ray_address, tmp_path_factory):
    """A process with a wrong token, and its folder; Ray tries for 20 s, while other tests run."""
    home = make_homes(tmp_path_factory.mktemp("refused"))[0]
    options = ("--out", "model", "--ray", ray_address)
    return made(hosts, home, "fit", "rows.csv", *options, RAY_AUTH_TOKEN="f" * 32), home


def test_a_wrong_token_is_a_sentence(refused) -> None:
    process, home = refused
    assert process.wait(LONG) == 3
    said = (home / "log").read_text()
    assert said.count("\n") == 1
    assert "RAY_AUTH_TOKEN" in said
    assert not (home / "model").exists()


def test_a_cluster_that_cannot_be_reached_is_a_sentence(hosts, homes) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    process = made(hosts, homes[0], "fit", "rows.csv", "--out", "model", "--ray", f"{hosts.second.address}:6399")
    assert process.wait(LONG) == 3
    assert f"the Ray cluster at {hosts.second.address}:6399 cannot be reached" in (homes[0] / "log").read_text()
    assert not (homes[0] / "model").exists()


def test_a_file_that_one_host_lacks_is_named(hosts, homes, own_folder, ray_address) -> None:
    (own_folder / "rows.csv").write_bytes((homes[0] / "rows.csv").read_bytes())
    options = ("--out", "model", *FIT, "--workers", 2, "--ray", ray_address)
    process = made(hosts, homes[0], "fit", own_folder / "rows.csv", *options)
    assert process.wait(LONG) == 3
    assert f"'{own_folder / 'rows.csv'}' does not exist" in (homes[0] / "log").read_text()
    assert not (homes[0] / "model").exists()


def test_another_version_of_made_on_the_cluster_is_named(hosts, homes, ray_address) -> None:
    newer = homes[0] / "newer"
    shutil.copytree(Path(_version.__file__).parent, newer / "made", ignore=shutil.ignore_patterns("__pycache__"))
    (newer / "made" / "_version.py").write_text('__version__ = "1.2.3"\n')
    options = ("--out", "model", *FIT, "--workers", 2, "--ray", ray_address)
    process = made(hosts, homes[0], "fit", "rows.csv", *options, PYTHONPATH=str(newer))
    assert process.wait(LONG) == 2
    said = (homes[0] / "log").read_text()
    assert f"of the Ray cluster has made {_version.__version__}, not 1.2.3." in said
    assert said.count("\n") == 1
    assert not (homes[0] / "model").exists()


def test_a_host_that_vanishes_from_ray_ends_the_run_which_is_resumed_elsewhere(
    hosts, homes, reference, ray_address
) -> None:
    """The last test of the cluster, which has lost a host then."""
    options = ("--out", "model", *FIT, "--workers", 2, "--ray", ray_address)
    process = made(hosts, homes[0], "fit", "rows.csv", *options)
    paused(hosts, homes[0], process)
    hosts.second.set_link("down")
    assert process.wait(LONG) == 6, (homes[0] / "log").read_text()
    hosts.second.set_link("up")
    said = (homes[0] / "log").read_text()
    assert f"the Ray cluster at {ray_address} has lost" in said
    assert "--resume continues the run" in said
    command = ["fit", str(homes[0] / "rows.csv"), "--out", str(homes[0] / "model"), *FIT, "--resume", "--quiet"]
    assert launch(command, 2, homes[0] / "model") == 0
    assert same(reference, homes[0] / "model")
