"""The option --on-error: rows that the model cannot answer end the command, or are skipped and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from made.cli.printing import note
from made.display import shortened

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from made.model.model import Model
    from made.tables.field import Field

__all__ = ["ON_ERROR", "OnError", "RowFilter", "spread"]

REASONS = 3
INFINITY = "{}: infinity cannot be used."
Answer = TypeVar("Answer")


class OnError(StrEnum):
    """What a command does about a row that cannot be answered."""

    stop = "raise"
    skip = "skip"


ON_ERROR = Annotated[
    OnError,
    typer.Option(
        "--on-error",
        help="For a row that cannot be answered: raise an error, or skip it: its answer is empty.",
    ),
]


class RowFilter:
    """Separates the rows that a model can answer from those that it cannot.

    Arguments:
        model: the model.
        on_error: what to do about rows that it cannot answer.

    Attributes:
        skipped: number of skipped rows.
        reasons: why the first three were skipped.
    """

    def __init__(self, model: Model, on_error: OnError) -> None:
        self.model, self.skip = model, on_error is OnError.skip
        self.skipped, self.reasons = 0, list[str]()
        self._unusable: dict[int, str] = {}

    def settle(self, rows: Any, ignore: int | None = None) -> Any:
        """A batch without entries that spoil a whole column: they become missing, and their rows are skipped.

        These are infinities, and text among numbers, which makes the column text. The column ``ignore`` is left alone.
        """
        self._unusable = {}
        if not self.skip:
            return rows
        rows = self._finite(rows)
        if not hasattr(rows, "column_names"):
            return rows
        schema = self.model.schema
        for d, field in enumerate(schema.fields):
            place = d if not schema.named else _index(rows.column_names, field.name)
            if d == ignore or place is None or field.listed or field.temporal is not None:
                continue
            if _is_text(rows, place):
                name = rows.column_names[place]
                rows = rows.set_column(place, name, self._numbers(rows.column(place), field, place, name))
        return rows

    def answers(
        self, first: int, rows: Any, answer: Callable[[Any], Answer], ignore: int | None = None
    ) -> list[tuple[NDArray[Any], Answer]]:
        """The answers to a batch, in parts, each with the places of its rows.

        Arguments:
            first: number of rows before the batch.
            rows: the batch, after :meth:`settle`.
            answer: the query; an error that carries a row excludes that row.
            ignore: a column that does not matter.
        """
        import numpy as np

        from made.queries.batches import counted_from

        if not self.skip:
            with counted_from(first):
                return [(np.arange(len(rows)), answer(rows))]
        wrong = self._wrong_entries(rows, ignore)
        for row, reason in self._unusable.items():
            wrong.setdefault(row, reason)
        places = np.array([row for row in range(len(rows)) if row not in wrong], dtype=np.intp)
        parts = list(_halves(rows, places, answer, wrong))
        self.skipped += len(wrong)
        for row in sorted(wrong)[: REASONS - len(self.reasons)]:
            self.reasons.append(shortened(f"row {first + row}, {wrong[row]}", 500))
        return parts

    def facts(self) -> dict[str, Any]:
        """The skipped rows, for JSON; empty with --on-error raise."""
        return {"skipped": self.skipped, "reasons": self.reasons} if self.skip else {}

    def note(self, quiet: bool) -> None:
        """Print how many rows were skipped, and why."""
        if self.skipped:
            rows = "1 row was" if self.skipped == 1 else f"{self.skipped} rows were"
            more = "; the first of them" if self.skipped > len(self.reasons) else ""
            note("\n  ".join([f"Note: {rows} skipped, with an empty answer{more}:", *self.reasons]), quiet)

    def blank(self, rows: Any) -> Any:
        """One row without observed values."""
        import numpy as np

        if not hasattr(rows, "column_names"):
            return np.full((1, rows.shape[1]), np.nan)
        import pyarrow as pa

        return pa.table([pa.nulls(1, each) for each in rows.schema.types], names=rows.column_names)

    def _finite(self, rows: Any) -> Any:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        if not hasattr(rows, "column_names"):
            infinite = np.isinf(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, dtype=np.bool_)
            for row, place in np.argwhere(infinite).tolist():
                self._unusable.setdefault(row, INFINITY.format(f"column {place}"))
            return np.where(infinite, np.nan, rows) if infinite.any() else rows
        for place, (name, kind) in enumerate(zip(rows.column_names, rows.schema.types, strict=True)):
            endless = pc.is_inf(rows.column(place)) if pa.types.is_floating(kind) else None
            if endless is not None and pc.any(endless).as_py():
                for row in np.flatnonzero(endless.fill_null(False).to_numpy()).tolist():
                    self._unusable.setdefault(row, INFINITY.format(f"column {place} ({name!r})"))
                rows = rows.set_column(place, name, pc.if_else(endless, pa.scalar(None, kind), rows.column(place)))
        return rows

    def _numbers(self, column: Any, field: Field, place: int, name: str) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        from made.errors import DataError
        from made.tables.plain import number_in

        texts = column.to_pylist()
        known = {text: None if text is None else number_in(text, False) for text in dict.fromkeys(texts)}
        for row, text in enumerate(texts):
            if known[text] is None and text:
                try:
                    field.encode(np.array([text], dtype=object), "text", f"column {place} ({name!r})")
                except DataError as error:
                    self._unusable.setdefault(row, error.message)
        numbers = pa.array([known[text] for text in texts], pa.float64())
        whole = field.dtype == "int" and all(number is None or number == round(number) for number in known.values())
        return numbers.cast(pa.int64()) if whole else numbers

    def _wrong_entries(self, rows: Any, ignore: int | None) -> dict[int, str]:
        """The rows with an invalid value, and the first error of each."""
        import numpy as np

        from made.errors import MadeError
        from made.tables.plain import is_missing

        schema, wrong = self.model.schema, dict[int, str]()
        try:
            table = self.model.table(rows, ignore)
            places = schema.positions(table)
        except MadeError as error:
            if error.row is None:
                raise
            return wrong  # not a table as a whole: rows are tried one by one
        for number, (field, d) in enumerate(zip(schema.fields, places, strict=True)):
            if number == ignore:
                continue
            values, dtype, label = table.columns[d], table.dtypes[d], table.label(d)
            try:
                field.encode(values, dtype, label)
                continue
            except MadeError as error:
                if error.row is None:
                    raise
            # An invalid value is invalid in every row.
            seen = np.flatnonzero(~is_missing(values))
            distinct, which = np.unique(values[seen], return_inverse=True)
            faults: dict[int, str] = {}
            list(_halves(distinct, np.arange(len(distinct)), partial(field.encode, dtype=dtype, label=label), faults))
            for row, value in zip(seen.tolist(), which.tolist(), strict=True):
                if value in faults:
                    wrong.setdefault(row, faults[value])
        return wrong


def _halves(
    rows: Any, places: NDArray[Any], answer: Callable[[Any], Answer], wrong: dict[int, str]
) -> Iterator[tuple[NDArray[Any], Answer]]:
    """The answers to some rows: on an error in one of them, each half is tried, down to that row."""
    from made.errors import MadeError

    todo = [places] if len(places) else []
    while todo:
        some = todo.pop()
        try:
            yield some, answer(rows.take(some) if hasattr(rows, "column_names") else rows[some])
        except MadeError as error:
            if error.row is None:
                raise
            if len(some) == 1:
                wrong[int(some[0])] = error.message
            else:
                todo += [some[len(some) // 2 :], some[: len(some) // 2]]


def spread(parts: Sequence[tuple[NDArray[Any], Any]], rows: int, names: Sequence[str] | None) -> Any:
    """Answers to some rows as a table of all rows, in which the others are empty.

    Arguments:
        parts: places of rows, and their table or array; at least one, for the types of the columns.
        rows: number of rows.
        names: the columns of arrays.
    """
    import numpy as np
    import pyarrow as pa

    from made.io.write import as_table

    if len(parts) == 1 and len(parts[0][0]) == rows:
        return parts[0][1]
    tables = [as_table(each, None if hasattr(each, "column_names") else names) for _, each in parts]
    order = np.full(rows, -1)
    order[np.concatenate([places for places, _ in parts])] = np.arange(sum(len(places) for places, _ in parts))
    return pa.concat_tables(tables, promote_options="permissive").take(pa.array(order, mask=order < 0))


def _index(names: Sequence[str], name: str) -> int | None:
    return list(names).index(name) if name in names else None


def _is_text(rows: Any, place: int) -> bool:
    import pyarrow as pa

    from made.io.checks import is_text

    kind = rows.schema.types[place]
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
