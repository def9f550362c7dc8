"""`python -m benchmarks.startup`: how long commands and imports take as whole processes, beside importing torch.

Processes take turns, each beside the import that it is compared with: medians over the turns, with quartiles.
Processor time is measured as well, because on a busy machine it varies less than the time that passes. The models are
small and fitted beforehand; queries are of ten rows. The tables are the penguins that come with the package, and
wa_churn if it is in MADE_TABLES.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.tables import read
from made import MADE
from made.io.datasets import table_file
from made.paper.provenance import machine_info

TORCH, SCIKIT, ESTIMATOR = "import torch", "import torch, sklearn.base", "import made; made.MADE"
ROWS = 10
# Bytecode is written and read as it is after an installation.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def commands(table: str, folder: Path) -> dict[str, list[str]]:
    """The queries of a model of a table, which is fitted here, by the words that are shown."""
    rows = pd.read_csv(str(table_file(table))) if table_file(table) else read(table)
    model = str(folder / f"{table}.made")
    MADE(hidden_sizes=(32,), max_epochs=2, random_state=0).fit(rows.head(300)).save(model)
    whole, incomplete = str(folder / f"{table}.csv"), str(folder / f"{table}-incomplete.csv")
    some = rows.dropna().head(ROWS)
    some.to_csv(whole, index=False)
    for row in range(ROWS):
        some = some.astype(object)
        some.iloc[row, row % rows.shape[1]] = None
    some.to_csv(incomplete, index=False)
    name = rows.columns[0]
    words = {
        "score": [model, whole],
        "impute": [model, incomplete],
        "predict": [model, whole, "--target", name],
        "ask": [model, f"{name} = {rows[name].dropna()[0]!r}"],
        "sample": [model],
        "info": [model],
    }
    return {f"made {verb}, {table}": ["-m", "made", verb, *rest] for verb, rest in words.items()}


def run(arguments: Sequence[str]) -> tuple[float, float]:
    """The time that a process of Python takes, and its processor time."""
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=errors, env=ENVIRONMENT
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise RuntimeError(f"python {' '.join(arguments)} failed: {errors.read().decode()}")
    return seconds, usage.ru_utime + usage.ru_stime


def against(process: str) -> str:
    """The import that a process is compared with."""
    return SCIKIT if process == ESTIMATOR else TORCH


def quartiles(values: Sequence[float]) -> list[float]:
    """The quartiles, the median in the middle."""
    return [round(value, 4) for value in statistics.quantiles(values, n=4, method="inclusive")]


def measure(processes: dict[str, list[str]], repeats: int) -> list[dict[str, Any]]:
    """A row of figures for each process, run in each turn right before or after the import that it is compared with."""
    pairs: dict[str, list[tuple[tuple[float, float], tuple[float, float]]]] = {name: [] for name in processes}
    for turn in track(range(repeats + 1), console=Console(stderr=True), transient=True):
        for name, arguments in processes.items():
            both = [arguments, ["-c", against(name)]]
            measured = [run(each) for each in (both if turn % 2 else both[::-1])]
            if turn:  # the first writes bytecode
                pairs[name].append((measured[0], measured[1]) if turn % 2 else (measured[1], measured[0]))
    return [
        {
            "process": name,
            "seconds": quartiles([mine[0] for mine, _ in measured]),
            "processor_seconds": quartiles([mine[1] for mine, _ in measured]),
            "against": against(name),
            "ratio": quartiles([mine[0] / other[0] for mine, other in measured]),
            "processor_ratio": quartiles([mine[1] / other[1] for mine, other in measured]),
        }
        for name, measured in pairs.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=11, help="Turns that are counted.")
    parser.add_argument("--tables", default="wa_churn,penguins", help="Tables whose models are queried.")
    parser.add_argument("--only", default="", help="Only processes whose names contain this text, such as score.")
    parser.add_argument("--json", action="store_true", help="Print JSON and nothing else.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        processes = {ESTIMATOR: ["-c", ESTIMATOR], "made --help": ["-m", "made", "--help"]}
        for table in chosen.tables.split(","):
            processes |= commands(table, Path(folder))
        rows = measure(
            {name: arguments for name, arguments in processes.items() if chosen.only in name}, chosen.repeats
        )
    if chosen.json:
        print(json.dumps({"machine": machine_info(), "repeats": chosen.repeats, "processes": rows}, indent=2))
        return
    table = Table(title=f"Whole processes, {chosen.repeats} turns: median (quartiles)")
    for title in ("process", "seconds", "processor", "against", "ratio", "processor ratio"):
        table.add_column(title, justify="left" if title in ("process", "against") else "right")
    for row in rows:
        figures = [
            f"{median:.2f} ({low:.2f}, {high:.2f})"
            for low, median, high in (
                row[name] for name in ("seconds", "processor_seconds", "ratio", "processor_ratio")
            )
        ]
        table.add_row(row["process"], *figures[:2], row["against"].removeprefix("import "), *figures[2:])
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
