"""Every container is taken apart and given back as it came."""

from __future__ import annotations

import datetime
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch

from made.errors import DataError
from made.tables.restore import fill_missing, rebuild
from made.tables.table import Table

NAN = float("nan")
FULL = {"age": [30, 10, 90, 70], "tall": [0.5, 1.5, 2.5, 3.5], "in": [True, False, True, False], "home": list("xyzx")}
MISSING = {name: [values[0], None, *values[2:]] for name, values in FULL.items()}
NUMBERS = np.array([[1.0, 2.0], [3.0, NAN], [NAN, 4.0]])
FILLED = np.array([[1.0, 2.0], [3.0, 7.0], [8.0, 4.0]])


def pandas_as(types: dict[str, object]) -> list[pd.DataFrame]:
    """With missing values and without, both of the same types, and with an index that repeats itself."""
    full = pd.DataFrame(FULL, index=[5, 5, 7, 8]).astype(types)
    missing = full.copy()
    for name in types:
        missing[name] = missing[name].where([True, False, True, True])
        if name == "home" and types[name] is object:
            missing.iloc[1, missing.columns.get_loc(name)] = None
    assert (missing.dtypes == full.dtypes).all()
    return [missing[list(types)], full[list(types)]]


DAYS = [datetime.date(2024, 3, 1), datetime.date(1969, 12, 31), datetime.date(2000, 2, 29), datetime.date(1850, 1, 1)]
TIMES = [datetime.datetime(2024, 3, 1, 12, 30, 15, number) for number in (0, 123_456, 999_999, 1)]
WHEN = [
    {"day": [DAYS[0], missing and DAYS[1], *DAYS[2:]], "time": [TIMES[0], missing and TIMES[1], *TIMES[2:]]}
    for missing in (None, True)
]
ZONE = pl.Datetime("ms", "Europe/Paris")
DATES = {
    "pandas dates": [pd.DataFrame(data).astype({"time": "M8[us]"}) for data in WHEN],
    "pandas times": [pd.DataFrame({"time": pd.Series(data["time"], dtype="M8[ns]")}) for data in WHEN],
    "pandas zones": [
        pd.DataFrame({"time": pd.Series(data["time"], dtype="M8[us]").dt.tz_localize("Europe/Paris")}) for data in WHEN
    ],
    "pandas arrow dates": [
        pd.DataFrame(data).astype({"day": "date32[pyarrow]", "time": "timestamp[us][pyarrow]"}) for data in WHEN
    ],
    "polars dates": [pl.DataFrame(data) for data in WHEN],
    "polars zones": [
        pl.DataFrame(data).select(pl.col("time").dt.replace_time_zone("Europe/Paris").cast(ZONE)) for data in WHEN
    ],
    "pyarrow dates": [
        pa.table({"day": pa.array(data["day"], pa.date32()), "time": pa.array(data["time"], pa.timestamp("us", "UTC"))})
        for data in WHEN
    ],
    "numpy dates": [np.array([data["day"]], dtype="M8[D]").T for data in WHEN],
    "numpy times": [np.array([data["time"], TIMES], dtype="M8[us]").T for data in WHEN],
    "numpy objects of dates": [np.array([data["day"], data["time"]], dtype=object).T for data in WHEN],
}

ARROW = {"age": pa.int16(), "tall": pa.float64(), "in": pa.bool_(), "home": pa.string()}
PAIRS = {
    "pandas nullable": pandas_as({"age": "Int8", "tall": "Float64", "in": "boolean", "home": "string"}),
    "pandas arrow": pandas_as({name: pd.ArrowDtype(kind) for name, kind in ARROW.items()}),
    "pandas float32": pandas_as({"tall": "float32", "home": "string[pyarrow]"}),
    "pandas object": pandas_as(dict.fromkeys(FULL, object)),
    "pandas category": pandas_as({"home": pd.CategoricalDtype(list("zyxw"), ordered=True), "age": "category"}),
    "pandas str": pandas_as({"home": "str"}),
    "polars": [pl.DataFrame(MISSING), pl.DataFrame(FULL)],
    "polars categories": [
        pl.DataFrame(data).with_columns(
            pl.col("home").cast(pl.Categorical), e=pl.col("home").cast(pl.Enum(list("zyx")))
        )
        for data in (MISSING, FULL)
    ],
    "polars small": [
        pl.DataFrame(data).with_columns(pl.col("age").cast(pl.UInt8), pl.col("tall").cast(pl.Float32))
        for data in (MISSING, FULL)
    ],
    "pyarrow": [pa.table(data) for data in (MISSING, FULL)],
    "pyarrow categories": [
        pa.table({name: pa.array(data[name]).dictionary_encode() for name in ("age", "home")})
        for data in (MISSING, FULL)
    ],
    "pyarrow others": [
        pa.table(
            {
                "home": pa.array(data["home"], pa.large_string()),
                "price": pa.array([None if x is None else Decimal(x) for x in data["tall"]], pa.decimal128(5, 2)),
                "age": pa.array(data["age"], pa.uint8()),
            }
        )
        for data in (MISSING, FULL)
    ],
    **DATES,
    "numpy float64": [NUMBERS, FILLED],
    "numpy float32": [NUMBERS.astype(np.float32), FILLED.astype(np.float32)],
    "numpy float16": [NUMBERS.astype(np.float16), FILLED.astype(np.float16)],
    "numpy fortran": [np.asfortranarray(NUMBERS), np.asfortranarray(FILLED)],
    "numpy object": [
        np.array([[1, "a", True], [None, "", NAN], [3, "bcd", False]], dtype=object),
        np.array([[1, "a", True], [9, "efghi", True], [3, "bcd", False]], dtype=object),
    ],
    "numpy str": [np.array([["a", "b"], ["", "c"]]), np.array([["a", "b"], ["longer", "c"]])],
    "torch float32": [torch.tensor(NUMBERS).float(), torch.tensor(FILLED).float()],
    "torch bfloat16": [torch.tensor(NUMBERS).bfloat16(), torch.tensor(FILLED).bfloat16()],
}


def same(left: object, right: object) -> None:
    """The same values, of the same types, in the same kind of container."""
    assert type(left) is type(right)
    if isinstance(left, pd.DataFrame):
        pd.testing.assert_frame_equal(left, right)
    elif isinstance(left, (pl.DataFrame, pa.Table)):
        assert left.equals(right)
        assert left.schema == right.schema
    elif isinstance(left, torch.Tensor):
        assert torch.equal(left, right)
        assert left.dtype == right.dtype
    else:
        assert left.dtype.kind == right.dtype.kind
        assert left.dtype == right.dtype or left.dtype.kind == "U"
        np.testing.assert_array_equal(left, right)
        if left.dtype == object:
            assert [type(value) for value in left.flat] == [type(value) for value in right.flat]


@pytest.mark.parametrize("name", PAIRS)
def test_missing_values_are_filled_and_all_else_is_as_it_was(name) -> None:
    missing, full = (Table.of(X) for X in PAIRS[name])
    before = [column.copy() for column in missing.columns]
    same(fill_missing(missing, full.columns, full.dtypes), PAIRS[name][1])
    same(fill_missing(full, full.columns, full.dtypes), PAIRS[name][1])
    for one, other in zip(before, missing.columns, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [name for name in PAIRS if not name.startswith("numpy")])
@pytest.mark.parametrize("which", [0, 1])
def test_columns_are_put_together_as_they_came(name, which) -> None:
    table = Table.of(PAIRS[name][which])
    expected = PAIRS[name][which]
    if isinstance(expected, pd.DataFrame):
        expected = expected.reset_index(drop=True)
    back = rebuild(table.template(), table.columns, table.dtypes)
    if isinstance(back, torch.Tensor):
        assert back.dtype == expected.dtype
        assert torch.equal(back.nan_to_num(), expected.nan_to_num())
    else:
        same(back, expected)


def test_arrays_are_put_together_as_numbers_or_as_objects() -> None:
    for array in (
        *(NUMBERS.astype(kind) for kind in (np.float16, np.float32, np.float64)),
        FILLED.astype(np.int64),
        FILLED.astype(np.uint8),
        scipy.sparse.csr_matrix(NUMBERS),
    ):
        table = Table.of(array)
        back = rebuild(table, table.columns, table.dtypes)
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, np.stack(table.columns, axis=1))
        beyond = rebuild(table, [np.array([1e300, 0.5])] * 2, ["float"] * 2)
        assert beyond.dtype == np.float64
    table = Table.of(np.array([["a", ""], ["b", "c"]]))
    np.testing.assert_array_equal(
        rebuild(table, table.columns, table.dtypes), np.array([["a", None], ["b", "c"]], dtype=object)
    )
    table = Table.of(torch.tensor([[True], [False]]))
    assert rebuild(table, table.columns, table.dtypes).dtype == torch.bool
    table = Table.of(np.array([[True], [False]]))
    assert rebuild(table, table.columns, table.dtypes).dtype == np.bool_
    assert rebuild(table, [np.array([1.0, NAN])], ["bool"]).dtype == np.float64


@pytest.mark.parametrize("name", PAIRS)
def test_columns_of_any_container_are_arrays(name) -> None:
    table = Table.of(PAIRS[name][0])
    assert table.rows == len(table.columns[0])
    assert not {column.dtype for column in table.columns} - {np.dtype(np.float64), np.dtype(object)}
    assert (table.names is None) == (not name.startswith(("pandas", "polars", "pyarrow")))


def test_what_is_taken_apart() -> None:
    table = Table.of(pa.table(MISSING))
    assert table.names == list(FULL)
    assert table.dtypes == ["int", "float", "bool", "text"]
    np.testing.assert_array_equal(table.columns[2], [1, NAN, 1, 0])
    assert table.columns[3].tolist() == ["x", None, "z", "x"]
    assert Table.of(table) is table


def test_declared_categories_are_known() -> None:
    assert Table.of(PAIRS["polars categories"][0]).declared == [False, False, False, True, ("z", "y", "x")]
    assert Table.of(PAIRS["pandas category"][0]).declared == [("z", "y", "x", "w"), True]
    assert Table.of(PAIRS["pyarrow categories"][0]).declared == [True, True]
    ordered = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["S", "M", "L"]), ordered=True)
    assert Table.of(pa.table({"size": ordered})).declared == [("S", "M", "L")]


def test_a_null_of_a_dictionary_is_a_missing_value() -> None:
    """pyarrow's own conversion to numpy puts another category in its place."""
    table = Table.of(pa.table({"a": pa.array(["a", None, "b"]).dictionary_encode()}))
    assert table.columns[0].tolist() == ["a", None, "b"]


@pytest.mark.parametrize("missing", [None, NAN, np.float64("nan"), pd.NA, pd.NaT, "", Decimal("nan")], ids=repr)
def test_what_means_not_observed(missing) -> None:
    for others in (["a", "b"], [1, 2], [True, False]):
        if isinstance(missing, Decimal) and others[0] == "a":
            continue
        column = np.array([[others[0]], [missing], [others[1]]], dtype=object)
        for X in (column, pd.DataFrame({"a": column[:, 0]}, dtype=object)):
            table = Table.of(X)
            assert table.dtypes == [{str: "text", int: "int", bool: "bool"}[type(others[0])]]
            assert [value for value in table.columns[0].tolist() if value == value and value is not None] == others


def test_lists_and_masks() -> None:
    assert Table.of([[1, "a"], [2, "b"]]).dtypes == ["int", "text"]
    assert Table.of([[1, 2.5], [2, 3]]).dtypes == ["float", "float"]
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(np.stack(Table.of(masked).columns, axis=1), [[1, NAN], [3, 4]])
    masked = np.ma.masked_array([["a"], ["b"]], mask=[[True], [False]])
    assert Table.of(masked).columns[0].tolist() == [None, "b"]


def test_a_column_of_nothing_is_of_no_family() -> None:
    for frame in (
        pl.DataFrame({"a": [None, None]}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.String}),
        pa.table({"a": pa.nulls(2)}),
        pd.DataFrame({"a": [None, None]}),
        pd.DataFrame({"a": [NAN, NAN]}),
        pd.DataFrame({"a": ["", None]}),
        np.array([[None], [None]]),
    ):
        table = Table.of(frame)
        assert table.dtypes == ["none"]
        # and is of the family of what fills it
        for values, dtype in ((np.array(["a", "b"], dtype=object), "text"), (np.array([1.0, 2.0]), "int")):
            filled = Table.of(fill_missing(table, [values], [dtype]))
            assert filled.columns[0].tolist() == values.tolist()
            assert (filled.dtypes[0] == "text") == (dtype == "text")


def test_large_integers_and_decimals_are_kept_to_the_digit() -> None:
    large = 2**60 + 1
    filled = [np.array([0.0, 5.0])]
    for frame in (
        pd.DataFrame({"a": pd.array([large, None], dtype="Int64")}, index=["p", "p"]),
        pl.DataFrame({"a": [large, None]}),
        pa.table({"a": [large, None]}),
        np.array([[large], [None]], dtype=object),
        pd.DataFrame({"a": pd.Series([large, None], dtype=object)}),
    ):
        out = fill_missing(Table.of(frame), filled, ["int"])
        column = out[:, 0] if isinstance(out, np.ndarray) else out["a"]
        column = column.to_pylist() if isinstance(out, pa.Table) else list(column)
        assert column == [large, 5]
        assert [int(value) for value in column] == [large, 5]


def test_values_that_do_not_fit_change_the_type_rather_than_the_values() -> None:
    whole = {"a": [1, None]}
    for frame in (pd.DataFrame(whole, dtype="Int8"), pl.DataFrame(whole), pa.table(whole)):
        for value in (2.5, 1e6):
            out = fill_missing(Table.of(frame), [np.array([1.0, value])], ["float"])
            assert Table.of(out).columns[0].tolist() == [1.0, value]
    text = {"a": ["x", None]}
    for frame in (
        pd.DataFrame(text, dtype="category"),
        pl.DataFrame(text, schema={"a": pl.Enum(["x"])}),
        pa.table({"a": pa.array(text["a"]).dictionary_encode()}),
    ):
        out = fill_missing(Table.of(frame), [np.array(["x", "new"], dtype=object)], ["text"])
        assert Table.of(out).columns[0].tolist() == ["x", "new"]
        if isinstance(out, pd.DataFrame):
            assert out["a"].dtype == pd.CategoricalDtype(["x", "new"])
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False]})
    out = rebuild(Table.of(frame), [np.array([1.0, NAN])] * 2, ["int", "bool"])
    assert out["a"].dtype == np.float64
    assert out["b"].tolist()[0] is True
    assert np.isnan(out["b"].tolist()[1])


def test_a_frame_without_text_for_names_has_none_and_keeps_its_labels() -> None:
    frame = pd.DataFrame(NUMBERS, index=["a", "b", "c"])
    table = Table.of(frame)
    assert table.names is None
    full = Table.of(FILLED)
    pd.testing.assert_frame_equal(
        fill_missing(table, full.columns, full.dtypes), pd.DataFrame(FILLED, index=["a", "b", "c"])
    )
    pd.testing.assert_frame_equal(rebuild(table, full.columns, full.dtypes), pd.DataFrame(FILLED))


def test_what_comes_back_is_a_copy() -> None:
    for X in (FILLED.copy(), torch.tensor(FILLED), pd.DataFrame(FILLED)):
        table = Table.of(X)
        out = fill_missing(table, table.columns, table.dtypes)
        assert out is not X
        out[0 if isinstance(out, pd.DataFrame) else (0, 0)] = -1.0
        assert Table.of(X).columns[0][0] == 1.0


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.inf]]), "row 0, column 1: infinity"),
        (pd.DataFrame({"a": [1.0, -np.inf]}), r"row 1, column 0 \('a'\): infinity"),
        (np.array([[10**400]], dtype=object), "column 0 .* infinity"),
        (np.array([[np.finfo(np.longdouble).max]]), "row 0, column 0: infinity"),
        (np.array([[1j]]), "Complex data not supported"),
        (np.array([[1j]], dtype=object), "Complex data not supported"),
        (torch.tensor([[1j]]), "Complex data not supported"),
        (pd.DataFrame({"a": [1j]}), "Complex data not supported"),
        (scipy.sparse.csr_matrix(np.array([[1j]])), "Complex data not supported"),
        (np.zeros(3), r"(?s)Expected 2D array, got 1D array instead.*Reshape your data"),
        (pd.Series([1.0]), r"(?s)Expected 2D array, got 1D array instead.*Reshape your data"),
        (np.float64(3), r"(?s)Expected 2D array, got scalar array instead.*Reshape your data"),
        ({"a": [1]}, r"A dict is no data frame: convert it, such as with pandas\.DataFrame\(X\)"),
        ([{"a": 1}], r"A list of dict is no data frame: .*pandas\.DataFrame\(X\)"),
        (np.zeros(3, dtype=[("a", float)]), r"A ndarray is no data frame: .*pandas\.DataFrame\(X\)"),
        (pa.RecordBatch.from_pydict({"a": [1]}), r"A RecordBatch is no data frame: .*pyarrow\.table\(X\)"),
        (np.zeros((2, 2, 2)), "Found array with dim 3, while dim <= 2 is required"),
        (np.zeros((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\."),
        (np.zeros((12, 0)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required\."),
        (pd.DataFrame({"a": []}), r"0 sample\(s\) \(shape=\(0, 1\)\) while a minimum of 1 is required\."),
        (pd.DataFrame(index=[1, 2]), r"0 feature\(s\) \(shape=\(2, 0\)\) while a minimum of 1 is required\."),
        (np.array([[1], ["a"]], dtype=object), r"column 0 has both numbers \(1\) and text \('a'\): convert it"),
        (pd.DataFrame({"a": [True, "a"]}), r"column 0 \('a'\) has both numbers \(True\) and text \('a'\)"),
        (pd.DataFrame({"a": pd.to_timedelta([1])}), r"column 0 \('a'\) has times of day, or lengths.*convert it to a"),
        (pl.DataFrame({"a": [datetime.timedelta(1)]}), "convert it to a number"),
        (pl.DataFrame({"a": [datetime.time(1)]}), "convert it to a number, such as hours"),
        (np.array([[3600]], dtype="m8[s]"), "convert it to a number"),
        (np.array([[datetime.time(12)]], dtype=object), "convert it to a number"),
        (np.array([[np.timedelta64(1, "D")]], dtype=object), "convert it to a number"),
        (
            np.array([[datetime.date(2020, 1, 1)], [3]], dtype=object),
            "column 0 has dates, but also 3: convert all",
        ),
        (np.array([[datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)]]), "times with a time zone as objects"),
        ([[1, 2], [3]], "rows should all have the same number of columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "names should differ"),
        (pd.DataFrame([[1, 2]], columns=["a", 1]), "names should all be text: 1 is of type int"),
        (pl.LazyFrame({"a": [1]}), r"collect it first"),
        (scipy.sparse.csr_matrix((10**6, 10**4)), r"would take 74\.5 GiB when dense, more than 4"),
        (scipy.sparse.coo_array((10**6, 10**4)), r"would take 74\.5 GiB"),
    ],
    ids=str,
)
def test_refusals(X, message) -> None:
    with pytest.raises(DataError, match=message):
        Table.of(X)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[{"foo": "bar"}, 1.0]], dtype=object),
        np.array([[b"a"]]),
        pd.DataFrame({"a": [{"foo": "bar"}, 1.0]}),
        pd.DataFrame({"a": pd.cut([1, 2, 3], 2)}),
        pl.DataFrame({"a": [[1], [2]]}),
        pa.table({"a": [{"foo": 1}]}),
        pa.table({"a": [b"a"]}),
    ],
    ids=str,
)
def test_neither_text_nor_a_number(X) -> None:
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        Table.of(X)


def test_a_tensor_holds_no_text() -> None:
    with pytest.raises(DataError, match="column 0 is text, which a tensor cannot hold"):
        fill_missing(Table.of(torch.tensor([[NAN]])), [np.array(["a"], dtype=object)], ["text"])


def test_a_template_holds_no_data() -> None:
    for name, (_, full) in PAIRS.items():
        table = Table.of(full).template()
        assert table.rows == 0
        assert len(table.given) == 0
        assert not any(len(column) for column in table.columns)
        if name.startswith("numpy"):
            assert table.given.base is None


def test_importing_it_does_not_import_torch() -> None:
    code = "import made.tables.table, sys; assert not {'torch', 'pandas', 'scipy.sparse', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("dtype", ["string", "string[pyarrow]", "str"])
def test_text_by_distinct_values_is_text_by_objects(dtype) -> None:
    values = ["b", None, "a", "", "b", "a", "ü"]
    fast = Table.of(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))
    slow = Table.of(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    assert fast.columns[0].tolist() == slow.columns[0].tolist() == ["b", None, "a", None, "b", "a", "ü"]
    assert fast.dtypes == slow.dtypes == ["text"]
    nothing = Table.of(pd.DataFrame({"x": pd.Series(["", None], dtype=dtype)}))
    assert nothing.dtypes == ["none"]
    assert np.isnan(nothing.columns[0]).all()


@pytest.mark.parametrize("make", [pd.DataFrame, lambda columns: pa.table({"name": columns["name"].array._pa_array})])
def test_text_in_several_chunks_is_that_of_one(make) -> None:
    """As pandas has it after concatenating; some values are in one chunk only."""
    parts = [pd.Series(each, dtype="string[pyarrow]") for each in (["a", None, "b"], ["c", "a"], [None])]
    whole = pd.concat(parts, ignore_index=True)
    table = Table.of(make({"name": whole}))
    assert [value if isinstance(value, str) else None for value in table.columns[0]] == ["a", None, "b", "c", "a", None]
