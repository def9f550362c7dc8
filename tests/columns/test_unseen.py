"""Values that training never saw: each has a probability, all together have one, and none stops a table."""

import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from made import MADE
from made.columns.discrete import Binary
from made.columns.ordinal import Ordinal
from made.columns.unseen import Unseen
from made.errors import DataError, UnseenWarning

SMALL = {"hidden_sizes": (16,), "evaluation_masks": 2, "max_epochs": 3, "random_state": 0}
NUMBERS = torch.arange(-200_000.0, 200_000.0, dtype=torch.float64)

LISTS = [(0.0, 1.0), (1.0, 2.0), (7.0,), (0.0, 1.0, 2.0, 5.0, 16.0, 24.0), (6.0, 12.0, 72.0), (-3.0, 4.0)]


@pytest.mark.parametrize("values", LISTS)
def test_codes_and_numbers_are_inverse(values) -> None:
    beside = Unseen(values, step=1.0)
    numbers = np.arange(-50.0, 150.0)
    codes = beside.code(numbers)
    assert (np.diff(codes) > 0).all()
    assert beside.value(torch.from_numpy(codes)).numpy() == pytest.approx(numbers)
    assert numbers[beside.listed(torch.from_numpy(codes)).numpy()].tolist() == list(values)


@pytest.mark.parametrize("values", LISTS)
def test_all_whole_numbers_together_have_probability_one(values) -> None:
    kind = Ordinal(values, step=1.0)
    codes = torch.from_numpy(kind.beside.code(NUMBERS.numpy()))
    units = torch.randn(kind.outputs, dtype=torch.float64).expand(len(codes), -1)
    probability = kind.log_prob(units, codes).exp()
    assert probability.sum().item() == pytest.approx(1, abs=1e-9)
    assert (probability > 0).all()
    listed = kind.beside.listed(codes)
    assert probability[~listed].sum().item() == pytest.approx(kind.share, rel=0.01)


def test_real_numbers_beside_a_list_have_a_density() -> None:
    beside = Unseen((0.0, 0.2, 0.4, 1.0))
    places = torch.linspace(-2000, 2000, 400_001, dtype=torch.float64)
    codes = torch.from_numpy(beside.code(places.numpy()))
    off = ~beside.listed(codes)
    density = beside.combine(torch.zeros(1, dtype=torch.float64), ~off, codes).exp()[off]
    assert density.mean().item() * 4000 == pytest.approx(1e-6, rel=0.01)


@pytest.mark.parametrize("signed", [True, False])
def test_a_flag_with_another_number_is_as_if_it_were_not_observed(signed) -> None:
    kind = Binary(signed, unseen=Unseen((0.0, 1.0), 1.0, 1e-9))
    values = torch.tensor([0.0, 1.0, 2.0, -5.0], dtype=torch.float64)
    assert kind.encode(values)[2:].tolist() == [[0.0], [0.0]]
    cost = -kind.log_prob(torch.zeros(4, 1, dtype=torch.float64), values)
    assert cost[:2].exp().tolist() == pytest.approx([2, 2])
    assert ((cost[2:] > 20) & (cost[2:] < 40)).all()


@pytest.mark.parametrize("wrong", [{"values": ()}, {"values": (1.0, 0.0)}, {"values": (1.0,), "step": -1.0}])
def test_invalid_lists_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="should be"):
        Unseen(**wrong)


def counts(rows: int = 400) -> pd.DataFrame:
    """Text, a count of few values, a flag, a constant, dates, fractions and amounts."""
    random = np.random.default_rng(0)
    visits = random.poisson(1.5, rows).clip(max=6)
    return pd.DataFrame(
        {
            "who": random.choice(["new", "old", "gone"], rows),
            "visits": visits,
            "car": (random.random(rows) < 0.3).astype(int),
            "always": 7,
            "day": random.choice(["2024-01-01", "2024-02-01", "2024-03-01"], rows),
            "special": random.choice([0.0, 0.2, 0.4], rows),
            "spent": np.rint(np.exp(random.normal(3 + visits / 5, 1, rows))),
        }
    )


@pytest.fixture(scope="module")
def model() -> MADE:
    return MADE(**SMALL).fit(counts())


UNUSUAL = [
    ("who", "never seen"),
    ("visits", 24),
    ("visits", -1),
    ("car", 2),
    ("always", 8),
    ("day", "1999-12-31"),
    ("special", 0.3),
    ("spent", -4.0),
    ("spent", 2.5),
    ("spent", 1e9),
]


def test_kinds(model) -> None:
    kinds = [field.kind for field in model.model_.schema.fields]
    assert kinds == ["categorical", "ordinal", "binary", "ordinal", "ordinal", "ordinal", "numeric"]


@pytest.mark.parametrize(("column", "value"), UNUSUAL)
def test_a_value_that_training_never_saw_is_unlikely(model, column, value) -> None:
    rows = counts()[:5]
    usual = model.score_samples(rows)
    rows = rows.astype({column: object})
    rows.loc[1, column] = value
    if column == "spent" and value > 1e6:  # no surprise to a column of numbers, only far away
        found = model.score_samples(rows)
    else:
        what = "between the steps of the training rows" if value == 2.5 else "that training never saw"
        with pytest.warns(UnseenWarning, match=f"values {what}: 1 of '{column}'"):
            found = model.score_samples(rows)
    assert found[[0, 2, 3, 4]] == pytest.approx(usual[[0, 2, 3, 4]], abs=1e-4)
    assert np.isfinite(found).all()
    assert found[1] > -150
    assert found[1] < usual[1] or value == 2.5  # which counts as the step that it lies in


@pytest.mark.parametrize(("column", "value"), UNUSUAL)
@pytest.mark.filterwarnings("ignore::made.errors.UnseenWarning")
def test_every_query_accepts_unseen_values(model, column, value) -> None:
    rows = counts()[:3].astype({column: object})
    rows.loc[1, column] = value
    missing = rows.copy()
    missing.loc[1, "spent" if column != "spent" else "visits"] = None
    filled = model.impute(missing)
    assert filled[column][1] == value
    assert not filled.isna().to_numpy().any()
    assert np.isfinite(model.predict_proba(rows, target="visits")).all()
    assert np.isfinite(model.surprise(rows).to_numpy().astype(float)).all()
    assert model.denoise(rows).shape == rows.shape


@pytest.mark.parametrize(("column", "value"), [each for each in UNUSUAL if each != ("spent", 1e9)])
def test_it_can_be_an_error(column, value) -> None:
    rows = counts()[:3].astype({column: object})
    rows.loc[1, column] = value
    with pytest.raises(DataError, match="row 1, column"):
        MADE(**{**SMALL, "max_epochs": 0}, unseen="error").fit(counts()).score_samples(rows)


def test_what_training_never_saw_is_never_drawn(model) -> None:
    table, drawn = counts(), model.sample(500)
    for column in ("who", "visits", "car", "always", "special"):
        assert set(drawn[column]) <= set(table[column])


def test_counts_have_probabilities_means_and_quantiles(model) -> None:
    rows = counts()[:20]
    chance = model.predict_proba(rows, target="visits")
    values = model.classes("visits")
    assert values.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert chance.sum(axis=1) == pytest.approx(np.ones(20), abs=1e-6)
    assert model.predict(rows, target="visits").tolist() == values[chance.argmax(axis=1)].tolist()
    mean = model.impute(rows.assign(visits=np.nan), strategy="mean")["visits"]
    assert mean.tolist() == pytest.approx((chance @ values).tolist(), abs=0.51)  # a whole number
    low, high = model.predict_quantiles(rows, "visits", quantiles=(0.1, 0.9)).T
    assert ((chance * (values < low[:, None])).sum(axis=1) <= 0.1 + 1e-6).all()
    assert ((chance * (values <= high[:, None])).sum(axis=1) >= 0.9 - 1e-6).all()


def test_questions_about_counts_are_sums_of_their_probabilities(model) -> None:
    each = [model.probability(f"visits = {value}").probability for value in range(7)]
    assert sum(each) == pytest.approx(1, abs=1e-5)
    assert model.probability("visits >= 3").probability == pytest.approx(sum(each[3:]), abs=1e-5)
    assert model.probability("visits = 24").probability == 0


def test_a_saved_model_scores_unseen_values(model, tmp_path) -> None:
    model.save(tmp_path / "model")
    rows = counts()[:3].assign(visits=[0, 30, 2], who=["new", "?", "old"])
    with pytest.warns(UnseenWarning):
        again = MADE.load(tmp_path / "model").score_samples(rows)
    with pytest.warns(UnseenWarning):
        assert again.tolist() == model.score_samples(rows).tolist()


def test_text_that_reads_as_a_number_is_one(model) -> None:
    """One bad cell makes a whole column of a file text."""
    rows = counts()[:4]
    usual = model.score_samples(rows)
    assert model.score_samples(rows.astype({"visits": str, "spent": str})).tolist() == usual.tolist()
    rows = rows.astype({"spent": object})
    rows.loc[2, "spent"] = "much"
    with pytest.raises(DataError, match=r"row 2, .*'much' is text"):
        model.score_samples(rows.astype({"spent": str}))


def tables() -> Path | None:
    folder = os.environ.get("MADE_TABLES") or os.environ.get("MADE_DATA")
    path = Path(folder).parent / "synthesis" / "shoppers.csv" if folder else None
    return path if path is not None and path.exists() else None


@pytest.mark.skipif(tables() is None, reason="MADE_DATA does not say where the real tables are")
def test_sessions_are_split_and_scored() -> None:
    """A count that is 24 in one test row only."""
    table = pd.read_csv(tables())
    rare = table["Informational"] == 24
    train, test = table[~rare][:3000], pd.concat([table[rare], table[~rare][3000:3100]])
    model = MADE(**{**SMALL, "max_epochs": 1}).fit(train)
    with pytest.warns(UnseenWarning, match="'Informational'"):
        log_p = model.score_samples(test)
    assert np.isfinite(log_p).all()
    assert log_p[0] == log_p.min() or log_p[0] < np.median(log_p) - 5


def test_far_away_costs_tens_of_nats() -> None:
    random = np.random.default_rng(0)
    ages = pd.DataFrame({"age": random.integers(0, 41, 500), "weight": random.normal(20, 5, 500)})
    model = MADE(**SMALL).fit(ages)
    far = model.score_samples(pd.DataFrame({"age": [20, 10**9], "weight": [20.0, 20.0]}))
    assert -100 < far[1] - far[0] < -20
    assert math.isfinite(far[1])


@pytest.fixture(scope="module")
def priced():
    """A column in steps of 25."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"price": 25.0 * random.integers(40, 200, 300), "sold": random.choice(["yes", "no"], 300)})
    return MADE(**SMALL).fit(table)


def test_a_number_between_two_steps_is_rounded_with_a_warning(priced) -> None:
    usual = priced.score_samples(pd.DataFrame({"price": [3800.0, 2000.0], "sold": ["yes", "no"]}))
    with pytest.warns(UnseenWarning) as caught:
        found = priced.score_samples(pd.DataFrame({"price": [3810.0, 2000.0], "sold": ["yes", "no"]}))
    assert found.tolist() == usual.tolist()
    (warning,) = (each.message for each in caught)
    assert (warning.counts, warning.rounded) == ({"price": 1}, {"price": 1})
    assert str(warning) == (
        "values between the steps of the training rows: 1 of 'price'. Each is taken for the nearest step."
    )


def test_a_given_number_between_two_steps_is_rounded(priced) -> None:
    with pytest.warns(UnseenWarning, match=r"values between the steps .*: 4 of 'price'. Each is taken for the nearest"):
        assert set(priced.sample(4, given={"price": 3810.0})["price"]) == {3800.0}


def test_the_warning_distinguishes_unlikely_values_from_rounded_ones() -> None:
    first, second = UnseenWarning({"city": 2, "price": 3}, {"price": 2}), UnseenWarning({"price": 1}, {"price": 1})
    both = UnseenWarning.together([first, second])
    assert str(both) == (
        "values that training never saw: 2 of 'city', 1 of 'price'. They are very unlikely. Also, "
        "values between the steps of the training rows: 3 of 'price'. Each is taken for the nearest step."
    )
    assert UnseenWarning.together([]) is None
