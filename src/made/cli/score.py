"""`made score`: the log-likelihood of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from made.cli.asking import Asking
from made.cli.errors import command
from made.cli.inputs import load
from made.cli.on_error import RowFilter
from made.cli.options import DATA, GIVEN, MASKS, MODEL, ON_ERROR, OUT, RAY, SEED, OnError
from made.cli.output import Output
from made.cli.parsing import columns
from made.cli.printing import mode, print_json
from made.cli.questions import RowQuestion

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class LogProbs(RowQuestion):
    """The log-likelihood of each row, given some columns."""

    given: list[str | int] | None

    def tables(self, row_filter: RowFilter, rows: Any, random: torch.Generator) -> dict[str, Any]:
        return {"log_prob": row_filter.log_probs(rows, self.given).reshape(-1, 1)}


@command
def score(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    given: GIVEN = None,
    on_error: ON_ERROR = OnError.stop,
    masks: MASKS = None,
    ray: RAY = None,
    seed: SEED = None,
) -> None:
    """Print the log-likelihood log p of each row, in nats.

    Missing values are not observed: the result is the likelihood of the observed ones.
    """
    model = load(folder, masks)
    question = LogProbs(masks=masks, skip=on_error is OnError.skip, given=columns("--given", given, model))
    asking = Asking(question, model, folder, data, ray)
    if mode.json and out in (None, "-"):
        values = [float(value) for answer in asking.answers() for value in answer.tables["log_prob"][:, 0]]
        print_json({"log_prob": values} | asking.facts())
        return
    asking.write({"log_prob": Output(out, ["log_prob"])})
