"""Several processes that search together in a shared storage, as machines do: none lost, none twice."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from made.errors import DataError, QuestionError
from made.io.datasets import digits
from made.tuning import tune

DATA = digits()
TRAIN, VALID = DATA.train[:150], DATA.valid[:50]
SPACE = {"hidden_sizes": ["4", "8"], "learning_rate": {"low": 1e-3, "high": 1e-1, "log": True}}
FIXED = {"max_epochs": 2, "masks": 2}
QUICK = "import made.tuning.result, made.tuning.search, made.tuning.study, made.tuning.workers\n"
QUICK += "made.tuning.result._plot = lambda tuned, stream: None\n"
QUICK += "made.tuning.study.STALE, made.tuning.workers.BEATS, made.tuning.search.WAITING = 5.0, 0.2, 0.1\n"


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    monkeypatch.setattr("made.tuning.result._plot", lambda tuned, stream: None)


def search(folder, storage, **options):
    options = {"space": SPACE, "fixed": FIXED, "trials": 3} | options
    return tune(options.pop("train", TRAIN), VALID, folder=folder, storage=str(storage), **options)


def start(forks, tmp_path, name: str, trials: int, epochs: int) -> int:
    """A process that searches."""
    (tmp_path / "fixed.toml").write_text(f"max_epochs = {epochs}\nmasks = 2\npatience = 1000\n")
    (tmp_path / "space.toml").write_text("learning_rate = {low = 1e-3, high = 1e-1, log = true}\n")
    words = ["made", "tune", "digits", "--config", "fixed.toml", "--space", "space.toml", "--trials", str(trials)]
    words += ["--storage", "shared.log", "--out", name, "--quiet"]
    program = f"{QUICK}sys.argv = {words!r}\nfrom made.cli import main\nmain()"
    return forks.start(program, stderr=tmp_path / f"{name}.txt")


def trials(folder) -> list[dict]:
    return json.loads((folder / "trials.json").read_text())


def owners(log) -> set[str]:
    """The processes that have given signs of life."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return {line["user_attr"]["beat"][0] for line in lines if "beat" in line.get("user_attr", {})}


def test_two_processes_share_a_search_and_one_is_killed_and_starts_again(forks, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = start(forks, tmp_path, "first", 4, 15)
    log, deadline = tmp_path / "shared.log", time.monotonic() + 120
    while not log.exists() or len(owners(log)) < 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    second = start(forks, tmp_path, "second", 4, 15)
    while len(owners(log)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(second, signal.SIGKILL)
    forks.wait(second)
    again = start(forks, tmp_path, "second", 4, 15)
    for process, name in ((first, "first"), (again, "second")):
        assert forks.wait(process) == 0, (tmp_path / f"{name}.txt").read_text()
    assert trials(tmp_path / "first") == trials(tmp_path / "second")
    found = trials(tmp_path / "first")
    assert len(found) == 4
    assert all(trial["state"] in ("complete", "pruned") and trial["reason"] is None for trial in found)
    assert len({trial["params"]["learning_rate"] for trial in found}) == 4
    assert log.read_text().count('"deaths":1') >= 1  # what was killed was trained again


def test_two_that_end_at_once_train_no_trial_too_many(forks, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    both = [start(forks, tmp_path, name, 3, 2) for name in ("first", "second")]
    assert [forks.wait(each) for each in both] == [0, 0], (tmp_path / "first.txt").read_text()
    assert len(trials(tmp_path / "first")) == len(trials(tmp_path / "second")) == 3


@pytest.mark.parametrize("kind", ["file", "database"])
def test_a_search_that_is_there_is_joined(tmp_path, kind) -> None:
    storage = tmp_path / "shared.log" if kind == "file" else f"sqlite:///{tmp_path}/shared.db"
    first = search(tmp_path / "first", storage)
    second = search(tmp_path / "second", storage, trials=5)
    assert [trial.number for trial in second.trials] == [0, 1, 2, 3, 4]
    assert second.trials[:3] == first.trials
    assert search(tmp_path / "first", storage, trials=None).trials == second.trials  # which is finished
    assert len({trial.params["learning_rate"] for trial in second.trials}) == 5
    with pytest.raises(DataError, match=r"searches on other rows: .* another storage"):
        search(tmp_path / "third", storage, train=TRAIN[1:])


def test_what_cannot_be_shared_is_refused(tmp_path) -> None:
    tune(TRAIN, VALID, folder=tmp_path / "own", space=SPACE, fixed=FIXED, trials=1)
    with pytest.raises(QuestionError, match="has a search of its own"):
        search(tmp_path / "own", tmp_path / "shared.log")
    for url in (
        "postgresql+psycopg2://me:secret@127.0.0.1:1/none",
        "nonsense://me:secret@there",
        "sqlite:////no/where.db",
    ):
        with pytest.raises(QuestionError, match=r"the storage .* cannot be used") as refused:
            search(tmp_path / "other", url)
        assert "secret" not in str(refused.value)
        assert not (tmp_path / "other").exists()
