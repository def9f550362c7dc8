"""Tools of an assistant: the SDK's own client gets the answers of Python, and what is wrong is said with the remedy."""

from __future__ import annotations

import datetime
import importlib
import json
import os
import signal
import subprocess
import sys

import anyio
import numpy as np
import pyarrow as pa
import pytest

from made import MADE, Model

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from made.model.card import card
from made.serve.mcp import create_server

TOOLS = ["info", "ask", "predict", "sample", "impute", "explain", "score"]
ROW = {"contract": "month", "paid": True, "lines": 2, "tenure": 30, "charge": 20.5, "since": "2024-03-01"}


def table(rows: int = 150) -> pa.Table:
    random = np.random.default_rng(0)
    day = datetime.date(2024, 1, 1)
    return pa.table(
        {
            "contract": random.choice(["month", "one year", "two year"], rows).tolist(),
            "paid": (random.random(rows) < 0.6).tolist(),
            "lines": pa.array(random.integers(0, 4, rows)),
            "tenure": pa.array(random.poisson(30, rows)),
            "charge": random.gamma(3, 20, rows),
            "since": [day + datetime.timedelta(days=int(each)) for each in random.integers(0, 400, rows)],
        }
    )


def fitted(rows: pa.Table) -> Model:
    return MADE(hidden_sizes=(8,), max_epochs=1, evaluation_masks=2, random_state=0).fit(rows).model_


@pytest.fixture(scope="module")
def model():
    return fitted(table())


@pytest.fixture(scope="module")
def server(model):
    return create_server(model, "customers")


def ask(server, work):
    """What a function of a client gives."""

    async def run():
        async with Client(server) as client:
            return await work(client)

    return anyio.run(run)


def call(server, tool: str, **arguments):
    """The structured answer of a tool, which its text repeats."""
    result = ask(server, lambda client: client.call_tool(tool, arguments))
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def refused(server, tool: str, **arguments) -> str:
    result = ask(server, lambda client: client.call_tool(tool, arguments))
    assert result.is_error
    return result.content[0].text


def rows_of(*rows: dict) -> pa.Table:
    names = table().column_names
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def test_an_assistant_is_told_what_there_is(server, model) -> None:
    async def look(client):
        return (await client.list_tools()).tools, client.instructions

    tools, instructions = ask(server, look)
    assert [tool.name for tool in tools] == TOOLS
    assert all(tool.annotations.read_only_hint and tool.description and tool.output_schema for tool in tools)
    assert "'customers', with 6 columns (contract, paid, lines, tenure, charge, since)" in instructions
    rows = next(tool for tool in tools if tool.name == "predict").input_schema["properties"]["rows"]
    assert rows["items"]["properties"]["contract"]["enum"] == ["month", "one year", "two year", None]
    assert rows["items"]["properties"]["paid"]["type"] == ["boolean", "null"]
    assert rows["items"]["properties"]["since"]["format"] == "date"


def test_the_questions_of_the_description_can_be_asked(server, model) -> None:
    description = ask(server, lambda client: client.list_tools()).tools[1].description
    examples = description.partition("Examples for this model: ")[2].partition(". An answer")[0].split("; ")
    assert len(examples) == 3
    answers = call(server, "ask", questions=examples)["answers"]
    assert [each["probability"] for each in answers] == [model.probability(each).probability for each in examples]


def test_every_example_of_an_error_works(server) -> None:
    for tool in TOOLS:
        said = refused(server, tool, nonsense=1)
        assert "there is no argument 'nonsense'" in said
        call(server, tool, **json.loads(said.partition("Example of arguments: ")[2]))


def test_info_describes_columns(server, model) -> None:
    answer = call(server, "info")
    assert (answer["training_rows"], answer["number_of_columns"]) == (model.config.data.rows, 6)
    about = {each["name"]: each for each in answer["columns"]}
    marginal = model.conditionals(None, quantiles=(0.05, 0.5, 0.95)).columns
    shares = {each["value"]: each["probability"] for each in about["contract"]["probabilities"]}
    assert shares == dict(zip(marginal["contract"].values, marginal["contract"].probabilities, strict=True))
    assert [about["charge"][key] for key in ("low", "median", "high")] == marginal["charge"].quantiles.tolist()
    assert datetime.date.fromisoformat(about["since"]["median"]).year in (2024, 2025)
    assert [each["name"] for each in call(server, "info", columns=["tenure"])["columns"]] == ["tenure"]


def test_ask_is_that_of_python(server, model) -> None:
    question = "tenure > 12 and charge < 50 | contract = 'two year'"
    expected = model.probability(question, random_state=3)
    answer = call(server, "ask", questions=[question], seed=3)["answers"][0]
    assert (answer["probability"], answer["low"], answer["high"]) == (expected.probability, *expected.interval)
    assert answer["exact"] == (expected.kind == "exact")
    assert answer["text"] == str(expected)


def test_predict_is_that_of_python(server, model) -> None:
    rows = [{"tenure": 30}, {}]
    answers = call(server, "predict", rows=rows, target="contract")["predictions"]
    expected = model.predict_proba(rows_of(*rows), "contract").astype(float)
    for answer, shares in zip(answers, expected.tolist(), strict=True):
        found = {each["value"]: each["probability"] for each in answer["probabilities"]}
        assert [found[value] for value in ("month", "one year", "two year")] == shares
        assert answer["most_likely"] == max(found, key=found.__getitem__)
    number = call(server, "predict", rows=rows, target="charge")["predictions"][0]
    forecast = model.forecast(rows_of(*rows), "charge")
    assert number["mean"] == forecast.mean[0]
    assert [number[key] for key in ("low", "median", "high")] == forecast.quantiles[0].tolist()
    date = call(server, "predict", rows=[{}], target="since")["predictions"][0]
    assert date["mean"] == model.predict(rows_of({}), "since")[0]
    assert 10 < date["standard_deviation"] < 400  # days


def test_a_value_of_the_target_is_ignored(server) -> None:
    one, other = ({**ROW, "contract": each} for each in ("month", "two year"))
    answers = call(server, "predict", rows=[one, other], target="contract")["predictions"]
    first, second = ({each["value"]: each["probability"] for each in answer["probabilities"]} for answer in answers)
    assert first == pytest.approx(second, rel=1e-5)


def test_sample_is_that_of_python(server, model) -> None:
    rows = call(server, "sample", count=4, given={"lines": 2, "since": "2024-03-01", "paid": None}, seed=5)["rows"]
    expected = model.sample(4, given={"lines": 2, "since": "2024-03-01"}, random_state=5).to_pylist()
    assert rows == json.loads(json.dumps(expected, default=str))
    assert len(call(server, "sample")["rows"]) == 5


@pytest.mark.parametrize("strategy", ["mode", "mean", "sample"])
def test_impute_is_that_of_python(server, model, strategy) -> None:
    known = {"contract": "month", "tenure": 30}
    answer = call(server, "impute", rows=[known, ROW], strategy=strategy, seed=5)
    expected, sure = model.impute(rows_of(known, ROW), strategy=strategy, return_uncertainty=True, random_state=5)
    assert answer["rows"] == json.loads(json.dumps(expected.to_pylist(), default=str))
    filled = {(each["row"], each["column"]): each for each in answer["filled"]}
    assert set(filled) == {(0, name) for name in ("paid", "lines", "charge", "since")}
    assert filled[0, "paid"]["probability"] == sure.probability[0, 1]
    assert filled[0, "charge"]["low"] == sure.low[0, 4]


def test_score_is_that_of_python(server, model) -> None:
    rows = [ROW, {"tenure": 3}]
    assert call(server, "score", rows=rows)["log_probs"] == model.score_samples(rows_of(*rows)).astype(float).tolist()
    given = model.score_samples(rows_of(ROW), given=["tenure"]).astype(float).tolist()
    assert call(server, "score", rows=[ROW], given=["tenure"])["log_probs"] == given


def test_explain_sorts_entries_and_compares_with_draws(server, model) -> None:
    odd = ROW | {"charge": 5000}
    found, partial = call(server, "explain", rows=[odd, {"tenure": 3}])["rows"]
    assert found["log_prob"] == float(model.score_samples(rows_of(odd))[0])
    assert found["entries"][0]["column"] == "charge"
    excess = [each["excess"] for each in found["entries"]]
    assert excess == sorted(excess, reverse=True)
    surprise = model.surprise(rows_of(odd)).column("charge")[0].as_py()
    assert found["entries"][0]["surprise"] == pytest.approx(surprise, rel=1e-6)
    assert found["less_likely_than"] > 0.9
    assert partial["less_likely_than"] is None
    assert [each["column"] for each in partial["entries"]] == ["tenure"]


def test_a_value_that_training_never_saw_is_scored_with_a_warning(server) -> None:
    answer = call(server, "score", rows=[{"contract": "never"}])
    assert answer["warnings"] == ["values that training never saw: 1 of 'contract'. They are very unlikely."]
    assert call(server, "explain", rows=[{"contract": "never"}])["warnings"] == answer["warnings"]


def test_a_whole_number_may_be_written_with_a_point(server) -> None:
    assert call(server, "sample", count=2.0, seed=3.0) == call(server, "sample", count=2, seed=3)


def test_only_a_value_may_be_null(server) -> None:
    assert "null" not in refused(server, "info", columns=["tenur"])
    assert "null if it is unknown" in refused(server, "impute", rows=[{"contract": "never"}])


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("info", {"columns": ["tenur"]}, "columns[0]: 'tenur' is not among the values: did you mean 'tenure'?"),
        ("info", {"columns": []}, "columns: [] should be non-empty."),
        ("ask", {}, "the argument 'questions' is missing."),
        ("ask", {"questions": "tenure > 3"}, "not 'tenure > 3': put it in a list, [\"tenure > 3\"]."),
        ("ask", {"questions": ["tenur > 3"]}, "there is no column 'tenur': did you mean tenure?"),
        ("ask", {"questions": ["contract = 'Two year'"]}, "contract has no value 'Two year': did you mean 'two year'?"),
        ("ask", {"questions": ["tenure >"]}, "tenure >"),
        ("ask", {"questions": ["P(tenure > 3)", "tenure >"]}, "Error: questions[1]: "),
        ("ask", {"questions": ["x" * 3000]}, "questions[0]: there should be at most 2000 characters, not 3000."),
        ("ask", {"questions": ["tenure > 3"] * 21}, "questions: there should be at most 20, not 21."),
        ("ask", {"questions": ["tenure > 3"], "seed": -1}, "seed: -1 is less than the minimum of 0."),
        ("predict", {"rows": [{}]}, "the argument 'target' is missing."),
        (
            "predict",
            {"rows": [{}], "target": "Tenure"},
            "target: 'Tenure' is not among the values: did you mean 'tenure'?",
        ),
        (
            "predict",
            {"rows": [{"contrct": "month"}], "target": "tenure"},
            "rows[0]: there is no column 'contrct': did you",
        ),
        (
            "predict",
            {"rows": [{"contract": "Month"}], "target": "tenure"},
            "'Month' is not among the values: did you mean",
        ),
        (
            "predict",
            {"rows": [{"tenure": "30"}], "target": "paid"},
            "rows[0].tenure: this should be of type number or null, not '30': write it without quotes.",
        ),
        ("predict", {"rows": '[{"tenure": 30}]', "target": "paid"}, "]': write it without quotes."),
        ("predict", {"rows": [{"contract": 5}], "target": "paid"}, "5 is not among the values. They are"),
        ("score", {"rows": [{"contract": 5}]}, "this should be of type string or null, not 5: write it in quotes."),
        ("predict", {"rows": [{"contract": True}], "target": "paid"}, "rows[0].contract: true is not among the values"),
        ("predict", {"rows": {"tenure": 30}, "target": "paid"}, 'put it in a list, [{"tenure": 30}].'),
        ("predict", {"rows": [{}] * 101, "target": "paid"}, "rows: there should be at most 100, not 101."),
        ("predict", {"rows": [{"tenure": 10**400}], "target": "paid"}, "column 'tenure': a value cannot be stored"),
        ("predict", {"rows": [{"contract": "\ud800"}], "target": "tenure"}, "is not among the values"),
        ("sample", {"count": 101}, "count: 101 is greater than the maximum of 100."),
        ("sample", {"count": 0}, "count: 0 is less than the minimum of 1."),
        ("sample", {"count": 1.5}, "count: this should be of type integer, not 1.5."),
        (
            "sample",
            {"given": {"contract": "weekly"}},
            "given.contract: 'weekly' is not among the values. They are: 'month',",
        ),
        (
            "sample",
            {"given": {"since": "yesterday"}},
            "'yesterday' is text, where the model has dates, such as 2024-03-01",
        ),
        ("impute", {"rows": [{}], "strategy": "median"}, "strategy: 'median' is not among the values"),
        (
            "impute",
            {"rows": [{"since": 3}]},
            "rows[0].since: this should be of type string or null, not 3: write a text such as '2024-03-01'.",
        ),
        ("explain", {"rows": []}, "rows: [] should be non-empty."),
        ("explain", {"rows": [{"lines": True}]}, "rows[0].lines: this should be of type number or null, not true."),
        ("score", {"rows": [{"tenure": 3}], "given": ["charge"]}, "charge"),
        ("score", {"rows": [{"contract": "x" * 2000}]}, "there should be at most 1000 characters, not 2000."),
        ("forecast", {}, "there is no tool 'forecast': the tools are info, ask, predict"),
    ],
)
def test_what_is_wrong_is_said_with_the_remedy(server, tool, arguments, said) -> None:
    text = refused(server, tool, **arguments)
    assert said in text
    assert len(text) < 2500


def test_the_card_is_a_resource(server, model) -> None:
    async def read(client):
        uri = (await client.list_resources()).resources[0].uri
        with pytest.raises(MCPError, match="the only one is made://card"):
            await client.read_resource("made://nothing")
        return (await client.read_resource(uri)).contents[0]

    content = ask(server, read)
    assert content.text == card(model.config.to_json(), model.schema, model.history)
    assert content.mime_type == "text/markdown"


def test_a_wide_table_has_small_schemas_and_fewer_rows() -> None:
    wide = pa.table({f"c{d}": np.random.default_rng(d).integers(0, 2, 60) for d in range(250)})
    server = create_server(fitted(wide))
    tools = ask(server, lambda client: client.list_tools()).tools
    assert len(json.dumps([tool.model_dump(mode="json") for tool in tools])) < 30_000
    assert len(call(server, "info")["columns"]) == 100
    assert "greater than the maximum of 80" in refused(server, "sample", count=81)
    assert "there is no column 'C7': did you mean 'c7'?" in refused(server, "score", rows=[{"C7": 1}])
    assert "there is no column 'C7': did you mean 'c7'?" in refused(server, "sample", given={"C7": 1})
    assert "there is no column 'C7'" in refused(server, "predict", rows=[{}], target="C7")
    assert "c3" in refused(server, "score", rows=[{"c3": "one"}])
    assert "Error: " in refused(server, "score", rows=[{"c3": "one"}, {"c3": 1}])


def test_a_model_of_one_ordering_answers_what_it_can() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (80, 4))
    fixed = MADE(hidden_sizes=(4,), masks=1, max_epochs=1, random_state=0).fit(rows).model_
    server = create_server(fixed)
    assert [each["name"] for each in call(server, "info")["columns"]] == ["x0", "x1", "x2", "x3"]
    assert call(server, "score", rows=[{"x0": 0, "x1": 1, "x2": 0, "x3": 1}])["log_probs"][0] < 0


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "customers"
    model.save(folder)
    return folder


def test_a_process_serves_on_standard_input_and_output(folder, model) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "made", "mcp", str(folder)], env=dict(os.environ)
    )

    async def talk(client):
        assert "'customers'" in client.instructions
        found = await client.call_tool("score", {"rows": [ROW]})
        wrong = await client.call_tool("score", {"rows": [{"tenur": 3}]})
        return found.structured_content["log_probs"], wrong

    scores, wrong = ask(stdio_client(parameters), talk)
    assert scores == model.score_samples(rows_of(ROW)).astype(float).tolist()
    assert wrong.is_error
    assert "did you mean 'tenure'?" in wrong.content[0].text


def test_a_signal_ends_a_server_that_waits_and_only_messages_are_printed(folder) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    words = [sys.executable, "-m", "made", "mcp", str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **pipes) as process:
        print(json.dumps(message), file=process.stdin, flush=True)
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143  # its input is still open
        assert process.stdout.read() == ""
        assert process.stderr.read() == "terminated.\n"


def test_without_the_package_the_remedy_is_said(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "made.serve.mcp")
    with pytest.raises(ImportError, match=r"pip install 'made\[mcp\]'"):
        importlib.import_module("made.serve.mcp")
