"""`made sql`: a query of DuckDB in which models answer as functions."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from made.cli.errors import command, usage
from made.cli.inputs import load
from made.cli.options import OUT, SAFE_CSV, SEED
from made.cli.output import Output
from made.cli.printing import mode, note, print_table, say
from made.display import listed
from made.errors import DataError, QuestionError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from made.sql import Registered

MOST_BYTES = 1 << 20  # of a query on standard input
MOST_ROWS = 50  # of a table on the terminal
MOST_COLUMNS = 12
ROWS_AT_A_TIME = 10_000


@command
def sql(
    folders: Annotated[list[Path], Argument(metavar="MODEL", help="Folders of models.", show_default=False)],
    query: Annotated[str, Argument(metavar="QUERY", help="SQL; - for standard input.", show_default=False)],
    name: Annotated[
        list[str] | None,
        Option(help="Prefix of a model's functions; give it once for each model.", show_default="the folder's name"),
    ] = None,
    out: OUT = None,
    safe_csv: SAFE_CSV = False,
    seed: SEED = None,
) -> None:
    """Run a query of DuckDB in which models answer as functions.

    With the model in the folder churn: churn_logp(t), churn_surprise(t), churn_predict(t, 'column'),
    churn_predict_proba(t, 'column', 'value'), churn_quantile(t, 'column', 0.9), churn_impute(t), churn_draw(t),
    churn_probability('condition'), churn_ask('condition') and FROM churn_sample(n), where t is the name of a table in
    FROM: "SELECT *, churn_logp(t) AS logp FROM 'new.parquet' t ORDER BY logp LIMIT 20". The answer is a table on a
    terminal, otherwise CSV. The query can read and write every file that you can.
    """
    text = query if query != "-" else _standard_input()
    names = name or [_identifier(folder) for folder in folders]
    if len(names) != len(folders) or len({each.lower() for each in names}) != len(names):
        raise usage(f"'--name' should be given {len(folders)} times, once for each model, all different.")
    models = [load(folder, seed=seed) for folder in folders]

    gc.unfreeze()  # or DuckDB's bindings would report leaks at exit
    from made.sql import register  # raises an ImportError with a hint if DuckDB is missing

    # isort: split
    import duckdb

    # No extension is downloaded merely because a query mentions it.
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        registered = [register(connection, model, each) for model, each in zip(models, names, strict=True)]
        try:
            with _interruptible(connection) as call:
                _answer(call, connection, text, out, safe_csv)
        except duckdb.Error as error:
            raise _sentence(error, registered) from None
    for each in registered:
        _note_columns(each)


@contextmanager
def _interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[Callable[..., Any]]:
    """Call functions in another thread: a signal is handled by this one, which must not wait inside DuckDB."""
    with ThreadPoolExecutor(1) as pool:
        try:
            yield lambda function, *arguments: pool.submit(function, *arguments).result()
        except BaseException:
            connection.interrupt()
            raise


def _answer(
    call: Callable[..., Any], connection: duckdb.DuckDBPyConnection, query: str, out: str | None, safe_csv: bool
) -> None:
    import pyarrow as pa

    relation = call(connection.sql, query)
    if relation is None:
        raise usage('there is no query: give one, such as "SELECT 1".')
    reader = call(relation.to_arrow_reader, ROWS_AT_A_TIME)
    batches = iter(lambda: call(next, reader, None), None)
    nested = mode.json and out in (None, "-")  # JSON can hold lists and structs, flat files cannot
    if out is None and not mode.json and sys.stdout.isatty():
        _print(reader.schema, batches)
        return
    with Output(out, safe_csv=safe_csv) as output:
        output.write(_in_types(reader.schema.empty_table(), nested))
        for batch in batches:
            output.write(_in_types(pa.Table.from_batches([batch]), nested))


def _print(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Print the first rows of a table, and how many there are."""
    import pyarrow as pa

    first, total = [], 0
    for batch in batches:
        if total < MOST_ROWS:
            first.append(batch)
        total += len(batch)
    table = pa.Table.from_batches(first, schema).slice(0, MOST_ROWS)
    numbers = [each.name for each in table.schema if pa.types.is_integer(each.type) or pa.types.is_floating(each.type)]
    shown = _in_types(table, nested=False).select(range(min(table.num_columns, MOST_COLUMNS)))
    rows = [list(map(_cell, row)) for row in zip(*(column.to_pylist() for column in shown.columns), strict=True)]
    print_table(None, shown.column_names, rows, right=numbers, simple=True)
    if total > MOST_ROWS or table.num_columns > MOST_COLUMNS:
        say(f"{total:,} rows and {table.num_columns} columns in all; --out FILE writes all of them.")


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _in_types(table: pa.Table, nested: bool) -> pa.Table:
    """Columns in types that every output has: sums as integers, decimals as floats, and unless ``nested``, lists and
    structs as JSON."""
    import pyarrow as pa
    import pyarrow.types as types

    columns = []
    for column in table.columns:
        if types.is_decimal(column.type):
            whole = column.type.scale == 0 and all(abs(each or 0) < 2**63 for each in column.to_pylist())
            column = column.cast(pa.int64() if whole else pa.float64(), safe=False)
        elif types.is_nested(column.type) and not nested:
            texts = [None if each is None else json.dumps(each, default=str) for each in column.to_pylist()]
            column = pa.chunked_array([pa.array(texts, pa.string())])
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def _sentence(error: Exception, registered: Sequence[Registered]) -> Exception:
    """The error of `made` that caused an error of DuckDB, or else DuckDB's message in one sentence."""
    import duckdb

    for each in registered:
        if each.functions.error is not None:
            return each.functions.error
    text = " ".join(str(error).partition("\n\nLINE ")[0].split()).rstrip(".!")
    wrong = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
    kind = QuestionError if isinstance(error, wrong) else DataError
    return kind(f"DuckDB: {text}.")


def _note_columns(registered: Registered) -> None:
    functions = registered.functions
    if functions.absent:
        note(f"Note: columns of the model that rows lack are missing values: {listed(sorted(functions.absent))}.")
    if functions.ignored:
        note(f"Note: columns that the model does not know are ignored: {listed(sorted(functions.ignored))}.")


def _identifier(folder: Path) -> str:
    """The name of a folder as an identifier of SQL."""
    word = re.sub("[^A-Za-z0-9]+", "_", folder.resolve().name).strip("_").lower()[:50]
    return word if word[:1].isalpha() else f"model_{word}".rstrip("_")


def _standard_input() -> str:
    if sys.stdin is None:
        raise usage("standard input is closed: give the query as an argument.")
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"standard input has more than {MOST_BYTES:,} bytes of SQL: shorten the query.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise DataError("standard input is not UTF-8: convert it.") from None
