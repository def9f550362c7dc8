"""The queries of a model as functions of Arrow arrays: rows are structs, and a field that is absent is missing."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from made.ask.exact import SAMPLES, Probability
from made.errors import MadeError, QuestionError
from made.model.model import Model
from made.sql.rows import (
    column_type,
    constant,
    in_types,
    names_by_lower_case,
    rows_of,
    structs,
    times,
    where_valid,
)
from made.tables.field import Field
from made.tables.table import Table

DOUBLE = pa.float64()
ANSWER = pa.struct({"probability": DOUBLE, "low": DOUBLE, "high": DOUBLE, "exact": pa.bool_()})


class Function(NamedTuple):
    """A function whose arguments are arrays of one length, and whose answer is an array of that length.

    Attributes:
        call: the function.
        type: of its answer.
        arguments: the least and the greatest number of them.
    """

    call: Callable[..., pa.Array]
    type: pa.DataType
    arguments: tuple[int, int]


class Functions:
    """The functions of a model.

    DuckDB calls a function from several threads; one at a time computes, as a pass takes all cores.

    Arguments:
        model: the model.

    Attributes:
        by_name: every function. Those whose names begin with an underscore are for the macros in front of them.
        error: the last error that a function raised: DuckDB replaces it by one of its own.
        absent, ignored: columns that the rows of a query lacked, and columns of the rows that the model does not have.
    """

    def __init__(self, model: Model) -> None:
        self.model = replace(model, template=model.schema.blank(named=True))
        self.error: MadeError | None = None
        self.absent: set[str] = set()
        self.ignored: set[str] = set()
        fields, self._names = model.schema.fields, names_by_lower_case(model.schema)
        self._types = {field.name: column_type(field) for field in fields}
        self._numbers = {name: kind if pa.types.is_temporal(kind) else DOUBLE for name, kind in self._types.items()}
        self._means = {each.name: (self._types if each.listed else self._numbers)[each.name] for each in fields}
        self._lock, self._context = threading.Lock(), copy_context()
        self._asked = lru_cache(maxsize=1024)(self._ask)
        whole, surprises = pa.struct(self._types), pa.struct(dict.fromkeys(self._types, DOUBLE))
        self.by_name = {
            "logp": Function(self.logp, DOUBLE, (1, 2)),
            "surprise": Function(self.surprise, surprises, (1, 1)),
            "probability": Function(self.probability, DOUBLE, (1, 2)),
            "ask": Function(self.ask, ANSWER, (1, 2)),
            "predict_proba": Function(self.predict_proba, DOUBLE, (3, 3)),
            "impute": Function(self.impute, whole, (1, 2)),
            "draw": Function(self.draw, whole, (1, 2)),
            "_predict": Function(self.predict, pa.struct(self._means), (2, 2)),
            "_quantile": Function(self.quantile, pa.struct(self._numbers), (3, 3)),
            "_sample": Function(self.sample, pa.list_(whole), (3, 3)),
        }

    def call(self, name: str, function: Function, arguments: tuple[pa.ChunkedArray, ...]) -> pa.Array:
        """Call a function. Its error has ``name`` in front, and no row: rows come in pieces, in any order."""
        least, most = function.arguments
        with self._lock:
            try:
                if not least <= len(arguments) <= most:
                    wanted = str(least) if least == most else f"{least} or {most}"
                    raise QuestionError(f"there should be {wanted} arguments, not {len(arguments)}.")
                if pa.types.is_null(arguments[0].type):
                    return pa.nulls(len(arguments[0]), function.type)
                return self._context.run(function.call, *arguments)
            except (MadeError, ValueError, TypeError, MemoryError) as error:
                kind = type(error) if isinstance(error, MadeError) else QuestionError
                message = error.message if isinstance(error, MadeError) else str(error)
                if isinstance(error, MemoryError):
                    message = "there is not enough memory: ask for fewer rows at a time."
                self.error = kind(f"{name}: {message}", column=getattr(error, "column", None))
                raise self.error from None

    def _rows(self, rows: pa.ChunkedArray) -> pa.Table:
        table = rows_of(self.model.schema, self._names, rows)
        known = {each.name.lower() for each in rows.type}
        dropped = {name.lower() for name in self.model.schema.dropped}
        self.absent |= {name for lower, name in self._names.items() if lower not in known}
        self.ignored |= {each.name for each in rows.type if each.name.lower() not in self._names.keys() | dropped}
        return table

    def _column(self, name: Any) -> int:
        return self.model.position(self._names.get(name.lower(), name) if isinstance(name, str) else str(name))

    def logp(self, rows: pa.ChunkedArray, given: pa.ChunkedArray | None = None) -> pa.Array:
        """See :meth:`made.MADE.score_samples`."""
        names = None if given is None else constant("the list of given columns", given)
        if not isinstance(names, list | None):
            raise QuestionError(f"the given columns should be a list, such as ['{self.model.schema.names[0]}'].")
        columns = None if names is None else [self._column(each) for each in names]
        return where_valid(self.model.score_samples(self._rows(rows), given=columns), rows)

    def surprise(self, rows: pa.ChunkedArray) -> pa.Array:
        """See :meth:`made.MADE.surprise`."""
        found = self.model.surprise(self._rows(rows))
        columns = {name: found.column(name).to_numpy() for name in self.model.schema.names}
        return structs({name: pa.array(each, DOUBLE, from_pandas=True) for name, each in columns.items()}, rows)

    def _ask(self, condition: str, samples: int) -> Probability:
        return self.model.probability(condition, samples=samples)

    def _answers(self, conditions: pa.ChunkedArray, samples: pa.ChunkedArray | None) -> list[Probability | None]:
        if conditions.type not in (pa.string(), pa.large_string(), pa.string_view()):
            raise QuestionError(f"the condition should be text, not {conditions.type}: put it in single quotes.")
        paths = SAMPLES if samples is None else constant("the number of sample paths", samples)
        return [None if each is None else self._asked(each, paths) for each in conditions.to_pylist()]

    def probability(self, conditions: pa.ChunkedArray, samples: pa.ChunkedArray | None = None) -> pa.Array:
        """See :meth:`made.MADE.probability`."""
        return pa.array([each and each.probability for each in self._answers(conditions, samples)], DOUBLE)

    def ask(self, conditions: pa.ChunkedArray, samples: pa.ChunkedArray | None = None) -> pa.Array:
        """The same, with its 95 % interval, and whether it is exact."""
        answers = [
            each and (each.probability, *each.interval, each.kind == "exact")
            for each in self._answers(conditions, samples)
        ]
        return pa.array([each and dict(zip(ANSWER.names, each, strict=True)) for each in answers], ANSWER)

    def _target(self, target: pa.ChunkedArray) -> tuple[int, Field]:
        d = self._column(constant("the column to predict", target))
        return d, self.model.schema.fields[d]

    def predict(self, rows: pa.ChunkedArray, target: pa.ChunkedArray) -> pa.Array:
        """See :meth:`made.MADE.predict`. A struct of all columns, null but for the target."""
        d, field = self._target(target)
        kind, table = self._means[field.name], self._rows(rows)
        if field.listed or field.temporal is None:
            found = pa.array(self.model.predict(table, d).tolist(), kind)
        else:
            found = times(self.model.forecast(table, d, ()).mean, kind)
        nothing = {name: pa.nulls(len(rows), each) for name, each in self._means.items()}
        return structs(nothing | {field.name: found}, rows)

    def quantile(self, rows: pa.ChunkedArray, target: pa.ChunkedArray, levels: pa.ChunkedArray) -> pa.Array:
        """See :meth:`made.MADE.predict_quantiles`. A struct of all columns, null but for the target."""
        d, field = self._target(target)
        level, kind = float(constant("the quantile", levels)), self._numbers[field.name]
        found = self.model.predict_quantiles(self._rows(rows), d, quantiles=[level])[:, 0]
        answer = times(found, kind) if field.temporal else pa.array(found, DOUBLE)
        nothing = {name: pa.nulls(len(rows), each) for name, each in self._numbers.items()}
        return structs(nothing | {field.name: answer}, rows)

    def predict_proba(self, rows: pa.ChunkedArray, target: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.Array:
        """See :meth:`made.MADE.predict_proba`: the probability of a value for each row."""
        d, field = self._target(target)
        if not field.listed:
            raise QuestionError(
                f"column {field.name!r} is {field.kind} and has no list of values: ask for its mean (predict) or a "
                "quantile, or for the probability of a range (probability)."
            )
        alone = Table.of(pa.table([values], names=[field.name]))
        codes = field.encode(alone.columns[0], alone.dtypes[0], alone.label(0))
        if field.foreign(alone.columns[0], codes).any():
            raise QuestionError(f"a value is not among those of column {field.name!r}: {field.about()}.")
        found, wanted = self.model.predict_proba(self._rows(rows), d), ~np.isnan(codes)
        chosen = found[np.arange(len(found)), np.where(wanted, codes, 0).astype(np.intp)]
        return pa.array(chosen, DOUBLE, mask=~wanted | rows.is_null().to_numpy())

    def impute(self, rows: pa.ChunkedArray, strategies: pa.ChunkedArray | None = None) -> pa.Array:
        """See :meth:`made.MADE.impute`, by the mode or the mean, which do not depend on chance."""
        strategy = "mode" if strategies is None else constant("the strategy", strategies)
        if strategy not in ("mode", "mean"):
            raise QuestionError(f"the strategy should be 'mode' or 'mean', not {strategy!r}; for a sample, use draw.")
        return self._filled(rows, strategy=strategy)

    def draw(self, rows: pa.ChunkedArray, seeds: pa.ChunkedArray | None = None) -> pa.Array:
        """See :meth:`made.MADE.impute`, by draws.

        They depend on nothing but the seed and the rows of the batch: DuckDB may call a function twice, and a row that
        it takes apart must be one row. A function that it knows to vary would be called anew for each field of a row.
        """
        seed = self.model.config.seed if seeds is None else _seed(constant("the seed", seeds))
        content = self.model.codes(self._rows(rows)).tobytes()
        return self._filled(rows, strategy="sample", random_state=zlib.crc32(content, seed))

    def _filled(self, rows: pa.ChunkedArray, **how: Any) -> pa.Array:
        table = self._rows(rows)
        for place, field in enumerate(self.model.schema.fields):
            kind = table.schema.field(place).type
            # A filled value need not be whole where the model has floats.
            if field.dtype == "float" and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
                table = table.set_column(place, field.name, table.column(place).cast(DOUBLE, safe=False))
        return structs(in_types(self.model.impute(table, **how), self._types), rows)

    def sample(self, counts: pa.ChunkedArray, seeds: pa.ChunkedArray, given: pa.ChunkedArray) -> pa.Array:
        """See :meth:`made.MADE.sample`: a list of rows."""
        known = None
        if given.null_count < len(given):
            if unknown := [each.name for each in given.type if each.name.lower() not in self._names]:
                names = ", ".join(self.model.schema.names[:20])
                raise QuestionError(f"given: there is no column {unknown[0]!r}: the columns are {names}.")
            known = rows_of(self.model.schema, self._names, given).slice(0, 1)
        lists = []
        for count, seed in zip(counts.to_pylist(), seeds.to_pylist(), strict=True):
            if not isinstance(count, int) or count < 1:
                raise QuestionError(f"the number of rows should be a whole number, at least 1, not {count}.")
            rows = self.model.sample(count, given=known, random_state=None if seed is None else _seed(seed))
            columns = in_types(rows, self._types)
            whole = pa.StructArray.from_arrays(list(columns.values()), list(columns))
            lists.append(pa.ListArray.from_arrays(pa.array([0, len(whole)], pa.int32()), whole))
        return pa.concat_arrays(lists)


def _seed(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**32:
        raise QuestionError(f"the seed should be a whole number, at least 0 and below 2^32, not {value}.")
    return value
