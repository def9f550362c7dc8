"""What a model forgets when it is updated: NLLs of held-out rows of wa_churn, old and new ones.

python -m benchmarks.update      (needs MADE_TABLES)

The old rows are the customers of up to 36 months, the new ones 1,000 of those of more, another distribution; or 1,000
more rows of the same distribution.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import pandas as pd

from made import MADE, Model
from made.errors import UnseenWarning
from made.model.update import updated

TEST, NEW = 600, 1000


def show(name: str, model: Model, seconds: float, *tests: pd.DataFrame) -> None:
    scores = " ".join(f"{-model.score(rows):8.2f}" for rows in tests)
    print(f"{name:42}{scores}   {seconds:5.0f} s", flush=True)


def compare(old: pd.DataFrame, new: pd.DataFrame, *tests: pd.DataFrame) -> None:
    """Before, after updates, and after training anew on all rows."""
    begin = time.process_time()
    before = MADE(random_state=0).fit(old).model_
    show("before", before, time.process_time() - begin, *tests)
    for replay in (True, False):
        begin = time.process_time()
        after = updated(before, before.codes(new), replay=replay)
        show(f"update{'' if replay else ' on the new rows alone'}", after, time.process_time() - begin, *tests)
    begin = time.process_time()
    anew = MADE(random_state=0).fit(pd.concat([old, new])).model_
    show("fit of all rows", anew, time.process_time() - begin, *tests)


def main() -> None:
    warnings.simplefilter("ignore", UnseenWarning)
    table = pd.read_csv(Path(os.environ["MADE_TABLES"]) / "wa_churn.csv").sample(frac=1, random_state=0)
    table = table.drop(columns=[name for name in table.columns if name.lower().endswith("id")])
    old, new = table[table["tenure"] <= 36], table[table["tenure"] > 36]
    print("another distribution: NLL of old rows, NLL of new rows, processor time")
    compare(old[:-TEST], new[:NEW], old[-TEST:], new[-TEST:])
    print("the same distribution: NLL of rows, processor time")
    compare(old[: -TEST - NEW], old[-TEST - NEW : -TEST], old[-TEST:])


if __name__ == "__main__":
    main()
