"""`make bench`: our network beside zuko's and a textbook implementation, interleaved in one process.

Figures are ratios of times measured in turn: medians over repeats, with quartiles, because machines are shared and
noisy. The limit is the time of the multiply-adds of unmasked weights at the rate of `torch.mm` for the same shapes,
measured in the same run, plus, for a training step, one pass of the optimizer over as many numbers.

With `--busy`, another process keeps one core busy. Peers then run with one thread as well as with all, and the fastest
counts; our own number of threads is the one that training and queries choose.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress

from benchmarks import peers
from benchmarks.training import epoch_seconds
from made import Connectivities, Ensemble, Network, log_likelihood, log_prob, sample
from made.network.threads import Threads, single_thread
from made.paper.provenance import machine_info
from made.queries.evidence import Evidence

ROOT = Path(__file__).parent.parent
COLUMNS, ROWS, THREADS = 784, 100, 2


@dataclass(frozen=True)
class Case:
    """A benchmark of a network; its target is the least ratio, or for samples the most passes.

    ``limit`` is the most times the limit that it may take.
    """

    work: str
    hidden_sizes: tuple[int, ...]
    masks: int
    target: float
    repeats: int
    limit: float | None = None

    @property
    def name(self) -> str:
        network = f"{len(self.hidden_sizes)} x {self.hidden_sizes[0]}"
        return f"{self.work}, {'one mask' if self.masks == 1 else f'{self.masks} masks'}, {network}"


CASES = [
    Case("log p", (500,), 1, 1.3, 60),
    Case("log p", (8000,), 1, 2, 25),
    Case("log p", (8000, 8000), 1, 3, 15),
    Case("training step", (500,), 1, 1.5, 100),
    Case("training step", (8000,), 1, 2.5, 25, 1.25),
    Case("training step", (8000, 8000), 1, 4, 15, 1.25),
    Case("training step", (500,), 32, 1.3, 100),
    Case("training step", (8000, 8000), 32, 1.3, 11, 2),
    Case("100 samples", (8000, 8000), 1, 2.5, 9),
    Case("100 samples", (8000,), 1, 6, 11),
    Case("100 samples", (500,), 1, 25, 21),
]


@contextmanager
def busy_core() -> Iterator[None]:
    """Another process keeps one core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def interleave(work: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """The seconds of each, repeated in turn, after two warm-up rounds.

    Every other round goes backwards, so that none is always the one after the same other's use of the caches.
    """
    seconds: dict[str, list[float]] = {name: [] for name in work}
    names = list(work)
    for number in range(repeats + 2):
        for name in names if number % 2 else reversed(names):
            start = time.perf_counter()
            work[name]()
            seconds[name].append(time.perf_counter() - start)
    return {name: each[2:] for name, each in seconds.items()}


def summary(values: list[float]) -> dict[str, float]:
    """The median and the quartiles."""
    low, _, high = statistics.quantiles(values, n=4)
    return {"median": statistics.median(values), "low": low, "high": high}


def stepper(
    network: torch.nn.Module, loss: Callable[[int], torch.Tensor], threads: Threads | None = None
) -> Callable[[], None]:
    """A training step with Adagrad, fused, the same for all; each call is the next update."""
    optimizer = torch.optim.Adagrad(network.parameters(), lr=0.01, fused=True)
    update = 0
    if threads is not None:
        threads.check(ROWS, lambda: torch.autograd.grad(loss(0), list(network.parameters())))

    def step() -> None:
        nonlocal update
        with nullcontext() if threads is None else threads.timed(ROWS):
            optimizer.zero_grad()
            loss(update).backward()
            optimizer.step()
        update += 1

    return step


def by_one_thread(work: Callable[[], object]) -> Callable[[], object]:
    """The same work with one thread."""
    return single_thread()(work)


def limit(case: Case, family: Connectivities) -> dict[str, Callable[[], object]]:
    """The parts of the limit, to be timed with the rest: dense products, and a pass of the optimizer."""
    sizes = (COLUMNS, *case.hidden_sizes, COLUMNS)
    pieces: dict[str, Callable[[], object]] = {}
    unmasked = 0
    for layer, mask in enumerate(family[0].masks()):
        weight = torch.randn(sizes[layer + 1], sizes[layer])
        x, y = torch.randn(sizes[layer], ROWS), torch.randn(sizes[layer + 1], ROWS)
        share = float(mask.mean())
        unmasked += int(mask.sum())
        pieces[f"{share} product {layer}"] = lambda w=weight, x=x, y=y: torch.mm(w, x, out=y)
        if case.work == "training step":
            slope = torch.empty_like(weight)
            pieces[f"{share} weights {layer}"] = lambda w=slope, x=x, y=y: torch.mm(y, x.t(), out=w)
            if layer:
                pieces[f"{share} units {layer}"] = lambda w=weight, x=x, y=y: torch.mm(w.t(), y, out=x)
    if case.work == "training step":
        flat = torch.nn.Parameter(torch.randn(unmasked))
        flat.grad = torch.randn(unmasked)
        pieces["1.0 optimizer"] = torch.optim.Adagrad([flat], lr=0.01, fused=True).step
    return pieces


def run(case: Case, busy: bool = False) -> dict[str, Any]:
    """Measure a case; on a busy machine, peers run with one thread as well as with all."""
    family = Connectivities(COLUMNS, case.hidden_sizes, masks=case.masks, ordering="random")
    network = Network(COLUMNS, family)
    rows = (torch.rand(ROWS, COLUMNS) < 0.2).float()
    others = {
        "textbook": peers.textbook(COLUMNS, case.hidden_sizes),
        "zuko": peers.zuko_mlp(COLUMNS, case.hidden_sizes),
    }
    connectivities = [family[number] for number in range(case.masks)]
    for other in others.values():
        peers.set_masks(other, connectivities[0])

    def peer_loss(other: torch.nn.Sequential, update: int) -> torch.Tensor:
        if case.masks > 1:
            peers.set_masks(other, connectivities[update % case.masks])
        return -peers.log_prob(other, rows).mean()

    if case.work == "training step":
        checked = Evidence.of(network, rows)  # as training does it: once, not in every step
        work = {"made": stepper(network, lambda t: -log_likelihood(network, checked, t).mean(), Threads())}
        for name, other in others.items():
            work[name] = stepper(other, lambda t, other=other: peer_loss(other, t))
    else:
        work = {"made": lambda: log_prob(Ensemble(network), rows)}
        for name, other in others.items():
            work[name] = torch.no_grad()(lambda other=other: peers.log_prob(other, rows))
    peer_names = list(others)
    if busy:
        for name in others:
            work[f"{name}, one thread"] = by_one_thread(work[name])
        peer_names = [name for name in work if name != "made"]
    result: dict[str, Any] = {"name": case.name, "target": case.target, "most_times_the_limit": case.limit}
    if case.work == "100 samples":
        work["samples"] = lambda: sample(Ensemble(network), ROWS, generator=0)
        seconds = interleave(work, case.repeats)
        fastest = min(peer_names, key=lambda name: statistics.median(seconds[name]))
        passes = [draw / once for draw, once in zip(seconds["samples"], seconds["made"], strict=True)]
        peer = [COLUMNS * once / draw for draw, once in zip(seconds["samples"], seconds[fastest], strict=True)]
        result |= {
            "passes": summary(passes),
            "reached": bool(statistics.median(passes) <= case.target),
            "times_as_fast_as_784_passes_of_the_faster_peer": summary(peer),
            "faster_peer": fastest,
            "seconds": {"made": statistics.median(seconds["samples"]), "log p": statistics.median(seconds["made"])},
        }
        return result
    seconds = interleave(work | limit(case, family), case.repeats)
    fastest = min(peer_names, key=lambda name: statistics.median(seconds[name]))
    ratios = [theirs / ours for theirs, ours in zip(seconds[fastest], seconds["made"], strict=True)]
    least = np.sum([np.multiply(float(k.split()[0]), v) for k, v in seconds.items() if k[0].isdigit()], axis=0)
    times = summary([ours / low for ours, low in zip(seconds["made"], least, strict=True)])
    result |= {
        "ratio": summary(ratios),
        "reached": bool(statistics.median(ratios) >= (1 if busy else case.target)),
        "faster_peer": fastest,
        "times_the_limit": times,
        "limit_reached": bool(case.limit is None or times["median"] <= case.limit),
        "seconds": {name: statistics.median(seconds[name]) for name in work} | {"limit": float(np.median(least))},
    }
    return result


# From profiles; not measured here.
WHY = [
    "On processors of AMD with AVX-512, oneDNN takes our products, in half the time of MKL, by which torch",
    "multiplies for the peers and for the limit: a step may then take less than the limit. Matrices of up to 2**19",
    "weights are multiplied by their mask in each pass, as the textbook does, with all their multiply-adds: with two",
    "threads, log p of 1 x 500 spends some 70 % of its time on masks and products. The rest is the likelihood, as in",
    "the peers, the interpreter, and what peers do not do: rows are checked. Larger matrices of one mask are stored",
    "without most of their zeros; those of 32 masks are masked a few rows at a time, or, if they have 2**21",
    "weights or more (with oneDNN, 2**24), gathered; with MKL and one thread, a step of 1 x 8000 takes a tenth",
    "less by it, one of 2 x 8000 a quarter. Their gradient is put back in full, and the optimizer goes over all of",
    "it. Blocks are tasks that threads share, or torch divides each operation among its threads, or one thread does",
    "everything: the way that was fastest lately. Sharing leaves the optimizer to one thread.",
]
EPOCH = "An epoch of 1 x 8000 with 32 masks on binarized_mnist, its validation included: {:.0f} s (at most 32)."


def machine() -> dict[str, object]:
    """Facts about the machine."""
    more = {"threads": THREADS, "vector_instructions": torch.backends.cpu.get_cpu_capability()}
    return machine_info() | more


def document(results: dict[str, Any]) -> str:
    """The part of docs/speed.md about networks."""

    def spread(each: dict[str, float], digits: int = 1) -> str:
        return f"{each['median']:.{digits}f} ({each['low']:.{digits}f} to {each['high']:.{digits}f})"

    lines = [
        "## Networks",
        "",
        "`python -m benchmarks.engine`; the numbers are in `results/bench.json`. Two threads, float32, 784 columns,",
        "100 rows; interleaved repeats in one process. A training step is forward,",
        "backward and Adagrad (fused, for all). The peers are a textbook masked layer (W times a stored mask in each",
        "pass, in `benchmarks/peers.py`) and zuko's `MaskedMLP`; ratios are to the faster of the two. The limit is the",
        "multiply-adds of unmasked weights at the rate of `torch.mm` for dense ones, measured in the same run,",
        "plus, for a step, one pass of the optimizer over as many numbers.",
        "",
        "| work | times as fast as the faster peer | at least | times the limit | at most | seconds: made, peers |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for case in results["cases"]:
        if "ratio" in case:
            seconds = ", ".join(f"{each:.4f}" for name, each in case["seconds"].items() if name != "limit")
            target = f"{1 if results['busy'] else case['target']:g}" + ("" if case["reached"] else " (missed)")
            most = "" if case["most_times_the_limit"] is None else f"{case['most_times_the_limit']:g}"
            most += "" if case["limit_reached"] else " (missed)"
            row = [case["name"], spread(case["ratio"]), target, spread(case["times_the_limit"]), most, seconds]
            lines.append(f"| {' | '.join(row)} |")
    lines += [
        "",
        "| samples | passes of our own log p on 100 rows | at most | times as fast as 784 passes of the faster peer |",
        "|---|---:|---:|---:|",
    ]
    for case in results["cases"]:
        if "passes" in case:
            target = f"{case['target']:g}" + ("" if case["reached"] else " (missed)")
            peer = spread(case["times_as_fast_as_784_passes_of_the_faster_peer"], 0)
            lines.append(f"| {case['name']} | {spread(case['passes'])} | {target} | {peer} |")
    memory, where = results["memory"], results["machine"]
    lines += ["", *WHY]
    lines += ["", EPOCH.format(results["epoch_seconds"])] if "epoch_seconds" in results else []
    lines += [
        "",
        f"Memory: a training step of 784-8000-8000-784 cycling 32 masks peaks at "
        f"{memory['times_the_parameters']:.1f} times the bytes of its parameters above what importing torch takes "
        f"({memory['peak_bytes_above_import'] / 1e9:.2f} GB for {memory['parameter_bytes'] / 1e9:.2f} GB of "
        f"parameters). The list of 32 masks itself takes {memory['bytes_of_the_list_of_masks']} bytes; stored, the "
        f"masks would take {memory['bytes_of_the_same_masks_stored'] / 1e9:.1f} GB.",
        "",
        f"Measured on: {where['processor']}, {where['cores']} cores, {where['system']}, Python {where['python']}, "
        f"torch {where['torch']} ({where['vector_instructions']}).",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="run the cases whose name has this in it, and write no files")
    parser.add_argument("--busy", action="store_true", help="keep one core busy by another process; write no files")
    parser.add_argument("--epoch", action="store_true", help="measure an epoch on binarized_mnist, too (MADE_DATA)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    cases = [case for case in CASES if not options.only or options.only in case.name]
    results: dict[str, Any] = {"machine": machine(), "busy": options.busy, "cases": []}
    console = Console(stderr=True)
    with Progress(console=console) as progress, busy_core() if options.busy else nullcontext():
        task = progress.add_task("measuring", total=len(cases) + 1)
        for case in cases:
            progress.update(task, description=case.name)
            results["cases"].append(run(case, options.busy))
            progress.advance(task)
        if options.epoch:
            progress.update(task, description="an epoch")
            results["epoch_seconds"] = epoch_seconds()
        progress.update(task, description="memory")
        output = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        results["memory"] = json.loads(output)
        progress.advance(task)
    if not options.only and not options.busy:
        (ROOT / "results").mkdir(exist_ok=True)
        (ROOT / "results" / "bench.json").write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2) if options.json else document(results))


if __name__ == "__main__":
    main()
