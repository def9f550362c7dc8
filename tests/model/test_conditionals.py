"""Every unknown column at once: what the queries about one column, and the language of `ask`, say of each."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from made import MADE
from made.errors import DataError, QuestionError, UnseenWarning
from made.queries.conditional import forecast
from made.queries.likelihood import score
from people import fitted_people, people

GIVEN = [{}, {"job": "cook"}, {"job": None, "age": 30}, {"debt": 0.0, "since": datetime.date(2024, 3, 1), "fed": True}]


@pytest.fixture(scope="module")
def estimator() -> MADE:
    return fitted_people()


def asked(given: dict) -> str:
    """What is given, in the language of `ask`."""
    written = {"fed = True": "fed = true", "job = None": "job is missing"}
    parts = [f"{name} = '{value}'" if isinstance(value, str) else f"{name} = {value}" for name, value in given.items()]
    return " | " + " and ".join(written.get(part, part) for part in parts) if parts else ""


@pytest.mark.parametrize("given", GIVEN)
def test_a_column_is_as_if_it_were_predicted_alone(estimator, given) -> None:
    model, found = estimator.model_, estimator.conditionals(given, quantiles=(0.05, 0.5, 0.95)).columns
    assert found.keys() == set(model.schema.names) - given.keys()
    codes = model.known(given)
    for name, column in found.items():
        alone = forecast(estimator._model().ensemble, codes, model.position(name))
        if column.values:
            assert list(column.values) == model.classes(name).tolist()
            assert column.probabilities == pytest.approx(alone.probabilities[0], abs=1e-6)
            assert np.isnan([column.mean, column.standard_deviation, *column.quantiles]).all()
        else:
            assert column.mean == pytest.approx(alone.mean[0], rel=1e-4)
            assert column.standard_deviation == pytest.approx(alone.standard_deviation[0], rel=1e-4)
            assert column.quantiles == pytest.approx(alone.quantiles[0], rel=1e-4)


@pytest.mark.parametrize("given", GIVEN)
def test_bins_are_intervals_in_the_language_of_ask(estimator, given) -> None:
    for name, column in estimator.conditionals(given).columns.items():
        if column.values or name == "since":
            continue
        ends = column.edges.tolist()
        for place in (0, 1, len(ends) // 2, len(ends) - 2):
            question = f"{name} >= {ends[place]!r} and {name} < {ends[place + 1]!r}{asked(given)}"
            assert column.probabilities[place] == pytest.approx(estimator.probability(question).probability, abs=1e-5)
        above = estimator.probability(f"{name} >= {ends[-1]!r}{asked(given)}").probability
        assert column.above == pytest.approx(above, abs=1e-5)


def test_probabilities_add_up_to_one(estimator) -> None:
    for given in GIVEN:
        for column in estimator.conditionals(given).columns.values():
            total = column.probabilities.sum() + column.below + column.above + column.missing
            assert total == pytest.approx(1, abs=1e-5)


def test_missing_is_a_value_of_its_own(estimator) -> None:
    found = estimator.conditionals().columns
    assert found["debt"].missing == pytest.approx(estimator.probability("debt is missing").probability, abs=1e-5)
    assert found["job"].values[-1] is None
    assert found["wage"].missing == 0


def test_bins_of_days_begin_at_noon(estimator) -> None:
    """Halfway between two days, in whole days."""
    edges = estimator.conditionals().columns["since"].edges
    assert (edges % 86400 == 43200).all()


def test_bins_do_not_depend_on_what_is_given(estimator) -> None:
    first, second = (estimator.conditionals(given).columns["wage"].edges.tolist() for given in GIVEN[:2])
    assert first == second


@pytest.mark.parametrize("given", GIVEN)
def test_log_prob_is_the_likelihood_of_what_is_given(estimator, given) -> None:
    found = estimator.conditionals(given).log_prob
    assert found == (score(estimator._model().ensemble, estimator.model_.known(given))[0] if given else 0)


def test_all_columns_given_leave_nothing(estimator) -> None:
    row = people().slice(1, 1).to_pylist()[0]
    found = estimator.conditionals(row)
    assert found.columns == {}
    assert found.log_prob == estimator.score_samples(people().slice(1, 1))[0]


def test_fixed_orderings_answer_what_comes_next() -> None:
    rows = np.random.default_rng(0).integers(2, size=(50, 3))
    model = MADE(masks=1, ordering="natural", hidden_sizes=(4,), max_epochs=1).fit(rows)
    assert list(model.conditionals({0: 1, 1: 0}).columns) == ["x2"]
    with pytest.raises(QuestionError, match="unlimited masks"):
        model.conditionals({0: 1})


def test_what_cannot_be_given_is_refused(estimator) -> None:
    with pytest.raises(QuestionError, match="there is no column 'jib'"):
        estimator.conditionals({"jib": 1})
    with pytest.raises(DataError) as caught:
        estimator.conditionals({"age": "old"})
    assert caught.value.column == "age"
    with pytest.raises(QuestionError, match="'quantiles' should be probabilities"):
        estimator.conditionals(quantiles=[2])
    with pytest.warns(UnseenWarning):
        estimator.conditionals({"job": "pilot"})


@pytest.mark.parametrize(
    ("value", "said"),
    [(float("inf"), "infinity cannot be used"), (10**400, "too large"), ([1, 2], r"one value, not \[1, 2\]")],
)
def test_a_value_that_cannot_be_given_is_named_by_its_column(estimator, value, said) -> None:
    with pytest.raises((DataError, QuestionError), match=f"'given': column 1 .'age'.*{said}") as caught:
        estimator.conditionals({"age": value})
    assert (caught.value.column, caught.value.row) == ("age", None)
