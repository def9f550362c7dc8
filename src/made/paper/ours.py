"""The rows "ours" and "any-order": one recipe in the framework of masked networks, with exact likelihoods.

What it adds to the paper's: columns that exclude each other are one column (:mod:`made.exclusive`); hidden layers are
joined by residual connections; output biases begin where independent columns have them; dropout of units and of inputs;
AdamW whose rate falls to zero along a cosine; averaged weights; and a committee, the mean of the probabilities of
networks that differ in their seed, and so in their orderings, masks and initial weights.

What is left free is chosen by validation rows, by a search (:mod:`made.tuning`) that `--grid full` makes again, and
whose results `--grid evening` takes from below. The row "any-order" is the same with unlimited masks, in as many
segments as there are columns: it can be asked anything.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from made.datasets import Dataset
from made.estimator import MADE
from made.exclusive import Exclusive
from made.likelihood import mean_and_interval
from made.paper.search import Search

__all__ = ["ROWS", "Committee", "make"]

ROWS = ("ours", "any-order")
MEMBERS = 8  # of a committee, unless a set has others below
TRIALS = 60

RECIPE: dict[str, Any] = {
    "residual": True,
    "bias": "independent",
    "optimizer": "adamw",
    "schedule": "cosine",
    "clip": 5.0,
    "average": 0.99,
    "batch_size": 100,
    "patience": 30,
}
ANY_ORDER: dict[str, Any] = RECIPE | {
    "masks": "unlimited",
    "conditioning": True,
    "questions": 0.0,
    "validation_masks": 8,
    "evaluation_masks": 4,
}

# What is searched; what was found is below, with the number of members that an evening has time for.
SPACE: dict[str, Any] = {
    "hidden_sizes": ["250", "500", "500,500", "1000,1000"],
    "activation": ["relu", "sigmoid"],
    "ordering": ["natural", "random"],
    "masks": [1, 4, 16],
    "dropout": {"low": 0.0, "high": 0.8, "step": 0.1},
    "input_dropout": {"low": 0.0, "high": 0.4, "step": 0.05},
    "learning_rate": {"low": 5e-4, "high": 5e-3, "log": True},
    "weight_decay": [0.0, 0.01, 0.1, 1.0],
    "max_epochs": [50, 100, 200],
}
ONLY_FIXED = ("ordering", "masks")  # nothing that an any-order model has
CHOSEN: dict[str, dict[str, dict[str, Any]]] = {
    "ours": {
        "adult": {
            "members": 6,
            "hidden_sizes": (500,),
            "activation": "relu",
            "ordering": "random",
            "masks": 16,
            "dropout": 0.5,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "max_epochs": 150,
        },
        "binarized_mnist": {
            "members": 2,
            "hidden_sizes": (1000, 1000),
            "activation": "relu",
            "ordering": "natural",
            "masks": 1,
            "dropout": 0.3,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "batch_size": 250,
            "max_epochs": 60,
        },
        "connect4": {
            "members": 4,
            "hidden_sizes": (500, 500),
            "activation": "relu",
            "ordering": "natural",
            "masks": 1,
            "dropout": 0.2,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "max_epochs": 60,
        },
        "dna": {
            "members": 8,
            "hidden_sizes": (500,),
            "activation": "relu",
            "ordering": "natural",
            "masks": 4,
            "dropout": 0.4,
            "input_dropout": 0.25,
            "learning_rate": 2e-3,
            "weight_decay": 0.1,
            "max_epochs": 200,
        },
        "mushrooms": {
            "members": 6,
            "hidden_sizes": (500, 500),
            "activation": "relu",
            "ordering": "random",
            "masks": 4,
            "dropout": 0.2,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "max_epochs": 200,
        },
        "nips": {
            "members": 32,
            "hidden_sizes": (500,),
            "activation": "sigmoid",
            "ordering": "random",
            "masks": 1,
            "dropout": 0.8,
            "input_dropout": 0.15,
            "learning_rate": 1.4e-3,
            "weight_decay": 0.01,
            "batch_size": 50,
            "max_epochs": 80,
        },
        "ocr_letters": {
            "members": 4,
            "hidden_sizes": (1000, 1000),
            "activation": "relu",
            "ordering": "natural",
            "masks": 1,
            "dropout": 0.3,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "batch_size": 250,
            "max_epochs": 80,
        },
        "web": {
            "members": 8,
            "hidden_sizes": (500, 500),
            "activation": "relu",
            "ordering": "random",
            "masks": 1,
            "dropout": 0.5,
            "input_dropout": 0.1,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "max_epochs": 40,
        },
    },
    "any-order": {
        "adult": {
            "members": 1,
            "hidden_sizes": (500,),
            "activation": "relu",
            "dropout": 0.3,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "max_epochs": 200,
            "evaluation_masks": 16,
        },
        "connect4": {
            "members": 1,
            "hidden_sizes": (500, 500),
            "activation": "relu",
            "dropout": 0.1,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "max_epochs": 100,
        },
        "dna": {
            "members": 4,
            "hidden_sizes": (500,),
            "activation": "relu",
            "dropout": 0.5,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "max_epochs": 60,
        },
        "mushrooms": {
            "members": 1,
            "hidden_sizes": (500, 500),
            "activation": "relu",
            "dropout": 0.1,
            "input_dropout": 0.0,
            "learning_rate": 2e-3,
            "weight_decay": 0.0,
            "max_epochs": 300,
            "evaluation_masks": 16,
        },
        "nips": {
            "members": 4,
            "hidden_sizes": (500,),
            "activation": "sigmoid",
            "dropout": 0.5,
            "input_dropout": 0.2,
            "learning_rate": 1e-3,
            "weight_decay": 0.1,
            "max_epochs": 150,
        },
    },
}


class Committee:
    """Networks of one recipe and different seeds; what they say is the mean of their probabilities.

    Arguments:
        members: fitted models of the codes.
        groups: what the codes are.
    """

    def __init__(self, members: Sequence[MADE], groups: Exclusive) -> None:
        self.members, self.groups = members, groups

    def log_prob(self, rows: ArrayLike) -> NDArray[np.float64]:
        """log p of rows of zeros and ones. Shapes: (rows, columns) to (rows)."""
        codes, allowed = self.groups.encode(rows)
        each = np.stack([member.score_samples(codes).astype(np.float64) for member in self.members])
        return self.groups.log_prob(np.logaddexp.reduce(each, axis=0) - np.log(len(each)), allowed)


def make(
    search: Search, data: Dataset, rows: Sequence[str] = ROWS, members: int | None = None, trials: int = TRIALS
) -> list[dict[str, Any]]:
    """The rows of one set."""
    return [_row(search, data, row, members, trials) for row in rows]


def _row(search: Search, data: Dataset, row: str, count: int | None, trials: int) -> dict[str, Any]:
    groups = Exclusive.find(data.train)
    parameters = _parameters(search, data, row, groups, trials)
    members = int(parameters.pop("members", MEMBERS)) if count is None else count
    asked = {"members": members, "parameters": {name: _plain(value) for name, value in parameters.items()}}
    there = search.record.get(data.name, row)
    if there is not None and there["test_nll"] is not None and there["seed"] == search.seed:
        same = {name: there["config"][name] for name in asked} == asked
        if same:
            search.report(f"{data.name}, {row}: there already, test NLL {there['test_nll']:.2f}.")
            return there
    result: dict[str, Any] = {
        "dataset": data.name,
        "row": row,
        "masks": parameters["masks"],
        "config": {"name": _name(parameters, members)} | asked | {"groups": len(groups.sizes)},
        "seed": search.seed,
        "budget": search.budget,
        "command": search.command,
        "tried": [],
    }
    train, valid = groups.encode(data.train)[0], groups.encode(data.valid)[0]
    models = []
    for member in range(members):
        seed = search.seed + member
        model = MADE(**parameters, columns=groups.kinds, random_state=seed, verbose=int(search.verbose))
        models.append(model.fit(train, X_valid=valid, resume_from=_folder(search, data, row) / f"seed-{seed}"))
        facts = {key: model.model_.config.scores[key] for key in ("valid_nll", "epochs", "seconds")}
        result["tried"].append({"name": f"seed {seed}"} | facts)
        nll = -Committee(models, groups).log_prob(data.valid).mean()
        result |= {"valid_nll": float(nll), "epochs": sum(each["epochs"] for each in result["tried"])}
        result["seconds"] = round(sum(each["seconds"] for each in result["tried"]), 3)
        search.record.put(result)
        search.report(f"{data.name}, {row}: {member + 1} networks, valid NLL {nll:.3f} ({facts['valid_nll']:.3f}).")
    start = time.perf_counter()
    log_p = torch.from_numpy(Committee(models, groups).log_prob(data.test))
    result["test_nll"], result["ci95"] = mean_and_interval(-log_p)
    result["test_seconds"] = round(time.perf_counter() - start, 1)
    result = search.record.put(result)
    search.report(f"{data.name}, {row}: test NLL {result['test_nll']:.2f} +- {result['ci95']:.2f}.")
    return result


def _parameters(search: Search, data: Dataset, row: str, groups: Exclusive, trials: int) -> dict[str, Any]:
    """The recipe, with what is free as it was chosen, or as a search chooses it now."""
    fixed = RECIPE if row == "ours" else ANY_ORDER | {"segments": len(groups.sizes)}
    if search.budget == "evening" and data.name in CHOSEN[row]:
        return fixed | CHOSEN[row][data.name]
    from made.tuning import tune

    space = {name: entry for name, entry in SPACE.items() if row == "ours" or name not in ONLY_FIXED}
    folder = _folder(search, data, row) / "search"
    found = tune(
        groups.encode(data.train)[0],
        groups.encode(data.valid)[0],
        folder=folder,
        space=space,
        fixed=fixed | {"columns": groups.kinds},
        trials=trials,
        seed=search.seed,
        resume=folder.exists(),
        report=lambda trial: search.report(f"{data.name}, {row}, trial {trial.number}: valid NLL {trial.valid_nll}."),
    )
    return fixed | {name: found.best_params[name] for name in space}


def _folder(search: Search, data: Dataset, row: str) -> Path:
    return search.runs / data.name / row


def _name(parameters: dict[str, Any], members: int) -> str:
    sizes = "x".join(map(str, parameters["hidden_sizes"]))
    return f"{members} networks of {sizes} units, {parameters['masks']} masks"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
