"""Progress of reading and training: bars on the terminal, and curves for TensorBoard."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from typing import Any

from made.training.state import Epoch
from made.training.trainer import Trainer


class Silent:
    """No-op progress reporter."""

    def tick(self, update: int) -> None:
        """After an update."""

    def report(self, epoch: Epoch) -> None:
        """After an epoch."""


class Bar(Silent):
    """A bar with the epoch, the NLLs and an upper bound of the time left, because training may stop early."""

    def __init__(self, progress: Any, trainer: Trainer) -> None:
        self.progress, self.per_epoch = progress, trainer.updates_per_epoch
        self.epochs = trainer.config.max_epochs
        total = self.epochs * self.per_epoch
        self.task = progress.add_task(f"epoch 0/{self.epochs}", total=total, completed=trainer.state.update, nll="")

    def tick(self, update: int) -> None:
        self.progress.update(self.task, completed=update)

    def report(self, epoch: Epoch) -> None:
        known = [("NLL", epoch.train_nll), ("valid", epoch.valid_nll), ("best", epoch.best_nll)]
        nll = ", ".join(f"{name} {value:.2f}" for name, value in known if not math.isnan(value))
        self.progress.update(self.task, description=f"epoch {epoch.number + 1}/{self.epochs}", nll=nll)


@contextmanager
def bar(trainer: Trainer, shown: bool) -> Iterator[Silent]:
    """A progress bar on standard error, if ``shown`` and standard error is a terminal."""
    if not shown or not sys.stderr.isatty() or trainer.finished:
        yield Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=14),
        TextColumn("{task.fields[nll]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as progress:
        yield Bar(progress, trainer)


@contextmanager
def reading(shown: bool, what: str) -> Iterator[Callable[[int, float], None]]:
    """A progress bar for a pass over the rows of files: a function to call with the rows so far, and their share."""
    if not shown or not sys.stderr.isatty():
        yield lambda rows, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=14), TextColumn("{task.fields[rows]:,} rows"))
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as progress:
        task = progress.add_task(what, total=1.0, rows=0)
        yield lambda rows, share: progress.update(task, completed=share, rows=rows)


class TensorBoard(AbstractContextManager["TensorBoard"]):
    """Curves of a run for `tensorboard --logdir FOLDER`; needs the extra ``tensorboard``."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ImportError("'tensorboard' needs a package: pip install 'made[tensorboard]'.") from None
        self.writer: Any = SummaryWriter(str(folder))

    def report(self, epoch: Epoch) -> None:
        """After an epoch."""
        for name in ("train_nll", "valid_nll", "best_nll", "learning_rate"):
            if not math.isnan(value := getattr(epoch, name)):
                self.writer.add_scalar(name, value, epoch.number)
        self.writer.flush()

    def __exit__(self, *error: object) -> None:
        self.writer.close()
