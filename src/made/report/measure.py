"""Measure how well a model describes the rows of a table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from made._version import __version__
from made.columns.bins import common
from made.errors import UnseenWarning
from made.model.model import Model
from made.queries.likelihood import mean_and_interval
from made.report import column, dependence
from made.report.odd import oddest
from made.report.report import Likelihood, Report, Training
from made.report.rows import arrow, infinite, is_date, numbers, take, with_missing
from made.tables.field import Field

__all__ = ["MOST_ROWS", "MOST_SAMPLES", "measure"]

Numbers: TypeAlias = NDArray[np.float64]

MOST_ROWS = 20_000
MOST_SAMPLES = 10_000


def measure(
    model: Model,
    rows: Any,
    *,
    samples: int | None = None,
    most_rows: int = MOST_ROWS,
    top: int = 10,
    seed: int | None = None,
    name: str = "model",
    data: str = "rows",
) -> Report:
    """A report of a model on rows with its columns.

    Arguments:
        model: a fitted model.
        rows: a data frame or an array.
        samples: number of samples to draw; default: as many as rows, at most 10,000.
        most_rows: number of rows to use; of a larger table, a random subset.
        top: number of odd rows to find.
        seed: of all random draws; default: that of the model.
        name, data: names of the model and of the rows.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWarning)  # a note of the report says so
        return _measure(model, rows, samples, most_rows, top, seed, name, data)


def _measure(
    model: Model, given: Any, samples: int | None, most_rows: int, top: int, seed: int | None, name: str, data: str
) -> Report:
    schema = model.schema
    rows, notes = arrow(given, schema.names, schema.named), []
    seed = model.config.seed if seed is None else seed
    random, total = np.random.default_rng(seed), rows.num_rows
    places = np.arange(total)
    if total > most_rows:
        places = np.sort(random.permutation(total)[:most_rows])
        rows = take(rows, places)
        notes.append(f"This report is based on {most_rows:,} rows, drawn at random from {total:,}.")
    count = min(len(places), MOST_SAMPLES) if samples is None else samples
    sampled = arrow(model.sample(count, random_state=seed), schema.names, schema.named)
    if (wrong := infinite(sampled)).any():
        sampled = with_missing(sampled, wrong)
        notes.append(f"{wrong.sum():,} sampled values overflow a float, and are left out.")
    real_codes, sampled_codes = model.codes(rows), model.codes(sampled)
    if unseen := _unseen(schema.fields, real_codes):
        notes.append(f"The rows have {UnseenWarning(unseen)}")
    columns, binned = [], []
    for d, field in enumerate(schema.fields):
        listed = field.listed
        pair = _values(rows, real_codes, d, field), _values(sampled, sampled_codes, d, field)
        dates = any(is_date(each.schema.field(d).type) for each in (rows, sampled)) and not listed
        labels = _labels(field, pair) if listed else None
        columns.append(column.compare(field.name, field.column, *pair, labels=labels, dates=dates, random=random))
        binned.append(dependence.binned(*pair, discrete=listed))
    if empty := [each.name for each in columns if each.distance is None]:
        shown = ", ".join(empty[:10]) + (", ..." if len(empty) > 10 else "")
        notes.append(f"No value is observed of {shown}: only samples are shown.")
    log_prob = model.score_samples(rows).astype(np.float64)
    coded, sampled_coded = (np.stack(each, axis=1) for each in zip(*binned, strict=True))
    return Report(
        made=__version__,
        model=name,
        data=data,
        seed=seed,
        rows=len(places),
        rows_in_data=total,
        samples=count,
        notes=tuple(notes),
        columns=tuple(columns),
        dependence=dependence.compare(schema.names, coded, sampled_coded),
        likelihood=_likelihood(model, log_prob, np.isnan(real_codes), sampled),
        training=_training(model),
        odd=oddest(model, rows, log_prob, places, top, random),
    )


def _values(rows: pa.Table, coded: Numbers, d: int, field: Field) -> Numbers:
    """The codes of a column with a list of values, the numbers of any other."""
    if field.listed:
        return field.places(coded[:, d])
    if np.isnan(coded[:, d]).all():
        return coded[:, d]
    return np.where(np.isnan(coded[:, d]), np.nan, numbers(rows.column(d)))


def _unseen(fields: Sequence[Field], coded: Numbers) -> dict[str, int]:
    """The number of values that were not in the training rows, by column."""
    counts = {field.name: int(field.foreign(coded[:, d], coded[:, d]).sum()) for d, field in enumerate(fields)}
    return {name: count for name, count in counts.items() if count}


def _labels(field: Field, pair: tuple[Numbers, Numbers]) -> tuple[Any, ...]:
    """The values that codes stand for, with one more label for values that were not in the training rows."""
    labels = tuple("missing" if label is None else label for label in field.labels())
    unseen = any((values == len(labels)).any() for values in pair)
    return (*labels, "other values") if unseen else labels


def _likelihood(model: Model, log_prob: Numbers, missing: NDArray[np.bool_], sampled: pa.Table) -> Likelihood:
    if missing.any():
        sampled = with_missing(sampled, missing[np.arange(sampled.num_rows) % len(missing)])
    sampled_log_prob = model.score_samples(sampled).astype(np.float64)
    nll, half = mean_and_interval(-torch.from_numpy(log_prob))
    sampled_nll, sampled_half = mean_and_interval(-torch.from_numpy(sampled_log_prob))
    return Likelihood(nll, half, sampled_nll, sampled_half, common(log_prob, sampled_log_prob))


def _training(model: Model) -> Training:
    config = model.config
    best = config.scores.get("best_epoch")
    return Training(
        rows=config.data.rows,
        valid_rows=config.data.valid_rows,
        epochs=tuple((each.number, each.train_nll, each.valid_nll) for each in model.history),
        best_epoch=None if best is None else int(best),
        valid_nll=config.scores.get("valid_nll"),
        finished=model.finished,
        parameters=sum(weight.numel() for weight in model.network.state_dict().values()),
        masks=len(model.masks),
        settings=dict(config.parameters),
    )
