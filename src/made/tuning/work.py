"""The work: one trial after the other, in this process or in several."""

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
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from made.errors import DataError, Diverged
from made.estimator import MADE
from made.parameters import PARAMETERS, defaults
from made.training.state import Epoch
from made.tuning.result import Trial
from made.tuning.space import Space, estimator_values
from made.tuning.study import NUMBER, last_tries, next_number, open_study, quiet, trial_of

__all__ = ["Job", "work_alone", "work_together"]

# What is validated after an epoch depends on these: if they are searched, trials cannot be compared before they end.
UNLIKE = {"segments", "validation_masks", "whole_rows"}


@dataclass(frozen=True)
class Job:
    """All that it takes to run a trial, in whatever process.

    Attributes:
        folder: where the search is kept.
        train, valid: the rows.
        space: what is searched.
        fixed: the other parameters.
        seed: the seed of the search, and of every trial.
        processes: how many work at the same time.
    """

    folder: Path
    train: Any
    valid: Any
    space: Space
    fixed: dict[str, Any]
    seed: int
    processes: int


def work_alone(job: Job, trials: int, deadline: float, report: Callable[[Trial], None]) -> None:
    """Run so many trials here; none is begun after the deadline."""
    study = _study(job)
    for _ in range(trials):
        if time.monotonic() >= deadline:
            return
        number = _try(job, study, next_number(study))
        report(trial_of(last_tries(study)[number]))


def work_together(job: Job, trials: int, deadline: float, report: Callable[[Trial], None]) -> None:
    """Run so many trials in several processes: each asks for a number, and says when it is done with it.

    The trial of a process that dies is left as it is, to be recovered.
    """
    study = open_study(job.folder)
    # On Linux one process imports what it takes, and the others are copies of it, made before it computes anything.
    context: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    context.set_forkserver_preload([__name__, "torch._dynamo"])  # the latter, optimisers import when they are made
    workers: dict[Connection, BaseProcess] = {}
    given: dict[Connection, int] = {}
    numbers, spare, left = count(next_number(study)), list[int](), trials

    def start() -> None:
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, job), daemon=True)
        with _deaf():
            process.start()
        there.close()
        workers[here] = process

    try:
        for _ in range(min(job.processes, trials)):
            start()
        lively = False  # whether a trial was finished since a process died: if not, the next one might die as well
        while workers:
            for connection in wait(list(workers)):
                assert isinstance(connection, Connection)
                try:
                    said = connection.recv()
                except (EOFError, ConnectionError):
                    workers.pop(connection).join()
                    if lively and left:
                        start()
                        lively = False
                    continue
                if isinstance(said, Exception):
                    raise said
                if said is not None:
                    lively = True
                    report(trial_of(last_tries(study)[said]))
                    if said != given[connection]:  # it was one that is tried again
                        spare.append(given[connection])
                number = None
                if left and time.monotonic() < deadline:
                    number = given[connection] = spare.pop(0) if spare else next(numbers)
                    left -= 1
                with suppress(ConnectionError):  # if it has just died, that is heard in the next turn
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
def _deaf() -> Iterator[None]:
    """Processes that are started here do not hear Ctrl-C: the one that started them does, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(connection: Connection, job: Job) -> None:
    """What one of several processes does: trial after trial, until it gets no number."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent.sentinel,), daemon=True).start()
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
                done = _try(job, study, number)
    except Exception as error:
        error.add_note(traceback.format_exc())
        connection.send(error)


def _die_with(sentinel: int) -> None:
    """End this process with the one that started it, even if that was killed."""
    wait([sentinel])
    os._exit(1)


def _study(job: Job) -> optuna.Study:
    """The study, with the rule by which a trial is given up."""
    study = open_study(job.folder)
    if job.space.keys() & UNLIKE:
        study.pruner = optuna.pruners.NopPruner()
        return study
    epochs = job.space.get("max_epochs", job.fixed.get("max_epochs", defaults()["max_epochs"]))
    most = max(epochs) if isinstance(epochs, list) else epochs["high"] if isinstance(epochs, dict) else epochs
    # The median rule: a trial ends if its best NLL so far is above the median of what completed trials had at the same
    # epoch. Hyperband and successive halving share out a number of epochs that they have to know, but here patience
    # ends a trial; and they soon give up slow starters (much dropout, a low learning rate), often the best in the end.
    study.pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=min(10, most // 10), n_min_trials=3)
    return study


def _try(job: Job, study: optuna.Study, number: int) -> int:
    """Run a trial: one that is to be tried again, if there is any, or a new one of this number; and give its number."""
    # Nothing is kept of the sampler from trial to trial, so that nothing is lost when a search is stopped.
    word = int(np.random.Philox(key=job.seed, counter=[0, 0, number, 5]).random_raw()) >> 32
    study.sampler = optuna.samplers.TPESampler(seed=word, multivariate=True, constant_liar=job.processes > 1)
    trial = study.ask({name: _distribution(name, entry) for name, entry in job.space.items()})
    number = trial.user_attrs.get(NUMBER, number)
    trial.set_user_attr(NUMBER, number)
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
        raise  # the rows would be refused by all others as well
    except (Diverged, ValueError, MemoryError, RuntimeError) as error:
        # A value that is refused is one that does not go with the others: each alone was found right.
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        reason = str(error) or "there is not enough memory."
    for key, value in (("epochs", epochs), ("seconds", round(time.perf_counter() - begin, 3)), ("reason", reason)):
        trial.set_user_attr(key, value)
    study.tell(trial, nll, state=state)
    return number


def _distribution(name: str, entry: Any) -> BaseDistribution:
    if isinstance(entry, list):
        return CategoricalDistribution(entry)
    if PARAMETERS[name].kind in ("float", "auto float"):
        return FloatDistribution(**entry)
    return IntDistribution(**{**entry, "step": entry["step"] or 1})
