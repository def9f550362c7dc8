"""The state of a baseline's training after an epoch, in a file from which training resumes exactly."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from made.errors import ModelError
from made.io.atomic import atomic
from made.model.checkpoint import read_tensors


@dataclass
class Progress:
    """The progress of a training run.

    Attributes:
        epochs: completed epochs.
        updates: completed updates.
        best_epoch: the epoch with the best validation score.
        best_score: its score.
        waited: epochs since then.
        seconds: of training so far.
    """

    epochs: int = 0
    updates: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    waited: int = 0
    seconds: float = 0.0


def save_progress(
    path: Path, settings: str, progress: Progress, tensors: Mapping[str, Tensor], generator: torch.Generator
) -> None:
    """Write the state of a training run with these settings; the tensors are float32 or float64."""
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = json.dumps({"settings": settings} | dataclasses.asdict(progress))
    every = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    every["generator"] = generator.get_state().float()  # bytes, which floats hold exactly
    with atomic(path) as file:
        file.write(safetensors.torch.save(every, {"facts": facts}))


def load_progress(path: Path, settings: str, generator: torch.Generator) -> tuple[Progress, dict[str, Tensor]] | None:
    """The saved state of a training run with the same settings, or ``None``; restores the state of the generator."""
    if not path.exists():
        return None
    tensors, facts = read_tensors(path)
    if facts is None or facts.pop("settings", None) != settings:
        return None
    try:
        progress, state = Progress(**facts), tensors.pop("generator")
    except (TypeError, KeyError):
        raise ModelError(f"{path} is not the state of a training run: remove it.") from None
    generator.set_state(state.byte())
    return progress, tensors
