"""The inputs of a command: a model from its folder; rows from a file, standard input or a named dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.errors import usage
from made.cli.printing import note
from made.cli.process import quick_imports
from made.display import listed
from made.errors import DataError, ModelError
from made.io import ENDINGS, SUFFIXES

if TYPE_CHECKING:
    from made.io.files import Files
    from made.model.model import Model


def load(folder: Path, masks: int | None = None, *, quiet: bool = False, seed: int | None = None) -> Model:
    """Load a model; ``masks`` and ``seed`` override the number of masks it averages and its seed.

    A note is printed if its training is not finished, unless ``quiet``.
    """
    from made.model.manifest import Manifest

    try:
        Manifest.read(folder)  # a wrong folder is refused before torch is imported
        with quick_imports():
            import pyarrow.compute  # noqa: F401

            from made.model.model import Model
        model = Model.load(folder)
    except OSError as error:
        raise ModelError(f"{folder} cannot be read: {error.strerror or error}.") from None
    # Whatever the model was fitted on, rows are pyarrow tables here, which hold text and write every kind of file.
    model = replace(model, template=model.schema.blank(named=True))
    if seed is not None:
        model = replace(model, config=replace(model.config, seed=seed))
    if not model.finished and not quiet:
        note(f"Note: the training of {folder} is not finished; these are its best weights so far.")
    if masks is None:
        return model
    if model.ensemble.masks is None:
        count = model.config.parameters["masks"]
        raise usage(f"'--masks' is for models of unlimited masks: {folder} has {count}, and averages all of them.")
    return model.with_ensemble(masks, model.ensemble.segments)


def _file(source: str) -> str | None:
    """The file to read, which for a named table comes with the package; None for a dataset with splits."""
    from made.io import datasets

    path = Path(source)
    if source == "-" or path.exists() or path.suffix.partition(":")[0] in SUFFIXES:
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
            f"{', '.join([*datasets.TABLES, *datasets.NAMES])}; files end in {ENDINGS}."
        )
    data = datasets.load(name)
    return getattr(data, chosen or split), data.image


def _found(files: Files) -> Files:
    """The same files, after a note about ignored files that are not tables."""
    if files.ignored:
        note(f"Note: files that are not tables are ignored: {listed(files.ignored, 5)}.")
    return files


def training_rows(sources: Sequence[str], valid: str | None) -> tuple[Any, Any, tuple[int, int] | None]:
    """Training rows, validation rows if there are any, and the shape of an image if rows are images.

    Files are not read yet. Standard input and named datasets are.

    Arguments:
        sources: files, folders and globs; or one of ``-`` and a named dataset.
        valid: validation rows. Default: the validation split of a named dataset.
    """
    from made.io.files import Files

    def files(some: Sequence[str]) -> Files | None:
        known = [each if re.search(r"[*?\[]", each) else _file(each) for each in some]
        if len(some) == 1 and known[0] in (None, "-"):
            return None
        if wrong := [each for each, file in zip(some, known, strict=True) if file in (None, "-")]:
            raise usage(f"{wrong[0]!r} is not a file, and cannot be one table with others.")
        return _found(Files.of([file for file in known if file is not None]))

    rows, shape = files(sources), None
    if rows is None:
        rows, shape = read_rows(sources[0], "train")
        if valid is None:
            return rows, validation_rows(sources[0], None), shape
    if valid is None:
        return rows, None, shape
    held_out = files([valid])
    return rows, read_rows(valid, "valid")[0] if held_out is None else held_out, shape


def validation_rows(data: str, valid: str | None) -> Any:
    """The rows of --valid, or the validation split of a named dataset; None for data without splits."""
    from made.io import datasets

    if valid is None and data != "-" and not Path(data).exists():
        name, chosen = datasets.split(data)
        valid = f"{name}:valid" if chosen in (None, "train") and datasets.known(name) else None
    return None if valid is None else read_rows(valid, "valid")[0]


def sources(data: str) -> list[str]:
    """The files of DATA: a file, or the files of a folder or glob; or a single source that is not a file."""
    from made.io.files import Files

    if Path(data).is_dir() or (re.search(r"[*?\[]", data) and not Path(data).exists()):
        return _found(Files.of(data)).paths
    file = _file(data)
    return [data if file is None else file]


def rows_of(source: str) -> Iterator[Any]:
    """The rows of a file, ``-`` or a named dataset (by default its test split), in blocks; a file may have none.

    Blocks are cut as in :mod:`made.queries.batches`, from the first row of the file.
    """
    from made.io.read import stream
    from made.queries import batches

    if (file := _file(source)) is not None:
        parts = stream(file, batches.ROWS_AT_A_TIME, may_be_empty=file != "-")
    else:
        whole = read_rows(source, "test")[0]
        parts = (whole[batch] for batch in batches.blocks(len(whole)))
    for rows in parts:
        if getattr(rows, "dtype", None) is not None and rows.dtype.kind == "f" and rows.dtype.itemsize > 8:
            rows = rows.astype("float64")  # no output format holds a longer float
        yield rows


def stream_rows(data: str, model: Model) -> Iterator[tuple[int, Any]]:
    """Blocks of rows with the model's columns, in its order, each with the number of rows before it."""
    from made.io.files import no_rows

    first = 0
    for source in (found := sources(data)):
        for rows in rows_of(source):
            known, ignored = known_columns(rows, model)
            if not first:
                note_ignored(ignored)
            yield first, known
            first += len(rows)
    if not first:
        raise no_rows(found)


def known_columns(rows: Any, model: Model, optional: int | None = None) -> tuple[Any, list[str]]:
    """The columns of a table that are in the model, in the model's order; and the names of the ignored columns.

    Arguments:
        rows: the table.
        model: the model.
        optional: the number of a column that may be absent.
    """
    schema = model.schema
    if not hasattr(rows, "column_names"):
        import numpy as np

        if optional is not None and rows.ndim == 2 and rows.shape[1] == len(schema.names) - 1:
            return np.insert(rows.astype(np.float64), optional, np.nan, axis=1), []
        return rows, []
    if not schema.named:
        return rows, []
    names = list(schema.names)
    if optional is not None and names[optional] not in rows.column_names:
        names.pop(optional)
    if missing := [name for name in names if name not in rows.column_names]:
        raise DataError(
            f"the table has no column {listed(map(repr, missing))}: add it, empty if it is not observed; all "
            "columns of the model are needed."
        )
    return rows.select(names), [name for name in rows.column_names if name not in {*names, *schema.dropped}]


def note_ignored(columns: Sequence[str]) -> None:
    """Print a note about ignored columns."""
    if columns:
        note(f"Note: columns that the model does not know are ignored: {listed(columns)}.")
