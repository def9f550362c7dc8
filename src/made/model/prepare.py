"""From a table and parameters to a run of training: schema, codes, validation rows, config, network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from made.columns.base import Column
from made.errors import DataError, ModelError, ParameterError, QuestionError
from made.hints import argument, hint
from made.model.auto import Layout, automatic, can_select, is_any_order
from made.model.config import Config, Data, new_config, number_of_segments
from made.model.encode import AnyTable
from made.model.fit_data import FitData
from made.model.folder import is_begun, real_path
from made.model.memory_budget import check_memory
from made.model.model import Model
from made.model.run import Run, check_same, longer
from made.parameters import PARAMETERS
from made.queries.evidence import Evidence
from made.tables.schema import Schema
from made.tables.table import Table
from made.training.config import TrainingConfig
from made.training.order import some_rows
from made.training.orders import select_orders
from made.training.trainer import Trainer
from made.training.weights import RowWeights
from made.training.workers import ALONE, Workers

CUT_ROWS = 2**15  # rows in which cuts are looked for


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
    layout = Layout.of(parameters, rows, schema.columns, fit_data.encoded.train)
    if before is not None and before.config.data == data:
        schema = before.schema  # a later version may infer more from the same values
        if schema != fit_data.schema:
            fit_data.encode(schema)
            valid = _in_order(fit_data.encoded.valid, order)
    else:
        train = fit_data.encoded.train if often is None else _in_order(fit_data.encoded.train, often.order(0, seed))
        some = train[some_rows(len(train), CUT_ROWS)]
        schema = schema.with_cuts(some.values, some.observed)
        if parameters["standardized"] or (parameters["signed"] == "auto" and layout.centered):
            schema = schema.with_shares(partial(_codes, train), standardized=parameters["standardized"])
    if parameters["ordering"] == "selected" and not can_select(parameters, layout.positions):
        raise ParameterError(
            "'ordering' can only be 'selected' in a model of unlimited masks, with masks for whole rows "
            f"({hint(whole_rows=0.5)}) and a segment for each column ({hint(segments='auto')}).",
            argument="ordering",
        )
    try:
        stored = _stored(parameters, seed, schema, replace(layout, columns=schema.columns))
        config = new_config(stored, seed, schema, _container(fit_data.template), data, target, layout.exclusive)
    except ValueError as error:
        raise ParameterError(str(error)) from None
    if folder is not None and before is not None:
        config = config.with_orders(before.config.orders)
        check_same(before.config, config, folder, finished=before.finished)
        if before.finished and not (longer(config.parameters, before.config.parameters) and before.state is not None):
            return Run(None, config, fit_data, folder, replace(before, template=fit_data.template))
    check_memory(config, rows_in_memory=not fit_data.on_disk)
    if before is None and config.parameters["ordering"] == "selected":
        train = fit_data.encoded.train
        counted = train if often is None else _in_order(train, often.order(0, seed))
        config = config.with_orders(_select_orders(config, counted, workers))
    trainer = _trainer(config, fit_data.encoded.train, valid, before, folder, often, workers)
    return Run(trainer, config, fit_data, folder, before)


def _select_orders(config: Config, rows: Evidence, workers: Workers) -> list[list[int]] | None:
    """Orderings of half of the masks for whole rows, selected by the first worker; ``None`` in a short run."""
    found: list[list[int]] = []
    with workers.together():
        if workers.rank == 0:
            count = config.whole_row_masks
            # The other half are random: members of a mean should differ.
            found = select_orders(config.network().columns, rows, -(-count // 2), training_config(config))
    return workers.exchange(found)[0] or None


def _in_order(rows: Evidence | None, order: NDArray[np.intp] | None) -> Any:
    return rows if rows is None or order is None else rows[torch.from_numpy(order)]


def _codes(rows: Evidence, d: int) -> NDArray[np.float64]:
    """The codes of a column that has a list of values."""
    codes = rows.values[:, d].double()
    return (codes if rows.observed is None else codes.masked_fill(~rows.observed[:, d], torch.nan)).numpy()


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


def _stored(parameters: Mapping[str, Any], seed: int, schema: Schema, layout: Layout) -> dict[str, Any]:
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
    stored |= automatic(parameters, layout)
    stored["calibrate"] = parameters["calibrate"] and is_any_order(parameters)
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
