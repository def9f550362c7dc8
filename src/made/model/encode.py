"""The rows of a table as evidence for training and validation, in memory or in memory-mapped files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from made.columns.group import Columns
from made.errors import DataError, MadeError
from made.model.code_files import Part
from made.queries.evidence import Evidence
from made.streams import HELD_OUT, philox
from made.tables.schema import Schema
from made.tables.stream import TableStream
from made.tables.table import Table

AnyTable: TypeAlias = Table | TableStream

CHUNK = 2**20  # random numbers at once


@dataclass(frozen=True)
class Encoded:
    """Training and validation rows, and a fingerprint of them, so that a run is only resumed on the same rows."""

    train: Evidence
    valid: Evidence | None
    sha256: str


def draw_apart(rows: int, count: int, seed: int) -> NDArray[np.int64]:
    """The positions of ``count`` random rows, ascending: those with the least of ``rows`` random numbers."""
    random, bits = philox(seed, HELD_OUT), np.empty(0, dtype=np.uint64)
    places = np.empty(0, dtype=np.int64)
    for begin in range(0, rows if count else 0, CHUNK):
        size = min(CHUNK, rows - begin)
        bits = np.concatenate([bits, random.random_raw(size)])
        places = np.concatenate([places, np.arange(begin, begin + size)])
        least = np.argsort(bits, kind="stable")[:count]
        bits, places = bits[least], places[least]
    return np.sort(places)


def encode(
    table: AnyTable,
    valid_table: AnyTable | None,
    schema: Schema,
    columns: Columns,
    train: Part,
    valid: Part,
    apart: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
    tick: Callable[[int], None] = lambda rows: None,
) -> Encoded:
    """Encode all rows in one pass.

    Arguments:
        table: the rows.
        valid_table: the validation rows.
        schema: the columns of the tables, and
        columns: of the network.
        train, valid: where the evidence is kept.
        apart: the positions of the rows of ``table`` that are for validation, ascending.
        weights: how often each training row counts, for the fingerprint.
        tick: called with the number of rows so far.
    """
    sha, like, held, first = hashlib.sha256(), torch.empty(0, dtype=train.dtype), [], 0

    def keep(part: Part, codes: NDArray[np.float64]) -> None:
        sha.update(np.ascontiguousarray(codes, dtype="<f8").data)
        values, missing = columns.check(codes, like)
        part.add(values, None if missing is None else ~missing)

    for some, part in ((table, train), *([] if valid_table is None else [(valid_table, valid)])):
        begin = first
        for piece in some.pieces():
            try:
                codes = schema.encode(piece, training=True)
                inside = apart[slice(*np.searchsorted(apart, [first, first + len(codes)]))] - first
                if part is train and len(inside):
                    held.append(codes[inside])
                    codes = np.delete(codes, inside, axis=0)
                if len(codes):
                    keep(part, codes)
            except MadeError as error:
                raise error.after(first - begin) from None
            first += piece.rows
            tick(first)
    if held:
        keep(valid, np.concatenate(held))
    if not valid.rows:
        sha.update(b"none")
    if weights is not None:
        sha.update(np.ascontiguousarray(weights, dtype="<f8").data)
    if any(part.files is not None and part.rows != part.files.rows for part in (train, valid) if part.rows):
        raise DataError("the table changed while it was read: fit again, when nothing writes to its files.")
    return Encoded(train.end(), valid.end() if valid.rows else None, sha.hexdigest())
