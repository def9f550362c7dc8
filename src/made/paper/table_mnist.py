"""The paper's Table 6: binarized MNIST, by its protocol (section 6.2) and its grid (Table 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from made.io.datasets import Dataset
from made.paper.grid_search import GridSearch

SET = "binarized_mnist"
# Layers and masks of each row.
ROWS = {
    "MADE 1hl (1 mask)": (1, 1),
    "MADE 2hl (1 mask)": (2, 1),
    "MADE 1hl (32 masks)": (1, 32),
    "MADE 2hl (32 masks)": (2, 32),
}
WIDTH = {"full": 8000, "evening": 1000}
# The learning rates of Table 5, and the subset for an evening.
RATES = {"full": (0.1, 0.05, 0.01, 0.005), "evening": (0.05,)}
EPOCHS = {"full": 1000, "evening": 40}

PROTOCOL: dict[str, Any] = {
    "activation": "relu",
    "direct": True,
    "conditioning": False,
    "signed": False,
    "bias": "zero",
}
PROTOCOL |= {"optimizer": "adagrad", "epsilon": 1e-6, "batch_size": 100, "patience": 30}
PROTOCOL |= {"dropout": 0.0, "weight_decay": 0.0, "clip": None, "average": None}


def cases(
    row: str, budget: str, width: int | None = None, epochs: int | None = None, rates: Sequence[float] = ()
) -> dict[str, dict[str, Any]]:
    """The configurations of a row: parameters of the estimator, by name. The budget sets the defaults.

    Example:
        >>> list(cases("MADE 2hl (32 masks)", "full"))[:2]
        ['2x8000-32-masks-rate-0.1-1000-epochs', '2x8000-32-masks-rate-0.05-1000-epochs']
    """
    (layers, masks), width, epochs = ROWS[row], width or WIDTH[budget], epochs or EPOCHS[budget]
    return {
        f"{layers}x{width}-{masks}-mask{'' if masks == 1 else 's'}-rate-{rate}-{epochs}-epochs": PROTOCOL
        | {"hidden_sizes": (width,) * layers, "masks": masks, "learning_rate": rate, "max_epochs": epochs}
        for rate in rates or RATES[budget]
    }


def make(
    search: GridSearch,
    data: Dataset,
    rows: tuple[str, ...] = tuple(ROWS),
    width: int | None = None,
    epochs: int | None = None,
    rates: Sequence[float] = (),
) -> list[dict[str, Any]]:
    """The rows of the table."""
    return [search.run_row(data, row, cases(row, search.budget, width, epochs, rates)) for row in rows]
