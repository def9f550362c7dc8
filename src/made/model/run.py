"""A run of training: shown while it goes, kept in a folder if there is one, and there to be gone on with."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from made.errors import DataError, Diverged, Interrupted, QuestionError
from made.io.lock import hold
from made.model.folder import check_replaceable, commit, real_path
from made.model.model import (
    Config,
    Model,
    begin_run,
    checkpoint,
    checkpoint_name,
    with_scores,
)
from made.tables.schema import Schema
from made.training.config import OPEN_ENDED
from made.training.progress import TensorBoard, bar
from made.training.state import Epoch, State
from made.training.trainer import Trainer

__all__ = ["Run", "check_same", "longer"]

WAIT = 1.0  # seconds, for a process that saves to the same folder; one that trains there takes longer
# What may differ between a run and the one that goes on with it.
FREE = ("max_epochs", "max_seconds", "patience", "tensorboard", "device", "verbose")


class Run:
    """A run, and what comes of it.

    Arguments:
        trainer: what is to be run.
        config, schema: of its model.
        folder: where its state is kept as it goes, and in the end the model; nowhere if ``None``.

    Attributes:
        model: what it has come to, also if it diverged; ``None`` before that.
        state: from which more epochs can follow; ``None`` if they cannot.
    """

    def __init__(self, trainer: Trainer, config: Config, schema: Schema, folder: Path | None) -> None:
        self.trainer, self.config, self.schema = trainer, config, schema
        self.folder = None if folder is None else real_path(folder)
        self.model: Model | None = None
        self.state: State | None = None

    def go(
        self,
        before: Model | None,
        state: State | None,
        *,
        verbose: bool = False,
        tensorboard: str | os.PathLike[str] | None = None,
        after_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        """Train to the end, going on from what is in the folder, if that is told.

        Arguments:
            before, state: the model and the state of training that the folder has.
            verbose: whether to show a bar.
            tensorboard: a folder for its curves.
            after_epoch: called after each epoch; what it raises ends training, and is raised.
        """
        if self.folder is not None:
            check_replaceable(self.folder)
        with nullcontext() if self.folder is None else hold(self.folder, wait=WAIT):
            if self.folder is not None:
                begin_run(self.folder, before, state)
            self._train(verbose, tensorboard, after_epoch)

    def _train(
        self,
        verbose: bool,
        tensorboard: str | os.PathLike[str] | None,
        after_epoch: Callable[[Epoch], None] | None,
    ) -> None:
        trainer, folder = self.trainer, self.folder
        board = None if tensorboard is None else TensorBoard(tensorboard)
        keep = None if folder is None else partial(checkpoint, folder, self.config)
        try:
            with bar(trainer, verbose) as shown:

                def report(epoch: Epoch) -> None:
                    shown.report(epoch)
                    if board is not None:
                        board.report(epoch)
                    if after_epoch is not None:
                        after_epoch(epoch)

                trainer.run(keep=keep, report=report, tick=shown.tick)
            # More epochs can follow only if it was not patience that ended these.
            state = trainer.snapshot().copy() if trainer.state.waited < trainer.config.patience else None
            nll = trainer.choose()
        except Diverged:
            self._end(None, finished=False)
            raise
        except Interrupted as interrupted:
            if folder is None:
                raise
            text = f"{interrupted} Its state is in {folder}, to go on from with 'resume_from'."
            raise Interrupted(text, interrupted.signal) from None
        finally:
            trainer.network.eval()
            if board is not None:
                board.close()
        self.state = state
        self._end(nll, finished=True)

    def _end(self, nll: float | None, *, finished: bool) -> None:
        """The model, as it is now, in the folder with all that is to be kept."""
        trainer = self.trainer
        scored = with_scores(self.config, trainer, nll)
        self.model = Model(scored, self.schema, trainer.network, trainer.state.history, finished=finished)
        if self.folder is not None:
            kept = [] if self.state is None else [checkpoint_name(trainer.state)]
            commit(self.folder, self.model.files(), finished=finished, keep=kept)


def longer(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether training may go on for longer than it might before."""
    limits = ([each["max_epochs"], each["max_seconds"] or math.inf] for each in (new, old))
    return any(now > then for now, then in zip(*limits, strict=True))


def check_same(old: Config, new: Config, folder: Path) -> None:
    """Refuse to go on with other parameters, or other rows."""
    free = FREE if old.parameters["schedule"] in OPEN_ENDED else FREE[2:]
    for name, value in new.parameters.items():
        if name not in free and old.parameters.get(name) != value:
            raise QuestionError(
                f"{folder} was trained with {name}={old.parameters.get(name)!r}, not {value!r}: go on with the same "
                "parameters, or start in another folder."
            )
    if old.data.sha256 != new.data.sha256 or old.columns != new.columns:
        raise DataError(f"{folder} was trained on other rows: go on with the same ones, or start in another folder.")
