"""The search that a command of `made paper` runs, and the table that it prints."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.errors import fail, usage
from made.cli.printing import cell, note, print_json
from made.cli.signals import signal_of
from made.errors import Interrupted

if TYPE_CHECKING:
    from made.paper.grid_search import GridSearch

__all__ = ["chosen_rows", "print_results", "search_for", "typed", "writable"]


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


@contextmanager
def search_for(
    name: str, results: Path, runs: Path, budget: str, seed: int, as_json: bool, quiet: bool
) -> Iterator[GridSearch]:
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
            verbose=not (quiet or as_json),
            report=lambda text: note(text, quiet or as_json),
        )
    except KeyboardInterrupt as stopped:
        text = stopped.message if isinstance(stopped, Interrupted) else "interrupted before the first update."
        raise Interrupted(f"{text} To resume: {typed()}", signal_of(stopped)) from None


def print_results(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print results as a table, or as JSON."""
    if as_json:
        print_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    from made.baselines.protocol import SIGNS

    shown = Table(title="Test negative log-likelihood in nats (lower is better)")
    named = any(each["config"]["name"] != each["row"] for each in rows)
    numbers = ("valid", "test", "95 % interval")
    for name in ("set", "row", *numbers, "masks", *(["configuration"] if named else [])):
        shown.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for each in rows:
        sign = SIGNS[each.get("kind") or "exact"]
        nll = [f"{sign}{each[name]:.2f}" for name in ("valid_nll", "test_nll")]
        cells = (*nll, f"± {each['ci95']:.2f}", str(each["masks"]))
        texts = [each["dataset"], each["row"], *cells, *([str(each["config"]["name"])] if named else [])]
        shown.add_row(*map(cell, texts))
    Console().print(shown)


def chosen_rows(rows: list[str] | None, known: tuple[str, ...]) -> list[str]:
    if unknown := [each for each in rows or () if each not in known]:
        raise usage(f"'--row': {unknown[0]!r} is not a row: choose from {', '.join(known)}.")
    return rows or list(known)
