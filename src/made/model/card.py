"""The README.md of a model folder."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from made.display import visible
from made.tables.schema import Schema
from made.training.state import Epoch

MOST_COLUMNS = 100


def card(
    config: Mapping[str, Any], schema: Schema, history: Sequence[Epoch], given: Mapping[str, Any] | None = None
) -> str:
    """The text, in Markdown; ``given`` are the values that a view is conditioned on."""
    parameters, scores, fields = config["parameters"], config["scores"], schema.fields
    lines = [f"| {_cell(each.name)} | {each.kind} | {_cell(each.about())} |" for each in fields[:MOST_COLUMNS]]
    lines += [f"| ... and {len(fields) - MOST_COLUMNS} more | | |"] * (len(fields) > MOST_COLUMNS)
    nll = scores.get("valid_nll")
    return (
        Path(__file__)
        .with_suffix(".md")
        .read_text()
        .format(
            **config["data"],
            columns=len(fields),
            kinds=schema.kinds(),
            lines="\n".join(lines),
            view=_view(config, given or {}),
            hidden=" x ".join(map(str, parameters["hidden_sizes"])) or "no",
            parameters=parameters,
            count=scores.get("parameters"),
            epochs=len(history),
            nll="none" if nll is None else f"{nll:.3f}",
            version=_cell(config["made"]),
        )
    )


def _view(config: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    if config.get("view") is None:
        return ""
    about = ", ".join(map(_cell, config["view"]["columns"][:MOST_COLUMNS]))
    known = ", ".join(f"{_cell(name)} = {_cell(str(value))}" for name, value in given.items())
    return f"\nThis is a view of the model: of {about}{known and ', given ' + known}.\n"


def _cell(text: str) -> str:
    r"""Untrusted text, escaped for a cell of a Markdown table: no markup, no HTML, no control characters.

    Example:
        >>> print(_cell("<b>|_a_b`"))
        &lt;b&gt;\|\_a_b\`
    """
    shown = html.escape(visible(text), quote=False)
    # An underscore between letters does not start emphasis.
    return re.sub(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", shown)
