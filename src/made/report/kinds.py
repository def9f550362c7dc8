"""Columns whose kind does not suit their values, with the remedy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from made.columns.bins import Numbers
from made.display import listed, shortened
from made.hints import hint
from made.pages.text import percent
from made.tables.field import Field
from made.tables.plain import number_in

LEAST = 10  # values that are wrong, for a warning
UNSEEN = 0.1  # share of a column's values
OFF_GRID = 0.01
FEW_VALUES = 20  # of a column of numbers, that most rows have,
MOST_ROWS = 0.9
MISSED = 0.5  # and that at most this share of the samples has
NUMBERS = 10  # distinct numbers among texts


def kind_warnings(field: Field, codes: Numbers, real: Numbers, sampled: Numbers) -> Iterator[str]:
    """Warnings about a column.

    Arguments:
        field: the column.
        codes: the codes of the rows, NaN for a missing value.
        real, sampled: the values of rows and samples: places in the list of values, or numbers as they were given.
    """
    seen = ~np.isnan(codes)
    if field.listed:
        yield from _unseen(field, real[seen])
        yield from _numbers_and_words(field, real[seen])
    elif field.temporal is None:
        yield from _off_grid(field, codes[seen], real[seen])
        yield from _few_values(field, real[seen], sampled[~np.isnan(sampled)])


def _unseen(field: Field, places: Numbers) -> Iterator[str]:
    """Most of a column with a list of values is not in the list."""
    count = int((places == len(field.labels())).sum())
    if count < max(LEAST, UNSEEN * len(places)):
        return
    remedy = f"or leave the column out, {hint(columns={field.name: 'drop'})}"
    if field.dtype not in ("text", "bool"):
        remedy = f"or take them for numbers, {hint(columns={field.name: 'numeric'})}"
    yield (
        f"{percent(count / len(places))} of the values of {field.name} did not occur in training, and are all alike to "
        f"the model. Remedy: fit on rows that have them, {remedy}."
    )


def _off_grid(field: Field, codes: Numbers, values: Numbers) -> Iterator[str]:
    """Numbers lie between the steps that training saw."""
    step, off = field.column.grid[1], field.rounded(values, codes)
    if off.sum() >= max(LEAST, OFF_GRID * len(codes)):
        yield (
            f"{percent(float(off.mean()))} of the values of {field.name} lie between the steps of {step:g} of the "
            f"training rows: each is scored as the nearest step. Remedy: fit on rows that have such values, or without "
            f"steps, {hint(columns={field.name: 'real'})}."
        )


def _few_values(field: Field, real: Numbers, sampled: Numbers) -> Iterator[str]:
    """A few numbers make up most of the rows, and not of the samples."""
    values, counts = np.unique(real, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:FEW_VALUES]
    share = counts[most].sum() / max(len(real), 1)
    if len(real) < LEAST * len(most) or share < MOST_ROWS or not len(sampled):
        return
    found = float(np.isin(sampled, values[most]).mean())
    if found <= MISSED * share:
        yield (
            f"{len(most)} numbers make up {percent(share)} of {field.name} in the rows, but only {percent(found)} in "
            f"samples, because the column is numeric. Remedy: {hint(columns={field.name: 'ordinal'})}."
        )


def _numbers_and_words(field: Field, places: Numbers) -> Iterator[str]:
    """Texts that are numbers but for a few words, such as "n/a"."""
    if field.dtype != "text" or field.column.ordered:
        return
    words = [str(label) for label in field.labels() if label is not None]
    numbers = np.array([number_in(each) is not None for each in words], dtype=np.bool_)
    known = places[places < len(words)].astype(np.intp)
    share = float(numbers[known].mean()) if len(known) else 0.0
    others = [repr(shortened(each, 30)) for each, is_number in zip(words, numbers, strict=True) if not is_number]
    if others and numbers.sum() >= NUMBERS and share >= MOST_ROWS:
        yield (
            f"{percent(share)} of the values of {field.name} are numbers, but the column is {field.kind} because of "
            f"{listed(others, 3)}. Remedy: leave these empty if they mean that a value is missing, and fit again."
        )
