"""A person's table, taken apart into plain columns, and columns put together as the same kind of table.

Whatever is given, an array or a frame, becomes one array for each column (:mod:`series`). Beside each column
stands the family of values that it had, so that a table can be given back as it came.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from made.errors import DataError
from made.tables.dates import as_datetime64
from made.tables.series import (
    NOTHING,
    Dtype,
    Values,
    as_objects,
    as_series,
    can_hold,
    filled,
    holes,
    plain,
    plain_series,
    storage,
    whole,
)
from made.tables.storage import DEFAULTS, arrow_type, ends_of, numpy_type, storage_of

__all__ = ["Dtype", "Table", "Values", "holes", "plain"]

MOST_BYTES = 4 * 2**30
TEMPORAL = ("date", "datetime")
RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
    "if it contains a single sample."
)


@dataclass(frozen=True, eq=False)
class Table:
    """What was given, taken apart.

    Arguments:
        container: what it was: ``"numpy"`` (lists, too), ``"torch"``, ``"sparse"`` or ``"frame"``.
        given: the array (of a sparse one: the dense one), the tensor, or the frame as narwhals wraps it.
        names: of the columns; None where there are none, as in arrays.
        columns: one plain array each, of shape (rows,).
        dtypes: the family of each column: ``"float"``, ``"int"``, ``"bool"``, ``"text"``, ``"date"`` (a day) or
            ``"datetime"``; ``"none"`` when it is empty.
        declared: whether the frame says that the column's values are categories; if it orders them, the categories.
        rows: how many there are.
        dropped: columns that were there, but are not looked at: their names and places.
        extra: how many of the last columns are not in what was given, and empty; they are not given back.

    Example:
        >>> table = Table.of([[1, "a"], [None, "b"]])
        >>> table.columns, table.dtypes
        ([array([ 1., nan]), array(['a', 'b'], dtype=object)], ['int', 'text'])
    """

    container: Literal["numpy", "torch", "sparse", "frame"]
    given: Any
    names: list[str] | None
    columns: list[Values]
    dtypes: list[Dtype]
    declared: list[bool | tuple[Any, ...]]
    rows: int
    dropped: dict[str, int] = field(default_factory=dict)
    extra: int = 0

    @classmethod
    def of(cls, X: Any, without: Collection[str | int] = (), kept: int | None = None) -> Table:
        """Take apart an array, a tensor, a sparse matrix, a list of rows, or a pandas, polars or pyarrow frame.

        Arguments:
            X: the rows.
            without: columns that are left out, by name or number; they may hold anything.
            kept: the number of the other columns, if it is known: then a frame with names is without what is named, if
                it has it, and an array that has no more columns than that lacks them already.
        """
        if isinstance(X, Table):
            return X
        try:
            frame = nw.from_native(X, pass_through=True)
        except DuplicateError as error:
            raise DataError(f"The columns' names should differ from each other. {error}") from None
        if isinstance(frame, nw.LazyFrame):
            raise DataError("The frame is lazy: collect it first, such as with X.collect().")
        if isinstance(frame, nw.DataFrame):
            return cls._of_frame(frame, without, kept)
        torch, sparse = sys.modules.get("torch"), sys.modules.get("scipy.sparse")
        if torch is not None and isinstance(X, torch.Tensor):
            given = X.detach() if X.layout is torch.strided else X.detach().to_dense()
            # numpy knows all types of tensors but the short floats
            array = (given.double() if given.is_floating_point() else given.resolve_conj()).cpu().numpy()
            return cls._of_array("torch", array, given, without, kept)
        if sparse is not None and sparse.issparse(X):
            size = 8 * int(np.prod(X.shape, dtype=object))
            if size > MOST_BYTES:
                raise DataError(
                    f"The sparse table of shape {X.shape} would take {size / 2**30:.1f} GiB when dense, more than "
                    f"{MOST_BYTES / 2**30:g}: give fewer rows at a time, or fewer columns."
                )
            array = X.toarray()
            return cls._of_array("sparse", array, array, without, kept)
        array = _dense(X)
        return cls._of_array("numpy", array, array, without, kept)

    @classmethod
    def _of_array(
        cls,
        container: Literal["numpy", "torch", "sparse"],
        array: Values,
        given: Any,
        without: Collection[str | int],
        kept: int | None,
    ) -> Table:
        if array.ndim != 2:
            if array.ndim > 2:
                raise DataError(f"Found array with dim {array.ndim}, while dim <= 2 is required.")
            what = "1D" if array.ndim else "scalar"
            raise DataError(f"Expected 2D array, got {what} array instead:\narray={array}.\n{RESHAPE}")
        _check_shape(array.shape)
        dropped = _dropped(None, array.shape[1], without, kept)
        places = [d for d in range(array.shape[1]) if d not in dropped.values()]
        if dropped:
            array, given = array[:, places], given[:, places]
        columns = np.ascontiguousarray(array.T)
        pairs = [plain(column, f"column {d}") for d, column in zip(places, columns, strict=True)]
        return cls._of_pairs(container, given, None, pairs, [False] * len(pairs), dropped)

    @classmethod
    def _of_frame(cls, frame: nw.DataFrame[Any], without: Collection[str | int], kept: int | None) -> Table:
        _check_shape(frame.shape)
        labels = list(frame.columns)
        named = [isinstance(label, str) for label in labels]
        if any(named) and not all(named):
            other = labels[named.index(False)]
            raise DataError(f"The columns' names should all be text: {other!r} is of type {type(other).__name__}.")
        dropped = _dropped(labels if all(named) else None, len(labels), without, kept)
        places = [d for d in range(len(labels)) if d not in dropped.values()]
        if dropped:
            frame = frame.select([labels[d] for d in places])
        series = list(zip(places, frame.iter_columns(), strict=True))
        pairs = [plain_series(each, _label(d, each.name)) for d, each in series]
        declared = [_declared(each) for _, each in series]
        names = [labels[d] for d in places] if all(named) else None
        return cls._of_pairs("frame", frame, names, pairs, declared, dropped)

    @classmethod
    def _of_pairs(
        cls,
        container: Literal["numpy", "torch", "sparse", "frame"],
        given: Any,
        names: list[str] | None,
        pairs: Sequence[tuple[Values, Dtype]],
        declared: Sequence[bool | tuple[Any, ...]],
        dropped: dict[str, int] | None = None,
    ) -> Table:
        columns, dtypes = [column for column, _ in pairs], [dtype for _, dtype in pairs]
        return cls(container, given, names, columns, dtypes, list(declared), len(columns[0]), dropped or {})

    @classmethod
    def blank(cls, types: Sequence[str], names: Sequence[str] | None = None) -> Table:
        """A table of no rows, of types by name (:mod:`storage`): of pyarrow if there are names, or of numpy.

        An array has one type: that of the columns if they have the same one, and it is one of numbers.
        """
        count = len(types)
        if names is None:
            shared = numpy_type(types[0]) if len(set(types)) == 1 else None
            pairs: list[tuple[Values, Dtype]] = [(np.empty(0), "none")] * count
            return cls._of_pairs("numpy", np.empty((0, count), shared or np.float64), None, pairs, [False] * count)
        arrow = nw.Implementation.PYARROW.to_native_namespace()
        columns = [arrow.chunked_array([], arrow_type(each)) for each in types]
        frame = nw.from_native(arrow.table(columns, names=list(names)), eager_only=True)
        # Dates that were text are given as text.
        pairs = [(np.empty(0), "text" if each in ("string", "category") else "none") for each in types]
        return cls._of_pairs("frame", frame, list(names), pairs, [False] * count)

    def storage(self, column: int, dtype: Dtype) -> str | None:
        """The exact type of a column, by name (:mod:`storage`); None if it has none, or one without bounds that is
        the default of its family."""
        name = storage(self.given[:, column]) if self.container == "frame" else storage_of(self.given.dtype)
        wrong = name == "category" and dtype != "text"
        return None if wrong or (name == DEFAULTS[dtype] and ends_of(name) is None) else name

    def with_rows_of(self, other: Table) -> Table:
        """The columns of both, one below the other, to learn from all of them what they are; nothing is given back."""
        places: Sequence[int] = range(len(self.columns))
        if self.names is not None and other.names is not None:
            if differing := sorted(set(self.names) ^ set(other.names)):
                raise DataError(f"The two tables should have the same columns, but only one has {differing[0]!r}.")
            places = [other.names.index(name) for name in self.names]
        elif len(self.columns) != len(other.columns):
            raise DataError(f"The tables have {len(self.columns)} and {len(other.columns)} columns: not the same ones.")
        columns, dtypes = [], []
        for d, place in enumerate(places):
            pair = [(self.columns[d], self.dtypes[d]), (other.columns[place], other.dtypes[place])]
            seen = [each for each in pair if each[1] != "none"] or pair[:1]
            kinds = {dtype for _, dtype in seen}
            for family, what in ((("text",), "text"), (TEMPORAL, "dates")):
                if kinds & set(family) and kinds - set(family):
                    raise DataError(f"{self.label(d)} is {what} in one of the two tables, and not in the other.")
            columns.append(np.concatenate([column for column, _ in seen]))
            widest = next((dtype for dtype in ("datetime", "float") if dtype in kinds), "int")
            dtypes.append(seen[0][1] if len(kinds) == 1 else cast(Dtype, widest))
        return replace(self, columns=columns, dtypes=dtypes, rows=self.rows + other.rows)

    def with_empty_column(self, name: str) -> Table:
        """With one column more, the last, in which nothing is observed; it is not given back."""
        empty = np.full(self.rows, np.nan)
        return replace(
            self,
            extra=self.extra + 1,
            names=None if self.names is None else [*self.names, name],
            columns=[*self.columns, empty],
            dtypes=[*self.dtypes, "none"],
            declared=[*self.declared, False],
        )

    def put_numbers(self, matrix: Values, names: Sequence[str]) -> Any:
        """Numbers about the entries, as an array, or as a frame with columns of these names."""
        matrix, names = matrix[:, : len(names) - self.extra], names[: len(names) - self.extra]
        if self.container == "frame":
            columns = dict(zip(names, np.ascontiguousarray(matrix.T), strict=True))
            frame = nw.from_dict(columns, backend=self.given.implementation).to_native()
            return frame.set_index(self.given.to_native().index) if self.given.implementation.is_pandas() else frame
        return sys.modules["torch"].from_numpy(matrix) if self.container == "torch" else matrix

    def template(self) -> Table:
        """The same without rows: all that :meth:`put` needs to know, and no data is kept."""
        given = self.given.head(0).clone() if self.container == "frame" else self.given[:0]
        given = given.copy() if isinstance(given, np.ndarray) else given.clone()
        return replace(self, given=given, columns=[column[:0].copy() for column in self.columns], rows=0)

    @cached_property
    def places(self) -> list[int]:
        """Where the columns were when none was dropped."""
        dropped = set(self.dropped.values())
        return [place for place in range(len(self.columns) + len(dropped)) if place not in dropped]

    def all_names(self) -> list[str]:
        """The names of all columns that there were, dropped ones, too."""
        names = [f"x{place}" for place in range(len(self.columns) + len(self.dropped))]
        for place, name in (
            *zip(self.places, self.names or [], strict=False),
            *((d, n) for n, d in self.dropped.items()),
        ):
            names[place] = name
        return names

    def native(self, X: Any) -> Any:
        """What was given, without dropped columns if it is a frame."""
        return self.given.to_native() if self.container == "frame" and self.dropped else X

    def label(self, column: int) -> str:
        """A column, for messages."""
        return _label(self.places[column], None if self.names is None else self.names[column])

    def put(self, columns: Sequence[Values], dtypes: Sequence[Dtype]) -> Any:
        """Plain columns, of any number of rows, in the same kind of container and with the same types if they fit."""
        if self.container == "frame":
            given = self.given.iter_columns()
            made = [as_series(*each) for each in zip(given, columns, dtypes, strict=True)]
            return nw.from_dict({each.name: each for each in made}).to_native()
        if self._is_dates(dtypes):
            return self._dates(columns)
        if {"text", *TEMPORAL} & set(dtypes) or (self.container == "numpy" and self.given.dtype.kind in "OUT"):
            self._refuse_text(columns, dtypes)
            out = np.stack([as_objects(*each) for each in zip(columns, dtypes, strict=True)], axis=1)
            return out.astype(str) if self._is_text(dtypes) and not holes(out).any() else out
        return self._numbers(np.stack(columns, axis=1))

    def fill(self, columns: Sequence[Values], dtypes: Sequence[Dtype]) -> Any:
        """What was given, exactly, with the values of plain columns where it has holes."""
        if self.extra:
            count = len(self.columns) - self.extra
            names = None if self.names is None else self.names[:count]
            own = replace(self, names=names, columns=self.columns[:count], dtypes=self.dtypes[:count], extra=0)
            return own.fill(columns[:count], dtypes[:count])
        hole = [holes(column) for column in self.columns]
        if self.container == "frame":
            new = [
                filled(each, self.columns[d], hole[d], columns[d], dtypes[d])
                for d, each in enumerate(self.given.iter_columns())
                if hole[d].any()
            ]
            return (self.given.with_columns(*new) if new else self.given.clone()).to_native()
        if not any(each.any() for each in hole):
            return self.given.clone() if self.container == "torch" else self.given.copy()
        needed: list[Dtype] = ["none" if not each.any() else dtype for each, dtype in zip(hole, dtypes, strict=True)]
        if self._is_dates(needed):
            return np.where(np.stack(hole, axis=1), self._dates(columns), self.given)
        if not {"text", *TEMPORAL} & set(needed) and (self.container != "numpy" or self.given.dtype.kind in "biuf"):
            where, matrix = np.stack(hole, axis=1), np.zeros((self.rows, len(hole)))
            for d, column in enumerate(columns):
                matrix[hole[d], d] = column[hole[d]] if needed[d] != "none" else 0
            filling = self._numbers(matrix)
            if self.container == "torch":
                torch: Any = sys.modules["torch"]
                return torch.where(torch.from_numpy(where).to(self.given.device), filling, self.given)
            return np.where(where, filling, self.given)
        self._refuse_text(columns, dtypes)
        out = self.given.astype(object)
        for d, each in enumerate(hole):
            out[each, d] = as_objects(columns[d][each], dtypes[d])
        if self._is_text(needed):
            out[holes(out)] = ""
            return out.astype(str)
        return out

    def _numbers(self, matrix: Values) -> Any:
        """Numbers as an array or a tensor, of the type that was given if it can hold them, otherwise float64."""
        kind, name = self.given.dtype, storage_of(self.given.dtype)
        exact = name is None or can_hold(name, matrix)
        if self.container != "torch":
            exactly = whole(matrix) if exact and kind.kind in "biu" else matrix
            return exactly.astype(kind if exact else np.float64)
        torch: Any = sys.modules["torch"]
        exactly = whole(matrix) if exact and not kind.is_floating_point else matrix
        return torch.from_numpy(exactly).to(device=self.given.device, dtype=kind if exact else torch.float64)

    def _is_dates(self, dtypes: Sequence[Dtype]) -> bool:
        """Whether these can be an array of numpy's own dates, as what was given is."""
        return self.container == "numpy" and self.given.dtype.kind == "M" and set(dtypes) <= {*TEMPORAL, "none"}

    def _is_text(self, dtypes: Sequence[Dtype]) -> bool:
        """Whether these can be an array of numpy's own text, as what was given is."""
        return self.container == "numpy" and self.given.dtype.kind == "U" and set(dtypes) <= {"text", "none"}

    def _dates(self, columns: Sequence[Values]) -> Values:
        """Dates, in the unit of the array that was given."""
        unit = np.datetime_data(self.given.dtype)[0]
        times = as_datetime64(np.stack(columns, axis=1), unit=unit)
        cast = times.astype(self.given.dtype)
        fine = unit in ("ns", "ps", "fs", "as")
        if fine and (wrong := ~np.isnat(times) & (cast.astype(times.dtype) != times)).any():
            row, column = (int(each[0]) for each in np.nonzero(wrong))
            raise DataError(
                f"{self.label(column)}: {times[row, column]} is beyond what {cast.dtype} can hold: give the dates as "
                "datetime64[us].",
                row=row,
            )
        return cast

    def _refuse_text(self, columns: Sequence[Values], dtypes: Sequence[Dtype]) -> None:
        if self.container == "torch" and "text" in dtypes:
            d = list(dtypes).index("text")
            raise DataError(
                f"{self.label(d)} is text, which a tensor cannot hold: give an array of objects, or a frame."
            )


def _label(column: int, name: Any) -> str:
    return f"column {column} ({name!r})" if isinstance(name, str) else f"column {column}"


def _check_shape(shape: tuple[int, ...]) -> None:
    for count, what in zip(shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise DataError(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")


def _dropped(
    names: Sequence[str] | None, count: int, without: Collection[str | int], kept: int | None
) -> dict[str, int]:
    """The names and places of columns to be left out; see :meth:`Table.of`."""
    called = [f"x{d}" for d in range(count)] if names is None else names
    if names is None and kept is not None and count != kept + sum(isinstance(each, int) for each in without):
        return {}  # it lacks them already, or is another table, about which others complain
    by_place = kept is None or names is None
    dropped = {name: d for d, name in enumerate(called) if name in without or (by_place and d in without)}
    if len(dropped) == count:
        raise DataError(f"All of the {count} columns are to be dropped, so that there is nothing to learn: keep one.")
    return dropped


def _dense(X: Any) -> Values:
    """Anything else as an array of numpy: masked entries are holes, and numbers in a list do not become text."""
    if isinstance(X, np.ma.MaskedArray):
        values, mask = X.data, np.ma.getmaskarray(X)
        return np.where(mask, NOTHING if values.dtype.kind in "OUT" else np.nan, values)
    try:
        array = np.asarray(X)
        return np.array(X, dtype=object) if array.dtype.kind in "US" and not isinstance(X, np.ndarray) else array
    except ValueError as error:
        raise DataError(f"The rows should all have the same number of columns: {error}") from None


def _declared(series: nw.Series[Any]) -> bool | tuple[Any, ...]:
    """Whether a series says that its values are categories; if it orders them, the categories."""
    kind: Any = series.dtype
    if kind == nw.Enum:  # ordered ones of pandas, too
        return tuple(kind.categories)
    native: Any = series.to_native()
    if kind == nw.Categorical and getattr(getattr(native, "type", None), "ordered", False):
        return tuple(native.unify_dictionaries().chunk(0).dictionary.to_pylist()) if native.num_chunks else True
    return bool(kind == nw.Categorical)
