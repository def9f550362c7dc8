"""config.json: the parameters, columns and scores of a model, validated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from made._version import __version__
from made.errors import ModelError
from made.network.connectivity import Connectivities
from made.network.limits import check_sizes
from made.network.masked import Network
from made.network.weights import weight_shapes
from made.parameters import LATER
from made.queries.ensemble import Ensemble
from made.tables.field import Field as ColumnField
from made.tables.schema import Schema
from made.training.trainer import Trainer

__all__ = ["Config", "Data", "data_digest", "new_config", "number_of_masks", "number_of_segments"]

MOST_SEGMENTED = 128  # columns, up to which segments="auto" evaluates each column in a pass of its own


class Data(BaseModel):
    """The number of training and validation rows, and a fingerprint of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rows: int = Field(ge=1)
    valid_rows: int = Field(ge=0)
    sha256: str


class Config(BaseModel):
    """The content of config.json, validated."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    made: str
    seed: int = Field(ge=0, lt=2**63)
    parameters: dict[str, Any]
    columns: list[dict[str, Any]] = Field(min_length=1)
    named: bool
    dropped: dict[str, int] = {}
    container: str
    target: str | None = None
    digest: str
    data: Data
    scores: dict[str, float | int | None] = {}

    @field_validator("parameters")
    @classmethod
    def _complete(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        return LATER | parameters

    @cached_property
    def schema_(self) -> Schema:
        """The columns of the table (pydantic has a ``schema`` of its own)."""
        return Schema([ColumnField.from_json(each) for each in self.columns], self.named, self.dropped)

    @cached_property
    def connectivities(self) -> Connectivities:
        """The family of connectivities."""
        parameters, masks = self.parameters, self.parameters["masks"]
        return Connectivities(
            len(self.columns),
            tuple(parameters["hidden_sizes"]),
            masks=None if masks == "unlimited" else masks,
            ordering=parameters["ordering"],
            resample=parameters["resample"],
            residual=parameters["residual"],
            whole_rows=parameters["evaluation_masks"] if parameters["whole_rows"] else 0,
            seed=self.seed,
        )

    def network(self) -> Network:
        """The network with its initial weights, and with the connectivities that were trained."""
        parameters, family = self.parameters, self.connectivities
        if family.digest() != self.digest:
            raise ModelError("the connectivities of this model cannot be reproduced by this version of made.")
        network = Network(
            self.schema_.coded(signed=parameters["signed"]),
            family,
            activation=parameters["activation"],
            direct=parameters["direct"],
            conditioning=parameters["conditioning"],
            dropout=parameters["dropout"],
            input_dropout=parameters["input_dropout"],
            initialization=parameters["initialization"],
        )
        return network.to(getattr(torch, parameters["dtype"]))

    def ensemble(self, network: Network) -> Ensemble:
        """The network with the number of masks and of segments that the parameters ask for."""
        return Ensemble(
            network,
            number_of_masks(network.connectivities, self.parameters["evaluation_masks"]),
            number_of_segments(network.connectivities, self.parameters["segments"]),
        )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight, without allocating any."""
        parameters = self.parameters
        return weight_shapes(
            self.schema_.columns,
            parameters["hidden_sizes"],
            direct=parameters["direct"],
            conditioning=parameters["conditioning"],
        )

    def with_scores(self, trainer: Trainer, nll: float | None) -> Config:
        """The config of the model that training ended with."""
        scores = {
            "valid_nll": None if nll is None or math.isnan(nll) else nll,
            "epochs": len(trainer.state.history),
            "best_epoch": trainer.best_epoch,
            "parameters": sum(weight.numel() for weight in trainer.network.state_dict().values()),
            "seconds": round(trainer.state.seconds, 3),
        }
        return self.model_copy(update={"scores": scores})


def number_of_masks(family: Connectivities, evaluation_masks: int) -> int | None:
    """The number of masks that a query averages; ``None`` for all of a finite list."""
    return evaluation_masks if family.masks is None and not family.single else None


def number_of_segments(family: Connectivities, segments: int | str) -> int:
    """The number of segments that an ordering is cut into; ``"auto"`` is one for each column if these are few."""
    if segments == "auto":
        return family.columns if family.any_order and family.columns <= MOST_SEGMENTED else 1
    return min(int(segments), family.columns)


def data_digest(*tables: NDArray[Any] | None) -> str:
    """A fingerprint of the rows, so that a run is only resumed on the data it was started on."""
    sha = hashlib.sha256()
    for table in tables:
        sha.update(b"none" if table is None else np.ascontiguousarray(table, dtype="<f8").tobytes())
    return sha.hexdigest()


def new_config(
    parameters: Mapping[str, Any], seed: int, schema: Schema, container: str, data: Data, target: str | None = None
) -> Config:
    """A config with the digest of its connectivities; a network too large for any machine is refused first."""
    check_sizes(parameters, len(schema.fields))
    draft = Config(
        made=__version__,
        seed=seed,
        parameters=dict(parameters),
        columns=[field.to_json() for field in schema.fields],
        named=schema.named,
        dropped=schema.dropped,
        container=container,
        target=target,
        digest="",
        data=data,
    )
    return draft.model_copy(update={"digest": draft.connectivities.digest()})
