"""Missing values filled, and how sure each is: what the likelihood says of every value that could stand there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from made import MADE
from made.queries.random import of_block

NAN = np.nan
RANDOM = np.random.default_rng(0)
KIND = RANDOM.choice(["a", "b", "c"], size=400)
TABLE = pd.DataFrame(
    {
        "kind": KIND,
        "flag": (KIND == "a") ^ (RANDOM.random(400) < 0.1),
        "size": 10.0 * (KIND == "b") + RANDOM.normal(0, 1, 400),
        "count": (KIND == "c") * 30 + RANDOM.poisson(40, 400),
    }
)
MISSING = TABLE.astype({"flag": object}).mask(np.random.default_rng(1).random(TABLE.shape) < 0.2)
MISSING.loc[7] = None  # nothing is known


@pytest.fixture(scope="module")
def model() -> MADE:
    return MADE(hidden_sizes=(24,), max_epochs=15, evaluation_masks=4, random_state=0).fit(TABLE)


@pytest.mark.parametrize("strategy", ["sample", "mode", "mean"])
def test_each_filled_entry_says_how_sure_it_is(model, strategy) -> None:
    filled, sure = model.impute(MISSING, strategy=strategy, return_uncertainty=True)
    assert filled.equals(model.impute(MISSING, strategy=strategy))
    missing = MISSING.isna().to_numpy()
    for d, name in enumerate(["kind", "flag"]):
        chances = model.predict_proba(MISSING, target=name)
        classes = model.classes(name).tolist()
        for row in range(len(MISSING)):
            if missing[row, d]:
                chance = chances[row, classes.index(filled[name][row])]
                assert sure.probability[row, d] == pytest.approx(chance, abs=1e-6)
                assert sure.entropy[row, d] == pytest.approx(-(chances[row] * np.log(chances[row])).sum(), abs=1e-4)
    for d, name in enumerate(["size", "count"], start=2):
        ends = model.predict_quantiles(MISSING, target=name, quantiles=(0.05, 0.95))
        assert sure.low[missing[:, d], d] == pytest.approx(ends[missing[:, d], 0], abs=1e-5)
        assert sure.high[missing[:, d], d] == pytest.approx(ends[missing[:, d], 1], abs=1e-5)
        assert (sure.standard_deviation[missing[:, d], d] > 0).all()
    for each, columns in ((sure.probability, (2, 3)), (sure.low, (0, 1)), (sure.standard_deviation, (0, 1))):
        assert np.isnan(each[~missing]).all()
        assert np.isnan(each[:, columns]).all()


def test_nine_in_ten_numbers_are_in_their_intervals(model) -> None:
    """What is drawn is where it is said to be."""
    filled, sure = model.impute(TABLE.assign(size=np.nan), n_draws=5, return_uncertainty=True)
    inside = [(each["size"] >= sure.low[:, 2]) & (each["size"] <= sure.high[:, 2]) for each in filled]
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)


def test_several_draws_have_probabilities_of_their_own(model) -> None:
    filled, sure = model.impute(MISSING, n_draws=3, return_uncertainty=True)
    assert len(filled) == 3
    assert sure.probability.shape == (3, 400, 4)
    assert sure.entropy.shape == (400, 4)
    chances = model.predict_proba(MISSING, target="kind")
    for draw, table in enumerate(filled):
        row = int(np.flatnonzero(MISSING["kind"].isna())[0])
        chance = chances[row, model.classes("kind").tolist().index(table["kind"][row])]
        assert sure.probability[draw, row, 0] == pytest.approx(chance, abs=1e-6)


def test_draws_of_a_single_missing_value_follow_the_conditional(model) -> None:
    rows = pd.DataFrame({"kind": [None], "flag": [True], "size": [0.5], "count": [45]}).loc[[0] * 5000]
    row, rows = rows[:1], rows.reset_index(drop=True)
    drawn = model.impute(rows, random_state=1)["kind"]
    chances = model.predict_proba(row, target="kind")[0]
    for value, chance in zip(model.classes("kind").tolist(), chances.tolist(), strict=True):
        assert (drawn == value).mean() == pytest.approx(chance, abs=0.025)
    numbers = model.impute(rows.assign(kind="b", size=np.nan), random_state=1)["size"]
    quantiles = model.predict_quantiles(row.assign(kind="b"), target="size", quantiles=(0.1, 0.5, 0.9))[0]
    for level, quantile in zip((0.1, 0.5, 0.9), quantiles, strict=True):
        assert (numbers <= quantile).mean() == pytest.approx(level, abs=0.03)


def test_a_table_in_blocks_is_answered_as_one_at_once(model, monkeypatch) -> None:
    """To the bit, random numbers too: the rows of a stream are those of a table."""
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 64)
    parts = [MISSING[first : first + 64] for first in range(0, 400, 64)]
    assert np.array_equal(np.concatenate([model.score_samples(part) for part in parts]), model.score_samples(MISSING))
    for strategy, draws in (("sample", 1), ("sample", 3), ("mode", 1), ("mean", 1)):
        generator = torch.Generator().manual_seed(5)
        options = {"strategy": strategy, "n_draws": draws}
        pieces = [
            model.impute(part, random_state=of_block(generator, number), **options) for number, part in enumerate(parts)
        ]
        whole = model.impute(MISSING, random_state=generator, **options)
        if draws > 1:
            whole, pieces = pd.concat(whole), [each[draw] for draw in range(draws) for each in pieces]
        assert pd.concat(pieces).equals(whole)
    generator = torch.Generator().manual_seed(5)
    drawn = [model.sample(64, random_state=of_block(generator, number)) for number in range(3)]
    whole = model.sample(192, random_state=generator)
    assert pd.concat(drawn, ignore_index=True).equals(whole)
    assert not whole.equals(model.sample(192, random_state=generator))  # which has gone on
    chances = [model.predict_proba(part, target="kind") for part in parts]
    assert np.array_equal(np.concatenate(chances), model.predict_proba(MISSING, target="kind"))
    # Blocks of another size: the same but for rounding.
    before = model.score_samples(MISSING)
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 100)
    assert model.score_samples(MISSING) == pytest.approx(before, abs=1e-4)


def test_errors_name_rows_of_the_whole_table(monkeypatch) -> None:
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 10)
    rows = np.random.default_rng(0).integers(2, size=(40, 3)).astype(float)
    model = MADE(hidden_sizes=(4,), masks=1, ordering="natural", max_epochs=0, random_state=0).fit(rows)
    rows[33, 0] = NAN
    with pytest.raises(ValueError, match="row 33"):
        model.score_samples(rows)


def test_predictions_of_categories(model) -> None:
    without = TABLE.drop(columns="kind")
    found = model.predict(without, target="kind")
    assert found.tolist() == model.classes("kind")[model.predict_proba(without, target="kind").argmax(axis=1)].tolist()
    assert (found == TABLE["kind"]).mean() > 0.8


def test_predictions_of_numbers(model) -> None:
    numbers = model.predict(TABLE, target="size")
    assert np.sqrt(((numbers - TABLE["size"]) ** 2).mean()) < 3
    quantiles = model.predict_quantiles(TABLE, "size", quantiles=(0.05, 0.5, 0.95))
    assert quantiles.shape == (400, 3)
    assert (np.diff(quantiles, axis=1) >= 0).all()


def test_invalid_predictions_are_refused(model) -> None:
    with pytest.raises(ValueError, match="there is no target: name a column, such as target='count', or give 'y'"):
        model.predict(TABLE)
    with pytest.raises(ValueError, match="has no order, and so no quantiles"):
        model.predict_quantiles(TABLE, target="kind")
    with pytest.raises(ValueError, match="'quantiles' should be probabilities"):
        model.predict_quantiles(TABLE, target="size", quantiles=[5])


def test_a_spike_at_zero_is_filled_only_where_zero_is_likely() -> None:
    """Messages of those who have voice mail: the mode of the whole column is 0, theirs is not."""
    random = np.random.default_rng(2)
    has = random.random(800) < 0.25
    messages = np.where(has, np.maximum(1, random.normal(30, 6, 800).round()), 0.0)
    table = pd.DataFrame({"voice_mail": np.where(has, "yes", "no"), "messages": messages})
    model = MADE(hidden_sizes=(24,), max_epochs=30, evaluation_masks=4, random_state=0).fit(table)
    filled = model.impute(table.assign(messages=NAN), strategy="mode")["messages"]
    assert (filled[~has] == 0).all()
    assert (filled[has] > 15).all()
