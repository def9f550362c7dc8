"""`made data list`: the named datasets."""

from __future__ import annotations

from made.cli.errors import command
from made.cli.options import SEED
from made.cli.printing import mode, print_json, say

SIZES = ("columns", "train", "valid", "test")


@command
def list_datasets(seed: SEED = None) -> None:
    """List the named datasets: sizes, and whether each is embedded, cached or to be downloaded."""
    from made.io import datasets

    facts = [
        {"name": name}
        | {key: getattr(each, key) for key in SIZES}
        | {"where": "embedded" if name in datasets.TABLES else datasets.state(name), "about": each.about}
        for name, each in (datasets.TABLES | datasets.NAMES).items()
    ]
    if mode.json:
        print_json(facts)
        return
    for each in ({key: key for key in ("name", *SIZES, "where", "about")}, *facts):
        say(f"{each['name']:16}{''.join(f'{each[key]:>8}' for key in SIZES)}  {each['where']:14}{each['about']}")
