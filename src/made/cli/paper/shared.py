"""Shared by the commands of `made paper`: options, the search, and the printed table."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from made.cli.errors import fail, usage
from made.cli.options import option
from made.cli.printing import mode, note, print_json, print_table
from made.cli.signals import signal_of
from made.errors import Interrupted

if TYPE_CHECKING:
    from made.paper.grid_search import GridSearch


class Budget(StrEnum):
    """Which part of the paper's grid is searched."""

    evening = "evening"
    full = "full"


DATASETS = Annotated[list[str] | None, option("Dataset; may be repeated.", "all but rcv1", name="--data")]
IMAGES = Annotated[str, option("Dataset.", name="--data")]
ROWS = Annotated[list[str] | None, option("Row of the table; may be repeated.", "all", name="--row")]
GRID = Annotated[Budget, option("The paper's full grid, or a part that takes an evening on two cores.")]
RESULTS = Annotated[Path, option("Folder for results, as JSON.")]
RUNS = Annotated[Path, option("Folder for the models, from which training resumes.")]
SEED = Annotated[int, option("Random seed.", min=0, max=2**31)]
PICTURE = Annotated[Path | None, option("File of the picture (.png, .svg, .pdf).", "a .png in --results")]


def typed() -> str:
    """The command line as it was typed."""
    return shlex.join(["made", *sys.argv[1:]])


def writable(folder: Path, option: str) -> None:
    """Make a folder, and check that it can be written to, before hours of work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"'{option}': cannot write to {folder}: {error.strerror or error}.", 3) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise fail(f"'{option}': cannot write to {folder}: choose another folder, or change its permissions.", 3)


def picture_path(out: Path | None, results: Path, name: str) -> Path:
    """The file of a picture; its folder is made, and matplotlib is required."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise usage("a picture needs matplotlib: pip install 'made[plot]'.")
    path = results / f"{name}.png" if out is None else out
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise usage(f"'--out' should end in .png, .svg or .pdf, not be {path.name!r}.")
    writable(path.parent, "--results" if out is None else "--out")
    if path.exists() and not path.is_file():
        raise usage(f"'--out': {path} exists and is not a file: choose another name.")
    return path


def chosen_rows(rows: list[str] | None, known: tuple[str, ...]) -> list[str]:
    """The rows of --row, or all."""
    if unknown := [each for each in rows or () if each not in known]:
        raise usage(f"'--row': {unknown[0]!r} is not a row: choose from {', '.join(known)}.")
    return rows or list(known)


@contextmanager
def search_for(name: str, results: Path, runs: Path, budget: str, seed: int) -> Iterator[GridSearch]:
    """The search that trains and records results; when stopped, it prints how to resume."""
    from made.paper.grid_search import GridSearch
    from made.paper.results_file import ResultsFile

    writable(results, "--results")
    writable(runs, "--runs")
    try:
        yield GridSearch(
            ResultsFile(results / f"{name}.json"),
            runs,
            command=typed(),
            seed=seed,
            budget=budget,
            verbose=mode.progress,
            report=lambda text: note(text) if mode.progress else None,
        )
    except KeyboardInterrupt as stopped:
        text = stopped.message if isinstance(stopped, Interrupted) else "interrupted before the first update."
        raise Interrupted(f"{text} To resume: {typed()}", signal_of(stopped)) from None


def print_results(results: list[dict[str, Any]]) -> None:
    """Print results as a table, or as JSON."""
    if mode.json:
        print_json(results)
        return
    from made.baselines.protocol import SIGNS

    named = any(each["config"]["name"] != each["row"] for each in results)
    lines = []
    for each in results:
        sign = SIGNS[each.get("kind") or "exact"]
        nlls = [f"{sign}{each[name]:.2f}" for name in ("valid_nll", "test_nll")]
        cells = [each["dataset"], each["row"], *nlls, f"± {each['ci95']:.2f}", str(each["masks"])]
        lines.append(cells + [str(each["config"]["name"])] * named)
    title, numbers = "Test negative log-likelihood in nats (lower is better)", ["valid", "test", "95 % interval"]
    print_table(title, ["set", "row", *numbers, "masks", *["configuration"] * named], lines, right=numbers)
