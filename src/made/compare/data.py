"""Tables of two-valued columns as rows of zeros and ones, and their split into training, validation and test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from made.compare.result import BinaryRows
from made.display import listed
from made.errors import DataError
from made.tables.plain import is_missing
from made.tables.table import Table

FEWEST = 20  # rows to split: a tenth of them, two rows, have a standard deviation


def split(count: int, parts: int, seed: int) -> list[NDArray[np.intp]]:
    """Random indices of the training rows, and of one or two other parts of a tenth of all rows each.

    Example:
        >>> [len(part) for part in split(100, 2, seed=0)], [len(part) for part in split(100, 1, seed=0)]
        ([80, 10, 10], [90, 10])
    """
    if count < FEWEST:
        raise DataError(
            f"{count} row{'s are' if count != 1 else ' is'} too few to split into training and test rows: at least "
            f"{FEWEST} are needed."
        )
    order, tenth = np.random.default_rng(seed).permutation(count), count // 10
    cuts = [order[: count - parts * tenth]]
    return cuts + [order[count - part * tenth :][:tenth] for part in range(parts, 0, -1)]


def zeros_and_ones(tables: Mapping[str, Any]) -> tuple[list[BinaryRows], dict[str, tuple[Any, Any]]]:
    """Tables with the same columns, each of at most two values, as zeros and ones.

    Values other than 0 and 1 are coded in sorted order, the same in all tables: "no" is 0 and "yes" is 1.

    Arguments:
        tables: arrays or data frames, by the name that error messages use.

    Returns:
        The coded tables, and the two values of each column that has values other than 0 and 1; a constant column has
        its value twice.

    Example:
        >>> zeros_and_ones({"mine": [["yes", 0], ["no", 1]]})
        ([array([[1, 0],
               [0, 1]], dtype=uint8)], {'column 0': ('no', 'yes')})
    """
    given = list(tables.values())
    if all(isinstance(each, np.ndarray) and each.ndim == 2 and np.isin(each, (0, 1)).all() for each in given):
        width = given[0].shape[1]
        if all(each.shape[1] == width for each in given):
            return [each.astype(np.uint8) for each in given], {}
    taken = {name: Table.of(each) for name, each in tables.items()}
    first = next(iter(taken.values()))
    coded = [np.zeros((table.rows, len(first.columns)), dtype=np.uint8) for table in taken.values()]
    places = [_places(first, table, name) for name, table in taken.items()]
    meanings: dict[str, tuple[Any, Any]] = {}
    for column in range(len(first.columns)):
        label = first.label(column)
        parts = [table.columns[place[column]] for table, place in zip(taken.values(), places, strict=True)]
        for name, part in zip(taken, parts, strict=True):
            if (absent := is_missing(part)).any():
                raise DataError(
                    f"{name}, row {int(absent.argmax())} (counted from 0), {label}: a missing value, but only complete "
                    "rows can be compared. Drop such rows or columns, or impute them first (`made fit`, then "
                    "`made impute`)."
                )
        values = _two(parts, label)
        dtypes = {table.dtypes[place[column]] for table, place in zip(taken.values(), places, strict=True)}
        plain = set(values) <= {0, 1}
        if dtypes == {"bool"}:
            meanings[label] = bool(values[0]), bool(values[-1])
        elif not plain:
            meanings[label] = values[0], values[-1]
        for matrix, part in zip(coded, parts, strict=True):
            matrix[:, column] = part == (1.0 if plain else values[-1]) if plain or len(values) == 2 else 0
    return coded, meanings


def _places(first: Table, other: Table, name: str) -> list[int]:
    """The positions of the first table's columns in another one: by name if both have names."""
    if first.names is not None and other.names is not None:
        if differing := sorted(set(first.names) ^ set(other.names)):
            raise DataError(f"{name} should have the same columns as the others, but {differing[0]!r} is not in all.")
        return [other.names.index(each) for each in first.names]
    if len(first.columns) != len(other.columns):
        raise DataError(f"{name} has {len(other.columns)} columns, but others have {len(first.columns)}.")
    return list(range(len(first.columns)))


def _two(parts: Sequence[NDArray[Any]], label: str) -> list[Any]:
    """The sorted values of a column; more than two are an error."""
    if len({part.dtype == object for part in parts}) > 1:
        raise DataError(f"{label} is text in one of the tables and numeric in another: convert one of them.")
    values = sorted(set().union(*(set(np.unique(part).tolist()) for part in parts)))
    if len(values) <= 2:
        return values
    shown = listed((repr(value) if isinstance(value, str) else f"{value:g}" for value in values), 3)
    few = len(values) <= 20 or isinstance(values[0], str)
    remedy = f"{'Encode it as one column of zeros and ones per value' if few else 'Threshold it'}, or drop it"
    raise DataError(
        f"{label} has {len(values)} values ({shown}), but only columns with two "
        f"values can be compared. {remedy}. (`made fit` accepts it unchanged.)"
    )
