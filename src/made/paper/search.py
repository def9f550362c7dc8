"""A row of a table: configurations trained and kept, one chosen by validation rows, that one asked about test, once.

Each configuration is a model in a folder of its own, which `made evaluate` can open, and from which training goes on
where it was stopped. What is known is written after each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from made.baselines.optimization import EpochReport
from made.errors import Diverged
from made.estimator import MADE
from made.io.datasets import Dataset
from made.paper.record import Record
from made.parameters import PLAIN
from made.queries.likelihood import mean_and_interval

__all__ = ["Search", "folder_of", "plain"]


@dataclass(frozen=True)
class Search:
    """Where a table's models and results are kept.

    Attributes:
        record: the results.
        runs: the folder for models, one for each configuration that was trained.
        command: the command that makes these results again.
        seed: the seed of all that is random.
        budget: which part of the grid is tried, in a word.
        verbose: whether to show a bar for each training.
        report: called with a sentence after each configuration, and, if verbose, after each epoch of a baseline.
    """

    record: Record
    runs: Path
    command: str
    seed: int = 0
    budget: str = "evening"
    verbose: bool = False
    report: Callable[[str], None] = lambda text: None

    def row(
        self, data: Dataset, row: str, cases: Mapping[str, Mapping[str, Any]], *, test_masks: int | None = None
    ) -> dict[str, Any]:
        """Train every case, choose by validation, evaluate the chosen one on test rows, and write that down.

        A result that is there already, of the same cases and seed, is given as it is: test rows are asked about once.

        Arguments:
            data: the rows.
            row: what the row of the table is called.
            cases: the parameters of :class:`~made.estimator.MADE` for each configuration, by a name for its folder.
            test_masks: how many masks an unlimited model averages for the test rows.
        """
        there = self.there(data, row, lambda there: self.answers(there, cases))
        if there is not None:
            return there
        result = self.begun(data, row)
        best: MADE | None = None
        for name, parameters in cases.items():
            try:
                model = self.fit(data, name, parameters)
            except Diverged as error:
                result["tried"].append({"name": name, "valid_nll": None, "failed": str(error)})
                continue
            scores = model.model_.config.scores
            facts = {key: scores[key] for key in ("valid_nll", "epochs", "seconds")}
            result["tried"].append({"name": name} | facts)
            if best is None or facts["valid_nll"] < result["valid_nll"]:
                best = model
                result |= facts | {"masks": parameters["masks"], "config": {"name": name} | plain(parameters)}
            self.record.put(result)
            self.report(f"{data.name}, {name}: valid NLL {facts['valid_nll']:.3f}, {facts['epochs']} epochs.")
        if best is None:
            raise Diverged(f"{data.name}: every configuration of the row {row!r} diverged.")
        if best.masks == "unlimited" and test_masks is not None:
            best.evaluation_masks = result["test_masks"] = test_masks
        return self.finish(result, data, best.score_samples)

    def there(self, data: Dataset, row: str, answers: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any] | None:
        """The result that is there already, if it answers what is asked."""
        there = self.record.get(data.name, row)
        if there is None or there["test_nll"] is None or there["seed"] != self.seed or not answers(there):
            return None
        self.report(f"{data.name}, {row}: there already, test NLL {there['test_nll']:.2f}.")
        return there

    def begun(self, data: Dataset, row: str) -> dict[str, Any]:
        """A result of which nothing is known yet but how it is made."""
        facts = {"seed": self.seed, "budget": self.budget, "command": self.command, "tried": []}
        return {"dataset": data.name, "row": row} | facts

    def finish(
        self, result: dict[str, Any], data: Dataset, log_prob: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> dict[str, Any]:
        """Ask what was chosen about the test rows, and write down the result with that."""
        start = time.perf_counter()
        log_p = torch.from_numpy(log_prob(data.test))
        result["test_nll"], result["ci95"] = mean_and_interval(-log_p)
        result["test_seconds"] = round(time.perf_counter() - start, 1)
        self.report(f"{data.name}, {result['row']}: test NLL {result['test_nll']:.2f} +- {result['ci95']:.2f}.")
        return self.record.put(result)

    def fit(self, data: Dataset, name: str, parameters: Mapping[str, Any]) -> MADE:
        """A model of these parameters: trained, gone on with, or loaded, according to what is in its folder."""
        folder = folder_of(self.runs, data.name, name, self.seed)
        model = MADE(**(PLAIN | dict(parameters)), columns="binary", random_state=self.seed, verbose=int(self.verbose))
        return model.fit(data.train, X_valid=data.valid, resume_from=folder)

    def after_epochs(self, what: str) -> EpochReport | None:
        """What a baseline is to call after each epoch, if someone is there to read it."""

        def report(epoch: int, score: float, seconds: float) -> None:
            self.report(f"{what}: epoch {epoch + 1}, valid {-score:.3f}, {seconds:.0f} s.")

        return report if self.verbose else None

    def answers(self, there: Mapping[str, Any], cases: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether a result is that of these cases: of the same names, and the chosen one just as it is now."""
        name, tried = there["config"]["name"], {each["name"] for each in there["tried"]}
        same = tried == set(cases) and there.get("budget") == self.budget
        return same and there["config"] == {"name": name} | plain(cases[name])


def folder_of(runs: Path, dataset: str, name: str, seed: int) -> Path:
    """Where the model of a configuration is."""
    return runs / dataset / (name if seed == 0 else f"{name}-seed{seed}")


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON has them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
