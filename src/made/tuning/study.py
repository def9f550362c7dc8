"""The optuna study of a search: a journal from which an interrupted search resumes.

FOLDER/study.log has a line of JSON for each event, and several processes may write to it. A trial of ours is one optuna
trial, or several with the same number in their attributes if it was retried; the last one counts. An optuna trial fails
if its process died. A trial that could not be trained is "pruned", with a reason: the sampler learns from those.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from made.errors import ModelError
from made.tuning.result import Trial
from made.tuning.space import estimator_values

LOG = "study.log"
NAME = "made"  # of the study in the journal, and of its attribute with the stored facts
NUMBER, DEATHS = "number", "deaths"  # attributes of optuna's trials
MOST_DEATHS = 2  # of processes that ran the same trial, before it counts as failed
STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}


def begin(folder: Path, facts: dict[str, Any], trials: int | None, usual: int) -> int:
    """Create the study of a folder, or update the existing one, and return the number of trials wanted.

    Arguments:
        folder: the folder, locked by the caller.
        facts: what must not change when the search is resumed.
        trials: the number of trials; default: the stored one.
        usual: the number if none is stored.
    """
    _repair(folder)
    study = optuna.create_study(study_name=NAME, storage=_storage(folder), load_if_exists=True)
    wanted: int = trials or study.user_attrs.get("trials", usual)
    for key, value in ((NAME, facts), ("trials", wanted)):
        if study.user_attrs.get(key) != value:
            study.set_user_attr(key, value)
    return wanted


def open_study(folder: Path) -> optuna.Study:
    """The existing study of a folder."""
    return optuna.load_study(study_name=NAME, storage=_storage(folder))


def stored_facts(folder: Path) -> dict[str, Any] | None:
    """The facts stored with the search in a folder, validated; None if there is none."""
    log = folder / LOG
    if not log.is_file() or log.stat().st_size == 0:
        return None
    _check_lines(log)
    names = optuna.get_all_study_names(_storage(folder))
    if not names and b"\n" not in log.read_bytes():  # not one line was written
        return None
    facts = open_study(folder).user_attrs.get(NAME) if names == [NAME] else {}
    kinds = {"rows": str, "space": dict, "fixed": dict, "seed": int}
    sound = isinstance(facts, dict) and all(isinstance(facts.get(key), kind) for key, kind in kinds.items())
    if facts is not None and not sound:
        raise _damaged(log)
    return facts


def recover(folder: Path, *, stopped: bool) -> optuna.Study:
    """Enqueue the trials of dead processes again, and return the study.

    Arguments:
        folder: the folder, locked by the caller.
        stopped: whether the user ended the processes, which does not count as a death of the trial.
    """
    _repair(folder)
    study = open_study(folder)
    for each in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        number, deaths = each.user_attrs.get(NUMBER), each.user_attrs.get(DEATHS, 0) + (not stopped)
        # Without a number, training had not started: the next trial gets the number. If there is a later try, this one
        # was enqueued before by a process that died before the next line.
        if number is not None and deaths < MOST_DEATHS and last_tries(study)[number].number == each.number:
            study.enqueue_trial(each.params, user_attrs={NUMBER: number, DEATHS: deaths})
        study.tell(each.number, state=TrialState.FAIL)
    return study


def last_tries(study: optuna.Study) -> dict[int, FrozenTrial]:
    """The last try of each trial, by our number."""
    tries = study.get_trials(deepcopy=False)
    return {each.user_attrs[NUMBER]: each for each in tries if NUMBER in each.user_attrs}


def next_number(study: optuna.Study) -> int:
    """The number of the next new trial."""
    return 1 + max(last_tries(study), default=-1)


def trials_of(study: optuna.Study) -> list[Trial]:
    """All trials, by number."""
    return [trial_of(each) for _, each in sorted(last_tries(study).items())]


def trial_of(each: FrozenTrial) -> Trial:
    """A trial, from its last try."""
    facts, died = each.user_attrs, each.state is TrialState.FAIL
    reason = "every process that ran it was killed." if died else facts.get("reason")
    return Trial(
        number=facts[NUMBER],
        params=estimator_values(each.params or each.system_attrs.get("fixed_params", {})),
        valid_nll=each.values[0] if each.values else None,
        epochs=facts.get("epochs", 0),
        seconds=facts.get("seconds", 0.0),
        state="failed" if reason else STATES.get(each.state, "waiting"),
        reason=reason,
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Silence optuna, except for warnings other than those about experimental features."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _storage(folder: Path) -> optuna.storages.JournalStorage:
    file = str((folder / LOG).absolute())
    try:
        return optuna.storages.JournalStorage(JournalFileBackend(file, lock_obj=JournalFileOpenLock(file)))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError):
        raise _damaged(folder / LOG) from None


def _damaged(log: Path) -> ModelError:
    return ModelError(f"{log} is damaged, or not of a search: choose another folder.")


def _check_lines(log: Path) -> None:
    """Refuse a damaged journal, to which optuna would append; an incomplete last line is repaired later."""
    start = b'{"op_code":'
    for line in log.read_bytes().splitlines(keepends=True):
        if not line.startswith(start[: len(line)]):
            raise _damaged(log)
        try:
            if line.endswith(b"\n"):
                json.loads(line)
        except ValueError:
            raise _damaged(log) from None


def _repair(folder: Path) -> None:
    """Remove what a killed process may leave behind: an incomplete last line, and the lock of the journal."""
    for file in folder.glob(f"{LOG}.lock*"):
        if file.is_file() and file.stat().st_size == 0:  # as the locks of the journal are, whatever their names
            file.unlink(missing_ok=True)
    log = folder / LOG
    if log.exists() and not (text := log.read_bytes()).endswith(b"\n"):
        os.truncate(log, text.rfind(b"\n") + 1)
