"""ONNX graphs answer what the model answers, for every kind of column."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from made import MADE, QuestionError
from made.columns.registry import kind_names
from made.network.masked import ACTIVATIONS
from poisson import poisson
from portable import evaluate, every_kind, feed, holes

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from made.export import answers, to_onnx

MISSING = {"category or nothing": "category", "number or nothing": "category"}
SMALL = {"hidden_sizes": (12,), "max_epochs": 2, "evaluation_masks": 3, "random_state": 0, "missing": MISSING}
FAST = SMALL | {"max_epochs": 1, "missing": "unobserved", "calibrate": False}

# Values that training has not seen, off the grid, below the least one, and far away.
ODD = {
    "text": ["new", "c", "c", "c"],
    "two numbers": [15.0, -3.0, 1e300, 12.5],
    "grade": [7, 0, -500, 3],
    "halves": [0.25, -1.0, 1e6, 0.5],
    "real": [1e9, -50.0, 1e-300, 5000.0],
    "integer": [10**6, -(10**9), 3, 4],
    "decimal": [0.05, 1e9, 3.14159, 1e-9],
    "amount": [-1.0, 0.0, 1e9, 1e18],
    "whole amount": [-1.0, 0.5, 1e6 + 1, 1e15],
    "points": [-1.0, 0.0, 1e-9, 1e18],
    "whole points": [-1.0, 0.5, 1e9, 0.0],
}


@cache
def model():
    return MADE(**SMALL, unseen="other").fit(every_kind())


def odd() -> pa.Table:
    table = every_kind().slice(0, 4)
    return pa.table({name: ODD.get(name, table[name]) for name in table.column_names})


def close(found, wanted, tolerance: float = 1e-5) -> None:
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_less(np.nan_to_num(np.abs(found - wanted) / np.maximum(1, np.abs(wanted))), tolerance)


def log_prob(estimator, path, table: pa.Table):
    to_onnx(estimator, path)
    return evaluate(path, feed(table))["log_prob"]


def test_the_table_has_every_registered_kind_and_setting() -> None:
    kinds = {field.kind for field in model().model_.schema.fields}
    assert kinds == {name for name in kind_names() if name != "poisson"}
    columns = model().model_.schema.columns
    assert {type(kind).__name__ for kind in columns} == {"Binary", "Categorical", "Ordinal", "Numeric", "PointMasses"}
    rests = [getattr(kind, "rest", kind) for kind in columns if kind.kind == "numeric"]
    found = {(rest.step > 0, rest.curve > 0, np.isfinite(rest.low)) for rest in rests}
    assert {(False, False, False), (True, False, False), (False, True, True), (True, True, True)} <= found


@pytest.mark.parametrize("rows", [every_kind(), holes(every_kind())], ids=["whole", "holes"])
def test_log_p_of_every_kind_of_column(rows, tmp_path) -> None:
    close(log_prob(model(), tmp_path / "m.onnx", rows), model().score_samples(rows))


@pytest.mark.filterwarnings("ignore::made.UnseenWarning")
def test_log_p_of_values_that_training_has_not_seen(tmp_path) -> None:
    close(log_prob(model(), tmp_path / "m.onnx", odd()), model().score_samples(odd()))


def test_log_p_of_numbers_between_knots_and_on_either_side_of_cuts(tmp_path) -> None:
    random = np.random.default_rng(0)
    amount = random.lognormal(4, 1, 1000)
    table = pa.table({"amount": amount, "band": np.array(list("abc"))[np.digitize(amount, [40.0, 90.0])]})
    fitted = MADE(**FAST).fit(table)
    assert len(fitted.model_.schema.columns[0].cuts) == 2
    close(log_prob(fitted, tmp_path / "m.onnx", holes(table)), fitted.score_samples(holes(table)))


def test_log_p_of_numbers_that_miss_the_grid_by_rounding(tmp_path) -> None:
    tenths = np.append(np.random.default_rng(0).integers(0, 90, 400), [16] * 100) / 10
    fitted = MADE(**FAST).fit(pa.table({"tenths": tenths.astype(np.float32), "large": tenths > 4}))
    assert fitted.model_.schema.fields[0].column.atoms == (1.6,)
    rows = pa.table({"tenths": [1.6, float(np.float32(1.6)), 11.6 - 10], "large": [False] * 3})
    found = log_prob(fitted, tmp_path / "m.onnx", rows)
    close(found, fitted.score_samples(rows))
    close(found, np.repeat(found[:1], 3))


@pytest.mark.parametrize(
    "options",
    [
        {"hidden_sizes": (8, 8), "residual": True, "direct": True, "conditioning": True, "segments": 3},
        {"hidden_sizes": (), "dtype": "float64"},
        {"segments": 30, "whole_rows": 0, "activation": "gelu"},
        {"segments": 2, "incomplete_rows": 0.0, "activation": "elu"},
        {"masks": 3, "activation": "silu", "direct": True},
    ],
    ids=["residual", "linear", "one by one", "whole rows apart", "list of masks"],
)
def test_log_p_of_every_kind_of_network(options, tmp_path) -> None:
    table = every_kind(120).select(["text", "grade", "real", "whole points"])
    fitted = MADE(**FAST | options).fit(table)
    close(log_prob(fitted, tmp_path / "m.onnx", table), fitted.score_samples(table))
    if fitted.model_.ensemble.any_order:
        close(evaluate(tmp_path / "m.onnx", feed(holes(table)))["log_prob"], fitted.score_samples(holes(table)))
    if "segments" in options:
        _close_conditionals(fitted.model_, "grade", holes(table), tmp_path / "m.onnx", 1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hidden_sizes": (8, 8), "segments": 2, "calibrate": True, "conditioning": True},
        {"hidden_sizes": (), "segments": 1, "dtype": "float64", "incomplete_rows": 0.0},
        {"segments": 30, "whole_rows": 0, "evaluation_masks": 1},
    ],
    ids=["default", "residual", "linear", "one by one"],
)
def test_groups_of_exclusive_columns(options, tmp_path) -> None:
    random = np.random.default_rng(0)
    codes = np.eye(4)[random.integers(4, size=(120, 2))][:, :, 1:].reshape(120, -1)
    table = pa.table({f"c{d}": each for d, each in enumerate(np.column_stack([codes, random.random(120) < 0.3]).T)})
    fitted = MADE(**FAST | options).fit(table)
    assert fitted.model_.config.exclusive["sizes"] == [3, 3, 1]
    worlds = pa.table({f"c{d}": each for d, each in enumerate(random.integers(2, size=(7, 300)).astype(float))})
    for rows in (worlds, holes(worlds)):
        close(log_prob(fitted, tmp_path / "m.onnx", rows), fitted.score_samples(rows))
    for column in ("c1", "c6"):
        _close_conditionals(fitted.model_, column, holes(worlds), tmp_path / "m.onnx", 1e-5)


@pytest.mark.parametrize("column", ["text", "truth", "two numbers", "halves", "category or nothing"])
def test_the_probabilities_of_a_column_given_the_others(column, tmp_path) -> None:
    _close_conditionals(model().model_, column, holes(every_kind()), tmp_path / "m.onnx", 1e-5)


NUMBERS = [
    "real",
    "integer",
    "decimal",
    "amount",
    "whole amount",
    "points",
    "whole points",
    "number or nothing",
    "time",
]


@pytest.mark.parametrize("column", NUMBERS)
def test_the_distribution_of_a_number_given_the_other_columns(column, tmp_path) -> None:
    """To many digits: in single precision, a quantile of a nearly flat distribution moves by far more than 1e-5."""
    _close_conditionals(model().model_, column, holes(every_kind()), tmp_path / "m.onnx", 1e-7)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_the_distribution_of_a_number_under_every_activation(activation, tmp_path) -> None:
    table = every_kind(120).select(["text", "real", "decimal"])
    fitted = MADE(**FAST, activation=activation).fit(table)
    _close_conditionals(fitted.model_, "decimal", holes(table), tmp_path / "m.onnx", 1e-7)
    close(log_prob(fitted, tmp_path / "m.onnx", table), fitted.score_samples(table))


def test_weights_of_single_precision_are_stored_in_it(tmp_path) -> None:
    table = every_kind(120).select(["text", "real", "grade"])
    fitted = MADE(**FAST | {"hidden_sizes": (500,)}).fit(table)
    for column in ("real", "grade"):
        to_onnx(fitted, tmp_path / f"{column}.onnx", column=column)
    number, grade = ((tmp_path / f"{column}.onnx").stat().st_size for column in ("real", "grade"))
    assert number < 1.5 * grade


def _close_conditionals(asked, column: str, table: pa.Table, path, tolerance: float) -> None:
    to_onnx(asked, path, column=column, quantiles=(0.1, 0.5))
    found = evaluate(path, feed(table))
    wanted = asked.view.forecast(asked.codes(table), asked.position(column), (0.1, 0.5))
    listed = asked.schema.fields[asked.position(column)].listed
    assert list(found) == (
        ["log_prob", "probabilities"] if listed else ["log_prob", "mean", "standard_deviation", "quantiles"]
    )
    for name, values in found.items():
        close(values, getattr(wanted, name), tolerance)


def test_a_value_that_the_model_refuses_has_no_answer(tmp_path) -> None:
    table = every_kind(120).select(["text", "grade", "integer", "amount"])
    fitted = MADE(**FAST, unseen="error").fit(table)
    inputs = {"text": ["new", "c", "c", "c", "c"], "grade": [1, 9, 1, 1, 1], "integer": [1, 1, 0.5, 1, 1]}
    inputs |= {"amount": [1, 1, 1, -1, 1]}
    to_onnx(fitted, tmp_path / "m.onnx")
    arrays = {name: np.array(values, dtype=object if name == "text" else np.float64) for name, values in inputs.items()}
    found = evaluate(tmp_path / "m.onnx", arrays)["log_prob"]
    assert np.isnan(found).tolist() == [True, True, True, True, False]


def test_a_model_of_fixed_orderings_answers_prefixes_alone(tmp_path) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (100, 3)).astype(np.float64)
    fitted = MADE(hidden_sizes=(8,), max_epochs=1, masks=1, ordering="natural").fit(rows)
    to_onnx(fitted, tmp_path / "m.onnx")
    some = np.array([[1, np.nan, np.nan], [np.nan, 1, 1]])
    found = evaluate(tmp_path / "m.onnx", dict(zip(fitted.model_.schema.names, some.T, strict=True)))["log_prob"]
    close(found, [fitted.score_samples(some[:1])[0], np.nan])
    with pytest.raises(QuestionError, match="unlimited masks"):
        to_onnx(fitted, tmp_path / "m.onnx", column=2)


def test_a_view_answers_about_a_column_with_what_is_given(tmp_path) -> None:
    table = holes(every_kind(60))
    view = model().model_.condition({"text": "c", "real": 1.0}).marginal(["grade", "amount", "truth"])
    rows = table.select(["grade", "amount", "truth"])
    to_onnx(view, tmp_path / "m.onnx", column="grade")
    found = evaluate(tmp_path / "m.onnx", feed(rows))["probabilities"]
    close(found, view.predict_proba(rows, "grade"))
    with pytest.raises(QuestionError, match="export the whole model"):
        to_onnx(view, tmp_path / "m.onnx")


def test_columns_that_are_left_out_are_no_inputs(tmp_path) -> None:
    rows = holes(every_kind(60)).select(["grade", "amount"])
    view = model().model_.marginal(["grade", "amount"])
    close(log_prob(view, tmp_path / "m.onnx", rows), view.score_samples(rows))


def test_a_kind_of_ones_own_is_refused(tmp_path) -> None:
    fitted = MADE(hidden_sizes=(4,), max_epochs=1, columns={"n": poisson()(3.0)}).fit(
        pa.table({"n": [1.0, 2, 3, 4] * 10, "a": ["x", "y"] * 20})
    )
    with pytest.raises(QuestionError, match="'n' is of the kind 'poisson', which cannot be exported") as caught:
        to_onnx(fitted, tmp_path / "m.onnx")
    assert caught.value.column == "n"
    assert not (tmp_path / "m.onnx").exists()


def test_too_many_passes_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(answers, "MOST_WEIGHTS", 1000)
    with pytest.raises(QuestionError, match=r"an answer takes 3 passes .* average fewer masks") as caught:
        to_onnx(model(), tmp_path / "m.onnx")
    assert caught.value.argument == "masks"


def test_a_file_describes_its_inputs(tmp_path) -> None:
    import onnx

    about = to_onnx(model(), tmp_path / "m.onnx", column="day", quantiles=(0.25,))
    stored = onnx.load(tmp_path / "m.onnx")
    assert json.loads({each.key: each.value for each in stored.metadata_props}["made"]) == about
    assert (about["answer"], about["column"], about["quantiles"]) == ("conditional", "day", [0.25])
    described = {each["name"]: each for each in about["columns"]}
    assert described["text"] == {
        "name": "text",
        "kind": "categorical",
        "input": "text",
        "values": ["c", "two words", "ä"],
    }
    assert described["category or nothing"]["values"] == ["a", "b", "c", None]
    assert described["day"]["unit"] == "seconds since 1970-01-01"
    assert [each.name for each in stored.graph.input] == list(described)


def test_a_column_may_have_the_name_of_an_output(tmp_path) -> None:
    table = pa.table({"log_prob": ["a", "b"] * 50, "node 0": ["x", "x", "y", "y"] * 25})
    fitted = MADE(hidden_sizes=(4,), max_epochs=1).fit(table)
    to_onnx(fitted, tmp_path / "m.onnx")
    close(evaluate(tmp_path / "m.onnx", feed(table))["log_prob_"], fitted.score_samples(table))


def test_a_graph_needs_neither_torch_nor_made(tmp_path) -> None:
    to_onnx(model(), tmp_path / "m.onnx")
    table = holes(every_kind(5))
    np.savez(
        tmp_path / "rows.npz",
        **{
            name: values.astype(values.dtype if values.dtype != object else "U") for name, values in feed(table).items()
        },
    )
    code = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['made'] = None  # importing either fails\n"
        "import numpy as np, onnxruntime\n"
        "rows = dict(np.load('rows.npz'))\n"
        "print(onnxruntime.InferenceSession('m.onnx').run(['log_prob'], rows)[0].tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    close(np.array(json.loads(done.stdout)), model().score_samples(table))
