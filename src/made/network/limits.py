"""Upper limits of a model's size, checked before anything is allocated, for parameters and for model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from made.errors import QuestionError
from made.hints import argument

LAYERS = 256  # hidden layers
UNITS = 2**20  # hidden units, of all layers together
MASKS = 2**16  # averaged by a query
PASSES = 2**20  # of a query: masks times segments
ROWS = 2**31 - 1  # of a batch
# Direct connections A have a weight for each pair of an input and an output unit, all used in every pass. Above this
# number they would take most of the time, so that they are off by default.
DIRECT = 2**25


def has_direct(inputs: int, outputs: int) -> bool:
    """Whether a network has direct connections A by default.

    Example:
        >>> has_direct(5000, 5000), has_direct(10_000, 10_000)
        (True, False)
    """
    return inputs * outputs <= DIRECT


def check_sizes(parameters: Mapping[str, Any], columns: int) -> None:
    """Refuse parameters that no machine has the time or the memory for.

    Arguments:
        parameters: the parameters of a model, of the right types.
        columns: the number of its columns.
    """
    sizes = list(parameters["hidden_sizes"])
    if len(sizes) > LAYERS:
        raise ValueError(
            f"{argument('hidden_sizes')} should have at most {LAYERS} layers, not {len(sizes):,}: leave some out."
        )
    if (units := sum(sizes)) > UNITS:
        raise ValueError(
            f"{argument('hidden_sizes')} should have at most {UNITS:,} units in all, not {units:,}: use fewer."
        )
    masks = parameters["masks"]
    for name in ("masks", "validation_masks", "evaluation_masks"):
        value = parameters[name]
        if value != "unlimited" and not 0 < value <= MASKS:
            remedy = ", or 'unlimited'" if name == "masks" else ""
            raise ValueError(
                f"{argument(name)} should be from 1 to {MASKS:,}{remedy}, not {value:,}: each takes a pass."
            )
    segments = 128 if parameters["segments"] == "auto" else parameters["segments"]
    passes = parameters["evaluation_masks"] * min(segments, columns)
    if masks == "unlimited" and passes > PASSES:
        raise ValueError(
            f"{argument('evaluation_masks')} times {argument('segments')} should be at most {PASSES:,}, not "
            f"{passes:,}, because a query takes that many passes: lower one of them."
        )
    batch = parameters["batch_size"]
    if batch != "auto" and not 0 < batch <= ROWS:
        raise ValueError(f"{argument('batch_size')} should be from 1 to {ROWS:,}, not {batch:,}: take a smaller one.")


def check_masks(count: int) -> None:
    """Refuse to average more than :data:`MASKS` masks."""
    if count > MASKS:
        raise QuestionError(f"{argument('masks')} should be at most {MASKS:,}, not {count:,}: each takes a pass.")
