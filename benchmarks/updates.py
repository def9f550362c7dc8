"""`python -m benchmarks.updates`: a default training update beside that of a plain MLP, interleaved in one process.

The plain MLP is what anyone would write: `torch.nn` layers of the same sizes, unmasked, ReLU, one cross-entropy, and
AdamW, on batches of the same size. Ratios are of processor time, medians over repeats with quartiles. One thread, as
training takes for networks of this size. "With validation" adds the validation after each epoch to its updates.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from benchmarks.tables import read
from made import MADE
from made.training.trainer import Trainer

TABLES = ("wa_churn", "attrition", "credit_data")


def plain_mlp(sizes: tuple[int, ...]) -> nn.Sequential:
    """An unmasked network of these sizes."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def plain_update(sizes: tuple[int, ...], rows: int) -> Callable[[], None]:
    """An update of such a network."""
    network = plain_mlp(sizes)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    x, y = torch.randn(rows, sizes[0]), torch.randint(sizes[-1], (rows,))

    def update() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()

    return update


def trainer_of(table: Any, **parameters: Any) -> Trainer:
    """The trainer of a default model, after two epochs."""
    found: list[Trainer] = []
    original = Trainer.run

    def run(self: Trainer, **arguments: Any) -> Any:
        found.append(self)
        return original(self, **arguments)

    Trainer.run = run  # type: ignore[method-assign]
    try:
        MADE(random_state=0, max_epochs=2, **parameters).fit(table)
    finally:
        Trainer.run = original  # type: ignore[method-assign]
    trainer = found[0]
    trainer.config = dataclasses.replace(trainer.config, max_epochs=10**6)
    trainer.network.train()
    return trainer


def milliseconds(work: Callable[[], Any], times: int) -> float:
    """The processor time of one call."""
    begin = time.process_time()
    for _ in range(times):
        work()
    return 1000 * (time.process_time() - begin) / times


def measure(name: str, repeats: int) -> Iterator[dict[str, Any]]:
    """Updates that predict parts of rows, those that predict whole rows, and the default, which is half of each."""
    for what, share in (("parts of rows", 0.0), ("whole rows", 1.0), ("default", "auto")):
        trainer = trainer_of(read(name), whole_rows=share)
        plain = plain_update(trainer.network.sizes, trainer.config.batch_size)

        def validate(trainer: Trainer = trainer) -> None:
            trainer.network.eval()
            trainer._validate(trainer.config.validation_masks, quick=True)
            trainer.network.train()

        for work in (plain, trainer._update, validate):
            milliseconds(work, 10)
        times = [[milliseconds(plain, 16), milliseconds(trainer._update, 16)] for _ in range(repeats)]
        validation = statistics.median(milliseconds(validate, 1) for _ in range(5)) / trainer.updates_per_epoch
        ratios = [ours / theirs for theirs, ours in times]
        low, middle, high = statistics.quantiles(ratios, n=4)
        theirs = statistics.median(each for each, _ in times)
        yield {
            "table": name,
            "updates": what,
            "sizes": trainer.network.sizes,
            "rows": trainer.config.batch_size,
            "plain_ms": round(theirs, 2),
            "ratio": [round(each, 2) for each in (low, middle, high)],
            "with_validation": round(middle + validation / theirs, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each case")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in TABLES:
        for case in measure(name, options.repeats):
            low, middle, high = case["ratio"]
            text = (
                f"{name:12} {case['updates']:14} {middle:.2f} times a plain update ({low:.2f} to {high:.2f}), "
                f"{case['with_validation']:.2f} with validation"
            )
            print(json.dumps(case) if options.json else text, flush=True)


if __name__ == "__main__":
    main()
