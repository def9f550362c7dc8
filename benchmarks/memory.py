"""The memory of a training step, in its own process: prints JSON.

Run as ``python -m benchmarks.memory``: 784-8000-8000-784, a list of 32 masks, batches of 100, Adagrad.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import torch


def peak() -> int:
    """The peak memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says begins, on Linux, with the peak of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    torch.ones(2, 2) @ torch.ones(2, 2)
    after_import = peak()
    from made import Connectivities, Network, log_likelihood

    family = Connectivities(784, (8000, 8000), masks=32, ordering="random")
    network = Network(784, family)
    parameters = sum(parameter.numel() * parameter.element_size() for parameter in network.parameters())
    optimizer = torch.optim.Adagrad(network.parameters(), lr=0.01, fused=True)
    rows = (torch.rand(100, 784) < 0.2).float()
    for update in range(4):
        optimizer.zero_grad()
        (-log_likelihood(network, rows, update).mean()).backward()
        optimizer.step()
    kept = sum(sys.getsizeof(value) for value in vars(family).values())
    result = {
        "parameter_bytes": parameters,
        "peak_bytes_above_import": peak() - after_import,
        "times_the_parameters": (peak() - after_import) / parameters,
        "bytes_of_the_list_of_masks": kept,
        "bytes_of_the_same_masks_stored": 32 * sum(p.numel() * 4 for p in network.parameters() if p.ndim == 2),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
