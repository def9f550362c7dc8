"""`made demo`: what `made` does, on data that comes with it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument

from made.cli.demo.digits import demo_digits
from made.cli.demo.penguins import demo_penguins
from made.cli.errors import command, fail, usage
from made.cli.options import option


class Part(StrEnum):
    """The parts of the demo."""

    penguins = "penguins"
    digits = "digits"


@command
def demo(
    part: Annotated[
        Part, Argument(help="penguins: a table is learned and queried; digits: Figure 3 of the paper, in small.")
    ] = Part.penguins,
    out: Annotated[Path, option("Folder for the model and all other files.")] = Path("demo"),
    seed: Annotated[int, option("Random seed.", min=0, max=2**32 - 1)] = 0,
) -> None:
    """Learn a table of penguins, fill its missing values, explain its oddest rows, answer questions, write a report.

    `made demo digits` trains on handwritten digits instead, compares the model with simpler ones, and draws new digits.
    Both take less than a minute on two cores.
    """
    from made.model.folder import check_replaceable, is_model

    check_replaceable(out / "model")
    for file in ("filled.csv", "samples.png"):
        if (out / file).exists() and not is_model(out / "model"):
            raise usage(f"'--out': {out / file} was not written by `made demo`: choose another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"'--out': cannot write to {out}: {error.strerror or error}.", 3) from None
    (demo_penguins if part is Part.penguins else demo_digits)(out, seed)
