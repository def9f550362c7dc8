"""A table with a column of every kind, and a small model of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from made import MADE

__all__ = ["fitted_people", "people"]


def people() -> pa.Table:
    random = np.random.default_rng(0)
    job = random.choice(["cook", "baker", "none"], 200)
    debt = np.where(random.random(200) < 0.4, 0.0, random.lognormal(3, 1, 200))
    wage = np.where(job == "none", 10.0, 20.0) + random.normal(size=200)
    return pa.table(
        {
            "job": pa.array([None if i % 17 == 0 else each for i, each in enumerate(job)]),
            "age": random.integers(18, 90, 200),
            "debt": pa.array([None if i % 9 == 0 else float(each) for i, each in enumerate(debt)]),
            "wage": wage.round(1),
            "since": pa.array(np.datetime64("2024-01-01") + random.integers(0, 400, 200).astype("timedelta64[D]")),
            "fed": random.random(200) < 0.5,
            "score": random.integers(1, 6, 200),
        }
    )


@cache
def fitted_people() -> MADE:
    """The same model for all tests."""
    missing = {"job": "category", "debt": "category"}
    options = {"hidden_sizes": (16,), "max_epochs": 2, "evaluation_masks": 3, "random_state": 0}
    return MADE(missing=missing, **options).fit(people())
