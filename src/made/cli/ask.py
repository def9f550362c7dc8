"""Questions to a model: `evaluate`, `score`, `explain`, `info`."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from made.cli.common import DATA, JSON, MODEL, OUT, QUIET, SEED, cell, command, load, print_json, say
from made.cli.lists import columns
from made.cli.pieces import SAFE_CSV
from made.cli.skip import ON_ERROR, OnError, Sieve, spread
from made.errors import UnseenWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from made.estimator import MADE

__all__ = ["evaluate", "explain", "info", "score"]

MASKS = Annotated[
    int | None,
    typer.Option("--masks", min=1, help="How many masks a model of unlimited ones averages.", show_default=False),
]
GIVEN = Annotated[
    str | None,
    typer.Option("--given", help="Columns that are conditioned on, such as age,job.", show_default=False),
]


@command
def evaluate(
    model: MODEL,
    data: DATA,
    given: GIVEN = None,
    masks: MASKS = None,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """The mean negative log-likelihood of rows, with its 95 % interval. Of a named set, the test rows unless told."""
    import numpy as np
    import torch

    from made.queries.likelihood import mean_and_interval

    made = load(model, seed, masks, quiet)
    log_p = np.concatenate(list(_log_prob(made, data, given, quiet)))
    nll, half = mean_and_interval(-torch.from_numpy(log_p))
    family = made.model_.network.connectivities
    count = len(family.numbers(made._masks()))
    asked = made.n_features_in_ - len(set(_columns(given, made) or []))
    bits = nll / math.log(2) / max(asked, 1)
    if as_json:
        print_json({"nll": nll, "ci95": half, "rows": len(log_p), "masks": count, "bits_per_column": bits})
        return
    interval = "" if math.isnan(half) else f" ± {half:.3f} (95 %)"
    say(f"NLL {nll:.3f}{interval} nats, {bits:.4f} bits per column; {len(log_p)} rows, {count} masks.")


@command
def score(
    model: MODEL,
    data: DATA,
    out: OUT = None,
    given: GIVEN = None,
    on_error: ON_ERROR = OnError.stop,
    masks: MASKS = None,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """log p of each row, in nats. Empty entries are not observed: the likelihood is that of the others."""
    from made.cli.pieces import Output

    made = load(model, seed, masks, quiet)
    sieve = Sieve(made, on_error)
    parts = _log_prob(made, data, given, quiet, sieve)
    if as_json and out in (None, "-"):
        values = [float(value) for log_p in parts for value in log_p]
        print_json({"log_prob": values} | sieve.facts())
        return
    with Output(out, as_json, quiet, names=["log_prob"]) as output:
        for log_p in parts:
            output.write(log_p.reshape(-1, 1))
        output.facts = sieve.facts()
    if not as_json:
        sieve.note(quiet)


@command
def explain(
    model: MODEL,
    data: DATA,
    out: OUT = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many of the oddest rows to show.")] = 10,
    on_error: ON_ERROR = OnError.stop,
    safe_csv: SAFE_CSV = False,
    masks: MASKS = None,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Which entries make a row odd: the oddest rows, and the surprise of each column in nats.

    The surprise is -log p(x_d | x_<d), the mean over masks. With --out, that of every entry of every row.
    """
    import numpy as np

    from made.cli.pieces import Output, pieces

    made = load(model, seed, masks, quiet)
    names, sieve = list(made.model_.schema.names), Sieve(made, on_error)
    if out is not None:
        with Output(out, as_json, quiet, names=names, safe_csv=safe_csv) as output:
            for first, rows in pieces(data, made, quiet):
                rows = sieve.settle(rows)
                answers = sieve.answers(first, rows, made.surprise)
                output.write(spread(answers or [(np.arange(0), made.surprise(sieve.blank(rows)))], len(rows), names))
            output.facts = sieve.facts()
        if not as_json:
            sieve.note(quiet)
        return
    count, oddest = 0, _Oddest(top)
    for first, rows in pieces(data, made, quiet):
        rows = sieve.settle(rows)
        for places, log_p in sieve.answers(first, rows, made.score_samples):
            oddest.meet(first, rows, places, -log_p.astype(np.float64))
        count += len(rows)
    count -= sieve.skipped
    found: list[dict[str, Any]] = []
    for row, nll, one in oddest.rows:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenWarning)  # they were counted when the rows were scored
            surprise = made.surprise(one)
        each = np.asarray(surprise if hasattr(surprise, "dtype") else surprise.to_pandas(), dtype=np.float64)[0]
        ranked = [int(d) for d in np.argsort(-np.nan_to_num(each, nan=-np.inf), kind="stable") if each[d] == each[d]]
        framed = hasattr(one, "column_names")
        values = {names[d]: one[names[d]][0].as_py() if framed else one[0, d].item() for d in ranked}
        surprises = {names[d]: float(each[d]) for d in ranked}
        found.append({"row": row, "nll": nll, "surprise": surprises, "values": values})
    if as_json:
        print_json({"rows": found} | sieve.facts())
        return
    sieve.note(quiet)
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"The {len(found)} oddest of {count} rows, counted from 0; surprise in nats")
    for title in ("row", "NLL", "what is odd"):
        table.add_column(title, justify="left" if title == "what is odd" else "right")
    for fact in found:
        parts = [f"{name}={fact['values'][name]} ({value:.1f})" for name, value in list(fact["surprise"].items())[:4]]
        table.add_row(str(fact["row"]), f"{fact['nll']:.2f}", cell(", ".join(parts)))
    Console().print(table)


@command
def info(model: MODEL, seed: SEED = None, as_json: JSON = False, quiet: QUIET = False) -> None:
    """What a model is: its columns, its parameters, how it was trained."""
    made = load(model, quiet=True)
    stored, config = made.model_, made.model_.config
    facts = {
        "made": config.made,
        "finished": stored.finished,
        "epochs": made.n_epochs_,
        "best_epoch": made.best_epoch_,
        "valid_nll": made.valid_nll_,
        "parameters": sum(weight.numel() for weight in stored.network.state_dict().values()),
        "rows": config.data.rows,
        "valid_rows": config.data.valid_rows,
        "columns": [
            {"name": field.name, "kind": field.kind} | ({"values": list(field.values)} if field.values else {})
            for field in stored.schema.fields
        ],
        "settings": config.parameters,
    }
    if as_json:
        print_json(facts)
        return
    from made.tables.facts import KINDS

    kinds = ", ".join(
        f"{sum(field.kind == kind for field in stored.schema.fields)} {kind}"
        for kind in KINDS
        if any(field.kind == kind for field in stored.schema.fields)
    )
    state = "finished" if stored.finished else "not finished"
    nll = "" if made.valid_nll_ is None else f", validation NLL {made.valid_nll_:.3f} in epoch {made.best_epoch_}"
    say(f"{model}: a model of made {config.made}, {state}")
    say(f"columns     {len(stored.schema.fields)} ({kinds})")
    say(f"rows        {facts['rows']} to train on, {facts['valid_rows']} to choose by")
    say(f"training    {made.n_epochs_} epochs{nll}")
    say(f"parameters  {facts['parameters']}")
    say(f"network     {stored.network.extra_repr()}")


class _Oddest:
    """The rows of highest NLL of all that it has met, the oddest first: their numbers, their NLLs, and themselves."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows: list[tuple[int, float, Any]] = []

    def meet(self, first: int, rows: Any, places: NDArray[Any], nll: NDArray[Any]) -> None:
        """Look at some rows more: the NLLs of those at some places of a block."""
        for index in (-nll).argsort(kind="stable")[: self.count].tolist():
            row = int(places[index])
            # A copy, so that the rows around it are not kept.
            one = rows.take([row]) if hasattr(rows, "column_names") else rows[row : row + 1].copy()
            self.rows.append((first + row, float(nll[index]), one))
        self.rows = sorted(self.rows, key=lambda each: (-each[1], each[0]))[: self.count]


def _log_prob(
    made: MADE, data: str, given: str | None, quiet: bool, sieve: Sieve | None = None
) -> Iterator[NDArray[Any]]:
    """log p of rows, block by block; NaN for those that are skipped."""
    import numpy as np

    from made.cli.pieces import pieces

    names = _columns(given, made)
    sieve = Sieve(made, OnError.stop) if sieve is None else sieve
    for first, rows in pieces(data, made, quiet):
        rows = sieve.settle(rows)
        log_p = np.full(len(rows), np.nan, dtype=made.dtype)
        for places, values in sieve.answers(first, rows, lambda some: made.score_samples(some, given=names)):
            log_p[places] = values
        yield log_p


def _columns(given: str | None, model: MADE) -> list[str | int] | None:
    return None if given is None else columns("--given", given, model)
