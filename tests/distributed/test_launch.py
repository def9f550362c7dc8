"""`made fit` with several workers: exact resume after a kill, and errors that name a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from safetensors.numpy import load_file

from command import run
from workers import free_port, worker_environment

FIT = ("fit", "penguins", "--hidden-sizes", "8", "--evaluation-masks", "2", "--seed", "3", "--patience", "1000")


def fork_workers(forks, folder, *words) -> list[int]:
    """Two workers, forked: the exit codes."""
    port, processes = free_port(), []
    for rank in range(2):
        argv = ["made", *map(str, words)]
        program = f"import os\nos.environ.update({worker_environment(rank, 2, port)!r})\nsys.argv = {argv!r}\n"
        processes.append(forks.start(f"{program}from made.cli import main\nmain()", stderr=folder / f"log{rank}"))
    return [forks.wait(each) for each in processes]


def curve(folder) -> list[dict]:
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def test_a_run_whose_workers_are_killed_ends_with_the_same_bits(forks, tmp_path) -> None:
    """By SIGKILL; the reference was never killed, and its workers were started as torchrun starts them."""
    options = (*FIT, "--max-epochs", 30)
    assert fork_workers(forks, tmp_path, *options, "--out", tmp_path / "never") == [0, 0], (
        tmp_path / "log0"
    ).read_text()
    command = [sys.executable, "-m", "made", *map(str, options), "--out", str(tmp_path / "killed"), "--workers", "2"]
    parent = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    killed, deadline = 0, time.monotonic() + 120
    while parent.poll() is None and time.monotonic() < deadline:
        checkpoint = list((tmp_path / "killed").glob("checkpoint-*")) if (tmp_path / "killed").exists() else []
        if checkpoint and not killed:
            os.kill(children(parent.pid)[1], signal.SIGKILL)
            killed += 1
        time.sleep(0.01)
    output, errors = parent.communicate()
    assert parent.returncode == 0, errors
    assert killed == 1
    assert "a worker was killed; training resumes from the last checkpoint" in errors
    assert output.count("species") == 1  # one worker prints
    never, after = (load_file(tmp_path / name / "model.safetensors") for name in ("never", "killed"))
    assert all((never[name] == after[name]).all() for name in never)
    assert curve(tmp_path / "never") == curve(tmp_path / "killed")
    assert "NLL" in run("evaluate", tmp_path / "killed", "penguins").stdout


def children(process: int) -> list[int]:
    """The processes that a process has started, oldest first."""
    with open(f"/proc/{process}/task/{process}/children") as file:
        return sorted(map(int, file.read().split()))


def test_a_file_that_one_worker_lacks_is_named_with_the_worker(forks, tmp_path, monkeypatch) -> None:
    port, processes = free_port(), []
    for rank in range(2):
        home = tmp_path / str(rank)
        home.mkdir()
        monkeypatch.chdir(home)
        if rank == 0:
            (home / "rows.csv").write_text("a,b\n" + "1,2\n2,1\n" * 20)
        argv = ["made", "fit", "rows.csv", "--out", "model"]
        program = f"import os\nos.environ.update({worker_environment(rank, 2, port)!r})\nsys.argv = {argv!r}\n"
        processes.append(forks.start(f"{program}from made.cli import main\nmain()", stderr=tmp_path / f"log{rank}"))
    assert [forks.wait(each) for each in processes] == [3, 3]
    said = (tmp_path / "log0").read_text()
    assert said.startswith("Error: worker 1 on ")
    assert "rows.csv" in said
    assert (tmp_path / "log1").read_text() == ""
    assert not (tmp_path / "0" / "model").exists()


@pytest.mark.parametrize("words", [("fit", "-", "--out", "model", "--workers", 2), ("fit", "penguins", "--workers", 0)])
def test_what_several_workers_cannot_do_is_refused_before_any_is_started(words) -> None:
    assert "workers" in run(*words, code=2).output
