"""HTML pages from the templates of this package.

A page is one file that loads nothing and runs no script. Whatever a template prints is escaped, unless it is
:class:`markupsafe.Markup`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from made._version import __version__
from made.pages.text import clip, percent, printable, short, signed

__all__ = ["generator", "render"]


def render(template: str, *, command: str, **context: Any) -> str:
    """A page from a template, such as ``report.html``, by the command that writes it, such as ``report``."""
    return (
        _environment()
        .get_template(template)
        .render(generator=generator(command), version=__version__, command=command, **context)
    )


def generator(command: str) -> str:
    """The beginning of the element that marks a page as written by a command, which may then replace it.

    Example:
        >>> print(generator("compare"))
        <meta name="generator" content="made compare
    """
    return Markup('<meta name="generator" content="made {}').format(command)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("made.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"clip": clip, "percent": percent, "short": short, "signed": signed, "number": _number}
    return environment


def _finalize(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _number(value: float, form: str) -> str:
    return signed(f"{value:{form}}")
