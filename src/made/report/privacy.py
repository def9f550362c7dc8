"""What synthetic rows reveal about the training rows: copies, distances to the closest record, membership inference.

The distance between two rows is the mean over columns of: 0 or 1, equal or not, of categories; the share of training
values between the two, of numbers and ordered values; 1 if only one of the two is missing, and 0 if both are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from made.errors import DataError, UnseenWarning
from made.estimator import Fitted, model_of
from made.hints import hint
from made.pages.text import percent
from made.queries.batches import blocks
from made.tables.field import Field

Codes: TypeAlias = NDArray[np.float64]

MOST_ROWS = 5000
FEWEST_ROWS = 2
AT_A_TIME = 2**20  # distances
SURE = 1.96
LEAK = 0.05  # excess over 0.5 of a share or an AUC that triggers a warning


@dataclass(frozen=True)
class Privacy:
    """What synthetic rows, and the model that they are drawn from, reveal of the training rows.

    Shares and AUCs come with the half-widths of their 95 % intervals.

    Attributes:
        rows: how many training rows were used, and as many held-out rows.
        samples: how many synthetic rows.
        copies: the share of synthetic rows that equal a training row.
        held_out_copies: the share of held-out rows that do: how often rows are equal by chance.
        closer, closer_ci95: the share of synthetic rows whose closest training row is closer than their closest
            held-out row, ties counted as one half. 0.5 is ideal, 1 if rows are copied.
        distance: the median distance of synthetic rows to the closest training row.
        distance_to_held_out: their median distance to the closest held-out row.
        held_out_distance: the median distance of held-out rows to the closest training row.
        membership_auc, membership_ci95: how well log p tells training rows from held-out rows. 0.5: not at all.
    """

    rows: int
    samples: int
    copies: float
    held_out_copies: float
    closer: float
    closer_ci95: float
    distance: float
    distance_to_held_out: float
    held_out_distance: float
    membership_auc: float
    membership_ci95: float

    def sentence(self) -> str:
        """A conclusion in words."""
        return (
            f"{percent(self.closer)} ± {percent(self.closer_ci95)} of synthetic rows are closer to a training row than "
            f"to any of as many held-out rows (50 % is ideal), and {percent(self.copies)} are copies "
            f"({percent(self.held_out_copies)} of held-out rows are, by chance). The likelihood tells training rows "
            f"from held-out rows with an AUC of {self.membership_auc:.3f} ± {self.membership_ci95:.3f} (0.5 is ideal)."
        )

    def warning(self) -> str | None:
        """Whether the rows or the model reveal more than chance does, with the remedy."""
        found = []
        if self.closer - self.closer_ci95 > 0.5 + LEAK:
            found.append("synthetic rows lie closer to the training rows than to others")
        error = SURE * math.sqrt(max(self.held_out_copies * (1 - self.held_out_copies), 1 / self.rows) / self.rows)
        if self.copies > self.held_out_copies + error + LEAK / 10:
            found.append("synthetic rows copy training rows more often than chance does")
        if self.membership_auc - self.membership_ci95 > 0.5 + LEAK:
            found.append("the likelihood tells training rows from others")
        if not found:
            return None
        return (
            f"{'; '.join(found)}: fit on more rows, with a smaller network or more dropout ({hint(dropout=0.2)}), and "
            "measure again."
        )


def privacy(
    model: Fitted,
    train: Any,
    held_out: Any,
    *,
    synthetic: Any = None,
    samples: int | None = None,
    most_rows: int = MOST_ROWS,
    seed: int | None = None,
) -> Privacy:
    """Measure what synthetic rows reveal of the training rows, against rows of the same origin that were held out.

    The cost is bounded: of larger tables, random subsets are compared, as many training rows as held-out rows.

    Arguments:
        model: a model, a fitted estimator, or the folder of a model.
        train: the rows that it was fitted on.
        held_out: rows that it was not fitted on, not even as validation rows.
        synthetic: rows to examine; by default ``samples`` rows are drawn, with missing values if the model has learned
            which values are missing.
        samples: how many to draw; default: as many as rows are compared.
        most_rows: the most training rows, held-out rows and synthetic rows that are compared.
        seed: of all random draws; default: the model's seed.

    Example:
        >>> from made import MADE
        >>> rows = np.random.default_rng(0).integers(0, 3, (200, 4))
        >>> model = MADE(hidden_sizes=(8,), max_epochs=2, random_state=0).fit(rows[:100])
        >>> found = privacy(model, rows[:100], rows[100:])
        >>> 0.3 < found.closer < 0.7 and 0.3 < found.membership_auc < 0.7
        True
    """
    model = model_of(model)
    seed = model.config.seed if seed is None else seed
    random = np.random.default_rng(seed)
    with UnseenWarning.ignored():
        known, others = model.codes(train), model.codes(held_out)
        for name, rows in (("train", known), ("held_out", others)):
            if len(rows) < FEWEST_ROWS:
                raise DataError(f"'{name}' should have at least {FEWEST_ROWS} rows, not {len(rows)}.")
        count = min(len(known), len(others), most_rows)
        if synthetic is None:
            missing = model.missingness is not None and model.config.view is None
            synthetic = model.sample(samples or count, missing=missing, random_state=seed)
        drawn = model.codes(synthetic)
    if not len(drawn):
        raise DataError("'synthetic' should have at least one row.")
    copies, by_chance = (_copies(rows, known) for rows in (drawn, others))
    values = np.sort(known, axis=0)
    members, strangers, some = (_some(rows, count, random) for rows in (known, others, drawn))
    log_p = [model.view.score(rows).astype(np.float64) for rows in (members, strangers)]
    fields = model.schema.fields
    near, far, fresh = (_places(fields, rows, values) for rows in (members, strangers, some))
    to_train, to_others, real = _closest(fields, fresh, near), _closest(fields, fresh, far), _closest(fields, far, near)
    closer = (to_train < to_others) + 0.5 * (to_train == to_others)
    return Privacy(
        rows=count,
        samples=len(drawn),
        copies=copies,
        held_out_copies=by_chance,
        closer=float(closer.mean()),
        closer_ci95=float(SURE * closer.std() / math.sqrt(min(len(closer), count))),
        distance=float(np.median(to_train)),
        distance_to_held_out=float(np.median(to_others)),
        held_out_distance=float(np.median(real)),
        **_membership(*log_p),
    )


def _some(rows: Codes, most: int, random: np.random.Generator) -> Codes:
    return rows if len(rows) <= most else rows[random.permutation(len(rows))[:most]]


def _copies(rows: Codes, known: Codes) -> float:
    """The share of rows that are among the known ones."""
    seen = {row.tobytes() for row in known + 0.0}  # there is one zero, and one NaN
    return sum(row.tobytes() in seen for row in rows + 0.0) / len(rows)


def _places(fields: tuple[Field, ...], codes: Codes, values: Codes) -> NDArray[np.float32]:
    """Codes as places in the sorted training values, from 0 to 1; categories as they are; NaN for a missing value."""
    found = np.empty(codes.shape, dtype=np.float32)
    for d, field in enumerate(fields):
        column = field.places(codes[:, d]) if field.listed else codes[:, d]
        if _nominal(field):
            found[:, d] = column
            continue
        absent = np.isnan(column) | np.isinf(column) | (field.missing & (column == len(field.values)) & field.listed)
        known = values[np.isfinite(values[:, d]), d]
        place = (np.searchsorted(known, column) + np.searchsorted(known, column, side="right")) / max(2 * len(known), 1)
        found[:, d] = np.where(absent, np.nan, place)
    return found


def _nominal(field: Field) -> bool:
    return field.listed and not field.column.ordered


def _closest(fields: tuple[Field, ...], rows: NDArray[np.float32], known: NDArray[np.float32]) -> NDArray[np.float32]:
    """The distance of each row to the closest known one."""
    found = np.empty(len(rows), dtype=np.float32)
    for block in blocks(len(rows), max(1, AT_A_TIME // len(known))):
        total = np.zeros((len(rows[block]), len(known)), dtype=np.float32)
        for d, field in enumerate(fields):
            here, there = rows[block, d][:, None], known[:, d][None]
            apart = here != there if _nominal(field) else np.abs(here - there)
            absent, gone = np.isnan(here), np.isnan(there)
            if absent.any() or gone.any():
                apart = np.where(absent | gone, absent != gone, apart)
            total += apart
        found[block] = total.min(axis=1) / len(fields)
    return found


def _membership(members: Codes, others: Codes) -> dict[str, float]:
    """The AUC of log p, with the standard error of Hanley and McNeil (1982)."""
    first, second = len(members), len(others)
    ranks = rankdata(np.concatenate([members, others]))
    auc = (ranks[:first].sum() - first * (first + 1) / 2) / (first * second)
    both, each = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (first - 1) * (both - auc**2) + (second - 1) * (each - auc**2)
    error = math.sqrt(max(variance, 0.0) / (first * second))
    return {"membership_auc": float(auc), "membership_ci95": SURE * error}
