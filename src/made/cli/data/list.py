"""`made data list`: the named datasets."""

from __future__ import annotations

from made.cli.errors import command
from made.cli.options import JSON, QUIET, SEED
from made.cli.printing import print_json, say

__all__ = ["list_datasets"]


@command
def list_datasets(seed: SEED = None, as_json: JSON = False, quiet: QUIET = False) -> None:
    """List the named datasets: sizes, and whether each is embedded, cached or to be downloaded."""
    from made.io import datasets

    facts = [
        {
            "name": name,
            "columns": each.columns,
            "train": each.train,
            "valid": each.valid,
            "test": each.test,
            "where": "embedded" if name in datasets.TABLES else datasets.state(name),
            "about": each.about,
        }
        for name, each in (datasets.TABLES | datasets.NAMES).items()
    ]
    if as_json:
        print_json(facts)
        return
    say(f"{'name':16}{'columns':>8}{'train':>8}{'valid':>8}{'test':>8}  {'where':14}about")
    for each in facts:
        sizes = "".join(f"{each[key]:>8}" for key in ("columns", "train", "valid", "test"))
        say(f"{each['name']:16}{sizes}  {each['where']:14}{each['about']}")
