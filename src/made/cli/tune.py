"""`made tune`: search for the parameters with the best validation NLL."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from made.cli.errors import command
from made.cli.inputs import read_rows, validation_rows
from made.cli.options import DATA, VALID, flag, option
from made.cli.printing import mode, note, print_json, print_table, progress_lines, say
from made.cli.signals import signal_of
from made.cli.training_options import parameters_in, read_toml, value_of
from made.errors import Interrupted

if TYPE_CHECKING:
    from made.tuning import Trial, Tuned

TRIALS = 50
TOP = 5


@command
def tune(
    data: DATA,
    out: Annotated[Path, option("Folder for the search.", False)],
    valid: VALID = None,
    trials: Annotated[
        int | None, option("Number of trials, including those already in --out.", str(TRIALS), min=1)
    ] = None,
    timeout: Annotated[float | None, option("Seconds after which no further trial is started.", "none")] = None,
    jobs: Annotated[int, option("Number of processes that train in parallel.", min=1, max=256)] = 1,
    space: Annotated[
        Path | None,
        option(
            "TOML file of the search space: name = [choice, ...], or name = {low = 0.1, high = 10, log = true}.", False
        ),
    ] = None,
    config: Annotated[Path | None, option("TOML file of parameters for all trials.", "none")] = None,
    resume: Annotated[bool, flag("--resume", "Resume the search in --out.")] = False,
    storage: Annotated[
        str | None,
        option(
            "Shared file, or database URL such as postgresql://host/name, for a search on several machines.", "none"
        ),
    ] = None,
    seed: Annotated[int | None, option("Random seed of the search and of training.", "0", min=0, max=2**32 - 1)] = None,
) -> None:
    """Search for the parameters with the best likelihood of validation rows.

    --resume continues an interrupted search. The best parameters are written for `made fit --config`.
    To search on several machines, give the same command on each, with the same rows, the same --storage and a folder of
    its own in --out: each trains some of the trials, and takes over the trials of lost machines.
    """
    fixed = None if config is None else {name: value_of(name, value) for name, value in parameters_in(config).items()}
    searched = None if space is None else read_toml("--space", space)

    from made import tuning

    before = tuning.load(out, storage) if resume or storage is not None else None
    if before is not None:
        wanted = trials or before.wanted
        more = " To search longer, raise --trials." if before.finished >= wanted else ""
        note(f"{before.finished} of {wanted} trials are finished.{more}")
    elif resume:
        note(f"Note: {out} has no search to resume: it starts from scratch.")
    rows, valid_rows = read_rows(data, "train")[0], validation_rows(data, valid)
    own_valid = [] if valid is None else ["--valid", valid]
    refit = shlex.join(["made", "fit", data, *own_valid, "--config", str(out / "best.toml"), "--out", "MODEL"])
    try:
        with _progress(before, trials) as report:
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
                storage=storage,
                command=refit,
                report=report,
            )
    except KeyboardInterrupt as stopped:
        text = str(stopped) or "the search was stopped before the first trial."
        words = ["made", "tune", data, "--out", str(out), *own_valid, *(["--jobs", str(jobs)] if jobs > 1 else [])]
        words += [] if storage is None else ["--storage", storage]
        raise Interrupted(f"{text} To resume: {shlex.join([*words, '--resume'])}", signal_of(stopped)) from None
    counts = {state: tuned.count(state) for state in ("complete", "pruned", "failed", "waiting")}
    if mode.json:
        best = None if tuned.best is None else tuned.best.number
        facts = {"out": str(out), "trials": len(tuned.trials), **counts, "best_trial": best, "best_nll": tuned.best_nll}
        print_json(facts | {"best_params": tuned.best_params, "refit": refit})
        return
    states = ", ".join(f"{count} {state}" for state, count in counts.items() if count and state != "complete")
    top = [
        (str(trial.number), f"{trial.valid_nll:.3f}", str(trial.epochs), _written(trial.params))
        for trial in tuned.top(TOP)
    ]
    title = f"The best {len(top)} of {tuned.finished} trials" + (f" ({states})" if states else "")
    numbers = ["trial", "valid NLL", "epochs"]
    print_table(title, [*numbers, "parameters"], top, right=numbers)
    say(f"To train the best one: {refit}")
    if not (out / "search.png").exists():
        note("No picture: for that, install matplotlib (pip install 'made[plot]').")


def _written(params: dict[str, Any]) -> str:
    def word(value: Any) -> str:
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return f"{value:.3g}" if isinstance(value, float) else str(value).lower()

    return " ".join(f"{name}={word(value)}" for name, value in params.items())


@contextmanager
def _progress(before: Tuned | None, trials: int | None) -> Iterator[Callable[[Trial], None]]:
    """Print a line for each finished trial on standard error, above a progress bar if that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

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

    columns = (TextColumn("trials"), BarColumn(bar_width=14), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with progress_lines(*columns, TextColumn("left"), refresh_per_second=4) as (progress, write):
        total = trials or (before.wanted if before else TRIALS)
        task = progress.add_task("", total=total, completed=before.finished if before else 0)

        def report(trial: Trial) -> None:
            write(line(trial))
            progress.advance(task)

        yield report
