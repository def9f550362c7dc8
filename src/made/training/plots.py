"""Plot of a training run: its learning curve. Needs matplotlib (the extra `plot`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from made.training.state import Epoch


def plot_learning_curve(history: Sequence[Epoch], path: Path) -> None:
    """Write a PNG of the training and validation NLL of each epoch, with the best epoch marked."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    numbers = [epoch.number for epoch in history]
    mark = "o" if len(history) == 1 else None
    axis.plot(numbers, [epoch.train_nll for epoch in history], label="training (with dropout, one mask)", marker=mark)
    known = [epoch for epoch in history if not math.isnan(epoch.valid_nll)]
    if known:
        axis.plot(
            [epoch.number for epoch in known], [epoch.valid_nll for epoch in known], label="validation", marker=mark
        )
        best = min(known, key=lambda epoch: epoch.valid_nll)
        label = f"best: {best.valid_nll:.3f} in epoch {best.number}"
        axis.plot(best.number, best.valid_nll, "o", color="black", label=label)
    # The first epochs are often far above all others, and would flatten the rest of the curve.
    rest = [nll for epoch in history[len(history) // 10 :] for nll in (epoch.train_nll, epoch.valid_nll) if nll == nll]
    if len(history) > 10 and rest:
        margin = 0.05 * (max(rest) - min(rest)) + 1e-9
        axis.set_ylim(min(rest) - margin, max(rest) + margin)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("epoch")
    axis.set_ylabel("NLL in nats, mean over rows")
    axis.legend()
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120, format="png")
