"""What a report says: everything that is known of a model beside the rows of a table, and nothing of how it looks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from made._version import __version__
from made.errors import UnseenWarning
from made.report import column, dependence
from made.report.column import Column, Histogram
from made.report.dependence import Dependence
from made.report.odd import OddRow, oddest
from made.report.rows import arrow, codes, infinite, is_date, numbers, take, with_holes
from made.tables.field import Field

if TYPE_CHECKING:
    from made.estimator import MADE

__all__ = ["MOST_ROWS", "MOST_SAMPLES", "Likelihood", "Report", "Training", "measure"]

Numbers: TypeAlias = NDArray[np.float64]

MOST_ROWS = 20_000
MOST_SAMPLES = 10_000


@dataclass(frozen=True)
class Training:
    """How the model came to be.

    Attributes:
        rows, valid_rows: how many it was trained on, and chosen by.
        epochs: the number, training NLL and validation NLL of each.
        best_epoch, valid_nll: of the weights that were kept.
        finished: whether training came to its end.
        parameters: how many numbers the network has.
        masks: how many an answer averages.
        settings: the parameters of the estimator.
    """

    rows: int
    valid_rows: int
    epochs: tuple[tuple[int, float, float], ...]
    best_epoch: int | None
    valid_nll: float | None
    finished: bool
    parameters: int
    masks: int
    settings: dict[str, Any]


@dataclass(frozen=True)
class Likelihood:
    """How likely rows and samples are: negative log-likelihoods in nats, half of their 95 % intervals, and log p.

    A sample has the holes of some row before it is asked about, or the two could not be compared.
    """

    nll: float
    ci95: float
    sampled_nll: float
    sampled_ci95: float
    log_prob: Histogram


@dataclass(frozen=True)
class Report:
    """A model beside the rows of a table.

    Attributes:
        made: the version of this package.
        model, data: what they are called.
        seed: of all that is drawn.
        rows: how many were looked at, of ``rows_in_data``.
        samples: how many were drawn.
        notes: what the reader should know about the rows.
    """

    made: str
    model: str
    data: str
    seed: int
    rows: int
    rows_in_data: int
    samples: int
    notes: tuple[str, ...]
    columns: tuple[Column, ...]
    dependence: Dependence
    likelihood: Likelihood
    training: Training
    odd: tuple[OddRow, ...]

    def facts(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {**asdict(self), "unit": "nats", "conclusions": self.sentences()}

    def sentences(self) -> list[str]:
        """What may be concluded."""
        return [*_of_likelihood(self.likelihood), *self._of_columns(), *self._of_pairs(), *_of_training(self.training)]

    def _of_columns(self) -> list[str]:
        known = [each for each in self.columns if each.distance is not None]
        if not known:
            return ["Nothing is observed in these rows."]
        differ = [each for each in known if each.differs]
        if not differ:
            return ["In no column do samples differ from the rows by more than chance."]
        far = max(differ, key=lambda each: each.distance or 0.0)
        count = f"{len(differ)} of {len(known)}" if len(known) > 1 else "the only"
        return [
            f"In {count} column{'s' if len(known) > 1 else ''}, samples differ from the rows by more than chance: the "
            f"most in {far.name}, by a distance of {far.distance:.3f} (chance: {far.chance:.3f})."
        ]

    def _of_pairs(self) -> list[str]:
        found = self.dependence
        if not found.pairs:
            return []
        text = f"The dependence of two columns is off by {found.difference:.3f} on average"
        far = found.farthest[0]
        text += f" over {found.pairs:,} pairs" if found.pairs > 1 else ""
        return [
            f"{text}, the most for {far.first} and {far.second}: {far.real:.2f} in rows, {far.sampled:.2f} sampled."
        ]


def _of_likelihood(found: Likelihood) -> list[str]:
    interval = "" if math.isnan(found.ci95) else f" ± {found.ci95:.2f} (95 % interval)"
    text = f"The rows have an NLL of {found.nll:.2f}{interval} nats, samples one of {found.sampled_nll:.2f}"
    gap, room = found.nll - found.sampled_nll, math.hypot(found.ci95, found.sampled_ci95)
    if math.isnan(room):
        return [f"{text}."]
    if abs(gap) <= room:
        return [f"{text}: to the model, rows look like its own samples."]
    if gap > 0:
        return [f"{text}: rows are less likely, so that they have something which the model has not learned."]
    return [f"{text}: rows are likelier, so that the model spreads wider than they do, or knows them by heart."]


def _of_training(found: Training) -> list[str]:
    if not found.epochs:
        return ["The model is not trained: it has the weights that it began with."]
    if not found.finished:
        return ["Training is not finished: these are the best weights so far."]
    if found.best_epoch is None:
        return [f"The model was trained for {len(found.epochs)} epochs, with no rows to choose one by."]
    last = found.epochs[-1][0]
    text = f"The best epoch is {found.best_epoch} of {found.epochs[0][0]} to {last}"
    if len(found.epochs) >= found.settings.get("max_epochs", 0) and last - found.best_epoch <= max(2, last // 20):
        return [f"{text}: training ended while it still made progress; more epochs may help."]
    return [f"{text}."]


def measure(
    model: MADE,
    rows: Any,
    *,
    samples: int | None = None,
    most_rows: int = MOST_ROWS,
    top: int = 10,
    seed: int | None = None,
    name: str = "model",
    data: str = "rows",
) -> Report:
    """A report of a model beside rows that have its columns.

    Arguments:
        model: fitted.
        rows: a frame or an array, as the model takes them.
        samples: how many to draw; as many as there are rows, at most 10,000, unless told.
        most_rows: how many rows to look at; of more, so many are drawn.
        top: how many of the oddest rows to find.
        seed: of all that is drawn; the model's unless told.
        name, data: what the model and the rows are called.
    """
    with warnings.catch_warnings():
        # Rows are tables with names here, whatever the model was fitted on.
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
        warnings.simplefilter("ignore", UnseenWarning)  # a note says so once
        return _measure(model, rows, samples, most_rows, top, seed, name, data)


def _measure(
    model: MADE, given: Any, samples: int | None, most_rows: int, top: int, seed: int | None, name: str, data: str
) -> Report:
    schema = model.model_.schema
    rows, notes = arrow(given, schema.names, schema.named), []
    seed = model.model_.config.seed if seed is None else seed
    random, total = np.random.default_rng(seed), rows.num_rows
    places = np.arange(total)
    if total > most_rows:
        places = np.sort(random.permutation(total)[:most_rows])
        rows = take(rows, places)
        notes.append(f"Of {total:,} rows, {most_rows:,} are drawn at random; all that is said is of these.")
    count = min(len(places), MOST_SAMPLES) if samples is None else samples
    sampled = arrow(model.sample(count, random_state=seed), schema.names, schema.named)
    if (wrong := infinite(sampled)).any():
        sampled = with_holes(sampled, wrong)
        notes.append(f"{wrong.sum():,} sampled values are too large for a float, and are left out.")
    real_codes, sampled_codes = codes(model, rows), codes(model, sampled)
    if unseen := _unseen(schema.fields, real_codes):
        notes.append(f"The rows have {UnseenWarning(unseen)}")
    columns, binned = [], []
    for d, field in enumerate(schema.fields):
        listed = field.kind != "numeric"
        pair = _values(rows, real_codes, d, field), _values(sampled, sampled_codes, d, field)
        dates = any(is_date(each.schema.field(d).type) for each in (rows, sampled)) and not listed
        labels = _labels(field, pair) if listed else None
        columns.append(column.compare(field.name, field.kind, *pair, labels=labels, dates=dates, random=random))
        binned.append(dependence.binned(*pair, discrete=listed))
    if empty := [each.name for each in columns if each.distance is None]:
        shown = ", ".join(empty[:10]) + (", ..." if len(empty) > 10 else "")
        notes.append(f"Nothing is observed of {shown}: only samples are shown.")
    log_prob = model.score_samples(rows).astype(np.float64)
    likelihood = _likelihood(model, log_prob, np.isnan(real_codes), sampled)
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
        likelihood=likelihood,
        training=_training(model),
        odd=oddest(model, rows, log_prob, places, top, random),
    )


def _values(rows: pa.Table, coded: Numbers, d: int, field: Field) -> Numbers:
    """A column's codes if it has a list of values, otherwise its numbers."""
    if field.kind != "numeric":
        return field.places(coded[:, d])
    if np.isnan(coded[:, d]).all():
        return coded[:, d]
    return np.where(np.isnan(coded[:, d]), np.nan, numbers(rows.column(d)))


def _unseen(fields: Sequence[Field], coded: Numbers) -> dict[str, int]:
    """How many values training never saw, by column."""
    counts = {field.name: int(field.foreign(coded[:, d], coded[:, d]).sum()) for d, field in enumerate(fields)}
    return {name: count for name, count in counts.items() if count}


def _labels(field: Field, pair: tuple[Numbers, Numbers]) -> tuple[Any, ...]:
    """What the codes stand for; if there are values that training never saw, these are one more."""
    labels = tuple("missing" if label is None else label for label in field.labels())
    unseen = any((values == len(labels)).any() for values in pair)
    return (*labels, "other values") if unseen else labels


def _likelihood(model: MADE, log_prob: Numbers, holes: NDArray[np.bool_], sampled: pa.Table) -> Likelihood:
    import torch

    from made.queries.likelihood import mean_and_interval

    if holes.any():
        sampled = with_holes(sampled, holes[np.arange(sampled.num_rows) % len(holes)])
    sampled_log_prob = model.score_samples(sampled).astype(np.float64)
    nll, half = mean_and_interval(-torch.from_numpy(log_prob))
    sampled_nll, sampled_half = mean_and_interval(-torch.from_numpy(sampled_log_prob))
    drawn = column.common(log_prob, sampled_log_prob)
    return Likelihood(nll, half, sampled_nll, sampled_half, drawn)


def _training(model: MADE) -> Training:
    stored = model.model_
    config = stored.config
    return Training(
        rows=config.data.rows,
        valid_rows=config.data.valid_rows,
        epochs=tuple((each.number, each.train_nll, each.valid_nll) for each in stored.history),
        best_epoch=None if model.best_epoch_ is None else int(model.best_epoch_),
        valid_nll=model.valid_nll_,
        finished=stored.finished,
        parameters=sum(weight.numel() for weight in stored.network.state_dict().values()),
        masks=len(stored.masks),
        settings=dict(config.parameters),
    )
