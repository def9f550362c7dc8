"""`made paper table complexity`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from made.cli.errors import command
from made.cli.options import flag
from made.cli.paper.shared import RESULTS, SEED, typed, writable
from made.cli.printing import mode, note, print_json, say


@command
def complexity(
    quick: Annotated[bool, flag("--quick", "Tiny networks, as a smoke test; the times mean nothing.")] = False,
    results: RESULTS = Path("results"),
    seed: SEED = 0,
) -> None:
    """Table 1: how the time of an exact NLL grows with columns, units, layers and masks, measured on this machine."""
    from made.paper.provenance import machine_info
    from made.paper.results_file import ResultsFile
    from made.paper.results_page import complexity_tables
    from made.paper.table_complexity import TABLE, measure

    writable(results, "--results")
    record = ResultsFile(results / "complexity.json")
    there, budget = record.rows(), "quick" if quick else "full"
    facts = {"budget": budget, "command": typed(), "machine": machine_info()}
    kept = not quick or all(each.get("budget") == "quick" for each in there)
    if not kept:
        note(f"Note: {record.path} has a full measurement, and a quick one does not replace it.")
    # A complete measurement is repeated, an interrupted one is resumed: the table is written last.
    stopped = kept and not any(each.get("formula") for each in there if each.get("budget") == budget)
    done = {each["row"] for each in there if stopped and each.get("series") and each["budget"] == budget}
    rows: list[dict[str, Any]] = []

    def keep(row: dict[str, Any]) -> None:
        rows.append(record.put(row | facts) if kept else row | facts)

    if kept and not stopped:
        record.remove(budget)
    measure(
        # The times of a series are its own key: `seconds`, as everywhere, is a number.
        lambda each: keep({"row": each["name"], "config": each["fixed"], "series": each}),
        quick=quick,
        done=done,
        report=lambda line: note(line) if mode.progress else None,
    )
    for model, formula, measured in TABLE:
        keep({"row": model, "formula": formula, "measured": measured})
    if kept:
        rows = record.rows()
    if mode.json:
        print_json(rows)
    else:
        say("\n\n".join(complexity_tables(rows)))
