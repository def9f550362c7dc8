"""A column kind of the user's own, the Poisson of docs/columns.md, works wherever the built-in kinds do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import made
from made import MADE
from made.ask.exact import probability
from made.cli import app
from made.columns import registry
from made.columns.base import Column
from made.errors import DataError, ModelError, ParameterError, QuestionError
from made.report.measure import measure
from poisson import code, poisson

Poisson = poisson()


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    age = random.integers(18, 60, 300).astype(float)
    visits = random.poisson(np.where(age < 30, 1.0, 5.0))
    age[::17] = np.nan
    return pd.DataFrame({"age": age, "visits": visits, "sex": random.choice(["f", "m"], 300)})


@pytest.fixture(scope="module")
def model(table) -> MADE:
    return MADE(columns={"visits": Poisson()}, hidden_sizes=(16,), max_epochs=3, random_state=0).fit(table)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "model"
    model.save(path)
    return path


def test_the_kind_is_fitted_to_the_training_rows(model, table) -> None:
    (field,) = [field for field in model.model_.schema.fields if field.name == "visits"]
    assert field.kind == "poisson"
    assert field.column == Poisson(scale=table["visits"].mean())


def test_rows_have_a_likelihood_and_samples_are_counts(model, table) -> None:
    assert np.isfinite(model.score_samples(table)).all()
    sampled = model.sample(200, random_state=0)["visits"]
    assert sampled.dtype == table["visits"].dtype
    assert (sampled >= 0).all()
    assert sampled.mean() == pytest.approx(table["visits"].mean(), rel=0.5)


def test_missing_values_are_imputed(model, table) -> None:
    missing = table.assign(visits=table["visits"].astype(float).where(table.index % 5 > 0))
    for strategy in ("mode", "mean", "sample"):
        filled = model.impute(missing, strategy=strategy)["visits"]
        assert (filled >= 0).all()
        assert (filled[table.index % 5 > 0] == table["visits"][table.index % 5 > 0]).all()


def test_counts_are_predicted_with_quantiles(model, table) -> None:
    assert ((model.predict(table, "visits") > 0) & (model.predict(table, "visits") < 20)).all()
    low, middle, high = model.predict_quantiles(table[:20], "visits").T
    assert ((low <= middle) & (middle <= high)).all()
    assert (middle == np.floor(middle)).all()


def test_probabilities_of_counts_add_up(model) -> None:
    more = model.probability("visits >= 3 | age < 30").probability
    less = sum(model.probability(f"visits = {count} | age < 30").probability for count in range(3))
    assert more + less == pytest.approx(1, abs=1e-5)
    assert model.probability("visits < 3 | age < 30").probability == pytest.approx(less, abs=1e-5)
    assert model.probability("visits < 0").probability == 0


def test_an_estimate_agrees_with_the_sum(table) -> None:
    untrained = {"initialization": "glorot", "masks": 1, "max_epochs": 0, "random_state": 0}
    model = MADE(columns={"visits": Poisson()}, hidden_sizes=(16,), **untrained).fit(table.dropna())
    question = "visits between 2 and 5 and sex = f and age between 30 and 50"
    exact = model.probability(question)
    assert exact.kind == "exact"
    estimate = probability(model.model_.ensemble, model.model_.schema.fields, question, most_states=0)
    assert estimate.kind == "estimate"
    assert estimate.probability == pytest.approx(exact.probability, abs=5 * estimate.standard_error)


def test_entries_are_explained_and_denoised(model, table) -> None:
    assert np.isfinite(model.surprise(table[:9])["visits"]).all()
    assert (model.denoise(table[:9])["visits"] >= 0).all()


def test_a_report_draws_it(model, table) -> None:
    found = measure(model.model_, table[:100], samples=100, top=2)
    (visits,) = [each for each in found.columns if each.name == "visits"]
    assert (visits.kind, visits.measure) == ("poisson", "Kolmogorov-Smirnov")
    assert sum(visits.shares.real) == pytest.approx(1)


def test_a_saved_model_answers_the_same(model, table, folder) -> None:
    again = MADE.load(folder)
    assert (again.score_samples(table) == model.score_samples(table)).all()
    assert again.model_.schema == model.model_.schema
    assert again.columns == {"visits": {"kind": "poisson", "scale": 1.0}}
    assert again.set_params(max_epochs=0).fit(table).model_.schema == model.model_.schema


def test_an_unregistered_kind_is_named(folder, monkeypatch) -> None:
    monkeypatch.delitem(registry._KINDS, "poisson")
    with pytest.raises(ModelError, match=r"kind 'poisson' is not registered: import the module .* made\.register"):
        MADE.load(folder)


def test_the_command_line_finds_the_kind_by_an_environment_variable(folder, tmp_path, monkeypatch) -> None:
    (tmp_path / "my_kinds.py").write_text(code())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(registry._KINDS, "poisson")
    command = ["ask", str(folder), "visits >= 3 | age < 30"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert "'poisson' is not registered" in refused.output
    monkeypatch.setenv(registry.PLUGINS, "my_kinds")
    asked = CliRunner().invoke(app, command)
    assert asked.exit_code == 0, asked.output
    assert "P(visits >= 3 | age < 30) = " in asked.output


def test_a_module_of_kinds_that_is_not_found_is_named_with_the_variable(folder, monkeypatch) -> None:
    monkeypatch.delitem(registry._KINDS, "poisson")
    monkeypatch.setenv(registry.PLUGINS, "absent_kinds")
    with pytest.raises(ModelError, match=r"'absent_kinds' in the environment variable MADE_PLUGINS cannot be imported"):
        MADE.load(folder)


def test_the_name_of_a_registered_kind_is_enough(table) -> None:
    fitted = MADE(columns={"visits": "poisson"}, hidden_sizes=(4,), max_epochs=0).fit(table)
    assert fitted.model_.schema.columns[1] == Poisson(scale=table["visits"].mean())


def test_a_misspelt_kind_is_refused_with_the_registered_ones(table) -> None:
    with pytest.raises(ParameterError, match=r"'poison' is unknown: choose from .*, 'poisson', "):
        MADE(columns={"visits": "poison"}).fit(table)


@pytest.mark.parametrize("wrong", [-1, 2.5])
def test_values_that_the_kind_does_not_allow_are_refused(model, table, wrong) -> None:
    with pytest.raises(DataError, match=r"row 0, column 1 \('visits'\): "):
        model.score_samples(table[:2].assign(visits=[wrong, 1.0]))


def test_text_is_refused(table) -> None:
    with pytest.raises(DataError, match=r"has text such as '[fm]' and cannot be poisson"):
        MADE(columns={"sex": Poisson()}, max_epochs=0).fit(table)


class Unregistered(Poisson):
    kind = "unregistered"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Unregistered(), r"is not registered, .*: decorate its class with @made\.register"),
        (Poisson, r"is a class: give an"),
    ],
)
def test_a_kind_that_could_not_be_loaded_is_refused_before_training(table, wrong, message) -> None:
    with pytest.raises(ParameterError, match=message):
        MADE(columns={"visits": wrong}, max_epochs=0).fit(table)


def test_a_kind_without_a_distribution_function_is_named(table, monkeypatch) -> None:
    class Partial(Poisson):
        kind = "partial"
        cdf, fitted = Column.cdf, Column.fitted

    monkeypatch.setitem(registry._KINDS, "partial", Partial)
    model = MADE(columns={"visits": Partial()}, hidden_sizes=(4,), max_epochs=0, random_state=0).fit(table)
    assert np.isfinite(model.score_samples(table)).all()
    with pytest.raises(
        QuestionError, match=r"'partial' have no distribution function, .* Partial should implement 'cdf'"
    ):
        model.sample(1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "should be a subclass of made.Column"),
        (type("Nameless", (Column,), {}), "'Nameless.kind' should be a name"),
        (
            type("Dashed", (Column,), {"kind": "zero-inflated"}),
            "lower-case letters, digits and _.* not 'zero-inflated'",
        ),
        (type("Other", (Column,), {"kind": "numeric"}), "should not be the name of a built-in kind"),
        (type("Other", (Column,), {"kind": "drop"}), "'Other.kind' should be a name"),
    ],
)
def test_only_named_kinds_are_registered(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        made.register(wrong)
