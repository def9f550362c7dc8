"""Reading a model folder, and the checkpoint of an unfinished run; tensors are safetensors, which cannot run code."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from made.errors import ModelError
from made.model.config import Config
from made.model.folder import Content, Folder, commit, is_model, manifest_text
from made.model.manifest import Manifest, parse_object
from made.network.calibration import completed
from made.network.limits import check_sizes
from made.network.masked import Network
from made.queries.missingness import Missingness
from made.training.state import Epoch, State, unpacked

MISSING_VALUES = "missing.safetensors"  # since format 2; a folder may lack it
TRIES = 10  # reads of a model that another process is replacing

# Far above any trained weight; a larger, forged one may overflow, and answers would be NaN.
LARGEST_WEIGHT = 1e10


class Stored(NamedTuple):
    """The content of a model folder; the network has its best weights, and ``state`` resumes training."""

    config: Config
    network: Network
    history: list[Epoch]
    finished: bool
    state: State | None
    missingness: Missingness | None = None


def read_folder(path: str | PathLike[str], *, to_train: bool = True) -> Stored:
    """Read a model folder.

    A model whose training is not finished has the best weights so far. The checkpoint of a finished model, which is
    several times as large, is read only if it is ``to_train``. Everything is checked before it is used, and before
    memory is allocated for it. If another process replaces the model meanwhile, the new one is read.
    """
    for _ in range(TRIES):
        before = manifest_text(path)
        try:
            found = _read_checked(path, to_train)
        except ModelError:
            if manifest_text(path) == before:
                raise
        else:
            if manifest_text(path) == before:
                return found
    raise ModelError(f"{path} keeps changing: wait for the process that writes to it.")


def _read_checked(path: str | PathLike[str], to_train: bool) -> Stored:
    try:
        return _read(Folder.open(path, to_train=to_train), to_train)
    except ModelError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError, OSError) as error:
        raise ModelError(f"{path} is not a valid model: {error}") from None


def _read(folder: Folder, to_train: bool) -> Stored:
    state: State | None = None
    missingness: Missingness | None = None
    if folder.checkpoint is not None and (to_train or not folder.finished):
        tensors, facts = read_tensors(folder.checkpoint)
        if facts is None or facts.keys() != {"config", "state"}:
            raise ModelError(f"{folder.checkpoint} is not a checkpoint of made.")
        state = State.of(facts["state"], tensors)
    if state is None or folder.finished:
        config = _read_config(folder.json("config.json"))
        shapes = config.shapes()
        if "calibration" in shapes and folder.version < 6:
            shapes["calibration"] = (2, len(config.columns))
        tensors, _ = read_tensors(folder.file("model.safetensors"), shapes)
        if "calibration" in shapes:
            tensors["calibration"] = completed(tensors["calibration"])
        network = config.network()
        network.load_state_dict(tensors)
        history = _read_history(folder.file("history.jsonl"))
        if MISSING_VALUES in folder.files:
            missingness = Missingness.of(read_tensors(folder.file(MISSING_VALUES))[0], network.columns)
    else:
        config = _read_config((facts or {})["config"])
        network, history = _network_of(config, state), state.history
    if any(tensor.dtype != network.c.dtype for tensor in tensors.values() if tensor.ndim):
        raise ModelError(f"{folder.path} has weights of another dtype than its config.")
    for name, weights in network.state_dict().items():
        if weights.is_floating_point() and not bool((weights.abs() <= LARGEST_WEIGHT).all()):
            raise ModelError(f"{folder.path}: {name} has weights above {LARGEST_WEIGHT:g}.")
    network.eval()
    config.ensemble(network)  # refuses a number of masks or segments that the network does not support
    if config.view is not None:
        network.columns.check(config.known[None], network.c)
        _ = config.kept  # refuses columns that are given
    return Stored(config, network, history, folder.finished, state, missingness)


def _read_config(content: Any) -> Config:
    config = Config.from_json(content)
    check_sizes(config.parameters, len(config.columns))
    return config


def _network_of(config: Config, state: State) -> Network:
    """The network of an unfinished run, with the best weights so far."""
    label = "best0" if state.finalists else "average" if "average.c" in state.tensors else "weights"
    numbers = sum(tensor.numel() for name, tensor in state.tensors.items() if name.startswith("weights."))
    if sum(math.prod(shape) for shape in config.shapes().values()) > 4 * numbers + 2**20:
        raise ModelError("the checkpoint does not fit its config.")
    network = config.network()
    start, parameters = f"{label}.", dict(network.named_parameters())
    tensors = unpacked(network, state.tensors)
    weights = {name.removeprefix(start): each for name, each in tensors.items() if name.startswith(start)}
    if {name: each.shape for name, each in weights.items()} != {name: each.shape for name, each in parameters.items()}:
        raise ModelError("the checkpoint does not fit its config.")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
    return network


def history_lines(history: Sequence[Epoch]) -> bytes:
    """A line of JSON for each epoch, with null for NaN."""
    lines = []
    for epoch in history:
        facts = {"epoch" if name == "number" else name: value for name, value in dataclasses.asdict(epoch).items()}
        lines.append(json.dumps({name: None if value != value else value for name, value in facts.items()}) + "\n")
    return "".join(lines).encode()


def _read_history(file: Path) -> list[Epoch]:
    history = []
    for line in file.read_text().splitlines():
        facts = parse_object(line, str(file))
        facts["number"] = facts.pop("epoch", None)
        history.append(Epoch.of({name: math.nan if value is None else value for name, value in facts.items()}))
    return history


def checkpoint_name(state: State) -> str:
    """The name of the checkpoint of a state."""
    return f"checkpoint-{state.update}.safetensors"


def checkpoint_content(config: Config, state: State) -> tuple[str, Content]:
    """Name and content of the checkpoint of a state."""
    facts = {"config": config.to_json(), "state": state.facts()}
    return checkpoint_name(state), tensors_file(state.tensors, facts)


def checkpoint(path: Path, config: Config, state: State) -> None:
    """Write a checkpoint and the history, in place of all other files of the folder."""
    name, content = checkpoint_content(config, state)
    files: dict[str, Content] = {"history.jsonl": history_lines(state.history)}
    if is_model(path) and name in Manifest.read(path).files:
        commit(path, files, finished=False, keep=[name])
    else:
        commit(path, {name: content} | files, finished=False)


def tensors_file(tensors: Mapping[str, Tensor], facts: Mapping[str, Any] | None = None) -> Content:
    """The content of a safetensors file with tensors and JSON metadata; deterministic."""
    metadata = {"format": "pt"} if facts is None else {"facts": json.dumps(facts)}

    def write(path: Path) -> None:
        path.touch()
        mode = path.stat().st_mode
        try:
            safetensors.torch.save_file(
                {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path, metadata
            )
        except safetensors.SafetensorError as error:
            raise OSError(f"{path.parents[1]} cannot be written to: {error}.") from None  # a staged file
        path.chmod(mode)  # as other new files have it; safetensors restricts its own

    return write


def read_tensors(
    file: Path, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
    """The tensors and the metadata of a file. Names and ``shapes`` are compared before a tensor is loaded.

    Tensors must be float32 or float64, and finite.
    """
    try:
        with safetensors.safe_open(file, framework="pt") as reader:
            names = list(reader.keys())
            if shapes is not None:
                found = {name: tuple(reader.get_slice(name).get_shape()) for name in names}
                if found != dict(shapes):
                    wrong = sorted(name for name in found.keys() | shapes if found.get(name) != shapes.get(name))
                    raise ModelError(f"{file} does not fit its config.json: {', '.join(wrong)}.")
            facts = (reader.metadata() or {}).get("facts")
            tensors = {name: reader.get_tensor(name) for name in names}
    except safetensors.SafetensorError as error:
        raise ModelError(f"{file} cannot be read: {error}.") from None
    for name, tensor in tensors.items():
        if tensor.dtype not in (torch.float32, torch.float64) or not bool(tensor.isfinite().all()):
            raise ModelError(f"{file}: {name} must be finite, and float32 or float64.")
    return tensors, None if facts is None else parse_object(facts, str(file))
