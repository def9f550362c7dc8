"""Rows from a file, standard input or a named dataset: whole, or as a stream of batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.printing import note
from made.errors import DataError

if TYPE_CHECKING:
    from made.model.model import Model

__all__ = ["is_file", "known_columns", "own_validation", "read_rows", "stream_rows"]


def is_file(source: str) -> bool:
    """Whether this is a file or standard input, and not a named dataset."""
    path = Path(source)
    return source == "-" or path.exists() or path.suffix.partition(":")[0] in (".csv", ".parquet", ".npy", ".npz")


def _file(source: str) -> str | None:
    """The file to read, which for a named table comes with the package; None for a dataset with splits."""
    from made.io import datasets

    if is_file(source):
        return source
    table = datasets.table_file(source)
    return None if table is None else str(table)


def read_rows(source: str, split: str) -> tuple[Any, tuple[int, int] | None]:
    """All rows of a source, and the shape of an image if rows are images.

    Arguments:
        source: a file, ``-``, or a named dataset such as ``adult`` or ``adult:test``.
        split: which split of a named dataset, if the source does not name one.
    """
    from made.io import datasets
    from made.io.read import read

    if (file := _file(source)) is not None:
        return read(file), None
    name, chosen = datasets.split(source)
    if name in datasets.TABLES:
        raise DataError(f"{name!r} is a table without splits: leave out ':{chosen}'.")
    if not datasets.known(name):
        raise DataError(
            f"{source!r} is neither a file nor a named dataset: the datasets are "
            f"{', '.join([*datasets.TABLES, *datasets.NAMES])}; files end in .csv, .parquet, .npy or .npz."
        )
    data = datasets.load(name)
    return getattr(data, chosen or split), data.image


def own_validation(data: str) -> str | None:
    """The validation rows of a named dataset; None for a file or a table without splits."""
    from made.io import datasets

    if data == "-" or Path(data).exists():
        return None
    name, chosen = datasets.split(data)
    return f"{name}:valid" if chosen in (None, "train") and datasets.known(name) else None


def stream_rows(source: str, model: Model, quiet: bool, optional: int | None = None) -> Iterator[tuple[int, Any]]:
    """Batches of rows with the model's columns, each with the number of rows before it.

    Arguments:
        source: a file, ``-``, or a named dataset, of which the test rows by default.
        model: its columns, in its order, are kept.
        quiet: print no note about columns that are left out.
        optional: the number of a column that need not be there.
    """
    from made.io.read import stream
    from made.queries import batches

    first = 0
    if (file := _file(source)) is not None:
        parts = stream(file, batches.ROWS_AT_A_TIME)
    else:
        whole = read_rows(source, "test")[0]
        parts = (whole[batch] for batch in batches.blocks(len(whole)))
    for rows in parts:
        if getattr(rows, "dtype", None) is not None and rows.dtype.kind == "f" and rows.dtype.itemsize > 8:
            rows = rows.astype("float64")  # no output format holds a longer float
        yield first, known_columns(rows, model, quiet or first > 0, optional)
        first += len(rows)


def known_columns(rows: Any, model: Model, quiet: bool, optional: int | None = None) -> Any:
    """The model's columns of a table, in its order; others are left out, with a note. See :func:`stream_rows`."""
    schema = model.schema
    if not hasattr(rows, "column_names"):
        import numpy as np

        if optional is not None and rows.ndim == 2 and rows.shape[1] == len(schema.names) - 1:
            return np.insert(rows.astype(np.float64), optional, np.nan, axis=1)
        return rows
    if not schema.named:
        return rows
    names = list(schema.names)
    if optional is not None and names[optional] not in rows.column_names:
        names.pop(optional)
    if missing := [name for name in names if name not in rows.column_names]:
        raise DataError(
            f"the table has no column {', '.join(map(repr, missing[:10]))}: add it, empty if it is not observed; all "
            "columns of the model are needed."
        )
    known = {*names, *schema.dropped}
    if extra := [name for name in rows.column_names if name not in known]:
        note(f"Note: columns that the model does not know are ignored: {', '.join(extra[:10])}.", quiet)
    return rows.select(names)
