"""`made predict`: the distribution of one column, given the observed values of each row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from made.cli.asking import Asking
from made.cli.errors import command
from made.cli.inputs import load
from made.cli.on_error import RowFilter, encoded, spread
from made.cli.options import DATA, MASKS, MODEL, ON_ERROR, OUT, RAY, SAFE_CSV, SEED, OnError
from made.cli.output import Output
from made.cli.parsing import place
from made.cli.printing import mode, note
from made.cli.questions import RowQuestion
from made.display import visible

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from numpy.typing import NDArray

    from made.model.model import Model
    from made.queries.conditional import Forecast
    from made.tables.field import Field
    from made.tables.table import Table


@dataclass(frozen=True, kw_only=True)
class Prediction(RowQuestion):
    """The distribution of one column given the others, and how likely its true values are."""

    target: int

    def optional(self, model: Model) -> int:
        return self.target

    def tables(self, row_filter: RowFilter, rows: Any, random: torch.Generator) -> dict[str, Any]:
        import pyarrow as pa

        from made.model.predicted import predicted

        model, d = row_filter.model, self.target

        def expect(some: Any) -> tuple[Forecast, pa.Table]:
            table = model.table(some, d)
            codes = model.codes(table, d)
            codes[:, d], unknown = _truth(model, table, d)
            forecast = model.view.forecast(codes, d)
            return forecast, _scored(codes[:, d], forecast, unknown)

        rows, parts = row_filter.answers(rows, expect, blank=True)
        found = [(at, predicted(model.schema.fields[d], forecast)) for at, (forecast, _) in parts]
        return {
            "predicted": spread(found, len(rows), None),
            "_scores": pa.concat_tables([scored for _, (_, scored) in parts]),
        }


@command
def predict(
    folder: MODEL,
    data: DATA,
    target: Annotated[str, Option(help="Column to predict.", show_default=False)],
    out: OUT = None,
    on_error: ON_ERROR = OnError.stop,
    safe_csv: SAFE_CSV = False,
    masks: MASKS = None,
    ray: RAY = None,
    seed: SEED = None,
) -> None:
    """Predict a column from the observed values of each row.

    For a column with a list of values: the most likely one, and the probability of each. For numbers: mean, standard
    deviation, median, and the 5 % and 95 % quantiles. Any value may be missing, and DATA may lack the column. Where it
    has the column, predictions do not depend on it, and their scores are printed on standard error, or in the JSON.
    """
    model = load(folder, masks)
    d = model.position(place(target, model.schema.names))
    field, scores = model.schema.fields[d], _Scores()
    asking = Asking(Prediction(masks=masks, skip=on_error is OnError.skip, target=d), model, folder, data, ray)
    asking.write(
        {"predicted": Output(out, safe_csv=safe_csv)},
        scores.add,
        lambda: {"target": field.name, "scores": scores.facts(field)},
    )
    if not mode.json:
        scores.note(field)


def _truth(model: Model, table: Table, d: int) -> tuple[NDArray[Any], int]:
    """The true codes of a column, NaN where missing or unknown to the model; and how many are unknown."""
    import numpy as np

    from made.tables.plain import is_missing, number_in

    schema = model.schema
    here = table.names.index(schema.names[d]) if schema.named and table.names is not None else d
    field, values, dtype = schema.fields[d], table.columns[here], table.dtypes[here]
    missing = is_missing(values)
    if dtype == "text" and not field.listed and field.temporal is None:  # a single text makes the column text
        numbers = [number_in(text, False) if text else None for text in values.tolist()]
        values, dtype = np.array([math.nan if each is None else each for each in numbers]), "float"
    codes, _ = encoded(field, values, dtype, table.label(here))
    if field.listed:
        codes[field.foreign(values, codes)] = np.nan
    return codes, int((np.isnan(codes) & ~missing).sum())


def _scored(truth: NDArray[Any], found: Forecast, unknown: int) -> pa.Table:
    """The inputs of the scores: a line for each known true code, and an empty one for each value unknown to the model.

    ``guess`` is the most likely code or the mean; ``chance`` the probability of code 1, for columns of two codes.
    """
    import numpy as np
    import pyarrow as pa

    seen, chances = np.isfinite(truth), found.probabilities
    lines = {
        "truth": truth,
        "log_prob": found.log_prob,
        "guess": chances.argmax(axis=1) if chances.shape[1] else found.mean,
        "chance": chances[:, 1] if chances.shape[1] == 2 else np.full(len(truth), np.nan),
    }
    nothing = np.full(unknown, np.nan)
    return pa.table({name: np.concatenate([values[seen], nothing]) for name, values in lines.items()})


class _Scores:
    """Scores of predictions, over rows whose true value is known."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Add the predictions of a block; see :func:`_scored`."""
        self.tables.append(table)

    def facts(self, field: Field) -> dict[str, Any]:
        """The scores by name, for JSON; only counts if no true value is known."""
        import numpy as np
        import pyarrow as pa

        from made.tables.dates import DAY

        table = pa.concat_tables(self.tables)
        truth, log_prob, guess, chance = (table[name].to_numpy() for name in ("truth", "log_prob", "guess", "chance"))
        known = ~np.isnan(truth)
        truth, log_prob, guess, chance = truth[known], log_prob[known], guess[known], chance[known]
        facts: dict[str, Any] = {"rows": len(truth), "unknown": int((~known).sum())}
        if not len(truth):
            return facts
        if not field.listed:
            rmse = math.sqrt(((guess - truth) ** 2).mean())
            facts |= {"rmse_days": rmse / DAY} if field.temporal else {"rmse": rmse}
            return facts | {"mean_log_density": float(log_prob.mean())}
        facts |= {"log_loss": -float(log_prob.mean()), "accuracy": float((guess == truth).mean())}
        if not np.isnan(chance).any() and len(np.unique(truth)) == 2:
            facts["auc"] = _auc(truth, chance)
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
    """The area under the ROC curve: P(a row of code 1 scores above a row of code 0); ties count one half."""
    import numpy as np

    # Not by scikit-learn, whose import takes longer than the command.
    _, place, count = np.unique(chances, return_inverse=True, return_counts=True)
    rank, ones = (count.cumsum() - (count - 1) / 2)[place], truth == 1
    above = rank[ones].sum() - ones.sum() * (ones.sum() + 1) / 2
    return float(above / (ones.sum() * (~ones).sum()))
