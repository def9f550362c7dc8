"""`python -m benchmarks.circuits`: `MADE()` and probabilistic circuits on the same binary rows.

    python -m benchmarks.circuits plants adult dna --cirkit PYTHON --deeprob PYTHON

PYTHON is the interpreter of an environment that has `libcirkit` or `deeprob-kit`, which are not installed
beside `made`. Writes results/circuits.json: NLL of validation and test rows, and processor seconds of fitting and
scoring. What the file has already is not measured again (`--again` does), so that the command can be resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.binary import Rows, load
from benchmarks.tables_data import ROOT
from made import MADE
from made.io.atomic import atomic
from made.paper.provenance import machine_info, source_commit

RESULT = ROOT / "results" / "circuits.json"
SYSTEMS = {  # title: name in benchmarks/circuit.py, option of its interpreter
    "hidden Chow-Liu tree, cirkit": ("hclt", "cirkit"),
    "LearnSPN, deeprob-kit": ("learnspn", "deeprob"),
    "20 random circuits, deeprob-kit": ("xpc", "deeprob"),
}


def test_figures(scores: Any) -> dict[str, float]:
    """Mean NLL of test rows and its standard error."""
    each = -np.asarray(scores, dtype=np.float64)
    return {"test_nll": float(each.mean()), "test_se": float(each.std() / np.sqrt(len(each)))}


def circuit(name: str, python: str, rows: dict[str, Rows], seed: int) -> dict[str, Any]:
    """A circuit, by an interpreter that has its package."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for part, each in rows.items():
            np.save(folder / f"{part}.npy", each)
        script = Path(__file__).with_name("circuit.py")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        command = [python, "-P", str(script), name, place, str(seed)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return json.loads((folder / "facts.json").read_text()) | test_figures(np.load(folder / "scores.npy"))


def ours(rows: dict[str, Rows], seed: int) -> dict[str, Any]:
    """`MADE` with default parameters."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MADE(random_state=seed).fit(rows["train"], X_valid=rows["valid"])
        found = {"valid_nll": -float(np.mean(model.score_samples(rows["valid"])))}
        scores = model.score_samples(rows["test"])
    found["processor_seconds"] = round(time.process_time() - start, 2)
    return found | {"version": source_commit()} | test_figures(scores)


def main() -> None:
    """Measure the named sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    for option, package in (("cirkit", "libcirkit"), ("deeprob", "deeprob-kit")):
        parser.add_argument(f"--{option}", metavar="PYTHON", help=f"interpreter that has {package}")
    parser.add_argument("--again", action="store_true", help="measure what the file has already")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"sets": {}}
    result["machine"] = machine_info()
    for name in chosen.sets:
        rows = load(name)
        found = result["sets"].setdefault(name, {"columns": rows["train"].shape[1], "rows": len(rows["train"])})
        models = found.setdefault("models", {})
        tasks: dict[str, Callable[[], dict[str, Any]]] = {"made": lambda rows=rows: ours(rows, chosen.seed)}
        for title, (kind, option) in SYSTEMS.items():
            if python := getattr(chosen, option):
                tasks[title] = lambda kind=kind, python=python, rows=rows: circuit(kind, python, rows, chosen.seed)
        for title, measure in tasks.items():
            if title in models and not chosen.again:
                continue
            models[title] = measure()
            print(name, title, json.dumps(models[title]), flush=True)
            with atomic(RESULT) as file:
                file.write((json.dumps(result, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
