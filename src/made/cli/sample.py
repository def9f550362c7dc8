"""`made sample`: draw new rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from made.cli.asking import Asking
from made.cli.errors import command
from made.cli.inputs import load
from made.cli.options import MODEL, OUT, RAY, SAFE_CSV, SEED, flag, option
from made.cli.output import Output
from made.cli.parsing import assignments
from made.cli.questions import Answer, Question
from made.errors import DataError

if TYPE_CHECKING:
    import torch

    from made.model.model import Model


@dataclass(frozen=True, kw_only=True)
class NewRows(Question):
    """New rows. A block is represented by its number of rows."""

    count: int
    given: dict[str | int, Any] | None
    temperature: float
    missing: bool

    def blocks(self, source: str) -> Iterator[int]:
        from made.queries.batches import blocks

        return (block.stop - block.start for block in blocks(self.count))

    def answer(self, model: Model, rows: int, random: torch.Generator) -> Answer:
        options: Any = {"temperature": self.temperature, "missing": self.missing, "random_state": random}
        try:
            return Answer({"rows": model.sample(rows, given=self.given, **options)}, rows)
        except DataError as error:  # its row number refers to the given values, not to a table
            raise DataError(error.message, column=error.column) from None


@command
def sample(
    folder: MODEL,
    count: Annotated[int, Option("--count", "-n", min=1, help="Number of rows.")] = 1,
    out: OUT = None,
    given: Annotated[str | None, option("Values to condition on, such as 'Status=bad, Home=rent'.", "none")] = None,
    safe_csv: SAFE_CSV = False,
    temperature: Annotated[float, option("From 0.001 to 1000; below 1, samples are closer to the mode.")] = 1.0,
    missing: Annotated[bool, flag("--missing", "Include missing values, distributed as in the training rows.")] = False,
    ray: RAY = None,
    seed: SEED = None,
) -> None:
    """Draw new rows, all or given the values of some columns."""
    model = load(folder)
    known = assignments("--given", given, model)
    question = NewRows(count=count, given=known, temperature=temperature, missing=missing, seed=seed)
    Asking(question, model, folder, None, ray).write({"rows": Output(out, model.schema.names, safe_csv)})
