"""Views: a model of some columns, given values of others."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from command import run
from made import MADE, MADEClassifier, Model, log_conditionals
from made.errors import DataError, ModelError, QuestionError
from made.model.folder import replace_folder

NAN = np.nan
TINY = {"hidden_sizes": (16,), "max_epochs": 20, "evaluation_masks": 4, "random_state": 0, "dtype": "float64"}
GENERATOR = np.random.default_rng(0)
HEIGHT = GENERATOR.normal(170, 8, 200)
FRAME = pd.DataFrame(
    {
        "colour": np.where(HEIGHT > 172, "red", GENERATOR.choice(["blue", "green"], 200)),
        "rooms": GENERATOR.integers(1, 5, 200),
        "height": HEIGHT,
        "weight": HEIGHT - 100 + GENERATOR.normal(0, 3, 200),
    }
)


def worlds(columns: int) -> np.ndarray:
    return np.array(list(itertools.product([0.0, 1.0], repeat=columns)))


def binary_model(**parameters) -> Model:
    rows = np.random.default_rng(1).integers(2, size=(100, 1)) ^ (np.random.default_rng(2).random((100, 4)) < 0.2)
    return MADE(**TINY, **parameters).fit(rows.astype(float)).model_


@pytest.fixture(scope="module")
def binary() -> Model:
    return binary_model()


@pytest.fixture(scope="module")
def framed():
    return MADE(**TINY).fit(FRAME)


def test_a_model_shows_its_columns_and_what_is_given(framed) -> None:
    assert repr(framed.model_) == "Model(colour, rooms, height, weight)"
    assert repr(framed.condition({"rooms": 2}).marginal(["height"])) == "Model(height | rooms=2)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("colour = red", r"'given' should be values by column, such as \{'colour': value\}, not 'colour = red'"),
        ([("rooms", 2)], "'given' should be values by column"),
        ({"colour": ["red", "blue"]}, r"column 0 \('colour'\) should be one value, not \['red', 'blue'\]: ask 'prob"),
        ({"rooms": {1, 2}}, "should be one value"),
        ({"height": np.array([170.0, 180.0])}, "should be one value"),
    ],
)
@pytest.mark.parametrize("ask", ["condition", "conditionals", "distribution"])
def test_what_is_given_is_one_value_for_each_column(framed, ask, given, message) -> None:
    with pytest.raises(QuestionError, match=message):
        getattr(framed, ask)(given)


def test_a_condition_is_what_is_given(binary) -> None:
    view = binary.condition({"x1": 1})
    assert view.schema.names == ("x0", "x2", "x3")
    log_p = view.score_samples(worlds(3))
    assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-8)
    full = np.insert(worlds(3), 1, 1, axis=1)
    assert np.array_equal(log_p, binary.score_samples(full, given=[1]))
    assert view.score(worlds(3)) == pytest.approx(log_p.mean())


def test_a_view_is_conditioned_again(binary) -> None:
    twice, once = binary.condition({1: 1}).condition({"x3": 0}), binary.condition({"x3": 0, "x1": 1})
    assert np.array_equal(twice.score_samples(worlds(2)), once.score_samples(worlds(2)))
    given = binary.condition({1: 1}).score_samples(worlds(3), given=["x3"])
    assert np.array_equal(given[::2], once.score_samples(worlds(2)))


def test_a_marginal_leaves_the_others_out(binary) -> None:
    view = binary.marginal(["x3", "x0"])
    assert view.schema.names == ("x3", "x0")
    rows = np.array([[b, NAN, NAN, a] for a, b in worlds(2)])
    assert np.array_equal(view.score_samples(worlds(2)), binary.score_samples(rows))
    assert np.exp(view.score_samples(worlds(2))).sum() == pytest.approx(1, abs=1e-8)


def test_a_marginal_of_a_condition_and_the_converse_are_the_same(binary) -> None:
    one = binary.condition({"x1": 1}).marginal(["x0", "x2"])
    other = binary.marginal(["x0", "x1", "x2"]).condition({"x1": 1})
    assert np.array_equal(one.score_samples(worlds(2)), other.score_samples(worlds(2)))
    assert np.exp(one.score_samples(worlds(2))).sum() == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"segments": 1}, {"segments": 2}, {"conditioning": True}, {"conditioning": True, "segments": 1}],
    ids=str,
)
def test_samples_of_a_view_follow_its_probabilities(parameters) -> None:
    model = binary_model(**parameters)
    for view in (
        model.condition({"x1": 1}).marginal(["x0", "x3"]),
        model.marginal(["x3", "x1"]),
        model.condition({"x1": 0, "x2": 1}),
    ):
        drawn = view.sample(20_000, random_state=1)
        counts = np.bincount(drawn.astype(int) @ [2, 1], minlength=4) / 20_000
        assert counts == pytest.approx(np.exp(view.score_samples(worlds(2))), abs=0.015)


def test_samples_of_a_view_given_more(binary) -> None:
    view = binary.condition({"x1": 1}).marginal(["x0", "x2", "x3"])
    drawn = view.sample(20_000, given={"x2": 0}, random_state=1)
    assert (drawn[:, 1] == 0).all()
    rows = np.array([[a, 0, b] for a, b in worlds(2)])
    expected = np.exp(view.score_samples(rows, given=["x2"]))
    assert np.bincount(drawn[:, [0, 2]].astype(int) @ [2, 1], minlength=4) / 20_000 == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("strategy", ["mode", "mean", "sample"])
def test_a_view_imputes_what_the_model_does_given_the_same(binary, strategy) -> None:
    rows = np.array([[1, NAN, 1], [NAN, NAN, 0], [0, 1, 1]])
    filled, how = binary.condition({"x1": 1}).impute(rows, strategy=strategy, return_uncertainty=True)
    full, same = binary.impute(np.insert(rows, 1, 1, axis=1), strategy=strategy, return_uncertainty=True)
    assert np.array_equal(filled, np.delete(full, 1, axis=1))
    assert np.array_equal(how.entropy, np.delete(same.entropy, 1, axis=1), equal_nan=True)


def test_a_marginal_fills_its_own_columns_only(binary) -> None:
    view = binary.marginal(["x0", "x2"])
    many = view.impute(np.tile([[1, NAN]], (20_000, 1)), random_state=0)
    assert many[:, 1].mean() == pytest.approx(view.predict_proba([[1, NAN]], target="x2")[0, 1], abs=0.015)


def test_predictions_of_a_view(framed) -> None:
    view = framed.condition({"colour": "red"})
    rows, red = FRAME.drop(columns="colour"), FRAME.assign(colour="red")
    assert np.array_equal(view.predict_proba(rows, target="rooms"), framed.predict_proba(red, target="rooms"))
    assert np.array_equal(view.predict(rows, target="weight"), framed.predict(red, target="weight"))
    for target in ("weight", "rooms"):
        expected = framed.predict_quantiles(red, target=target)
        assert np.array_equal(view.predict_quantiles(rows, target=target), expected)
    assert view.classes("rooms").tolist() == [1, 2, 3, 4]


def test_questions_to_a_view(framed) -> None:
    view = framed.condition({"colour": "red", "height": 175.0})
    asked = "rooms > 2 and weight < 76"
    expected = framed.probability(f"{asked} | colour = 'red' and height = 175")
    assert view.probability(asked).probability == pytest.approx(expected.probability, rel=1e-9)
    more = framed.probability("weight < 76 | rooms = 2 and colour = 'red' and height = 175")
    assert view.probability("weight < 76 | rooms = 2").probability == pytest.approx(more.probability, rel=1e-9)
    with pytest.raises(QuestionError, match="there is no column 'colour'"):
        view.probability("colour = 'red'")


def test_the_surprise_of_a_view_is_the_mean_over_masks_of_each_factor(binary) -> None:
    rows = np.array([[1, 0, 1], [0, NAN, 1]])
    view = binary.condition({"x1": 1}).with_ensemble(4, 1)
    surprise = view.surprise(rows)
    assert np.isnan(surprise[1, 1])
    full = np.insert(rows, 1, 1, axis=1)
    connectivities = [binary.network.connectivities.draw(number, lowest=0) for number in range(4)]
    each = [
        log_conditionals(binary.network, full[:1], one.with_last(np.array([True, False, True, True])), given=[1])
        for one in connectivities
    ]
    expected = -np.mean([one.detach().numpy()[0, [0, 2, 3]] for one in each], axis=0)
    assert surprise[0] == pytest.approx(expected)
    assert (np.nansum(surprise, axis=1) >= -view.score_samples(rows) - 1e-12).all()


def test_the_distributions_of_a_view(framed) -> None:
    view = framed.condition({"colour": "red"}).marginal(["rooms", "weight"])
    expected = framed.conditionals({"colour": "red"}).columns
    assert list(view.conditionals().columns) == ["rooms", "weight"]
    for name in ("rooms", "weight"):
        assert view.conditionals().columns[name].mean == pytest.approx(expected[name].mean, nan_ok=True)
    assert view.conditionals().columns["rooms"].probabilities == pytest.approx(expected["rooms"].probabilities)


def test_denoising_takes_what_is_given_as_right(binary) -> None:
    noisy = worlds(3)
    view = binary.condition({"x1": 1})
    clean, how = view.denoise(noisy, 0.2, return_uncertainty=True)
    full = np.insert(noisy, 1, 1, axis=1)
    expected, same = binary.denoise(full, 0.2, column_error={1: 0}, return_uncertainty=True)
    assert np.array_equal(clean, np.delete(expected, 1, axis=1))
    assert np.array_equal(how.wrong, np.delete(same.wrong, 1, axis=1))


def test_rows_of_a_view_are_frames_of_its_columns(framed) -> None:
    view = framed.condition({"colour": "red"})
    drawn = view.sample(5)
    assert isinstance(drawn, pd.DataFrame)
    assert list(drawn.columns) == ["rooms", "height", "weight"]
    assert list(view.surprise(drawn).columns) == ["rooms", "height", "weight"]
    with pytest.raises(DataError, match="has 'colour', which the view is given: leave it out"):
        view.score_samples(FRAME)
    marginal = framed.marginal(["height", "colour"])
    assert np.array_equal(marginal.score_samples(FRAME), marginal.score_samples(FRAME[["height", "colour"]]))


@pytest.mark.parametrize("how", ["folder", "pickle", "MADE"])
def test_a_view_is_saved(framed, how, tmp_path) -> None:
    view = framed.condition({"colour": "red"}).marginal(["weight", "rooms"])
    view.save(tmp_path / "view")
    again = {
        "folder": lambda: Model.load(tmp_path / "view"),
        "pickle": lambda: pickle.loads(pickle.dumps(view)),
        "MADE": lambda: MADE.load(tmp_path / "view"),
    }[how]()
    rows = FRAME[["weight", "rooms"]]
    assert np.array_equal(again.score_samples(rows), view.score_samples(rows))
    assert again.sample(5, random_state=0).equals(view.sample(5, random_state=0))
    assert again.condition({"rooms": 2}).schema.names == ("weight",)


def test_a_folder_says_what_is_given(framed, tmp_path) -> None:
    framed.save(tmp_path / "model")
    assert "view" not in json.loads((tmp_path / "model" / "config.json").read_text())
    framed.condition({"colour": "red"}).save(tmp_path / "view")
    found = json.loads((tmp_path / "view" / "config.json").read_text())["view"]
    assert found == {"given": {"colour": 2.0}, "columns": ["rooms", "height", "weight"]}


@pytest.mark.parametrize(
    "forged",
    [
        {"given": {"colour": 2.0}},
        {"given": {"colour": 2.0}, "columns": []},
        {"given": {"colour": 2.0}, "columns": ["colour"]},
        {"given": {"colour": 2.5}, "columns": ["rooms"]},
        {"given": {"colour": "red"}, "columns": ["rooms"]},
        {"given": {"shape": 1}, "columns": ["rooms"]},
        {"given": {}, "columns": ["rooms", "rooms"]},
        {"given": {}, "columns": [3]},
    ],
    ids=str,
)
def test_a_forged_view_is_refused(framed, forged, tmp_path) -> None:
    model = framed.model_
    config = json.dumps(model.config.to_json() | {"view": forged}).encode()
    replace_folder(tmp_path / "model", model.files() | {"config.json": config})
    with pytest.raises(ModelError, match="is not a valid model"):
        Model.load(tmp_path / "model")


def test_a_view_needs_columns(binary) -> None:
    with pytest.raises(QuestionError, match="no column is left"):
        binary.condition(dict.fromkeys(["x0", "x1", "x2", "x3"], 1))
    with pytest.raises(QuestionError, match="no column is left"):
        binary.marginal([])
    with pytest.raises(QuestionError, match="named twice"):
        binary.marginal(["x1", 1])
    with pytest.raises(QuestionError, match="there is no column 'x1'"):
        binary.condition({"x1": 1}).condition({"x1": 0})


def test_a_view_is_not_trained(framed, tmp_path) -> None:
    framed.condition({"colour": "red"}).save(tmp_path / "view")
    with pytest.raises(QuestionError, match="holds a view of a model, which cannot be trained"):
        MADE(**TINY).fit(FRAME, resume_from=tmp_path / "view")


def test_values_that_are_given_are_shown(framed, tmp_path) -> None:
    view = framed.condition({"colour": "red", "rooms": 2, "height": 170.5})
    assert view.view.evidence == {"colour": "red", "rooms": 2, "height": 170.5}
    view.save(tmp_path / "view")
    assert "of weight, given colour = red, rooms = 2, height = 170.5." in (tmp_path / "view" / "README.md").read_text()
    facts = json.loads(run("info", tmp_path / "view", "--json").stdout)
    assert facts["given"] == view.view.evidence
    assert [column["name"] for column in facts["columns"]] == ["weight"]


def test_commands_ask_a_view(framed, tmp_path) -> None:
    view = framed.condition({"colour": "red"})
    view.save(tmp_path / "view")
    FRAME[["rooms", "height", "weight"]].head(5).to_csv(tmp_path / "rows.csv", index=False)
    run("predict", tmp_path / "view", tmp_path / "rows.csv", "--target", "weight", "--out", tmp_path / "found.csv")
    means = pd.read_csv(tmp_path / "found.csv")["mean"].to_numpy()
    assert means == pytest.approx(view.predict(FRAME[["rooms", "height"]].head(5), target="weight"), rel=1e-6)
    (asked,) = json.loads(run("ask", tmp_path / "view", "rooms = 2", "--json").stdout)["answers"]
    assert asked["probability"] == pytest.approx(view.probability("rooms = 2").probability)


def test_the_target_of_a_view() -> None:
    made = MADE(**TINY).fit(FRAME.drop(columns="colour"), FRAME["colour"])
    view = made.condition({"rooms": 2})
    rows = FRAME[["height", "weight"]]
    expected = made.predict(FRAME.drop(columns="colour").assign(rooms=2))
    assert np.array_equal(view.predict(rows), expected)
    assert np.array_equal(MADEClassifier(view).predict(rows), expected)
    with pytest.raises(QuestionError, match="there is no target"):
        made.condition({"colour": "red"}).predict(rows)
    assert np.isfinite(made.marginal(["colour", "height"]).score_samples(FRAME)).all()


def test_a_model_of_fixed_orderings_says_what_it_cannot_answer() -> None:
    rows = np.random.default_rng(0).integers(2, size=(60, 3)).astype(float)
    model = MADE(**TINY, masks=1, ordering="natural").fit(rows)
    view = model.condition({"x0": 1})
    assert np.exp(view.score_samples(worlds(2))).sum() == pytest.approx(1)
    assert model.marginal(["x2"]).sample(5).shape == (5, 1)
    with pytest.raises(QuestionError, match="unlimited masks"):
        model.condition({"x2": 1}).score_samples(worlds(2))
