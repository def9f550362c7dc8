"""What is learned of missing values: rates, columns that are missing together, dependence on values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from made import MADE
from made.queries.evidence import Evidence
from made.training import missingness
from made.training.missingness import learn_missingness

RANDOM = np.random.default_rng(0)
ROWS = 4000
FIRST = RANDOM.normal(size=ROWS)
COMPLETE = pd.DataFrame(
    {
        "first": FIRST,
        "letter": RANDOM.choice(["a", "b", "c", "d"], ROWS, p=[0.1, 0.3, 0.3, 0.3]),
        "never": RANDOM.choice(["yes", "no"], ROWS),
        "apart": RANDOM.normal(size=ROWS),
        "both": RANDOM.choice(["p", "q", "r"], ROWS),
        "rule": RANDOM.integers(0, 4, ROWS).astype(float),
        "rarely": RANDOM.choice(["s", "t"], ROWS),
    }
)


def chance(first: np.ndarray) -> np.ndarray:
    """The chance that "apart" is missing, given "first"."""
    return 1 / (1 + np.exp(1.5 - 1.5 * first))


def incomplete() -> pd.DataFrame:
    """Missing at random: "apart" given "first", "both" with it, "rule" for one letter, "rarely" in three rows."""
    table = COMPLETE.copy()
    table.loc[RANDOM.random(ROWS) < chance(FIRST), ["apart", "both"]] = None
    table.loc[table["letter"] == "a", "rule"] = None
    table.loc[:2, "rarely"] = None
    return table


TABLE = incomplete()


@pytest.fixture(scope="module")
def model():
    return MADE(hidden_sizes=(16,), max_epochs=3, evaluation_masks=2, random_state=0).fit(TABLE)


@pytest.fixture(scope="module")
def drawn(model):
    return model.sample(20_000, missing=True, random_state=1)


def test_rates_are_those_of_the_table(model) -> None:
    """Of the rows themselves, so that the quality of the samples does not matter."""
    codes = model.model_.codes(COMPLETE)
    hidden = model.model_.missingness.hide(
        model.model_.network, codes, np.zeros(codes.shape, dtype=bool), torch.Generator().manual_seed(0)
    )
    for name, found in zip(TABLE, np.isnan(hidden).mean(axis=0), strict=True):
        share = TABLE[name].isna().mean()
        assert abs(found - share) <= 4 * np.sqrt(share * (1 - share) / ROWS), name


def test_columns_that_are_always_missing_together_stay_so(drawn) -> None:
    assert drawn["apart"].isna().any()
    assert (drawn["apart"].isna() == drawn["both"].isna()).all()


def test_a_column_that_is_missing_for_one_value_of_another_is_missing_there_only(drawn) -> None:
    assert (drawn["rule"].isna() == (drawn["letter"] == "a")).all()


@pytest.mark.parametrize(("low", "high"), [(-4, -1), (-1, 0), (0, 1), (1, 4)])
def test_missing_values_depend_on_other_values_as_in_truth(drawn, low, high) -> None:
    some = drawn[drawn["first"].between(low, high)]
    truth = chance(some["first"].to_numpy())
    learned = TABLE[TABLE["first"].between(low, high)]  # the table itself is a sample
    error = np.sqrt((truth * (1 - truth)).mean() * (1 / len(some) + 1 / len(learned)))
    assert abs(some["apart"].isna().mean() - truth.mean()) < 4 * error + 0.01


def test_a_column_that_is_missing_in_a_handful_of_rows_has_their_rate(model) -> None:
    learned = model.model_.missingness
    index = learned.columns.tolist().index(list(TABLE).index("rarely"))
    rows = model.model_.config.data.rows
    assert not learned.weights[index].any()
    assert float(learned.biases[index].sigmoid()) * rows in (pytest.approx(1), pytest.approx(2), pytest.approx(3))


def test_columns_with_the_fewest_missing_values_are_decided_first(model) -> None:
    counts = [int(TABLE.iloc[:, d].isna().sum()) for d in model.model_.missingness.columns.tolist()]
    assert counts == sorted(counts)
    assert len(counts) == 4


def test_a_value_with_missing_values_of_its_own_counts_where_it_decides() -> None:
    """The column that decides has more missing values than the one that depends on it."""
    random = np.random.default_rng(1)
    table = pd.DataFrame({"by": random.choice(["x", "y", "z"], 1500), "on": random.choice(["u", "v"], 1500)})
    table.loc[table["by"] == "x", "on"] = None
    table.loc[(table["by"] != "x") & (random.random(1500) < 0.7), "by"] = None
    assert table["by"].isna().sum() > table["on"].isna().sum()
    model = MADE(hidden_sizes=(16,), max_epochs=20, evaluation_masks=2, random_state=0).fit(table)
    drawn = model.sample(5000, missing=True, random_state=0)
    seen = drawn[drawn["by"].notna()]
    assert (seen["on"].isna() == (seen["by"] == "x")).mean() > 0.98


def test_many_rows_are_a_sample_that_stands_for_all(model, monkeypatch) -> None:
    """Rates are still those of the table, though few of the complete rows are looked at."""
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(missingness, name, 600)
    fitted = model.model_
    learned = learn_missingness(fitted.ensemble, Evidence.of(fitted.network, fitted.codes(TABLE)), 0)
    codes = fitted.codes(COMPLETE)
    hidden = learned.hide(fitted.network, codes, np.zeros(codes.shape, dtype=bool), torch.Generator().manual_seed(0))
    for name, found in zip(TABLE, np.isnan(hidden).mean(axis=0), strict=True):
        share = TABLE[name].isna().mean()
        assert abs(found - share) <= 4 * np.sqrt(share * (1 - share) / 300) + 1e-9, name


def test_learning_is_deterministic(model) -> None:
    fitted = model.model_
    rows = Evidence.of(fitted.network, fitted.codes(TABLE))
    once, again = (learn_missingness(fitted.ensemble, rows, 3).tensors() for _ in range(2))
    assert all(torch.equal(once[name], again[name]) for name in once)


def test_a_category_of_its_own_is_sampled_without_being_asked_for() -> None:
    model = MADE(hidden_sizes=(8,), max_epochs=2, evaluation_masks=2, missing={"both": "category"}, random_state=0)
    model.fit(TABLE[:500])
    assert list(TABLE).index("both") not in model.model_.missingness.columns
    assert model.sample(300)["both"].isna().any()
    assert not model.sample(300)["apart"].isna().any()


def test_a_table_without_missing_values_has_none() -> None:
    model = MADE(hidden_sizes=(8,), max_epochs=1, evaluation_masks=2, random_state=0).fit(COMPLETE[:200])
    assert model.sample(50, missing=True, random_state=0).equals(model.sample(50, random_state=0))
