"""The README.md of a model folder."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from made.display import visible
from made.tables.schema import Schema
from made.training.state import Epoch

__all__ = ["card"]

MOST_COLUMNS = 100


def card(config: Mapping[str, Any], schema: Schema, history: Sequence[Epoch]) -> str:
    """The text, in Markdown."""
    parameters, scores, data = config["parameters"], config["scores"], config["data"]
    fields = schema.fields
    lines = [
        "# A model of `made`",
        "",
        "A distribution over the rows of a table: query the likelihood of a row, of part of it, or of one part given",
        "another; sample new rows; impute missing values; find what is odd about a row.",
        "",
        "## Data",
        "",
        f"{data['rows']} training rows, {data['valid_rows']} validation rows; {len(fields)} columns: {schema.kinds()}.",
        "",
        "| column | kind | values |",
        "|---|---|---|",
        *(f"| {_cell(field.name)} | {field.kind} | {_cell(field.about())} |" for field in fields[:MOST_COLUMNS]),
    ]
    if len(fields) > MOST_COLUMNS:
        lines.append(f"| ... and {len(fields) - MOST_COLUMNS} more | | |")
    hidden = " x ".join(map(str, parameters["hidden_sizes"])) or "no"
    lines += [
        "",
        "## Model",
        "",
        f"A masked autoencoder with {hidden} hidden units, {parameters['masks']} masks, {parameters['activation']};",
        f"{scores.get('parameters')} parameters, trained by {parameters['optimizer']} for {len(history)} epochs.",
        "",
        "## Scores",
        "",
        "Mean negative log-likelihood of the ensemble in nats; lower is better.",
        "",
        "| rows | NLL |",
        "|---|---:|",
        f"| validation | {_number(scores.get('valid_nll'))} |",
        "",
        "The epoch was selected by the validation rows; for an unbiased figure, evaluate on held-out rows.",
        "",
        "## Use",
        "",
        "```python",
        "from made import MADE",
        "",
        'model = MADE.load("this folder")',
        "model.score_samples(rows)  # log p of each row; missing values are not observed",
        "model.sample(10)",
        "model.impute(rows)",
        "```",
        "",
        "```console",
        "$ made evaluate FOLDER rows.csv",
        "$ made sample FOLDER -n 10",
        "```",
        "",
        f"Written by made {_cell(config['made'])}. `config.json` has all its parameters.",
        "",
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    r"""Text of unknown origin as it is, in a cell of a Markdown table: no markup, no HTML, nothing for a terminal.

    Example:
        >>> print(_cell("<b>|_a_b`"))
        &lt;b&gt;\|\_a_b\`
    """
    shown = html.escape(visible(text), quote=False)
    # An underscore between letters is no emphasis.
    return re.sub(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", shown)


def _number(value: float | int | None) -> str:
    return "none" if value is None else f"{value:.3f}"
