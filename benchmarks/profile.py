"""`python -m benchmarks.profile`: where an update, a scored row and the start of a command spend their time.

On wa_churn, or the table of MADE_TABLES that is named, with default parameters and one thread. The parts of an update
and of scoring are operations of torch by their own time; those of a start are the modules that take longest to import.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.tables import read
from benchmarks.updates import trainer_of
from made import MADE


def operations(what: str, work: Callable[[], Any], times: int, rows: int) -> None:
    """Print the operations of torch that take longest."""
    work()
    with torch.profiler.profile() as profile:
        for _ in range(times):
            work()
    found = profile.key_averages()
    total = sum(each.self_cpu_time_total for each in found)
    print(f"\n{what}: {total / times / 1000:.2f} ms, {total / times / rows:.1f} microseconds a row")
    for each in sorted(found, key=lambda each: -each.self_cpu_time_total)[:15]:
        own = each.self_cpu_time_total
        print(f"  {own / total:6.1%} {own / times / 1000:8.3f} ms {each.count / times:7.1f} x {each.key[:60]}")


def imports(count: int = 15) -> None:
    """Print the modules that take longest to import, of all that ``made score`` needs."""
    code = "import made.cli.commands, made.cli.score, made.model.model"
    run = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    rows = [line.removeprefix("import time:").split("|") for line in run.stderr.splitlines() if "|" in line][1:]
    own = sorted(((int(own), int(all_), name.strip()) for own, all_, name in rows), reverse=True)
    total = sum(each for each, _, _ in own) / 1e6
    print(f"\nimports of made score: {total:.2f} s, {len(own)} modules; by their own time")
    for each, together, name in own[:count]:
        print(f"  {each / 1000:8.1f} ms own {together / 1000:8.1f} ms with what it imports  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", default="wa_churn")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = read(options.table)
    for what, share in (("parts of rows", 0.0), ("whole rows", 1.0)):
        trainer = trainer_of(table, whole_rows=share)
        operations(f"an update by {what}", trainer._update, 30, trainer.config.batch_size)
    model = MADE(random_state=0, max_epochs=1).fit(table)
    operations("scored rows", lambda: model.score_samples(table), 1, len(table))
    imports()


if __name__ == "__main__":
    main()
