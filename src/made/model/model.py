"""A model: what its columns are, the network, how it came to be; and how it is kept in a folder and found again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from made._version import __version__
from made.errors import ModelError
from made.model.card import card
from made.model.folder import Content, Folder, commit, lists, manifest_text
from made.model.manifest import parse_object
from made.model.tensors import read_tensors, tensors_file
from made.network.connectivity import Connectivities
from made.network.limits import check_sizes
from made.network.masked import Network
from made.parameters import LATER
from made.tables.field import Field as ColumnField
from made.tables.schema import Schema
from made.training.state import Epoch, State
from made.training.trainer import Trainer

__all__ = ["Config", "Data", "Model", "begin_run", "checkpoint", "checkpoint_content", "checkpoint_name", "data_digest"]
__all__ += ["new_config", "open_model", "with_scores"]


TRIES = 10  # to read a model that another process is replacing

# Far above what is ever trained; a forged weight that is larger may overflow, and answers then are NaN.
LARGEST_WEIGHT = 1e10


class Data(BaseModel):
    """How many rows a model was trained on and chosen by, and their fingerprint."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rows: int = Field(ge=1)
    valid_rows: int = Field(ge=0)
    sha256: str


class Config(BaseModel):
    """What config.json says. It comes from a file, so nothing in it is believed before it is checked."""

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

    def schema_(self) -> Schema:
        """The columns of the person's table."""
        return self._schema

    @cached_property
    def _schema(self) -> Schema:
        return Schema([ColumnField.from_json(each) for each in self.columns], self.named, self.dropped)

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
        """The network, with the weights that it begins with, and with the connectivities that were trained."""
        parameters, family = self.parameters, self.connectivities()
        if family.digest() != self.digest:
            raise ModelError("the connectivities of this model cannot be made again by this version of made.")
        network = Network(
            self.schema_().coded(signed=parameters["signed"]),
            family,
            activation=parameters["activation"],
            direct=parameters["direct"],
            conditioning=parameters["conditioning"],
            dropout=parameters["dropout"],
            input_dropout=parameters["input_dropout"],
            initialization=parameters["initialization"],
        )
        return network.to(getattr(torch, parameters["dtype"]))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter, known without making any."""
        columns, hidden = self.schema_().columns, list(self.parameters["hidden_sizes"])
        sizes, last = [columns.inputs, *hidden, columns.outputs], len(hidden) + 1
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(1, last + 1):
            matrix, bias = (f"W{layer}", f"b{layer}") if layer < last else ("V", "c")
            shapes |= {matrix: (sizes[layer], sizes[layer - 1]), bias: (sizes[layer],)}
            if self.parameters["conditioning"]:
                shapes[f"U{layer}"] = (sizes[layer], sizes[layer - 1] if layer > 1 else len(columns))
        if self.parameters["direct"] and hidden:
            shapes["A"] = (sizes[-1], sizes[0])
        return shapes


@dataclass
class Model:
    """A model, trained or not.

    Attributes:
        config: what it is.
        schema: its columns.
        network: the network, in its best weights.
        history: the epochs of training.
        finished: whether training came to its end.
    """

    config: Config
    schema: Schema
    network: Network
    history: list[Epoch]
    finished: bool = True

    def files(self) -> dict[str, Content]:
        """The files of its folder."""
        return {
            "config.json": (json.dumps(self.config.model_dump(), indent=2) + "\n").encode(),
            "model.safetensors": tensors_file(self.network.state_dict()),
            "history.jsonl": history_lines(self.history),
            "README.md": card(self.config.model_dump(), self.schema, self.history).encode(),
        }


def open_model(path: str | PathLike[str], *, to_train: bool = True) -> tuple[Model, State | None]:
    """A model from its folder, and the state of its training, if there is one to go on from.

    The state of a finished model, which is several times as large, is left alone unless it is ``to_train``. A model
    whose training is not finished has the best weights so far. Whatever the files say is checked before it is believed,
    and before memory is taken for it. If another process replaces the model meanwhile, the new one is read.
    """
    for _ in range(TRIES):
        before = manifest_text(path)
        try:
            found = _open_checked(path, to_train)
        except ModelError:
            if manifest_text(path) == before:
                raise
        else:
            if manifest_text(path) == before:
                return found
    raise ModelError(f"{path} is written to all the time: wait for the process that does so.")


def _open_checked(path: str | PathLike[str], to_train: bool) -> tuple[Model, State | None]:
    try:
        return _open_model(Folder.open(path, to_train=to_train), to_train)
    except ModelError:
        raise
    except ValidationError as error:
        first = error.errors()[0]
        raise ModelError(f"{path}: its config: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError, OSError) as error:
        raise ModelError(f"{path} is not what it should be: {error}") from None


def _open_model(folder: Folder, to_train: bool) -> tuple[Model, State | None]:
    state: State | None = None
    if folder.checkpoint is not None and (to_train or not folder.finished):
        tensors, facts = read_tensors(folder.checkpoint)
        if facts is None or facts.keys() != {"config", "state"}:
            raise ModelError(f"{folder.checkpoint} is not a checkpoint of made.")
        state = State.of(facts["state"], tensors)
    if state is None or folder.finished:
        config = _read_config(folder.json("config.json"))
        tensors, _ = read_tensors(folder.file("model.safetensors"), config.shapes())
        network = config.network()
        network.load_state_dict(tensors)
        history = _read_history(folder.file("history.jsonl"))
    else:
        config = _read_config((facts or {})["config"])
        network, history = _network_of(config, state), state.history
    if any(tensor.dtype != network.c.dtype for tensor in tensors.values() if tensor.ndim):
        raise ModelError(f"{folder.path} has weights of another precision than its config.")
    for name, weights in network.state_dict().items():
        if weights.is_floating_point() and not bool((weights.abs() <= LARGEST_WEIGHT).all()):
            raise ModelError(f"{folder.path}: {name} has weights above {LARGEST_WEIGHT:g}, which no training gives.")
    network.eval()
    return Model(config, config.schema_(), network, history, folder.finished), state


def _read_config(content: Any) -> Config:
    config = Config.model_validate(content)
    check_sizes(config.parameters, len(config.columns))
    return config


def _network_of(config: Config, state: State) -> Network:
    """The network of an unfinished run, in the best weights so far."""
    label = "best0" if state.finalists else "average" if "average.c" in state.tensors else "weights"
    numbers = sum(tensor.numel() for name, tensor in state.tensors.items() if name.startswith("weights."))
    if sum(math.prod(shape) for shape in config.shapes().values()) > 4 * numbers + 2**20:
        raise ModelError("the checkpoint does not fit its config.")
    network = config.network()
    parameters = dict(network.named_parameters())
    start = f"{label}."
    weights = {name.removeprefix(start): each for name, each in state.tensors.items() if name.startswith(start)}
    if {name: each.shape for name, each in weights.items()} != {name: each.shape for name, each in parameters.items()}:
        raise ModelError("the checkpoint does not fit its config.")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
    return network


def history_lines(history: Sequence[Epoch]) -> bytes:
    """A line of JSON for each epoch."""
    return "".join(history_line(epoch) for epoch in history).encode()


def history_line(epoch: Epoch) -> str:
    """An epoch as a line of JSON; what is not known is null."""
    facts = {"epoch" if name == "number" else name: value for name, value in dataclasses.asdict(epoch).items()}
    return json.dumps({name: None if value != value else value for name, value in facts.items()}) + "\n"


def _read_history(file: Path) -> list[Epoch]:
    history = []
    for line in file.read_text().splitlines():
        facts = parse_object(line, str(file))
        facts["number"] = facts.pop("epoch", None)
        history.append(Epoch.of({name: math.nan if value is None else value for name, value in facts.items()}))
    return history


def checkpoint_name(state: State) -> str:
    """The file of a state: the same update has the same state."""
    return f"checkpoint-{state.update}.safetensors"


def checkpoint_content(config: Config, state: State) -> tuple[str, Content]:
    """The file of a state, by name and content."""
    facts = {"config": config.model_dump(), "state": state.facts()}
    return checkpoint_name(state), tensors_file(state.tensors, facts)


def checkpoint(path: Path, config: Config, state: State) -> None:
    """Make the folder hold this state, with its history, and nothing else that counts."""
    name, content = checkpoint_content(config, state)
    files: dict[str, Content] = {"history.jsonl": history_lines(state.history)}
    if lists(path, name):
        commit(path, files, finished=False, keep=[name])
    else:
        commit(path, {name: content} | files, finished=False)


def begin_run(path: Path, before: Model | None, state: State | None) -> None:
    """Make the folder that of a run, with the state that it resumes from, or with nothing yet."""
    if before is not None and state is not None:
        checkpoint(path, before.config, state)
    else:
        commit(path, {}, finished=False)


def with_scores(config: Config, trainer: Trainer, nll: float | None) -> Config:
    """The config of a trained model."""
    scores = {
        "valid_nll": None if nll is None or math.isnan(nll) else nll,
        "epochs": len(trainer.state.history),
        "best_epoch": trainer.best_epoch,
        "parameters": sum(weight.numel() for weight in trainer.network.state_dict().values()),
        "seconds": round(trainer.state.seconds, 3),
    }
    return config.model_copy(update={"scores": scores})


def data_digest(*tables: NDArray[Any] | None) -> str:
    """A fingerprint of the rows, so that a run goes on only with its own data."""
    sha = hashlib.sha256()
    for table in tables:
        sha.update(b"none" if table is None else np.ascontiguousarray(table, dtype="<f8").tobytes())
    return sha.hexdigest()


def new_config(
    parameters: Mapping[str, Any], seed: int, schema: Schema, container: str, data: Data, target: str | None = None
) -> Config:
    """A config, with the digest of its connectivities; what is too large for any machine is refused before that."""
    check_sizes(parameters, len(schema.fields))
    content: dict[str, Any] = {
        "made": __version__,
        "seed": seed,
        "parameters": dict(parameters),
        "columns": [field.to_json() for field in schema.fields],
        "named": schema.named,
        "dropped": schema.dropped,
        "container": container,
        "target": target,
        "data": data,
    }
    draft = Config(**content, digest="")
    return Config(**content, digest=draft.connectivities().digest())
