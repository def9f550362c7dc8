"""The optuna study of a search: a journal from which an interrupted search resumes.

FOLDER/study.log has a line of JSON for each event, and several processes may write to it. A trial of ours is one optuna
trial, or several with the same number in their attributes if it was retried; the last one counts. An optuna trial fails
if its process died. A trial that could not be trained is "pruned", with a reason: the sampler learns from those.

The study of several machines is in a storage that all of them reach. Each process then sends heartbeats while it
trains, and takes over the trials of processes whose heartbeats stop.
"""

from __future__ import annotations

import json
import os
import secrets
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from made.errors import ModelError, QuestionError
from made.tuning.result import Trial
from made.tuning.space import estimator_values

LOG = "study.log"
NAME = "made"  # of the study in the journal, and of its attribute with the stored facts
NUMBER, DEATHS, BEAT = "number", "deaths", "beat"  # attributes of optuna's trials
MOST_DEATHS = 2  # of processes that ran the same trial, before it counts as failed
BEATS, STALE = 10.0, 60.0  # seconds between heartbeats, and without one until a process counts as dead
STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}


@dataclass(frozen=True)
class Place:
    """Where the study of a search is: in a journal, or in a database.

    Attributes:
        file: the journal.
        url: the database.
        shared: whether other machines search there, too.
        owner: a name of this process, with which its trials are marked.
    """

    file: Path | None
    url: str | None = None
    shared: bool = False
    owner: str = field(default_factory=lambda: secrets.token_hex(8))

    @classmethod
    def of(cls, folder: Path, storage: str | None) -> Place:
        """The journal of a folder, or a storage: a file or the URL of a database."""
        if storage is None:
            return cls((folder / LOG).absolute())
        return cls(None, storage, shared=True) if "://" in storage else cls(Path(storage).absolute(), shared=True)

    def __str__(self) -> str:
        if self.url is None:
            return str(self.file)
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            return make_url(self.url).render_as_string(hide_password=True)
        except ArgumentError:
            return self.url.partition("://")[0] + "://..."

    @property
    def called(self) -> str:
        """Its name in messages: the folder, if the search is not shared."""
        return str(self) if self.shared or self.file is None else str(self.file.parent)

    def open(self) -> optuna.storages.BaseStorage:
        """The storage of optuna."""
        if self.file is not None:
            try:
                backend = JournalFileBackend(str(self.file), lock_obj=JournalFileOpenLock(str(self.file)))
                return optuna.storages.JournalStorage(backend)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError):
                raise _damaged(self) from None
        from sqlalchemy.exc import SQLAlchemyError

        assert self.url is not None
        try:
            return optuna.storages.RDBStorage(self.url)
        except (SQLAlchemyError, ImportError, RuntimeError, ValueError) as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0].rstrip(".")
            raise QuestionError(f"the storage {self} cannot be used: {reason}.", argument="storage") from None


def begin(place: Place, facts: dict[str, Any], trials: int | None, usual: int) -> int:
    """Create the study, or update the existing one, and return the number of trials wanted.

    Arguments:
        place: its place, in a folder that the caller has locked, unless it is shared.
        facts: what must not change when the search is resumed.
        trials: the number of trials; default: the stored one.
        usual: the number if none is stored.
    """
    _repair(place)
    study = optuna.create_study(study_name=NAME, storage=place.open(), load_if_exists=True)
    wanted: int = trials or study.user_attrs.get("trials", usual)
    for key, value in ((NAME, facts), ("trials", wanted)):
        if study.user_attrs.get(key) != value:
            study.set_user_attr(key, value)
    return wanted


def open_study(place: Place) -> optuna.Study:
    """The existing study."""
    return optuna.load_study(study_name=NAME, storage=place.open())


def stored_facts(place: Place) -> dict[str, Any] | None:
    """The facts stored with a search, validated; None if there is none."""
    log = place.file
    if log is not None:
        if not log.is_file() or log.stat().st_size == 0:
            return None
        _check_lines(place, log)
    names = optuna.get_all_study_names(place.open())
    if not names and (log is None or b"\n" not in log.read_bytes()):  # not one line was written
        return None
    if log is None and NAME not in names:
        return None
    facts = open_study(place).user_attrs.get(NAME) if NAME in names and (log is None or names == [NAME]) else {}
    kinds = {"rows": str, "space": dict, "fixed": dict, "seed": int}
    sound = isinstance(facts, dict) and all(isinstance(facts.get(key), kind) for key, kind in kinds.items())
    if facts is not None and not sound:
        raise _damaged(place)
    return facts


class Watch:
    """Finds the trials of dead processes: all that run, unless other machines search, too.

    The clocks of machines may differ, so the time since the last change of a heartbeat is measured here.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.seen: dict[int, tuple[Any, float]] = {}  # the last sign of life of a trial, and when it was first seen

    def recover(self, *, stopped: bool) -> optuna.Study:
        """Enqueue the trials of dead processes again, and return the study.

        Arguments:
            stopped: whether the user ended the processes, which does not count as a death of the trial.
        """
        _repair(self.place)
        study = open_study(self.place)
        for each in self._dead(study, stopped):
            number, deaths = each.user_attrs.get(NUMBER), each.user_attrs.get(DEATHS, 0) + (not stopped)
            # Without a number, training had not started: the next trial gets the number. If there is a later try, this
            # one was enqueued before by a process that died before the next line.
            again = number is not None and deaths < MOST_DEATHS and last_tries(study)[number].number == each.number
            if not self.place.shared:
                if again:
                    study.enqueue_trial(each.params, user_attrs={NUMBER: number, DEATHS: deaths})
                study.tell(each.number, state=TrialState.FAIL)
                continue
            with suppress(ValueError, UpdateFinishedTrialError):  # another process was first
                study.tell(each.number, state=TrialState.FAIL)
                if again:
                    study.enqueue_trial(each.params, user_attrs={NUMBER: number, DEATHS: deaths})
        return study

    def _dead(self, study: optuna.Study, stopped: bool) -> list[FrozenTrial]:
        if not self.place.shared:
            return running(study)
        now, dead = time.monotonic(), []
        for each in running(study):
            beat = each.user_attrs.get(BEAT)
            if each.number not in self.seen or self.seen[each.number][0] != beat:
                self.seen[each.number] = (beat, now)
            own = stopped and beat is not None and beat[0] == self.place.owner
            if own or now - self.seen[each.number][1] > STALE:
                dead.append(each)
        return dead


def running(study: optuna.Study) -> list[FrozenTrial]:
    """The tries that some process runs, or was running when it died."""
    return study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


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


def _damaged(place: Place) -> ModelError:
    return ModelError(f"{place} is damaged, or not of a search: choose another {'one' if place.shared else 'folder'}.")


def _check_lines(place: Place, log: Path) -> None:
    """Refuse a damaged journal, to which optuna would append; an incomplete last line is repaired later."""
    start = b'{"op_code":'
    for line in log.read_bytes().splitlines(keepends=True):
        if not line.startswith(start[: len(line)]):
            raise _damaged(place)
        try:
            if line.endswith(b"\n"):
                json.loads(line)
        except ValueError:
            raise _damaged(place) from None


def _repair(place: Place) -> None:
    """Remove what a killed process may leave behind: an incomplete last line, and the lock of the journal.

    Others may be writing to a shared one: there, optuna breaks a lock that was not released for 30 seconds.
    """
    log = place.file
    if log is None or place.shared:
        return
    for file in log.parent.glob(f"{LOG}.lock*"):
        if file.is_file() and file.stat().st_size == 0:  # as journal locks are, whatever their names
            file.unlink(missing_ok=True)
    if log.exists() and not (text := log.read_bytes()).endswith(b"\n"):
        os.truncate(log, text.rfind(b"\n") + 1)
