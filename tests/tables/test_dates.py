"""Dates are numbers to a model, and dates again when they are given back."""

from __future__ import annotations

import datetime
import io
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import run
from data_files import write
from fields import numeric
from made import MADE
from made.errors import DataError
from made.io.read import read
from made.io.time_zones import zone_of
from made.tables.dates import DAY, LEAST, as_datetime64, ends_in, in_seconds, in_text, objects, seconds_in
from made.tables.restore import rebuild
from made.tables.schema import Schema
from made.tables.summary import TableSummary
from made.tables.table import Table

NAN = float("nan")
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in (np.arange(200) * 37) % 1461]


@given(st.datetimes())
def test_a_time_comes_back(time) -> None:
    """To the microsecond, for as long as a float64 can hold one, and to the second always."""
    seconds = in_seconds(np.array([time], dtype="M8[us]"))
    (back,) = objects(seconds, "datetime")
    assert abs(back - time) <= datetime.timedelta(microseconds=0 if 1900 < time.year < 2100 else 32)
    whole = time.replace(microsecond=0)
    assert objects(in_seconds(np.array([whole], dtype="M8[us]")), "datetime").tolist() == [whole]
    found = seconds_in([time.isoformat()])
    assert found is not None
    assert found[0] == pytest.approx(seconds, rel=1e-15)


@given(st.dates())
def test_a_day_comes_back(day) -> None:
    seconds = in_seconds(np.array([day], dtype="M8[D]"))
    assert seconds[0] % DAY == 0
    assert objects(seconds, "date").tolist() == [day]
    assert in_text(seconds, "date").tolist() == [day.isoformat()]
    assert seconds_in([day.isoformat()]) == (seconds, "date", "")


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
def test_text_that_is_not_a_date(text) -> None:
    assert seconds_in([text]) is None
    assert seconds_in(["2024-03-01", text]) is None


def test_times_in_text() -> None:
    seconds, kind, written = seconds_in(["1970-01-01", "1970-01-01T00:01", "1970-01-01 00:00:02.5"])
    assert (seconds.tolist(), kind, written) == ([0, 60, 2.5], "datetime", "YYYY-MM-DDThh:mm:ss.s")


def test_times_in_text_of_one_time_zone_are_counted_in_utc() -> None:
    assert seconds_in(["1970-01-01T01:00:00+01:00", "1970-01-01T01:00:01+01:00"])[0].tolist() == [0, 1]
    assert seconds_in(["1970-01-01T01:00:00Z"])[0].tolist() == [3600]
    assert seconds_in(["2024-03-31T01:00:00+01:00", "2024-04-01T01:00:00+02:00"]) is None
    assert seconds_in(["2024-03-31T01:00:00Z", "2024-04-01T01:00:00"]) is None
    assert seconds_in(["2024-03-31T01:00:00+25:00"]) is None


FORMS = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M-03:30"]


@pytest.mark.parametrize("written", FORMS)
def test_times_in_text_are_given_back_as_they_were_written(written, tmp_path) -> None:
    step = 37 if "%S" in written else 60 * 37
    times = [datetime.datetime(2024, 2, 28, 22) + datetime.timedelta(seconds=step * row) for row in range(60)]
    rows = pd.DataFrame({"when": [time.strftime(written) for time in times], "late": np.arange(60) > 30})
    model = MADE(hidden_sizes=(8,), max_epochs=1, random_state=0).fit(rows)
    field = model.model_.schema.fields[0]
    assert (field.kind, field.dtype) == ("numeric", "datetime")
    assert field.decode(model.model_.codes(rows)[:, 0], "text")[0].tolist() == rows["when"].tolist()
    model.save(tmp_path / "model")
    for each in (model, MADE.load(tmp_path / "model")):
        drawn, filled = each.sample(30)["when"], each.impute(rows.assign(when=[*rows["when"][:50], *[None] * 10]))
        for text in [*drawn, *filled["when"]]:
            assert datetime.datetime.strptime(text, written).strftime(written) == text
    middle = rows["when"][30]
    assert 0.2 < model.probability(f"when >= '{middle}'").probability < 0.8
    assert model.model_.satisfied(f"when >= '{middle}'", rows).sum() == 30


def test_a_large_table_of_times_in_text_has_one_form(monkeypatch) -> None:
    monkeypatch.setattr("made.tables.summary.LEAST", 64)
    monkeypatch.setattr("made.tables.summary.NUMBERS", 64)
    texts = [f"2024-01-{1 + row % 28:02} {row % 24:02}:00Z" for row in range(300)]
    column = TableSummary.of(Table.of(pd.DataFrame({"when": texts}))).columns[0]
    assert column.as_dates().written == "YYYY-MM-DD hh:mmZ"
    mixed = TableSummary.of(Table.of(pd.DataFrame({"when": [*texts, "2024-01-01 00:00"]}))).columns[0]
    assert mixed.as_dates() is None


def test_what_python_has_no_date_for_is_the_nearest() -> None:
    assert as_datetime64(np.array([1e300, -1e300, NAN])).astype(str).tolist() == [
        "9999-12-31T23:59:59.999969",
        "0001-01-01T00:00:00.000000",
        "NaT",
    ]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us"])
def test_a_year_that_python_has_not_is_refused(unit) -> None:
    """In any unit, and without an overflow that would make another date of it."""
    for wrong in (-(2**62), -3000 * 366 * 2, 2**62, 2**55):
        dates = np.array([0, "NaT", wrong], dtype=f"M8[{unit}]")
        if not 0 < dates.astype("M8[Y]").astype(int)[2] + 1970 < 10_000:
            with pytest.raises(DataError, match=r"row 2, column 0: .* is a date outside the years 1 to 9999"):
                Table.of(dates[:, None])
            with pytest.raises(DataError, match=r"row 2, column 0: .* outside the years 1 to 9999"):
                Table.of(np.array([[None], [datetime.date(2024, 1, 1)], [dates[2]]], dtype=object))
    assert in_seconds(np.array(["0001-01-01", "9999-12-31"], dtype=">M8[s]")).tolist() == [LEAST, 253402214400]


def test_a_date_that_is_too_large_for_a_file_of_dates_is_refused() -> None:
    for column in (pa.array([10_000_000], pa.int32()).cast(pa.date32()), pa.array([2**60]).cast(pa.timestamp("s"))):
        with pytest.raises(DataError, match=r"row 0, column 0 \('day'\): .* outside the years 1 to 9999"):
            Table.of(pa.table({"day": column}))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "+14:00", "-12:00"])
def test_local_times_have_all_years(zone) -> None:
    """The last moment of 9999 in New York is one of 10000 in UTC."""
    local = zone_of(zone)
    for time in (datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59)):
        seconds = (time - datetime.datetime(1970, 1, 1)).total_seconds()
        seconds -= time.replace(tzinfo=local).utcoffset().total_seconds()
        column = pa.array([int(seconds)], pa.timestamp("s", zone))
        table = Table.of(pa.table({"time": column}))
        assert table.columns[0].tolist() == [seconds]
        assert rebuild(table, table.columns, table.dtypes)["time"].chunk(0).equals(column)
        far = rebuild(table, [np.array([np.copysign(1e300, seconds)])], ["datetime"])
        assert str(far["time"].chunk(0).cast(pa.string())[0])[:10] == str(time)[:10]
    assert zone_of("Nowhere/Else") is None
    assert ends_in("Nowhere/Else") == ends_in(None)


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
    assert (field.kind, numeric(field).step, numeric(field).low) == ("numeric", DAY, -math.inf)
    assert field.dtype == ("datetime" if name in ("polars times", "pandas") else "date")
    codes = schema.encode(Table.of(rows))
    assert (codes[:, 0] / DAY).tolist() == [(day - datetime.date(1970, 1, 1)).days for day in DAYS]


@pytest.mark.parametrize("name", frames())
def test_days_have_the_same_codes_whatever_the_schema_was_inferred_from(name) -> None:
    schema = Schema.infer(Table.of(frames()[name]))
    codes = [schema.encode(Table.of(other)) for other in frames().values()]
    assert all(np.array_equal(each, codes[0]) for each in codes[1:])


@pytest.mark.parametrize("name", frames())
def test_days_come_back_as_they_were_given(name) -> None:
    rows = frames()[name]
    schema = Schema.infer(Table.of(rows))
    codes = schema.encode(Table.of(rows))
    for back in (schema.decode(codes, Table.of(rows)), schema.fill(Table.of(rows), codes)):
        assert type(back) is type(rows)
        if isinstance(back, pd.DataFrame):
            pd.testing.assert_frame_equal(back, rows)
        elif isinstance(back, np.ndarray):
            assert back.dtype == rows.dtype
            assert (back == rows).all()
        else:
            assert back.equals(rows)


@pytest.mark.parametrize("name", frames())
def test_days_without_a_table_to_follow_are_arrow_dates_or_a_numpy_array(name) -> None:
    schema = Schema.infer(Table.of(frames()[name]))
    plain = schema.decode(schema.encode(Table.of(frames()[name])))
    days = plain.to_pydict()["day"] if schema.named else plain[:, 0].tolist()
    assert [str(day)[:10] for day in days] == list(map(str, DAYS))


@pytest.fixture(scope="module")
def calendar() -> MADE:
    """A date that depends on a category."""
    random = np.random.default_rng(0)
    late = random.random(400) < 0.5
    day = np.where(late, 400, 100) + random.integers(0, 60, 400)
    frame = pd.DataFrame({"late": late, "day": pd.Timestamp("2023-01-01") + pd.to_timedelta(day, unit="D")})
    small = {"hidden_sizes": (32,), "max_epochs": 40, "evaluation_masks": 4, "random_state": 0}
    return MADE(**small, unseen="error").fit(frame)


def test_samples_are_dates(calendar) -> None:
    day = calendar.sample(300, given={"late": True})["day"]
    assert day.dtype == calendar.sample(1)["day"].dtype
    assert (day == day.dt.normalize()).all()
    assert (day > "2023-12-01").mean() > 0.9


def test_missing_dates_are_filled_with_dates(calendar) -> None:
    rows = pd.DataFrame({"late": [True, False], "day": pd.to_datetime([None, None])})
    filled = calendar.impute(rows, strategy="mode")
    assert filled["day"].dtype.kind == "M"
    assert (filled["day"] > "2023-12-01").tolist() == [True, False]


def test_dates_are_conditioned_on(calendar) -> None:
    rows = pd.DataFrame({"day": pd.to_datetime(["2024-02-20", "2023-04-20"])})
    assert (calendar.predict_proba(rows, target="late")[:, 1] > 0.5).tolist() == [True, False]
    drawn = calendar.sample(2, given={"day": datetime.date(2024, 2, 20)})
    assert (drawn["day"] == "2024-02-20").all()


def test_the_probabilities_of_all_days_sum_to_one(calendar) -> None:
    days = pd.DataFrame({"late": True, "day": pd.date_range("2000-01-01", "2050-01-01")})
    assert np.exp(calendar.score_samples(days, given=["late"])).sum() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("day", "message"),
    [
        (
            pd.Timestamp("2024-02-20 12:00"),
            r"row 0, column 1 \('day'\): 2024-02-20T12:00:00 is not .* in whole days",
        ),
        (7.0, r"'day'\): 7\.0 is a number, where the model has dates, such as 2024-03-01"),
        ("soon", "'soon' is text, where the model has dates"),
    ],
)
def test_what_is_not_a_day_is_refused(calendar, day, message) -> None:
    with pytest.raises(DataError, match=message):
        calendar.score_samples(pd.DataFrame({"late": [True], "day": [day]}))


FAR = [*DAYS[:37], datetime.date(9999, 12, 31), datetime.date(1500, 12, 31), datetime.date(1, 1, 1)]
MOMENTS = [datetime.datetime.combine(day, datetime.time(12, 30)) for day in FAR]


def far_tables() -> dict[str, object]:
    """Days and times, with "no end" and the distant past among them, in every way that they come."""
    arrow = {"date32": pa.date32(), "date64": pa.date64()}
    arrow |= {f"{u} {z}": pa.timestamp(u, z) for u in ("s", "ms", "us") for z in (None, "UTC", "America/New_York")}
    tables: dict[str, object] = {
        f"pyarrow {key}": pa.table({"day": pa.array(FAR if "date" in key else MOMENTS, kind)})
        for key, kind in arrow.items()
    }
    for unit in ("s", "ms", "us"):
        times = np.array(MOMENTS, dtype=f"M8[{unit}]")
        tables[f"pandas {unit}"] = pd.DataFrame({"day": times})
        tables[f"pandas {unit} zone"] = pd.DataFrame({"day": pd.Series(times).dt.tz_localize("UTC")})
        tables[f"numpy {unit}"] = times[:, None]
    for unit in ("ms", "us"):
        tables[f"polars {unit}"] = pl.DataFrame({"day": MOMENTS}, schema={"day": pl.Datetime(unit)})
        tables[f"polars {unit} zone"] = pl.DataFrame({"day": MOMENTS}, schema={"day": pl.Datetime(unit, "UTC")})
    for key in ("date32", "date64", "us None"):
        values = FAR if "date" in key else MOMENTS
        tables[f"pandas arrow {key}"] = pd.DataFrame({"day": pd.Series(values, dtype=pd.ArrowDtype(arrow[key]))})
    tables |= {
        "polars days": pl.DataFrame({"day": FAR}),
        "pandas objects": pd.DataFrame({"day": pd.Series(FAR, dtype=object)}),
        "pandas times as objects": pd.DataFrame({"day": pd.Series(MOMENTS, dtype=object)}),
        "pandas text": pd.DataFrame({"day": list(map(str, FAR))}),
        "pandas times as text": pd.DataFrame({"day": [time.isoformat() for time in MOMENTS]}),
        "numpy days": np.array([FAR], dtype="M8[D]").T,
        "numpy objects": np.array([FAR], dtype=object).T,
        "numpy text": np.array([list(map(str, FAR))]).T,
    }
    return tables


@pytest.mark.parametrize("name", far_tables())
def test_the_year_9999_is_supported(name) -> None:
    rows = far_tables()[name]
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, random_state=0).fit(rows)
    (field,) = model.model_.schema.fields
    assert field.kind == "numeric"
    assert numeric(field).scale < 3 * 366 * DAY  # that of the others
    assert numeric(field).step == (DAY if field.dtype == "date" else 0.0)  # there are more minutes than steps may be
    assert np.isfinite(model.score_samples(rows)).all()
    assert model.probability(f"{field.name} > 2020-01-01").probability > 0.2
    assert len(model.predict(rows, target=0)) == len(FAR)


@pytest.mark.parametrize("name", far_tables())
def test_rows_of_the_year_9999_are_drawn_and_filled_as_they_were_given(name) -> None:
    rows = far_tables()[name]
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, random_state=0).fit(rows)
    drawn, filled = model.sample(30, temperature=3.0), model.impute(rows)
    assert type(drawn) is type(filled) is type(rows)
    codes = model.model_.schema.encode(Table.of(rows))
    assert np.array_equal(model.model_.schema.encode(Table.of(filled)), codes)
    assert np.array_equal(model.model_.schema.encode(Table.of(model.model_.schema.decode(codes))), codes)
    assert np.isfinite(model.score_samples(drawn)).all()


def test_steps_are_those_of_the_others_where_one_date_is_far() -> None:
    for step, unit in ((3600, "h"), (60, "m"), (1, "s")):
        near = np.datetime64("2024-01-01", unit) + (np.arange(99) * 7919) % 50_021
        for far in ("9999-12-31", "1500-12-31"):
            times = np.append(near, np.datetime64(far, unit))[:, None]
            assert numeric(Schema.infer(Table.of(times.astype("M8[s]"))).fields[0]).step == step


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_commands_take_the_year_9999(tmp_path, suffix) -> None:
    kinds = {"kind": pa.array(list("ab") * 20), "day": pa.array(FAR, pa.date32())}
    kinds |= {"time": pa.array(MOMENTS, pa.timestamp("ms")), "zone": pa.array(MOMENTS, pa.timestamp("us", "UTC"))}
    table = pa.table(kinds)
    incomplete = table.set_column(1, "day", pa.array([None] * 20 + FAR[20:], pa.date32()))
    data, missing, model = (tmp_path / f"{name}" for name in (f"rows.{suffix}", f"missing.{suffix}", "model"))
    write(table, data)
    write(incomplete, missing)
    run("fit", data, "--out", model, "--hidden-sizes", "4", "--max-epochs", 1, "--quiet")
    for command in ("score", "impute", "denoise", "explain"):
        out = tmp_path / f"{command}.{suffix}"
        run(command, model, missing, "--out", out, "--quiet")
        assert read(out).num_rows == 40
    filled = read(tmp_path / f"impute.{suffix}")
    assert filled.schema.equals(read(data).schema)
    assert filled["day"].to_pylist()[20:] == FAR[20:]
    assert filled.drop_columns(["day"]).equals(read(data).drop_columns(["day"]))
    run("sample", model, "-n", 20, "--out", tmp_path / f"new.{suffix}", "--quiet")
    drawn = read(tmp_path / f"new.{suffix}")
    assert drawn.schema.equals(read(data).schema) or suffix == "csv"  # whose fractions are nanoseconds where they fit
    run("predict", model, missing, "--target", "day", "--out", tmp_path / "days.csv", "--quiet")
    assert "9999-12-31" in run("ask", model, "day >= 9999-12-31 | kind = a").stdout
    run("report", model, data, "--out", tmp_path / "page.html", "--quiet")


def test_times_in_steps_or_not() -> None:
    start = pd.Timestamp("2024-03-01")
    for unit, step in (("h", 3600), ("min", 60), ("s", 1), ("us", 0)):
        times = start + pd.to_timedelta((np.arange(99) * 7919) % 50_021, unit=unit)
        assert numeric(Schema.infer(Table.of(pd.DataFrame({"t": times}))).fields[0]).step == step
    # so many seconds that they are real numbers
    times = start + pd.to_timedelta(np.arange(99) * 100_003, unit="s")
    assert numeric(Schema.infer(Table.of(pd.DataFrame({"t": times}))).fields[0]).step == 0


def test_a_few_dates_are_ordinal() -> None:
    days = [datetime.date(2024, month, 1) for month in (1, 2, 3)] * 10
    schema = Schema.infer(Table.of(pl.DataFrame({"day": days})))
    (field,) = schema.fields
    assert (field.kind, field.dtype) == ("ordinal", "date")
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
    both = TableSummary.of(Table.of(first), Table.of(second))
    assert both.dtypes == ["datetime"]
    assert both.rows == both.columns[0].count == 4
    with pytest.raises(DataError, match="is dates in one of the two tables, and not in the other"):
        TableSummary.of(Table.of(first), Table.of(pl.DataFrame({"day": [1]})))
