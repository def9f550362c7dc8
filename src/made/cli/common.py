"""What all commands share: options, data in and out, and what the exit code says.

0 done, 1 a bug, 2 usage, 3 data refused, 4 model refused, 5 training diverged, 130 interrupted.
"""

from __future__ import annotations

import csv
import functools
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

if TYPE_CHECKING:
    from made.estimator import MADE

__all__ = [
    "DATA",
    "JSON",
    "MODEL",
    "OUT",
    "QUIET",
    "SEED",
    "assignments",
    "columns_of",
    "command",
    "is_file",
    "load",
    "note",
    "page_for",
    "place",
    "print_json",
    "rows_for",
    "show",
    "write_page",
]

MODEL = Annotated[Path, typer.Argument(metavar="MODEL", help="A model's folder.", show_default=False)]
DATA = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.csv, .parquet, .npy, .npz), - for standard input, or a named set such as adult or adult:test.",
        show_default=False,
    ),
]
OUT = Annotated[
    str | None, typer.Option("--out", help="A file for the result (.csv, .parquet, .npy, .npz); - or none to print it.")
]
SEED = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**32 - 1, help="The seed of what is random; the model's unless told."),
]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
QUIET = Annotated[bool, typer.Option("--quiet", help="No progress bar and no notes.")]

P = ParamSpec("P")
R = TypeVar("R")


def note(text: str, quiet: bool = False) -> None:
    """A sentence for the person, on standard error."""
    if not quiet:
        print(text, file=sys.stderr)


def fail(text: str, code: int) -> typer.Exit:
    """The end of a command that could not do its work."""
    print(text if code == 130 else f"Error: {text}", file=sys.stderr)
    return typer.Exit(code)


def command(function: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors are a sentence and an exit code."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings():
                # The columns of a file are found by name where both have names, and by place where not.
                warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
                return function(*args, **kwargs)
        except BrokenPipeError:
            # Whoever read standard output has closed it; Python must not try to flush it once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt as error:
            raise fail(str(error) or "interrupted.", 130) from None
        except (ArithmeticError, ValueError, OSError, MemoryError, ImportError) as error:
            code = _exit_code(error)
            if code == 1:
                raise
            raise fail(str(error), code) from None

    return run


def _exit_code(error: Exception) -> int:
    from made.errors import DataError, Diverged, ModelError, QuestionError

    for kinds, code in (
        ((DataError, MemoryError), 3),
        (ModelError, 4),
        (Diverged, 5),
        ((QuestionError, OSError, ImportError), 2),
    ):
        if isinstance(error, kinds):
            return code
    # scikit-learn's error for a parameter that is not allowed is known by name, to be spared the import.
    return 2 if type(error).__name__ == "InvalidParameterError" else 1


def usage(text: str) -> typer.Exit:
    """The end of a command that was not well put."""
    return fail(text, 2)


def print_json(value: Any) -> None:
    """JSON on standard output; what is not a finite number is null."""
    print(json.dumps(_finite(value), indent=2, default=_python))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and value - value != 0 else value


def _python(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def load(folder: Path, seed: int | None = None, masks: int | None = None, quiet: bool = False) -> MADE:
    """A model from its folder, with another seed or number of masks if told."""
    from made.estimator import MADE

    model = MADE.load(folder)
    # Whatever the model was fitted on, rows are pyarrow tables here, which hold text and write every kind of file.
    model._template = model.model_.schema.blank(named=True)
    if not model.model_.finished:
        note(f"Note: the training of {folder} is not finished; these are its best weights so far.", quiet)
    if seed is not None:
        model.random_state = seed
    if masks is not None:
        if model._masks() is None:
            raise usage(f"'--masks' is for a model of unlimited masks; this one has {model.masks}, and uses all.")
        model.evaluation_masks = masks
    return model


def is_file(source: str) -> bool:
    """Whether this is a file or standard input, and no named set."""
    path = Path(source)
    return source == "-" or path.exists() or path.suffix.partition(":")[0] in (".csv", ".parquet", ".npy", ".npz")


def rows_for(source: str, split: str) -> tuple[Any, tuple[int, int] | None]:
    """Rows from a file, standard input or a named set (of which ``split``, unless it is named); an image's shape."""
    from made import datasets, files
    from made.errors import DataError

    if is_file(source):
        return files.read(source), None
    name, chosen = datasets.split(source)
    if not datasets.known(name):
        raise DataError(
            f"{source!r} is neither a file nor a named set: the sets are {', '.join(datasets.NAMES)}; files end in "
            ".csv, .parquet, .npy or .npz."
        )
    data = datasets.load(name)
    return getattr(data, chosen or split), data.image


def page_for(command: str, out: str | None, data: str) -> Path:
    """The file for a page of a command, a .html file or one in a folder; that it can be written is known before work.

    A page of the same command is replaced, any other file refused.
    """
    from made.html import generator

    stem = "standard-input" if data == "-" else re.sub(r"[^\w.-]+", "-", Path(data).stem)
    path = Path(f"{command}-{stem}.html" if out is None else out)
    if path.suffix.lower() not in (".html", ".htm"):
        if path.suffix and not path.is_dir():
            raise usage(f"'--out' should end in .html, or be a folder, not {str(path)!r}.")
        path = path / f"{command}.html"
    if path.exists() and not (path.is_file() and generator(command).encode() in path.read_bytes()[:1000]):
        raise usage(f"'--out': {path} is there, and is not a page of `made {command}`: choose another name.")
    there = next(folder for folder in (path.parent, *path.parent.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise usage(f"'--out': cannot write to {path}: choose another place.")
    return path


def write_page(path: Path, page: str) -> None:
    """Write a page, whole or not at all, with the folders that it is in."""
    from made.files import atomic

    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(page.encode())


def place(name: str, model: MADE) -> str | int:
    """A column by its name, or, if there is none of it, by its number."""
    return int(name) if name not in model.model_.schema.names and name.isdigit() else name


def assignments(option: str, text: str | None, model: MADE) -> dict[str | int, Any] | None:
    """'a=1, b=x' as columns and values; a value may be quoted."""
    if text is None:
        return None
    known: dict[str | int, Any] = {}
    for part in next(csv.reader([text], skipinitialspace=True), []):
        name, sign, value = (each.strip() for each in part.partition("="))
        if not sign or not name or not value:
            raise usage(f"'{option}' should be such as 'Status=bad, Home=rent', not {part!r}.")
        known[place(name, model)] = _number(value)
    return known


def _number(value: str) -> Any:
    """A value as a number, if it looks like one: the model's columns know what to make of either."""
    try:
        number = float(value)
    except ValueError:
        return value.strip("'\"")
    return number if math.isfinite(number) else value


def columns_of(rows: Any, model: MADE, quiet: bool, lacks: int | None = None) -> Any:
    """The columns of a table that the model knows, in its order; others are left out, with a note.

    One column, ``lacks`` by its number, need not be there.
    """
    from made.errors import DataError

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


def show(rows: Any, out: str | None, as_json: bool, quiet: bool, names: list[str] | None = None) -> None:
    """A table, to a file or to standard output."""
    from made import files

    if out is not None and out != "-":
        files.write(rows, out, names=names)
        if as_json:
            print_json({"rows": len(rows), "out": out})
        else:
            note(f"{len(rows)} rows written to {out}.", quiet)
    elif as_json:
        if hasattr(rows, "column_names"):
            columns, matrix = rows.column_names, [list(row.values()) for row in rows.to_pylist()]
        else:
            columns, matrix = names, rows.tolist()
        print_json({"columns": columns, "rows": matrix})
    else:
        files.write(rows, "-", names=names)
