"""The `made` command, one file for each command.

This file imports next to nothing, so that signals are handled from the first moment: see :mod:`made.cli.signals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

__all__ = ["app", "main"]


def main() -> None:
    """The entry point of the `made` command."""
    from made.cli import process

    process.main(_app)


def _app(word: str | None = None) -> typer.Typer:
    from made.cli.commands import load_app

    return load_app(word)


def __getattr__(name: str) -> Any:
    if name == "app":
        return _app()
    raise AttributeError(f"module 'made.cli' has no attribute {name!r}")
