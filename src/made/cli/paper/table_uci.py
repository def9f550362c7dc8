"""`made paper table uci`."""

from __future__ import annotations

from pathlib import Path

from made.cli.errors import command, usage
from made.cli.options import JSON, QUIET
from made.cli.paper.options import DATASETS, GRID, RESULTS, ROWS, RUNS, SEED, Budget
from made.cli.paper.searches import chosen_rows, print_results, search_for

__all__ = ["uci"]


@command
def uci(
    data: DATASETS = None,
    row: ROWS = None,
    grid: GRID = Budget.evening,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Table 4: the binary UCI sets. Rows: Model, MADE mask sampling, ours, any-order."""
    from made.io import datasets
    from made.paper import own_models, published, table_uci

    chosen = data or [name for name in published.UCI_SETS if name not in published.ABSENT]
    rows = chosen_rows(row, (*table_uci.ROWS, *own_models.ROWS))
    for name in chosen:  # all, before training on the first
        if datasets.where(name) is None and name in published.ABSENT:
            raise usage(f"'--data': there is no {name}: {published.ABSENT[name]}.")
    found = []
    with search_for("uci", results, runs, grid.value, seed, as_json, quiet) as search:
        for name in chosen:
            rows_of_set = datasets.load(name)
            found += table_uci.make(search, rows_of_set, tuple(each for each in rows if each in table_uci.ROWS))
            found += own_models.make(search, rows_of_set, tuple(each for each in rows if each in own_models.ROWS))
    print_results(found, as_json)
