"""Parameters of the estimator from options and TOML files, for `made fit` and `made tune`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from made.cli.errors import fail, usage
from made.cli.parsing import kinds
from made.display import shortened
from made.parameters import PARAMETERS

LARGEST_TOML = 1 << 20


def read_toml(option: str, path: Path) -> dict[str, Any]:
    """Read a TOML file of at most 1 MB; - in names becomes _."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_TOML + 1)
        if len(text) > LARGEST_TOML:
            raise ValueError(f"it has more than {LARGEST_TOML:,} bytes")
        content = tomllib.loads(text.decode())
    except RecursionError:
        raise fail(f"'{option}': {path} cannot be read: it is nested too deeply.", 3) from None
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).rstrip(".")
        raise fail(f"'{option}': {path} cannot be read: {reason}.", 3) from None
    return {name.replace("-", "_"): value for name, value in content.items()}


def parameters_in(path: Path | None) -> dict[str, Any]:
    """The parameters in a TOML file, if there is one."""
    if path is None:
        return {}
    content = read_toml("--config", path)
    if "seed" in content:
        content["random_state"] = content.pop("seed")
    if unknown := [name for name in content if name not in PARAMETERS]:
        known = ", ".join(PARAMETERS)
        raise usage(f"'--config': {path} has the unknown parameter {unknown[0]!r}: choose from {known}.")
    return content


def value_of(name: str, value: Any) -> Any:
    """The value of an option as the estimator takes it."""
    kind = PARAMETERS[name].kind
    option = f"'--{name.replace('_', '-')}'"
    if kind == "seed" and not (type(value) is int and 0 <= value < 2**32):
        raise usage(f"'--seed' should be a whole number from 0 to 2**32 - 1, not {value!r}.")
    if kind == "sizes" and value != PARAMETERS[name].word:
        parts = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)):
            raise usage(f"{option} should be a list of whole numbers such as [500, 500], not {value!r}.")
        try:
            sizes = tuple(int(part) for part in parts)
        except (TypeError, ValueError):
            sizes = ()
        if [str(size) for size in sizes] != [str(part).strip() for part in parts]:
            given = shortened(str(value), 80)
            raise usage(f"{option} should be whole numbers such as 500,500, or auto, not {given!r}.")
        return sizes
    if kind in ("masks", "auto", "auto float") and isinstance(value, str):
        word, whole = PARAMETERS[name].word, PARAMETERS[name].whole
        try:
            return word if value == word else int(value) if whole else float(value)
        except ValueError:
            number = "a whole number" if whole else "a number"
            raise usage(f"{option} should be {number}, or {word}, not {shortened(value, 80)!r}.") from None
    if name == "clip" and value == 0:
        return None
    if kind == "columns" and isinstance(value, str) and "=" in value:
        return kinds(option.strip("'"), value)
    return value
