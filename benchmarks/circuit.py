"""Fits a probabilistic circuit to binary rows, in an environment without `made`: run by `benchmarks.circuits`.

    python benchmarks/circuit.py hclt|learnspn|xpc FOLDER SEED

FOLDER has train.npy, valid.npy and test.npy, and gets scores.npy, the log-likelihoods of the test rows, and facts.json.
`hclt` is a hidden Chow-Liu tree of 32 states by cirkit, trained by Adam until validation rows gain nothing for ten
epochs. `learnspn` has Chow-Liu trees as leaves, and `xpc` is a mixture of 20 extremely randomized circuits, both by
deeprob-kit, with the least rows of a leaf chosen by validation rows.
"""

import copy
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

STATES = 32
BATCH = 256
PATIENCE = 10
LEAST_ROWS = (64, 256)
Scored = tuple[np.ndarray, np.ndarray]


def trained(
    rows: dict[str, torch.Tensor], model: Any, score: Callable[[torch.Tensor], torch.Tensor], rate: float
) -> Scored:
    """Scores of validation and test rows after the epoch that is best for validation rows."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    best, state, since = -np.inf, {}, 0
    while since < PATIENCE:
        for batch in torch.randperm(len(rows["train"])).split(BATCH):
            optimizer.zero_grad()
            (-score(rows["train"][batch]).mean()).backward()
            optimizer.step()
        with torch.no_grad():
            valid = torch.cat([score(part) for part in rows["valid"].split(1000)]).mean().item()
        since += 1
        if valid > best:
            best, state, since = valid, copy.deepcopy(model.state_dict()), 0
    model.load_state_dict(state)
    with torch.no_grad():
        found = [torch.cat([score(part) for part in rows[name].split(1000)]).numpy() for name in ("valid", "test")]
    return found[0], found[1]


def hclt(rows: dict[str, np.ndarray], _seed: int) -> Scored:
    """A hidden Chow-Liu tree by cirkit."""
    from cirkit.pipeline import compile as compiled
    from cirkit.templates.data_modalities import tabular_data

    tensors = {name: torch.from_numpy(each.astype(np.int64)) for name, each in rows.items()}
    circuit = tabular_data(
        "chow-liu-tree",
        data=tensors["train"],
        input_layers={"name": "categorical", "args": {"num_categories": 2}},
        num_input_units=STATES,
        sum_product_layer="cp",
        num_sum_units=STATES,
    )
    model = compiled(circuit)
    return trained(tensors, model, lambda part: model(part).flatten(), rate=0.01)


def deeprob(rows: dict[str, np.ndarray], method: str, **settings: Any) -> Scored:
    """A circuit by deeprob-kit."""
    from deeprob.spn.algorithms.inference import log_likelihood
    from deeprob.spn.learning.wrappers import learn_estimator
    from deeprob.spn.structure.leaf import Bernoulli

    columns = rows["train"].shape[1]
    floats = {name: each.astype(np.float32) for name, each in rows.items()}
    model = learn_estimator(floats["train"], [Bernoulli] * columns, [[0, 1]] * columns, method=method, **settings)
    valid, test = (np.asarray(log_likelihood(model, floats[name])).ravel() for name in ("valid", "test"))
    return valid, test


def learnspn(rows: dict[str, np.ndarray], seed: int) -> Scored:
    """LearnSPN with Chow-Liu trees as leaves."""
    options = {"learn_leaf": "binary-clt", "split_cols": "gvs", "random_state": seed, "verbose": False}
    return best(deeprob(rows, "learnspn", min_rows_slice=least, **options) for least in LEAST_ROWS)


def xpc(rows: dict[str, np.ndarray], seed: int) -> Scored:
    """A mixture of extremely randomized circuits with Chow-Liu trees as leaves."""
    options = {"ensemble_dim": 20, "det": False, "sd_level": 1, "conj_len": 2, "arity": 4, "random_seed": seed}
    return best(deeprob(rows, "ensemble-xpc", min_part_inst=least, **options) for least in LEAST_ROWS)


def best(candidates: Any) -> Scored:
    """The scores that validation rows choose."""
    return max(candidates, key=lambda scored: scored[0].mean())


def main() -> None:
    """Fit, score, write."""
    name, place, number = sys.argv[1:]
    folder, seed = Path(place), int(number)
    rows = {part: np.load(folder / f"{part}.npy") for part in ("train", "valid", "test")}
    np.random.seed(seed)  # noqa: NPY002  deeprob-kit draws from it
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    fit, package = {
        "hclt": (hclt, "libcirkit"),
        "learnspn": (learnspn, "deeprob-kit"),
        "xpc": (xpc, "deeprob-kit"),
    }[name]
    start = time.process_time()
    valid, test = fit(rows, seed)
    facts = {
        "valid_nll": -float(valid.mean()),
        "processor_seconds": round(time.process_time() - start, 2),
        "version": version(package),
        "torch": torch.__version__,
    }
    np.save(folder / "scores.npy", test)
    (folder / "facts.json").write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
