"""The model that a command asks, loaded from its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from made.cli.errors import usage
from made.cli.libraries import quick_imports
from made.cli.printing import note
from made.errors import ModelError

if TYPE_CHECKING:
    from made.model.model import Model

__all__ = ["load"]


def load(folder: Path, masks: int | None = None, quiet: bool = False) -> Model:
    """A model from its folder.

    Arguments:
        folder: the model's folder.
        masks: how many masks a model of unlimited masks averages; default: the model's.
        quiet: print no note if training is not finished.
    """
    from made.model.manifest import Manifest

    try:
        Manifest.read(folder)  # a wrong folder is refused before torch is imported
        with quick_imports():
            import pyarrow.compute  # noqa: F401

            from made.model.model import Model
        model = Model.load(folder)
    except OSError as error:
        raise ModelError(f"{folder} cannot be read: {error.strerror or error}.") from None
    # Whatever the model was fitted on, rows are pyarrow tables here, which hold text and write every kind of file.
    model = replace(model, template=model.schema.blank(named=True))
    if not model.finished:
        note(f"Note: the training of {folder} is not finished; these are its best weights so far.", quiet)
    if masks is None:
        return model
    if model.ensemble.masks is None:
        count = model.config.parameters["masks"]
        raise usage(f"'--masks' is for models of unlimited masks: {folder} has {count}, and averages all of them.")
    return model.with_ensemble(masks, model.ensemble.segments)
