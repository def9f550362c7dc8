"""The API gives the answers of Python, to the last bit, in every format."""

from __future__ import annotations

import datetime
import io
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet
from server import live

from made import MADE
from made.serve.bodies import ARROW, CSV, JSON, PARQUET
from made.serve.operations import Served
from people import fitted_people, people

MODEL = Served("people", fitted_people().model_).model
ROWS = people().slice(0, 30)


def objects(table: pa.Table) -> list[dict]:
    return json.loads(json.dumps(table.to_pylist(), default=datetime.date.isoformat))


def body(table: pa.Table, kind: str = JSON) -> dict:
    """A table as the body of a request."""
    if kind == JSON:
        return {"json": {"rows": objects(table)}}
    handle = io.BytesIO()
    if kind == CSV:
        pa.csv.write_csv(table, handle)
    elif kind == PARQUET:
        parquet.write_table(table, handle)
    else:
        with pa.ipc.new_stream(handle, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    return {"content": handle.getvalue(), "headers": {"content-type": kind}}


def rows_of(answer) -> list[dict]:
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


@pytest.mark.parametrize("kind", [JSON, CSV, PARQUET, ARROW])
def test_score(server, kind) -> None:
    found = [row["log_prob"] for row in rows_of(server.post("score", **body(ROWS, kind)))]
    assert found == MODEL.score_samples(ROWS).tolist()


def test_score_given_some_columns(server) -> None:
    rows = ROWS.slice(1, 5)
    found = rows_of(server.post("score", params={"given": ["age", "wage"]}, **body(rows)))
    assert [row["log_prob"] for row in found] == MODEL.score_samples(rows, given=["age", "wage"]).tolist()


def test_a_null_and_a_column_that_is_left_out_are_missing_values(server) -> None:
    found = rows_of(server.post("score", json={"rows": [{"age": 30, "wage": None}, {"age": 31}]}))
    rows = pa.table({name: [None, None] for name in MODEL.schema.names}).set_column(1, "age", pa.array([30, 31]))
    assert [row["log_prob"] for row in found] == MODEL.score_samples(rows).tolist()


@pytest.mark.parametrize("given", [{}, {"job": "cook", "since": "2024-03-01"}])
def test_sample(server, given) -> None:
    asked = {"count": 20, "given": given, "random_state": 7}
    expected = MODEL.sample(20, given=given, random_state=7)
    assert rows_of(server.post("sample", json=asked)) == objects(expected)
    answer = server.post("sample", json=asked, headers={"accept": ARROW})
    assert pa.ipc.open_stream(answer.content).read_all().equals(expected)


def test_the_seed_of_the_model_is_the_default(server) -> None:
    assert rows_of(server.post("sample", json={"count": 3})) == objects(MODEL.sample(3))


@pytest.mark.parametrize("strategy", ["sample", "mode", "mean"])
def test_impute(server, strategy) -> None:
    rows = ROWS.set_column(3, "wage", pa.nulls(len(ROWS), pa.float64()))
    answer = server.post("impute", params={"strategy": strategy, "random_state": 3, "uncertainty": True}, **body(rows))
    expected, how = MODEL.impute(rows, strategy=strategy, random_state=3, return_uncertainty=True)
    assert rows_of(answer) == objects(expected)
    filled = answer.json()["filled"]
    assert {(each["row"], each["column"]) for each in filled} == {(row, "wage") for row in range(len(rows))}
    deviations = {each["row"]: each["standard_deviation"] for each in filled}
    assert deviations == dict(enumerate(how.standard_deviation[:, 3].tolist()))


def test_predict_a_listed_column(server) -> None:
    answer = server.post("predict", params={"target": "score"}, **body(ROWS.drop(["score"]), CSV))
    expected = MODEL.forecast(ROWS, "score").probabilities
    found = [[row[f"p({value})"] for value in range(1, 6)] for row in rows_of(answer)]
    assert found == expected.tolist()
    assert [row["score"] for row in rows_of(answer)] == MODEL.predict(ROWS, "score").tolist()
    assert answer.json()["target"] == "score"


def test_predict_a_number(server) -> None:
    answer = server.post("predict", params={"target": "wage", "quantiles": [0.1, 0.9]}, **body(ROWS))
    expected = MODEL.predict_quantiles(ROWS, "wage", quantiles=[0.1, 0.9])
    assert [[row["q0.1"], row["q0.9"]] for row in rows_of(answer)] == expected.tolist()
    assert [row["mean"] for row in rows_of(answer)] == MODEL.predict(ROWS, "wage").tolist()


def test_each_quantile_is_a_column(server) -> None:
    levels = [0.5, 0.123456789, 0.1234567891, 0.5, 1e-5]
    found = server.post("predict", params={"target": "wage", "quantiles": levels}, **body(ROWS.slice(0, 1))).json()
    assert list(found["rows"][0])[2:] == ["q0.5", "q0.123456789", "q0.1234567891", "q0.00001"]
    assert found["levels"] == [0.5, 0.123456789, 0.1234567891, 1e-5]


@pytest.mark.parametrize("kind", [CSV, PARQUET, ARROW])
def test_columns_that_a_file_does_not_have(server, kind) -> None:
    """They are refused, so that a name with a typing error is noticed, unless they are declared missing."""
    rows = ROWS.drop(["job", "wage"]).append_column("jobb", ROWS["job"])
    problem = server.post("score", **body(rows, kind)).json()
    assert (problem["type"], problem["column"]) == ("urn:made:data", "job")
    answer = server.post("score", params={"absent": "missing"}, **body(rows, kind)).json()
    whole = rows.append_column("job", pa.nulls(len(rows))).append_column("wage", pa.nulls(len(rows)))
    expected = MODEL.score_samples(whole.select(ROWS.column_names)).tolist()
    assert [row["log_prob"] for row in answer["rows"]] == expected
    assert (answer["absent"], answer["ignored"]) == (["job", "wage"], ["jobb"])
    for what, options in (("impute", {}), ("predict", {"target": "job"}), ("explain", {}), ("denoise", {})):
        assert len(rows_of(server.post(what, params={"absent": "missing"} | options, **body(rows, kind)))) == len(rows)


def test_a_file_of_another_table(server) -> None:
    answer = server.post("score", params={"absent": "missing"}, **body(pa.table({"a": [1]}), CSV))
    assert answer.status_code == 422
    assert "none of the model's columns" in answer.json()["detail"]


def test_explain(server) -> None:
    answer = server.post("explain", **body(ROWS))
    expected = np.asarray(MODEL.surprise(ROWS), dtype=np.float64)
    found = [[math.nan if value is None else value for value in row.values()] for row in rows_of(answer)]
    assert np.array_equal(found, expected, equal_nan=True)
    assert answer.json()["log_prob"] == MODEL.score_samples(ROWS).tolist()
    drawn = np.asarray(MODEL.surprise(MODEL.sample(500, random_state=0)), dtype=np.float64)
    assert list(answer.json()["usual"].values()) == np.nanmedian(drawn, axis=0).tolist()


def test_denoise(server) -> None:
    answer = server.post("denoise", params={"error": 0.2, "random_state": 1}, **body(ROWS.slice(0, 5)))
    expected, how = MODEL.denoise(ROWS.slice(0, 5), 0.2, random_state=1, return_uncertainty=True)
    assert rows_of(answer) == objects(expected)
    assert len(answer.json()["changed"]) == how.changed.sum()


def test_probability(server) -> None:
    question = "wage > 15 and job = 'cook' | age < 50"
    answer = server.post("probability", json={"question": question, "random_state": 5, "samples": 256}).json()
    expected = MODEL.probability(question, samples=256, random_state=5)
    assert (answer["probability"], answer["standard_error"]) == (expected.probability, expected.standard_error)
    assert answer["interval"] == list(expected.interval)
    assert answer["text"] == str(expected)


@pytest.mark.parametrize("given", [{}, {"job": "cook", "since": "2024-03-01"}, {"job": None, "age": 30}])
def test_conditionals(server, given) -> None:
    answer = server.post("conditionals", json={"given": given, "quantiles": [0.25, 0.75]}).json()
    expected = MODEL.conditionals(given, quantiles=[0.25, 0.75])
    assert answer["log_prob"] == expected.log_prob
    assert [column["name"] for column in answer["columns"]] == list(expected.columns)
    for column in answer["columns"]:
        about = expected.columns[column["name"]]
        assert column["probabilities"] == about.probabilities.tolist()
        assert column["edges"] == about.edges.tolist()
        assert column["values"] == list(about.values)
        if not about.values:
            assert column["quantiles"] == about.quantiles.tolist()
            assert (column["mean"], column["missing"]) == (about.mean, about.missing)


@pytest.mark.parametrize("kind", [CSV, ARROW])
def test_rows_are_answered_in_the_format_asked_for(server, kind) -> None:
    answer = server.post("score", json={"rows": objects(ROWS)}, headers={"accept": kind})
    assert answer.headers["content-type"].startswith(kind)
    read = pa.csv.read_csv if kind == CSV else lambda handle: pa.ipc.open_stream(handle).read_all()
    found = read(io.BytesIO(answer.content))["log_prob"].to_numpy()
    assert found.tolist() == MODEL.score_samples(ROWS).tolist()  # as doubles, as in JSON


def test_long_answers_are_streamed(server) -> None:
    path = "/api/models/people/sample"
    with server.client.stream("POST", path, json={"count": 5000}, headers={"accept": CSV}) as answer:
        assert answer.headers["transfer-encoding"] == "chunked"
        assert sum(chunk.count(b"\n") for chunk in answer.iter_bytes()) == 5001


def test_info_and_columns(server) -> None:
    about = server.client.get("/api/models/people/info").json()
    assert (about["name"], about["columns"], about["any_order"]) == ("people", 7, True)
    assert len(about["history"]) == about["epochs"] == 2
    assert about["card"].startswith("#")
    columns = {each["name"]: each for each in server.client.get("/api/models/people/columns").json()}
    assert list(columns) == list(MODEL.schema.names)
    assert columns["job"]["values"] == ["baker", "cook", "none", None]
    assert (columns["since"]["dtype"], columns["since"]["step"]) == ("date", 86400)


def test_values_that_training_never_saw_are_counted(server) -> None:
    answer = server.post("score", json={"rows": [{"job": "pilot"}, {"job": "cook"}]})
    assert answer.json()["unseen"] == {"job": 1}


@pytest.mark.parametrize("what", ["score", "explain", "impute?uncertainty=true", "predict?target=age", "denoise"])
def test_a_value_is_counted_once(server, what) -> None:
    answer = server.post(what, json={"rows": [{"job": "pilot", "wage": 19.04}]}).json()
    assert (answer["unseen"], answer["rounded"]) == ({"job": 1}, {"wage": 1})


def test_a_number_between_two_steps_is_taken_for_the_nearest(server) -> None:
    """Which is not to be confused with one that is very unlikely."""
    answer = server.post("conditionals", json={"given": {"wage": 19.04}}).json()
    assert (answer["rounded"], answer.get("unseen")) == ({"wage": 1}, None)
    assert answer["log_prob"] == server.post("conditionals", json={"given": {"wage": 19.0}}).json()["log_prob"]


@pytest.mark.parametrize(
    ("what", "asked", "status", "kind"),
    [
        ("score", {"json": {"rows": [{"age": 30}, {"age": "old"}]}}, 422, "data"),
        ("score", {"json": {"rows": [{"agee": 30}]}}, 422, "data"),
        ("score", {"json": {"rows": [{"age": 1}, {"age": True}]}}, 422, "data"),
        ("score", {"json": {"rows": []}}, 422, "data"),
        ("score", {"json": {"rows": [{"age": [1]}]}}, 422, "request"),
        ("score", {"json": {"rows": [{"age": 10**30}]}}, 422, "data"),
        ("score", {"json": {"rows": [{}], "more": 1}}, 422, "request"),
        ("score", {"content": b'{"rows": [', "headers": {"content-type": JSON}}, 422, "request"),
        ("score", {"content": b"[" * 100_000, "headers": {"content-type": JSON}}, 422, "request"),
        ("score", {"content": b"age,job\n1\n", "headers": {"content-type": CSV}}, 422, "data"),
        ("score", {"content": b"nonsense", "headers": {"content-type": PARQUET}}, 422, "data"),
        ("score", {"content": b"nonsense", "headers": {"content-type": ARROW}}, 422, "data"),
        ("score", {"content": b"1", "headers": {"content-type": "text/plain"}}, 415, "media-type"),
        ("score", {"json": {"rows": [{}]}, "params": {"given": "nobody"}}, 422, "question"),
        ("conditionals", {"json": {"given": {"nobody": 1}}}, 422, "question"),
        ("conditionals", {"json": {"quantiles": [2]}}, 422, "request"),
        ("probability", {"json": {"question": "age >"}}, 422, "question"),
        ("impute", {"json": {"rows": [{}]}, "params": {"strategy": "magic"}}, 422, "request"),
        ("predict", {"json": {"rows": [{}]}}, 422, "question"),
        ("sample", {"json": {"temperature": 0}}, 422, "request"),
        ("sample", {"json": {"temperature": 0.0009}}, 422, "request"),
        ("score", {"json": {"rows": [{}]}, "params": {"givn": "age"}}, 422, "request"),
        ("sample", {"json": {}, "params": {"count": 3}}, 422, "request"),
        ("score", {"content": b"{}", "headers": {"content-type": JSON, "content-encoding": "gzip"}}, 415, "media-type"),
        ("nothing", {"json": {}}, 404, "not-found"),
    ],
)
def test_what_cannot_be_answered_is_a_problem_document(server, what, asked, status, kind) -> None:
    answer = server.post(what, **asked)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["type"], problem["status"]) == (f"urn:made:{kind}", status)
    assert problem["title"]
    assert problem["detail"]
    assert problem["remedy"]


def test_a_problem_names_the_row_and_the_column(server) -> None:
    problem = server.post("score", json={"rows": [{"wage": 1.5}, {"wage": 2.25}, {"age": 3, "wage": "x"}]}).json()
    assert (problem["row"], problem["column"]) == (2, "wage")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"age\nold\n", "Correct the value"),
        (b"age\n", "Send rows with the columns of the model"),
        (b"age\n1\n", "ask with absent=missing"),
    ],
)
def test_the_remedy_is_one_for_what_is_wrong(server, content, said) -> None:
    query = "?absent=missing" if b"old" in content else ""
    assert said in server.post(f"score{query}", content=content, headers={"content-type": CSV}).json()["remedy"]


def test_infinity_is_named_by_row_and_column(server) -> None:
    body = b'{"rows": [{"wage": 1.5}, {"wage": Infinity}]}'
    problem = server.post("score", content=body, headers={"content-type": JSON}).json()
    assert (problem["row"], problem["column"]) == (1, "wage")


@pytest.mark.parametrize("content", [b'{"given": {"wage": Infinity}}', b'{"given": {"wage": "much"}}'])
def test_what_is_given_is_named_by_its_column(server, content) -> None:
    problem = server.post("conditionals", content=content, headers={"content-type": JSON}).json()
    assert (problem["column"], problem.get("row")) == ("wage", None)
    assert "column 0" not in problem["detail"]


@pytest.mark.parametrize(
    ("what", "asked", "where"),
    [
        ("score", {"rows": [{"age": 1}, {"age": [1]}]}, {"row": 1, "column": "age"}),
        ("conditionals", {"given": {"age": {"a": 1}}}, {"column": "age"}),
    ],
)
def test_a_value_that_is_no_scalar_is_one_error(server, what, asked, where) -> None:
    problem = server.post(what, json=asked).json()
    assert {key: problem.get(key) for key in where} == where
    assert problem["detail"].endswith("age: Input should be text, a number, true, false or null.")
    assert len(problem["errors"]) == 1


def test_a_parameter_that_is_not_there_is_named(server) -> None:
    detail = server.post("predict", params={"targt": "age"}, json={"rows": [{}]}).json()["detail"]
    assert detail == "there is no parameter 'targt': the parameters are target, quantiles, absent."


def test_a_problem_names_the_place_in_a_question(server) -> None:
    problem = server.post("probability", json={"question": "age > 3 and jib = 1"}).json()
    assert problem["place"] == [12, 15]


def test_a_model_that_is_not_there(server) -> None:
    answer = server.client.get("/api/models/nobody/info")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:made:not-found"


def test_a_model_of_an_array_calls_its_columns_x0_x1() -> None:
    rows = np.random.default_rng(0).integers(2, size=(60, 3)).astype(float)
    model = MADE(hidden_sizes=(8,), max_epochs=1, evaluation_masks=2).fit(rows).model_
    with live(Served("bits", model)) as server:
        server.name = "bits"
        found = rows_of(server.post("score", json={"rows": [{"x0": 1, "x1": 0, "x2": 1}, {"x1": 1}]}))
        expected = model.score_samples([[1, 0, 1], [np.nan, 1, np.nan]]).tolist()
        assert [row["log_prob"] for row in found] == expected
        given = server.post("conditionals", json={"given": {"x1": 1}}).json()
        assert [column["name"] for column in given["columns"]] == ["x0", "x2"]
        assert len(rows_of(server.post("sample", json={"count": 4, "given": {"x2": 0}}))) == 4


def test_a_model_of_fixed_orderings_says_what_it_cannot_answer() -> None:
    model = MADE(masks=1, hidden_sizes=(8,), max_epochs=1).fit(np.eye(3).repeat(9, axis=0)).model_
    with live(Served("fixed", model)) as server:
        server.name = "fixed"
        assert len(rows_of(server.post("score", json={"rows": [{"x0": 1, "x1": 0, "x2": 0}]}))) == 1
        answer = server.post("conditionals", json={})
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:made:question")
        assert "unlimited masks" in answer.json()["detail"]


def test_head_is_the_head_of_get(server) -> None:
    for path, status in (("/", 200), ("/healthz", 200), ("/api/models/people/info", 200), ("/nothing", 404)):
        answer = server.client.head(path)
        assert (answer.status_code, answer.content) == (status, b"")
        assert answer.headers["content-length"] == server.client.get(path).headers["content-length"]
    assert server.client.head("/api/models/people/score").status_code == 405


def test_a_path_with_one_more_slash_is_not_there(server) -> None:
    assert server.client.get("/healthz/").json()["type"] == "urn:made:not-found"
