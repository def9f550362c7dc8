"""Rows come back in the types of the training table, whatever these are and whatever they came in."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from command import run
from fields import make_field
from made import MADE
from made.errors import DataError
from made.io.read import read
from made.tables.field import Field
from made.tables.restore import rebuild
from made.tables.schema import Schema
from made.tables.storage import arrow_type, ends_of, is_storage, storage_of
from made.tables.table import Table

WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
REAL = ["float16", "float32", "float64"]
TIMES = [f"datetime64[{unit}{zone}]" for unit in ("s", "ms", "us", "ns") for zone in ("", ", Europe/Paris")]
TYPES = [*WHOLE, *REAL, "bool", "string", "category", "date", *TIMES]
ROWS = 60
FLAGS = [row % 2 == 0 for row in range(ROWS)]


def values_of(name: str, missing: bool) -> list:
    """Plain values of a type, every seventh of which may be missing."""
    random = np.random.default_rng(0)
    if name in WHOLE:
        values = random.integers(0, 100, ROWS).tolist()
    elif name in REAL:
        values = random.normal(0, 10, ROWS).astype(np.float16).tolist()
    elif name == "bool":
        values = (random.random(ROWS) < 0.5).tolist()
    elif name in ("string", "category"):
        values = random.choice(list("abc"), ROWS).tolist()
    else:
        start = datetime.datetime(2020, 1, 1)
        values = [start + datetime.timedelta(seconds=each) for each in random.integers(0, 90_000_000, ROWS).tolist()]
        values = [each.date() for each in values] if name == "date" else values
    return [None if missing and row % 7 == 3 else each for row, each in enumerate(values)]


def arrow_of(name: str, values: list) -> pa.Array:
    kind = arrow_type(name)
    if name == "category":
        return pa.array(values).dictionary_encode()
    if name == "float16":
        return pa.array([None if each is None else np.float16(each) for each in values], kind)
    return pa.array(values, pa.timestamp(kind.unit)).cast(kind) if name in TIMES else pa.array(values, kind)


def tables_of(name: str, missing: bool) -> dict[str, object]:
    """The same column in every container that has this type."""
    values = values_of(name, missing)
    arrow = arrow_of(name, values)
    tables: dict[str, object] = {"pyarrow": pa.table({"c": arrow, "k": FLAGS})}
    pandas: dict[str, pd.Series] = {}
    arrays: dict[str, np.ndarray] = {}
    if name != "float16":
        kind = pl.Categorical if name == "category" else None
        frame = pl.DataFrame(tables["pyarrow"])
        tables["polars"] = frame if kind is None else frame.with_columns(pl.col("c").cast(kind))
        pandas["arrow"] = pd.Series(pd.arrays.ArrowExtensionArray(arrow)) if name != "category" else arrow.to_pandas()
    if name in (*WHOLE, "float32", "float64", "bool"):
        nullable = name.replace("u", "U").replace("int", "Int").replace("f", "F") if name != "bool" else "boolean"
        pandas["nullable"] = pd.Series(values, dtype=nullable)
    if name in REAL or (not missing and name in (*WHOLE, "bool")):
        arrays["numpy"] = np.array([np.nan if each is None else each for each in values], dtype=name)
        pandas["numpy"] = pd.Series(arrays["numpy"])
    if name == "string":
        pandas["str"], pandas["object"] = pd.Series(values, dtype="str"), pd.Series(values, dtype=object)
        arrays["objects"] = np.array(values, dtype=object)
        tables["large"] = pa.table({"c": pa.array(values, pa.large_string()), "k": FLAGS})
        if not missing:
            arrays["text"] = np.array(values)
    if name == "date":
        pandas["object"], arrays["numpy"] = pd.Series(values, dtype=object), np.array(values, dtype="M8[D]")
    if name in TIMES:
        unit, _, zone = name[11:-1].partition(", ")
        times = np.array(values, dtype="M8[us]").astype(f"M8[{unit}]")
        pandas["numpy"] = pd.Series(times)
        if zone:
            pandas["numpy"] = pandas["numpy"].dt.tz_localize("UTC").dt.tz_convert(zone)
        else:
            arrays["numpy"] = times
    tables |= {f"pandas {key}": pd.DataFrame({"c": series, "k": FLAGS}) for key, series in pandas.items()}
    tables |= {f"numpy {key}": np.stack([array, array], axis=1) for key, array in arrays.items()}
    if "numpy" in arrays and name not in ("date", *TIMES):
        tables["torch"] = torch.from_numpy(tables["numpy numpy"])
        if name == "float32":
            tables["bfloat16"] = tables["torch"].bfloat16()
    return tables


def types_of(rows: object) -> object:
    if isinstance(rows, pa.Table):
        return rows.schema.types
    if isinstance(rows, (pd.DataFrame, pl.DataFrame)):
        return list(rows.dtypes)
    return "text" if isinstance(rows, np.ndarray) and rows.dtype.kind == "U" else rows.dtype


def small(rows: object, **parameters) -> MADE:
    return MADE(hidden_sizes=(4,), max_epochs=0, evaluation_masks=1, random_state=0, **parameters).fit(rows)


@pytest.mark.parametrize("missing", [False, True], ids=["full", "missing"])
@pytest.mark.parametrize("name", TYPES)
def test_rows_come_back_in_the_types_of_the_training_table(name, missing) -> None:
    for container, rows in tables_of(name, missing).items():
        model = small(rows)
        few = rows.slice(0, 9) if isinstance(rows, pa.Table) else rows[:9]
        for given_back in (model.sample(3), model.sample(200, temperature=3.0), model.impute(rows), model.denoise(few)):
            assert type(given_back) is type(rows), container
            assert types_of(given_back) == types_of(rows), container


@pytest.mark.parametrize("name", TYPES)
def test_a_model_that_is_loaded_knows_the_types(name, tmp_path) -> None:
    """Its template is gone; the folder has the types, but not in which of a library's ways they were stored."""
    tables = tables_of(name, missing=False)
    small(tables["pyarrow"]).save(tmp_path / "model")
    drawn = MADE.load(tmp_path / "model").sample(5)
    kinds = types_of(tables["pyarrow"])
    assert types_of(drawn) == kinds
    parquet.write_table(tables["pyarrow"], tmp_path / "rows.parquet")
    run("sample", tmp_path / "model", "-n", 5, "--out", tmp_path / "new.parquet")
    assert types_of(read(tmp_path / "new.parquet")) == types_of(read(tmp_path / "rows.parquet"))
    if "numpy numpy" in tables and name not in ("date", *TIMES):
        small(tables["numpy numpy"]).save(tmp_path / "array")
        assert MADE.load(tmp_path / "array").sample(5).dtype == np.dtype(name)
        small(tables["torch"]).save(tmp_path / "tensor")
        assert MADE.load(tmp_path / "tensor").sample(5).dtype == tables["torch"].dtype


@pytest.mark.parametrize("name", [*WHOLE, "float16", "float32"])
def test_what_is_drawn_beyond_the_type_is_the_nearest_that_it_holds(name) -> None:
    low, high = ends_of(name)
    field = make_field("c", "numeric", scale=high, dtype="int" if name in WHOLE else "float", storage=name)
    codes = np.array([-1e300, 0.0, 1e300, np.nan])
    values, dtype = field.decode(codes)
    np.testing.assert_array_equal(values, [low, 0, high, np.nan])
    for blank in (Table.blank([name]), Table.blank([name], ["c"])):
        back = rebuild(blank, [values[:3]], [dtype])
        column = back[:, 0] if isinstance(back, np.ndarray) else back["c"].to_numpy()
        assert column.dtype == np.dtype(name)
        assert column.astype(np.float64).tolist() == [low, 0, high]
    model = small(np.full((40, 1), high).astype(name) // np.arange(1, 41)[:, None].astype(name))
    drawn = model.sample(500, temperature=10.0)
    assert drawn.dtype == np.dtype(name)
    assert np.isfinite(drawn.astype(np.float64)).all()


@pytest.mark.parametrize("large", [2**62 + 1, 2**63 - 1, -(2**63), 2**53 + 1])
def test_large_integers_are_kept_to_the_digit(large) -> None:
    numbers = [large + (each if large < 0 else -each) for each in range(40)]
    array = np.array([numbers, numbers]).T
    model = small(array)
    assert model.sample(50).dtype == np.int64
    for rows in (array, torch.from_numpy(array)):
        assert (model.impute(rows) == rows).all()
        clean = model.denoise(rows, error=0.0)
        assert (clean == rows).all()
        assert clean.dtype == rows.dtype
    missing = [*numbers[:-1], None]
    for frame in (
        pa.table({"c": missing, "k": FLAGS[:40]}),
        pl.DataFrame({"c": missing, "k": FLAGS[:40]}),
        pd.DataFrame({"c": pd.array(missing, dtype="Int64"), "k": FLAGS[:40]}),
    ):
        model = small(frame)
        filled = model.impute(frame)
        assert types_of(filled) == types_of(frame)
        column = filled["c"].to_pylist() if isinstance(filled, pa.Table) else list(filled["c"])
        assert column[:-1] == numbers[:-1]
        assert types_of(model.sample(50)) == types_of(frame)


def test_unsigned_integers_have_all_of_their_range() -> None:
    numbers = [2**64 - 1 - each * 2**58 for each in range(40)]
    for rows in (np.array([numbers], dtype=np.uint64).T, pl.DataFrame({"c": pl.Series(numbers, dtype=pl.UInt64)})):
        drawn = small(rows).sample(50)
        assert types_of(drawn) == types_of(rows)
        assert np.array(drawn).max() > 2**63


def test_a_narrower_table_is_widened_rather_than_its_values_changed() -> None:
    """The model knows larger numbers than the table that is filled has room for."""
    model = small(pa.table({"c": pa.array(range(1000, 1040), pa.int16()), "k": FLAGS[:40]}))
    filled = model.impute(pa.table({"c": pa.array([None], pa.int8()), "k": [True]}))
    assert filled["c"].type == pa.int64()
    assert filled["c"][0].as_py() > 500


def test_a_storage_that_is_no_type_is_refused() -> None:
    for wrong in ("int128", "object", "datetime64[h]", "datetime64[us, a b]", "", 8, ["int8"], "datetime64[us]\n"):
        assert not is_storage(wrong)
        with pytest.raises(DataError, match="'storage' of column 'c' should be the name of a type"):
            make_field("c", "numeric", storage=wrong)
    content = make_field("c", "numeric", storage="uint8").to_json()
    assert Field.from_json(content).storage == "uint8"
    content.pop("storage")  # as the first models were
    assert Field.from_json(content).storage is None


def test_a_zone_that_is_unknown_here_is_utc() -> None:
    assert arrow_type("datetime64[us, Nowhere/Else]") == pa.timestamp("us", "UTC")
    assert arrow_type("datetime64[us, +02:00]") == pa.timestamp("us", "+02:00")
    fixed = datetime.timezone(datetime.timedelta(hours=2))
    frame = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=40, tz=fixed)})
    schema = Schema.infer(Table.of(frame))
    assert schema.fields[0].storage == f"datetime64[{frame['t'].dtype.unit}, +02:00]"
    assert storage_of(np.dtype("V3")) is None


def test_dates_as_text_stay_text_when_a_model_is_loaded() -> None:
    texts = [f"2024-01-{day:02}" for day in range(1, 30)]
    schema = Schema.infer(Table.of(pd.DataFrame({"day": texts})))
    assert schema.fields[0].dtype == "date"
    codes = schema.encode(Table.of(pd.DataFrame({"day": texts})))
    assert schema.decode(codes)["day"].to_pylist() == texts
