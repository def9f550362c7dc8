"""Running trials, in this process or in several."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import optuna
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from made.errors import DataError, Diverged, is_out_of_memory
from made.estimator import MADE
from made.parameters import PARAMETERS, defaults
from made.streams import TRIAL, philox
from made.training.state import Epoch
from made.tuning.result import Trial
from made.tuning.space import Space, estimator_values
from made.tuning.study import (
    BEAT,
    BEATS,
    NUMBER,
    Place,
    last_tries,
    next_number,
    open_study,
    quiet,
    running,
    trial_of,
)

# The validation NLL after an epoch depends on these: if they are searched, unfinished trials cannot be compared.
NO_PRUNING = {"segments", "validation_masks", "whole_rows"}


@dataclass(frozen=True)
class Job:
    """Everything that a process needs to run a trial; search and trials share the ``seed``."""

    place: Place
    train: Any
    valid: Any
    space: Space
    fixed: dict[str, Any]
    seed: int
    processes: int
    wanted: int = 0


def run_serial(job: Job, trials: int, deadline: float, report: Callable[[Trial], None]) -> None:
    """Run ``trials`` trials in this process; none is started after the deadline."""
    study = _study(job)
    for _ in range(trials):
        if time.monotonic() >= deadline:
            return
        number = _run_trial(job, study, next_number(study))
        if number is None:
            return
        report(trial_of(last_tries(study)[number]))


def run_parallel(job: Job, trials: int, deadline: float, report: Callable[[Trial], None]) -> None:
    """Run ``trials`` trials in several processes; each requests a number and reports when it is done.

    The trial of a process that dies is left for :func:`made.tuning.study.recover`.
    """
    study = open_study(job.place)
    # On Linux one server process imports everything, and workers are forked from it before it computes anything.
    context: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    context.set_forkserver_preload([__name__, "torch._dynamo"])  # optimizers import the latter lazily
    workers: dict[Connection, BaseProcess] = {}
    given: dict[Connection, int] = {}
    numbers, spare, left = count(next_number(study)), list[int](), trials

    def start() -> None:
        here, there = context.Pipe()
        process = context.Process(target=_run_worker, args=(there, job), daemon=True)
        with _ignore_interrupt():
            process.start()
        there.close()
        workers[here] = process

    try:
        for _ in range(min(job.processes, trials)):
            start()
        progress = False  # whether a trial finished since the last death: if not, a new process might die as well
        while workers:
            for connection in wait(list(workers)):
                assert isinstance(connection, Connection)
                try:
                    said = connection.recv()
                except (EOFError, ConnectionError):
                    workers.pop(connection).join()
                    if progress and left:
                        start()
                        progress = False
                    continue
                if isinstance(said, Exception):
                    raise said
                if said is not None:
                    progress = True
                    report(trial_of(last_tries(study)[said]))
                    if said != given[connection]:  # it was a retry
                        spare.append(given[connection])
                number = None
                if left and time.monotonic() < deadline:
                    number = given[connection] = spare.pop(0) if spare else next(numbers)
                    left -= 1
                with suppress(ConnectionError):  # its death is noticed in the next iteration
                    connection.send(number)
                if number is None:
                    workers.pop(connection).join()
    finally:
        for process in workers.values():
            process.terminate()
        for process in workers.values():
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()


@contextmanager
def _ignore_interrupt() -> Iterator[None]:
    """Let processes that are started here ignore Ctrl-C: their parent handles it and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run_worker(connection: Connection, job: Job) -> None:
    """A worker process: runs trials until it gets no number."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    try:
        with quiet():
            study, done = _study(job), None
            while True:
                connection.send(done)
                number = connection.recv()
                if number is None:
                    return
                done = _run_trial(job, study, number)
    except Exception as error:
        error.add_note(traceback.format_exc())
        connection.send(error)


def _exit_with(sentinel: int) -> None:
    """End this process with its parent, even if that was killed."""
    wait([sentinel])
    os._exit(1)


def _study(job: Job) -> optuna.Study:
    """The study, with its pruner."""
    study = open_study(job.place)
    if job.space.keys() & NO_PRUNING:
        study.pruner = optuna.pruners.NopPruner()
        return study
    epochs = job.space.get("max_epochs", job.fixed.get("max_epochs", defaults()["max_epochs"]))
    most = max(epochs) if isinstance(epochs, list) else epochs["high"] if isinstance(epochs, dict) else epochs
    most = 100 if most == "auto" else most
    # The median rule: a trial is pruned if its best NLL is above the median of completed trials at the same epoch.
    # Hyperband and successive halving distribute a known number of epochs, but here early stopping ends a trial; and
    # they prune slow starters (high dropout, low learning rate), which are often the best in the end.
    study.pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=min(10, most // 10), n_min_trials=3)
    return study


def _run_trial(job: Job, study: optuna.Study, number: int) -> int | None:
    """Run a waiting retry, or else a new trial; and return its number, or None if another process runs it.

    A new trial gets the given number, or optuna's number if the search is shared.
    """
    try:
        trial = _claimed(job, study, number)
        if trial is not None:
            with _alive(job.place, trial):
                _train(job, study, trial)
        return None if trial is None else int(trial.user_attrs[NUMBER])
    except UpdateFinishedTrialError:  # no sign of life of this process was seen for too long
        return None


def _claimed(job: Job, study: optuna.Study, number: int) -> optuna.Trial | None:
    """The trial to run, with its parameters and its number; None if other machines run all that are wanted."""
    shared = job.place.shared
    study.sampler = _Sampler(job.seed, None if shared else number, shared or job.processes > 1)
    trial = study.ask({name: _distribution(name, entry) for name, entry in job.space.items()})
    if shared and NUMBER not in trial.user_attrs:
        before = [each for each in running(study) if each.number < trial.number]
        known = [each for each in last_tries(study).values() if each.state is not TrialState.RUNNING]
        if len(before) + len(known) >= job.wanted:
            study.tell(trial, state=TrialState.FAIL)
            return None
        number = trial.number
    trial.set_user_attr(NUMBER, trial.user_attrs.get(NUMBER, number))
    return trial


@contextmanager
def _alive(place: Place, trial: optuna.Trial) -> Iterator[None]:
    """Send heartbeats while the trial is trained, if the search is shared."""
    if not place.shared:
        yield
        return
    done = threading.Event()

    def beat() -> None:
        with suppress(UpdateFinishedTrialError):
            for number in count():
                trial.set_user_attr(BEAT, [place.owner, number])
                if done.wait(BEATS):
                    return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class _Sampler(optuna.samplers.BaseSampler):
    """A new sampler for each trial, seeded by its number: it has no state that an interruption could lose.

    Arguments:
        seed: the seed of the search.
        number: the number of the trial. Default: optuna's number.
        parallel: whether other trials run at the same time.
    """

    def __init__(self, seed: int, number: int | None, parallel: bool) -> None:
        self.seed, self.number, self.parallel = seed, number, parallel
        self.own: optuna.samplers.BaseSampler = optuna.samplers.RandomSampler()

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        number = trial.number if self.number is None else self.number
        word = int(philox(self.seed, TRIAL, number).random_raw()) >> 32
        self.own = optuna.samplers.TPESampler(seed=word, multivariate=True, constant_liar=self.parallel)
        self.own.before_trial(study, trial)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self.own.infer_relative_search_space(study, trial)

    def sample_relative(self, *args: Any) -> dict[str, Any]:
        return self.own.sample_relative(*args)

    def sample_independent(self, *args: Any) -> Any:
        return self.own.sample_independent(*args)

    def after_trial(self, *args: Any) -> None:
        self.own.after_trial(*args)


def _train(job: Job, study: optuna.Study, trial: optuna.Trial) -> None:
    """Train with the parameters of a trial, and report the outcome to optuna."""
    begin, epochs, reason = time.perf_counter(), 0, None
    state, nll = TrialState.PRUNED, None

    def after_epoch(epoch: Epoch) -> None:
        nonlocal epochs
        epochs = epoch.number + 1
        trial.report(epoch.best_nll, epoch.number)
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        model = MADE(**{**job.fixed, **estimator_values(trial.params), "random_state": job.seed})
        model.fit(job.train, X_valid=job.valid, after_epoch=after_epoch)
        if model.valid_nll_ is not None and math.isfinite(model.valid_nll_):
            state, nll = TrialState.COMPLETE, float(model.valid_nll_)
        else:
            reason = "the likelihood of the validation rows is not finite."
    except optuna.TrialPruned:
        pass
    except DataError:
        raise  # every other trial would refuse these rows, too
    except (Diverged, ValueError, MemoryError, RuntimeError) as error:
        # Each value alone was validated before: this is a combination that the estimator refuses.
        if isinstance(error, RuntimeError) and not is_out_of_memory(error):
            raise
        reason = str(error) or "there is not enough memory."
    for key, value in (("epochs", epochs), ("seconds", round(time.perf_counter() - begin, 3)), ("reason", reason)):
        trial.set_user_attr(key, value)
    try:
        study.tell(trial, nll, state=state)
    except ValueError as error:
        if not job.place.shared:
            raise
        raise UpdateFinishedTrialError from error


def _distribution(name: str, entry: Any) -> BaseDistribution:
    if isinstance(entry, list):
        return CategoricalDistribution(entry)
    if PARAMETERS[name].kind in ("float", "auto float"):
        return FloatDistribution(**entry)
    return IntDistribution(**{**entry, "step": entry["step"] or 1})
