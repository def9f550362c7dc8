"""`made data get`: download a named dataset, if needed, and check it."""

from __future__ import annotations

from typing import Annotated

import typer

from made.cli.errors import command
from made.cli.options import JSON, QUIET, SEED
from made.cli.printing import note, print_json

__all__ = ["get"]


@command
def get(
    name: Annotated[str, typer.Argument(help="The name of a set.", show_default=False)],
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Make sure that a named set is here, downloaded if it has to be, and right."""
    from made.io import datasets

    data = datasets.load(name)
    where = datasets.where(name)
    if as_json:
        rows = {split: len(getattr(data, split)) for split in ("train", "valid", "test")}
        print_json(
            {"name": name, "columns": data.train.shape[1], **rows, "path": None if where is None else str(where)}
        )
        return
    note(
        f"{name}: {len(data.train)} + {len(data.valid)} + {len(data.test)} rows, {data.train.shape[1]} columns, "
        f"{'embedded' if where is None else where}.",
        quiet,
    )
