"""The search for the parameters with the best validation likelihood.

The parameters of a trial are sampled with a seed that is a function of (seed, trial number), given the trials before
it. So a search in one process that is interrupted and resumed has the same trials as one that is not.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from made.errors import DataError, Diverged, Interrupted, QuestionError
from made.estimator import MADE
from made.hints import argument, hint
from made.io.lock import hold
from made.tables.table import Table
from made.tuning.result import Trial, Tuned
from made.tuning.space import Space, check_fixed, check_space, default_space
from made.tuning.study import LOG, Place, Watch, begin, last_tries, open_study, quiet, running, stored_facts, trials_of
from made.tuning.workers import Job, run_parallel, run_serial

Values: TypeAlias = Mapping[str, Any]

TRIALS = 50
LOCK_SECONDS = 1.0  # to wait for another search in the same folder
WAITING = 1.0  # seconds between looks at the trials of other machines


def tune(
    train: Any,
    valid: Any = None,
    *,
    folder: str | os.PathLike[str],
    space: Values | None = None,
    fixed: Values | None = None,
    trials: int | None = None,
    timeout: float | None = None,
    jobs: int = 1,
    seed: int | None = None,
    resume: bool = False,
    storage: str | None = None,
    command: str = "made fit DATA --config best.toml --out MODEL",
    report: Callable[[Trial], None] = lambda trial: None,
) -> Tuned:
    """Search for the parameters of :class:`made.MADE` with the best validation likelihood.

    Arguments:
        train: the training rows, in any form that ``MADE.fit`` takes.
        valid: the validation rows; default: ``validation_fraction`` of the training rows, the same in every trial.
        folder: the folder of the search: study.log, trials.json, best.toml, search.png.
        space: a list of choices or a range ``{"low", "high", "log", "step"}`` for each searched parameter; default:
            :func:`made.tuning.default_space`.
        fixed: parameters of all trials, such as ``{"max_epochs": 100}``.
        trials: the number of trials, including those in the folder; default: 50.
        timeout: the seconds after which no trial is started.
        jobs: the number of parallel processes, each with one thread. They import the calling script, which should
            therefore call this under ``if __name__ == "__main__":``.
        seed: seed of the search and of every trial, so that the best one can be reproduced exactly; default: 0.
        resume: continue the search in the folder. The rows must be the same; space, fixed, trials and seed default to
            those of the folder.
        storage: a file on a shared file system, or the URL of a database such as ``postgresql://host/name``, by which
            several machines search together: each calls this, with the same rows and a folder of its own. A search that
            is there is joined.
        command: the command in best.toml that trains the best model.
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
    place = Place.of(folder, storage)
    with quiet():
        before = _check_folder(folder, place, resume)
        searched = _searched((train, valid), space, fixed, seed, before)
        job = Job(place, train, valid, *searched, jobs)
        facts = _facts(job)
        _check_same(before or facts, facts, place)
        with hold(folder, wait=LOCK_SECONDS):
            wanted = begin(place, facts, trials, TRIALS)
            if place.shared:  # of two that began at once, one was first
                _check_same(stored_facts(place) or facts, facts, place)
            watch, stopped = Watch(place), 0
            try:
                deadline = math.inf if timeout is None else time.monotonic() + timeout
                _rounds(replace(job, wanted=wanted), watch, deadline, report)
            except KeyboardInterrupt as interrupted:
                stopped = interrupted.signal if isinstance(interrupted, Interrupted) else signal.SIGINT
            study = watch.recover(stopped=bool(stopped))
            tuned = Tuned(folder, trials_of(study), wanted, job.space, job.fixed, job.seed)
            tuned.write(command)
    if stopped:
        raise Interrupted(f"the search was stopped after {tuned.finished} of {wanted} trials.", stopped)
    if not tuned.finished:
        raise QuestionError(f"no trial was started in {timeout} seconds: allow more ({argument('timeout')}).")
    if tuned.best is None:
        first = next(trial for trial in tuned.trials if trial.reason)
        raise Diverged(f"none of {tuned.finished} trials completed. Trial {first.number}: {first.reason}")
    return tuned


def load(folder: str | os.PathLike[str], storage: str | None = None) -> Tuned | None:
    """The search in a folder, or in a storage, finished or not; None if there is none."""
    with quiet():
        folder = Path(folder)
        place = Place.of(folder, storage)
        facts = stored_facts(place)
        if facts is None:
            return None
        study = open_study(place)
        wanted = study.user_attrs.get("trials", TRIALS)
        return Tuned(folder, trials_of(study), wanted, facts["space"], facts["fixed"], facts["seed"])


def _check_folder(folder: Path, place: Place, resume: bool) -> dict[str, Any] | None:
    """The stored facts of a search to resume or join; None for a new one; refuses folders with anything else."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file, and is not overwritten.")
    if place.shared and stored_facts(Place.of(folder, None)) is not None:
        raise QuestionError(f"{folder} has a search of its own: choose another folder.")
    before = stored_facts(place)
    if before is not None and not resume and not place.shared:
        raise QuestionError(f"{folder} has a search: resume it ({hint(resume=True)}), or choose another folder.")
    others = [file for file in folder.iterdir() if not file.name.startswith((LOG, "."))] if folder.is_dir() else []
    if before is None and others:
        raise FileExistsError(f"{folder} has files that are not of a search: choose another folder.")
    return before


def _searched(
    rows: tuple[Any, Any], space: Values | None, fixed: Values | None, seed: int | None, before: Values | None
) -> tuple[Space, dict[str, Any], int]:
    """The space, the fixed parameters and the seed, validated; what is None defaults to the stored facts."""
    stored = before or {"space": None, "fixed": {}, "seed": 0}
    seed = next(each for each in (seed, (fixed or {}).get("random_state"), stored["seed"]) if each is not None)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise QuestionError(f"'seed' should be a whole number from 0 to {2**32 - 1}, not {seed!r}.")
    kept = check_fixed(stored["fixed"] if fixed is None else fixed)
    if space is None:
        space = stored["space"] or default_space(kept, missing=_has_missing(*rows, kept))
    return check_space(space, kept), kept, seed


def _has_missing(train: Any, valid: Any, fixed: Mapping[str, Any]) -> bool:
    """Whether a value is missing, which needs unlimited masks."""
    schema = _draft({"columns": fixed.get("columns", "auto")}, 0, train, valid).model_.schema
    return any(np.isnan(schema.encode(Table.of(rows))).any() for rows in (train, valid) if rows is not None)


def _draft(parameters: Mapping[str, Any], seed: int, train: Any, valid: Any) -> MADE:
    """A small untrained model, whose fit validates the rows."""
    small = {"hidden_sizes": (1,), "direct": False, "max_epochs": 0, "evaluation_masks": 1, "random_state": seed}
    return MADE(**{**parameters, **small}).fit(train, X_valid=valid)


def _facts(job: Job) -> dict[str, Any]:
    """What must not change when the search is resumed."""
    # A finite number of masks if there is one, since it is incompatible with missing values.
    masks = job.space.get("masks", [job.fixed.get("masks", "unlimited")])
    masks = masks["low"] if isinstance(masks, dict) else min(masks, key=lambda choice: choice == "unlimited")
    config = _draft({**job.fixed, "masks": masks}, job.seed, job.train, job.valid).model_.config
    data, columns = config.data, config.columns
    if data.valid_rows == 0:
        raise QuestionError("the search needs validation rows: pass them, or a 'validation_fraction' above 0.")
    rows = hashlib.sha256(json.dumps([data.sha256, columns]).encode()).hexdigest()
    return {"rows": rows, "space": job.space, "fixed": job.fixed, "seed": job.seed}


def _check_same(before: dict[str, Any], facts: dict[str, Any], place: Place) -> None:
    """Refuse to resume a different search."""
    folder, other = place.called, "storage" if place.shared else "folder"
    for key, words in (("space", "over another space"), ("fixed", "with other fixed parameters")):
        for name in sorted(before[key].keys() | facts[key].keys()):
            old, new = (json.dumps(each[key][name]) if name in each[key] else "left out" for each in (before, facts))
            if old != new:
                differing = f"there, {name!r} is {old}, here {new}"
                remedy = f"Resume with the same, which is the default, or choose another {other}."
                raise QuestionError(f"{folder} searches {words}: {differing}. {remedy}")
    old, new = before["seed"], facts["seed"]
    if old != new:
        remedy = f"resume with the same one, or choose another {other}"
        raise QuestionError(f"{folder} searches with seed {old}, not {new}: {remedy}.")
    if before["rows"] != facts["rows"]:
        raise DataError(f"{folder} searches on other rows: resume with the same ones, or choose another {other}.")


def _rounds(job: Job, watch: Watch, deadline: float, report: Callable[[Trial], None]) -> None:
    """Run trials until the wanted number is reached; further rounds follow only if processes die or others search, too.

    A process with nothing left to start waits for the others, and takes over the trials of dead ones.
    """
    tries = -1
    while True:
        study = watch.recover(stopped=False)
        left = job.wanted - sum(each.state.is_finished() for each in last_tries(study).values())
        if left <= 0 or time.monotonic() >= deadline:
            return
        left -= len(running(study))
        if left <= 0:
            time.sleep(WAITING)
            continue
        before, tries = tries, len(study.get_trials(deepcopy=False))
        if tries == before:
            raise ChildProcessError(
                "no process could start a trial. Remedy: see their messages above, or use one job; a script should "
                "call tune under if __name__ == '__main__'."
            )
        (run_serial if job.processes == 1 else run_parallel)(job, left, deadline, report)
