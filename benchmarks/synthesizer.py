"""Fits CTGAN or TabularARGN in an environment of its own: run by `benchmarks.synthesizers`, with pandas and no `made`.

    python benchmarks/synthesizer.py ctgan|argn FOLDER SEED LABEL

FOLDER has train.csv and test.csv, and gets synthetic.csv, with as many rows as train.csv, and facts.json; of
TabularARGN, also label.csv, the probabilities of the values of LABEL in the test rows.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch


def main() -> None:
    """Fit, sample, write."""
    name, place, number, label = sys.argv[1:]
    folder, seed = Path(place), int(number)
    train, test = (pd.read_csv(folder / f"{part}.csv") for part in ("train", "test"))
    np.random.seed(seed)  # noqa: NPY002  CTGAN draws from it
    torch.manual_seed(seed)
    start = time.process_time()
    if name == "ctgan":
        from ctgan import CTGAN

        # It has no missing values: numbers become their median, text a value of its own.
        discrete = [each for each in train if train[each].dtype == object or train[each].nunique() <= 20]
        whole = train.fillna(
            {each: "missing" if train[each].dtype == object else train[each].median() for each in train}
        )
        model = CTGAN(enable_gpu=False)
        model.fit(whole, discrete)
        seconds = time.process_time() - start
        drawn = model.sample(len(train)).replace("missing", np.nan)
    else:
        from mostlyai.engine import TabularARGN

        model = TabularARGN(random_state=seed, device="cpu", value_protection=False)
        model.fit(train)
        seconds = time.process_time() - start
        drawn = model.sample(n_samples=len(train))
        asked = test.drop(columns=label)
        table = model.predict_proba(asked, target=[label])
        pd.DataFrame(table).to_csv(folder / "label.csv", index=False)
    drawn[list(train)].to_csv(folder / "synthetic.csv", index=False)
    package = {"ctgan": "ctgan", "argn": "mostlyai-engine"}[name]
    facts = {"fit_seconds": seconds, "version": version(package), "torch": torch.__version__}
    (folder / "facts.json").write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
