"""`python -m benchmarks.claims`: the paper's claims of speed, interleaved in one process, for `made paper report`.

The paper: a likelihood of a single-layer MADE takes an order of magnitude less than NADE's of the same width; a deep
EoNADE takes a pass for each column; an epoch of MADE with 8000 units takes less than one of NADE with 500 (14 and 44
seconds for one and two layers against 130, on a K20), and more than twice as long with 32 masks (33 and 100 seconds).
NADE and EoNADE are those of :mod:`made.baselines`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from torch.nn import functional as F

from benchmarks.engine import COLUMNS, THREADS, interleave, stepper, summary
from made import Connectivities, Ensemble, Network, log_likelihood, log_prob
from made.baselines.eonade import OrderlessNetwork
from made.baselines.nade import NADENetwork
from made.paper.provenance import machine_info
from made.paper.results_file import ResultsFile

ROOT = Path(__file__).parent.parent
BATCH = 100


def rows(count: int) -> torch.Tensor:
    """Random rows as sparse as digits."""
    return (torch.rand(count, COLUMNS, generator=torch.Generator().manual_seed(0)) < 0.13).float()


def made_of(*hidden_sizes: int, masks: int = 1) -> Network:
    """MADE as in the paper's Table 6."""
    family = Connectivities(COLUMNS, hidden_sizes, masks=masks, ordering="random")
    return Network(COLUMNS, family, direct=True)


def claims() -> dict[str, tuple[str, dict[str, Callable[[], object]], int]]:
    """By name: the paper's claim, two functions to compare, the first claimed to be faster, and repeats."""
    many, few, order = rows(1000), rows(BATCH), torch.arange(COLUMNS)
    nade = NADENetwork(COLUMNS, 500).eval()
    deep = OrderlessNetwork(COLUMNS, (500, 500)).eval()

    def no_grad(work: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            with torch.no_grad():
                return work()

        return run

    def step_made(*hidden_sizes: int, masks: int = 1) -> Callable[[], None]:
        network = made_of(*hidden_sizes, masks=masks)
        return stepper(network, lambda update: -log_likelihood(network, few, update).mean())

    one, two = made_of(500), made_of(500, 500)
    step_wide, step_wider = step_made(8000), step_made(8000, 8000)
    step_nade = stepper(
        nade, lambda update: F.binary_cross_entropy_with_logits(nade(few), few, reduction="sum") / BATCH
    )
    return {
        "log p, one layer of 500": (
            "an order of magnitude less than NADE",
            {
                "MADE": lambda: log_prob(Ensemble(one), many),
                "NADE": no_grad(lambda: [nade(some) for some in many.split(200)]),
            },
            15,
        ),
        "log p, two layers of 500": (
            "one pass, where EoNADE takes one for each column",
            {"MADE": lambda: log_prob(Ensemble(two), many), "EoNADE": no_grad(lambda: deep.log_prob(many, order))},
            7,
        ),
        "a training step, one layer of 8000": (
            "14 s an epoch, NADE of 500 units 130 s",
            {"MADE": step_wide, "NADE of 500": step_nade},
            15,
        ),
        "a training step, two layers of 8000": (
            "44 s an epoch, NADE of 500 units 130 s",
            {"MADE": step_wider, "NADE of 500": step_nade},
            9,
        ),
        "a training step with one mask, one layer of 8000": (
            "14 s an epoch, with 32 masks 33 s",
            {"1 mask": step_wide, "32 masks": step_made(8000, masks=32)},
            15,
        ),
        "a training step with one mask, two layers of 8000": (
            "44 s an epoch, with 32 masks 100 s",
            {"1 mask": step_wider, "32 masks": step_made(8000, 8000, masks=32)},
            9,
        ),
    }


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "claims.json")
    chosen = parser.parse_args()
    torch.set_num_threads(THREADS)
    record = ResultsFile(chosen.out)
    for name, (paper, work, repeats) in claims().items():
        seconds = interleave(work, repeats)
        first, second = work
        ratio = summary([other / own for own, other in zip(seconds[first], seconds[second], strict=True)])
        medians = {key: summary(each)["median"] for key, each in seconds.items()}
        record.put(
            {
                "row": name,
                "config": machine_info() | {"threads": THREADS},
                "paper": paper,
                "ratio": ratio,
                "medians": medians,
            }
        )
        Console().print(f"{name}: {first} {ratio['median']:.1f} times as fast as {second}")


if __name__ == "__main__":
    main()
