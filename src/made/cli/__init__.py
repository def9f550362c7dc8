"""The `made` command, one file for each command.

This file imports next to nothing, so that signals are handled from the first moment: see :mod:`made.cli.signals`.
"""

from __future__ import annotations

from typing import Any


def main() -> None:
    """The entry point of the `made` command."""
    from made.cli import process

    process.main()


def __getattr__(name: str) -> Any:
    if name == "app":
        from made.cli.commands import load_app

        return load_app()
    raise AttributeError(f"module 'made.cli' has no attribute {name!r}")
