"""What columns are, and values to codes and back."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fields import make_field, numeric
from made import Binary, Categorical
from made.columns.logistic import Numeric
from made.errors import DataError
from made.tables.schema import Field, Schema
from made.tables.table import Table

NAN = float("nan")


def infer(values, kind="auto") -> Field:
    """The field of one column."""
    return Schema.infer(Table.of(pd.DataFrame({"a": values})), [kind]).fields[0]


@pytest.mark.parametrize(
    ("values", "kind", "categories"),
    [
        (["a"] * 5, "categorical", ("a",)),
        (["b", "a", None], "binary", ("a", "b")),
        (["b", "a", "c"], "categorical", ("a", "b", "c")),
        ([True, True], "binary", (False, True)),
        ([True, None], "binary", (False, True)),
        ([0, 1, 1], "binary", (0, 1)),
        ([1, 1, 1], "binary", (0, 1)),
        ([0.0, NAN, 0.0], "binary", (0.0, 1.0)),
        ([7, 7], "ordinal", (7,)),
        ([2.5, NAN, 2.5], "ordinal", (2.5,)),
        ([3, 1], "binary", (1, 3)),
        ([0.5, 1.5], "numeric", ()),
        ([0.5, 1.5] * 9 + [NAN] * 9, "numeric", ()),
        ([0.5, 1.5] * 10, "binary", (0.5, 1.5)),
        ([1, 2, 3] * 10, "ordinal", (1, 2, 3)),
        ([1, 2, 3] * 9 + [1, 2], "numeric", ()),
        ([*range(20)] * 10, "ordinal", tuple(range(20))),
        ([*range(21)] * 10, "numeric", ()),
        ([0.5, 1.5, 2.5] * 20, "ordinal", (0.5, 1.5, 2.5)),
        ([0.5, 1.5, 2.5] * 19 + [0.5, 1.5], "numeric", ()),
        ([d / 2 for d in range(10)] * 20, "ordinal", tuple(d / 2 for d in range(10))),
        ([d / 2 for d in range(11)] * 20, "numeric", ()),
        (pd.Categorical([3, 1, 2]), "categorical", (1, 2, 3)),
        (pd.Categorical([0.5, 1.5]), "binary", (0.5, 1.5)),
    ],
)
def test_the_kind_of_a_column(values, kind, categories) -> None:
    field = infer(values)
    assert field.kind == kind
    assert field.values == categories
    assert [type(value) for value in field.values] == [type(value) for value in categories]


def test_the_location_and_the_scale_are_those_of_the_values() -> None:
    normal = np.random.default_rng(0).normal(50, 3, 10_000)
    field = infer(normal)
    assert numeric(field).location == np.median(normal)
    assert numeric(field).scale == pytest.approx(3, rel=0.05)
    assert (numeric(field).step, field.dtype) == (0.0, "float")


def test_whole_numbers_have_a_step_and_a_location_on_it() -> None:
    field = infer([1, 2, 3, 4, 5, NAN])
    assert (numeric(field), field.dtype) == (Numeric(3.0, 2 / 1.349, 1.0, low=0.0, extent=(1.0, 5.0)), "float")
    field = infer([1, 2, 3, 4])
    assert (numeric(field).location, numeric(field).step, field.dtype) == (2.0, 1.0, "int")  # the median is 2.5


@pytest.mark.parametrize(
    ("values", "step"),
    [([0, 5, 1_000_000], 1.0), ([0, 5, 1_000_001], 0.0), ([2.0**60, 2.0**60 + 4096, 2.0**60 + 8192], 0.0)],
)
def test_too_many_steps_are_none(values, step) -> None:
    assert numeric(infer(values)).step == step


def test_where_half_of_the_values_are_the_median_the_scale_is_the_standard_deviation() -> None:
    values = [5.0] * 20 + [0.5, 4.5, 9.25]
    assert numeric(infer(values, "numeric")).scale == pytest.approx(np.std(values), rel=1e-12)
    assert numeric(infer([2.5, 2.5], "numeric")).scale == 1.0
    assert numeric(infer([0, 0], "numeric")).scale == 1.0


@pytest.mark.parametrize("unit", [1e308, 1e300, 1e-300, 1e-310, 5e-324])
def test_huge_and_tiny_numbers(unit) -> None:
    values = np.array([-1.0, -0.7, 0.1, 0.6, 1.0, 1.0]) * unit
    field = infer(values, "numeric")
    assert np.isfinite(numeric(field).location)
    assert 0 < numeric(field).scale < np.inf
    assert np.isfinite((values / 2 - numeric(field).location / 2) / numeric(field).scale).all()
    assert isinstance(field.column, Numeric)
    # an outlier is not infinitely far away
    field = infer([0.0, 1e-320, 2e-320, 3e-320, 1e10], "numeric")
    assert (1e10 - numeric(field).location) / numeric(field).scale < 1e15


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_any_numbers_can_be_numeric(values) -> None:
    field = infer(values, "numeric")
    table = Table.of(np.array(values)[:, None])
    schema = Schema([field], named=False)
    codes = schema.encode(table)
    np.testing.assert_allclose(codes[:, 0], values, rtol=1e-14, atol=0)  # 0.1 + 0.2 is among the multiples of 0.1
    assert field.column.valid(torch.from_numpy(codes)).all()


def test_columns_for_the_network() -> None:
    schema = Schema.infer(Table.of(pd.DataFrame({"b": [0, 1, 1], "c": list("xyz"), "n": [0.5, 1.5, 9.0]})))
    assert schema.names == schema.columns.names == ("b", "c", "n")
    assert list(schema.columns) == [Binary(signed=True), Categorical(3), schema.fields[2].column]
    assert schema.fields[0].column.with_signed_inputs(False) == Binary()
    assert Schema.infer(Table.of([[1, "a"]])).names == ("x0", "x1")


def test_kinds_can_be_set_for_some_columns_or_for_all() -> None:
    table = Table.of(pd.DataFrame({"n": [1, 2, 3, 4] * 20, "g": ["low", "mid", "high", "low"] * 20}))
    assert [field.kind for field in Schema.infer(table).fields] == ["ordinal", "categorical"]
    told = Schema.infer(table, {"n": "numeric", 1: ["low", "mid", "high"]})
    assert [field.kind for field in told.fields] == ["numeric", "categorical"]
    assert told.fields[1].values == ("low", "mid", "high")
    assert told.encode(table)[:3, 1].tolist() == [0, 1, 2]
    assert Schema.infer(table, ["auto", "categorical"]) == Schema.infer(table) == Schema.infer(table, {"n": "ordinal"})
    assert Schema.infer(Table.of([[1.5], [2.5]]), {"x0": "categorical"}).fields[0].values == (1.5, 2.5)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["b", "a"], np.array(["b", "a", "c"]), ("b", "a", "c")),
        ([1.0, NAN], [2, 1], (2.0, 1.0)),
        ([True, True], "categorical", (False, True)),
        ([5, 7], "binary", (5, 7)),
        ([1, 1], "categorical", (1,)),
    ],
)
def test_the_values_of_a_kind_that_is_set(values, kind, expected) -> None:
    assert infer(values, kind).values == expected


def test_the_type_follows_the_kind_that_is_set() -> None:
    assert infer(["b", "a"], ["b", "a"]).kind == "binary"
    assert infer([1, 2], [2, 1.5]).dtype == "float"
    assert infer([True, False], "numeric").dtype == "int"


@pytest.mark.parametrize(
    ("values", "kind", "error", "message"),
    [
        ([NAN, NAN], "auto", DataError, r"column 0 \('a'\) has no observed value.*leave it out"),
        ([None, None], ["a", "b"], DataError, "no observed value"),
        (["x", "y"], "numeric", DataError, "has text such as 'x' and cannot be numeric"),
        (["x", "y", "z"], "binary", DataError, "has 3 distinct values and cannot be binary"),
        ([7, 7], "binary", DataError, "has 1 distinct values and cannot be binary"),
        ([f"id{d}" for d in range(1001)], "auto", DataError, r"looks like an identifier.*columns=\{'a': 'drop'\}"),
        ([str(d) for d in range(1001)], "auto", DataError, "1001 texts that look like numbers, such as '0': convert"),
        (
            [f"id{d}" for d in range(1001)] * 2,
            "auto",
            DataError,
            "1001 distinct values, more than 1000; unseen='other'",
        ),
        ([str(d) for d in range(1001)] * 2, "auto", DataError, "1001 distinct values.*look like numbers.*: convert it"),
        ([[1], [2]], "auto", TypeError, "string or a number, not 'list': convert it .* or leave it out"),
        (range(1001), "categorical", DataError, "1001 distinct values, more than 1000; choose 'numeric'"),
        ([1, 2], "nominal", ValueError, "the kind 'nominal' is unknown: choose from .* a made.Column\\.$"),
        ([1, 2], None, ValueError, "the kind None is unknown"),
        ([1, 2], {"kind": "numeric"}, ValueError, "is not complete: it should have the keys location"),
        ([1, 2], [], ValueError, "should have at least one value"),
        ([1, 2], [1, None], ValueError, "none that is empty or NaN"),
        ([1, 2], [1, 1, 2], ValueError, "'values' of column 'a' should be different from each other"),
        ([1, 2], [1, "a"], ValueError, "the list for column 0 .* has both numbers .* and text"),
    ],
)
def test_invalid_kinds_are_refused(values, kind, error, message) -> None:
    with pytest.raises(error, match=message):
        infer(values, kind)


def test_a_thousand_texts_are_still_categories() -> None:
    assert len(infer([f"id{d}" for d in range(1000)] * 2).values) == 1000
    assert len(infer([f"id{d}" for d in range(1000)], "categorical").values) == 1000


def test_kinds_of_unknown_columns_are_refused() -> None:
    table = Table.of(pd.DataFrame({"n": [1], "g": [2]}))
    for key in ("h", 2, -1, 1.0):
        with pytest.raises(
            ValueError, match=r"'columns' has .*, which is not a column: the columns are 'n', 'g', or 0 to 1"
        ):
            Schema.infer(table, {key: "numeric"})
    with pytest.raises(ValueError, match="'columns' should have 2 elements, one for each column, not 1"):
        Schema.infer(table, ["auto"])


FRAME = {"n": [1.5, 9.25, 4.0], "i": [30, 10, 90], "b": [True, False, True], "t": ["x", "z", "y"], "u": ["p", "q", "p"]}


def test_codes() -> None:
    schema = Schema.infer(Table.of(pa.table(FRAME)))
    codes = schema.encode(Table.of(pa.table(FRAME)))
    np.testing.assert_array_equal(codes, [[1.5, 30, 1, 0, 0], [9.25, 10, 0, 2, 1], [4, 90, 1, 1, 0]])
    assert codes.dtype == np.float64
    missing = {name: [None, values[1], None] for name, values in FRAME.items()}
    for frame in (pa.table(missing), pl.DataFrame(missing), pd.DataFrame(missing)):
        np.testing.assert_array_equal(schema.encode(Table.of(frame))[1], codes[1])
        assert np.isnan(schema.encode(Table.of(frame))[[0, 2]]).all()
    # a column that is ignored may hold anything
    unseen = schema.encode(Table.of(pa.table({**FRAME, "t": ["?", "x", "y"]})), ignore=3)
    assert np.isnan(unseen[:, 3]).all()
    np.testing.assert_array_equal(np.delete(unseen, 3, axis=1), np.delete(codes, 3, axis=1))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_decoding_undoes_encoding(make) -> None:
    table = Table.of(make(FRAME))
    schema = Schema.infer(table)
    codes = schema.encode(table)
    for back in (schema.decode(codes, table), schema.decode(codes, table.template()), schema.fill(table, codes * NAN)):
        assert type(back) is type(make(FRAME))
        assert back.equals(make(FRAME))
    assert schema.decode(codes).equals(pa.table(FRAME))
    # columns come in the order of the table that is asked with
    turned = {name: FRAME[name] for name in ("t", "n", "u", "b", "i")}
    np.testing.assert_array_equal(schema.encode(Table.of(make(turned))), codes)
    assert schema.decode(codes, Table.of(make(turned))).equals(make(turned))
    missing = {name: [values[0], None, None] for name, values in turned.items()}
    filled = schema.fill(Table.of(make(missing)), codes)
    assert Table.of(filled).columns[0].tolist() == FRAME["t"]
    np.testing.assert_array_equal(schema.encode(Table.of(filled)), codes)
    # what is not known stays missing
    assert np.isnan(schema.encode(Table.of(schema.decode(codes * NAN, table)))).all()
    assert np.isnan(schema.encode(Table.of(schema.decode(codes * NAN)))).all()


def test_arrays_without_a_template() -> None:
    table = Table.of(np.array([[1.5, 0], [2.5, 1]]))
    schema = Schema.infer(table)
    np.testing.assert_array_equal(schema.decode(schema.encode(table)), [[1.5, 0], [2.5, 1]])
    assert schema.decode(schema.encode(table)).dtype == np.float64
    table = Table.of([[1, "a"], [2, "b"]])
    schema = Schema.infer(table)
    back = schema.decode(schema.encode(table))
    assert back.dtype == object
    assert back.tolist() == [[1, "a"], [2, "b"]]


@pytest.mark.parametrize("code", [-1.0, 0.5, 3.0])
def test_invalid_codes_are_refused(code) -> None:
    with pytest.raises(ValueError, match=f"'codes' of column 'b' should be 0 to 2, not {code:g}"):
        FIELDS[1].decode(np.array([NAN, 1.0, code]))


def test_whole_numbers_stay_whole() -> None:
    schema = Schema.infer(Table.of(pl.DataFrame({"a": [0, 5, 10_000_000]})))
    assert schema.fields[0].column.grid[1] == 0.0
    out = schema.decode(np.array([[2.4], [7.6]]), Table.of(pl.DataFrame({"a": [1]})))
    assert out["a"].to_list() == [2, 8]
    assert out["a"].dtype == pl.Int64


def test_numbers_match_by_value_whatever_their_type() -> None:
    schema = Schema.infer(Table.of(np.array([[0, 5], [1, 7]])))
    for rows in ([[0.0, 5.0], [1.0, 7.0]], [[False, 5], [True, 7]], [["0", "5"], ["1.0", "7"]]):
        assert schema.encode(Table.of(np.array(rows, dtype=object))).tolist() == [[0, 0], [1, 1]]
    schema = Schema.infer(Table.of(pd.DataFrame({"b": [True, False]})))
    for values in ([1, 0], [1.0, 0.0], ["True", "False"], ["true", "false"]):
        assert schema.encode(Table.of(pd.DataFrame({"b": values}))).tolist() == [[1], [0]]


def test_numbers_match_the_text_that_they_were() -> None:
    """A file of text such as '1' may come back as numbers."""
    schema = Schema.infer(Table.of(pd.DataFrame({"t": ["1", "02", "2.5", "2", "1e3"]})))
    assert schema.fields[0].values == ("02", "1", "1e3", "2", "2.5")
    assert schema.encode(Table.of(pd.DataFrame({"t": [1, 2, 1000, 2.5, NAN]})))[:4, 0].tolist() == [1, 3, 2, 4]
    schema = Schema.infer(Table.of(pd.DataFrame({"t": ["True", "False", "unsure"]})))
    assert schema.encode(Table.of(pd.DataFrame({"t": [True, False]}))).tolist() == [[1], [0]]
    with pytest.raises(DataError, match="1 is not among the known values"):
        schema.encode(Table.of(pd.DataFrame({"t": [1]})))
    # and what fills them are numbers again
    schema = Schema.infer(Table.of(pd.DataFrame({"t": ["1", "2", "3"]})))
    filled = schema.fill(Table.of(pd.DataFrame({"t": [1, NAN]})), [[0], [2]])
    pd.testing.assert_frame_equal(filled, pd.DataFrame({"t": [1.0, 3.0]}))
    # unless not all are
    schema = Schema.infer(Table.of(pl.DataFrame({"t": ["1", "2", "many"]})))
    filled = schema.fill(Table.of(pl.DataFrame({"t": [1, None]})), [[0], [2]])
    assert filled["t"].to_list() == ["1", "many"]
    for X in (np.array([[1.0], [NAN]]), np.array([[1], [None]], dtype=object)):
        assert schema.fill(Table.of(X), [[0], [2]]).tolist() == [[1], ["many"]]


def test_an_array_of_another_size() -> None:
    schema = Schema.infer(Table.of(np.ones((2, 4))))
    with pytest.raises(ValueError, match=r"X has 3 features, but MADE is expecting 4 features as input\."):
        schema.encode(Table.of(np.ones((2, 3))))
    with pytest.raises(ValueError, match=r"'codes' should have the shape \(rows, 4\), not \(2, 3\)"):
        schema.decode(np.ones((2, 3)))
    with pytest.raises(ValueError, match="'codes' should have 2 rows, as the table has, not 1"):
        schema.fill(Table.of(np.ones((2, 4))), np.ones((1, 4)))


def test_frames_of_other_columns() -> None:
    schema = Schema.infer(Table.of(pd.DataFrame({"a": [1], "b": [2], "c": [3]})))
    with pytest.raises(
        DataError, match="The table lacks 'b', 'c' and has, unknown to the model, 'd': give the columns"
    ):
        schema.encode(Table.of(pd.DataFrame({"a": [1], "d": [2]})))
    with pytest.raises(DataError, match="The table has, unknown to the model, 'd':"):
        schema.encode(Table.of(pd.DataFrame({"a": [1], "d": [2], "b": [2], "c": [3]})))
    # without names, by place
    assert schema.encode(Table.of(np.array([[1, 2, 3]]))).tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(
    ("known", "asked", "message"),
    [
        (
            list("abc"),
            ["a", None, "q"],
            r"row 2, column 0 \('a'\): 'q' is not among the known values \('a', 'b', 'c'\)",
        ),
        (list("abc"), ["q"], r"give one of them, or NaN for a missing value, or fit with unseen='other'\.$"),
        ([True, False], ["q"], r"give one of them, or NaN for a missing value\.$"),
        (list("abcdefghijkl"), ["q"], r"\('a', .*, 'j', \.\.\.\)"),
        ([1, 2, 3] * 10, [2, 4], r"row 1, column 0 \('a'\): 4 is not .*, or fit with unseen='other'\.$"),
        ([1, 2, 3] * 10, [2.5], r"2\.5 is not among the known values \(1, 2, 3\)"),
        ([1, 2, 3] * 10, ["two"], "'two' is text, where the model has numbers"),
        (list("abc"), [1], "1 is not among the known values"),
        ([True, False], [2], r"2 is not among the known values \(False, True\)"),
        ([0.5, 1.25, 7], ["old"], r"row 0, column 0 \('a'\): 'old' is text, where the model has numbers"),
        ([10, 20, 70], [12, 12.5], r"row 1, column 0 \('a'\): 12\.5 is not among the values in steps of 1.*round it"),
    ],
)
def test_values_that_are_not_known(known, asked, message) -> None:
    schema = Schema.infer(Table.of(pd.DataFrame({"a": known})))
    with pytest.raises(DataError, match=message):
        schema.encode(Table.of(pd.DataFrame({"a": asked})))


FIELDS = [
    make_field("a", "binary", (False, True), dtype="bool"),
    make_field("b", "categorical", ("x", "y", "é"), dtype="text"),
    make_field("c", "categorical", (1, 2, 7), dtype="int"),
    make_field("d", "binary", (0.0, 1.5), dtype="float"),
    make_field("e", "numeric", location=3.0, scale=0.25, step=1.0, dtype="int"),
    make_field("f", "numeric", location=-1e300, scale=5e-324),
]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_fields_survive_json(field) -> None:
    again = Field.from_json(json.loads(json.dumps(field.to_json(), allow_nan=False)))
    assert again == field
    assert [type(value) for value in again.values] == [type(value) for value in field.values]


@pytest.mark.parametrize(
    ("which", "change", "message"),
    [
        (0, {"name": 3}, "'name' should be text, not 3"),
        (0, {"kind": "nominal"}, "the column kind 'nominal' is not registered"),
        (0, {"kind": ["binary"]}, "'kind' of column 'a'"),
        (0, {"dtype": "none"}, "'dtype' of column 'a' should be one of text, bool, int, float"),
        (0, {"values": [True, True]}, "different from each other"),
        (0, {"values": [False]}, "column 'a': 'values' should be two"),
        (0, {"values": [0, 1]}, "should be of type bool, not 0"),
        (0, {"values": "ab"}, "'kind' of column 'a' should be text, and 'values' a list"),
        (1, {"values": []}, "should be at least one"),
        (1, {"values": ["x", "x"]}, "different from each other"),
        (1, {"values": ["x", ""]}, "should be of type text, not ''"),
        (1, {"values": ["x", 1]}, "should be of type text, not 1"),
        (1, {"values": ["x", ["y"]]}, "should be of type text, not"),
        (2, {"values": [1, True]}, "should be of type int, not True"),
        (2, {"values": [1, 2.0]}, "should be of type int, not 2.0"),
        (2, {"values": [1, 10**400]}, "should be of type int"),
        (3, {"values": [0.0, NAN]}, "should be of type float, not nan"),
        (3, {"values": [0.0, float("inf")]}, "should be of type float, not inf"),
        (4, {"values": [1]}, "'values' should be"),
        (4, {"dtype": "text"}, "'dtype' of column 'e' should be that of numbers"),
        (4, {"location": NAN}, r"column 'e': 'location' should be a finite number, not nan"),
        (4, {"location": 10**400}, r"column 'e': 'location' should be a finite number"),
        (4, {"location": "3"}, r"column 'e': 'location' should be a finite number, not '3'"),
        (4, {"scale": 0}, r"column 'e': 'scale' should be a finite number above 0, not 0.0"),
        (4, {"scale": -1.0}, r"column 'e': 'scale' should be a finite number above 0"),
        (4, {"scale": True}, r"column 'e': 'scale' should be a finite number, not True"),
        (4, {"step": -1.0}, r"column 'e': 'step' should be a finite number, at least 0"),
        (4, {"step": None}, r"column 'e': 'step' should be a finite number"),
        (4, {"code": "x"}, "it should not have the keys code"),
    ],
)
def test_json_that_is_refused(which, change, message) -> None:
    with pytest.raises(DataError, match=message):
        Field.from_json({**FIELDS[which].to_json(), **change})


def test_json_that_is_no_column() -> None:
    for content in (None, [], "x", {}, {"name": "a"}):
        with pytest.raises(DataError, match="A column should have the keys"):
            Field.from_json(content)
    with pytest.raises(DataError, match="'values' of column 'b' should be a tuple"):
        replace(FIELDS[1], values=["x"])
    with pytest.raises(DataError, match="of different names, not 'a, a'"):
        Schema([FIELDS[0], FIELDS[0]])


def tables() -> Path:
    """The folder of real tables."""
    if "MADE_TABLES" in os.environ:
        return Path(os.environ["MADE_TABLES"])
    if "MADE_DATA" in os.environ:
        return Path(os.environ["MADE_DATA"]).parent / "tables"
    pytest.skip("neither MADE_TABLES nor MADE_DATA says where the real tables are")


@pytest.mark.parametrize("name", ["attrition", "credit_data", "house_votes", "penguins", "wa_churn"])
def test_real_tables_come_back(name) -> None:
    path = tables() / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    arrow = pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True))
    frames = [arrow, pl.read_csv(path), pd.read_csv(path), arrow.to_pandas().convert_dtypes()]
    schema = Schema.infer(Table.of(arrow))
    codes = schema.encode(Table.of(arrow))
    assert np.isnan(codes).sum() == {"credit_data": 455, "wa_churn": 11, "penguins": 19, "house_votes": 392}.get(
        name, 0
    )
    schema.columns.check(codes)
    for frame in frames:
        table = Table.of(frame)
        assert [field.kind for field in Schema.infer(table).fields] == [field.kind for field in schema.fields]
        np.testing.assert_array_equal(schema.encode(table), codes)
        np.testing.assert_array_equal(schema.encode(Table.of(schema.decode(codes, table))), codes)
        # a table whose missing values are filled with nothing is as it was
        np.testing.assert_array_equal(schema.encode(Table.of(schema.fill(table, codes))), codes)
        middle = schema.columns.outer(torch.zeros(1, codes.shape[1], dtype=torch.float64)).numpy()
        full = schema.fill(table, np.where(np.isnan(codes), middle, codes))
        assert not np.isnan(schema.encode(Table.of(full))).any()
        assert type(full) is type(frame)
    assert schema.decode(codes).schema.names == arrow.schema.names
