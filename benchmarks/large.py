"""`python -m benchmarks.large FOLDER`: a table larger than the memory that a fit of it may take.

Rows of a table in MADE_TABLES are tiled with noise, until they take 5 GB as an Arrow table, and are written to Parquet
files in the folder. Then come these steps:

- fit: `made fit` of all files, for one epoch of 4,194,304 rows, and the peak of its anonymous memory (RssAnon);
- score, impute: `made score` and `made impute` of a million rows, for impute with a tenth of the entries missing;
- speed: rows per second of training from memory-mapped files, as a multiple of those from memory, by turns;
- growth: the time of fits of more and more rows, by default and for a fixed number of updates.

A step that is in `large.json` in the folder is not repeated. Times are those of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from benchmarks.tables import read

TABLE = "wa_churn"
ROWS_OF_FILE = 2_000_000
QUERIED = 1_000_000
REDRAWN = 0.05  # share of the texts that are drawn anew
NOISE, DIGITS = 0.05, 2  # of numbers: standard deviations that are added, and decimals
FIT = ("--hidden-sizes", "64,64", "--evaluation-masks", "2", "--max-epochs", "1")


def tiled(rows: int, seed: int) -> pa.Table:
    """So many rows like those of the table: numbers with noise, within their range; some texts drawn anew."""
    table, random = read(TABLE), np.random.default_rng(seed)
    which = random.integers(0, len(table), rows)
    columns: dict[str, Any] = {}
    for name, column in table.items():
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(dtype=np.float64)[which]
            if column.nunique() > 20:
                noise = NOISE * column.std() * random.standard_normal(rows)
                digits = 0 if (column.dropna() % 1 == 0).all() else DIGITS
                values = np.round(values + noise, digits).clip(column.min(), column.max())
            columns[str(name)] = pa.array(values, from_pandas=True)
        else:
            codes, texts = pd.factorize(column)
            drawn = np.where(random.random(rows) < REDRAWN, random.integers(0, len(table), rows), which)
            codes = pa.array(codes[drawn], mask=codes[drawn] < 0)
            columns[str(name)] = pa.DictionaryArray.from_arrays(codes, pa.array(texts)).cast(pa.string())
    return pa.table(columns)


def write(folder: Path, size: float) -> dict[str, Any]:
    """Write files until their rows take so many bytes in memory."""
    data, total, rows = folder / "data", 0, 0
    data.mkdir(parents=True, exist_ok=True)
    while total < size:
        path = data / f"part-{rows // ROWS_OF_FILE:03}.parquet"
        table = tiled(ROWS_OF_FILE, rows // ROWS_OF_FILE)
        if not path.exists():
            parquet.write_table(table, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)
        total, rows = total + table.nbytes, rows + len(table)
        print(f"{rows:,} rows, {total / 1e9:.2f} GB", flush=True)
    some = pa.concat_tables([parquet.read_table(path) for path in sorted(data.iterdir())[:1]]).slice(0, QUERIED)
    parquet.write_table(some, folder / "queried.parquet")
    random = np.random.default_rng(0)
    incomplete = {
        name: pa.array(some[name].to_pandas().mask(random.random(len(some)) < 0.1), from_pandas=True)
        for name in some.column_names
    }
    parquet.write_table(pa.table(incomplete), folder / "incomplete.parquet")
    disk = sum(path.stat().st_size for path in data.iterdir())
    return {"rows": rows, "columns": len(table.column_names), "bytes in memory": total, "bytes on disk": disk}


def measured(*command: str) -> dict[str, Any]:
    """The wall and processor time of `made` with these arguments, and the peaks of its memory by kind, in bytes."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "made", *command], stdout=subprocess.DEVNULL)
    peaks = {"RssAnon": 0, "RssFile": 0}
    processor = 0.0
    while process.poll() is None:
        try:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
            ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        except (OSError, ValueError):
            break
        for kind in peaks:
            peaks[kind] = max(peaks[kind], 1024 * int(status.get(kind, "0").split()[0]))
        processor = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        time.sleep(0.05)
    if process.wait():
        raise SystemExit(f"`made {' '.join(command)}` ended with exit code {process.returncode}.")
    return {"seconds": time.perf_counter() - begin, "processor seconds": processor} | peaks


def fit(folder: Path, batch: int) -> dict[str, Any]:
    """Fit all files for a fixed number of updates."""
    shutil.rmtree(folder / "model", ignore_errors=True)
    found = measured("fit", str(folder / "data"), "--out", str(folder / "model"), *FIT, "--batch-size", str(batch))
    config = json.loads((folder / "model" / "config.json").read_text())
    return found | {"scores": config["scores"], "training rows": config["data"]["rows"], "batch": batch}


def speed(folder: Path, repeats: int, updates: int) -> dict[str, Any]:
    """Rows per second of training from memory and from memory-mapped files, by turns: the ratio of the medians."""
    from made import MADE
    from made.io.files import Files
    from made.model import fit_data
    from made.model.prepare import prepare
    from made.tables.stream import TableStream

    parameters = MADE(random_state=0, max_epochs=1, patience=1).get_params()
    files = sorted(map(str, (folder / "data").iterdir()))[:1]
    trainers = {}
    for place, limit in (("memory", 1 << 62), ("disk", 0)):
        fit_data.IN_MEMORY = limit
        run = prepare(TableStream(Files.of(files)), None, parameters, seed=0)
        trainers[place] = run.trainer
        assert run.trainer is not None
        run.trainer.network.train()
        trainers[place + " run"] = run  # type: ignore[assignment]
    times: dict[str, list[float]] = {"memory": [], "disk": []}
    for _ in range(repeats):
        for place, taken in times.items():
            trainer: Any = trainers[place]
            begin = time.process_time()
            for _ in range(updates):
                trainer._update()
            taken.append((time.process_time() - begin) / updates)
    for place in times:
        trainers[place + " run"].dataset.close()  # type: ignore[union-attr]
    size = trainer.config.batch_size
    rates = {place: size / float(np.median(taken)) for place, taken in times.items()}
    ratios = [memory / disk for memory, disk in zip(times["memory"], times["disk"], strict=True)]
    quartiles = np.quantile(ratios, [0.25, 0.75]).tolist()
    return {"rows per second": rates, "ratio": float(np.median(ratios)), "quartiles": quartiles}


def growth(lengths: list[int], updates: int) -> dict[str, Any]:
    """Seconds of fits of longer and longer tables: at defaults, and for a fixed number of updates."""
    from made import MADE

    found: dict[str, Any] = {}
    for rows in lengths:
        table = tiled(rows, seed=7)
        model = MADE(random_state=0)
        fixed = MADE(random_state=0, max_epochs=1, batch_size=-(-rows * 9 // 10 // updates), calibrate=False)
        found[str(rows)] = {"defaults": _processor_seconds(model, table), "fixed": _processor_seconds(fixed, table)}
        config = model.model_.config
        found[str(rows)] |= {"epochs": model.n_epochs_, "batch": config.parameters["batch_size"]}
        print(rows, found[str(rows)], flush=True)
    return found


def _processor_seconds(model: Any, table: pa.Table) -> float:
    begin = time.process_time()
    model.fit(table)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=float, default=5e9, help="bytes of the table in memory")
    parser.add_argument("--batch", type=int, default=4096, help="rows of an update; an epoch has 4,194,304 rows")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--updates", type=int, default=64, help="updates of a repetition of the step 'speed'")
    parser.add_argument("--growth", type=int, nargs="+", default=[3_000, 30_000, 300_000])
    parser.add_argument("--steps", nargs="+", default=["write", "fit", "score", "impute", "speed", "growth"])
    asked = parser.parse_args()
    folder = asked.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "large.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "write": lambda: write(folder, asked.size),
        "fit": lambda: fit(folder, asked.batch),
        "score": lambda: measured("score", *_query(folder, "queried"), "--out", str(folder / "scores.parquet")),
        "impute": lambda: measured("impute", *_query(folder, "incomplete"), "--out", str(folder / "imputed.parquet")),
        "speed": lambda: speed(folder, asked.repeats, asked.updates),
        "growth": lambda: growth(asked.growth, asked.updates),
    }
    for step in asked.steps:
        if step not in found:
            found[step] = steps[step]()
            path.write_text(json.dumps(found, indent=2) + "\n")
        print(step, json.dumps(found[step]), flush=True)


def _query(folder: Path, name: str) -> list[str]:
    return [str(folder / "model"), str(folder / f"{name}.parquet")]


if __name__ == "__main__":
    main()
