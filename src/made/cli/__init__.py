"""The `made` command."""

from __future__ import annotations

import typer

app = typer.Typer(help="Turn a table into a distribution you can ask anything.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Turn a table into a distribution you can ask anything."""
