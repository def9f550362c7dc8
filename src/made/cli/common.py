"""What all commands share: options, data in and out, and what the exit code says."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from made.cli.signals import WORDS, print_stopped, signal_of
from made.display import shortened, visible
from made.errors import DataError, Diverged, ModelError, QuestionError, UnseenWarning
from made.hints import for_command_line

if TYPE_CHECKING:
    from made.estimator import MADE

__all__ = [
    "DATA",
    "EXIT_CODES",
    "JSON",
    "MODEL",
    "OUT",
    "QUIET",
    "SEED",
    "cell",
    "columns_of",
    "command",
    "fail",
    "is_file",
    "load",
    "note",
    "page_for",
    "print_json",
    "report",
    "rows_for",
    "say",
    "usage",
    "write_page",
]

# What the exit code of every command says.
EXIT_CODES = {
    0: "done",
    1: "an internal error, which is worth a report",
    2: "usage: an argument, a parameter or a question cannot be used",
    3: "data refused, or a file that cannot be read or written",
    4: "model refused",
    5: "training diverged",
    130: "stopped by SIGINT (Ctrl-C)",
    143: "stopped by SIGTERM",
}
LONGEST = 4000  # characters of an error's message

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


def say(text: str) -> None:
    """Print lines for the person on standard output; what names and values may do to a terminal is escaped."""
    print(visible(text, lines=True), flush=True)


def note(text: str, quiet: bool = False) -> None:
    """A sentence for the person, on standard error."""
    if not quiet:
        with suppress(OSError, ValueError):  # nobody can be told that nobody can be told
            print(visible(text, lines=True), file=sys.stderr, flush=True)


def cell(text: str) -> Any:
    """Text for a table on the terminal, as it is: no markup, nothing that the terminal would obey."""
    from rich.text import Text

    return Text(visible(text))


def fail(text: str, code: int) -> typer.Exit:
    """The end of a command that could not do its work."""
    text = shortened(text, LONGEST)
    note(f"Error: {text}")
    return typer.Exit(code)


def usage(text: str) -> typer.Exit:
    """The end of a command that was not well put."""
    return fail(text, 2)


def command(function: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors, whatever they are, become a sentence and an exit code."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings(), for_command_line():
                # The columns of a file are found by name where both have names, and by place where not.
                warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
                unseen = _counted_unseen()
                answer = function(*args, **kwargs)
                sys.stdout.flush()
                if unseen:
                    note(f"Note: {UnseenWarning(unseen)}", bool(kwargs.get("quiet")))
                return answer
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(report(error)) from None

    return run


def _counted_unseen() -> Counter[str]:
    """Values that training never saw, by column, which are counted from now on instead of warned of block by block."""
    counts: Counter[str] = Counter()
    show = warnings.showwarning

    def count(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        if isinstance(message, UnseenWarning):
            counts.update(message.counts)
        else:
            show(message, *args, **kwargs)

    warnings.simplefilter("always", UnseenWarning)
    warnings.showwarning = count
    return counts


def report(error: BaseException) -> int:
    """Say what happened in a sentence. Returns the exit code."""
    code = _exit_code(error)
    if code in (0, 3):
        _give_up_standard_output()
    if os.environ.get("MADE_DEBUG") and code:
        note("".join(traceback.format_exception(error)))
    if code > 128:
        print_stopped(_sentence(error, code))
    elif code:
        fail(_sentence(error, code), code)
    return code


def _exit_code(error: BaseException) -> int:
    if number := signal_of(error):
        return 128 + number
    if isinstance(error, BrokenPipeError):  # whoever read standard output has seen enough
        return 0
    for kinds, code in (
        (ModelError, 4),
        (Diverged, 5),
        # A name that is taken, and a package that is not installed: another argument, or none, would do.
        ((QuestionError, FileExistsError, ImportError), 2),
        ((DataError, OSError, MemoryError, UnicodeError, EOFError, OverflowError, RecursionError), 3),
    ):
        if isinstance(error, kinds):
            return code
    # Those of libraries are known by name, to be spared the imports.
    if type(error).__name__ == "InvalidParameterError":
        return 2
    if type(error).__module__.partition(".")[0] in ("pyarrow", "zipfile", "csv", "_csv", "tomllib"):
        return 3
    return 3 if _is_out_of_memory(error) else 1


def _is_out_of_memory(error: BaseException) -> bool:
    # torch has no exception of its own for memory that the system does not give.
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate" in str(error))


def _sentence(error: BaseException, code: int) -> str:
    text = str(error)
    if code > 128:
        return text if text and isinstance(error, KeyboardInterrupt) else WORDS[code - 128]
    if isinstance(error, (DataError, ModelError, QuestionError, Diverged)) or code == 2:
        return text
    first = (text.splitlines() or [""])[0].strip().rstrip(".")
    if code == 1:
        return (
            f"internal error: {type(error).__name__}: {first}. Please report it; MADE_DEBUG=1 in the environment shows "
            "the traceback."
        )
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)!r}: "
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}."
    if isinstance(error, RecursionError):
        return "this is nested too deeply to be read."
    if _is_out_of_memory(error):
        return f"there is not enough memory: use fewer rows at a time, or a smaller network ({first or 'no details'})."
    if isinstance(error, OverflowError):
        return f"a number is too large: {first}."
    return f"{first}." if first else f"this cannot be read or written: {type(error).__name__}."


def _give_up_standard_output() -> None:
    """If standard output cannot be written to, Python must not try once more at the end, which is a traceback."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)


def print_json(value: Any) -> None:
    """JSON on standard output; what is not a finite number is null."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """A value as JSON has it, whatever type a library gave it."""
    if value is None or isinstance(value, (str, bool)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if type(value) in (int, float):
        return value if isinstance(value, int) or math.isfinite(value) else None
    if not hasattr(value, "tolist") or getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
        return str(value)
    simple = value.tolist()
    if type(simple) is not type(value):
        return _plain(simple)
    return _plain(float(value)) if value.dtype.kind == "f" else str(value)  # longer than what Python has


def load(folder: Path, seed: int | None = None, masks: int | None = None, quiet: bool = False) -> MADE:
    """A model from its folder, with another seed or number of masks if told."""
    from made.estimator import MADE

    try:
        model = MADE.load(folder)
    except OSError as error:
        raise ModelError(f"{folder} cannot be read: {error.strerror or error}.") from None
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
        model._validate_params()
    return model


def is_file(source: str) -> bool:
    """Whether this is a file or standard input, and no named set."""
    path = Path(source)
    return source == "-" or path.exists() or path.suffix.partition(":")[0] in (".csv", ".parquet", ".npy", ".npz")


def rows_for(source: str, split: str) -> tuple[Any, tuple[int, int] | None]:
    """Rows from a file, standard input or a named set (of which ``split``, unless it is named); an image's shape."""
    from made.io import datasets, files

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
    from made.pages.html import generator

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
        raise fail(f"'--out': cannot write to {path}: choose another place.", 3)
    return path


def write_page(path: Path, page: str) -> None:
    """Write a page, whole or not at all, with the folders that it is in."""
    from made.io.files import atomic

    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(page.encode())


def columns_of(rows: Any, model: MADE, quiet: bool, lacks: int | None = None) -> Any:
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
