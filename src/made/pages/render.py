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
from made.pages.text import clip, number, percent, printable, short, signed


def render(template: str, *, command: str, **context: Any) -> str:
    """A page from a template, such as ``report.html``, by the command that writes it, such as ``report``."""
    context |= {"generator": generator(command), "version": __version__, "command": command}
    return _environment().get_template(template).render(context)


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
    environment.filters |= {each.__name__: each for each in (clip, number, percent, short, signed)}
    return environment


def _finalize(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
