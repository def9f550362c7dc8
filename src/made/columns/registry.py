"""The registered column kinds, by the name that config.json has for them."""

from __future__ import annotations

import importlib
import os
import re

from made.columns.base import Column
from made.columns.discrete import Binary, Categorical
from made.columns.ordinal import Ordinal
from made.columns.point_masses import PointMasses
from made.errors import ModelError

# Keys of a column in config.json that do not belong to its kind.
FIELD_KEYS = ("name", "kind", "values", "dtype", "missing", "other", "storage", "written")
# The environment variable that names modules, separated by commas, which register kinds when they are imported.
PLUGINS = "MADE_PLUGINS"
# Words that mean something else in ``columns=``.
RESERVED = ("auto", "real", "drop")

_KINDS: dict[str, type[Column]] = {}


def register(kind: type[Column]) -> type[Column]:
    """Register a column kind under its name, so that saved models with such columns can be loaded; a class decorator.

    Registering another class under the same name replaces the first, as re-importing a module does.
    """
    if not (isinstance(kind, type) and issubclass(kind, Column)):
        raise ValueError(f"'kind' should be a subclass of made.Column, not {kind!r}.")
    name = getattr(kind, "kind", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in RESERVED:
        raise ValueError(
            f"'{kind.__name__}.kind' should be a name such as 'poisson' (lower-case letters, digits and _; not "
            f"{', '.join(RESERVED)}), not {name!r}."
        )
    builtin = name in _KINDS and _KINDS[name].__module__.startswith("made.")
    if builtin and not kind.__module__.startswith("made."):
        raise ValueError(f"'{kind.__name__}.kind' should not be the name of a built-in kind, {name!r}.")
    _KINDS[name] = kind
    return kind


def find_kind(name: str) -> type[Column]:
    """The kind of a name. Modules in the environment variable MADE_PLUGINS are imported first, if it is unknown."""
    if name not in _KINDS:
        for module in filter(None, map(str.strip, os.environ.get(PLUGINS, "").split(","))):
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise ModelError(
                    f"the module {module!r} in the environment variable {PLUGINS} cannot be imported: {error}. Name a "
                    "module that Python finds, such as with PYTHONPATH=."
                ) from error
    if name not in _KINDS:
        raise ModelError(
            f"the column kind {name!r} is not registered: import the module that defines it and calls "
            f"made.register(...), or name that module in the environment variable {PLUGINS}. The registered kinds are "
            f"{', '.join(_KINDS)}."
        )
    return _KINDS[name]


def kind_names() -> tuple[str, ...]:
    """The names of all registered kinds, the built-in ones first."""
    return tuple(_KINDS)


register(Binary)
register(Categorical)
register(Ordinal)
register(PointMasses)  # also makes Numeric, which has the same name
