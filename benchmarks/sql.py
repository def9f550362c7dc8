"""`python -m benchmarks.sql MODEL ROWS`: rows per second of `logp` in DuckDB, beside those of `score_samples`.

The two take turns in one process, on the same rows; the ratio is the median over the turns. Seconds are those of the
processor, in all threads of the process: they do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import duckdb
import pyarrow as pa

from made import Model
from made.io.read import read
from made.sql import register


def seconds(work: Callable[[], object]) -> float:
    """How long the processor works on something."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("rows")
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    model = Model.load(options.model)
    model = replace(model, template=model.schema.blank(named=True))
    rows = pa.concat_tables([read(options.rows)] * options.copies).combine_chunks()
    with duckdb.connect() as connection:
        register(connection, model, "m")
        connection.register("arrow_rows", rows)
        connection.execute("CREATE TABLE t AS FROM arrow_rows")
        ways: list[Callable[[], object]] = [
            lambda: model.score_samples(rows),
            lambda: connection.sql("SELECT m_logp(t) FROM t").to_arrow_table(),
        ]
        turns = [[seconds(way) for way in ways] for _ in range(options.turns + 1)][1:]
    python, sql = (statistics.median(each) for each in zip(*turns, strict=True))
    ratio = statistics.median(python / sql for python, sql in turns)
    print(f"score_samples: {len(rows) / python:,.0f} rows/s; logp: {len(rows) / sql:,.0f} rows/s; ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
