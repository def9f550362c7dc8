"""Networks of one recipe and different seeds, each kept in a folder, and the mean of their probabilities.

A recipe is one of the estimator (:class:`Masked`), whose columns are the groups of :mod:`onehot`, or a *tied*
masked network (:class:`Tied`): K units for each degree, D K in all, which share their weights from degree to degree
(:mod:`made.baselines.tied`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from made.baselines.optimization import EpochReport
from made.baselines.tied import TiedMADE
from made.columns.onehot import Exclusive
from made.errors import ModelError
from made.estimator import MADE
from made.io.datasets import Dataset
from made.model.config import data_digest
from made.model.folder import Folder, is_model, replace_folder
from made.model.tensors import read_tensors, tensors_file

__all__ = ["Committee", "Masked", "Member", "Tied", "coded", "mean"]

WEIGHTS = "model.safetensors"


class Member(Protocol):
    """A trained network.

    Attributes:
        facts: its validation NLL, how many epochs it took, and how many seconds.
    """

    facts: dict[str, Any]

    def log_prob(self, rows: ArrayLike) -> NDArray[np.float64]:
        """log p of rows of zeros and ones. Shapes: (rows, columns) to (rows)."""


class Masked:
    """A model of the estimator, trained, gone on with, or loaded, according to what is in its folder.

    Arguments:
        model: the estimator.
        groups: which columns exclude each other.
        data: the rows.
        folder: where it is kept.
    """

    def __init__(self, model: MADE, groups: Exclusive, data: Dataset, folder: Path) -> None:
        train, valid = coded(groups, data)
        self.model, self.groups = model.fit(train, X_valid=valid, resume_from=folder), groups
        scores = model.model_.config.scores
        self.facts = {key: scores[key] for key in ("valid_nll", "epochs", "seconds")}

    def log_prob(self, rows: ArrayLike) -> NDArray[np.float64]:
        codes, allowed = self.groups.encode(rows)
        return self.groups.log_prob(self.model.score_samples(codes), allowed)


class Tied:
    """A tied network, trained, or loaded if it is in its folder; one that is interrupted begins anew.

    Arguments:
        parameters: of :class:`made.baselines.tied.TiedMADE`.
        seed: of its weights and of its orderings.
        data: the rows.
        folder: where it is kept.
        report: told after each epoch.
    """

    def __init__(
        self, parameters: Mapping[str, Any], seed: int, data: Dataset, folder: Path, report: EpochReport | None = None
    ) -> None:
        self.model = TiedMADE(**parameters, image=data.image, seed=seed, report=report)
        self.facts: dict[str, Any]
        asked = TiedMADE.TRAINING | {**parameters, "seed": seed, "rows": data_digest(data.train, data.valid)}
        if is_model(folder):
            weights, found = read_tensors(Folder.open(folder).file(WEIGHTS))
            if found is None or found.get("asked") != asked:
                raise ModelError(
                    f"{folder} has a network of other rows or parameters. Remedy: another folder, or none."
                )
            self.model.restore(weights)
            self.facts = found["facts"]
            return
        begin = time.perf_counter()
        self.model.fit(data.train, data.valid)
        seconds, nll = round(time.perf_counter() - begin, 3), -self.model.log_prob(data.valid).mean()
        self.facts = {"valid_nll": nll, "epochs": self.model.epochs, "seconds": seconds}
        kept = tensors_file(self.model.network_.state_dict(), {"asked": asked, "facts": self.facts})
        replace_folder(folder, {WEIGHTS: kept})

    def log_prob(self, rows: ArrayLike) -> NDArray[np.float64]:
        return self.model.log_prob(rows).values


class Committee:
    """Networks whose probabilities are averaged: a distribution, too.

    Arguments:
        members: the networks.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members

    def log_prob(self, rows: ArrayLike) -> NDArray[np.float64]:
        """log p of rows of zeros and ones. Shapes: (rows, columns) to (rows)."""
        return mean([member.log_prob(rows) for member in self.members])


def mean(log_p: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The log of the mean of probabilities. Shapes: several (rows) to (rows)."""
    total: NDArray[np.float64] = np.logaddexp.reduce(np.stack(log_p), axis=0) - np.log(len(log_p))
    return total


def coded(groups: Exclusive, data: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The codes of rows to train on, and of rows to choose by, of those that codes can say."""
    codes, allowed = groups.encode(data.valid)
    return groups.encode(data.train)[0], codes[allowed]
