"""`made data`: the named datasets."""

from __future__ import annotations

import typer

from made.cli.data.get import get
from made.cli.data.list import list_datasets

app = typer.Typer(no_args_is_help=True, help="Named datasets: list and download them.", rich_markup_mode=None)
app.command("list")(list_datasets)
app.command("get")(get)
