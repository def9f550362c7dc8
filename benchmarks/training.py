"""The time of an epoch by part: `python -m benchmarks.training`, with MADE_DATA, trains 1 x 500 on adult.

The overhead of this package (order, batches, masks, checks), beyond forward and backward passes and optimizer steps,
should be less than a fifth. With `--mnist`, the seconds of an epoch of 1 x 8000 with 32 masks on binarized_mnist.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from made import Connectivities, Network
from made.io.datasets import load
from made.training import objective as objective_module
from made.training import trainer as trainer_module
from made.training.config import TrainingConfig
from made.training.trainer import Trainer


def measure(masks: int | None, epochs: int) -> dict[str, Any]:
    """The share of each part in the time of an epoch; medians over epochs."""
    data = load("adult")
    family = Connectivities(123, (500,), masks=masks, ordering="random")
    trainer = Trainer(
        Network(123, family, direct=True),
        data.train,
        data.valid,
        TrainingConfig(optimizer="adadelta", max_epochs=epochs),
    )
    spent: dict[str, float] = defaultdict(float)

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[name] += time.perf_counter() - begin

        return run

    kept = objective_module.log_likelihood, trainer_module.log_prob, torch.Tensor.backward
    objective_module.log_likelihood = timed("forward", kept[0])
    trainer_module.log_prob = timed("validation", kept[1])
    torch.Tensor.backward = timed("backward", kept[2])
    trainer.optimizer.step = timed("optimizer", trainer.optimizer.step)
    rows, last = [], time.perf_counter()

    def report(epoch: object) -> None:
        nonlocal last
        now = time.perf_counter()
        rows.append({"seconds": now - last, **{name: value / (now - last) for name, value in spent.items()}})
        spent.clear()
        last = time.perf_counter()

    try:
        trainer.run(report=report)
    finally:
        objective_module.log_likelihood, trainer_module.log_prob, torch.Tensor.backward = kept
    rows = rows[1:]  # the first epoch warms up
    result = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    inside = [sum(value for name, value in row.items() if name != "seconds") for row in rows]
    return {"masks": masks or "unlimited", **result, "inside": statistics.median(inside), "least": min(inside)}


def epoch_seconds() -> float:
    """The seconds of an epoch of the paper's 1 x 8000 with 32 masks on binarized_mnist, with its validation."""
    data = load("binarized_mnist")
    family = Connectivities(784, (8000,), masks=32, ordering="random")
    config = TrainingConfig(optimizer="adagrad", learning_rate=0.05, epsilon=1e-6, max_epochs=1)
    begin = time.perf_counter()
    Trainer(Network(784, family, direct=True), data.train, data.valid, config).run()
    return time.perf_counter() - begin


def main() -> None:
    """Print a line of JSON for one mask, sixteen, and unlimited ones; with `--profile`, the functions by time."""
    if "--mnist" in sys.argv:
        print(json.dumps({"epoch_seconds": round(epoch_seconds(), 1)}))
        return
    for masks in (1, 16, None):
        print(json.dumps({name: round(v, 3) if isinstance(v, float) else v for name, v in measure(masks, 11).items()}))
    if "--profile" in sys.argv:
        profile = cProfile.Profile()
        profile.runcall(measure, 1, 6)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(30)


if __name__ == "__main__":
    main()
