"""`made data get`: download a named dataset, if needed, and check it."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from made.cli.errors import command
from made.cli.options import SEED
from made.cli.printing import mode, note, print_json


@command
def get(
    name: Annotated[str, Argument(metavar="NAME", help="Name of a dataset.", show_default=False)], seed: SEED = None
) -> None:
    """Download a named dataset if needed, and check it."""
    from made.io import datasets

    if (where := datasets.table_file(name)) is not None:
        table = datasets.TABLES[name]
        columns, rows = table.columns, {split: getattr(table, split) for split in datasets.SPLITS}
    else:
        data = datasets.load(name)
        columns, rows = data.train.shape[1], {split: len(getattr(data, split)) for split in datasets.SPLITS}
        where = datasets.where(name)
    if mode.json:
        print_json({"name": name, "columns": columns, **rows, "path": None if where is None else str(where)})
        return
    sizes = " + ".join(str(count) for count in rows.values() if count)
    note(f"{name}: {sizes} rows, {columns} columns, {'embedded' if where is None else where}.")
