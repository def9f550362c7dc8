"""The rows "ours" and "any-order" of the tables: our own best models, with exact likelihoods.

They add to the paper's MADE: one column for each group of mutually exclusive ones (:mod:`made.columns.onehot`),
residual connections, output biases initialized to independent columns, dropout of units and inputs, AdamW with a cosine
schedule, averaged weights, and ensembles over seeds: the mean of the probabilities of networks of the same parameters.

There are three recipes: ``"fixed"`` for a list of masks; ``"any-order"`` for unlimited masks with as many segments as
columns, which can condition on any columns; and ``"tied"`` for tied networks (:mod:`made.baselines.tied`), in some
orderings or in any. The row "any-order" is one any-order model (two on MNIST), the row "ours" an ensemble of the recipe
with the best validation likelihood. The other parameters are selected by validation rows, too: `--grid full` searches
(:mod:`made.tuning`; not for tied networks), `--grid evening` uses the parameters found before, which are below.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from made.baselines.protocol import Floats
from made.baselines.tied import TiedMADE
from made.columns.onehot import Exclusive
from made.errors import ModelError
from made.estimator import MADE
from made.io.datasets import Dataset
from made.model.checkpoint import read_tensors, tensors_file
from made.model.config import data_digest
from made.model.folder import Folder, is_model, replace_folder
from made.paper.grid_search import GridSearch, as_json, fit_density, fit_facts
from made.parameters import PLAIN

ROWS = ("ours", "any-order")
TRIALS = 60  # of the search of each recipe
MEMBERS = 8  # of an ensemble after a search
WEIGHTS = "model.safetensors"  # of a tied network, in its folder

# Parameters of the estimator, by recipe.
COMMON: dict[str, Any] = {"residual": True, "bias": "independent", "optimizer": "adamw", "schedule": "cosine"}
COMMON |= {"clip": 5.0, "average": 0.99, "batch_size": 100, "patience": 30}
ANY: dict[str, Any] = {"masks": "unlimited", "conditioning": True, "questions": 0.0}
RECIPES = {"fixed": COMMON, "any-order": COMMON | ANY | {"validation_masks": 8, "evaluation_masks": 4}}

# Parameters of made.baselines.tied.TiedMADE.
TIED: dict[str, Any] = {"activation": "relu", "ordering": "random"}

# The search space; a recipe leaves out what it fixes.
SPACE: dict[str, Any] = {
    "hidden_sizes": ["250", "500", "500,500", "1000,1000"],
    "activation": ["relu", "sigmoid", "silu"],
    "dropout": {"low": 0.0, "high": 0.8, "step": 0.1},
    "input_dropout": {"low": 0.0, "high": 0.4, "step": 0.05},
    "learning_rate": {"low": 5e-4, "high": 5e-3, "log": True},
    "weight_decay": [0.0, 0.01, 0.1, 1.0],
    "max_epochs": [50, 100, 200],
    "ordering": ["natural", "random"],
    "masks": [1, 4, 16],
    "signed": [True, False],
    "standardized": [True, False],
    "initialization": ["glorot", "zero-output"],
    "whole_rows": [0.0, 0.5],
}
NOT_FOR = {"fixed": ("whole_rows",), "any-order": ("masks", "signed")}


@dataclass(frozen=True)
class Choice:
    """The choice for a dataset: a recipe, the number of ensemble members, and the other parameters."""

    recipe: str
    members: int
    free: dict[str, Any]

    @property
    def masks(self) -> int | str:
        """The number of masks, or of orderings of a tied network; or "unlimited"."""
        if self.recipe == "any-order" or self.free.get("any_order"):
            return "unlimited"
        masks: int = self.free.get("masks", self.free.get("orderings", 1))
        return masks

    @property
    def name(self) -> str:
        kind, units = "networks", "x".join(map(str, self.free.get("hidden_sizes", ())))
        if self.recipe == "tied":
            kind, units = "tied networks", self.free["hidden_size"]
        each = " for each degree" if self.recipe == "tied" else ""
        return f"{self.members} {kind} of {units} units{each}, {self.masks} masks"

    def parameters(self, groups: Exclusive) -> dict[str, Any]:
        """All parameters of the estimator, or of a tied network."""
        segments = {"segments": len(groups.sizes)} if self.recipe == "any-order" else {}
        return RECIPES.get(self.recipe, TIED) | segments | self.free


def _free(hidden_sizes: tuple[int, ...], max_epochs: int, dropout: float, **others: Any) -> dict[str, Any]:
    free = {"hidden_sizes": hidden_sizes, "max_epochs": max_epochs, "dropout": dropout, "input_dropout": 0.0}
    return free | {"learning_rate": 2e-3, "weight_decay": 0.0, "activation": "relu"} | others


# For binary columns: standardized inputs, and outputs that start as independent columns.
EVEN: dict[str, Any] = {"standardized": True, "initialization": "zero-output"}

# Where the natural ordering is best: half of the updates use it, and whole rows are scored in it.
NATURAL: dict[str, Any] = {"ordering": "natural", "whole_rows": 0.5, "evaluation_masks": 1}

# Any-order models of each dataset; one of them is the row "any-order".
ANY_ORDER: dict[str, dict[str, Any]] = {
    "adult": _free((500,), 60, 0.4, evaluation_masks=16),
    "connect4": _free((500, 500), 200, 0.1, patience=200, initialization="zero-output") | NATURAL,
    "dna": _free((500,), 60, 0.5),
    "mushrooms": _free((500, 500), 300, 0.2, evaluation_masks=16),
    "nips": _free((500,), 400, 0.5, activation="sigmoid", learning_rate=1e-3, batch_size=200, patience=100)
    | EVEN
    | {"direct": False, "evaluation_masks": 16},
    "ocr_letters": _free((1000, 1000), 130, 0.25, activation="silu", patience=130) | EVEN | NATURAL,
}
# Tied networks: of images, and of visits to web pages.
PIXELS: dict[str, Any] = {"hidden_size": 1000, "max_epochs": 24, "dropout": 0.5, "learning_rate": 2e-3}
PIXELS |= {"ordering": "walk", "moved": 0.5, "line": 28}
PAGES: dict[str, Any] = {"hidden_size": 1000, "max_epochs": 40, "dropout": 0.4, "learning_rate": 5e-3}
PAGES |= {"activation": "sigmoid", "orderings": 16, "standardized": True}
CHOSEN: dict[str, dict[str, Choice]] = {
    "ours": {
        "adult": Choice("any-order", 4, ANY_ORDER["adult"]),
        "binarized_mnist": Choice("tied", 5, PIXELS),
        "connect4": Choice("fixed", 2, _free((500, 500), 60, 0.2, ordering="natural", masks=1)),
        "dna": Choice("any-order", 4, ANY_ORDER["dna"]),
        "mushrooms": Choice("any-order", 2, ANY_ORDER["mushrooms"]),
        "nips": Choice("any-order", 4, ANY_ORDER["nips"]),
        "ocr_letters": Choice("fixed", 2, _free((1000, 1000), 80, 0.3, ordering="natural", masks=1, batch_size=250)),
        "web": Choice("tied", 2, PAGES),
    },
    "any-order": {name: Choice("any-order", 1, free) for name, free in ANY_ORDER.items()}
    | {
        "binarized_mnist": Choice("tied", 2, PIXELS | {"any_order": 0.5, "max_epochs": 48, "dropout": 0.4}),
        "web": Choice("tied", 1, PAGES | {"any_order": 1.0}),
    },
}


class Member(NamedTuple):
    """A trained network of an ensemble: its valid_nll, epochs and seconds, and log p of rows of zeros and ones."""

    facts: dict[str, Any]
    log_prob: Callable[[ArrayLike], Floats]


def train_estimator(model: MADE, groups: Exclusive, data: Dataset, folder: Path) -> Member:
    """A model over groups of exclusive columns: trained, resumed, or loaded, depending on what its folder holds."""
    train, valid = _encode(groups, data)
    model.fit(train, X_valid=valid, resume_from=folder)

    def log_prob(rows: ArrayLike) -> Floats:
        codes, allowed = groups.encode(rows)
        return groups.log_prob(model.score_samples(codes), allowed)

    return Member(fit_facts(model), log_prob)


def train_tied(model: TiedMADE, parameters: Mapping[str, Any], data: Dataset, folder: Path) -> Member:
    """A tied network: trained, or loaded if its folder exists; an interrupted training is not resumed."""
    asked = TiedMADE.TRAINING | {**parameters, "seed": model.seed, "rows": data_digest(data.train, data.valid)}
    if is_model(folder):
        weights, found = read_tensors(Folder.open(folder).file(WEIGHTS))
        if found is None or found.get("asked") != asked:
            raise ModelError(
                f"{folder} has a network of other rows or parameters. Remedy: remove it, or choose another folder."
            )
        model.restore(weights)
        facts = found["facts"]
    else:
        facts = fit_density(model, data)
        kept = tensors_file(model.network_.state_dict(), {"asked": asked, "facts": facts})
        replace_folder(folder, {WEIGHTS: kept})
    return Member(facts, lambda rows: model.log_prob(rows).values)


def log_mean_prob(log_p: Sequence[Floats]) -> Floats:
    """The log of the mean probability. Shapes: several (rows) to (rows)."""
    total: Floats = np.logaddexp.reduce(np.stack(log_p), axis=0) - np.log(len(log_p))
    return total


def _encode(groups: Exclusive, data: Dataset) -> tuple[Floats, Floats]:
    """The codes of the training rows, and of the validation rows that can be encoded."""
    codes, allowed = groups.encode(data.valid)
    return groups.encode(data.train)[0], codes[allowed]


def make(search: GridSearch, data: Dataset, rows: Sequence[str] = ROWS, trials: int = TRIALS) -> list[dict[str, Any]]:
    """The rows of one dataset; with `--grid evening`, those that have a choice."""
    groups, made = Exclusive.find(data.train), []
    for row in rows:
        if search.budget != "evening":
            made.append(_row(search, data, row, groups, _choose(search, data, row, groups, trials)))
        elif data.name in CHOSEN[row]:
            made.append(_row(search, data, row, groups, CHOSEN[row][data.name]))
        else:
            search.report(f"{data.name}, {row}: no parameters are known for this set; --grid full searches for them.")
    return made


def _row(search: GridSearch, data: Dataset, row: str, groups: Exclusive, choice: Choice) -> dict[str, Any]:
    parameters, tied = choice.parameters(groups), choice.recipe == "tied"
    config = {"recipe": choice.recipe, "members": choice.members, "parameters": as_json(parameters)}
    existing = search.existing(data, row, lambda result: config.items() <= result["config"].items())
    if existing is not None:
        return existing
    more = {} if tied else {"groups": len(groups.sizes)}
    result = search.new_result(data, row) | {"masks": choice.masks, "config": {"name": choice.name} | config | more}
    digest = hashlib.sha256(json.dumps(config["parameters"], sort_keys=True).encode()).hexdigest()[:8]
    ensemble: list[Member] = []
    log_valid: list[Floats] = []
    for seed in range(search.seed, search.seed + choice.members):
        folder = search.runs / data.name / f"{choice.recipe}-{digest}" / f"seed-{seed}"
        if tied:
            report = search.epoch_reporter(f"{data.name}, {row}, seed {seed}")
            network = TiedMADE(**parameters, image=data.image, seed=seed, report=report)
            member = train_tied(network, parameters, data, folder)
        else:
            model = MADE(**(PLAIN | parameters), columns=groups.kinds, random_state=seed, verbose=int(search.verbose))
            member = train_estimator(model, groups, data, folder)
        ensemble.append(member)
        log_valid.append(member.log_prob(data.valid))
        result["tried"].append({"name": f"seed {seed}"} | member.facts)
        own, nll = -log_valid[-1].mean(), -log_mean_prob(log_valid).mean()
        result |= {"valid_nll": float(nll), "epochs": sum(each["epochs"] for each in result["tried"])}
        result["seconds"] = round(sum(each["seconds"] for each in result["tried"]), 3)
        search.results.put(result)
        search.report(f"{data.name}, {row}: {len(ensemble)} networks, valid NLL {nll:.3f} (the last {own:.3f}).")
    return search.finish(result, lambda: log_mean_prob([member.log_prob(data.test) for member in ensemble]))


def _choose(search: GridSearch, data: Dataset, row: str, groups: Exclusive, trials: int) -> Choice:
    """Search the parameters of each recipe of a row, and choose the best by validation NLL."""
    from made.tuning import tune

    found = []
    train, valid = _encode(groups, data)
    for recipe in RECIPES if row == "ours" else ("any-order",):
        space = {name: entry for name, entry in SPACE.items() if name not in NOT_FOR[recipe]}
        folder = search.runs / data.name / f"{recipe}-search"
        tuned = tune(
            train,
            valid,
            folder=folder,
            space=space,
            fixed=Choice(recipe, 1, {}).parameters(groups) | {"columns": groups.kinds},
            trials=trials,
            seed=search.seed,
            resume=folder.exists(),
            report=lambda trial: search.report(f"{data.name}, trial {trial.number}: valid NLL {trial.valid_nll}."),
        )
        members = MEMBERS if row == "ours" else 1
        found.append((tuned.best_nll, Choice(recipe, members, {name: tuned.best_params[name] for name in space})))
    return min(found, key=lambda each: each[0])[1]
