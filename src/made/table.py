"""A person's table, taken apart into plain columns, and columns put together as the same kind of table.

Whatever is given, an array or a frame, becomes one array for each column: numbers are float64 with NaN where nothing
was observed, text is objects of str with None. NaN, None, null, pd.NA and empty text all mean "not observed". Beside
each column stands the family of values that it had, so that a table can be given back as it came.
"""

from __future__ import annotations

import datetime
import numbers
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from made.errors import DataError

__all__ = ["Dtype", "Table", "holes", "plain"]

Values: TypeAlias = NDArray[Any]
Dtype: TypeAlias = Literal["float", "int", "bool", "text", "none"]

MOST_BYTES = 4 * 2**30
NOTHING = np.array(None, dtype=object)
RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
    "if it contains a single sample."
)


def holes(values: Values) -> NDArray[np.bool_]:
    """Where a plain column has nothing. Shapes: (rows,) to (rows,)."""
    hole = np.equal(values, NOTHING) if values.dtype == object else np.isnan(values)
    return np.asarray(hole, dtype=np.bool_)


def plain(values: Values, label: str) -> tuple[Values, Dtype]:
    """One column as float64 with NaN, or as objects of str with None, and its family. ``label`` is for messages."""
    values = np.asarray(values)
    kind = values.dtype.kind
    if kind in "biuf":
        column: Values = _finite(values.astype(np.float64, copy=False), label)
        return column, _family(column, "bool" if kind == "b" else "float" if kind == "f" else "int")
    if kind == "c":
        raise DataError(f"Complex data not supported: {label} has {values.dtype} values, give real numbers.")
    if kind in "mM":
        raise _temporal(label, str(values.dtype))
    return _plain_objects(values.astype(object) if kind in "UT" else values, label)


def _plain_objects(values: Values, label: str) -> tuple[Values, Dtype]:
    if values.dtype != object:
        raise TypeError(f"{label}: argument must be a string or a number, not {values.dtype}.")
    types = set(map(type, values.tolist()))
    missing = {kind for kind in types if kind is type(None) or kind.__name__ in ("NAType", "NaTType")}
    text = {kind for kind in types if issubclass(kind, str)}
    number = {kind for kind in types if issubclass(kind, (numbers.Real, np.bool_, Decimal))}
    for kind in types - missing - text - number:
        if issubclass(kind, numbers.Complex):
            raise DataError(f"Complex data not supported: {label} has {kind.__name__} values, give real numbers.")
        if issubclass(kind, (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)):
            raise _temporal(label, kind.__name__)
        raise TypeError(f"{label}: argument must be a string or a number, not '{kind.__name__}'.")
    if text:
        # Each distinct value is looked at once; NaN is the one number that may stand among text.
        known = {each: str(each) if type(each) in text and each else None for each in dict.fromkeys(values.tolist())}
        example = next(filter(None, known.values()), None)
        if example is not None:
            for each in known:
                if type(each) in number and each == each:
                    raise DataError(
                        f"{label} has both numbers ({each!r}) and text ({example!r}): make it all one or the other."
                    )
            column = np.empty(len(values), dtype=object)
            column[:] = [known[each] for each in values.tolist()]
            return column, "text"
    if missing - {type(None)} or text:
        values = np.array([each if type(each) in number else None for each in values.tolist()], dtype=object)
    try:
        column = _finite(values.astype(np.float64), label)
    except OverflowError:
        raise DataError(f"{label} has a number that is infinity to a float64, being too large: scale it.") from None
    number = set(map(type, values[~np.isnan(column)].tolist()))  # of those observed: NaN may stand among integers
    if all(issubclass(kind, (bool, np.bool_)) for kind in number):
        return column, _family(column, "bool")
    return column, _family(column, "int" if all(issubclass(kind, numbers.Integral) for kind in number) else "float")


def _finite(column: Values, label: str) -> Values:
    if np.isinf(column).any():
        row = int(np.flatnonzero(np.isinf(column))[0])
        raise DataError(f"row {row}, {label}: infinity cannot be used: give a number, or NaN for 'not observed'.")
    return column


def _family(column: Values, dtype: Dtype) -> Dtype:
    return "none" if len(column) and np.isnan(column).all() else dtype


def _temporal(label: str, dtype: str) -> DataError:
    return DataError(f"{label} has dates or times ({dtype}): convert it to a number, such as days since some day.")


@dataclass(frozen=True, eq=False)
class Table:
    """What was given, taken apart.

    Arguments:
        container: what it was: ``"numpy"`` (lists, too), ``"torch"``, ``"sparse"`` or ``"frame"``.
        given: the array (of a sparse one: the dense one), the tensor, or the frame as narwhals wraps it.
        names: of the columns; None where there are none, as in arrays.
        columns: one plain array each, of shape (rows,).
        dtypes: the family of each column: ``"float"``, ``"int"``, ``"bool"``, ``"text"``; ``"none"`` when it is empty.
        declared: whether the frame says that the column's values are categories.
        rows: how many there are.

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
    declared: list[bool]
    rows: int

    @classmethod
    def of(cls, X: Any) -> Table:
        """Take apart an array, a tensor, a sparse matrix, a list of rows, or a pandas, polars or pyarrow frame."""
        if isinstance(X, Table):
            return X
        try:
            frame = nw.from_native(X, pass_through=True)
        except DuplicateError as error:
            raise DataError(f"The columns' names should differ from each other. {error}") from None
        if isinstance(frame, nw.LazyFrame):
            raise DataError("The frame is lazy: collect it first, such as with X.collect().")
        if isinstance(frame, nw.DataFrame):
            return cls._of_frame(frame)
        torch, sparse = sys.modules.get("torch"), sys.modules.get("scipy.sparse")
        if torch is not None and isinstance(X, torch.Tensor):
            given = X.detach() if X.layout is torch.strided else X.detach().to_dense()
            # numpy knows all types of tensors but the short floats
            array = (given.double() if given.is_floating_point() else given.resolve_conj()).cpu().numpy()
            return cls._of_array("torch", array, given)
        if sparse is not None and sparse.issparse(X):
            size = 8 * int(np.prod(X.shape, dtype=object))
            if size > MOST_BYTES:
                raise DataError(
                    f"The sparse table of shape {X.shape} would take {size / 2**30:.1f} GiB when dense, more than "
                    f"{MOST_BYTES / 2**30:g}: give fewer rows at a time, or fewer columns."
                )
            array = X.toarray()
            return cls._of_array("sparse", array, array)
        array = _dense(X)
        return cls._of_array("numpy", array, array)

    @classmethod
    def _of_array(cls, container: Literal["numpy", "torch", "sparse"], array: Values, given: Any) -> Table:
        if array.ndim != 2:
            if array.ndim > 2:
                raise DataError(f"Found array with dim {array.ndim}, while dim <= 2 is required.")
            what = "1D" if array.ndim else "scalar"
            raise DataError(f"Expected 2D array, got {what} array instead:\narray={array}.\n{RESHAPE}")
        _check_shape(array.shape)
        columns = np.ascontiguousarray(array.T)
        pairs = [plain(column, f"column {d}") for d, column in enumerate(columns)]
        return cls._of_pairs(container, given, None, pairs, [False] * len(pairs))

    @classmethod
    def _of_frame(cls, frame: nw.DataFrame[Any]) -> Table:
        _check_shape(frame.shape)
        labels = list(frame.columns)
        named = [isinstance(label, str) for label in labels]
        if any(named) and not all(named):
            other = labels[named.index(False)]
            raise DataError(f"The columns' names should all be text: {other!r} is of type {type(other).__name__}.")
        pairs = [_plain_series(each, _label(d, each.name)) for d, each in enumerate(frame.iter_columns())]
        declared = [kind in (nw.Categorical, nw.Enum) for kind in frame.schema.values()]
        return cls._of_pairs("frame", frame, labels if all(named) else None, pairs, declared)

    @classmethod
    def _of_pairs(
        cls,
        container: Literal["numpy", "torch", "sparse", "frame"],
        given: Any,
        names: list[str] | None,
        pairs: Sequence[tuple[Values, Dtype]],
        declared: list[bool],
    ) -> Table:
        columns, dtypes = [column for column, _ in pairs], [dtype for _, dtype in pairs]
        return cls(container, given, names, columns, dtypes, declared, len(columns[0]))

    @classmethod
    def blank(cls, count: int, names: Sequence[str] | None = None) -> Table:
        """A table of no rows: a pyarrow table if there are names, otherwise a numpy array."""
        pairs: list[tuple[Values, Dtype]] = [(np.empty(0), "none")] * count
        if names is None:
            return cls._of_pairs("numpy", np.empty((0, count)), None, pairs, [False] * count)
        arrow = nw.Implementation.PYARROW.to_native_namespace()
        frame = nw.from_native(arrow.table({name: arrow.nulls(0) for name in names}), eager_only=True)
        return cls._of_pairs("frame", frame, list(names), pairs, [False] * count)

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
            if "text" in kinds and len(kinds) > 1:
                raise DataError(f"{self.label(d)} is text in one of the two tables, and not in the other.")
            columns.append(np.concatenate([column for column, _ in seen]))
            dtypes.append(seen[0][1] if len(kinds) == 1 else "float" if "float" in kinds else "int")
        return replace(self, columns=columns, dtypes=dtypes, rows=self.rows + other.rows)

    def with_empty_column(self, name: str) -> Table:
        """With one column more, in which nothing is observed; for encoding only."""
        empty = np.full(self.rows, np.nan)
        return replace(
            self,
            names=[*(self.names or []), name],
            columns=[*self.columns, empty],
            dtypes=[*self.dtypes, "none"],
            declared=[*self.declared, False],
        )

    def put_numbers(self, matrix: Values, names: Sequence[str]) -> Any:
        """Numbers about the entries, as an array, or as a frame with columns of these names."""
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

    def label(self, column: int) -> str:
        """A column, for messages."""
        return _label(column, None if self.names is None else self.names[column])

    def put(self, columns: Sequence[Values], dtypes: Sequence[Dtype]) -> Any:
        """Plain columns, of any number of rows, in the same kind of container and with the same types if they fit."""
        if self.container == "frame":
            given = self.given.iter_columns()
            made = [_series(*each) for each in zip(given, columns, dtypes, strict=True)]
            return nw.from_dict({each.name: each for each in made}).to_native()
        if "text" in dtypes or (self.container == "numpy" and self.given.dtype.kind in "OUT"):
            self._refuse_text(columns, dtypes)
            return np.stack([_objects(*each) for each in zip(columns, dtypes, strict=True)], axis=1)
        matrix = np.stack(columns, axis=1)
        short: Any = np.float64
        if self.container == "torch":
            torch: Any = sys.modules["torch"]
            short = self.given.dtype if self.given.dtype.is_floating_point else torch.float64
            short = torch.bool if self.given.dtype is torch.bool and _are_bool(matrix, dtypes) else short
            return torch.from_numpy(matrix).to(device=self.given.device, dtype=short)
        if self.given.dtype == np.float32 or (self.given.dtype == np.bool_ and _are_bool(matrix, dtypes)):
            short = self.given.dtype
        return matrix.astype(short)

    def fill(self, columns: Sequence[Values], dtypes: Sequence[Dtype]) -> Any:
        """What was given, exactly, with the values of plain columns where it has holes."""
        hole = [holes(column) for column in self.columns]
        if self.container == "frame":
            new = [
                _filled(each, self.columns[d], hole[d], columns[d], dtypes[d])
                for d, each in enumerate(self.given.iter_columns())
                if hole[d].any()
            ]
            return (self.given.with_columns(*new) if new else self.given.clone()).to_native()
        if not any(each.any() for each in hole):
            return self.given.clone() if self.container == "torch" else self.given.copy()
        needed = ["none" if not each.any() else dtype for each, dtype in zip(hole, dtypes, strict=True)]
        if "text" not in needed and (self.container != "numpy" or self.given.dtype.kind == "f"):
            where, matrix = np.stack(hole, axis=1), np.zeros((self.rows, len(hole)))
            for d, column in enumerate(columns):
                matrix[:, d] = column if needed[d] != "none" else 0
            if self.container == "torch":
                torch: Any = sys.modules["torch"]
                where, matrix = (torch.from_numpy(each).to(self.given.device) for each in (where, matrix))
                return torch.where(where, matrix.to(self.given.dtype), self.given)
            return np.where(where, matrix.astype(self.given.dtype), self.given)
        self._refuse_text(columns, dtypes)
        out = self.given.astype(object)
        for d, each in enumerate(hole):
            out[each, d] = _objects(columns[d][each], dtypes[d])
        if self.given.dtype.kind == "U" and set(needed) <= {"text", "none"}:
            out[holes(out)] = ""
            return out.astype(str)
        return out

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


def _plain_series(series: nw.Series[Any], label: str) -> tuple[Values, Dtype]:
    kind = series.dtype
    if kind.is_temporal():
        raise _temporal(label, str(kind))
    if kind.is_nested():
        raise TypeError(f"{label}: argument must be a string or a number, not '{kind}'.")
    if kind.is_numeric() or kind == nw.Boolean:
        # pyarrow casts no integer that a float64 cannot hold to the digit, numpy no Decimal and no integer of 128 bits
        digits = kind.is_integer() and kind not in (nw.Int128, nw.UInt128)
        column = _finite(np.array((series if digits else series.cast(nw.Float64)).to_numpy(), dtype=np.float64), label)
        return column, _family(column, "bool" if kind == nw.Boolean else "int" if kind.is_integer() else "float")
    values, missing = np.asarray(series.to_numpy()), series.is_null().to_numpy()
    if missing.any():  # never trusted to the conversion: of a pyarrow dictionary, it gives another value for null
        values = values.astype(object)
        values[missing] = None
    return plain(values, label)


def _are_bool(matrix: Values, dtypes: Sequence[Dtype]) -> bool:
    return set(dtypes) == {"bool"} and not np.isnan(matrix).any()


def _objects(values: Values, dtype: Dtype) -> Values:
    """A plain column as Python's own values."""
    out = values.astype(object)
    if dtype in ("int", "bool"):
        fits = np.abs(values) < 2.0**63  # not NaN
        out[fits] = values[fits].astype(np.bool_ if dtype == "bool" else np.int64).astype(object)
    return out


def _series(given: nw.Series[Any], values: Values, dtype: Dtype) -> nw.Series[Any]:
    """A plain column as a series of the same library, of the same type as ``given`` if it can be."""
    kind, native = given.dtype, given.to_native()
    library: Any = given.implementation.to_native_namespace()
    fits = kind in (nw.Categorical, nw.Enum, nw.Object) or (kind == nw.String) == (dtype == "text")
    if given.implementation.is_pandas_like():
        made = _pandas(library, native.dtype if fits or str(native.dtype) == "object" else None, values, dtype)
        made.name = native.name
        return nw.from_native(made, series_only=True)
    array = _arrow(values, dtype)
    if given.implementation.is_polars():
        made = library.Series(given.name, array)
        with suppress(library.exceptions.PolarsError):  # such as a value that an Enum has not
            same = made.cast(native.dtype) if fits and kind != nw.Object else made
            made = same if not kind.is_integer() or (same == made).all() else made
        return nw.from_native(made, series_only=True)
    with suppress(library.ArrowInvalid, library.ArrowNotImplementedError):
        if library.types.is_dictionary(native.type):
            array = array.cast(native.type.value_type).dictionary_encode().cast(native.type)
        elif fits and not library.types.is_null(native.type):
            array = array.cast(native.type)
    series: nw.Series[Any] = nw.from_native(library.chunked_array([array]), series_only=True)
    return series.alias(given.name)


def _arrow(values: Values, dtype: Dtype) -> Any:
    arrow = nw.Implementation.PYARROW.to_native_namespace()
    if dtype == "text":
        return arrow.array(values, type=arrow.string())
    array = arrow.array(values, type=arrow.float64(), from_pandas=True)
    try:
        return array.cast({"int": arrow.int64(), "bool": arrow.bool_()}.get(dtype, arrow.float64()))
    except arrow.ArrowInvalid:
        return array  # too large for an integer


def _pandas(pandas: Any, kind: Any, values: Values, dtype: Dtype) -> Any:
    hole = holes(values).any()
    if str(kind) == "object" or (dtype == "bool" and hole):
        made = pandas.Series(_objects(values, dtype), dtype=object)
        return made if str(kind) in ("None", "object", "bool") else made.astype(kind)
    whole = not hole and (dtype == "bool" or (dtype == "int" and bool((np.abs(values) < 2.0**63).all())))
    made = pandas.Series(values.astype(np.bool_ if dtype == "bool" else np.int64) if whole else values)
    if isinstance(kind, pandas.CategoricalDtype):
        new = made.dropna().drop_duplicates()
        new = new[~new.isin(kind.categories)]
        if len(new) and (dtype == "text") != (kind.categories.dtype.kind == "O"):
            return made
        return made.astype(pandas.CategoricalDtype([*kind.categories, *new], kind.ordered))
    if kind is not None:
        with suppress(ValueError, TypeError, OverflowError):
            same = made.astype(kind)
            # A cast to integers of numpy drops fractions and wraps around.
            return same if kind.kind not in "iub" or bool((same == made).all()) else made
    return made


def _filled(
    given: nw.Series[Any], observed: Values, hole: NDArray[np.bool_], values: Values, dtype: Dtype
) -> nw.Series[Any]:
    merged = observed.copy() if observed.dtype == values.dtype else values.copy()
    merged[hole] = values[hole]
    made = _series(given, merged, dtype)
    kind = given.dtype
    # What was observed is taken from what was given: large integers and decimals are more than a float64 can hold.
    if (kind.is_numeric() or (kind == nw.Object and not given.implementation.is_polars())) and made.dtype == kind:
        seen = nw.new_series("seen", ~hole, nw.Boolean, backend=given.implementation)
        return given.zip_with(seen, made)
    return made
