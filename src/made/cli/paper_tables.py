"""`made paper table`: the paper's tables, made again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from made.cli.common import JSON, QUIET, command, note, print_json, say, usage
from made.cli.paper_pieces import EPOCHS, GRID, RESULTS, ROWS, RUNS, SEED, Budget, search_of, show, typed, writable

__all__ = ["table"]

table = typer.Typer(no_args_is_help=True, help="The tables: uci, mnist, baselines, complexity.", rich_markup_mode=None)


@table.command()
@command
def uci(
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="A set; may be repeated. All but RCV1 unless told.", show_default=False),
    ] = None,
    row: ROWS = None,
    grid: GRID = Budget.evening,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Table 4: the binary UCI sets. Rows: MADE, MADE mask sampling, ours, any-order."""
    from made.io import datasets
    from made.paper import ours, published, table_uci

    chosen = data or [name for name in published.UCI_SETS if name not in published.ABSENT]
    rows = _chosen(row, (*table_uci.ROWS, *ours.ROWS))
    for name in chosen:  # all, before training on the first
        if datasets.where(name) is None and name in published.ABSENT:
            raise usage(f"'--data': there is no {name}: {published.ABSENT[name]}.")
    made = []
    with search_of("uci", results, runs, grid.value, seed, as_json, quiet) as search:
        for name in chosen:
            rows_of_set = datasets.load(name)
            made += table_uci.make(search, rows_of_set, tuple(each for each in rows if each in table_uci.ROWS))
            made += ours.make(search, rows_of_set, tuple(each for each in rows if each in ours.ROWS))
    show(made, as_json)


@table.command()
@command
def mnist(
    row: ROWS = None,
    grid: GRID = Budget.evening,
    width: Annotated[
        int | None,
        typer.Option(
            "--width", min=1, help="Units of a layer: 1000 in an evening, 8000 in the full grid.", show_default=False
        ),
    ] = None,
    epochs: EPOCHS = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            "--rate",
            help="A learning rate to try; may be repeated. 0.05 in an evening, the paper's four in the full grid.",
            show_default=False,
        ),
    ] = None,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Table 6: binarized MNIST. Rows: MADE 1hl (1 mask), MADE 2hl (1 mask), the same with 32 masks, ours, any-order."""
    from made.io import datasets
    from made.paper import ours, table_mnist

    rows = _chosen(row, (*table_mnist.ROWS, *ours.ROWS))
    if (width or epochs or rate) and not set(rows) - set(ours.ROWS):
        raise usage("'--width', '--epochs' and '--rate' are for the paper's rows; those of ours are chosen.")
    rates = tuple(dict.fromkeys(rate or ()))  # one that is named twice is tried once
    if not all(0 < each < math.inf for each in rates):
        raise usage(f"'--rate' should be a number above 0, not {', '.join(map(str, rates))}.")
    with search_of("mnist", results, runs, grid.value, seed, as_json, quiet) as search:
        data = datasets.load(table_mnist.SET)
        paper = tuple(each for each in rows if each in table_mnist.ROWS)
        made = table_mnist.make(search, data, paper, width, epochs, rates)
        made += ours.make(search, data, tuple(each for each in rows if each in ours.ROWS))
    show(made, as_json)


@table.command()
@command
def baselines(
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="A set; may be repeated. All but RCV1 unless told.", show_default=False),
    ] = None,
    row: ROWS = None,
    grid: GRID = Budget.evening,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Tables 4 and 6: the other systems, from MoBernoullis to DARN; rows are named as there."""
    from made.io import datasets
    from made.paper import published, table_baselines, table_mnist

    chosen = data or [*(name for name in published.UCI_SETS if name not in published.ABSENT), table_mnist.SET]
    known = {row for name in chosen for row in table_baselines.rows_of(name)}
    rows = _chosen(row, tuple(each for each in table_baselines.ALL if each in known))
    made = []
    with search_of("baselines", results, runs, grid.value, seed, as_json, quiet) as search:
        for name in chosen:
            made += table_baselines.make(search, datasets.load(name), rows)
    show(made, as_json)


@table.command()
@command
def complexity(
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny networks, to see that it works; their times say nothing.")
    ] = False,
    results: RESULTS = Path("results"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Table 1: how the time of an exact NLL grows with columns, units, layers and masks, measured on this machine."""
    from made.paper.record import Record
    from made.paper.table_complexity import machine, markdown, measure

    writable(results, "--results")
    record = Record(results / "complexity.json")
    there, budget = record.rows(), "quick" if quick else "full"
    facts = {"budget": budget, "command": typed(), "machine": machine()}
    kept = not quick or all(each.get("budget") == "quick" for each in there)
    if not kept:
        note(f"Note: {record.path} has a full measurement, which a quick one does not replace.", quiet)
    # One that came to its end is made anew, one that was stopped goes on: its table is written last.
    stopped = kept and not any(each.get("formula") for each in there if each.get("budget") == budget)
    done = {
        each["row"]: each["series"] for each in there if stopped and each.get("series") and each["budget"] == budget
    }
    rows: list[dict[str, Any]] = []

    def keep(row: dict[str, Any]) -> None:
        rows.append(record.put(row | facts) if kept else row | facts)

    if kept and not stopped:
        record.remove(budget)
    result = measure(
        quick=quick,
        done=done,
        # The times of a series are its own key: `seconds`, as everywhere, is a number.
        keep=lambda each: keep({"row": each["name"], "config": each["fixed"], "series": each}),
        report=lambda line: note(line, quiet or as_json),
    )
    for each in result["rows"]:
        keep({"row": each["model"], "formula": each["formula"], "measured": each["measured"]})
    if as_json:
        print_json(record.rows() if kept else rows)
    else:
        say(markdown(result).rstrip("\n"))


def _chosen(rows: list[str] | None, known: tuple[str, ...]) -> list[str]:
    if unknown := [each for each in rows or () if each not in known]:
        raise usage(f"'--row': {unknown[0]!r} is not a row; the rows are {', '.join(known)}.")
    return rows or list(known)
