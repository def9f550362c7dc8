"""Ensembles over seeds: networks of the same parameters, each in a folder, and the mean of their probabilities.

A member is a :class:`made.MADE` over groups of mutually exclusive columns (:mod:`made.columns.onehot`), or a tied
network (:mod:`made.baselines.tied`).
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

__all__ = ["EstimatorMember", "Member", "SeedEnsemble", "TiedMember", "encode_groups", "log_mean_prob"]

WEIGHTS = "model.safetensors"


class Member(Protocol):
    """A trained network.

    Attributes:
        facts: its valid_nll, epochs and seconds.
    """

    facts: dict[str, Any]

    def log_prob(self, rows: ArrayLike) -> NDArray[np.float64]:
        """log p of rows of zeros and ones. Shapes: (rows, columns) to (rows)."""


class EstimatorMember:
    """A model of the estimator: trained, resumed, or loaded, depending on what its folder holds.

    Arguments:
        model: the estimator.
        groups: the groups of mutually exclusive columns.
        data: the rows.
        folder: the model folder.
    """

    def __init__(self, model: MADE, groups: Exclusive, data: Dataset, folder: Path) -> None:
        train, valid = encode_groups(groups, data)
        self.model, self.groups = model.fit(train, X_valid=valid, resume_from=folder), groups
        scores = model.model_.config.scores
        self.facts = {key: scores[key] for key in ("valid_nll", "epochs", "seconds")}

    def log_prob(self, rows: ArrayLike) -> NDArray[np.float64]:
        codes, allowed = self.groups.encode(rows)
        return self.groups.log_prob(self.model.score_samples(codes), allowed)


class TiedMember:
    """A tied network: trained, or loaded if its folder exists; an interrupted training is not resumed.

    Arguments:
        parameters: those of :class:`made.baselines.tied.TiedMADE`.
        seed: seed of its weights and orderings.
        data: the rows.
        folder: its folder.
        report: called after each epoch.
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
                    f"{folder} has a network of other rows or parameters. Remedy: remove it, or choose another folder."
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


class SeedEnsemble:
    """Networks whose probabilities are averaged.

    Arguments:
        members: the networks.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members

    def log_prob(self, rows: ArrayLike) -> NDArray[np.float64]:
        """log p of rows of zeros and ones. Shapes: (rows, columns) to (rows)."""
        return log_mean_prob([member.log_prob(rows) for member in self.members])


def log_mean_prob(log_p: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The log of the mean probability. Shapes: several (rows) to (rows)."""
    total: NDArray[np.float64] = np.logaddexp.reduce(np.stack(log_p), axis=0) - np.log(len(log_p))
    return total


def encode_groups(groups: Exclusive, data: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The codes of the training rows, and of the validation rows that can be encoded."""
    codes, allowed = groups.encode(data.valid)
    return groups.encode(data.train)[0], codes[allowed]
