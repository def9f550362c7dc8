"""`made predict`: one column, given whatever else is known of each row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from made.cli.errors import command
from made.cli.inputs import load
from made.cli.on_error import RowFilter, spread
from made.cli.options import DATA, MASKS, MODEL, ON_ERROR, OUT, SAFE_CSV, SEED, OnError
from made.cli.output import Output
from made.cli.parsing import place
from made.cli.printing import mode, note
from made.display import visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from made.model.model import Model
    from made.queries.conditional import Forecast
    from made.tables.field import Field
    from made.tables.table import Table


@command
def predict(
    folder: MODEL,
    data: DATA,
    target: Annotated[str, Option(help="Column to predict.", show_default=False)],
    out: OUT = None,
    on_error: ON_ERROR = OnError.stop,
    safe_csv: SAFE_CSV = False,
    masks: MASKS = None,
    seed: SEED = None,
) -> None:
    """Predict a column, given whatever else is observed in each row.

    For a column with a list of values: the most likely one, and the probability of each. For numbers: mean, standard
    deviation, median, and the 5 % and 95 % quantiles. Any value may be missing, and DATA may lack the column. Where it
    has the column, predictions do not depend on it, and their scores are printed on standard error, or in the JSON.
    """
    from made.model.predicted import predicted

    model = load(folder, masks)
    d = model.position(place(target, model.schema.names))
    field, scores, row_filter = model.schema.fields[d], _Scores(), RowFilter(model, on_error, ignore=d)

    def expect(rows: Any) -> tuple[NDArray[Any], Forecast, int]:
        table = model.table(rows, d)
        codes = model.codes(table, d)
        codes[:, d], unknown = _truth(model, table, d)
        return codes[:, d], model.view.forecast(codes, d), unknown

    with Output(out, safe_csv=safe_csv) as output:
        for _, rows, parts in row_filter.stream(data, expect, blank=True):
            for _, answer in parts:
                scores.meet(*answer)
            output.write(spread([(at, predicted(field, found)) for at, (_, found, _) in parts], len(rows), None))
        output.facts = {"target": field.name, "scores": scores.facts(field)} | row_filter.facts()
    row_filter.note()
    if not mode.json:
        scores.note(field)


def _truth(model: Model, table: Table, d: int) -> tuple[NDArray[Any], int]:
    """The true codes of a column, NaN where missing or unknown to the model; and how many are unknown."""
    import numpy as np

    from made.errors import DataError
    from made.tables.plain import is_missing, number_in

    schema = model.schema
    here = table.names.index(schema.names[d]) if schema.named and table.names is not None else d
    field, values, dtype = schema.fields[d], table.columns[here], table.dtypes[here]
    missing = is_missing(values)
    if dtype == "text" and not field.listed and field.temporal is None:  # a single text makes the column text
        numbers = [number_in(text, False) if text else None for text in values.tolist()]
        values, dtype = np.array([math.nan if each is None else each for each in numbers]), "float"
    try:
        codes = field.encode(values, dtype, table.label(here))
    except DataError:
        codes, known = np.full(len(values), np.nan), {}
        for row in np.flatnonzero(~is_missing(values)).tolist():
            if values[row] not in known:
                try:
                    known[values[row]] = field.encode(values[row : row + 1], dtype, "")[0]
                except DataError:
                    known[values[row]] = math.nan
            codes[row] = known[values[row]]
    codes[missing | (field.foreign(values, codes) if field.listed else False)] = np.nan
    return codes, int((np.isnan(codes) & ~missing).sum())


class _Scores:
    """Scores of predictions, over rows whose true value is known."""

    def __init__(self) -> None:
        self.unknown = 0
        self.log_probs: list[NDArray[Any]] = []
        self.hits: list[NDArray[Any]] = []  # of a column with a list of values
        self.squares: list[NDArray[Any]] = []  # of a column of numbers
        self.binary: list[NDArray[Any]] = []  # of two values: the codes, and the probabilities of code 1

    def meet(self, truth: NDArray[Any], found: Forecast, unknown: int) -> None:
        """Take the predictions of a batch into account."""
        import numpy as np

        self.unknown += unknown
        seen = np.isfinite(truth)
        self.log_probs.append(found.log_prob[seen])
        chances = found.probabilities[seen]
        if not chances.shape[1]:
            self.squares.append((found.mean[seen] - truth[seen]) ** 2)
            return
        self.hits.append(chances.argmax(axis=1) == truth[seen])
        if chances.shape[1] == 2:
            self.binary.append(np.stack([truth[seen], chances[:, 1]]))

    def facts(self, field: Field) -> dict[str, Any]:
        """The scores by name, for JSON; only counts if no true value is known."""
        import numpy as np

        from made.tables.dates import DAY

        log_prob = np.concatenate([np.zeros(0), *self.log_probs])
        facts: dict[str, Any] = {"rows": len(log_prob), "unknown": self.unknown}
        if not len(log_prob):
            return facts
        if self.squares:
            rmse = math.sqrt(np.concatenate(self.squares).mean())
            facts |= {"rmse_days": rmse / DAY} if field.temporal else {"rmse": rmse}
            return facts | {"mean_log_density": float(log_prob.mean())}
        facts |= {"log_loss": -float(log_prob.mean()), "accuracy": float(np.concatenate(self.hits).mean())}
        if self.binary:
            truth, chances = np.concatenate(self.binary, axis=1)
            if len(np.unique(truth)) == 2:
                facts["auc"] = _auc(truth, chances)
        return facts

    def note(self, field: Field) -> None:
        """Print the scores as notes."""
        facts = self.facts(field)
        rows, unknown = facts.pop("rows"), facts.pop("unknown")
        if unknown:
            text = f"{unknown} rows have a value of {field.name!r} that the model does not know"
            note(f"Note: {text}; they are not scored.")
        if rows:
            said = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in facts.items())
            note(f"{visible(field.name)}: {said}; {rows} rows with a known value.")


def _auc(truth: NDArray[Any], chances: NDArray[Any]) -> float:
    """The chance that a row of code 1 gets a higher probability than one of code 0; a tie counts half."""
    import numpy as np

    # Not by scikit-learn, whose import takes longer than the command.
    _, place, count = np.unique(chances, return_inverse=True, return_counts=True)
    rank, ones = (count.cumsum() - (count - 1) / 2)[place], truth == 1
    above = rank[ones].sum() - ones.sum() * (ones.sum() + 1) / 2
    return float(above / (ones.sum() * (~ones).sum()))
