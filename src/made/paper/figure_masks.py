"""The paper's Figure 2: NLL against the number of masks, for one hidden layer of 500 units and three batch sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from made.io.datasets import Dataset
from made.paper.grid_search import GridSearch
from made.paper.table_mnist import PROTOCOL

RATE = 0.05


def make(
    search: GridSearch, data: Dataset, *, masks: Iterable[int], batches: Iterable[int], units: int, epochs: int
) -> list[dict[str, Any]]:
    """Train one network for each point; only the number of masks and the batch size differ."""
    points, counts = [], list(masks)
    for batch_size in batches:
        for count in counts:
            name = f"1x{units}-{count}-mask{'' if count == 1 else 's'}-batch-{batch_size}-{epochs}-epochs"
            parameters = PROTOCOL | {"hidden_sizes": (units,), "masks": count, "learning_rate": RATE}
            parameters |= {"batch_size": batch_size, "max_epochs": epochs}
            points.append(search.run_row(data, name, {name: parameters}))
    return points


def plot(results: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the figure: a line for each batch size, with 95 % intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axis = figure.subplots()
    done = [each for each in results if each.get("test_nll") is not None]
    for batch_size in sorted({each["config"]["batch_size"] for each in done}):
        line = sorted((each for each in done if each["config"]["batch_size"] == batch_size), key=lambda e: e["masks"])
        x, y, half = ([each[name] for each in line] for name in ("masks", "test_nll", "ci95"))
        axis.errorbar(x, y, half, marker="o", capsize=3, label=f"batches of {batch_size}")
    masks = sorted({each["masks"] for each in done})
    axis.set_xscale("log", base=2)
    axis.set_xticks(masks, masks)
    axis.set_xlabel("number of masks")
    axis.set_ylabel("test NLL in nats, 95 % interval")
    said = [(each["dataset"], each["config"]["hidden_sizes"][0], each["config"]["max_epochs"]) for each in done]
    sets, units, epochs = (", ".join(str(each) for each in sorted(set(kind))) for kind in zip(*said, strict=True))
    axis.set_title(f"{sets}: one hidden layer of {units} units, at most {epochs} epochs")
    axis.legend()
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
