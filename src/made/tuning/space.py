"""The search space: a list of choices or a range for each parameter.

A space is plain data, as in TOML and in the study: a list ``[choice, ...]``, or a range
``{"low": ..., "high": ..., "log": ..., "step": ...}``. Sizes of hidden layers are text, ``"500,500"``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from made.errors import ParameterError, QuestionError
from made.estimator import MADE
from made.parameters import PARAMETERS, defaults
from made.training.config import OPTIMIZERS

Space: TypeAlias = dict[str, Any]

NUMBERS = ("float", "int", "auto", "auto float", "masks")  # kinds of parameters that can have a range
# Parameters that cannot be searched, and why.
NOT_SEARCHED = {
    "columns": "likelihoods under different kinds of columns cannot be compared; it can be fixed",
    "validation_fraction": "all trials are compared on the same rows; it can be fixed",
    "random_state": "all trials have the seed of the search",
    "device": "it only changes the time; it can be fixed",
    "tensorboard": "it is for one model; refit the best one with it",
    "verbose": "trials do not report while they train",
}


def default_space(fixed: Mapping[str, Any] | None = None, *, missing: bool = False) -> Space:
    """The default space, without fixed parameters, and without masks if values are missing, which needs unlimited ones.

    Example:
        >>> default_space({"optimizer": "sgd"})["learning_rate"]
        {'low': 0.01, 'high': 1.0, 'log': True, 'step': None}
    """
    fixed = fixed or {}
    rate = OPTIMIZERS[fixed.get("optimizer", defaults()["optimizer"])][1]
    space: Space = {
        "hidden_sizes": ["250", "500", "500,500", "1000", "1000,1000"],
        "masks": [1, 8, 32, "unlimited"],
        "activation": ["relu", "softplus", "tanh", "silu"],
        "direct": [True, False],
        "residual": [False, True],
        "dropout": _range(0.0, 0.6),
        "learning_rate": _range(rate / 10, rate * 10, log=True),
        "schedule": ["constant", "linear", "cosine"],
        "weight_decay": _range(1e-5, 1.0, log=True),
        "average": [0.0, 0.99, 0.999],
    }
    return {name: entry for name, entry in space.items() if name not in fixed and not (missing and name == "masks")}


def check_fixed(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """The fixed parameters, validated, as JSON stores them."""
    for name in fixed:
        if name not in PARAMETERS:
            raise QuestionError(f"{name!r} cannot be fixed: the parameters are {', '.join(PARAMETERS)}.")
    if fixed.get("tensorboard") is not None:
        raise QuestionError("'tensorboard' cannot be fixed: it is for one model; refit the best one with it.")
    kept = {name: value for name, value in fixed.items() if name not in ("random_state", "tensorboard", "verbose")}
    MADE(**kept).check_parameters()
    plain: dict[str, Any] = json.loads(json.dumps(kept, default=_plain))
    return plain


def check_space(space: Mapping[str, Any], fixed: Mapping[str, Any]) -> Space:
    """A space in its plain form, with every value validated by the estimator."""
    if not space:
        raise QuestionError("the space has no parameters: there is nothing to search.")
    checked: Space = {}
    for name, entry in space.items():
        if name not in PARAMETERS:
            raise QuestionError(f"the space has {name!r}, but the parameters are {', '.join(PARAMETERS)}.")
        if name in NOT_SEARCHED:
            raise QuestionError(f"the space has {name!r}, which is not searched: {NOT_SEARCHED[name]}.")
        if name in fixed:
            raise QuestionError(f"{name!r} is both fixed and in the space: leave it out of one of them.")
        checked[name] = _check_range(name, entry) if isinstance(entry, Mapping) else _check_choices(name, entry)
        values = checked[name] if isinstance(checked[name], list) else [checked[name]["low"], checked[name]["high"]]
        for value in values:
            try:
                MADE(**estimator_values({**fixed, name: value})).check_parameters()
            except ParameterError as error:
                raise QuestionError(f"the space, {name!r}: {error}") from None
    return checked


def estimator_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values sampled from a space, as the estimator takes them.

    Example:
        >>> estimator_values({"hidden_sizes": "500,500", "clip": 0})
        {'hidden_sizes': (500, 500), 'clip': None}
    """
    taken = dict(values)
    if isinstance(sizes := taken.get("hidden_sizes"), str) and sizes != "auto":
        taken["hidden_sizes"] = tuple(int(size) for size in sizes.split(",") if size)
    if taken.get("clip") == 0:
        taken["clip"] = None
    return taken


def _range(low: float, high: float, *, log: bool = False, step: float | None = None) -> dict[str, Any]:
    return {"low": low, "high": high, "log": log, "step": step}


def _check_choices(name: str, entry: Any) -> list[Any]:
    if not isinstance(entry, (list, tuple)) or not entry:
        wanted = "a list of choices, or a range {low = ..., high = ...}"
        raise QuestionError(f"the space, {name!r}: it should be {wanted}, not {entry!r}.")
    choices = [_choice(name, value) for value in entry]
    texts = [json.dumps(value) for value in choices]
    if twice := [text for i, text in enumerate(texts) if text in texts[:i]]:
        raise QuestionError(f"the space, {name!r}: {twice[0]} is listed twice.")
    return choices


def _choice(name: str, value: Any) -> Any:
    value = _plain(value) if hasattr(value, "tolist") else value
    kind = PARAMETERS[name].kind
    if kind == "sizes" and value != "auto":
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [value]
        sizes = [str(part).strip() for part in parts]
        if not all(size.isdecimal() and not isinstance(part, bool) for size, part in zip(sizes, parts, strict=True)):
            raise QuestionError(f"the space, {name!r}: a choice should be sizes such as '500,500', not {value!r}.")
        return ",".join(str(int(size)) for size in sizes)
    if kind in ("auto", "masks") and isinstance(value, str) and value.isdecimal():
        return int(value)
    if not isinstance(value, (str, bool, int, float, type(None))) or (isinstance(value, float) and not _finite(value)):
        raise QuestionError(f"the space, {name!r}: a choice should be a word or a number, not {value!r}.")
    return value


def _check_range(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    start = f"the space, {name!r}:"
    if PARAMETERS[name].kind not in NUMBERS:
        raise QuestionError(f"{start} it is not a number and cannot have a range; give a list of choices.")
    if unknown := [key for key in entry if key not in ("low", "high", "log", "step")]:
        raise QuestionError(f"{start} a range has low, high, log and step, but not {unknown[0]!r}.")
    whole = PARAMETERS[name].kind not in ("float", "auto float")
    values = {key: _plain(entry.get(key)) for key in ("low", "high", "step")}
    for key, value in values.items():
        if (key != "step" or value is not None) and (not _finite(value) or (whole and not isinstance(value, int))):
            number = "a whole number" if whole else "a number"
            raise QuestionError(f"{start} {key!r} should be {number}, not {value!r}.")
    low, high, step = values.values()
    log = entry.get("log", False)
    if not isinstance(log, bool):
        raise QuestionError(f"{start} 'log' should be true or false, not {log!r}.")
    if not low < high:
        raise QuestionError(f"{start} 'low' should be below 'high', but they are {low!r} and {high!r}.")
    if log and (low <= 0 or step is not None):
        raise QuestionError(f"{start} a range with 'log' should have a 'low' above 0, and no 'step'.")
    if step is not None and not 0 < step <= high - low:
        raise QuestionError(f"{start} 'step' should be above 0, and at most {high - low!r}, not {step!r}.")
    if not whole:
        low, high, step = float(low), float(high), None if step is None else float(step)
    return _range(low, high, log=log, step=step)


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
