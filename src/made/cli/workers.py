"""Commands that run in several processes: one starts them, and the first worker prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from made.cli import process, signals
from made.cli.errors import usage
from made.cli.printing import mode, note, print_error
from made.distributed.environment import check_options, is_first_here, is_launched, is_worker, rank, restarts
from made.errors import Diverged, Interrupted, WorkerLost

if TYPE_CHECKING:
    from made.training.workers import Workers


def check_worker(workers: int | None, overwrite: bool) -> None:
    """Refuse options that contradict how this worker was started; only the first worker prints errors."""
    mode.silent = rank() > 0
    if is_worker():
        check_options(workers, overwrite)


def restarted(workers: Workers) -> bool:
    """Whether the workers were started again after one of them was lost: they resume the run.

    A launcher on another machine may count differently, if no process of its own was lost.
    """
    return any(workers.exchange(restarts()))


def starts_workers(workers: int | None) -> bool:
    """Whether this process starts the workers, instead of being one of them."""
    return (workers or 1) > 1 and not is_worker()


def run_workers(workers: int, data: Sequence[str], out: Path) -> None:
    """Run this command in several workers, and exit with their exit code."""
    if "-" in data:
        raise usage("'--workers' needs a file that every worker can read, not standard input.")
    with process.quick_imports():
        from made.distributed.launch import launch
    if code := launch(process.words(), workers, out, note=note):
        signals.stopped_elsewhere()
        raise typer.Exit(code)


def run_on_ray(address: str, workers: int, data: Sequence[str], out: Path) -> None:
    """Run this command in workers of a Ray cluster, with the output and the exit code of the first worker."""
    if "-" in data:
        raise usage("'--ray' needs a file that every worker can read, not standard input.")
    with process.quick_imports():
        from made.distributed.ray_train import train_on_ray
    process.end_at_once()
    code, output, errors = train_on_ray(address, process.words(), workers, out, note=note, end=process.end_with)
    if errors.strip():
        print_error(errors.rstrip())
    if output.strip():
        print(output, end="", flush=True)
    if code:
        raise typer.Exit(code)


@contextmanager
def joined_workers(out: Path) -> Iterator[tuple[Workers, Path]]:
    """The workers, and this process's folder for the model; only the folder of the first worker is kept.

    Other workers print nothing but errors of their own.
    """
    if not is_worker():
        from made.training.workers import ALONE

        yield ALONE, out
        return
    with process.quick_imports():
        from made.distributed.join import folder_of_first, joined
    process.end_at_once()
    agreed = True  # while they join
    try:
        with joined(note) as workers:
            if workers.rank:
                mode.json, mode.quiet = False, True
            try:
                with folder_of_first(workers, out) as folder:
                    yield workers, folder
            finally:
                agreed = workers.agreed_error
    except Interrupted as stopped:
        if rank() == 0:
            raise
        signals.stopped_elsewhere()
        raise typer.Exit(128 + stopped.signal) from None
    except WorkerLost:
        mode.silent = is_launched() or not is_first_here()  # where they were launched, a note says so
        raise
    except Exception as error:
        mode.silent = rank() > 0 and (agreed or isinstance(error, Diverged))
        raise
