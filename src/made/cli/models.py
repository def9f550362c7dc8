"""The model that a command asks, from its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from made.cli.errors import usage
from made.cli.printing import note
from made.errors import ModelError

if TYPE_CHECKING:
    from made.estimator import MADE

__all__ = ["load"]


def load(folder: Path, seed: int | None = None, masks: int | None = None, quiet: bool = False) -> MADE:
    """A model from its folder, with another seed or number of masks if told."""
    from made.estimator import MADE

    try:
        model = MADE.load(folder)
    except OSError as error:
        raise ModelError(f"{folder} cannot be read: {error.strerror or error}.") from None
    # Whatever the model was fitted on, rows are pyarrow tables here, which hold text and write every kind of file.
    model.model_ = replace(model.model_, template=model.model_.schema.blank(named=True))
    if not model.model_.finished:
        note(f"Note: the training of {folder} is not finished; these are its best weights so far.", quiet)
    if seed is not None:
        model.random_state = seed
    if masks is not None:
        if model.model_.ensemble.masks is None:
            raise usage(f"'--masks' is for a model of unlimited masks; this one has {model.masks}, and uses all.")
        model.evaluation_masks = masks
        model.check_parameters()
        model.model_ = model.model_.with_ensemble(masks, model.model_.ensemble.segments)
    return model
