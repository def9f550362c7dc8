"""A model as the bytes of its folder's files, for copies that other tools keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from made.errors import ModelError
from made.model.manifest import MANIFEST, NAMES

Model = TypeVar("Model")


def packed(save: Callable[[Path], None]) -> dict[str, bytes]:
    """The files that are saved to a folder, by name."""
    with TemporaryDirectory(prefix="made-") as folder:
        save(Path(folder))
        return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir()) if _belongs(file.name)}


def unpacked(files: Mapping[str, bytes], load: Callable[[Path], Model]) -> Model:
    """What is loaded from a folder that has these files."""
    if wrong := [name for name in files if not _belongs(name)]:
        raise ModelError(f"a model folder has no file {wrong[0]!r}: this is not a copy of a model.")
    with TemporaryDirectory(prefix="made-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return load(Path(folder))


def _belongs(name: str) -> bool:
    return name == MANIFEST or NAMES.fullmatch(name) is not None
