"""A training run: a progress bar, checkpoints in a folder, and the resulting model."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from made.errors import DataError, Diverged, Interrupted, QuestionError
from made.io.lock import hold
from made.model.checkpoint import checkpoint, checkpoint_name
from made.model.config import Config
from made.model.fit_data import FitData
from made.model.folder import check_replaceable, commit, real_path
from made.model.model import Model
from made.training.config import OPEN_ENDED
from made.training.missingness import learn_missingness
from made.training.progress import TensorBoard, bar
from made.training.state import Epoch
from made.training.trainer import Trainer

WAIT = 1.0  # seconds to wait for a process that saves to the same folder; one that trains there takes longer
# Parameters that may differ when a run is resumed.
FREE = ("max_epochs", "max_seconds", "patience", "tensorboard", "device", "verbose")
BY_ROWS = ("max_epochs", "batch_size", "learning_rate", "weight_decay")  # by default


class Run:
    """A run of training.

    Arguments:
        trainer: the trainer; ``None`` if ``before`` is finished.
        config: the config of the model.
        dataset: the rows, whose files are closed at the end.
        folder: where checkpoints and, at the end, the model are kept; ``None``: nowhere.
        before: the model in the folder, whose training is resumed.

    Attributes:
        model: the model, also if training diverged; ``None`` before the end.
    """

    def __init__(
        self,
        trainer: Trainer | None,
        config: Config,
        dataset: FitData,
        folder: Path | None = None,
        before: Model | None = None,
    ) -> None:
        self.trainer, self.config, self.dataset, self.before = trainer, config, dataset, before
        self.folder = None if folder is None else real_path(folder)
        self.model = before if trainer is None else None

    def go(
        self,
        *,
        verbose: bool = False,
        tensorboard: str | os.PathLike[str] | None = None,
        after_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        """Train to the end, with a progress bar if ``verbose``, and with curves in the folder of ``tensorboard``.

        ``after_epoch`` is called after each epoch; an exception that it raises ends training.
        """
        trainer, folder = self.trainer, self.folder
        with ExitStack() as stack:
            stack.push(self._close)
            if trainer is None:
                return
            if trainer.workers.rank:
                trainer.run(report=after_epoch or (lambda epoch: None))
                trainer.choose()
                return
            if folder is not None:
                check_replaceable(folder, ())
                stack.enter_context(hold(folder, wait=WAIT))
                check_replaceable(folder)
                if self.before is not None and self.before.state is not None:
                    checkpoint(folder, self.before.config, self.before.state)
                else:
                    commit(folder, {}, finished=False)
            reports = [] if after_epoch is None else [after_epoch]
            if tensorboard is not None:
                reports.insert(0, stack.enter_context(TensorBoard(tensorboard)).report)
            try:
                with bar(trainer, verbose) as shown:

                    def report(epoch: Epoch) -> None:
                        for each in (shown.report, *reports):
                            each(epoch)

                    keep = None if folder is None else partial(checkpoint, folder, self.config)
                    trainer.run(keep=keep, report=report, tick=shown.tick)
                # More epochs can follow only if it was not patience that ended these.
                state = trainer.snapshot().copy() if trainer.state.waited < trainer.config.patience else None
                nll = trainer.choose()
            except Diverged:
                self._end(trainer, None, finished=False)
                raise
            except Interrupted as interrupted:
                if folder is None:
                    raise
                remedy = f"Its state is saved: resume it with resume_from={str(folder)!r}."
                raise Interrupted(interrupted.message, interrupted.signal, remedy=remedy) from None
            finally:
                trainer.network.eval()
            self._end(trainer, nll, finished=True, state=state)

    def _close(self, kind: type[BaseException] | None, *error: object) -> None:
        """An interrupted run needs the codes of its rows when it is resumed."""
        self.dataset.close(keep=kind is not None and issubclass(kind, KeyboardInterrupt))

    def _end(self, trainer: Trainer, nll: float | None, *, finished: bool, state: Any = None) -> None:
        """Make the model, and write it to the folder."""
        config, history = self.config.with_scores(trainer, nll), trainer.state.history
        ensemble = config.ensemble(trainer.network)
        missingness = learn_missingness(ensemble, trainer.counted(), config.seed) if finished else None
        self.model = Model(config, ensemble, history, finished, state, self.dataset.template, missingness)
        if self.folder is not None:
            kept = [] if state is None else [checkpoint_name(trainer.state)]
            commit(self.folder, self.model.files(), finished=finished, keep=kept)


def longer(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether ``max_epochs`` or ``max_seconds`` is greater than it was."""
    limits = ([each["max_epochs"], each["max_seconds"] or math.inf] for each in (new, old))
    return any(now > then for now, then in zip(*limits, strict=True))


def check_same(old: Config, new: Config, folder: Path, *, finished: bool) -> None:
    """Refuse to resume with other parameters, or on other rows.

    A finished run may be trained longer, an unfinished one only if its schedule does not depend on the last epoch.
    """
    free = FREE if finished or old.parameters["schedule"] in OPEN_ENDED else FREE[2:]
    different = [name for name in new.parameters if old.parameters.get(name) != new.parameters[name]]
    other_rows = old.data.sha256 != new.data.sha256 or old.columns != new.columns
    for name in different:
        # Other rows have other values of these, if they are "auto".
        if name not in free and not (other_rows and name in BY_ROWS):
            raise QuestionError(
                f"{folder} was trained with {name}={old.parameters.get(name)!r}, not {new.parameters[name]!r}: resume "
                "with the same parameters, or start in another folder.",
                argument=name,
            )
    if other_rows:
        raise DataError(f"{folder} was trained on other rows: resume with the same rows, or start in another folder.")
