"""`made score`: the log-likelihood of each row."""

from __future__ import annotations

from made.cli.errors import command
from made.cli.inputs import load
from made.cli.on_error import RowFilter
from made.cli.options import DATA, GIVEN, MASKS, MODEL, ON_ERROR, OUT, SEED, OnError
from made.cli.output import Output
from made.cli.printing import mode, print_json


@command
def score(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    given: GIVEN = None,
    on_error: ON_ERROR = OnError.stop,
    masks: MASKS = None,
    seed: SEED = None,
) -> None:
    """Print the log-likelihood log p of each row, in nats.

    Missing values are not observed: the likelihood is that of the observed values.
    """
    row_filter = RowFilter(load(folder, masks), on_error)
    parts = row_filter.log_probs(data, given)
    if mode.json and out in (None, "-"):
        values = [float(value) for log_p in parts for value in log_p]
        print_json({"log_prob": values} | row_filter.facts())
        return
    with Output(out, ["log_prob"]) as output:
        for log_p in parts:
            output.write(log_p.reshape(-1, 1))
        output.facts = row_filter.facts()
    row_filter.note()
