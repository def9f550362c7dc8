"""The functions of a model in a DuckDB connection, under a prefix."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from made.errors import ParameterError
from made.estimator import Fitted, model_of
from made.sql.functions import Function, Functions

# Macros in front of the functions whose names begin with an underscore. A function of DuckDB has one type, so those
# with an answer in the type of a column give a struct of all columns, from which the macro takes the one.
MACROS = {
    "predict(t, target)": "struct_extract({0}__predict(t, target), target)",
    "quantile(t, target, level)": "struct_extract({0}__quantile(t, target, level), target)",
    "sample(n, seed := NULL, given := NULL)": "TABLE SELECT unnest({0}__sample(n, seed, given), recursive := true)",
}


@dataclass(frozen=True)
class Registered:
    """What :func:`register` has added to a connection.

    Attributes:
        names: of the functions and macros.
        functions: the model's functions, which know what went wrong in the last query.
    """

    names: list[str]
    functions: Functions


def register(connection: duckdb.DuckDBPyConnection, model: Fitted, name: str) -> Registered:
    """Add the queries of a model to a connection, as functions whose names begin with ``name`` and an underscore.

    A row ``t`` is the name of a table in FROM, or a struct. Columns that it lacks, and NULL, are missing values;
    columns that the model does not have are ignored. The functions last as long as the connection, and belong to it
    alone; another model under the same name replaces them.

    - ``name_logp(t [, given])``: the log-likelihood of a row, given the columns of a list.
    - ``name_surprise(t)``: a struct of the surprise of each entry.
    - ``name_probability(condition [, samples])``: the probability of a condition of `made ask`.
    - ``name_ask(condition [, samples])``: the same, as a struct with its interval and whether it is exact.
    - ``name_predict(t, column)``: the most likely value, or the mean of a column of numbers.
    - ``name_predict_proba(t, column, value)``: the probability of a value.
    - ``name_quantile(t, column, level)``: a quantile of a column of numbers or dates.
    - ``name_impute(t [, 'mode' | 'mean'])``: the row, its missing values filled, as a struct.
    - ``name_draw(t [, seed])``: the same, filled with draws.
    - ``FROM name_sample(n [, seed := s] [, given := {column: value}])``: new rows.

    Arguments:
        connection: of DuckDB.
        model: a model, a fitted estimator, or the folder of a model.
        name: the prefix, of letters, digits and underscores.

    Example:
        >>> import duckdb, numpy as np
        >>> from made import MADE
        >>> rows = np.random.default_rng(0).integers(0, 2, (100, 2))
        >>> model = MADE(hidden_sizes=(4,), max_epochs=1).fit(rows)
        >>> with duckdb.connect() as connection:
        ...     _ = register(connection, model, "bits")
        ...     connection.sql("SELECT round(bits_probability('x0 = 0') + bits_probability('x0 = 1'), 6)").fetchall()
        [(1.0,)]
    """
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,49}", name) is None:
        raise ParameterError(
            f"'name' should be at most 50 letters, digits and underscores, and not begin with a digit, not {name!r}.",
            argument="name",
        )
    functions = Functions(model_of(model))
    for key, function in functions.by_name.items():
        full = f"{name}_{key}"
        with suppress(duckdb.InvalidInputException):  # there is none
            connection.remove_function(full)
        connection.create_function(
            full,
            _called(functions, full.replace("__", "_"), function),
            None,
            _duckdb_type(connection, function.type),
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )
    for head, body in MACROS.items():
        connection.execute(f"CREATE OR REPLACE TEMP MACRO {name}_{head} AS {body.format(name)}")
    public = [key for key in functions.by_name if not key.startswith("_")]
    return Registered([f"{name}_{key.partition('(')[0]}" for key in [*public, *MACROS]], functions)


def _called(functions: Functions, name: str, function: Function) -> Callable[..., pa.Array]:
    def call(*arguments: pa.ChunkedArray) -> pa.Array:
        return functions.call(name, function, arguments)

    return call


def _duckdb_type(connection: duckdb.DuckDBPyConnection, kind: pa.DataType) -> Any:
    return connection.from_arrow(pa.table([pa.array([], kind)], names=["a"])).types[0]
