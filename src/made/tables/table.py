"""A user's table, array or frame, as plain columns (:mod:`made.tables.plain`) and what is needed to rebuild it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from made.errors import DataError
from made.tables.plain import NOTHING, Dtype, Values, is_numpy_number, kind_of, plain, plain_series
from made.tables.storage import DEFAULTS, arrow_type, ends_of, numpy_type, storage_of

Container: TypeAlias = Literal["numpy", "torch", "sparse", "frame"]

MOST_BYTES = 4 * 2**30
TEMPORAL = ("date", "datetime")
RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
    "if it contains a single sample."
)


@dataclass(frozen=True, eq=False)
class Table:
    """Plain columns, and the container that they came in: lists are ``"numpy"``, too.

    Example:
        >>> table = Table.of([[1, "a"], [None, "b"]])
        >>> table.columns, table.dtypes
        ([array([ 1., nan]), array(['a', 'b'], dtype=object)], ['int', 'text'])
    """

    container: Container
    given: Any  # the array (dense, if it was sparse), the tensor, or the frame in a narwhals wrapper
    names: list[str] | None  # None for arrays
    columns: list[Values]  # each of shape (rows,)
    dtypes: list[Dtype]  # "none" if all values of a column are missing
    declared: list[bool | tuple[Any, ...]]  # declared categorical by the frame; the categories, if they are ordered
    dropped: dict[str, int] = field(default_factory=dict)  # columns that are left out: their names and positions
    extra: int = 0  # number of last columns that were added, with missing values only; they are not given back

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0])

    @property
    def head(self) -> Table:
        """A table with these columns: this one, as in :class:`made.tables.stream.TableStream`."""
        return self

    def pieces(self) -> Iterator[Table]:
        """All rows: this table, in one piece."""
        yield self

    @classmethod
    def of(cls, X: Any, without: Collection[str | int] = (), kept: int | None = None) -> Table:
        """The columns of an array, a tensor, a sparse matrix, a list of rows, or a pandas, polars or pyarrow frame.

        Columns ``without``, by name or position, are dropped; they may hold anything. If the number of columns to be
        ``kept`` is known, a column to drop may be absent, from a frame by name, and from an array of just that many.
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
            # numpy has no bfloat16
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
        _check_names_are_kept(X)
        array = _dense(X)
        return cls._of_array("numpy", array, array, without, kept)

    @classmethod
    def _of_array(
        cls, container: Container, array: Values, given: Any, without: Collection[str | int], kept: int | None
    ) -> Table:
        if array.ndim > 2:
            raise DataError(f"Found array with dim {array.ndim}, while dim <= 2 is required.")
        if array.ndim < 2:
            what = "1D" if array.ndim else "scalar"
            raise DataError(f"Expected 2D array, got {what} array instead:\narray={array}.\n{RESHAPE}")
        _check_shape(array.shape)
        dropped = _dropped(None, array.shape[1], without, kept)
        places = [d for d in range(array.shape[1]) if d not in dropped.values()]
        if dropped:
            array, given = array[:, places], given[:, places]
        columns = np.ascontiguousarray(array.T)
        pairs = [plain(column, f"column {d}") for d, column in zip(places, columns, strict=True)]
        return cls(container, given, None, *_apart(pairs), [False] * len(pairs), dropped)

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
            frame = frame[:, places]  # by place: the names may be numbers
        series = list(zip(places, frame.iter_columns(), strict=True))
        pairs = [_plain(each, d) for d, each in series]
        declared = [_declared(each) for _, each in series]
        names = [labels[d] for d in places] if all(named) else None
        return cls("frame", frame, names, *_apart(pairs), declared, dropped)

    @classmethod
    def blank(cls, types: Sequence[str], names: Sequence[str] | None = None) -> Table:
        """A table without rows, of types by name (:mod:`made.tables.storage`): pyarrow with names, otherwise numpy.

        An array has the type of its columns if that is the same numeric one for all, otherwise float64.
        """
        columns: list[Values] = [np.empty(0)] * len(types)
        dtypes: list[Dtype] = ["none"] * len(types)
        if names is None:
            shared = numpy_type(types[0]) if len(set(types)) == 1 else None
            given: Any = np.empty((0, len(types)), shared or np.float64)
            return cls("numpy", given, None, columns, dtypes, [False] * len(types))
        arrow = nw.Implementation.PYARROW.to_native_namespace()
        empty = [arrow.chunked_array([], arrow_type(each)) for each in types]
        given = nw.from_native(arrow.table(empty, names=list(names)), eager_only=True)
        # Dates that were text are given back as text.
        dtypes = ["text" if each in ("string", "category") else "none" for each in types]
        return cls("frame", given, list(names), columns, dtypes, [False] * len(types))

    def storage(self, column: int, dtype: Dtype) -> str | None:
        """The name of a column's exact type (:mod:`made.tables.storage`); None if it has none, or if it is the default
        of its dtype and holds every float64."""
        if self.container == "frame":
            series = self.given[:, column]
            types = {str(getattr(series.to_native(), each, "")) for each in ("type", "dtype")}
            name = "float16" if types & {"halffloat", "float16", "Float16"} else storage_of(kind_of(series))
        else:
            name = storage_of(self.given.dtype)
        wrong = name == "category" and dtype != "text"
        return None if wrong or (name == DEFAULTS[dtype] and ends_of(name) is None) else name

    def same_type(self, column: int, other: Table, place: int) -> bool:
        """Whether a column has the same type as that in a place of another table."""
        if self.container == "frame" and other.container == "frame":
            return bool(kind_of(self.given[:, column]) == kind_of(other.given[:, place]))
        return self.container == other.container and self.given.dtype == other.given.dtype

    def repeated(self, counts: Values) -> Table:
        """Each row as often as it counts, for inferring a schema; the result cannot be rebuilt."""
        return replace(self, columns=[np.repeat(column, counts) for column in self.columns])

    def with_empty_column(self, name: str) -> Table:
        """The table with one more column, the last, of missing values; it is not given back."""
        return replace(
            self,
            extra=self.extra + 1,
            names=None if self.names is None else [*self.names, name],
            columns=[*self.columns, np.full(self.rows, np.nan)],
            dtypes=[*self.dtypes, "none"],
            declared=[*self.declared, False],
        )

    def put_numbers(self, matrix: Values, names: Sequence[str]) -> Any:
        """A number for each entry, as an array, or as a frame with columns of these names."""
        matrix, names = matrix[:, : len(names) - self.extra], names[: len(names) - self.extra]
        if self.container == "frame":
            columns = dict(zip(names, np.ascontiguousarray(matrix.T), strict=True))
            frame = nw.from_dict(columns, backend=self.given.implementation).to_native()
            return frame.set_index(self.given.to_native().index) if self.given.implementation.is_pandas() else frame
        return sys.modules["torch"].from_numpy(matrix) if self.container == "torch" else matrix

    def template(self) -> Table:
        """The same table without rows: all that :func:`made.tables.restore.rebuild` needs."""
        given = self.given.head(0).clone() if self.container == "frame" else self.given[:0]
        given = given.copy() if isinstance(given, np.ndarray) else given.clone()
        return replace(self, given=given, columns=[column[:0].copy() for column in self.columns])

    @cached_property
    def places(self) -> list[int]:
        """Positions of the columns before others were dropped."""
        dropped = set(self.dropped.values())
        return [place for place in range(len(self.columns) + len(dropped)) if place not in dropped]

    def all_names(self) -> list[str]:
        """The names of all columns, including dropped ones."""
        names = dict(zip(self.places, self.names or [], strict=False))
        names |= {place: name for name, place in self.dropped.items()}
        return [names.get(place, f"x{place}") for place in range(len(self.columns) + len(self.dropped))]

    def native(self, X: Any) -> Any:
        """What was given, X; a frame without its dropped columns, or if there is no X."""
        return self.given.to_native() if self.container == "frame" and (self.dropped or X is None) else X

    def label(self, column: int) -> str:
        """A column's position and name, for messages."""
        return _label(self.places[column], None if self.names is None else self.names[column])


def _apart(pairs: Sequence[tuple[Values, Dtype]]) -> tuple[list[Values], list[Dtype]]:
    return [column for column, _ in pairs], [dtype for _, dtype in pairs]


def _plain(series: nw.Series[Any], place: int) -> tuple[Values, Dtype]:
    """A column of a frame as a plain column; an error knows its name."""
    try:
        return plain_series(series, _label(place, series.name))
    except DataError as error:
        error.column = series.name if isinstance(series.name, str) else None
        raise


def _label(column: int, name: Any) -> str:
    return f"column {column} ({name!r})" if isinstance(name, str) else f"column {column}"


def _check_shape(shape: tuple[int, ...]) -> None:
    for count, what in zip(shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise DataError(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")


def _dropped(
    names: Sequence[str] | None, count: int, without: Collection[str | int], kept: int | None
) -> dict[str, int]:
    """The names and positions of columns to drop; see :meth:`Table.of`."""
    called = [f"x{d}" for d in range(count)] if names is None else names
    if names is None and kept is not None and count != kept + sum(isinstance(each, int) for each in without):
        return {}  # it lacks them already, or is a wrong table, which is refused later
    by_place = kept is None or names is None
    dropped = {name: d for d, name in enumerate(called) if name in without or (by_place and d in without)}
    if len(dropped) == count:
        raise DataError(f"All {count} columns are dropped: keep at least one.")
    return dropped


def _check_names_are_kept(X: Any) -> None:
    """Refuse what has named columns and is no frame: as an array it would lose their names."""
    first = X[0] if isinstance(X, (list, tuple)) and X else X
    batches = hasattr(X, "__arrow_c_stream__") and hasattr(X, "schema")
    if batches or isinstance(first, Mapping) or getattr(getattr(X, "dtype", None), "names", None):
        remedy = "pyarrow.table(X)" if batches else "pandas.DataFrame(X)"
        what = type(X).__name__ + (f" of {type(first).__name__}" if first is not X else "")
        raise DataError(f"A {what} is no data frame: convert it, such as with {remedy}.")


def plain_value(value: Any, label: str) -> tuple[Values, Dtype]:
    """One value as a plain column of one row, and its dtype; ``label`` names it in messages."""
    return plain(_dense([value]), label)


def _dense(X: Any) -> Values:
    """Anything else as a numpy array: masked entries are missing, and numbers in a list do not become text."""
    if isinstance(X, np.ma.MaskedArray):
        values, mask = X.data, np.ma.getmaskarray(X)
        return np.where(mask, NOTHING if values.dtype.kind in "OUT" else np.nan, values)
    try:
        array = np.asarray(X)
        return np.array(X, dtype=object) if array.dtype.kind in "US" and not isinstance(X, np.ndarray) else array
    except ValueError as error:
        raise DataError(f"The rows should all have the same number of columns: {error}") from None


def _declared(series: nw.Series[Any]) -> bool | tuple[Any, ...]:
    """Whether a series is declared categorical; its categories, if they are ordered."""
    if is_numpy_number(getattr(series.to_native(), "dtype", None)):
        return False
    kind: Any = series.dtype
    if kind == nw.Enum:  # also an ordered categorical of pandas
        return tuple(kind.categories)
    native: Any = series.to_native()
    if kind == nw.Categorical and getattr(getattr(native, "type", None), "ordered", False):
        return tuple(native.unify_dictionaries().chunk(0).dictionary.to_pylist()) if native.num_chunks else True
    return bool(kind == nw.Categorical)


def with_target(X: Any, y: Any) -> Any:
    """X with y as its last column: a frame if X is one, otherwise an array.

    The column keeps the name of y if it has one; default: "y", or another name if X has that already, or the next
    number if the columns of X are numbered.

    Example:
        >>> with_target([[1.0, 2.0], [3.0, 4.0]], [0, 1])
        array([[1., 2., 0.],
               [3., 4., 1.]])
    """
    series: Any = nw.from_native(y, pass_through=True, allow_series=True)
    name = getattr(series, "name", None)
    if isinstance(series, nw.DataFrame):
        if series.shape[1] != 1:
            raise DataError(f"'y' should be one column, not {series.shape[1]}: put further ones into X.")
        name = series.columns[0]
        series = series[name]
    values: Any = series.to_numpy() if isinstance(series, nw.Series) else _array(series)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"'y' should be one column, of shape (rows,), not {values.shape}: put further ones into X.")
    frame = nw.from_native(X, pass_through=True)
    array = None if isinstance(frame, nw.DataFrame) else _array(X)
    rows = len(frame if array is None else array)
    if rows != len(values):
        raise DataError(f"Found input variables with inconsistent numbers of samples: {[rows, len(values)]}.")
    if array is None:
        names = list(frame.columns)
        free: list[Any] = [each for each in (name, "y", "target", "y_target") if isinstance(each, str)]
        if not any(isinstance(each, str) for each in names):  # numbers
            free = list(range(len(names), 2 * len(names) + 1))
        free = [each for each in free if each not in names]
        return _into_frame(frame, series if isinstance(series, nw.Series) else values, free[0])
    if array.dtype.kind not in "biuf" or values.dtype.kind not in "biuf":
        array = array.astype(object)
    return np.concatenate([array, values.astype(np.result_type(array, values))[:, None]], axis=1)


def _into_frame(frame: nw.DataFrame[Any], y: Any, name: Any) -> Any:
    if frame.implementation.is_pandas_like():
        native = frame.to_native().copy()
        column = y.to_native() if isinstance(y, nw.Series) else y
        # By position: scikit-learn ignores the index of y.
        native[name] = column.array if hasattr(column, "array") else np.asarray(column)
        return native
    values = y.to_list() if isinstance(y, nw.Series) else y.tolist()
    return frame.with_columns(nw.new_series(name, values, backend=frame.implementation)).to_native()


def _array(values: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        return values.detach().cpu().numpy()
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)
