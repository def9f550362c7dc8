"""Tensors and metadata in safetensors files, which cannot run code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from made.errors import ModelError
from made.model.folder import Content
from made.model.manifest import parse_object

__all__ = ["read_tensors", "tensors_file"]


def tensors_file(tensors: Mapping[str, Tensor], facts: Mapping[str, Any] | None = None) -> Content:
    """The content of a safetensors file with tensors and JSON metadata; deterministic."""
    metadata = {"format": "pt"} if facts is None else {"facts": json.dumps(facts)}

    def write(path: Path) -> None:
        path.touch()
        mode = path.stat().st_mode
        try:
            safetensors.torch.save_file(
                {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path, metadata
            )
        except safetensors.SafetensorError as error:
            raise OSError(f"{path.parent} cannot be written to: {error}.") from None
        path.chmod(mode)  # that of other new files; safetensors restricts its own

    return write


def read_tensors(
    file: Path, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
    """The tensors and the metadata of a file. Names and ``shapes`` are compared before a tensor is loaded.

    Tensors have to be float32 or float64, and finite.
    """
    try:
        with safetensors.safe_open(file, framework="pt") as reader:
            names = list(reader.keys())
            if shapes is not None:
                found = {name: tuple(reader.get_slice(name).get_shape()) for name in names}
                if found != dict(shapes):
                    wrong = sorted(name for name in found.keys() | shapes if found.get(name) != shapes.get(name))
                    raise ModelError(f"{file} does not fit its config.json: {', '.join(wrong)}.")
            facts = (reader.metadata() or {}).get("facts")
            tensors = {name: reader.get_tensor(name) for name in names}
    except safetensors.SafetensorError as error:
        raise ModelError(f"{file} cannot be read: {error}.") from None
    for name, tensor in tensors.items():
        if tensor.dtype not in (torch.float32, torch.float64) or not bool(tensor.isfinite().all()):
            raise ModelError(f"{file}: {name} has to be finite, and float32 or float64.")
    return tensors, None if facts is None else parse_object(facts, str(file))
