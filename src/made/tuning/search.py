"""The search: from rows and a space to the parameters under which validation rows are likeliest.

A trial has a number: its parameters are drawn by a sampler whose seed is a function of (seed, number), from what the
trials before it gave. So a search by one process that is stopped anywhere, and gone on with, ends with the same trials
as one that was never stopped.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from made.errors import DataError, Diverged, Interrupted, QuestionError
from made.estimator import MADE
from made.hints import argument, hint
from made.io.lock import hold
from made.tables.table import Table
from made.tuning.result import Trial, Tuned
from made.tuning.space import Space, check_fixed, check_space, default_space
from made.tuning.study import LOG, begin, count_finished, open_study, quiet, recover, stored_facts, trials_of
from made.tuning.work import Job, work_alone, work_together

__all__ = ["load", "tune"]

TRIALS = 50
WAIT = 1.0  # seconds, for another search in the same folder to end


def tune(
    train: Any,
    valid: Any = None,
    *,
    folder: str | os.PathLike[str],
    space: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    trials: int | None = None,
    timeout: float | None = None,
    jobs: int = 1,
    seed: int | None = None,
    resume: bool = False,
    command: str = "made fit DATA --config best.toml --out MODEL",
    report: Callable[[Trial], None] = lambda trial: None,
) -> Tuned:
    """Search for the parameters of :class:`made.MADE` under which validation rows are likeliest.

    Arguments:
        train: the rows to train on, whatever ``MADE.fit`` takes.
        valid: the rows to choose by; unless told, ``validation_fraction`` of the others, the same in every trial.
        folder: where the search is kept: study.log, trials.json, best.toml, search.png.
        space: for each parameter that is searched a list of choices, or a range ``{"low", "high", "log", "step"}``;
            :func:`made.tuning.default_space` unless told.
        fixed: parameters for all trials, such as ``{"max_epochs": 100}``.
        trials: how many, together with those that the folder has; 50 unless told.
        timeout: the seconds after which no trial is begun.
        jobs: how many processes train at the same time, each with one thread. They import the script that calls this,
            which should therefore do so under ``if __name__ == "__main__":``.
        seed: of the search and of every trial, so that the best one can be trained again, to the same weights; 0
            unless told.
        resume: go on with what the folder has. The rows have to be the same; space, fixed, trials and seed are those of
            before unless told.
        command: what best.toml says about how to train the best model.
        report: called after each trial.

    Example:
        >>> tuned = tune(rows, fixed={"max_epochs": 20}, trials=10, folder="search")  # doctest: +SKIP
        >>> MADE(**tuned.best_params).fit(rows).valid_nll_ == tuned.best_nll  # doctest: +SKIP
        True
    """
    for name, number in (("trials", TRIALS if trials is None else trials), ("jobs", jobs)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise QuestionError(f"{argument(name)} should be a whole number, at least 1, not {number!r}.")
    if timeout is not None and not timeout > 0:
        raise QuestionError(f"{argument('timeout')} should be a number of seconds above 0, not {timeout!r}.")
    folder = Path(folder)
    with quiet():
        before = _check_folder(folder, resume)
        job = _job(folder, train, valid, space, fixed, seed, before, jobs)
        facts = _facts(job)
        if before is not None:
            _check_same(before, facts, folder)
        with hold(folder, wait=WAIT):
            wanted = begin(folder, facts, trials, TRIALS)
            stopped = 0
            try:
                _rounds(job, wanted, math.inf if timeout is None else time.monotonic() + timeout, report)
            except KeyboardInterrupt as interrupted:
                stopped = interrupted.signal if isinstance(interrupted, Interrupted) else signal.SIGINT
            study = recover(folder, stopped=bool(stopped))
            tuned = Tuned(folder, trials_of(study), wanted, job.space, job.fixed, job.seed)
            tuned.write(command)
    if stopped:
        raise Interrupted(f"the search was stopped after {tuned.finished} of {wanted} trials.", stopped)
    if not tuned.finished:
        raise QuestionError(f"no trial was begun in {timeout} seconds: give it more ({argument('timeout')}).")
    if tuned.best is None:
        first = next(trial for trial in tuned.trials if trial.reason)
        raise Diverged(f"none of {tuned.finished} trials was completed. Trial {first.number}: {first.reason}")
    return tuned


def load(folder: str | os.PathLike[str]) -> Tuned | None:
    """The search in a folder, as far as it has come; None if there is none."""
    with quiet():
        folder = Path(folder)
        facts = stored_facts(folder)
        if facts is None:
            return None
        study = open_study(folder)
        wanted = study.user_attrs.get("trials", TRIALS)
        return Tuned(folder, trials_of(study), wanted, facts["space"], facts["fixed"], facts["seed"])


def _check_folder(folder: Path, resume: bool) -> dict[str, Any] | None:
    """What the search in the folder was begun with, if there is one, and it is to be gone on with; else refused."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file, and is not written over.")
    before = stored_facts(folder)
    if before is not None and not resume:
        raise QuestionError(f"{folder} has a search: go on with it ({hint(resume=True)}), or choose another folder.")
    others = [file for file in folder.iterdir() if not file.name.startswith((LOG, "."))] if folder.is_dir() else []
    if before is None and others:
        raise FileExistsError(f"{folder} has files that are not of a search of made: choose another folder.")
    return before


def _job(
    folder: Path,
    train: Any,
    valid: Any,
    space: Mapping[str, Any] | None,
    fixed: Mapping[str, Any] | None,
    seed: int | None,
    before: dict[str, Any] | None,
    jobs: int,
) -> Job:
    """What is to be done, checked; what is not told is as before."""
    stored = before or {"space": None, "fixed": {}, "seed": 0}
    own_seed = None if fixed is None else fixed.get("random_state")
    seed = next(each for each in (seed, own_seed, stored["seed"]) if each is not None)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise QuestionError(f"'seed' should be a whole number from 0 to {2**32 - 1}, not {seed!r}.")
    kept = check_fixed(stored["fixed"] if fixed is None else fixed)
    if space is None:
        space = stored["space"] or default_space(kept, holes=_has_holes(train, valid, kept))
    return Job(folder.absolute(), train, valid, check_space(space, kept), kept, seed, jobs)


def _has_holes(train: Any, valid: Any, fixed: Mapping[str, Any]) -> bool:
    """Whether some entry is not observed, so that only unlimited masks will do."""
    schema = _draft({"columns": fixed.get("columns", "auto")}, 0, train, valid).model_.schema
    return any(np.isnan(schema.encode(Table.of(rows))).any() for rows in (train, valid) if rows is not None)


def _draft(parameters: Mapping[str, Any], seed: int, train: Any, valid: Any) -> MADE:
    """A small model that is not trained, but knows the rows, or refuses them."""
    small = {"hidden_sizes": (1,), "direct": False, "max_epochs": 0, "evaluation_masks": 1, "random_state": seed}
    return MADE(**{**parameters, **small}).fit(train, X_valid=valid)


def _facts(job: Job) -> dict[str, Any]:
    """What has to be the same when the search is gone on with."""
    draft = _draft({**job.fixed, "masks": _hardest_masks(job.space, job.fixed)}, job.seed, job.train, job.valid)
    data, columns = draft.model_.config.data, draft.model_.config.columns
    if data.valid_rows == 0:
        raise QuestionError("the search needs rows to choose by: give it some, or a 'validation_fraction' above 0.")
    rows = hashlib.sha256(json.dumps([data.sha256, columns]).encode()).hexdigest()
    return {"rows": rows, "space": job.space, "fixed": job.fixed, "seed": job.seed}


def _hardest_masks(space: Space, fixed: Mapping[str, Any]) -> Any:
    """A finite number of masks if there will be any, because that is what rows with holes are refused for."""
    masks = space.get("masks", [fixed.get("masks", "unlimited")])
    return masks["low"] if isinstance(masks, dict) else min(masks, key=lambda choice: choice == "unlimited")


def _check_same(before: dict[str, Any], facts: dict[str, Any], folder: Path) -> None:
    """Refuse to go on with another search."""
    for key, words in (("space", "over another space"), ("fixed", "with other fixed parameters")):
        for name in sorted(before[key].keys() | facts[key].keys()):
            old, new = (json.dumps(each[key][name]) if name in each[key] else "left out" for each in (before, facts))
            if old != new:
                raise QuestionError(
                    f"{folder} searches {words}: there, {name!r} is {old}, here {new}. Go on with the same, which "
                    "need not be told again, or choose another folder."
                )
    if before["seed"] != facts["seed"]:
        raise QuestionError(
            f"{folder} searches with seed {before['seed']}, not {facts['seed']}: go on with the same one, or choose "
            "another folder."
        )
    if before["rows"] != facts["rows"]:
        raise DataError(f"{folder} searches on other rows: go on with the same ones, or choose another folder.")


def _rounds(job: Job, wanted: int, deadline: float, report: Callable[[Trial], None]) -> None:
    """Rounds of trials until there are as many as wanted: one round, unless processes die."""
    tries = -1
    while True:
        study = recover(job.folder, stopped=False)
        left, before = wanted - count_finished(study), tries
        if left <= 0 or time.monotonic() >= deadline:
            return
        tries = len(study.get_trials(deepcopy=False))
        if tries == before:
            raise ChildProcessError(
                "no process could begin a trial. Remedy: what they said above, or one job; a script should call tune "
                "under if __name__ == '__main__'."
            )
        (work_alone if job.processes == 1 else work_together)(job, left, deadline, report)
