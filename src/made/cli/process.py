"""The process around a command: its standard streams, its signals and its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from made.cli import libraries, signals

if TYPE_CHECKING:
    import typer

__all__ = ["main", "run"]

LoadApp = Callable[[str | None], "typer.Typer"]


def main(load_app: LoadApp) -> None:
    """Run the command line that the shell was given, and exit.

    Arguments:
        load_app: imports the command that a word names, or all. It is called once signals are handled.
    """
    _open_streams()
    libraries.take_process()
    with signals.handled():
        code = run(sys.argv[1:], load_app)
    sys.exit(code)


def run(words: Sequence[str], load_app: LoadApp) -> int:
    """Run a command line and return its exit code; see :data:`made.cli.errors.EXIT_CODES`."""
    signals.reset()
    try:
        try:
            _run(list(words), load_app)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
    except BaseException as error:
        if number := signals.signal_of(error):
            code = 128 + number
        else:
            from made.cli.errors import report

            code = report(error)
    return signals.exit_code(code)


def _run(words: list[str], load_app: LoadApp) -> None:
    with libraries.quick_imports():
        import typer

        path, command = ["made"], typer.main.get_command(load_app(words[0] if words else None))
    # A command's help comes from that command itself: parsing the words before it loads pydantic, which takes longer.
    group: Any = command
    while words[-1:] == ["--help"] and words[0] in getattr(group, "commands", {}):
        group = group.commands[words[0]]
        path.append(words.pop(0))
    group.main(args=words, prog_name=" ".join(path))


def _open_streams() -> None:
    """Open /dev/null for standard streams that are closed, lest a file opened later takes their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    # A closed standard input is reported by the command that reads it.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    # A name that the terminal's encoding cannot show is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
