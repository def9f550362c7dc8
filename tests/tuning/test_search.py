"""The search: the same trials however often it is stopped, none lost, none twice; and sentences for what is refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from command import run, run_json
from made import MADE
from made.errors import DataError, Diverged, Interrupted, ModelError, QuestionError
from made.io.datasets import digits
from made.tuning import load, tune

DATA = digits()
TRAIN, VALID = DATA.train[:150], DATA.valid[:50]
SPACE = {
    "hidden_sizes": ["4", "8,8"],
    "dropout": {"low": 0.0, "high": 0.5},
    "learning_rate": {"low": 1e-3, "high": 1e-1, "log": True},
    "residual": [True, False],
}
FIXED = {"max_epochs": 2, "masks": 2}


def search(folder, *, trials=6, **options):
    options = {"space": SPACE, "fixed": FIXED} | options
    return tune(TRAIN, VALID, folder=folder, trials=trials, **options)


def results(tuned):
    return [(trial.number, trial.params, trial.valid_nll, trial.epochs, trial.state) for trial in tuned.trials]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search that was never stopped."""
    return search(tmp_path_factory.mktemp("tuning") / "whole")


@pytest.fixture(autouse=True)
def _no_picture(whole, monkeypatch) -> None:
    """One is enough, and takes longer than a trial."""
    monkeypatch.setattr("made.tuning.result._plot", lambda tuned, stream: None)


@pytest.fixture
def at_trial(monkeypatch):
    """Let something happen in the middle of a trial: after the first epoch of the n-th model that is trained."""
    fit, trained = MADE.fit, []

    def arrange(number: int, event) -> None:
        trained.clear()

        def patched(self, *args, after_epoch=None, **options):
            trained.append(self)

            def happen(epoch) -> None:
                after_epoch(epoch)
                if len(trained) == number:
                    raise event

            if after_epoch is None:  # a draft, which knows the rows
                trained.pop()
            return fit(self, *args, after_epoch=after_epoch and happen, **options)

        monkeypatch.setattr(MADE, "fit", patched)

    return arrange


def test_the_best_trial_can_be_trained_again_to_the_same_likelihood(whole) -> None:
    assert [trial.number for trial in whole.trials] == list(range(6))
    assert whole.finished == 6
    assert whole.best_nll == min(trial.valid_nll for trial in whole.trials if trial.state == "complete")
    assert MADE(**whole.best_params).fit(TRAIN, X_valid=VALID).valid_nll_ == whole.best_nll


def test_the_folder_has_the_trials_the_best_parameters_and_a_picture(whole) -> None:
    written = json.loads((whole.folder / "trials.json").read_text())
    assert [trial["valid_nll"] for trial in written] == [trial.valid_nll for trial in whole.trials]
    assert all(trial["seconds"] > 0 and trial["epochs"] > 0 for trial in written)
    assert (whole.folder / "search.png").read_bytes().startswith(b"\x89PNG")
    best = tomllib.loads((whole.folder / "best.toml").read_text())
    assert tuple(best["hidden_sizes"]) == whole.best_params["hidden_sizes"]
    assert results(load(whole.folder)) == results(whole)


def test_a_search_is_a_function_of_its_seed(whole, tmp_path) -> None:
    assert results(search(tmp_path / "same", trials=4)) == results(whole)[:4]
    other = search(tmp_path / "other", trials=2, seed=1)
    assert results(other)[0] != results(whole)[0]
    assert other.best_params["random_state"] == 1


@pytest.mark.parametrize("event", [KeyboardInterrupt(), SystemExit()], ids=["stopped", "killed"])
def test_a_resumed_search_has_the_trials_of_an_uninterrupted_one(whole, tmp_path, at_trial, event) -> None:
    at_trial(3, event)
    with pytest.raises((Interrupted, SystemExit)) as raised:
        search(tmp_path / "search")
    if raised.type is Interrupted:
        assert "after 2 of 6 trials" in str(raised.value)
        assert [trial["state"] for trial in json.loads((tmp_path / "search" / "trials.json").read_text())][
            2
        ] == "waiting"
    # What a process leaves that is killed in the middle of a line.
    (tmp_path / "search" / "study.log.lock").touch()
    (tmp_path / "search" / "study.log.lock-notes.txt").write_text("mine")
    with (tmp_path / "search" / "study.log").open("a") as file:
        file.write('{"op_code": 4, "wor')
    at_trial(0, None)
    seen = []
    tuned = tune(TRAIN, VALID, folder=tmp_path / "search", resume=True, report=lambda trial: seen.append(trial.number))
    assert seen == [2, 3, 4, 5]
    assert results(tuned) == results(whole)
    assert (tmp_path / "search" / "study.log.lock-notes.txt").read_text() == "mine"


def test_a_process_that_is_killed_loses_nothing(whole, tmp_path) -> None:
    code = (
        "import os, signal, sys, test_search\nfrom made import MADE\nfit, count = MADE.fit, 0\n"
        "def patched(self, *args, after_epoch=None, **options):\n"
        "    global count\n    count += after_epoch is not None\n"
        "    kill = lambda epoch: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return fit(self, *args, after_epoch=kill if count == 4 else after_epoch, **options)\n"
        "MADE.fit = patched\ntest_search.search(sys.argv[1])"
    )
    here = Path(__file__).parent
    paths = os.pathsep.join(map(str, (here, here.parent, *sys.path)))
    command, env = [sys.executable, "-c", code, tmp_path / "search"], os.environ | {"PYTHONPATH": paths}
    killed = subprocess.run(command, env=env, capture_output=True)
    assert killed.returncode == -9, killed.stderr
    assert load(tmp_path / "search").finished == 3
    assert results(search(tmp_path / "search", resume=True)) == results(whole)


def test_parameters_that_kill_two_processes_count_as_failed(whole, tmp_path, at_trial) -> None:
    for number in (2, 1):
        at_trial(number, SystemExit())
        with pytest.raises(SystemExit):
            search(tmp_path / "search", resume=True)
    at_trial(0, None)
    tuned = search(tmp_path / "search", resume=True)
    assert [trial.state == "failed" for trial in tuned.trials] == [False, True] + [False] * 4
    assert "killed" in tuned.trials[1].reason
    assert tuned.trials[1].params == whole.trials[1].params


def test_several_processes_share_a_search_and_one_may_die(tmp_path) -> None:
    before, seen = set(multiprocessing.active_children()), []  # other tests may have left some, such as joblib's

    def report(trial) -> None:
        seen.append(trial.number)
        if len(seen) == 2:
            next(iter(set(multiprocessing.active_children()) - before)).kill()

    tuned = search(tmp_path / "search", trials=7, jobs=2, report=report)
    assert sorted(seen) == [trial.number for trial in tuned.trials]
    assert len(set(seen)) == len(seen) == tuned.finished == 7
    assert len({json.dumps(trial.params) for trial in tuned.trials}) == 7
    assert not set(multiprocessing.active_children()) - before


def test_trials_above_the_median_are_pruned(tmp_path) -> None:
    tuned = search(tmp_path / "search", trials=14, space={"learning_rate": [1e-2, 1e-7]}, seed=3)
    pruned = [trial for trial in tuned.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.params == {"learning_rate": 1e-7} and trial.epochs == 1 for trial in pruned)
    assert pruned[0].number >= 5
    assert tuned.best.params == {"learning_rate": 1e-2}
    # Unless trials differ in what is validated after each epoch.
    space = {"learning_rate": [1e-2, 1e-7], "validation_masks": [1, 2]}
    assert search(tmp_path / "unlike", trials=10, space=space, seed=3).count("complete") == 10


def test_a_trial_that_diverges_does_not_end_the_search(tmp_path) -> None:
    fixed = FIXED | {"optimizer": "sgd"}
    tuned = search(tmp_path / "search", space={"learning_rate": [0.1, 1e37]}, fixed=fixed)
    states = {trial.params["learning_rate"]: trial.state for trial in tuned.trials}
    assert states == {0.1: "complete", 1e37: "failed"}
    assert any("not finite" in (trial.reason or "") for trial in tuned.trials)
    with pytest.raises(Diverged, match="none of 2 trials"):
        search(tmp_path / "hopeless", space={"learning_rate": [1e37]}, fixed=fixed, trials=2)
    # So is one whose parameters do not go together.
    together = {"optimizer": ["adagrad", "adam"], "momentum": [0.5]}
    tuned = search(tmp_path / "momentum", space=together)
    assert {trial.state for trial in tuned.trials if trial.params["optimizer"] == "adagrad"} == {"failed"}


def test_time_ends_a_search_between_trials(tmp_path) -> None:
    assert 1 <= search(tmp_path / "search", trials=1000, timeout=0.5).finished < 1000


def test_only_the_same_search_is_resumed(whole) -> None:
    with pytest.raises(QuestionError, match="resume=True"):
        search(whole.folder)
    with pytest.raises(QuestionError, match="over another space: there, 'average' is left out, here"):
        search(whole.folder, resume=True, space=SPACE | {"average": [0.5]})
    with pytest.raises(QuestionError, match="other fixed parameters: there, 'max_epochs' is 2, here 3"):
        search(whole.folder, resume=True, fixed=FIXED | {"max_epochs": 3})
    with pytest.raises(QuestionError, match="with seed 0, not 5"):
        search(whole.folder, resume=True, seed=5)
    with pytest.raises(DataError, match="other rows"):
        tune(TRAIN[1:], VALID, folder=whole.folder, resume=True)


def test_a_folder_of_other_files_is_refused(tmp_path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match="not of a search"):
        search(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [*lines[:2], "{}\n", *lines[2:]],
        lambda lines: lines[2:],
        lambda lines: ["nonsense\n"],
        lambda lines: ["nonsense"],
        lambda lines: [lines[0][:-2] + "\n"],
    ],
)
def test_a_damaged_search_is_refused_and_stays_as_it_is(whole, tmp_path, damage) -> None:
    content = "".join(damage((whole.folder / "study.log").read_text().splitlines(keepends=True)))
    (tmp_path / "study.log").write_text(content)
    with pytest.raises(ModelError, match="damaged"):
        search(tmp_path, resume=True)
    assert (tmp_path / "study.log").read_text() == content


def test_rows_with_missing_leave_masks_unlimited(tmp_path) -> None:
    rows = TRAIN[:60, :6].astype(float)
    rows[0, 0] = np.nan
    fixed = {"max_epochs": 1, "hidden_sizes": (4,), "evaluation_masks": 2}
    tuned = tune(rows, folder=tmp_path / "search", fixed=fixed, trials=1)
    assert "masks" not in tuned.space
    assert MADE(**tuned.best_params).fit(rows).valid_nll_ == tuned.best_nll
    with pytest.raises(DataError, match="has a missing value, but only"):
        tune(rows, folder=tmp_path / "other", fixed=fixed, space={"masks": ["unlimited", 4]}, trials=1)
    assert not (tmp_path / "other").exists()


def test_a_search_needs_validation_rows(tmp_path) -> None:
    with pytest.raises(QuestionError, match="needs validation rows"):
        tune(TRAIN[:60], folder=tmp_path / "other", fixed=FIXED | {"validation_fraction": 0.0}, trials=1)
    assert not (tmp_path / "other").exists()


def test_the_command_ends_with_what_fit_takes(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", TRAIN)
    (tmp_path / "space.toml").write_text('hidden-sizes = ["4", "6"]\ndropout = {low = 0.0, high = 0.5}\n')
    (tmp_path / "fixed.toml").write_text('max_epochs = 2\nmasks = 2\ncolumns = {x0 = "binary"}\nclip = 0\n')
    arguments = ["tune", "rows.npy", "--out", "search", "--space", "space.toml", "--config", "fixed.toml"]
    result = run(*arguments, "--trials", 3)
    assert re.search(r"trial 2: NLL [\d.]+ after 2 epochs", result.stderr)
    assert "The best 3 of 3 trials" in result.stdout
    assert "made fit rows.npy --config search/best.toml --out MODEL" in result.stdout
    assert "made fit rows.npy --config search/best.toml --out MODEL" in (tmp_path / "search/best.toml").read_text()
    refused = run(*arguments, code=2)
    assert "--resume" in refused.stderr
    facts = run_json("tune", "rows.npy", "--out", "search", "--resume", "--trials", 4, "--quiet")
    assert facts["trials"] == 4
    fitted = run_json("fit", "rows.npy", "--config", "search/best.toml", "--out", "model", "--quiet")
    assert fitted["valid_nll"] == facts["best_nll"]
    done = run("tune", "rows.npy", "--out", "search", "--resume")
    assert "4 of 4 trials are finished" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["digits"], 2, "--out"),
        (["digits", "--out", "X", "--trials", "0"], 2, "--trials"),
        (["digits", "--out", "X", "--jobs", "0"], 2, "--jobs"),
        (["digits", "--out", "X", "--timeout", "0"], 2, "timeout"),
        (["digits", "--out", "X", "--space", "nothing.toml"], 3, "--space"),
        (["digits", "--out", "X", "--space", "bad.toml"], 2, "'layers'"),
        (["digits", "--out", "X", "--config", "bad.toml"], 2, "'layers'"),
        (["nothing", "--out", "X"], 3, "neither a file nor a named dataset"),
        (["digits", "--out", "bad.toml"], 2, "is a file"),
    ],
)
def test_every_error_is_a_sentence_and_a_code(tmp_path, monkeypatch, arguments, code, said) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text("layers = [3]\n")
    result = run("tune", *arguments, code=code)
    assert said in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "X").exists()


def test_without_optuna_the_remedy_is_named(tmp_path, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("made.tuning", "optuna"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("made.tuning")
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'made[tune]'" in run("tune", "digits", "--out", tmp_path / "X", code=2).stderr


def test_help_needs_neither_torch_nor_optuna() -> None:
    code = (
        "import sys\nfrom made.cli import main\ntry: main()\n"
        "finally: assert not {'torch', 'sklearn', 'pyarrow', 'pydantic', 'optuna'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, "tune", "--help"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {"--json", "--quiet", "--seed", "--resume"} <= set(re.findall(r"--[a-z-]+", result.stdout))
