"""`python -m benchmarks.answers`: the time of each query about a table, in forward passes of a plain MLP.

On the tables in MADE_TABLES, a `MADE` with default parameters (fitted for a few epochs: speed does not depend on more)
answers queries about at most 1,000 rows of a pandas frame, from the frame to the answer. The unit is a forward pass of
the `torch.nn` MLP of the same layer sizes over the same number of rows, timed in turn with each query. `impute` is of
rows of which a fifth of the entries is missing. Printed are medians and quartiles, and rows per second.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.tables import LABELS, read
from made import MADE

NUMBERS = {
    "penguins": "body_mass_g",
    "attrition": "MonthlyIncome",
    "credit_data": "Income",
    "wa_churn": "total_charges",
}
ROWS, MISSING, PASSES = 1000, 0.2, 20


def seconds(work: Callable[[], object]) -> float:
    """The time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(name: str, repeats: int, epochs: int) -> dict[str, dict[str, Any]]:
    """For each query: quartiles of its time, as a multiple of a forward pass, and rows per second."""
    table = read(name)
    model = MADE(max_epochs=epochs, random_state=0).fit(table)
    rows = table.iloc[:ROWS]
    incomplete = rows.mask(np.random.default_rng(0).random(rows.shape) < MISSING)
    label, number = LABELS[name], NUMBERS.get(name)
    queries: dict[str, Callable[[], object]] = {
        "score_samples": lambda: model.score_samples(rows),
        "impute": lambda: model.impute(incomplete),
        "predict_proba": lambda: model.predict_proba(rows, label),
        "sample": lambda: model.sample(len(rows)),
    }
    if number is not None:
        queries["predict"] = lambda: model.predict(rows, number)
        queries["predict_quantiles"] = lambda: model.predict_quantiles(rows, number)
    sizes = model.model_.network.sizes
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    mlp, x = nn.Sequential(*layers[:-1]), torch.randn(len(rows), sizes[0])

    @torch.inference_mode()
    def passes() -> None:
        for _ in range(PASSES):
            mlp(x)

    results = {}
    for query, ask in queries.items():
        ask()  # the first call fills caches
        passes()
        times = np.array([(seconds(ask), seconds(passes) / PASSES) for _ in range(repeats)])
        low, middle, high = np.quantile(times[:, 0] / times[:, 1], (0.25, 0.5, 0.75))
        took = float(np.median(times[:, 0]))
        results[query] = {
            "passes": round(middle, 1),
            "quartiles": [round(low, 1), round(high, 1)],
            "seconds": round(took, 4),
            "rows_per_second": round(len(rows) / took),
        }
    return results


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(LABELS), help="comma-separated names")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # such as of training that was still improving
    torch.set_num_threads(given.threads)
    answers = {name: measure(name, given.repeats, given.epochs) for name in given.tables.split(",")}
    if given.json:
        print(json.dumps(answers))
        return
    print(f"{'table':12} {'query':18} {'forward passes (quartiles)':>28} {'ms':>8} {'rows per second':>16}")
    for name, results in answers.items():
        for query, each in results.items():
            low, high = each["quartiles"]
            shown = f"{each['passes']:.1f} ({low:.1f} to {high:.1f})"
            print(f"{name:12} {query:18} {shown:>28} {1000 * each['seconds']:8.1f} {each['rows_per_second']:16,}")


if __name__ == "__main__":
    main()
