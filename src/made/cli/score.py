"""`made score`: the log-likelihood of each row."""

from __future__ import annotations

from made.cli.errors import command
from made.cli.log_probs import log_probs
from made.cli.models import load
from made.cli.on_error import ON_ERROR, OnError, RowFilter
from made.cli.options import DATA, GIVEN, JSON, MASKS, MODEL, OUT, QUIET, SEED
from made.cli.output import Output
from made.cli.printing import print_json

__all__ = ["score"]


@command
def score(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    given: GIVEN = None,
    on_error: ON_ERROR = OnError.stop,
    masks: MASKS = None,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Print the log-likelihood log p of each row, in nats.

    Missing values are not observed: the likelihood is that of the observed values.
    """
    model = load(folder, masks, quiet)
    row_filter = RowFilter(model, on_error)
    parts = log_probs(model, data, given, quiet, row_filter)
    if as_json and out in (None, "-"):
        values = [float(value) for log_p in parts for value in log_p]
        print_json({"log_prob": values} | row_filter.facts())
        return
    with Output(out, as_json, quiet, names=["log_prob"]) as output:
        for log_p in parts:
            output.write(log_p.reshape(-1, 1))
        output.facts = row_filter.facts()
    if not as_json:
        row_filter.note(quiet)
