"""Errors as a sentence on standard error and an exit code."""

from __future__ import annotations

import functools
import os
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

import typer

from made.cli.printing import note
from made.cli.signals import WORDS, print_stopped, signal_of
from made.display import shortened
from made.errors import DataError, Diverged, ModelError, ParameterError, QuestionError, UnseenWarning, is_out_of_memory
from made.hints import for_command_line

__all__ = ["EXIT_CODES", "command", "fail", "report", "usage"]

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

P = ParamSpec("P")
R = TypeVar("R")


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
        ((QuestionError, ParameterError, FileExistsError, ImportError), 2),
        ((DataError, OSError, MemoryError, UnicodeError, EOFError, OverflowError, RecursionError), 3),
    ):
        if isinstance(error, kinds):
            return code
    # Errors of libraries are known by the name of their module, which spares the imports.
    if type(error).__module__.partition(".")[0] in ("pyarrow", "zipfile", "csv", "_csv", "tomllib"):
        return 3
    return 3 if is_out_of_memory(error) else 1


def _sentence(error: BaseException, code: int) -> str:
    text = str(error)
    if code > 128:
        return text if text and isinstance(error, KeyboardInterrupt) else WORDS[code - 128]
    if isinstance(error, (DataError, ModelError, ParameterError, QuestionError, Diverged)) or code == 2:
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
    if is_out_of_memory(error):
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
