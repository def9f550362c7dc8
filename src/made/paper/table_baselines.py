"""The baselines of the paper's Tables 4 and 6, on the same datasets.

Each has a small grid; validation rows select, and the selected model is evaluated on the test rows once. An existing
result of the same grid and seed is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from numpy.typing import NDArray

from made.baselines.optimization import GradientBaseline
from made.baselines.protocol import Density
from made.io.datasets import Dataset
from made.paper import published
from made.paper.grid_search import GridSearch, fit_density, run_folder


class BaselineRow(NamedTuple):
    """A row: module and class of its system, fixed parameters, and the grid of each budget.

    ``large`` is the number of cases, from the first, that the evening budget has for a large dataset.
    """

    module: str
    system: str
    fixed: Mapping[str, Any]
    grids: Mapping[str, Sequence[Mapping[str, Any]]]
    large: int | None = None


Grids = dict[str, Sequence[Mapping[str, Any]]]
ONE: Grids = {"evening": ({},), "full": ({},)}
NADE: Grids = {
    "evening": ({"dropout": 0.0}, {"dropout": 0.3}),
    "full": [{"dropout": share, "learning_rate": rate} for share in (0.0, 0.2, 0.4, 0.6) for rate in (5e-3, 1e-2)],
}
EONADE: Grids = {
    "evening": ({"learning_rate": 5e-3}, {"learning_rate": 2e-3}),
    "full": [{"dropout": share, "learning_rate": rate} for share in (0.0, 0.2) for rate in (1e-3, 2e-3, 5e-3)],
}
RBM: Grids = {
    "evening": ({},),
    "full": [{"learning_rate": rate, "max_epochs": epochs} for rate in (1e-3, 3e-3) for epochs in (20, 60)],
}
DARN: Grids = {
    "evening": ({"hidden_size": 100, "learning_rate": 2e-2}, {"hidden_size": 200, "learning_rate": 5e-3}),
    "full": [{"hidden_size": K, "learning_rate": rate} for K in (50, 100, 200, 500) for rate in (3e-3, 1e-2, 3e-2)],
}
LARGE = 3_000_000  # entries of the training rows
ESTIMATED = {"chains": 500, "temperatures": 5000}  # for log Z
WIDE_DARN = {"hidden_size": 500, "through": True, "wait": 0.3, "learning_rate": 4e-3, "draws": 1000}
LONG = {"max_epochs": 150, "patience": 30} | ESTIMATED
DBM = {"hidden_sizes": (500, 1000), "pretraining": 0.73, "together": {"learning_rate": 5e-4}} | LONG
DBN = {"hidden_sizes": (500,), "draws": 1000, "upper": {"learning_rate": 2e-4, "max_epochs": 20}} | LONG
# By the names of the paper's rows.
ROWS: dict[str, BaselineRow] = {
    "MoBernoullis": BaselineRow("bernoulli", "BernoulliMixture", {}, ONE),
    "RBM": BaselineRow("boltzmann", "RBM", {"hidden_size": 500} | ESTIMATED, RBM),
    "FVSBN": BaselineRow("made", "FVSBN", {}, ONE),
    "NADE (fixed order)": BaselineRow("nade", "NADE", {"hidden_size": 500}, NADE),
    "EoNADE 1hl (16 ord.)": BaselineRow("eonade", "EoNADE", {"hidden_sizes": (500,), "orderings": 16}, EONADE, large=1),
    "DARN": BaselineRow("darn", "DARN", {}, DARN),
}
MNIST_ROWS: dict[str, BaselineRow] = {
    "RBM (500 h, 25 CD steps)": BaselineRow(
        "boltzmann", "RBM", {"hidden_size": 500, "steps": 25, "growing": True, "max_epochs": 30} | ESTIMATED, ONE
    ),
    "DBM 2hl": BaselineRow("boltzmann", "DBM", DBM, ONE),
    "DBN 2hl": BaselineRow("boltzmann", "DBN", DBN, ONE),
    "DARN n_h=500": BaselineRow("darn", "DARN", WIDE_DARN, ONE),
    "DARN n_h=500, adaNoise": BaselineRow("darn", "DARN", WIDE_DARN | {"noise": True, "max_epochs": 60}, ONE),
    "MoBernoullis K=10": BaselineRow("bernoulli", "BernoulliMixture", {"components": 10}, ONE),
    "MoBernoullis K=500": BaselineRow("bernoulli", "BernoulliMixture", {"components": 500}, ONE),
    "NADE 1hl (fixed order)": BaselineRow("nade", "NADE", {"hidden_size": 500, "max_epochs": 30}, ONE),
    "EoNADE 1hl (128 orderings)": BaselineRow("eonade", "EoNADE", {"hidden_sizes": (500,), "orderings": 128}, ONE),
    "EoNADE 2hl (128 orderings)": BaselineRow("eonade", "EoNADE", {"hidden_sizes": (500, 500), "orderings": 128}, ONE),
}
ALL = (*ROWS, *MNIST_ROWS)


def rows_of(dataset: str) -> dict[str, BaselineRow]:
    """The rows of a dataset: Table 4 for the UCI sets, Table 6 otherwise."""
    return ROWS if dataset in published.UCI_SETS else MNIST_ROWS


def cases(dataset: str, row: str, budget: str, entries: int = 0) -> dict[str, dict[str, Any]]:
    """The parameters of a row's cases, by name; ``entries`` is the size of the training set.

    Example:
        >>> list(cases("adult", "NADE (fixed order)", "evening"))
        ['NADE, dropout 0.0', 'NADE, dropout 0.3']
    """
    baseline = rows_of(dataset)[row]
    grid = baseline.grids[budget][: baseline.large if budget == "evening" and entries > LARGE else None]
    return {
        ", ".join([baseline.system, *(f"{name} {value}" for name, value in case.items())]): {**baseline.fixed, **case}
        for case in grid
    }


def make(search: GridSearch, data: Dataset, rows: Sequence[str]) -> list[dict[str, Any]]:
    """The results of those rows that the dataset has."""
    return [_row(search, data, row) for row in rows_of(data.name) if row in rows]


def _row(search: GridSearch, data: Dataset, row: str) -> dict[str, Any]:
    baseline, grid = rows_of(data.name)[row], cases(data.name, row, search.budget, data.train.size)

    def fit(name: str, parameters: Mapping[str, Any]) -> tuple[Density, dict[str, Any], dict[str, Any]]:
        system = getattr(import_module(f"made.baselines.{baseline.module}"), baseline.system)
        density: Density = system(**parameters, seed=search.seed)
        if hasattr(density, "report"):
            density.report = search.epoch_reporter(f"{data.name}, {name}")
        if isinstance(density, GradientBaseline) and density.resumable:
            density.checkpoint = run_folder(search.runs, data.name, f"{row}, {name}", search.seed) / "state.safetensors"
        facts = fit_density(density, data)
        more = {"valid_parts": density.parts_} if hasattr(density, "parts_") else {}
        return density, facts, more | {"masks": parameters.get("orderings", 1), "parameters": density.size}

    def log_prob(density: Density, result: dict[str, Any]) -> NDArray[Any]:
        answer = density.log_prob(data.test)
        result.update(kind=answer.kind, standard_error=answer.standard_error)
        return answer.values

    return search.run_cases(data, row, grid, fit, log_prob)
