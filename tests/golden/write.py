"""How the folders here were written: `python tests/golden/write.py`. Once a format is released, it is not run again.

Each has a small model and what it says of some rows; `tests/estimator/test_made.py` compares.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from made import MADE
from made.model.checkpoint import checkpoint
from made.model.folder import commit
from made.model.manifest import FORMAT
from made.model.prepare import training_config
from made.training.trainer import Trainer

HERE = Path(__file__).parent
NAN = float("nan")
random = np.random.default_rng(0)
BITS = (random.integers(2, size=(60, 1)) ^ (random.random((60, 5)) < 0.2)).astype(float)
ANIMALS = pd.DataFrame(
    {
        "animal": random.choice(["cat", "dog", "horse, wild"], 60),
        "tame": random.random(60) < 0.5,
        "age": random.integers(0, 30, 60),
        "weight": np.exp(random.normal(2, 1, 60)),
    }
)
ANIMALS.loc[::7, "weight"] = np.nan
ASKED = [
    {"animal": "cat", "tame": True, "age": 3, "weight": 4.5},
    {"animal": "horse, wild", "tame": None, "age": 12, "weight": None},
    {"animal": None, "tame": False, "age": 25, "weight": 60.0},
]


def write(name: str, model: MADE, rows: object, asked: list, **options: object) -> None:
    """A folder, and what its model says."""
    folder = HERE / f"format-{FORMAT}-{name}"
    folder.mkdir(exist_ok=True)
    model.fit(rows, **options).save(folder / "model")
    expect(folder, asked)


def expect(folder: Path, asked: list) -> None:
    """What the model in a folder says of some rows."""
    model = MADE.load(folder / "model")
    table = pd.DataFrame(asked) if model.model_.schema.named else np.array(asked, dtype=float)
    expected = {
        "rows": asked,
        "log_prob": model.score_samples(table).tolist(),
        "digest": model.model_.config.connectivities.digest(),
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def main() -> None:
    """All of them."""
    torch.set_num_threads(1)
    small = {"max_epochs": 3, "evaluation_masks": 4, "random_state": 1}
    bits = BITS[:4].tolist()
    if FORMAT == 6:  # the widths of numbers are calibrated, and masks for whole rows have orderings and weights
        long = MADE(hidden_sizes=(6,), batch_size=2, **small | {"max_epochs": 40})
        write("weighted", long, ANIMALS, ASKED, X_valid=ANIMALS[::2])
        return
    if FORMAT == 5:  # binary inputs have a mean of 0
        rare = (np.random.default_rng(2).random((80, 5)) < (0.05, 0.2, 0.5, 0.8, 0.97)).astype(float)
        write("centered", MADE(hidden_sizes=(6,), **small), rare, [*rare[:3].tolist(), [None, 1, None, 0, 1]])
        return
    if FORMAT == 4:  # binary columns may be in groups
        codes = np.random.default_rng(1).integers(4, size=(80, 2))
        groups = np.column_stack([np.eye(4)[codes][:, :, 1:].reshape(80, -1), BITS[np.arange(80) % 60, 0]])
        asked = [*groups[:2].tolist(), [1, 1, 0, 0, 0, 1, 0], [None, 0, 1, None, 0, None, 1]]
        write("exclusive", MADE(hidden_sizes=(6,), **small), groups, asked)
        return
    if FORMAT == 3:  # a number with a point is encoded by its magnitude, too
        ages = ANIMALS.assign(age=ANIMALS["age"].where(ANIMALS["age"] > 8, 0))
        write("points", MADE(hidden_sizes=(6,), **small), ages, [*ASKED, ASKED[0] | {"age": 0}])
        return
    if FORMAT == 2:  # numbers differ from format 1; later, calibration and the pattern of missing values were added
        for name, options in (("mixed", {"calibrate": False}), ("calibrated", {})):
            if not (HERE / f"format-2-{name}").exists():
                write(name, MADE(hidden_sizes=(6,), **small, **options), ANIMALS, ASKED)
        return
    write("masks", MADE(hidden_sizes=(6,), masks=3, **small), BITS, bits)
    write("single", MADE(hidden_sizes=(6, 6), masks=1, residual=True, conditioning=True, **small), BITS, bits)
    write("mixed", MADE(hidden_sizes=(6,), **small), ANIMALS, ASKED)

    model = MADE(hidden_sizes=(6,), optimizer="adadelta", average=0.9, **small).fit(BITS)
    folder = HERE / f"format-{FORMAT}-unfinished" / "model"
    config = replace(model.model_.config, scores={})
    trainer = Trainer(config.network(), BITS[6:], BITS[:6], training_config(config))
    for _ in range(trainer.updates_per_epoch):
        trainer._update()
    trainer._end_of_epoch()
    commit(folder, {}, finished=False)
    checkpoint(folder, config, trainer.snapshot())
    expect(folder.parent, bits)


if __name__ == "__main__":
    main()
