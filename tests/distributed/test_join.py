"""Processes that join each other as torchrun's environment says, and learn when one of them is lost."""

from __future__ import annotations

import os
import signal
import time

import pytest

from made.distributed import join
from made.distributed.environment import check_options
from made.errors import QuestionError, WorkerLost
from workers import free_port, worker_environment

PRELUDE = "from made.distributed.join import *\nfrom made.errors import *\nfrom made.training.workers import *\n"


def start(forks, tmp_path, code: str, workers: int = 2) -> list[int]:
    """Processes that run code as workers."""
    port = free_port()
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    processes = []
    for rank in range(workers):
        setup = f"import os\nos.environ.update({worker_environment(rank, workers, port)!r})\n"
        program = f"{setup}{PRELUDE}with joined() as workers:\n{lines}"
        processes.append(forks.start(program, stderr=tmp_path / f"log{rank}"))
    return processes


def test_numbers_tensors_facts_and_files_go_round(forks, tmp_path) -> None:
    code = """
import torch
tensors = [torch.full((2, 3), 1.0 + workers.rank), torch.tensor(float(workers.rank))]
workers.add(tensors)
assert tensors[0].tolist() == [[6.0] * 3] * 2 and tensors[1].item() == 3.0
assert workers.total(0.5) == 1.5 and workers.of_first(workers.rank + 7.0) == 7.0
assert workers.exchange({"rank": "é" * workers.rank}) == [{"rank": ""}, {"rank": "é"}, {"rank": "éé"}]
assert workers.file_of_first(b"content" if workers.rank == 0 else None) == b"content"
assert workers.file_of_first(b"" if workers.rank == 0 else None) == b""
"""
    processes = start(forks, tmp_path, code, workers=3)
    assert [forks.wait(each) for each in processes] == [0, 0, 0], (tmp_path / "log0").read_text()


def test_a_worker_that_is_killed_is_noticed_at_once(forks, tmp_path, monkeypatch) -> None:
    code = """
import time
try:
    workers.exchange("here")
    open(f"ready{workers.rank}", "w").close()
    if workers.rank:
        time.sleep(60)
    workers.exchange("there")
except WorkerLost:
    open("noticed", "w").close()
"""
    monkeypatch.chdir(tmp_path)
    first, second = start(forks, tmp_path, code)
    while not (tmp_path / "ready1").exists():
        time.sleep(0.02)
    os.kill(second, signal.SIGKILL)
    begin = time.monotonic()
    forks.wait(first)
    assert time.monotonic() - begin < 10
    assert (tmp_path / "noticed").exists()
    assert forks.wait(second) == -signal.SIGKILL


def test_another_version_of_made_is_named(forks, tmp_path) -> None:
    port = free_port()
    processes = []
    for rank in range(2):
        program = f"""
import os
os.environ.update({worker_environment(rank, 2, port)!r})
from made.distributed import join
from made.errors import QuestionError
join.__version__ = "{rank}.2.3"
try:
    with join.joined():
        pass
except QuestionError as error:
    open("{tmp_path}/said{rank}", "w").write(str(error))
"""
        processes.append(forks.start(program, stderr=tmp_path / "log"))
    for each in processes:
        forks.wait(each)
    for rank in range(2):
        said = (tmp_path / f"said{rank}").read_text()
        assert said.startswith("worker 1 on ")
        assert "another version of made" in said
        assert "1.2.3, not 0.2.3" in said


def test_an_address_that_cannot_be_reached_is_named(monkeypatch) -> None:
    for name, value in worker_environment(1, 2, free_port()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(join, "JOINING", join.timedelta(seconds=1))
    with pytest.raises(WorkerLost, match=r"worker 1 cannot reach the others by 127\.0\.0\.1, port"), join.joined():
        pass


def test_a_worker_that_does_not_start_is_named(monkeypatch) -> None:
    for name, value in worker_environment(0, 2, free_port()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(join, "SILENT", 0.1)
    monkeypatch.setattr(join, "ARRIVING", 0.3)
    noted: list[str] = []
    with pytest.raises(WorkerLost, match=r"worker 1 has not started within 0\.3 seconds"), join.joined(noted.append):
        pass
    assert noted == ["Note: worker 1 of 0 to 1 has not started yet, and is waited for."]


def test_connections_between_workers_notice_a_machine_that_vanishes(forks, tmp_path) -> None:
    code = """
import os, socket
peers = set()
for number in map(int, os.listdir("/dev/fd")):
    try:
        connection = socket.socket(fileno=os.dup(number))
        connection.getpeername()
    except OSError:
        continue
    if connection.family == socket.AF_INET and connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):
        peers.add(number)
assert len(peers) >= 2, peers  # of the group that connects, and of that which trains
"""
    processes = start(forks, tmp_path, code)
    assert [forks.wait(each) for each in processes] == [0, 0], (tmp_path / "log0").read_text()


def test_options_that_contradict_torchrun_are_refused(monkeypatch) -> None:
    for name, value in worker_environment(0, 2, 1).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(QuestionError, match="torchrun has started 2"):
        check_options(3, overwrite=False)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    with pytest.raises(QuestionError, match="max-restarts"):
        check_options(None, overwrite=True)
    check_options(2, overwrite=False)


def test_without_torchrun_a_process_is_alone() -> None:
    with join.joined() as workers:
        assert (workers.rank, workers.count) == (0, 1)
