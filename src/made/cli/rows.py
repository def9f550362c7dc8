"""Rows from a file, standard input or a named dataset: whole, or as a stream of batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.printing import note
from made.errors import DataError

if TYPE_CHECKING:
    from made.estimator import MADE

__all__ = ["is_file", "known_columns", "own_validation", "read_rows", "stream_rows"]


def is_file(source: str) -> bool:
    """Whether this is a file or standard input, and no named set."""
    path = Path(source)
    return source == "-" or path.exists() or path.suffix.partition(":")[0] in (".csv", ".parquet", ".npy", ".npz")


def read_rows(source: str, split: str) -> tuple[Any, tuple[int, int] | None]:
    """Rows from a file, standard input or a named set (of which ``split``, unless it is named); an image's shape."""
    from made.io import datasets
    from made.io.read import read

    if is_file(source):
        return read(source), None
    name, chosen = datasets.split(source)
    if not datasets.known(name):
        raise DataError(
            f"{source!r} is neither a file nor a named set: the sets are {', '.join(datasets.NAMES)}; files end in "
            ".csv, .parquet, .npy or .npz."
        )
    data = datasets.load(name)
    return getattr(data, chosen or split), data.image


def own_validation(data: str) -> str | None:
    """The validation rows that come with a named set."""
    from made.io import datasets

    if data == "-" or Path(data).exists():
        return None
    name, chosen = datasets.split(data)
    return f"{name}:valid" if chosen in (None, "train") and datasets.known(name) else None


def known_columns(rows: Any, model: MADE, quiet: bool, lacks: int | None = None) -> Any:
    """The columns of a table that the model knows, in its order; others are left out, with a note.

    One column, ``lacks`` by its number, need not be there.
    """
    schema = model.model_.schema
    if not hasattr(rows, "column_names"):
        import numpy as np

        if lacks is not None and rows.ndim == 2 and rows.shape[1] == len(schema.names) - 1:
            return np.insert(rows.astype(np.float64), lacks, np.nan, axis=1)
        return rows
    if not schema.named:
        return rows
    names = list(schema.names)
    if lacks is not None and names[lacks] not in rows.column_names:
        names.pop(lacks)
    if missing := [name for name in names if name not in rows.column_names]:
        raise DataError(
            f"the table has no column {', '.join(map(repr, missing[:10]))}: it should have all of the model's columns; "
            "an empty one is not observed."
        )
    known = {*names, *schema.dropped}
    if extra := [name for name in rows.column_names if name not in known]:
        note(f"Note: columns that the model does not know are left out: {', '.join(extra[:10])}.", quiet)
    return rows.select(names)


def stream_rows(source: str, model: MADE, quiet: bool, lacks: int | None = None) -> Iterator[tuple[int, Any]]:
    """Rows from a file, standard input or a named set, in blocks, and the number of rows before each.

    They have the columns of the model, in its order; ``lacks`` is one that need not be there.
    """
    from made.io.read import stream
    from made.queries import batches as blocks

    first, size = 0, blocks.ROWS_AT_A_TIME
    if is_file(source):
        parts = stream(source, size)
    else:
        whole = read_rows(source, "test")[0]
        parts = (whole[begin : begin + size] for begin in range(0, len(whole), size))
    for rows in parts:
        if getattr(rows, "dtype", None) is not None and rows.dtype.kind == "f" and rows.dtype.itemsize > 8:
            rows = rows.astype("float64")  # more than that, no file that is written here can hold
        yield first, known_columns(rows, model, quiet or first > 0, lacks)
        first += len(rows)
