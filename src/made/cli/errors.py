"""Errors as a sentence on standard error and an exit code."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer

from made.cli.printing import mode, note, print_error
from made.cli.signals import WORDS, print_stopped, signal_of
from made.display import shortened
from made.errors import (
    ClusterError,
    DataError,
    Diverged,
    MadeError,
    ModelError,
    ParameterError,
    QuestionError,
    UnseenWarning,
    WorkerLost,
    is_out_of_memory,
)
from made.hints import for_command_line

EXIT_CODES = {
    0: "done",
    1: "internal error; please report it",
    2: "wrong usage: an argument, a parameter or a question",
    3: "invalid data, or a file that cannot be read or written",
    4: "invalid model",
    5: "training diverged",
    6: "another worker was lost; --resume continues the run",
    130: "stopped by SIGINT (Ctrl-C)",
    143: "stopped by SIGTERM",
}
LONGEST = 4000  # characters of an error's message

MODE = {
    "as_json": Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")],
    "quiet": Annotated[bool, typer.Option("--quiet", help="Print no progress bar and no notes.")],
}


def fail(text: str, code: int) -> typer.Exit:
    """Print an error, and return the exception that ends the command."""
    print_error(f"Error: {shortened(text, LONGEST)}")
    return typer.Exit(code)


def usage(text: str) -> typer.Exit:
    """See :func:`fail`: wrong usage, exit code 2."""
    return fail(text, 2)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Decorator of a command: it has --json and --quiet, and every error becomes a sentence and an exit code."""

    @functools.wraps(function)
    def run(as_json: bool, quiet: bool, **arguments: Any) -> None:
        mode.json, mode.quiet = as_json, quiet
        try:
            with warnings.catch_warnings(), for_command_line():
                unseen = UnseenWarning.collected()  # one note for the warnings of all batches
                function(**arguments)
                sys.stdout.flush()
                if found := UnseenWarning.together(unseen):
                    note(f"Note: {found}")
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(report(error)) from None
        finally:
            mode.json = mode.quiet = mode.silent = False

    return with_options(run, MODE, default=False)


def with_options(function: Callable[..., None], options: Mapping[str, Any], default: Any) -> Callable[..., None]:
    """Add options, given by their annotations, to a command; they replace its ``**`` parameter, if any."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    every = [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    every += [inspect.Parameter(name, kind, default=default, annotation=each) for name, each in options.items()]
    function.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in every}
    return function


def report(error: BaseException) -> int:
    """Print an error as a sentence, and return the exit code."""
    code = _exit_code(error)
    if code in (0, 3):
        _give_up_standard_output()
    if os.environ.get("MADE_DEBUG") and code:
        print_error("".join(traceback.format_exception(error)))
    if code > 128:
        print_stopped(_sentence(error, code))
    elif code:
        fail(_sentence(error, code), code)
    return code


def _exit_code(error: BaseException) -> int:
    if number := signal_of(error):
        return 128 + number
    if isinstance(error, BrokenPipeError):  # the reader of standard output has closed it
        return 0
    for kinds, code in (
        (ModelError, 4),
        (Diverged, 5),
        (WorkerLost, 6),
        # Includes existing files and missing packages, which other arguments would avoid.
        ((QuestionError, ParameterError, FileExistsError, ImportError), 2),
        ((ClusterError, DataError, OSError, MemoryError, UnicodeError, EOFError, OverflowError, RecursionError), 3),
    ):
        if isinstance(error, kinds):
            return code
    # Library errors are recognized by the name of their module, without importing it.
    if type(error).__module__.partition(".")[0] in ("pyarrow", "zipfile", "csv", "_csv", "tomllib"):
        return 3
    return 3 if is_out_of_memory(error) else 1


def _sentence(error: BaseException, code: int) -> str:
    text = str(error)
    if isinstance(error, MadeError) and error.argument:  # a parameter of Python is an option here
        text = text.replace(f"'{error.argument}'", f"'--{error.argument.replace('_', '-')}'")
    if code > 128:
        return text if text and isinstance(error, KeyboardInterrupt) else WORDS[code - 128]
    if (
        isinstance(error, (ClusterError, DataError, ModelError, ParameterError, QuestionError, Diverged, WorkerLost))
        or code == 2
    ):
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
        return "the input is nested too deeply."
    if is_out_of_memory(error):
        return f"there is not enough memory: use fewer rows at a time, or a smaller network ({first or 'no details'})."
    if isinstance(error, OverflowError):
        return f"a number is too large: {first}."
    return f"{first}." if first else f"this cannot be read or written: {type(error).__name__}."


def _give_up_standard_output() -> None:
    """Close a standard output that cannot be written to: Python would flush it at exit, and print a traceback."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)
