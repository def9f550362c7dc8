"""ShortQuestions about two columns: by the model, counted in the rows, and whether they differ by more than chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from browser import fitted
from made.hints import for_command_line
from made.report.questions import ShortQuestion, ShortQuestions, ask

RANDOM = np.random.default_rng(0)
ROWS = 1000
PLAN = RANDOM.choice(["month", "year"], ROWS, p=[0.7, 0.3])
TABLE = pd.DataFrame(
    {
        "plan": PLAN,
        "churn": np.where(RANDOM.random(ROWS) < np.where(PLAN == "month", 0.8, 0.1), "yes", "no"),
        "visits": RANDOM.integers(0, 3, ROWS).astype(float),
        "age": RANDOM.normal(40, 10, ROWS),
    }
)


@pytest.fixture(scope="module")
def good():
    return fitted(TABLE, max_epochs=40)


@pytest.fixture(scope="module")
def untrained():
    """Columns are independent: P(churn = yes) = 0.6, whatever the plan."""
    return fitted(TABLE, max_epochs=0, direct=False, initialization="zero-output")


def test_a_good_model_gives_no_warning(good) -> None:
    found = ask(good, good.codes(TABLE))
    assert found.asked == 32  # ordered pairs of values: 2 x 2, 2 x 3 and 2 x 3, in both directions
    assert (found.wrong, found.warning(1.0, "train for longer")) == (0, None)


def test_answers_are_those_of_the_model_and_frequencies_those_of_the_rows(untrained) -> None:
    for each in ask(untrained, untrained.codes(TABLE)).worst:
        given = TABLE[TABLE[each.given].astype(str).str.removesuffix(".0") == each.given_value]
        assert each.rows == len(given)
        share = (given[each.asked].astype(str).str.removesuffix(".0") == each.value).mean()
        assert each.frequency == pytest.approx(share)
        row = TABLE[:1].assign(**dict.fromkeys(TABLE, None) | {each.given: given[each.given].iloc[0]})
        value = [str(value).removesuffix(".0") for value in untrained.classes(each.asked)].index(each.value)
        assert each.answer == pytest.approx(untrained.predict_proba(row, each.asked)[0, value], abs=1e-5)


def test_a_model_that_has_learned_no_dependence_is_noticed(untrained) -> None:
    found = ask(untrained, untrained.codes(TABLE))
    assert found.wrong == 8  # plan and churn, in both directions
    assert {found.worst[0].asked, found.worst[0].given} == {"plan", "churn"}
    said = found.warning(0.0, "train for longer")
    assert "8 of 32 answers" in said
    assert str(found.worst[0]) in said
    assert said.endswith("Remedy: train for longer; or count such questions in training, pairs=1.0.")


def test_a_few_rows_are_not_enough(untrained) -> None:
    assert ask(untrained, untrained.codes(TABLE[:40])).asked == 0


def test_chance_is_not_taken_for_an_error(untrained) -> None:
    """Rows from the model itself, many times: as many questions as in a large table."""
    for seed in range(40):
        rows = untrained.sample(300, random_state=seed)
        assert ask(untrained, untrained.codes(rows)).wrong == 0


def test_rows_in_which_either_value_is_missing_do_not_count(untrained) -> None:
    table = TABLE.copy()
    table.loc[::2, "churn"] = None
    for each in ask(untrained, untrained.codes(table)).worst[:4]:
        assert each.rows == int(
            (table[[each.asked, each.given]].notna().all(axis=1) & (table[each.given] == each.given_value)).sum()
        )


def test_a_model_of_fixed_orderings_is_not_asked() -> None:
    model = fitted(TABLE, max_epochs=1, masks=1)
    assert ask(model, model.codes(TABLE)).asked == 0


def test_the_remedy_is_written_for_its_reader() -> None:
    found = ShortQuestions(10, 0.1, 1, (ShortQuestion("a", "x", "b", "y", 0.2, 0.5, 100),))
    assert "P(a = x | b = y): 0.20 by the model, 0.50 in 100 rows" in found.warning(1.0, "")
    with for_command_line():
        assert found.warning(1.0, "").endswith("give such questions more weight, --pairs 4.0.")
    assert replace(found, wrong=0).warning(1.0, "") is None
