"""From a table and parameters to a run of training: schema, codes, validation rows, config, network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from made.columns.base import Column
from made.columns.group import Columns
from made.columns.onehot import Exclusive
from made.errors import DataError, ModelError, ParameterError, QuestionError
from made.hints import argument
from made.model.config import (
    Config,
    Data,
    learning_rate,
    new_config,
    number_of_epochs,
    number_of_segments,
    number_of_whole_row_masks,
    weight_decay,
)
from made.model.encode import AnyTable
from made.model.fit_data import FitData
from made.model.folder import is_begun, real_path
from made.model.memory_budget import check_memory
from made.model.model import Model
from made.model.run import Run, check_same, longer
from made.network.limits import has_direct
from made.parameters import PARAMETERS
from made.queries.evidence import Evidence
from made.tables.schema import Schema
from made.tables.table import Table
from made.training.config import TrainingConfig
from made.training.order import epoch_rows, some_rows
from made.training.trainer import Trainer
from made.training.weights import RowWeights
from made.training.workers import ALONE, Workers

WHOLE_ROWS = 0.5  # the share of updates
CUT_ROWS = 2**15  # rows in which cuts are looked for
MOST_GROUPED = 2**12  # columns among which exclusive groups are looked for, by counts of all pairs
LEAST_SAVED = 0.1  # of the positions in an ordering, by groups that are worth it


def prepare(
    table: AnyTable,
    valid_table: AnyTable | None,
    parameters: Mapping[str, Any],
    *,
    seed: int | None = None,
    target: str | None = None,
    folder: Path | None = None,
    overwrite: bool = False,
    weights: NDArray[np.float64] | None = None,
    workers: Workers = ALONE,
    verbose: bool = False,
) -> Run:
    """A run of training that is ready to go.

    Arguments:
        table: the training rows, in memory or in files.
        valid_table: the validation rows. Default: a random ``validation_fraction`` of the training rows.
        parameters: the parameters of :class:`made.MADE`.
        seed: the seed. Default: that of the run in the folder, otherwise a random one.
        target: the name of the column to predict.
        folder: a folder for checkpoints; a run that it holds is resumed, with the same rows and parameters.
        overwrite: start anew, even if the folder holds a run or a model.
        weights: how often each training row counts; none is 0.
        workers: the processes that train together; the first one writes to its folder, all others only read theirs.
        verbose: show the progress of reading files.
    """
    resumed = folder is not None and not overwrite and is_begun(folder)
    before = Model.load(folder, to_train=True) if folder is not None and resumed else None
    if before is not None and before.config.view is not None:
        raise QuestionError(f"{folder} holds a view of a model, which cannot be trained: choose another folder.")
    if seed is None:
        seed = int(np.random.randint(2**31 - 1)) if before is None else before.config.seed  # noqa: NPY002
    place = None if folder is None or workers.rank else real_path(folder)
    fit_data = FitData(table, valid_table, parameters, seed, weights, place, verbose)
    try:
        return _run(fit_data, target, folder, before, workers)
    except BaseException:
        fit_data.close()
        raise


def _run(fit_data: FitData, target: str | None, folder: Path | None, before: Model | None, workers: Workers) -> Run:
    parameters, seed = fit_data.parameters, fit_data.seed
    often = None if fit_data.weights is None else RowWeights(fit_data.weights)
    order = None if fit_data.valid_weights is None else RowWeights(fit_data.valid_weights).order(0, seed)
    rows = len(fit_data.encoded.train) if often is None else often.rows
    valid = _in_order(fit_data.encoded.valid, order)
    data = Data(rows=rows, valid_rows=0 if valid is None else len(valid), sha256=fit_data.encoded.sha256)
    schema = fit_data.schema
    if before is not None and before.config.data == data:
        schema = before.schema  # a later version may infer more from the same values
        if schema != fit_data.schema:
            fit_data.encode(schema)
            valid = _in_order(fit_data.encoded.valid, order)
    else:
        train = fit_data.encoded.train if often is None else _in_order(fit_data.encoded.train, often.order(0, seed))
        some = train[some_rows(len(train), CUT_ROWS)]
        schema = schema.with_cuts(some.values, some.observed)
        if parameters["standardized"]:
            schema = schema.standardized(partial(_codes, train))
    try:
        exclusive = _exclusive(parameters, schema.columns, fit_data.encoded.train)
        positions = len(schema.names) if exclusive is None else len(exclusive["sizes"])
        stored = _stored(parameters, seed, schema, rows, positions)
        config = new_config(stored, seed, schema, _container(fit_data.template), data, target, exclusive)
    except ValueError as error:
        raise ParameterError(str(error)) from None
    if folder is not None and before is not None:
        check_same(before.config, config, folder, finished=before.finished)
        if before.finished and not (longer(config.parameters, before.config.parameters) and before.state is not None):
            return Run(None, config, fit_data, folder, replace(before, template=fit_data.template))
    check_memory(config, rows_in_memory=not fit_data.on_disk)
    trainer = _trainer(config, fit_data.encoded.train, valid, before, folder, often, workers)
    return Run(trainer, config, fit_data, folder, before)


def _in_order(rows: Evidence | None, order: NDArray[np.intp] | None) -> Any:
    return rows if rows is None or order is None else rows[torch.from_numpy(order)]


def _codes(rows: Evidence, d: int) -> NDArray[np.float64]:
    """The codes of a column that has a list of values."""
    codes = rows.values[:, d].double()
    return (codes if rows.observed is None else codes.masked_fill(~rows.observed[:, d], torch.nan)).numpy()


def _exclusive(parameters: Mapping[str, Any], columns: Columns, rows: Evidence) -> dict[str, Any] | None:
    """The groups of exclusive columns, and the number of rows that they were found in; ``None`` for no groups."""
    wanted = parameters["exclusive"] == "auto" and _is_any_order(parameters)
    if not wanted or not columns.all_binary or len(columns) > MOST_GROUPED:
        return None
    some, together = rows[some_rows(len(rows))], np.zeros((len(columns), len(columns)))
    for _, part in some.split(CUT_ROWS):
        ones = ((part.values == 1) & part.is_observed).float()
        together += (ones.t() @ ones).double().numpy()
    sizes = Exclusive.of_counts(together, len(some)).sizes
    return {"sizes": list(sizes), "rows": len(some)} if len(sizes) <= (1 - LEAST_SAVED) * len(columns) else None


def _is_any_order(parameters: Mapping[str, Any]) -> bool:
    return parameters["masks"] == "unlimited" and parameters["resample"] in ("both", "ordering")


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
        # Folders of earlier versions have "auto" for a thirtieth of the rows, and for this decay.
        batch_size=int(np.clip(rows // 30, 32, 500)) if batch == "auto" else batch,
        weight_decay=min(0.3, 300 / rows) if decay == "auto" else float(decay),
        segments=number_of_segments(config.connectivities, config.parameters["segments"]),
    )


def _trainer(
    config: Config,
    rows: Evidence,
    valid: Evidence | None,
    before: Model | None,
    folder: Path | None,
    weights: RowWeights | None,
    workers: Workers,
) -> Trainer:
    state = None if before is None else before.state
    network = config.network().to(config.parameters["device"])
    try:
        rows, valid = rows.to(network.c.device), None if valid is None else valid.to(network.c.device)
        if config.parameters["bias"] == "independent" and state is None:
            counted = rows if weights is None else rows[torch.from_numpy(weights.order(0, config.seed))]
            counted = counted[some_rows(len(counted))]
            network.start_independent(counted.values, counted.observed)
        return Trainer(network, rows, valid, training_config(config), state, weights, workers)
    except DataError:
        raise
    except (ValueError, RuntimeError, TypeError) as error:
        if state is None:
            raise ParameterError(str(error), argument=getattr(error, "argument", None)) from None
        raise ModelError(f"{folder}: training cannot be resumed from its checkpoint: {error}") from None


def _stored(parameters: Mapping[str, Any], seed: int, schema: Schema, rows: int, positions: int) -> dict[str, Any]:
    """The parameters as config.json has them, without "auto" where the columns or the rows decide.

    ``positions`` are those of an ordering, one for each column or group. JSON has no numbers as keys, so columns are
    given by name.
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
        stored["max_epochs"] = number_of_epochs(rows, positions)
    if parameters["batch_size"] == "auto":
        stored["batch_size"] = int(np.clip(rows // 40, 32, 500))
    if parameters["weight_decay"] == "auto":
        direct = schema.columns.inputs * schema.columns.outputs
        stored["weight_decay"] = weight_decay(rows, positions, direct)
    if parameters["learning_rate"] == "auto":
        updates = stored["max_epochs"] * math.ceil(epoch_rows(rows) / stored["batch_size"])
        stored["learning_rate"] = (
            learning_rate(rows, positions, updates) if parameters["optimizer"] == "adamw" else None
        )
    any_order = _is_any_order(parameters)
    if parameters["whole_rows"] == "auto":
        stored["whole_rows"] = WHOLE_ROWS if any_order else 0.0
    masks = number_of_whole_row_masks(rows, positions, parameters["evaluation_masks"]) if any_order else 1
    few = any_order and masks == 1 < parameters["evaluation_masks"]
    for name, chosen in (
        ("whole_row_masks", masks),
        ("ordering", "natural" if few else "random"),
        ("dropout", 0.3 if few else 0.0),
    ):
        stored[name] = chosen if parameters[name] == "auto" else stored[name]
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
