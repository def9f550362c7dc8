"""Measure how well a model describes the rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from made._version import __version__
from made.columns.bins import Numbers, common
from made.display import listed
from made.errors import UnseenWarning
from made.estimator import Fitted, model_of
from made.model.model import Model
from made.queries.likelihood import mean_and_interval
from made.report import column, dependence
from made.report.kinds import kind_warnings
from made.report.odd import oddest
from made.report.privacy import privacy
from made.report.questions import ask
from made.report.report import LikelihoodComparison, Report, Training
from made.report.rows import arrow, infinite, with_missing
from made.tables.field import Field
from made.tables.table import Table

MOST_ROWS = 20_000
MOST_SAMPLES = 10_000


@UnseenWarning.ignored()
def measure(
    model: Fitted,
    rows: Any,
    *,
    held_out: Any = None,
    samples: int | None = None,
    most_rows: int = MOST_ROWS,
    top: int = 10,
    seed: int | None = None,
    name: str = "model",
    data: str = "rows",
) -> Report:
    """A report of a model on rows with its columns.

    Arguments:
        model: a model, a fitted estimator, or the folder of a model.
        rows: a data frame or an array.
        held_out: rows of the same origin that the model was not fitted on, while it was on ``rows``; with them, the
            privacy of samples is measured.
        samples: number of samples to draw; default: as many as rows, at most 10,000.
        most_rows: number of rows to use; of a larger table, a random subset.
        top: number of odd rows to find.
        seed: of all random draws; default: the model's seed.
        name, data: names of the model and of the rows.
    """
    model = model_of(model)
    schema, seed = model.schema, model.config.seed if seed is None else seed
    table, notes = arrow(rows, schema.names, schema.named), []
    random, total = np.random.default_rng(seed), table.num_rows
    places = np.arange(total)
    if total > most_rows:
        places = np.sort(random.permutation(total)[:most_rows])
        table = table.take(places)
        notes.append(f"This report is based on {most_rows:,} rows, drawn at random from {total:,}.")
    count = min(len(places), MOST_SAMPLES) if samples is None else samples
    sampled = arrow(model.sample(count, random_state=seed), schema.names, schema.named)
    if (wrong := infinite(sampled)).any():
        sampled = with_missing(sampled, wrong)
        notes.append(f"{wrong.sum():,} sampled values overflow a float, and are left out.")
    tables = model.table(table), model.table(sampled)
    real_codes, sampled_codes = map(model.codes, tables)
    columns, binned, kinds, unseen = [], [], list[str](), dict[str, int]()
    for d, field in enumerate(schema.fields):
        if foreign := int(field.foreign(real_codes[:, d], real_codes[:, d]).sum()):
            unseen[field.name] = foreign
        has_list = field.listed
        pair = _values(tables[0], real_codes, d, field), _values(tables[1], sampled_codes, d, field)
        dates = field.temporal is not None and not has_list
        labels = _labels(field, pair) if has_list else None
        columns.append(column.compare(field.name, field.column, *pair, labels=labels, dates=dates, random=random))
        binned.append(dependence.binned(*pair, discrete=has_list))
        kinds += kind_warnings(field, real_codes[:, d], *pair)
    if unseen:
        notes.append(f"The rows have {UnseenWarning(unseen)}")
    if empty := [each.name for each in columns if each.distance is None]:
        notes.append(f"No value is observed of {listed(empty)}: only samples are shown.")
    log_prob = model.score_samples(table).astype(np.float64)
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
        odd=oddest(model, table, log_prob, places, top, random),
        questions=ask(model, real_codes),
        kinds=tuple(kinds),
        privacy=None if held_out is None else privacy(model, rows, held_out, seed=seed),
    )


def _values(table: Table, coded: Numbers, d: int, field: Field) -> Numbers:
    """The codes of a column with a list of values, the numbers of any other."""
    if field.listed:
        return field.places(coded[:, d])
    return field.in_own_terms(table.columns[d], table.dtypes[d], table.label(d))[0].astype(np.float64)


def _labels(field: Field, pair: tuple[Numbers, Numbers]) -> tuple[Any, ...]:
    """The values that codes stand for, with one more label for values that were not in the training rows."""
    labels = tuple("missing" if label is None else label for label in field.labels())
    unseen = any((values == len(labels)).any() for values in pair)
    return (*labels, "other values") if unseen else labels


def _likelihood(model: Model, log_prob: Numbers, missing: NDArray[np.bool_], sampled: pa.Table) -> LikelihoodComparison:
    if missing.any():
        sampled = with_missing(sampled, missing[np.arange(sampled.num_rows) % len(missing)])
    sampled_log_prob = model.score_samples(sampled).astype(np.float64)
    nll, half = mean_and_interval(-torch.from_numpy(log_prob))
    sampled_nll, sampled_half = mean_and_interval(-torch.from_numpy(sampled_log_prob))
    return LikelihoodComparison(nll, half, sampled_nll, sampled_half, common(log_prob, sampled_log_prob))


def _training(model: Model) -> Training:
    data, scores, best = model.config.data, model.config.scores, model.config.scores.get("best_epoch")
    return Training(
        rows=data.rows,
        valid_rows=data.valid_rows,
        epochs=tuple((each.number, each.train_nll, each.valid_nll) for each in model.history),
        best_epoch=None if best is None else int(best),
        valid_nll=scores.get("valid_nll"),
        finished=model.finished,
        parameters=sum(weight.numel() for weight in model.network.state_dict().values()),
        masks=len(model.masks),
        settings=dict(model.config.parameters),
    )
