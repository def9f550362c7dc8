"""A table with a column of every kind and setting, and its rows as ONNX Runtime takes them."""

from __future__ import annotations

import datetime
import os
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["evaluate", "every_kind", "feed", "holes"]

EPOCH = datetime.datetime(1970, 1, 1)


def every_kind(rows: int = 300) -> pa.Table:
    random = np.random.default_rng(0)
    group = random.integers(0, 3, rows)
    amount = random.lognormal(4, 2, rows)
    some = np.where(random.random(rows) < 0.4, 0.0, random.lognormal(3, 1, rows))
    day = np.datetime64("2024-01-01") + random.integers(0, 400, rows).astype("timedelta64[D]")
    second = np.datetime64("2024-01-01T00:00:00", "us") + (random.random(rows) * 1e13).astype("timedelta64[us]")
    return pa.table(
        {
            "text": np.array(["ä", "two words", "c"])[group],
            "two texts": np.where(random.random(rows) < 0.3, "yes", "no"),
            "one text": np.full(rows, "same"),
            "truth": random.random(rows) < 0.5,
            "two numbers": np.where(random.random(rows) < 0.2, 10.0, 20.0),
            "grade": random.integers(1, 6, rows),
            "halves": random.integers(0, 7, rows) / 2,
            "real": random.normal(size=rows) + group,
            "integer": random.integers(-500, 500, rows),
            "decimal": (random.normal(size=rows) * 3).round(1),
            "amount": amount,
            "whole amount": amount.round(),
            "points": some,
            "whole points": some.round(),
            "category or nothing": pa.array([None if i % 9 == 0 else "abc"[each] for i, each in enumerate(group)]),
            "number or nothing": pa.array([None if i % 7 == 0 else float(each) for i, each in enumerate(amount)]),
            "day": day,
            "time": second,
        }
    )


def holes(table: pa.Table, share: float = 0.4) -> pa.Table:
    """The same rows, with missing values; the first row has nothing else."""
    random = np.random.default_rng(1)
    columns = {}
    for name in table.column_names:
        absent = random.random(len(table)) < share
        absent[0] = True
        columns[name] = pa.array(
            [None if gone else value for gone, value in zip(absent, table[name].to_pylist(), strict=True)],
            type=table[name].type,
        )
    return pa.table(columns)


def feed(table: pa.Table) -> dict[str, Any]:
    """The columns as inputs: text, "" where it is missing, or doubles, NaN where they are missing."""
    return {name: _input(table[name].to_pylist(), pa.types.is_string(table[name].type)) for name in table.column_names}


def _input(values: list[Any], text: bool) -> Any:
    if text:
        return np.array([value or "" for value in values], dtype=object)
    return np.array([np.nan if value is None else _number(value) for value in values])


def _number(value: Any) -> float:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    return (value - EPOCH) / datetime.timedelta(seconds=1) if isinstance(value, datetime.datetime) else float(value)


def evaluate(path: str | os.PathLike[str], inputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a graph by name."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # threads would only wait for each other
    session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs), strict=True))
