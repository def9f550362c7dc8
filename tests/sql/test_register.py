"""A model's functions in DuckDB give the answers of Python, to the bit."""

from __future__ import annotations

import datetime
import decimal
import importlib
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

from made import MADE, DataError, ModelError, ParameterError, QuestionError, UnseenWarning

duckdb = pytest.importorskip("duckdb", reason="the extra sql is not installed")

from made.sql import register  # noqa: E402

ROWS = 150


def table(rows: int = ROWS) -> pa.Table:
    """Every kind of column, each with missing values."""
    random = np.random.default_rng(0)
    day, second = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)
    columns = {
        "Contract": pa.array(random.choice(["month", "one year", "two year"], rows).tolist()),
        "paid": pa.array((random.random(rows) < 0.6).tolist()),
        "lines": pa.array(random.integers(0, 4, rows), pa.int8()),
        "tenure": pa.array(random.poisson(30, rows), pa.int64()),
        "charge": pa.array(random.gamma(3, 20, rows)),
        "since": pa.array([day + datetime.timedelta(days=int(each)) for each in random.integers(0, 400, rows)]),
        "seen": pa.array([second + datetime.timedelta(seconds=float(each)) for each in 1e7 * random.random(rows)]),
        "zoned": pa.array(
            [second + datetime.timedelta(hours=int(each)) for each in random.integers(0, 9000, rows)],
            pa.timestamp("ms", "Europe/Paris"),
        ),
    }
    holes = random.random((rows, len(columns))) < 0.1
    return pa.table(
        {
            name: pa.array(column.to_pylist(), column.type, mask=holes[:, d])
            for d, (name, column) in enumerate(columns.items())
        }
    )


@pytest.fixture(scope="module")
def model():
    return MADE(hidden_sizes=(8,), max_epochs=1, evaluation_masks=2, unseen="error", random_state=0).fit(table()).model_


@pytest.fixture(scope="module")
def connection(model):
    with duckdb.connect() as connection:
        register(connection, model, "m")
        connection.register("arrow_rows", table())
        connection.execute("CREATE TABLE t AS FROM arrow_rows")
        yield connection


def column(connection, query: str) -> list:
    return connection.sql(query).to_arrow_table().column(0).to_pylist()


def refused(connection, query: str) -> str:
    with pytest.raises(duckdb.Error) as error:
        connection.sql(query).fetchall()
    return str(error.value)


def test_logp_is_that_of_python(connection, model) -> None:
    assert column(connection, "SELECT m_logp(t) FROM t") == model.score_samples(table()).astype(float).tolist()


def test_logp_given_columns(connection, model) -> None:
    complete = "FROM t WHERE tenure IS NOT NULL AND Contract IS NOT NULL"
    rows = connection.sql(f"SELECT * {complete}").to_arrow_table()
    expected = model.score_samples(rows, given=["tenure", "Contract"]).astype(float).tolist()
    assert column(connection, f"SELECT m_logp(t, ['tenure', 'contract']) {complete}") == expected


def test_a_field_that_is_absent_or_null_is_missing_and_one_too_many_is_ignored(connection, model) -> None:
    empty = {name: pa.nulls(1) for name in model.schema.names}
    expected = model.score_samples(pa.table(empty | {"tenure": pa.array([30])})).astype(float).tolist()
    for row in ("{'tenure': 30}", "{'TENURE': 30, 'Contract': NULL}", "{'tenure': 30, 'id': 'x'}"):
        assert column(connection, f"SELECT m_logp({row})") == expected


def test_a_row_without_any_value_has_probability_one_and_no_row_has_none(connection) -> None:
    assert column(connection, "SELECT m_logp({'tenure': NULL})") == [0.0]
    assert column(connection, "SELECT m_logp(NULL)") == [None]
    assert column(connection, "SELECT m_logp(r) FROM (VALUES ({'tenure': 30}), (NULL)) v(r)")[1] is None
    assert column(connection, "SELECT m_impute(r) FROM (VALUES ({'tenure': 30}), (NULL)) v(r)")[1] is None


@pytest.mark.parametrize("kind", ["TINYINT", "HUGEINT", "DECIMAL(9, 2)", "FLOAT", "DOUBLE", "VARCHAR", "UBIGINT"])
def test_numbers_may_be_of_any_type(connection, kind) -> None:
    expected = column(connection, "SELECT m_logp({'tenure': 30, 'lines': 2, 'charge': 20})")
    values = ", ".join(f"'{name}': {value}::{kind}" for name, value in (("tenure", 30), ("lines", 2), ("charge", 20)))
    assert column(connection, f"SELECT m_logp({{{values}}})") == expected


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_NS", "VARCHAR"])
def test_dates_may_be_of_any_type(connection, kind) -> None:
    expected = column(connection, "SELECT m_logp({'since': DATE '2024-03-01'})")
    assert column(connection, f"SELECT m_logp({{'since': '2024-03-01'::{kind}}})") == expected


def test_text_may_be_an_enum(connection) -> None:
    expected = column(connection, "SELECT m_logp({'Contract': 'month'})")
    assert column(connection, "SELECT m_logp({'Contract': 'month'::ENUM('year', 'month')})") == expected


def test_yes_and_no_which_duckdb_reads_as_truth_values_are_what_they_were(tmp_path) -> None:
    words = np.random.default_rng(0).choice(["No", "Yes"], ROWS).tolist()
    rows = pa.table({"churn": words, "n": [n % 7 for n in range(ROWS)]})
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, random_state=0)
    model.fit(rows)
    (tmp_path / "rows.csv").write_text("churn,n\n" + "".join(f"{word},{n % 7}\n" for n, word in enumerate(words)))
    with duckdb.connect() as connection:
        register(connection, model, "m")
        file = tmp_path / "rows.csv"
        assert column(connection, f"SELECT DISTINCT typeof(churn) FROM '{file}'") == ["BOOLEAN"]
        scores = column(connection, f"SELECT m_logp(t) FROM '{file}' t")
    assert scores == model.score_samples(rows).astype(float).tolist()


def test_more_rows_than_a_batch_of_duckdb(connection, model) -> None:
    rows = pa.concat_tables([table()] * 30).append_column("number", pa.array(range(30 * ROWS)))
    with duckdb.connect() as connection:
        register(connection, model, "m")
        connection.register("rows", rows)
        scores = column(connection, "SELECT logp FROM (SELECT m_logp(r) AS logp, number FROM rows r) ORDER BY number")
    np.testing.assert_allclose(scores, model.score_samples(rows.drop_columns("number")), rtol=1e-5)


def test_probability_and_ask_are_those_of_python(connection, model) -> None:
    for question in ("tenure > 12", "Contract = 'two year' | tenure > 12", "tenure > 12 and charge < 50"):
        quoted, expected = question.replace("'", "''"), model.probability(question)
        assert column(connection, f"SELECT m_probability('{quoted}')") == [expected.probability]
        assert column(connection, f"SELECT m_ask('{quoted}')") == [
            dict(
                zip(
                    ("probability", "low", "high", "exact"),
                    (expected.probability, *expected.interval, expected.kind == "exact"),
                    strict=True,
                )
            )
        ]
    fewer = model.probability("tenure > 12 and charge < 50", samples=64).probability
    assert column(connection, "SELECT m_probability('tenure > 12 and charge < 50', 64)") == [fewer]


@pytest.mark.parametrize("setting", ["arrow_large_buffer_size", "produce_arrow_string_view"])
def test_text_may_be_of_any_type_of_arrow(model, setting) -> None:
    with duckdb.connect() as own:
        register(own, model, "m")
        query = "SELECT m_probability('tenure > 3'), m_predict({'Contract': 'month'}, 'paid')"
        expected = own.sql(query).fetchall()
        own.execute(f"SET {setting} = true")
        assert own.sql(query).fetchall() == expected


def test_a_column_of_questions(connection, model) -> None:
    found = column(connection, "SELECT m_probability(q) FROM (VALUES ('paid = true'), (NULL), ('lines = 2')) v(q)")
    assert found == [model.probability("paid = true").probability, None, model.probability("lines = 2").probability]


@pytest.mark.parametrize("target", ["Contract", "paid", "lines", "tenure", "charge"])
def test_predictions_are_those_of_python(connection, model, target) -> None:
    found = connection.sql(f"SELECT m_predict(t, '{target.upper()}') FROM t").to_arrow_table().column(0)
    assert found.to_pylist() == model.predict(table(), target).tolist()
    named = {"Contract": "string", "paid": "bool", "lines": "int64", "tenure": "double", "charge": "double"}
    assert str(found.type) == named[target]


@pytest.mark.parametrize("target", ["since", "seen"])
def test_predicted_dates_are_those_of_python(connection, model, target) -> None:
    found = column(connection, f"SELECT m_predict(t, '{target}') FROM t")
    assert [each.isoformat() for each in found] == model.predict(table(), target).tolist()


def test_a_time_zone_is_kept(connection, model) -> None:
    found = connection.sql("SELECT m_predict(t, 'zoned') FROM t").to_arrow_table().column(0)
    assert pa.types.is_timestamp(found.type)
    utc = found.cast(pa.timestamp("us")).to_pylist()
    assert [each.isoformat() for each in utc] == model.predict(table(), "zoned").tolist()


def test_the_probability_of_a_value(connection, model) -> None:
    everything = model.predict_proba(table(), "Contract").astype(float)
    for place, value in enumerate(model.classes("Contract")):
        assert column(connection, f"SELECT m_predict_proba(t, 'Contract', '{value}') FROM t") == (
            everything[:, place].tolist()
        )
    lines = [model.predict_proba(table(), "lines").astype(float)[0, 2], None]
    assert (
        column(connection, "SELECT m_predict_proba(t, 'lines', v) FROM (FROM t LIMIT 1) t, (VALUES (2), (NULL)) w(v)")
        == lines
    )


def test_quantiles_are_those_of_python(connection, model) -> None:
    for target in ("tenure", "charge", "lines"):
        expected = model.predict_quantiles(table(), target, quantiles=[0.9])[:, 0].tolist()
        assert column(connection, f"SELECT m_quantile(t, '{target}', 0.9) FROM t") == expected
    days = model.predict_quantiles(table(), "since", quantiles=[0.5])[:, 0] / 86_400
    found = column(connection, "SELECT m_quantile(t, 'since', 0.5) FROM t")
    assert [(each - datetime.date(1970, 1, 1)).days for each in found] == days.tolist()


@pytest.mark.parametrize("strategy", ["mode", "mean"])
def test_imputed_rows_are_those_of_python(connection, model, strategy) -> None:
    filled = connection.sql(f"SELECT unnest(m_impute(t, '{strategy}')) FROM t").to_arrow_table()
    expected = model.impute(table(), strategy=strategy)
    for name in expected.column_names:
        kind = filled.schema.field(name).type
        assert filled.column(name).to_pylist() == expected.column(name).cast(kind).to_pylist(), name
        assert filled.column(name).null_count == 0


def test_observed_values_are_not_touched(connection) -> None:
    row = "{'tenure': 7, 'charge': 12.25::DECIMAL(9, 2), 'since': NULL}"
    filled = column(connection, f"SELECT m_impute({row})")[0]
    assert (filled["tenure"], filled["charge"]) == (7, decimal.Decimal("12.25"))
    assert isinstance(filled["since"], datetime.date)


def test_a_drawn_row_is_one_row_and_depends_on_the_seed(connection) -> None:
    query = "SELECT unnest(m_draw(t, {})) FROM t"
    first, again, other = (connection.sql(query.format(seed)).to_arrow_table() for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert not sum(each.null_count for each in first.columns)
    whole = connection.sql("SELECT m_draw(t, 1) AS r FROM t").to_arrow_table().column(0)
    assert first.to_pylist() == whole.to_pylist()


def test_surprise_is_that_of_python(connection, model) -> None:
    found = connection.sql("SELECT unnest(m_surprise(t)) FROM t").to_arrow_table()
    expected = model.surprise(table())
    for name in expected.column_names:
        values = [None if np.isnan(each) else float(each) for each in expected.column(name).to_pylist()]
        assert found.column(name).to_pylist() == values


def test_samples_are_those_of_python(connection, model) -> None:
    for options, more in (
        ("", {}),
        (", seed := 3", {"random_state": 3}),
        (", given := {'lines': 2}", {"given": {"lines": 2}}),
    ):
        found = connection.sql(f"FROM m_sample(20{options})").to_arrow_table()
        expected = model.sample(20, **more)
        assert found.column_names == list(model.schema.names)
        for name in found.column_names:
            wanted = expected.column(name).cast(found.schema.field(name).type)
            assert found.column(name).to_pylist() == wanted.to_pylist()


def test_samples_are_a_table_like_any_other(connection) -> None:
    assert column(connection, "SELECT count(*) FROM m_sample(10) s JOIN (SELECT 1) ON s.lines >= 0") == [10]
    assert len(column(connection, "SELECT m_logp(s) FROM m_sample(7) s")) == 7


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("m_logp(3)", "m_logp: the first argument should be a row"),
        ("m_logp({'a': 3})", "m_logp: the row has none of the model's columns, which are Contract, paid"),
        ("m_logp({'Contract': 'never'})", "'never' is not among the known values ('month', 'one year', 'two year')"),
        ("m_logp({'tenure': 'many'})", "m_logp: column 3 ('tenure'): 'many' is text, where the model has numbers"),
        ("m_logp({'tenure': 'inf'::DOUBLE})", "infinity cannot be used"),
        ("m_logp({'tenure': [3]})", "m_logp: column 3 ('tenure')"),
        ("m_logp({'tenure': 3}, 'tenure')", "the given columns should be a list, such as ['Contract']"),
        ("m_logp({'tenure': 3}, ['ten'])", "there is no column 'ten': the columns are Contract"),
        ("m_logp({'tenure': 3}, ['tenure'], 4)", "m_logp: there should be 1 or 2 arguments, not 3"),
        ("m_probability('tenur > 3')", "there is no column 'tenur': did you mean tenure?"),
        ("m_probability(3)", "the condition should be text, not int32: put it in single quotes"),
        ("m_probability('tenure > 3', 1)", "'samples'"),
        ("m_predict({'tenure': 3}, 'ten')", 'Could not find key "ten" in struct'),
        ("m_predict_proba({'tenure': 3}, 'charge', 3)", "has no list of values: ask for its mean (predict)"),
        ("m_predict_proba({'tenure': 3}, 'Contract', 'never')", "'never' is not among the known values"),
        ("m_predict_proba({'tenure': 3}, c, 3) FROM (VALUES ('lines'), ('paid')) v(c)", "the same in all rows"),
        ("m_quantile({'tenure': 3}, 'charge', 2)", "'quantiles' should be probabilities, from 0 to 1"),
        ("m_quantile({'tenure': 3}, 'Contract', 0.5)", "has no order, and so no quantiles"),
        ("m_impute({'tenure': 3}, 'sample')", "the strategy should be 'mode' or 'mean', not 'sample'; for a sample"),
        ("m_draw({'tenure': 3}, -1)", "the seed should be a whole number, at least 0"),
        ("m_draw({'tenure': 3}, 1.5)", "the seed should be a whole number, at least 0 and below 2^32, not 1.5"),
        ("m_logp({})", "it has no columns"),
        ("* FROM m_sample(0)", "m_sample: the number of rows should be a whole number, at least 1, not 0"),
        ("* FROM m_sample(2.5)", "m_sample: the number of rows should be a whole number, at least 1, not 2.5"),
        ("* FROM m_sample(2, seed := -1)", "m_sample: the seed should be a whole number, at least 0"),
        ("* FROM m_sample(1000000000000)", "m_sample: there is not enough memory: ask for fewer rows"),
        ("* FROM m_sample(2, given := {'ten': 3})", "m_sample: given: there is no column 'ten'"),
        ("* FROM m_sample(2, given := {'Contract': 'never'})", "'never' is not among the known values"),
    ],
)
def test_what_is_wrong_is_said(connection, query, said) -> None:
    assert said in refused(connection, f"SELECT {query}")


def test_the_error_behind_one_of_duckdb_is_kept(model) -> None:
    with duckdb.connect() as connection:
        functions = register(connection, model, "m").functions
        refused(connection, "SELECT m_logp({'Contract': 'never'})")
        assert isinstance(functions.error, DataError)
        assert functions.error.column == "Contract"
        refused(connection, "SELECT m_probability('(')")
        assert isinstance(functions.error, QuestionError)


def test_what_training_never_saw_is_counted(tmp_path) -> None:
    estimator = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, unseen="other", random_state=0).fit(table())
    with duckdb.connect() as connection:
        register(connection, estimator, "m")
        with pytest.warns(UnseenWarning, match="1 of 'Contract'"):
            found = column(connection, "SELECT m_logp({'Contract': 'never'})")
    assert found[0] < np.log(0.2)


def test_which_columns_were_absent_or_ignored_is_known(model) -> None:
    with duckdb.connect() as connection:
        functions = register(connection, model, "m").functions
        column(connection, "SELECT m_logp({'tenure': 3, 'id': 4})")
    assert functions.ignored == {"id"}
    assert functions.absent == set(model.schema.names) - {"tenure"}


def test_a_model_may_be_a_folder_or_an_estimator_and_replace_another(model, tmp_path) -> None:
    model.save(tmp_path / "model")
    other = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, random_state=0).fit(pa.table({"a": [0, 1] * 50}))
    with duckdb.connect() as connection:
        names = register(connection, tmp_path / "model", "m").names
        assert "m_sample" in names
        assert not [name for name in names if "__" in name]
        expected = model.probability("tenure > 12").probability
        assert column(connection, "SELECT m_probability('tenure > 12')") == [expected]
        register(connection, other, "m")
        assert connection.sql("FROM m_sample(2)").columns == ["a"]
        assert "there is no column" in refused(connection, "SELECT m_probability('tenure > 12')")


def test_two_models_in_one_query(model) -> None:
    with duckdb.connect() as connection:
        register(connection, model, "a")
        register(connection, model.with_ensemble(1, model.ensemble.segments), "b")
        both = connection.sql("SELECT a_logp(s), b_logp(s) FROM a_sample(5) s").fetchall()
    assert all(first != second for first, second in both)


def test_rows_of_a_model_of_arrays_have_the_names_that_made_gives_them() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (100, 3)).astype(float)
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, random_state=0).fit(rows)
    with duckdb.connect() as connection:
        register(connection, model, "bits")
        expected = model.score_samples([[0.0, 1.0, np.nan]]).astype(float).tolist()
        assert column(connection, "SELECT bits_logp({'x0': 0, 'x1': 1})") == expected
        assert connection.sql("FROM bits_sample(2)").columns == ["x0", "x1", "x2"]


@pytest.mark.parametrize("name", ["", "2m", "a b", "a;DROP TABLE t", "ä", "x" * 51])
def test_a_name_that_is_no_identifier_is_refused(connection, model, name) -> None:
    with pytest.raises(ParameterError, match="'name' should be at most 50 letters"):
        register(connection, model, name)


def test_a_folder_without_a_model_is_refused(connection, tmp_path) -> None:
    with pytest.raises(ModelError):
        register(connection, tmp_path, "m")


def test_names_that_differ_only_in_case_are_refused(connection) -> None:
    rows = pa.table({"a": [0, 1] * 50, "A": [1, 0] * 50})
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=1, random_state=0).fit(rows)
    with pytest.raises(DataError, match="'a' and 'A' differ only in case"):
        register(connection, model, "m")


def test_a_column_without_a_name_is_refused(connection) -> None:
    rows = pa.table({"": [0, 1, 0, 1], "a": [1, 0, 0, 1]})
    model = MADE(hidden_sizes=(4,), max_epochs=1, validation_fraction=0).fit(rows)
    with pytest.raises(DataError, match="a column has no name, and SQL needs one"):
        register(connection, model, "nameless")


def test_threads_do_not_mix_up_their_answers(model) -> None:
    expected = model.score_samples(table()).astype(float).tolist()
    found: list[list[float]] = []
    with duckdb.connect() as connection:
        connection.execute("SET threads = 4")
        register(connection, model, "m")
        connection.register("arrow_rows", table())
        connection.execute("CREATE TABLE t AS FROM arrow_rows")
        query = "SELECT m_logp(t) FROM t"
        threads = [threading.Thread(target=lambda: found.append(column(connection.cursor(), query))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [expected] * 4


def test_without_the_package_the_remedy_is_said(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for name in ("made.sql", "made.sql.register"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"pip install 'made\[sql\]'"):
        importlib.import_module("made.sql")
