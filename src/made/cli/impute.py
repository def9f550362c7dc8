"""`made impute`: fill the missing values of a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from made.cli.errors import command, usage
from made.cli.models import load
from made.cli.on_error import ON_ERROR, OnError, RowFilter, spread
from made.cli.options import DATA, JSON, MODEL, OUT, QUIET, SAFE_CSV, SEED
from made.cli.output import Output, for_file, texts
from made.cli.printing import note, print_json
from made.cli.rows import stream_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from made.model.model import Model
    from made.queries.imputation import Uncertainty

__all__ = ["impute"]


@command
def impute(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    strategy: Annotated[
        str, typer.Option("--strategy", help="sample, mode, or mean (of numeric columns; the mode of others).")
    ] = "sample",
    draws: Annotated[
        int,
        typer.Option("--draws", min=1, max=1000, help="Number of imputed tables; several need --out or --stack."),
    ] = 1,
    stack: Annotated[
        bool, typer.Option("--stack", help="Write all imputed tables as one, with the columns row and draw in front.")
    ] = False,
    uncertainty: Annotated[
        str | None,
        typer.Option("--uncertainty", help="File for the uncertainty of each imputed value.", show_default="none"),
    ] = None,
    on_error: ON_ERROR = OnError.stop,
    safe_csv: SAFE_CSV = False,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
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
    import numpy as np

    from made.io.write import Writer

    model = load(folder, quiet=quiet)
    names, random = list(model.schema.names), model.generator(seed)
    row_filter = RowFilter(model, on_error)
    if stack and {"row", "draw"} & set(names):
        raise usage("'--stack' adds the columns 'row' and 'draw', but the table has one of that name: rename it.")
    paths = _numbered(str(out), draws) if draws > 1 and not stack else []
    with ExitStack() as open_files:
        enter = open_files.enter_context
        if paths:
            outputs = [enter(Output(path, False, True, names, safe_csv)) for path in paths]
        else:
            outputs = [enter(Output(out, as_json, quiet, names, safe_csv))]
        sure = None if uncertainty is None else enter(Writer(uncertainty))
        rows_seen = 0

        def fill(rows: Any) -> tuple[list[Any], Uncertainty | None]:
            answer = model.impute(
                rows,
                strategy=strategy,  # type: ignore[arg-type]
                n_draws=draws,
                return_uncertainty=sure is not None,
                random_state=random,
            )
            filled, how_sure = answer if sure is not None else (answer, None)
            return [filled] if draws == 1 else list(filled), how_sure

        for first, rows in stream_rows(data, model, quiet):
            rows = _as_floats(row_filter.settle(rows), model)
            parts = row_filter.answers(first, rows, fill) or [(np.arange(0), fill(row_filter.blank(rows)))]
            each = [spread([(at, some[draw]) for at, (some, _) in parts], len(rows), names) for draw in range(draws)]
            if stack:
                outputs[0].write(_stacked(each, names, first))
            else:
                for output, table in zip(outputs, each, strict=True):
                    output.write(table)
            if sure is not None and uncertainty is not None:
                lines = _imputed_values(
                    model, each, _of_all_rows([(at, how) for at, (_, how) in parts], len(rows)), first
                )
                sure.write(for_file(lines, uncertainty, None, safe_csv))
            rows_seen += len(rows)
        outputs[0].facts = row_filter.facts()
    if not as_json:
        row_filter.note(quiet)
    if paths and as_json:
        print_json({"rows": rows_seen, "draws": draws, "out": out} | row_filter.facts())
    elif paths:
        note(f"{rows_seen} rows written to each of {paths[0]}, ..., {paths[-1]}.", quiet)


def _of_all_rows(parts: Sequence[tuple[NDArray[Any], Uncertainty | None]], rows: int) -> Uncertainty:
    """The uncertainty of all rows of a batch; NaN for rows without an answer."""
    import numpy as np

    from made.queries.imputation import Uncertainty

    def whole(name: str) -> NDArray[Any]:
        values = [(places, getattr(how, name)) for places, how in parts if how is not None]
        filled = np.full((*values[0][1].shape[:-2], rows, values[0][1].shape[-1]), np.nan)
        for places, each in values:
            filled[..., places, :] = each[..., : len(places), :]
        return filled

    return Uncertainty(*(whole(name) for name in ("probability", "entropy", "standard_deviation", "low", "high")))


def _numbered(out: str, count: int) -> list[str]:
    path = Path(out)
    return [str(path.with_name(f"{path.stem}-{number}{path.suffix}")) for number in range(1, count + 1)]


def _as_floats(rows: Any, model: Model) -> Any:
    """Integers as floats where the model has floats: imputed values need not be whole, in any batch."""
    if not hasattr(rows, "column_names") or not model.schema.named:
        return rows
    import pyarrow as pa

    for field in model.schema.fields:
        if field.dtype == "float" and pa.types.is_integer(rows.schema.field(field.name).type):
            place = rows.column_names.index(field.name)
            rows = rows.set_column(place, field.name, rows.column(place).cast(pa.float64()))
    return rows


def _stacked(draws: list[Any], names: list[str], first: int) -> pa.Table:
    """All draws of a row one below the other, after the numbers of the row and of the draw."""
    import numpy as np
    import pyarrow as pa

    from made.io.write import as_table

    tables = [as_table(each, None if hasattr(each, "column_names") else names) for each in draws]
    rows, count = len(tables[0]), len(tables)
    order = np.arange(rows * count).reshape(count, rows).T.ravel()
    table = pa.concat_tables(tables).take(order)
    table = table.add_column(0, "draw", pa.array(np.tile(np.arange(1, count + 1), rows)))
    return table.add_column(0, "row", pa.array(first + np.repeat(np.arange(rows), count)))


def _imputed_values(model: Model, draws: list[Any], sure: Uncertainty, first: int) -> pa.Table:
    """A line for each missing value and draw: the imputed value and its uncertainty."""
    import numpy as np
    import pyarrow as pa

    parts = []
    for d, field in enumerate(model.schema.fields):
        places = np.flatnonzero(~np.isnan(sure.entropy[:, d]) | ~np.isnan(sure.standard_deviation[:, d]))
        for draw, each in enumerate(draws, start=1):
            probability = sure.probability if sure.probability.ndim == 2 else sure.probability[draw - 1]
            part = {
                "row": first + places,
                "place": np.full(len(places), d),
                "column": pa.array([field.name] * len(places), pa.string()),
                "draw": np.full(len(places), draw),
                "value": texts(each, d, places),
                "probability": probability[places, d],
                "entropy": sure.entropy[places, d],
                "standard_deviation": sure.standard_deviation[places, d],
            }
            for name, end in (("low", sure.low), ("high", sure.high)):
                ends = end[places, d]
                if any(field.temporal for field in model.schema.fields):
                    part[name] = texts(np.stack([field.decode(ends, "text")[0]], axis=1), 0, np.arange(len(ends)))
                else:
                    part[name] = ends
            parts.append(pa.table(part))
    table = pa.concat_tables(parts).sort_by([("row", "ascending"), ("place", "ascending"), ("draw", "ascending")])
    return table.drop_columns(["place"] if len(draws) > 1 else ["place", "draw"])
