"""From a table and parameters to a run of training: schema, codes, validation rows, config, network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from made.columns.base import Column
from made.errors import DataError, ModelError, ParameterError, QuestionError
from made.hints import argument, hint
from made.model.config import Config, Data, data_digest, learning_rate, new_config, number_of_epochs, number_of_segments
from made.model.folder import is_begun
from made.model.memory_budget import check_memory
from made.model.model import Model
from made.model.run import Run, check_same, longer
from made.network.limits import has_direct
from made.parameters import PARAMETERS
from made.queries.evidence import Evidence
from made.tables.schema import Schema
from made.tables.table import Table
from made.training.config import TrainingConfig
from made.training.trainer import Trainer
from made.training.weights import RowWeights
from made.training.workers import ALONE, Workers

__all__ = ["check_parameters", "prepare", "training_config"]

WHOLE_ROWS = 0.5  # the share of updates
SPLIT = 4  # the stream of random numbers that draws the validation rows


def prepare(
    table: Table,
    valid_table: Table | None,
    parameters: Mapping[str, Any],
    *,
    seed: int | None = None,
    target: str | None = None,
    folder: Path | None = None,
    overwrite: bool = False,
    weights: NDArray[np.float64] | None = None,
    workers: Workers = ALONE,
) -> Run:
    """A run of training that is ready to go.

    Arguments:
        table: the training rows.
        valid_table: the validation rows. Default: a random ``validation_fraction`` of the training rows.
        parameters: the parameters of :class:`made.MADE`.
        seed: the seed. Default: that of the run in the folder, otherwise a random one.
        target: the name of the column to predict.
        folder: a folder for checkpoints; a run that it holds is resumed, with the same rows and parameters.
        overwrite: start anew, even if the folder holds a run or a model.
        weights: how often each training row counts; none is 0.
        workers: the processes that train together; the first one writes to its folder, all others only read theirs.
    """
    counted = table if weights is None else table.repeated(RowWeights(weights).counts)
    together = counted if valid_table is None else counted.with_rows_of(valid_table)
    options = {name: parameters[name] for name in ("missing", "unseen", "extrapolate")}
    schema = Schema.infer(together, parameters["columns"], **options)
    codes = schema.encode(table, training=True)
    valid = None if valid_table is None else schema.encode(valid_table, training=True)
    resumed = folder is not None and not overwrite and is_begun(folder)
    before = Model.load(folder, to_train=True) if folder is not None and resumed else None
    if before is not None and before.config.view is not None:
        raise QuestionError(f"{folder} holds a view of a model, which cannot be trained: choose another folder.")
    if seed is None:
        seed = int(np.random.randint(2**31 - 1)) if before is None else before.config.seed  # noqa: NPY002
    held_out = 0 if valid is not None else _held_out(len(codes), parameters)
    order = _order(len(codes), seed)
    train, apart = np.sort(order[held_out:]), np.sort(order[:held_out])
    if held_out:
        valid = codes[apart]
    known = [codes[train], valid] if weights is None else [codes[train], valid, weights[train, None]]
    digest, codes = data_digest(*known), codes[train]
    if weights is not None and valid is not None and held_out:
        valid = valid[RowWeights(weights[apart]).order(0, seed)]
    often = None if weights is None else RowWeights(weights[train])
    rows = len(codes) if often is None else often.rows
    data = Data(rows=rows, valid_rows=0 if valid is None else len(valid), sha256=digest)
    if before is not None and before.config.data == data:
        schema = before.schema  # a later version may infer more from the same values
    elif parameters["standardized"]:
        schema = schema.standardized(codes if often is None else codes[often.order(0, seed)])
    try:
        stored = _stored(parameters, seed, schema, rows)
        config = new_config(stored, seed, schema, _container(table), data, target)
    except ValueError as error:
        raise ParameterError(str(error)) from None
    template = table.template()
    if folder is not None and before is not None:
        check_same(before.config, config, folder, finished=before.finished)
        if before.finished and not (longer(config.parameters, before.config.parameters) and before.state is not None):
            return Run(None, config, template, folder, replace(before, template=template))
    check_memory(config)
    trainer = _trainer(config, codes, valid, parameters, before, folder, often, workers)
    return Run(trainer, config, template, folder, before)


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter whose value it cannot have."""
    for name, parameter in PARAMETERS.items():
        if problem := parameter.problem(parameters[name]):
            raise ParameterError(f"{argument(name)} {problem}", argument=name)
    try:
        torch.empty(0, device=parameters["device"])
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = f"{parameters['device']!r}: {str(error).splitlines()[0]}"
        raise ParameterError(f"{argument('device')}: {reason}", argument="device") from None


def training_config(config: Config) -> TrainingConfig:
    """The training parameters, with ``"auto"`` replaced by numbers."""
    names = set(TrainingConfig.__dataclass_fields__) - {"seed", "batch_size", "weight_decay", "segments"}
    rows, batch, decay = config.data.rows, config.parameters["batch_size"], config.parameters["weight_decay"]
    return TrainingConfig(
        **{name: config.parameters[name] for name in names},
        seed=config.seed,
        # Folders of earlier versions have "auto" for a thirtieth of the rows.
        batch_size=int(np.clip(rows // 30, 32, 500)) if batch == "auto" else batch,
        weight_decay=min(0.3, 300 / rows) if decay == "auto" else float(decay),
        segments=number_of_segments(config.connectivities, config.parameters["segments"]),
    )


def _trainer(
    config: Config,
    codes: NDArray[np.float64],
    valid: NDArray[np.float64] | None,
    parameters: Mapping[str, Any],
    before: Model | None,
    folder: Path | None,
    weights: RowWeights | None,
    workers: Workers,
) -> Trainer:
    state = None if before is None else before.state
    network = config.network().to(parameters["device"])
    try:
        rows = Evidence.of(network, codes)
        if parameters["bias"] == "independent" and state is None:
            counted = rows if weights is None else rows[torch.from_numpy(weights.order(0, config.seed))]
            network.start_independent(counted.values, counted.observed)
        return Trainer(network, rows, valid, training_config(config), state, weights, workers)
    except DataError:
        raise
    except (ValueError, RuntimeError, TypeError) as error:
        if state is None:
            raise ParameterError(str(error), argument=getattr(error, "argument", None)) from None
        raise ModelError(f"{folder}: training cannot be resumed from its checkpoint: {error}") from None


def _held_out(rows: int, parameters: Mapping[str, Any]) -> int:
    """The number of rows for validation, at least one unless there should be none."""
    fraction: float = parameters["validation_fraction"]
    if fraction == 0 or (parameters["max_epochs"] == 0 and rows < 2):
        return 0
    if rows < 2:
        raise DataError(
            f"n_samples={rows}, but at least 2 rows are needed, one of them for validation; or use "
            f"{hint(validation_fraction=0)}."
        )
    return min(max(1, round(fraction * rows)), rows - 1)


def _order(rows: int, seed: int) -> NDArray[np.intp]:
    """The rows in a random order, of which the first are for validation."""
    return np.argsort(np.random.Philox(key=seed, counter=[0, 0, 0, SPLIT]).random_raw(rows), kind="stable")


def _stored(parameters: Mapping[str, Any], seed: int, schema: Schema, rows: int) -> dict[str, Any]:
    """The parameters as config.json has them, without "auto" where the columns or the rows decide.

    JSON has no numbers as keys, so columns are given by name.
    """
    stored = {name: _as_json(value) for name, value in parameters.items()}
    names = {place: name for name, place in schema.dropped.items()}
    rest = (d for d in range(len(schema.names) + len(names)) if d not in names)
    names |= dict(zip(rest, schema.names, strict=True))
    for name in ("columns", "missing"):
        if isinstance(parameters[name], Mapping):
            chosen = parameters[name].items()
            stored[name] = _as_json({key if isinstance(key, str) else names[key]: each for key, each in chosen})
    if parameters["direct"] == "auto":
        stored["direct"] = has_direct(schema.columns.inputs, schema.columns.outputs)
    if parameters["max_epochs"] == "auto":
        stored["max_epochs"] = number_of_epochs(rows)
    if parameters["batch_size"] == "auto":
        stored["batch_size"] = int(np.clip(rows // 40, 32, 500))
    if parameters["learning_rate"] == "auto":
        updates = stored["max_epochs"] * math.ceil(rows / stored["batch_size"])
        stored["learning_rate"] = learning_rate(rows, updates) if parameters["optimizer"] == "adamw" else None
    any_order = parameters["masks"] == "unlimited" and parameters["resample"] in ("both", "ordering")
    if parameters["whole_rows"] == "auto":
        stored["whole_rows"] = WHOLE_ROWS if any_order else 0.0
    stored["calibrate"] = parameters["calibrate"] and any_order
    return stored | {"random_state": seed}


def _container(table: Table) -> str:
    return table.given.implementation.value if table.container == "frame" else table.container


def _as_json(value: Any) -> Any:
    if isinstance(value, Column):
        return {"kind": value.kind} | value.to_json()
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_as_json(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)
