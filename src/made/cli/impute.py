"""`made impute`: fill the missing values of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from made.cli.asking import Asking
from made.cli.errors import command, usage
from made.cli.inputs import load
from made.cli.on_error import Parts, RowFilter, spread
from made.cli.options import DATA, MODEL, ON_ERROR, OUT, RAY, SAFE_CSV, SEED, OnError, flag, option
from made.cli.output import Output, arrow, texts
from made.cli.printing import mode, note, print_json
from made.cli.questions import RowQuestion

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from numpy.typing import NDArray

    from made.model.model import Model
    from made.tables.field import Field


@dataclass(frozen=True, kw_only=True)
class Imputation(RowQuestion):
    """The imputed tables, separate or stacked, and the uncertainty of the imputed values."""

    strategy: str
    draws: int
    stack: bool
    uncertainty: bool

    @property
    def numbered(self) -> Collection[str]:
        return [*(["stacked"] if self.stack else []), *(["uncertainty"] if self.uncertainty else [])]

    def tables(self, row_filter: RowFilter, rows: Any, random: torch.Generator) -> dict[str, Any]:
        import numpy as np
        import pyarrow as pa

        model = row_filter.model
        names = list(model.schema.names)

        def fill(some: Any) -> tuple[list[Any], Any]:
            """The imputed tables, and their uncertainty."""
            answer = model.impute(
                _as_floats(some, model),
                strategy=self.strategy,  # type: ignore[arg-type]
                n_draws=self.draws,
                return_uncertainty=self.uncertainty,
                random_state=random,
            )
            filled, sure = answer if self.uncertainty else (answer, None)
            return [filled] if self.draws == 1 else list(filled), sure

        rows, parts = row_filter.answers(rows, fill, blank=True)
        imputed = [
            spread([(at, some[draw]) for at, (some, _) in parts], len(rows), names) for draw in range(self.draws)
        ]
        tables = {f"draw {draw}": table for draw, table in enumerate(imputed, start=1)}
        if self.stack:
            table = _alternating([arrow(each, names) for each in imputed])
            table = table.add_column(0, "draw", pa.array(np.tile(np.arange(1, self.draws + 1), len(rows))))
            tables = {"stacked": table.add_column(0, "row", pa.array(np.repeat(np.arange(len(rows)), self.draws)))}
        if self.uncertainty:
            tables["uncertainty"] = _imputed_values(model.schema.fields, imputed, parts)
        return tables


@command
def impute(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    strategy: Annotated[str, option("sample, mode, or mean (of numeric columns; the mode of others).")] = "sample",
    draws: Annotated[int, option("Number of imputed tables; several need --out or --stack.", min=1, max=1000)] = 1,
    stack: Annotated[
        bool, flag("--stack", "Write all imputed tables as one, with the columns row and draw in front.")
    ] = False,
    uncertainty: Annotated[str | None, option("File for the uncertainty of each imputed value.", "none")] = None,
    on_error: ON_ERROR = OnError.stop,
    safe_csv: SAFE_CSV = False,
    ray: RAY = None,
    seed: SEED = None,
) -> None:
    """Fill the missing values of a table, given the observed values of each row.

    With --draws N, the files FILE-1, ..., FILE-N are written, or a single one with --stack. The file of --uncertainty
    has a line for each imputed value: the probability of the value and the entropy for a column with a list of values,
    the standard deviation and a 90 % interval for numbers. Row 0 is the first. With --on-error skip, a row that cannot
    be read becomes an empty row, so that rows keep their places.
    """
    if strategy not in ("sample", "mode", "mean"):
        raise usage(f"'--strategy' should be sample, mode or mean, not {strategy!r}.")
    if draws > 1 and (strategy != "sample" or (out in (None, "-") and not stack)):
        raise usage("'--draws' above 1 needs '--strategy sample', and either a file in '--out' or '--stack'.")
    if uncertainty == "-":
        raise usage("'--uncertainty' should be a file, not -: standard output is for the table.")
    model = load(folder)
    names, skip = list(model.schema.names), on_error is OnError.skip
    if stack and {"row", "draw"} & set(names):
        raise usage("'--stack' adds the columns 'row' and 'draw', but the table has one of that name: rename it.")
    uncertain = uncertainty is not None
    question = Imputation(strategy=strategy, draws=draws, stack=stack, uncertainty=uncertain, skip=skip, seed=seed)
    paths, several = {"stacked" if stack else "draw 1": out}, draws > 1 and not stack
    if several and out is not None:
        path = Path(out)
        paths = {
            f"draw {draw}": str(path.with_name(f"{path.stem}-{draw}{path.suffix}")) for draw in range(1, draws + 1)
        }
    outputs = {name: Output(each, names, safe_csv, silent=several) for name, each in paths.items()}
    if uncertain:
        outputs["uncertainty"] = Output(uncertainty, safe_csv=safe_csv, silent=True)
    asking = Asking(question, model, folder, data, ray)
    asking.write(outputs)
    if several and mode.json:
        print_json({"rows": asking.tally.rows, "draws": draws, "out": out} | asking.facts())
    elif several:
        first, *_, last = paths.values()
        note(f"{asking.tally.rows} rows written to each of {first}, ..., {last}.")


def _as_floats(rows: Any, model: Model) -> Any:
    """Integers as floats where the model has floats: imputed values may be fractions."""
    if not hasattr(rows, "column_names") or not model.schema.named:
        return rows
    import pyarrow as pa

    for field in model.schema.fields:
        if field.dtype == "float" and pa.types.is_integer(rows.schema.field(field.name).type):
            place = rows.column_names.index(field.name)
            rows = rows.set_column(place, field.name, rows.column(place).cast(pa.float64()))
    return rows


def _alternating(tables: Sequence[pa.Table]) -> pa.Table:
    """The first row of each table, then the second of each, and so on."""
    import numpy as np
    import pyarrow as pa

    return pa.concat_tables(tables).take(np.arange(len(tables) * len(tables[0])).reshape(len(tables), -1).T.ravel())


def _imputed_values(fields: Sequence[Field], tables: Sequence[Any], parts: Parts[tuple[list[Any], Any]]) -> pa.Table:
    """A line for each missing value and draw: the imputed value and its uncertainty. Rows are numbered in the block."""
    import numpy as np
    import pyarrow as pa

    def ends(codes: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any]) -> Any:
        if not any(field.temporal for field in fields):
            return codes[rows, columns]
        decoded = [field.decode(codes[:, d], "text")[0].astype(object) for d, field in enumerate(fields)]
        return texts(np.stack(decoded, axis=1), rows, columns)

    lines = []
    for at, (_, sure) in parts:
        rows, columns = (~np.isnan(sure.entropy) | ~np.isnan(sure.standard_deviation))[: len(at)].nonzero()
        draws = []
        for draw, table in enumerate(tables, start=1):
            probability = sure.probability if sure.probability.ndim == 2 else sure.probability[draw - 1]
            values = {
                "row": at[rows],
                "column": pa.array([fields[d].name for d in columns], pa.string()),
                "draw": np.full(len(rows), draw),
                "value": texts(table, at[rows], columns),
                "probability": probability[rows, columns],
                "entropy": sure.entropy[rows, columns],
                "standard_deviation": sure.standard_deviation[rows, columns],
                "low": ends(sure.low, rows, columns),
                "high": ends(sure.high, rows, columns),
            }
            draws.append(pa.table(values))
        lines.append(_alternating(draws))
    table = pa.concat_tables(lines)
    return table if len(tables) > 1 else table.drop_columns(["draw"])
