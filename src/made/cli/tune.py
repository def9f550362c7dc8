"""`made tune`: search for the parameters with the best validation NLL."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from made.cli.errors import command
from made.cli.options import DATA, JSON, QUIET, VALID
from made.cli.printing import cell, note, print_json, say
from made.cli.rows import own_validation, read_rows
from made.cli.signals import signal_of
from made.cli.training_options import parameters_in, read_toml, value_of
from made.errors import Interrupted

if TYPE_CHECKING:
    from made.tuning import Trial, Tuned

__all__ = ["tune"]

TRIALS = 50
TOP = 5


@command
def tune(
    data: DATA,
    out: Annotated[Path, typer.Option("--out", help="Folder for the search.", show_default=False)],
    valid: VALID = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials", min=1, help="Number of trials, including those already in --out.", show_default=str(TRIALS)
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Seconds after which no trial is started.", show_default="none")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, max=256, help="Number of processes that train in parallel.")
    ] = 1,
    space: Annotated[
        Path | None,
        typer.Option(
            "--space",
            help="TOML file of the search space: name = [choice, ...], or name = {low = 0.1, high = 10, log = true}.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="TOML file of parameters for all trials.", show_default="none"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the search in --out.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, max=2**32 - 1, help="Random seed of the search and of training.", show_default="0"
        ),
    ] = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Search for the parameters with the best likelihood of validation rows.

    However a search was stopped, --resume continues it. The best parameters are written for `made fit --config`.
    """
    fixed = None if config is None else {name: value_of(name, value) for name, value in parameters_in(config).items()}
    searched = None if space is None else read_toml("--space", space)

    from made import tuning

    before = tuning.load(out) if resume else None
    if before is not None:
        wanted = trials or before.wanted
        more = " To search longer, raise --trials." if before.finished >= wanted else ""
        note(f"{before.finished} of {wanted} trials are finished.{more}", quiet)
    elif resume:
        note(f"Note: {out} has no search to resume: it starts from scratch.", quiet)
    rows = read_rows(data, "train")[0]
    own_valid = [] if valid is None else ["--valid", valid]
    valid = own_validation(data) if valid is None else valid
    valid_rows = None if valid is None else read_rows(valid, "valid")[0]
    refit = shlex.join(["made", "fit", data, *own_valid, "--config", str(out / "best.toml"), "--out", "MODEL"])
    try:
        with _progress(before, trials, shown=not (quiet or as_json)) as report:
            tuned = tuning.tune(
                rows,
                valid_rows,
                folder=out,
                space=searched,
                fixed=fixed,
                trials=trials or (None if before else TRIALS),
                timeout=timeout,
                jobs=jobs,
                seed=seed,
                resume=resume,
                command=refit,
                report=report,
            )
    except KeyboardInterrupt as stopped:
        text = str(stopped) or "the search was stopped before the first trial."
        words = ["made", "tune", data, "--out", str(out), *own_valid, *(["--jobs", str(jobs)] if jobs > 1 else [])]
        raise Interrupted(f"{text} To resume: {shlex.join([*words, '--resume'])}", signal_of(stopped)) from None
    if as_json:
        print_json(summary(tuned, refit))
    else:
        _show(tuned, refit, quiet)


def summary(tuned: Tuned, refit: str) -> dict[str, Any]:
    """The outcome of a search, for JSON."""
    states = {state: tuned.count(state) for state in ("complete", "pruned", "failed", "waiting")}
    return {
        "out": str(tuned.folder),
        "trials": len(tuned.trials),
        **states,
        "best_trial": None if tuned.best is None else tuned.best.number,
        "best_nll": tuned.best_nll,
        "best_params": tuned.best_params,
        "refit": refit,
    }


def _show(tuned: Tuned, refit: str, quiet: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    states = ", ".join(f"{count} {state}" for state in ("pruned", "failed", "waiting") if (count := tuned.count(state)))
    top = tuned.top(TOP)
    table = Table(title=f"The best {len(top)} of {tuned.finished} trials" + (f" ({states})" if states else ""))
    table.add_column("trial", justify="right")
    table.add_column("valid NLL", justify="right")
    table.add_column("epochs", justify="right")
    table.add_column("parameters")
    for trial in top:
        words = " ".join(f"{name}={_word(value)}" for name, value in trial.params.items())
        table.add_row(str(trial.number), f"{trial.valid_nll:.3f}", str(trial.epochs), cell(words))
    Console().print(table)
    say(f"To train the best one: {refit}")
    if not (tuned.folder / "search.png").exists():
        note("No picture: for that, install matplotlib (pip install 'made[plot]').", quiet)


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value).lower()


@contextmanager
def _progress(before: Tuned | None, trials: int | None, shown: bool) -> Iterator[Callable[[Trial], None]]:
    """Print a line for each finished trial on standard error, above a progress bar if that is a terminal."""
    best = None if before is None or before.best is None else (before.best_nll, before.best.number)

    def line(trial: Trial) -> str:
        nonlocal best
        nll = "" if trial.valid_nll is None else f"NLL {trial.valid_nll:.3f} after "
        epochs = f"{trial.epochs} epoch{'' if trial.epochs == 1 else 's'}"
        text = f"trial {trial.number}: {nll}{epochs}, {trial.seconds:.1f} s"
        if trial.state == "complete" and trial.valid_nll is not None:
            best = min(best or (trial.valid_nll, trial.number), (trial.valid_nll, trial.number))
            return f"{text}; best {best[0]:.3f} (trial {best[1]})"
        return f"{text}; {trial.state}" + (f": {trial.reason}" if trial.reason else "")

    if not shown:
        yield lambda trial: None
        return
    if not sys.stderr.isatty():
        yield lambda trial: note(line(trial))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("trials"), BarColumn(bar_width=14), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, TextColumn("left"), console=Console(stderr=True), refresh_per_second=4) as progress:
        total = trials or (before.wanted if before else TRIALS)
        task = progress.add_task("", total=total, completed=before.finished if before else 0)

        def report(trial: Trial) -> None:
            progress.console.print(cell(line(trial)), highlight=False)
            progress.advance(task)

        yield report
