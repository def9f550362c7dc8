"""`made export`: a model as a file that ONNX Runtime evaluates, without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from made.cli.errors import command, usage
from made.cli.inputs import load
from made.cli.options import MASKS, MODEL, option
from made.cli.parsing import place
from made.cli.printing import mode, print_json, say
from made.display import visible

LEVELS = "0.05,0.5,0.95"


@command
def export(
    folder: MODEL,
    onnx: Annotated[Path, option("File to write, such as model.onnx.", False, "--onnx")],
    column: Annotated[str | None, option("Column to predict from the others.", "none: log p of a row")] = None,
    quantiles: Annotated[str, option("Levels of the quantiles of a column of numbers.")] = LEVELS,
    masks: MASKS = None,
) -> None:
    """Write a model as an ONNX graph: log p of a row, or the distribution of one column given the others.

    The graph has one input for each column: text, empty where it is missing, or numbers, NaN where they are missing.
    Needs the extra `onnx`.
    """
    levels = _levels(quantiles)
    from made.export import to_onnx  # raises an ImportError with a hint if onnx is missing

    model = load(folder, masks)
    chosen = None if column is None else place(column, model.schema.names)
    about = to_onnx(model, onnx, column=chosen, quantiles=levels)
    size = onnx.stat().st_size
    if mode.json:
        print_json({"file": str(onnx), "bytes": size} | about)
        return
    answer = "log p of a row" if chosen is None else f"{visible(about['column'])} given the other columns"
    say(f"Wrote {onnx} ({size:,} bytes): {answer}; one input for each of {len(about['columns'])} columns.")


def _levels(text: str) -> list[float]:
    try:
        levels = [float(part) for part in text.split(",")]
    except ValueError:
        levels = []
    if not levels or not all(0 <= level <= 1 for level in levels):
        raise usage(f"'--quantiles' should be probabilities, from 0 to 1, such as {LEVELS}, not {text!r}.")
    return levels
