"""The option --on-error: rows that the model cannot answer end the command, or are skipped and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from made.cli.output import arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from made.model.model import Model
    from made.tables.field import Field
    from made.tables.plain import Dtype

REASONS = 3
INFINITY = "{}: infinity cannot be used."
Answer = TypeVar("Answer")
Parts = list[tuple["NDArray[Any]", Answer]]  # places of rows, and the answer to these


class RowFilter:
    """Separates the rows that a model can answer from those that it cannot.

    Arguments:
        model: the model.
        skip: leave out rows that it cannot answer, instead of raising an error.
        ignore: the number of a column whose values are ignored.

    Attributes:
        skipped: number of skipped rows.
        reasons: why the first three were skipped, each with the number of its row.
    """

    def __init__(self, model: Model, skip: bool = False, ignore: int | None = None) -> None:
        self.model, self.skip, self.ignore = model, skip, ignore
        self.skipped, self.reasons = 0, list[tuple[int, str]]()

    def answers(self, rows: Any, answer: Callable[[Any], Answer], blank: bool = False) -> tuple[Any, Parts[Answer]]:
        """A block of rows as it was asked about, and the answers in parts.

        Arguments:
            rows: the rows, with the columns of the model.
            answer: the query; an error that carries a row excludes that row.
            blank: if no row can be answered, ask for a row without observed values, for its types.
        """
        import numpy as np

        if not self.skip:
            return rows, [(np.arange(len(rows)), answer(rows))]
        unusable: dict[int, str] = {}
        rows = self._settled(rows, unusable)
        wrong = unusable | self._wrong_entries(rows)
        places = np.array([row for row in range(len(rows)) if row not in wrong], dtype=np.intp)
        parts = list(_halves(rows, places, answer, wrong))
        if blank and not parts:
            parts = [(np.arange(0), answer(_blank(rows)))]
        self.skipped += len(wrong)
        self.reasons += [(row, wrong[row]) for row in sorted(wrong)[: REASONS - len(self.reasons)]]
        return rows, parts

    def log_probs(self, rows: Any, given: Sequence[str | int] | None) -> NDArray[Any]:
        """log p of rows given some columns; NaN for rows that are skipped."""
        import numpy as np

        rows, parts = self.answers(rows, lambda some: self.model.score_samples(some, given=given))
        log_p = np.full(len(rows), np.nan, dtype=self.model.config.parameters["dtype"])
        for places, values in parts:
            log_p[places] = values
        return log_p

    def _settled(self, rows: Any, unusable: dict[int, str]) -> Any:
        """A batch without entries that make a whole column unusable: they become missing, and their rows are skipped.

        Such entries are infinities, and text in a column of numbers, which turns the column into text.
        """
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        from made.io.checks import is_text

        if not hasattr(rows, "column_names"):
            infinite = np.isinf(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, dtype=np.bool_)
            for row, place in np.argwhere(infinite).tolist():
                unusable.setdefault(row, INFINITY.format(f"column {place}"))
            return np.where(infinite, np.nan, rows) if infinite.any() else rows
        for place, (name, kind) in enumerate(zip(rows.column_names, rows.schema.types, strict=True)):
            endless = pc.is_inf(rows.column(place)) if pa.types.is_floating(kind) else None
            if endless is not None and pc.any(endless).as_py():
                for row in np.flatnonzero(endless.fill_null(False).to_numpy()).tolist():
                    unusable.setdefault(row, INFINITY.format(f"column {place} ({name!r})"))
                rows = rows.set_column(place, name, pc.if_else(endless, pa.scalar(None, kind), rows.column(place)))
        schema = self.model.schema
        for d, field in enumerate(schema.fields):
            if d == self.ignore or field.listed or field.temporal is not None:
                continue
            place = rows.column_names.index(field.name) if schema.named else d
            kind = rows.schema.types[place]
            if is_text(kind.value_type if pa.types.is_dictionary(kind) else kind):
                name = rows.column_names[place]
                numbers = _numbers(rows.column(place), field, f"column {place} ({name!r})", unusable)
                rows = rows.set_column(place, name, numbers)
        return rows

    def _wrong_entries(self, rows: Any) -> dict[int, str]:
        """The rows with an invalid value, and the first error of each."""
        from made.errors import MadeError

        schema, wrong = self.model.schema, dict[int, str]()
        try:
            table = self.model.table(rows, self.ignore)
            places = schema.positions(table)
        except MadeError as error:
            if error.row is None:
                raise
            return wrong  # not a table as a whole: rows are tried one by one
        for number, (field, d) in enumerate(zip(schema.fields, places, strict=True)):
            if number == self.ignore:
                continue
            for row, why in encoded(field, table.columns[d], table.dtypes[d], table.label(d))[1].items():
                wrong.setdefault(row, why)
        return wrong


def encoded(field: Field, values: NDArray[Any], dtype: Dtype, label: str) -> tuple[NDArray[Any], dict[int, str]]:
    """The codes of a column, NaN for a missing value and for one that it refuses; and why, by the row."""
    import numpy as np

    from made.tables.plain import is_missing

    seen = np.flatnonzero(~is_missing(values))
    distinct, which = np.unique(values[seen], return_inverse=True)  # what is refused is refused in every row
    faults, codes, found = dict[int, str](), np.full(len(values), np.nan), np.full(len(distinct), np.nan)
    encode = partial(field.encode, dtype=dtype, label=label)
    for places, some in _halves(distinct, np.arange(len(distinct)), encode, faults):
        found[places] = some
    codes[seen] = found[which]
    refused = zip(seen.tolist(), which.tolist(), strict=True) if faults else ()
    return codes, {row: faults[value] for row, value in refused if value in faults}


def _numbers(column: Any, field: Field, label: str, unusable: dict[int, str]) -> pa.Array:
    """A column of text as numbers; other text becomes missing."""
    import numpy as np
    import pyarrow as pa

    from made.errors import DataError
    from made.tables.plain import number_in

    texts = column.to_pylist()
    known = {text: None if text is None else number_in(text, False) for text in dict.fromkeys(texts)}
    for row, text in enumerate(texts):
        if known[text] is None and text:
            try:
                field.encode(np.array([text], dtype=object), "text", label)
            except DataError as error:
                unusable.setdefault(row, error.message)
    whole = field.dtype == "int" and all(number is None or number == round(number) for number in known.values())
    numbers = pa.array([known[text] for text in texts], pa.float64())
    return numbers.cast(pa.int64()) if whole else numbers


def _blank(rows: Any) -> Any:
    """A row with the types of a batch, and without observed values."""
    import numpy as np
    import pyarrow as pa

    if not hasattr(rows, "column_names"):
        return np.full((1, rows.shape[1]), np.nan)
    return pa.table([pa.nulls(1, each) for each in rows.schema.types], names=rows.column_names)


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


def spread(parts: Parts[Any], rows: int, names: Sequence[str] | None) -> Any:
    """Partial answers, at least one, as a table of all ``rows`` rows; the other rows are empty."""
    import numpy as np
    import pyarrow as pa

    if len(parts) == 1 and len(parts[0][0]) == rows:
        return parts[0][1]
    order = np.full(rows, -1)
    order[np.concatenate([places for places, _ in parts])] = np.arange(sum(len(places) for places, _ in parts))
    tables = [arrow(each, names) for _, each in parts]
    return pa.concat_tables(tables, promote_options="permissive").take(pa.array(order, mask=order < 0))
