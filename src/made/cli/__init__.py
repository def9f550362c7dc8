"""The `made` command, one file for each family of commands."""

from __future__ import annotations

import typer

from made.cli.demo import demo

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.command()(demo)


@app.callback()
def main() -> None:
    """Turn a table into a distribution you can ask anything."""
