"""Dates are numbers to a model, and dates again when they are given back."""

from __future__ import annotations

import datetime
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import MADE
from made.dates import DAY, as_datetime64, in_seconds, in_text, objects, seconds_in
from made.errors import DataError
from made.schema import Schema
from made.table import Table

NAN = float("nan")
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in (np.arange(200) * 37) % 1461]


@given(st.datetimes())
def test_a_time_comes_back(time) -> None:
    """To the microsecond, for as long as a float64 can hold one."""
    seconds = in_seconds(np.array([time], dtype="M8[us]"))
    (back,) = objects(seconds, "datetime")
    assert abs(back - time) <= datetime.timedelta(microseconds=0 if 1900 < time.year < 2100 else 32)
    found = seconds_in([time.isoformat()])
    assert found is not None
    assert found[0] == pytest.approx(seconds, rel=1e-15)


@given(st.dates())
def test_a_day_comes_back(day) -> None:
    seconds = in_seconds(np.array([day], dtype="M8[D]"))
    assert seconds[0] % DAY == 0
    assert objects(seconds, "date").tolist() == [day]
    assert in_text(seconds, "date").tolist() == [day.isoformat()]
    assert seconds_in([day.isoformat()]) == (seconds, "date")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024",
        "2024-3-1",
        "2024-13-01",
        "2024-02-30",
        "01.03.2024",
        "2024-03-01T25:00",
        "2024-03-01 12",
        "\u0662\u0660\u0662\u0664-03-01",
    ],
)
def test_what_is_no_date(text) -> None:
    assert seconds_in([text]) is None
    assert seconds_in(["2024-03-01", text]) is None


def test_times_in_text() -> None:
    seconds, kind = seconds_in(["1970-01-01", "1970-01-01T00:01", "1970-01-01 00:00:02.5"])
    assert (seconds.tolist(), kind) == ([0, 60, 2.5], "datetime")


def test_what_python_has_no_date_for_is_the_nearest() -> None:
    assert as_datetime64(np.array([1e300, -1e300, NAN])).astype(str).tolist() == [
        "9999-12-31T23:59:59.999969",
        "0001-01-01T00:00:00.000000",
        "NaT",
    ]


def frames() -> dict[str, object]:
    """The same days, in every way that they come."""
    times = [datetime.datetime.combine(day, datetime.time()) for day in DAYS]
    csv = pyarrow.csv.read_csv(io.BytesIO(("day\n" + "\n".join(map(str, DAYS))).encode()))
    assert csv.schema.field("day").type == pa.date32()
    return {
        "csv": csv,
        "polars": pl.DataFrame({"day": DAYS}),
        "polars times": pl.DataFrame({"day": times}),
        "pandas": pd.DataFrame({"day": pd.to_datetime(DAYS)}),
        "pandas objects": pd.DataFrame({"day": DAYS}),
        "pandas text": pd.DataFrame({"day": list(map(str, DAYS))}),
        "numpy": np.array([DAYS], dtype="M8[D]").T,
        "numpy objects": np.array([DAYS], dtype=object).T,
    }


@pytest.mark.parametrize("name", frames())
def test_days_are_numbers_in_steps_of_a_day(name) -> None:
    rows = frames()[name]
    schema = Schema.infer(Table.of(rows))
    (field,) = schema.fields
    assert (field.kind, field.step, field.low) == ("numeric", DAY, None)
    assert field.dtype == ("datetime" if name in ("polars times", "pandas") else "date")
    codes = schema.encode(Table.of(rows))
    assert (codes[:, 0] / DAY).tolist() == [(day - datetime.date(1970, 1, 1)).days for day in DAYS]
    for other in frames().values():  # whatever it was fitted on
        assert np.array_equal(schema.encode(Table.of(other)), codes)
    for back in (schema.decode(codes, Table.of(rows)), schema.fill(Table.of(rows), codes)):
        assert type(back) is type(rows)
        if isinstance(back, pd.DataFrame):
            pd.testing.assert_frame_equal(back, rows)
        elif isinstance(back, np.ndarray):
            assert back.dtype == rows.dtype
            assert (back == rows).all()
        else:
            assert back.equals(rows)
    plain = schema.decode(codes)
    assert [str(day)[:10] for day in plain.to_pydict()["day"]] if schema.named else plain[:, 0].tolist()


def test_a_model_of_dates() -> None:
    """A date that depends on a category; samples, fillings and questions are dates."""
    random = np.random.default_rng(0)
    late = random.random(400) < 0.5
    day = np.where(late, 400, 100) + random.integers(0, 60, 400)
    frame = pd.DataFrame({"late": late, "day": pd.Timestamp("2023-01-01") + pd.to_timedelta(day, unit="D")})
    model = MADE(hidden_sizes=(32,), max_epochs=40, evaluation_masks=4, random_state=0).fit(frame)
    drawn = model.sample(300, given={"late": True})
    assert drawn["day"].dtype == frame["day"].dtype
    assert (drawn["day"] == drawn["day"].dt.normalize()).all()
    assert (drawn["day"] > "2023-12-01").mean() > 0.9
    rows = pd.DataFrame({"late": [True, False], "day": pd.to_datetime([None, None])})
    filled = model.impute(rows, strategy="mode")
    assert filled["day"].dtype.kind == "M"
    assert (filled["day"] > "2023-12-01").tolist() == [True, False]
    probability = model.predict_proba(
        pd.DataFrame({"day": pd.to_datetime(["2024-02-20", "2023-04-20"])}), target="late"
    )
    assert (probability[:, 1] > 0.5).tolist() == [True, False]
    assert len(model.sample(2, given={"day": datetime.date(2024, 2, 20)})) == 2
    days = pd.DataFrame({"late": True, "day": pd.date_range("2000-01-01", "2050-01-01")})
    assert np.exp(model.score_samples(days, given=["late"])).sum() == pytest.approx(1, abs=0.01)
    with pytest.raises(DataError, match=r"row 0, column 1 \('day'\): 2024-02-20T12:00:00 is not .* in whole days"):
        model.score_samples(pd.DataFrame({"late": [True], "day": pd.to_datetime(["2024-02-20 12:00"])}))
    with pytest.raises(DataError, match=r"'day'\): 7\.0 is a number, where the model has dates, such as 2024-03-01"):
        model.score_samples(pd.DataFrame({"late": [True], "day": [7.0]}))
    with pytest.raises(DataError, match="'soon' is text, where the model has dates"):
        model.score_samples(pd.DataFrame({"late": [True], "day": ["soon"]}))


def test_times_in_steps_or_not() -> None:
    start = pd.Timestamp("2024-03-01")
    for unit, step in (("h", 3600), ("min", 60), ("s", 1), ("us", 0)):
        times = start + pd.to_timedelta((np.arange(99) * 7919) % 50_021, unit=unit)
        assert Schema.infer(Table.of(pd.DataFrame({"t": times}))).fields[0].step == step
    # so many seconds that they are real numbers
    times = start + pd.to_timedelta(np.arange(99) * 100_003, unit="s")
    assert Schema.infer(Table.of(pd.DataFrame({"t": times}))).fields[0].step == 0


def test_a_few_dates_are_categories() -> None:
    days = [datetime.date(2024, month, 1) for month in (1, 2, 3)] * 10
    schema = Schema.infer(Table.of(pl.DataFrame({"day": days})))
    (field,) = schema.fields
    assert (field.kind, field.dtype) == ("categorical", "date")
    assert field.labels() == tuple(days[:3])
    codes = schema.encode(Table.of(pl.DataFrame({"day": days})))
    assert codes[:3, 0].tolist() == [0, 1, 2]
    assert schema.decode(codes, Table.of(pl.DataFrame({"day": days})))["day"].to_list() == days
    assert schema.encode(Table.of(pd.DataFrame({"day": ["2024-02-01"]}))).tolist() == [[1]]
    with pytest.raises(
        DataError, match=r"2024-05-01 is not among the known values .2024-01-01, 2024-02-01, 2024-03-01"
    ):
        schema.encode(Table.of(pl.DataFrame({"day": [datetime.date(2024, 5, 1)]})))
    constant = Schema.infer(Table.of(pl.DataFrame({"day": days[:1] * 5}))).fields[0]
    assert constant.labels() == (days[0],)


def test_text_categories_that_are_dates() -> None:
    """Told to be categories, they stay what they were, and a file may have them as dates."""
    frame = pd.DataFrame({"day": ["2024-01-01", "2024-02-01"] * 5})
    schema = Schema.infer(Table.of(frame), "categorical")
    assert schema.fields[0].values == ("2024-01-01", "2024-02-01")
    assert schema.encode(Table.of(pl.DataFrame({"day": [datetime.date(2024, 2, 1)]}))).tolist() == [[1]]
    numbers = Schema.infer(Table.of(pd.DataFrame({"day": [0.5, 1.5, 2.5]})))
    with pytest.raises(DataError, match="'2024-02-01T00:00:00' is a date, where the model has numbers"):
        numbers.encode(Table.of(pl.DataFrame({"day": [datetime.date(2024, 2, 1)]})))


def test_days_of_training_and_validation_together() -> None:
    first, second = pl.DataFrame({"day": DAYS[:3]}), pl.DataFrame({"day": [datetime.datetime(2024, 1, 1, 12)]})
    both = Table.of(first).with_rows_of(Table.of(second))
    assert both.dtypes == ["datetime"]
    assert len(both.columns[0]) == 4
    with pytest.raises(DataError, match="is dates in one of the two tables, and not in the other"):
        Table.of(first).with_rows_of(Table.of(pl.DataFrame({"day": [1]})))
