"""`python -m benchmarks.synthesizers`: `MADE()`, CTGAN and TabularARGN with default parameters on the same rows.

    python -m benchmarks.synthesizers wa_churn credit_data --ctgan PYTHON --argn PYTHON [--models FOLDER]

PYTHON is the interpreter of an environment that has `ctgan` or `mostlyai-engine`, which are not installed beside
`made`. Writes results/synthesizers.json: C2ST, the AUC of the label by XGBoost trained on synthetic rows
(`benchmarks.synthesis`), the distance of synthetic and of test rows to the nearest training row, and the label given
all other columns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.synthesis import c2st_area, nearness, trained_area
from benchmarks.tables import fit_or_load
from benchmarks.tables_data import ROOT, Frame, Split
from made.io.atomic import atomic
from made.paper.provenance import machine_info, source_commit

RESULT = ROOT / "results" / "synthesizers.json"


def label_scores(split: Split, table: Any, values: list[str]) -> dict[str, float]:
    """AUC and log loss of probabilities of the label in the test rows."""
    truth = (split.test[split.label].astype(str) == values[1]).to_numpy()
    second = np.asarray(table)[:, 1]
    return {"label_auc": float(roc_auc_score(truth, second)), "label_log_loss": float(log_loss(truth, second))}


def rows_scores(split: Split, drawn: Frame, seed: int) -> dict[str, Any]:
    """How real synthetic rows look, and how near they are to the training rows."""
    area = c2st_area(split.train, drawn, seed)
    near, copies = nearness(drawn, split, seed)
    return {"c2st": 2 - 2 * max(area, 0.5), "mle": trained_area(drawn, split, seed), "nearest": near, "copies": copies}


def other(name: str, python: str, split: Split, seed: int) -> dict[str, Any]:
    """CTGAN or TabularARGN, by its own interpreter."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        split.train.to_csv(folder / "train.csv", index=False)
        split.test.to_csv(folder / "test.csv", index=False)
        script = Path(__file__).with_name("synthesizer.py")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([python, "-P", str(script), name, place, str(seed), split.label], check=True, env=environment)
        found = json.loads((folder / "facts.json").read_text())
        drawn = pd.read_csv(folder / "synthetic.csv").astype(split.train.dtypes.to_dict(), errors="ignore")
        found |= rows_scores(split, drawn, seed)
        if (folder / "label.csv").exists():
            table = pd.read_csv(folder / "label.csv")
            values = [str(each) for each in split.values(split.label)]
            found |= label_scores(split, table[values], values)  # it has a column for rare values, too
    return dict(found)


def ours(split: Split, seed: int, models: Path | None) -> dict[str, Any]:
    """`MADE` with default parameters."""
    model, seconds = fit_or_load(split, seed, {}, None if models is None else models / split.name / split.part)
    found = {"fit_seconds": seconds["processor_seconds"], "version": source_commit()}
    found |= rows_scores(split, model.sample(len(split.train), missing=True, random_state=seed), seed)
    values = [str(each) for each in model.classes(split.label)]
    return found | label_scores(split, model.predict_proba(split.test, split.label), values)


def main() -> None:
    """Measure the named tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--ctgan", help="interpreter that has ctgan")
    parser.add_argument("--argn", help="interpreter that has mostlyai-engine")
    parser.add_argument("--models", type=Path, help="a folder that keeps the fitted models of made")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"tables": {}}
    result["machine"] = machine_info()
    for name in chosen.tables:
        split = Split.of(name, chosen.seed)
        found = result["tables"].setdefault(name, {})
        real_near, real_copies = nearness(split.test, split, chosen.seed)
        real = trained_area(split.train, split, chosen.seed)
        found["real rows"] = {"mle": real, "nearest": real_near, "copies": real_copies}
        systems = {"made": lambda split=split: ours(split, chosen.seed, chosen.models)}
        for key, title, python in (("ctgan", "CTGAN", chosen.ctgan), ("argn", "TabularARGN", chosen.argn)):
            if python:
                systems[title] = lambda key=key, python=python, split=split: other(key, python, split, chosen.seed)
        for title, measure in systems.items():
            found[title] = measure()
            print(name, title, json.dumps(found[title]), flush=True)
            with atomic(RESULT) as file:
                file.write((json.dumps(result, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
