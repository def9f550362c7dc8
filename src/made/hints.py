"""Remedies in error messages, in the syntax of their reader: Python, or the command line.

An error that suggests another parameter is raised far from the interface. Inside :func:`for_command_line`, each hint is
written as an option of `made fit`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_command_line: ContextVar[bool] = ContextVar("command_line", default=False)


@contextmanager
def for_command_line() -> Iterator[None]:
    """Write hints as options of a command in this context."""
    token = _command_line.set(True)
    try:
        yield
    finally:
        _command_line.reset(token)


def hint(**parameters: Any) -> str:
    """Parameters of the estimator, as the reader would write them.

    Example:
        >>> hint(columns={"home, town": "drop"}, direct=False)
        "columns={'home, town': 'drop'}, direct=False"
        >>> with for_command_line():
        ...     print(hint(columns={"home, town": "drop"}, direct=False))
        --columns '"home, town=drop"' --no-direct
    """
    if not _command_line.get():
        return ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return " ".join(_option(name, value) for name, value in parameters.items())


def argument(name: str) -> str:
    """The name of an argument, as the reader knows it.

    Example:
        >>> argument("hidden_sizes")
        "'hidden_sizes'"
        >>> with for_command_line():
        ...     argument("hidden_sizes")
        "'--hidden-sizes'"
    """
    return f"'--{name.replace('_', '-')}'" if _command_line.get() else f"'{name}'"


def written_entry(name: str, value: str) -> str:
    """``name=value`` as one entry of a list with commas, quoted where needed."""
    entry = f"{name}={value}"
    if entry != entry.strip() or any(each in entry for each in ',"\r\n'):
        return '"' + entry.replace('"', '""') + '"'
    return entry


def _option(name: str, value: Any) -> str:
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return option if value else f"--no-{option[2:]}"
    if isinstance(value, Mapping):
        value = ",".join(written_entry(str(key), str(each)) for key, each in value.items())
    elif isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return f"{option} {shlex.quote(str(value))}"
