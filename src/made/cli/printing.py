"""What a command prints: text, tables and JSON on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from made.display import visible

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.text import Text


@dataclass
class Mode:
    """The options --json and --quiet of the command that runs; :func:`made.cli.errors.command` sets them."""

    json: bool = False
    quiet: bool = False
    silent: bool = False  # another process reports the errors, too

    @property
    def progress(self) -> bool:
        """Whether progress is shown."""
        return not (self.json or self.quiet)


mode = Mode()


def say(text: str) -> None:
    """Print text on standard output; control characters are escaped."""
    print(visible(text, lines=True), flush=True)


def note(text: str) -> None:
    """Print a note on standard error, unless --quiet is given."""
    if not mode.quiet:
        print_error(text)


def print_error(text: str) -> None:
    """Print text on standard error, --quiet or not."""
    if mode.silent:
        return
    with suppress(OSError, ValueError):  # there is nowhere to report that
        print(visible(text, lines=True), file=sys.stderr, flush=True)


def print_table(
    title: str | None,
    columns: Iterable[str],
    rows: Iterable[Sequence[str]],
    right: Collection[str] = (),
    simple: bool = False,
    least_width: int = 0,
    **looks: Any,
) -> None:
    """Print a table, its columns of numbers aligned to the ``right``; if ``simple``, only with a line below the header.

    What is not a terminal, such as a file, has a width of at least ``least_width``.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if simple:
        looks = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False} | looks
    table = Table(title=title and escape(visible(title)), **looks)
    for name in columns:
        number = name in right
        table.add_column(name, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, least_width))
    console.print(table)


@contextmanager
def progress_lines(*columns: Any, **looks: Any) -> Iterator[tuple[Progress, Callable[[str], None]]]:
    """A progress bar, shown if standard error is a terminal, and a function that prints a line above it."""
    from rich.console import Console
    from rich.progress import Progress

    bar = mode.progress and sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=not bar, **looks) as progress:

        def write(text: str) -> None:
            if bar:
                progress.console.print(_cell(text), highlight=False)
            elif mode.progress:
                note(text)

        yield progress, write


def _cell(text: str) -> Text:
    """Text without markup and control characters."""
    from rich.text import Text

    return Text(visible(text))


def print_json(value: Any) -> None:
    """Print JSON on standard output; numbers that are not finite are null."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """A value in the types of JSON."""
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
    return _plain(float(value)) if value.dtype.kind == "f" else str(value)  # longer than a Python float
