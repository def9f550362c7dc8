"""What "auto" stands for: parameters that follow from the rows and the columns of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from made.columns.group import Columns
from made.columns.onehot import Exclusive, neighbour_rank
from made.model.config import MOST_SEGMENTED
from made.network.limits import has_direct
from made.queries.evidence import Evidence
from made.training.order import epoch_rows, some_rows

MANY_COLUMNS, ROWS_FOR_COLUMN = 64, 8  # more columns, with as many rows for each, have large steps and wide layers
COUNTED_ROWS = 2**15  # rows in a block in which pairs of ones are counted
MOST_GROUPED = 2**12  # columns among which exclusive groups are looked for, by counts of all pairs
LEAST_SAVED = 0.1  # of the positions in an ordering, by groups that are worth it
LEAST_ORDERED, LEAST_RANK = 32, 0.75  # positions, and rank of neighbours, of columns whose order says something
WHOLE_ROWS = 0.5  # the share of updates
UNITS, MANY_ENTRIES = (256, 512, 1024), 2**21  # of each layer: by default, of many binary columns, of many entries


@dataclass(frozen=True)
class Layout:
    """What is known of a table before a network is made.

    Attributes:
        rows: the number of training rows.
        columns: the column kinds.
        binary: whether the model is any-order, and all columns are binary.
        exclusive: the groups of exclusive columns, and the number of rows that they were found in; ``None`` for none.
        ordered: whether the order of the columns says which are associated, as that of pixels does.
    """

    rows: int
    columns: Columns
    binary: bool = False
    exclusive: dict[str, Any] | None = None
    ordered: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any], rows: int, columns: Columns, data: Evidence) -> Layout:
        """The layout of a table; tables of zeros and ones are looked at more closely."""
        binary = is_any_order(parameters) and columns.all_binary
        if not binary or len(columns) > MOST_GROUPED:
            return cls(rows, columns, binary)
        some, together = data[some_rows(len(data))], np.zeros((len(columns), len(columns)))
        for _, part in some.split(COUNTED_ROWS):
            ones = ((part.values == 1) & part.is_observed).float()
            together += (ones.t() @ ones).double().numpy()
        sizes = Exclusive.of_counts(together, len(some)).sizes
        if parameters["exclusive"] != "auto" or len(sizes) > (1 - LEAST_SAVED) * len(columns):
            sizes = (1,) * len(columns)
        exclusive = {"sizes": list(sizes), "rows": len(some)} if len(sizes) < len(columns) else None
        ordered = len(sizes) >= LEAST_ORDERED and neighbour_rank(together, len(some), sizes) >= LEAST_RANK
        return cls(rows, columns, binary, exclusive, ordered)

    @property
    def positions(self) -> int:
        """The positions of an ordering, one for each column or group."""
        return len(self.columns) if self.exclusive is None else len(self.exclusive["sizes"])

    @property
    def centered(self) -> bool:
        """Whether inputs have a mean of 0 by default: binary columns of an any-order model, if rows are not too few."""
        return self.binary and self.rows >= ROWS_FOR_COLUMN * self.positions

    @property
    def wide(self) -> bool:
        """Whether this is a table of many binary columns, of which rows are not too few."""
        return self.centered and len(self.columns) > MANY_COLUMNS


def is_any_order(parameters: Mapping[str, Any]) -> bool:
    """Whether the parameters are those of an any-order model."""
    return bool(parameters["masks"] == "unlimited" and parameters["resample"] in ("both", "ordering"))


def automatic(parameters: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    """The parameters that are ``"auto"``, with their values."""
    rows, positions, any_order = layout.rows, layout.positions, is_any_order(parameters)
    auto = {name for name, value in parameters.items() if isinstance(value, str) and value == "auto"}
    direct = layout.columns.inputs * layout.columns.outputs
    masks, most = parameters["whole_row_masks"], parameters["evaluation_masks"]
    if masks == "auto":
        masks = number_of_whole_row_masks(layout, most) if any_order else 1
    natural = any_order and (layout.ordered or masks == 1 < most)
    selected = can_select(parameters, positions) and positions > 1
    found: dict[str, Any] = {
        "hidden_sizes": [number_of_units(layout)] * 2,
        "direct": has_direct(layout.columns.inputs, layout.columns.outputs),
        "max_epochs": number_of_epochs(rows, positions),
        "batch_size": int(np.clip(rows // 40, 32, 500)),
        "weight_decay": weight_decay(rows, positions, direct),
        "whole_rows": WHOLE_ROWS if any_order else 0.0,
        "whole_row_masks": masks,
        "ordering": "natural" if natural else "selected" if selected else "random",
        "dropout": dropout(layout, masks) if any_order else 0.0,
    }
    found = {name: value for name, value in found.items() if name in auto}
    if "learning_rate" in auto:
        epochs, batch = (found.get(name, parameters[name]) for name in ("max_epochs", "batch_size"))
        updates = epochs * math.ceil(epoch_rows(rows) / batch)
        adamw = parameters["optimizer"] == "adamw"
        found["learning_rate"] = learning_rate(rows, positions, updates) if adamw else None
    return found


def can_select(parameters: Mapping[str, Any], positions: int) -> bool:
    """Whether orderings can be selected: there are masks for whole rows, and a segment for each column."""
    segments = parameters["segments"]
    if segments == "auto":
        segments = positions if positions <= MOST_SEGMENTED else 1
    return is_any_order(parameters) and parameters["whole_rows"] != 0 and segments >= positions


def number_of_whole_row_masks(layout: Layout, evaluation_masks: int) -> int:
    """The default of ``whole_row_masks``.

    Each mask needs many updates to be learned, and the mean of several is a guard against overfitting. So tables of
    many columns have one mask if there are enough rows for each column, several if there are fewer, and one again if
    there are too few to train several.

    Example:
        >>> layouts = [Layout(rows, Columns.binary(500), True) for rows in (500, 2_000, 10_000, 100_000)]
        >>> [number_of_whole_row_masks(layout, 8) for layout in layouts]
        [1, 4, 8, 1]
    """
    rows = layout.rows / layout.positions
    if (layout.ordered and rows >= 50) or (layout.binary and layout.positions > MANY_COLUMNS and rows >= 100):
        return 1
    if layout.positions <= MOST_SEGMENTED:
        return evaluation_masks
    return min(max(int(rows), 1), evaluation_masks)


def number_of_units(layout: Layout) -> int:
    """The default of ``hidden_sizes``, for each of two layers: more for many binary columns, and for many rows of them.

    Tables of few rows for each column do not gain from wider layers.

    Example:
        >>> sizes = ((5_000, 20), (5_000, 100), (50_000, 100), (5_000, 1_000))
        >>> [number_of_units(Layout(rows, Columns.binary(columns), True)) for rows, columns in sizes]
        [256, 512, 1024, 256]
    """
    if not layout.wide:
        return UNITS[0]
    return UNITS[2] if layout.rows * len(layout.columns) >= MANY_ENTRIES else UNITS[1]


def dropout(layout: Layout, masks: int) -> float:
    """The default of ``dropout``: for tables of many columns, and more if whole rows have one mask."""
    few = layout.positions > MOST_SEGMENTED and layout.rows < 2 * layout.positions
    if few and masks == 1:
        return 0.3
    return 0.0 if not layout.wide else 0.2 if masks == 1 else 0.1


def number_of_epochs(rows: int, columns: int) -> int:
    """The default of ``max_epochs``: a larger table has fewer passes over its rows, but more updates.

    The number of updates grows with the square root of the number of rows. Many columns take longer to learn.

    Example:
        >>> [number_of_epochs(rows, 20) for rows in (300, 2_500, 7_000, 30_000, 300_000, 10_000_000)]
        [400, 311, 220, 115, 37, 15]
        >>> [number_of_epochs(rows, 100) for rows in (300, 2_000, 7_000)]
        [600, 370, 220]
    """
    most, times = (400, (5_000 / rows) ** 0.5) if columns <= MANY_COLUMNS else (600, (4_000 / rows) ** 0.75)
    return int(min(max(220, round(220 * times)), most, round(20_000 * math.sqrt(rows) / epoch_rows(rows))))


def learning_rate(rows: int, columns: int, updates: int) -> float:
    """The default of ``learning_rate`` for AdamW: small steps for a small table, larger ones in a short run.

    Tables of many columns take longer to learn, and have the largest steps if there are enough rows.

    Example:
        >>> [learning_rate(rows, 20, 10_000) for rows in (300, 3_000, 300_000)]
        [0.001, 0.0015, 0.002]
        >>> [learning_rate(300, 20, updates) for updates in (100, 3_000)]
        [0.004, 0.002]
        >>> [learning_rate(2_000, columns, 10_000) for columns in (20, 100, 500)]
        [0.001, 0.004, 0.001]
    """
    if columns > MANY_COLUMNS and rows >= ROWS_FOR_COLUMN * columns:
        return 0.004
    return min(max(6 / max(updates, 1), min(rows / 2_000_000, 0.002), 0.001), 0.004)


def weight_decay(rows: int, columns: int, direct: int) -> float:
    """The default of ``weight_decay``: strong for few rows and many direct connections.

    It may be stronger where it adapts to each column (:mod:`made.training.decay`), with a segment for each of them.

    Example:
        >>> [weight_decay(rows, 20, 10_000) for rows in (300, 3_000, 30_000)]
        [1.0, 0.1, 0.01]
        >>> [weight_decay(rows, 200, 40_000) for rows in (300, 3_000, 30_000)]
        [0.3, 0.1, 0.01]
    """
    return min(1.0, 0.03 * direct / rows) if columns <= MOST_SEGMENTED else min(0.3, 300 / rows)
