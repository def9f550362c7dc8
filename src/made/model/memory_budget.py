"""The memory that training will take, computed before anything is allocated."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from made.errors import DataError
from made.hints import argument, hint
from made.training.config import OPTIMIZERS
from made.training.state import FINALISTS

if TYPE_CHECKING:
    from made.model.config import Config


# The least number of rows in a pass.
ROWS = 500
GIB = 2**30


def training_bytes(config: Config, *, rows_in_memory: bool = True) -> int:
    """The peak memory of training, to within a few percent: weights with all that depends on them, rows, and a pass.

    Gradients, the state of the optimizer, the moving average and the best epochs are as large as the weights; a
    checkpoint copies all but the gradients once. A pass has input, hidden and output units, several times over.
    """
    parameters, columns = config.parameters, config.schema.columns
    size = 8 if parameters["dtype"] == "float64" else 4
    weights = sum(math.prod(shape) for shape in config.shapes().values())
    kept: int = 1 + OPTIMIZERS[parameters["optimizer"]][-1] + bool(parameters["average"])
    masks = parameters["masks"]
    kept += FINALISTS if masks == "unlimited" or masks > parameters["validation_masks"] else 1
    batch = parameters["batch_size"] if isinstance(parameters["batch_size"], int) else ROWS
    batch = min(max(batch, ROWS), config.data.rows)
    units: int = columns.inputs + sum(parameters["hidden_sizes"]) + columns.outputs
    rows = (config.data.rows + config.data.valid_rows) * len(columns) * (8 + size) if rows_in_memory else 0
    # With one mask, what is zero is not stored: half of each matrix.
    weights = weights * 6 // 10 if parameters["masks"] == 1 else weights
    return int(size * (weights * (2 * kept + 2) + 6 * batch * units) + rows)


def free_bytes() -> int:
    """The memory that is still free, in the system and in the container."""
    found = []
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(1024 * int(lines["MemAvailable"].split()[0]))
        limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
        if limit.exists() and (most := limit.read_text().strip()).isdigit():
            found.append(int(most) - int(used.read_text()))
    except (OSError, ValueError, KeyError):
        pass  # not on every system
    if not found and hasattr(os, "sysconf"):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return max(min(found), 0) if found else 8 * GIB


def check_memory(config: Config, *, rows_in_memory: bool = True) -> None:
    """Refuse to train a network that would not fit into memory; the error says what takes it and what to change."""
    needed, free = training_bytes(config, rows_in_memory=rows_in_memory), free_bytes()
    if needed <= free:
        return
    shapes, columns = config.shapes(), config.schema.columns
    total = sum(math.prod(shape) for shape in shapes.values())
    largest = max(shapes, key=lambda name: math.prod(shapes[name]))
    share = math.prod(shapes[largest]) / total
    remedy = {
        "A": f"{hint(direct=False)} leaves them out",
        "U": f"{hint(conditioning=False)} leaves them out",
    }.get(largest[0], f"smaller {argument('hidden_sizes')} reduce their number")
    units = {name: kind.inputs + kind.outputs for name, kind in zip(columns.names, columns, strict=True)}
    widest = sorted(units, key=lambda name: -units[name])[:3]
    raise DataError(
        f"The network would take {needed:,} bytes ({needed / GIB:.1f} GiB) to train, more than the {free:,} that are "
        f"free: of its {total:,} parameters, {100 * share:.0f} % are in {largest}, "
        f"{' x '.join(map(str, shapes[largest]))}; {remedy}. Of its {len(columns)} columns, those with the most units "
        f"are {', '.join(f'{name!r} ({units[name]})' for name in widest)}: {hint(columns={widest[0]: 'drop'})} leaves "
        "out the first."
    )
