"""Named data: `made data list`, `made data get`."""

from __future__ import annotations

from typing import Annotated

import typer

from made.cli.common import JSON, QUIET, SEED, command, note, print_json, say

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Named data: the paper's sets.", rich_markup_mode=None)


@app.command("list")
@command
def list_sets(seed: SEED = None, as_json: JSON = False, quiet: QUIET = False) -> None:
    """The named sets, their sizes, and where each would come from."""
    from made.io import datasets

    facts = [
        {
            "name": name,
            "columns": each.columns,
            "train": each.train,
            "valid": each.valid,
            "test": each.test,
            "where": datasets.state(name),
            "about": each.about,
        }
        for name, each in datasets.NAMES.items()
    ]
    if as_json:
        print_json(facts)
        return
    say(f"{'name':16}{'columns':>8}{'train':>8}{'valid':>8}{'test':>8}  {'where':14}about")
    for each in facts:
        sizes = "".join(f"{each[key]:>8}" for key in ("columns", "train", "valid", "test"))
        say(f"{each['name']:16}{sizes}  {each['where']:14}{each['about']}")


@app.command("get")
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
