"""`Model`: a schema and an ensemble, with every query as a method, and the folder that keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from made.model.model import Model

__all__ = ["Model"]


def __getattr__(name: str) -> Any:
    if name == "Model":  # imported when it is first used: commands that only look at a folder need no torch
        from made.model.model import Model

        return Model
    raise AttributeError(f"module 'made.model' has no attribute {name!r}")
