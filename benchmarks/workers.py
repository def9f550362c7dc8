"""`python -m benchmarks.workers`: the updates of two workers with one thread each, beside those of one, interleaved.

The processes take turns: the first one makes some updates alone, while the others wait, then all make as many together,
on batches of the same size. Ratios of seconds are medians over repeats with quartiles, and so are the parts of the cost
model in docs/scale.md: an update alone on the whole batch and on a worker's share of it, and the sum of the gradients
over the workers by itself. The ratio of processor time leaves out waiting, as for a core that another program keeps
busy: what two workers would reach if both cores were free, and nothing had to wait.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from made import MADE
from made.distributed.join import joined
from made.model.prepare import prepare
from made.tables.table import Table
from made.training.trainer import Trainer
from made.training.workers import ALONE, Workers

# Columns, values of each, hidden units, rows of a batch.
CASES = {
    "table": (20, 4, (256, 256), 500),
    "table, large batch": (20, 4, (256, 256), 4000),
    "784 binary columns": (784, 2, (500, 500), 500),
    "784 binary columns, large batch": (784, 2, (500, 500), 4000),
}


def rows_of(columns: int, values: int, rows: int) -> np.ndarray:
    """Rows whose columns depend on each other."""
    random = np.random.default_rng(0)
    hidden = random.integers(values, size=(rows, 1 + columns // 8)).repeat(8, axis=1)[:, :columns]
    return np.where(random.random((rows, columns)) < 0.7, hidden, random.integers(values, size=(rows, columns)))


def trainer_of(rows: np.ndarray, hidden: Sequence[int], batch: int, workers: Workers) -> Trainer:
    """A trainer of the default model, before its first update."""
    parameters = MADE(hidden_sizes=hidden, batch_size=batch, max_epochs=1).get_params(deep=False)
    trainer = prepare(Table.of(rows), None, parameters, seed=0, workers=workers).trainer
    assert trainer is not None
    trainer.config = replace(trainer.config, max_epochs=10**6)
    trainer.network.train()
    return trainer


def seconds(work: Callable[[], Any], times: int) -> tuple[float, float]:
    """The seconds and the processor seconds of one call."""
    begin, own = time.perf_counter(), time.process_time()
    for _ in range(times):
        work()
    return (time.perf_counter() - begin) / times, (time.process_time() - own) / times


def quartiles(numbers: Sequence[float], digits: int) -> list[float]:
    return [round(each, digits) for each in statistics.quantiles(numbers, n=4)]


def measure(name: str, repeats: int, times: int, workers: Workers) -> dict[str, Any] | None:
    """One case; all workers call this, and the first gets the result."""
    columns, values, hidden, batch = CASES[name]
    rows = rows_of(columns, values, 20_000)
    together = trainer_of(rows, hidden, batch, workers)
    alone = trainer_of(rows, hidden, batch, ALONE)
    share = trainer_of(rows, hidden, batch // workers.count, ALONE)
    gradient = [torch.zeros(sum(each.numel() for each in together.parameters.values()))]
    works = {
        "alone": alone._update,
        "share": share._update,
        "together": together._update,
        "sum": lambda: workers.add(gradient),
    }
    found: dict[str, list[tuple[float, float]]] = {each: [] for each in works}
    for repeat in range(repeats + 1):
        for each, work in works.items():
            workers.exchange("ready")
            taken = seconds(work, times) if workers.rank == 0 or each in ("together", "sum") else (0.0, 0.0)
            slowest = max(both[1] for both in workers.exchange(taken))
            if repeat:  # the first one warms up
                found[each].append((taken[0], slowest))
    if workers.rank:
        return None
    ratios = [one[0] / two[0] for one, two in zip(found["alone"], found["together"], strict=True)]
    busy = [one[1] / two[1] for one, two in zip(found["alone"], found["together"], strict=True)]
    return {
        "case": name,
        "columns": columns,
        "hidden": hidden,
        "rows": batch,
        "parameters": len(gradient[0]),
        "workers": workers.count,
        "ratio": quartiles(ratios, 2),
        "ratio_of_processor_time": quartiles(busy, 2),
        "ms": {each: quartiles([1000 * wall for wall, _ in pairs], 2) for each, pairs in found.items()},
        "processor_ms": {each: quartiles([1000 * own for _, own in pairs], 2) for each, pairs in found.items()},
        "load": [round(each, 1) for each in os.getloadavg()],
    }


def start(workers: int) -> None:
    """Start this program as several workers."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    shared = {
        "TORCHELASTIC_RUN_ID": "benchmark",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(workers),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    words = [sys.executable, "-m", "benchmarks.workers", *sys.argv[1:]]
    running = [subprocess.Popen(words, env=os.environ | shared | {"RANK": str(rank)}) for rank in range(workers)]
    for each in running:
        each.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--times", type=int, default=16, help="updates in a repeat")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each case")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        start(options.workers)
        return
    torch.set_num_threads(1)
    with joined() as workers:
        for name in options.cases:
            case = measure(name, options.repeats, options.times, workers)
            if case is None:
                continue
            (low, middle, high), busy = case["ratio"], case["ratio_of_processor_time"][1]
            text = (
                f"{name:32} {case['parameters']:9,} parameters: {workers.count} workers, {middle:.2f} times the rows "
                f"per second of one ({low:.2f} to {high:.2f}); by processor time {busy:.2f}"
            )
            print(json.dumps(case) if options.json else text, flush=True)


if __name__ == "__main__":
    main()
