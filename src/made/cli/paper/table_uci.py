"""`made paper table uci`."""

from __future__ import annotations

from pathlib import Path

from made.cli.errors import command, usage
from made.cli.paper import shared
from made.cli.paper.shared import DATASETS, GRID, RESULTS, ROWS, RUNS, SEED


@command
def uci(
    data: DATASETS = None,
    row: ROWS = None,
    grid: GRID = shared.Budget.evening,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
) -> None:
    """Table 4: the binary UCI sets. Rows: MADE, MADE mask sampling, ours, any-order."""
    from made.io import datasets
    from made.paper import own_models, published, table_uci

    chosen = data or [name for name in published.UCI_SETS if name not in published.ABSENT]
    rows = shared.chosen_rows(row, (*table_uci.ROWS, *own_models.ROWS))
    for name in chosen:  # all, before training on the first
        if datasets.where(name) is None and name in published.ABSENT:
            raise usage(f"'--data': there is no {name}: {published.ABSENT[name]}.")
    found = []
    with shared.search_for("uci", results, runs, grid, seed) as search:
        for name in chosen:
            rows_of_set = datasets.load(name)
            for table in (table_uci, own_models):
                found += table.make(search, rows_of_set, tuple(each for each in rows if each in table.ROWS))
    shared.print_results(found)
