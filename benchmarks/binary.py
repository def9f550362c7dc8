"""`python -m benchmarks.tables binary`: binary rows, `MADE()` with defaults beside a mixture of Bernoullis and others.

The paper's sets are in MADE_DATA, three sets on which probabilistic circuits are compared in MADE_DEBD. Training and
validation rows are theirs; test rows are scored once. With `--valid`, only validation rows are scored.
"""

from __future__ import annotations

import json
import time
import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables_data import ROOT, shared
from made import MADE
from made.paper.provenance import source_commit
from made.paper.published import UCI, UCI_SETS

# Test NLL of the sets of circuits: a mixture (EM, 20 or 100 components by validation), HCLT, the best published.
CIRCUITS: dict[str, dict[str, float]] = {
    "plants": {"mixture of Bernoullis": 13.36, "HCLT": 14.26, "best published": 12.26},
    "book": {"mixture of Bernoullis": 34.84, "HCLT": 33.53, "best published": 33.53},
    "ad": {"mixture of Bernoullis": 26.34, "HCLT": 16.06, "best published": 14.42},
}
PAPER = ("adult", "connect4", "dna", "mushrooms", "nips", "ocr_letters", "web")
SETS = (*PAPER, *CIRCUITS)
Rows = NDArray[np.uint8]


def load(name: str) -> dict[str, Rows]:
    """The rows of a set: train, valid, test."""
    folder = shared("MADE_DEBD", "debd") if name in CIRCUITS else shared("MADE_DATA", "data")
    with np.load(folder / f"{name}.npz") as file:
        return {part: np.unpackbits(file[part], axis=1, count=int(file["d"])) for part in ("train", "valid", "test")}


@cache
def _results(file: str) -> list[dict[str, Any]]:
    return list(json.loads((ROOT / "results" / file).read_text()))


def references(name: str) -> dict[str, float]:
    """Test NLLs of other models: those of this repository and published ones."""
    if name in CIRCUITS:
        return CIRCUITS[name]
    found = {
        row["row"]: float(row["test_nll"])
        for file in ("baselines.json", "uci.json")
        for row in _results(file)
        if row["dataset"] == name and row["row"] in ("MoBernoullis", "ours", "any-order")
    }
    found = {"mixture of Bernoullis" if each == "MoBernoullis" else each: value for each, value in found.items()}
    if name in UCI_SETS:
        place = UCI_SETS.index(name)
        best = min(UCI, key=lambda row: UCI[row][place])
        found |= {"best published": UCI[best][place], "MADE, published": UCI["MADE mask sampling"][place]}
    return found


def measure(name: str, seed: int, settings: dict[str, Any], *, valid: bool = False) -> dict[str, Any]:
    """Fit a model, and score its rows: NLL in nats, with seconds."""
    rows = load(name)
    begin, busy = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MADE(**({"random_state": seed} | settings)).fit(rows["train"], X_valid=rows["valid"])
        seconds = {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - busy}
        found: dict[str, Any] = {"set": name, "seed": seed, "commit": source_commit(), "settings": settings}
        found |= {"columns": rows["train"].shape[1], "rows": len(rows["train"]), "epochs": model.n_epochs_}
        found |= {"best_epoch": model.best_epoch_, "fit": {key: round(value, 2) for key, value in seconds.items()}}
        for part in ("valid",) if valid else ("valid", "test"):
            begin = time.perf_counter()
            scores = -np.asarray(model.score_samples(rows[part]), dtype=np.float64)
            found[f"{part}_nll"] = float(scores.mean())
            found[f"{part}_se"] = float(scores.std() / np.sqrt(len(scores)))
            found[f"{part}_seconds"] = round(time.perf_counter() - begin, 2)
    return found | {"references": references(name)}


def line(found: dict[str, Any]) -> str:
    """A line of text."""
    parts = ", ".join(f"{name} {value:.2f}" for name, value in found["references"].items())
    test = f"test {found['test_nll']:.3f}, " if "test_nll" in found else ""
    fit = f"{found['fit']['seconds']:.0f} s ({found['fit']['processor_seconds']:.0f} of processor time)"
    return f"{found['set']}: NLL {test}valid {found['valid_nll']:.3f}; test of others: {parts}; fitted in {fit}"
