"""The models that MADE is compared with, and MADE itself, behind one protocol.

Modules of the systems are imported lazily, by the factories.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from made.baselines.protocol import Density, LikelihoodKind, LogProb

__all__ = ["SYSTEMS", "Density", "LikelihoodKind", "LogProb", "System"]


class System(NamedTuple):
    """A system that can be compared by name.

    Attributes:
        title: its name in tables.
        factory: constructs an unfitted one, given the seed.
        exact: whether its likelihood is exact at every size.
    """

    title: str
    factory: Callable[[int], Density]
    exact: bool = True


def _factory(module: str, name: str, **parameters: Any) -> Callable[[int], Density]:
    """A factory that imports the module of a class when it is called."""

    def make(seed: int) -> Density:
        density: Density = getattr(import_module(f"made.baselines.{module}"), name)(**parameters, seed=seed)
        return density

    return make


# Chosen by the validation rows of digits.
TIED = {"activation": "relu", "standardized": True, "dropout": 0.3, "learning_rate": 5e-3, "max_epochs": 200}

SYSTEMS: dict[str, System] = {
    "bernoulli": System("independent Bernoullis", _factory("bernoulli", "BernoulliMixture", components=1)),
    "mixture": System("mixture of Bernoullis", _factory("bernoulli", "BernoulliMixture")),
    "fvsbn": System("FVSBN", _factory("made", "FVSBN")),
    "nade": System("NADE", _factory("nade", "NADE")),
    "eonade": System("EoNADE, 1 hidden layer", _factory("eonade", "EoNADE", hidden_sizes=(500,))),
    "eonade2": System("EoNADE, 2 hidden layers", _factory("eonade", "EoNADE", hidden_sizes=(500, 500))),
    "made": System("MADE", _factory("made", "OneMask")),
    "made-masks": System("MADE, mask sampling", _factory("made", "MaskSampling")),
    "tied": System("MADE, tied units, 16 orderings", _factory("tied", "TiedMADE", orderings=16, **TIED)),
    "rbm": System("RBM", _factory("boltzmann", "RBM"), exact=False),
    "dbn": System("DBN, 2 hidden layers", _factory("boltzmann", "DBN"), exact=False),
    "dbm": System("DBM, 2 hidden layers", _factory("boltzmann", "DBM"), exact=False),
    "darn": System("DARN", _factory("darn", "DARN"), exact=False),
    "darn-noise": System("DARN, adaptive noise", _factory("darn", "DARN", noise=True), exact=False),
}
