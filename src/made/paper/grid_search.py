"""A row of a table: train a grid of configurations, select one by validation rows, evaluate it on test rows once.

Each configuration of MADE is a model folder, which `made evaluate` can open and from which an interrupted training run
resumes. Results are written after each configuration.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray

from made.baselines.optimization import EpochReport
from made.baselines.protocol import Density
from made.errors import Diverged
from made.estimator import MADE
from made.io.datasets import Dataset
from made.paper.results_file import ResultsFile
from made.parameters import PLAIN
from made.queries.likelihood import mean_and_interval

M = TypeVar("M")
Facts = dict[str, Any]
Cases = Mapping[str, Mapping[str, Any]]
Fit = Callable[[str, Mapping[str, Any]], tuple[M, Facts, Facts]]


@dataclass(frozen=True)
class GridSearch:
    """Settings of a search that produces the rows of a table.

    Attributes:
        results: the file of the results.
        runs: the folder of the models, one for each configuration.
        command: the command that reproduces these results.
        seed: seed of all models.
        budget: the name of the grid: ``"evening"`` or ``"full"``.
        verbose: whether to show a progress bar for each training run.
        report: called with a sentence after each configuration and, if verbose, after each epoch of a baseline.
    """

    results: ResultsFile
    runs: Path
    command: str
    seed: int = 0
    budget: str = "evening"
    verbose: bool = False
    report: Callable[[str], None] = lambda text: None

    def run_row(self, data: Dataset, row: str, cases: Cases, *, test_masks: int | None = None) -> Facts:
        """The result of a row of MADE; ``cases`` are its parameters for each configuration, by the name of its folder.

        ``test_masks`` is the number of masks that a model of unlimited masks averages for the test rows.
        """

        def fit(name: str, parameters: Mapping[str, Any]) -> tuple[MADE, Facts, Facts]:
            model = self.fit(data, name, parameters)
            return model, fit_facts(model), {"masks": parameters["masks"]}

        def log_prob(model: MADE, result: Facts) -> NDArray[Any]:
            if model.masks == "unlimited" and test_masks is not None:
                model.evaluation_masks = result["test_masks"] = test_masks
            return model.score_samples(data.test)

        return self.run_cases(data, row, cases, fit, log_prob)

    def run_cases(
        self, data: Dataset, row: str, cases: Cases, fit: Fit[M], log_prob: Callable[[M, Facts], NDArray[Any]]
    ) -> Facts:
        """The result of a row: an existing one of the same cases and seed, or a new one, selected by validation NLL.

        Arguments:
            data: the rows.
            row: the name of the row in the table.
            cases: the parameters of each configuration, by name.
            fit: takes a name and its parameters, and returns the model; its valid_nll, epochs and seconds; and further
                fields of the result.
            log_prob: log p of the test rows by the selected model; it may add to the result.
        """

        def matches(result: Mapping[str, Any]) -> bool:
            name, tried = result["config"]["name"], {each["name"] for each in result["tried"]}
            same = tried == set(cases) and result.get("budget") == self.budget
            return same and result["config"] == {"name": name} | as_json(cases[name])

        existing = self.existing(data, row, matches)
        if existing is not None:
            return existing
        result, best = self.new_result(data, row), None
        for name, parameters in cases.items():
            try:
                model, facts, more = fit(name, parameters)
            except Diverged as error:
                result["tried"].append({"name": name, "valid_nll": None, "failed": str(error)})
                continue
            result["tried"].append({"name": name} | facts)
            if best is None or facts["valid_nll"] < result["valid_nll"]:
                best = model
                result |= facts | more | {"config": {"name": name} | as_json(parameters)}
            self.results.put(result)
            said = f"valid NLL {facts['valid_nll']:.3f}, {facts['epochs']} epochs, {facts['seconds']:.0f} s"
            self.report(f"{data.name}, {name}: {said}.")
        if best is None:
            raise Diverged(f"{data.name}: every configuration of the row {row!r} diverged.")
        selected = best
        return self.finish(result, lambda: log_prob(selected, result))

    def existing(self, data: Dataset, row: str, matches: Callable[[Facts], bool]) -> Facts | None:
        """The finished result of a row in the file, if it matches."""
        result = self.results.get(data.name, row)
        if result is None or result["test_nll"] is None or result["seed"] != self.seed or not matches(result):
            return None
        self.report(f"{data.name}, {row}: there already, test NLL {result['test_nll']:.2f}.")
        return result

    def new_result(self, data: Dataset, row: str) -> Facts:
        """A result without any numbers yet."""
        facts = {"seed": self.seed, "budget": self.budget, "command": self.command, "tried": []}
        return {"dataset": data.name, "row": row} | facts

    def finish(self, result: Facts, log_prob: Callable[[], NDArray[Any]]) -> Facts:
        """Evaluate the selected model on the test rows, and write the result; an interval includes a standard error."""
        start = time.perf_counter()
        result["test_nll"], half = mean_and_interval(-torch.from_numpy(log_prob()))
        result["ci95"] = math.hypot(half, 1.96 * result.get("standard_error", 0.0))
        result["test_seconds"] = round(time.perf_counter() - start, 1)
        said = f"test NLL {result['test_nll']:.2f} +- {result['ci95']:.2f}"
        self.report(f"{result['dataset']}, {result['row']}: {said}.")
        return self.results.put(result)

    def fit(self, data: Dataset, name: str, parameters: Mapping[str, Any]) -> MADE:
        """The model of a configuration: trained, resumed, or loaded, depending on what its folder holds."""
        folder = run_folder(self.runs, data.name, name, self.seed)
        model = MADE(**(PLAIN | dict(parameters)), columns="binary", random_state=self.seed, verbose=int(self.verbose))
        return model.fit(data.train, X_valid=data.valid, resume_from=folder)

    def epoch_reporter(self, what: str) -> EpochReport | None:
        """What a baseline calls after each epoch, if verbose."""

        def report(epoch: int, score: float, seconds: float) -> None:
            self.report(f"{what}: epoch {epoch + 1}, valid {-score:.3f}, {seconds:.0f} s.")

        return report if self.verbose else None


def fit_facts(model: MADE) -> Facts:
    """The valid_nll, epochs and seconds of a fitted model."""
    scores = model.model_.config.scores
    return {key: scores[key] for key in ("valid_nll", "epochs", "seconds")}


def fit_density(density: Density, data: Dataset) -> Facts:
    """Fit a baseline: its valid_nll, epochs and seconds."""
    begin = time.perf_counter()
    density.fit(data.train, data.valid)
    seconds = round(time.perf_counter() - begin, 3)
    return {"valid_nll": -density.log_prob(data.valid).mean(), "epochs": density.epochs, "seconds": seconds}


def run_folder(runs: Path, dataset: str, name: str, seed: int) -> Path:
    """The folder of a configuration's model."""
    return runs / dataset / (name if seed == 0 else f"{name}-seed{seed}")


def as_json(parameters: Mapping[str, Any]) -> Facts:
    """Parameters as JSON stores them, with lists for tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
