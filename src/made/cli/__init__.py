"""The `made` command, one file for each family of commands.

This file imports next to nothing, so that signals are handled from the first moment: see :mod:`made.cli.process`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["app", "main"]


def main() -> None:
    """What the shell runs."""
    from made.cli import process

    process.main()


def __getattr__(name: str) -> Any:
    if name == "app":
        from made.cli.commands import app

        return app
    raise AttributeError(f"module 'made.cli' has no attribute {name!r}")
