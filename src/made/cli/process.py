"""The process around a command: its standard streams, its imports, its signals and its exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from made.cli import signals

_own_process = False  # whether this process runs one command and nothing else
_at_once = False  # whether it ends without finalizing the interpreter
_words: list[str] = []


def main() -> None:
    """Run the command line of this process, and exit."""
    global _own_process
    _own_process = True
    _open_streams()
    with signals.handled():
        code = run(sys.argv[1:])
    if _at_once:
        _exit(code)
    sys.exit(code)


def end_at_once() -> None:
    """End this process without finalizing the interpreter, once the command is done.

    Threads of gloo and of Ray may still want the interpreter then, which aborts the process: a command that has
    succeeded would count as killed.
    """
    global _at_once
    _at_once = True


def end_with(error: Exception) -> None:
    """End this process with an error, from whichever thread."""
    from made.cli.errors import report

    _exit(report(error))


def _exit(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(words: Sequence[str]) -> int:
    """Run a command line and return its exit code; see :data:`made.cli.errors.EXIT_CODES`."""
    signals.reset()
    _words[:] = words
    try:
        try:
            _run(list(words))
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


def words() -> list[str]:
    """The arguments of the running command."""
    return list(_words)


def _run(words: list[str]) -> None:
    with quick_imports():
        import typer

        from made.cli.commands import load_app

        group: Any = typer.main.get_command(load_app(words[0] if words else None))
    path = ["made"]
    # A command's help comes from that command itself: parsing the words before it loads pydantic, which takes longer.
    while words[-1:] == ["--help"] and words[0] in getattr(group, "commands", {}):
        group = group.commands[words[0]]
        path.append(words.pop(0))
    group.main(args=words, prog_name=" ".join(path))


def _open_streams() -> None:
    """Open /dev/null in place of closed standard streams, so that no file opened later gets their number."""
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
    # Characters that the terminal's encoding lacks are escaped instead of raising an error.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import libraries with the garbage collector off, which saves a fifth of the time."""
    if not _own_process:
        yield
        return
    gc.disable()
    try:
        yield
        _keep_pandas_out()
    finally:
        gc.freeze()  # later collections, and the one at exit, skip the modules, too
        gc.enable()


class _NoPandas:
    """A module finder that hides pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _keep_pandas_out() -> None:
    """Create pyarrow's first array while pandas is hidden.

    Otherwise pyarrow imports pandas, to check whether the values are a series. It does so only once, and again when a
    table is converted to a data frame.
    """
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None or "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pyarrow.array([])
    finally:
        sys.meta_path.remove(_NoPandas)
