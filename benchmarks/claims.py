"""`python -m benchmarks.claims`: the paper's claims of speed, MADE beside NADE and EoNADE, in one process, interleaved.

The paper: a likelihood of a single-layer MADE takes an order of magnitude less than NADE's of the same width; a deep
EoNADE takes a pass for each column; an epoch of MADE with 8000 units takes less than one of NADE with 500 (14 and 44
seconds for one and two layers against 130, on a K20). NADE and EoNADE are those of :mod:`made.baselines`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch.nn import functional as F

from benchmarks.engine import COLUMNS, THREADS, interleave, stepper, summary
from made import Connectivities, Network, log_likelihood, log_prob
from made.baselines.eonade import OrderlessNetwork
from made.baselines.nade import NADENetwork
from made.files import atomic
from made.paper.table_complexity import machine

ROOT = Path(__file__).parent.parent
BATCH = 100


def rows(count: int) -> torch.Tensor:
    """Rows as sparse as digits are."""
    return (torch.rand(count, COLUMNS, generator=torch.Generator().manual_seed(0)) < 0.13).float()


def made_of(*hidden_sizes: int, masks: int = 1) -> Network:
    """MADE as the paper's Table 6 has it."""
    family = Connectivities(COLUMNS, hidden_sizes, masks=masks, ordering="random")
    return Network(COLUMNS, family, direct=True)


def claims() -> dict[str, tuple[str, dict[str, Callable[[], object]], int]]:
    """By name: what the paper says, the works to compare, the first of them ours, and how often."""
    many, few, order = rows(1000), rows(BATCH), torch.arange(COLUMNS)
    nade = NADENetwork(COLUMNS, 500).eval()
    deep = OrderlessNetwork(COLUMNS, (500, 500)).eval()

    def no_grad(work: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            with torch.no_grad():
                return work()

        return run

    def made_loss(network: Network) -> Callable[[int], torch.Tensor]:
        return lambda update: -log_likelihood(network, few, update).mean()

    one, two = made_of(500), made_of(500, 500)
    wide, wider = made_of(8000), made_of(8000, 8000)
    step_nade = stepper(
        nade, lambda update: F.binary_cross_entropy_with_logits(nade(few), few, reduction="sum") / BATCH
    )
    return {
        "log p, one layer of 500": (
            "an order of magnitude less than NADE",
            {"MADE": lambda: log_prob(one, many), "NADE": no_grad(lambda: [nade(some) for some in many.split(200)])},
            15,
        ),
        "log p, two layers of 500": (
            "one pass, where EoNADE takes one for each column",
            {"MADE": lambda: log_prob(two, many), "EoNADE": no_grad(lambda: deep.log_prob(many, order))},
            7,
        ),
        "a training step, one layer of 8000": (
            "14 s an epoch, NADE of 500 units 130 s",
            {"MADE": stepper(wide, made_loss(wide)), "NADE of 500": step_nade},
            15,
        ),
        "a training step, two layers of 8000": (
            "44 s an epoch, NADE of 500 units 130 s",
            {"MADE": stepper(wider, made_loss(wider)), "NADE of 500": step_nade},
            9,
        ),
    }


def document(results: list[dict[str, Any]]) -> str:
    """The measurements, as Markdown."""
    lines = ["| work | the paper | times as fast as | ratio | seconds |", "|---|---|---|---:|---|"]
    for each in results:
        ratio, seconds = each["ratio"], each["seconds"]
        spread = f"{ratio['median']:.1f} ({ratio['low']:.1f} to {ratio['high']:.1f})"
        times = ", ".join(f"{name} {value:.4f}" for name, value in seconds.items())
        lines.append(f"| {each['work']} | {each['paper']} | {each['peer']} | {spread} | {times} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "claims.json")
    chosen = parser.parse_args()
    torch.set_num_threads(THREADS)
    results = []
    for name, (paper, work, repeats) in claims().items():
        seconds = interleave(work, repeats)
        ours, peer = work
        ratio = summary([other / own for own, other in zip(seconds[ours], seconds[peer], strict=True)])
        medians = {key: summary(each)["median"] for key, each in seconds.items()}
        results.append({"work": name, "paper": paper, "peer": peer, "ratio": ratio, "seconds": medians})
        Console(stderr=True).print(f"{name}: {ratio['median']:.1f} times as fast as {peer}")
    with atomic(chosen.out) as file:
        file.write((json.dumps({"machine": machine(), "rows": results}, indent=1) + "\n").encode())
    print(document(results))


if __name__ == "__main__":
    main()
