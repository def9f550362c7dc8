"""What columns are inferred to be: points, steps, bounds, curved scales, orders, identifiers, and what is missing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from fields import numeric
from made import MADE, Categorical, Numeric
from made.columns.point_masses import PointMasses
from made.errors import DataError, UnseenWarning
from made.tables.field import OTHER, Field
from made.tables.schema import Schema
from made.tables.table import Table

NAN = float("nan")
SMALL = {"hidden_sizes": (16,), "evaluation_masks": 4, "random_state": 0}


def infer(values, kind="auto", name="a", **how) -> Field:
    """The field of one column."""
    table = Table.of(pd.DataFrame({name: values}))
    return Schema.infer(table, [kind], **how).fields[0]


def amounts(rows: int, seed: int = 0) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(7, 1.2, rows))


def test_a_skewed_amount_has_a_curved_scale_and_a_least_value() -> None:
    field = infer(amounts(500))
    assert numeric(field).curve > 0
    assert (numeric(field).low, numeric(field).center, numeric(field).step, field.column.atoms) == (0, 0, 0, ())
    bent = np.arcsinh(amounts(500) / numeric(field).curve)
    assert numeric(field).location == pytest.approx(np.median(bent))
    whole = infer(np.rint(amounts(500)))
    assert (numeric(whole).step, numeric(whole).low) == (1, 0)
    assert numeric(whole).curve > 0
    # the unit makes no difference
    assert numeric(infer(amounts(500) * 100)).curve == pytest.approx(100 * numeric(field).curve)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(170, 10, 500),
        np.random.default_rng(0).uniform(0, 100, 500),
        np.random.default_rng(0).normal(0, 1, 500),
        np.random.default_rng(0).integers(18, 90, 500),
        np.random.default_rng(0).beta(2, 3, 500),
    ],
)
def test_what_is_not_skewed_is_left_straight(values) -> None:
    field = infer(values)
    assert numeric(field).curve == 0
    assert numeric(field).low == (0 if values.min() >= 0 else -math.inf)


def test_heavy_tails_on_both_sides_are_curved_about_the_middle() -> None:
    profits = np.random.default_rng(0).standard_cauchy(1000) * 50 + 20
    field = infer(profits)
    assert numeric(field).low == -math.inf
    assert numeric(field).curve > 0
    assert numeric(field).center == pytest.approx(np.median(profits))
    assert numeric(infer(np.rint(profits))).center == round(np.median(np.rint(profits)))


@pytest.fixture(scope="module")
def debt() -> np.ndarray:
    """Amounts, of which more than half are 0 and some 999."""
    debt = np.where(np.random.default_rng(0).random(1000) < 0.6, 0, amounts(1000))
    debt[:50] = 999.0
    return debt


def test_points_stand_out(debt) -> None:
    assert isinstance(infer(debt).column, PointMasses)
    assert infer(debt).column.atoms == (0, 999)
    assert infer(np.rint(debt)).column.atoms == (0, 999)


def test_beside_points_the_rest_is_as_it_would_be_alone(debt) -> None:
    rest = numeric(infer(debt[~np.isin(debt, (0, 999))]))
    assert numeric(infer(debt)) == replace(rest, extent=(debt.min(), debt.max()))


def test_frequent_values_with_frequent_neighbours_are_not_point_masses() -> None:
    random = np.random.default_rng(0)
    assert infer(random.integers(0, 30, 2000)).column.atoms == ()
    assert infer(np.rint(random.normal(0, 3, 2000))).column.atoms == ()
    assert infer(np.round(random.normal(40, 3, 2000), 1)).column.atoms == ()


def test_a_point_may_be_beside_another() -> None:
    hours = np.random.default_rng(0).integers(20, 60, 4000)
    hours[:1000], hours[1000:1400] = 40, 38
    assert infer(hours).column.atoms == (38, 40)


@pytest.mark.parametrize("seed", range(5))
def test_chance_makes_no_point_in_a_small_table(seed) -> None:
    weights = np.round(np.random.default_rng(seed).normal(4200, 800, 340) / 25) * 25
    assert infer(weights).column.atoms == ()


def test_there_is_no_point_where_hardly_anything_is_beside_it() -> None:
    assert infer([0] * 500 + [1, 2, 3], "numeric").column.atoms == ()


def test_a_code_that_is_far_away_spoils_neither_the_steps_nor_the_scale() -> None:
    random = np.random.default_rng(0)
    coded = infer(np.where(random.random(2000) < 0.1, -999_999, random.integers(20, 90, 2000)))
    assert (coded.column.atoms, numeric(coded).step, numeric(coded).low) == ((-999_999,), 1, -math.inf)
    assert numeric(coded).scale < 50


def test_the_kind_real_has_no_steps_points_or_curve() -> None:
    debt = np.where(np.random.default_rng(0).random(1000) < 0.6, 0, np.rint(amounts(1000)))
    field = infer(debt, "real")
    assert (numeric(field).step, numeric(field).curve, numeric(field).low, field.column.atoms) == (0, 0, -math.inf, ())
    assert type(field.column) is Numeric
    schema = Schema([field])
    assert schema.encode(Table.of(pd.DataFrame({"a": [-3.5]}))).tolist() == [[-3.5]]


def test_a_value_below_the_least_is_refused_with_a_remedy() -> None:
    schema = Schema([infer(amounts(100))])
    with pytest.raises(DataError, match=r"row 1, column 0 \('a'\): -3 is below 0, .*columns=\{'a': 'real'\}"):
        schema.encode(Table.of(pd.DataFrame({"a": [5.0, -3.0]})))


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical(["M", "S", "M"], ["S", "M", "L"], ordered=True),
        pl.Series(["M", "S", "M"], dtype=pl.Enum(["S", "M", "L"])),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["S", "M", "L"]), ordered=True),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_an_order_is_kept(values) -> None:
    make = {"Categorical": pd.DataFrame, "Series": pl.DataFrame}.get(type(values).__name__, pa.table)
    table = Table.of(make({"size": values}))
    schema = Schema.infer(table)
    assert schema.fields[0].values == ("S", "M", "L")
    codes = schema.encode(table)
    assert codes[:, 0].tolist() == [1, 0, 1]
    for back in (schema.decode(codes, table), schema.decode(codes, table.template()), schema.fill(table, codes)):
        assert Table.of(back).declared == [("S", "M", "L")]
    assert Schema.infer(Table.of(pd.DataFrame({"size": ["M", "S"]})), {"size": ["S", "M", "L"]}).fields[0].values == (
        "S",
        "M",
        "L",
    )


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("customer", [f"C-{d:04}" for d in range(50)]),
        ("comment", [f"I said {d}" for d in range(46)] + ["ok"] * 4),
        ("x", range(50)),
        ("x", range(1, 51)),
        ("x", np.random.default_rng(0).permutation(50)),
        ("customer_id", np.random.default_rng(0).choice(10**6, 50, replace=False)),
        ("customerID", [*range(1000, 1049), 2000]),
        ("Id", np.arange(50.0) + 7),
    ],
)
def test_identifiers_are_noticed_named_and_refused(name, values) -> None:
    message = rf"column 0 \('{name}'\): .*looks like an identifier.*columns=\{{'{name}': 'drop'\}}"
    with pytest.raises(DataError, match=message):
        infer(values, name=name)
    # whoever knows better says so
    assert infer(values, "categorical", name=name).kind == "categorical"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("income", np.random.default_rng(0).choice(10**6, 50, replace=False)),
        ("id", np.random.default_rng(0).normal(size=50)),
        ("id", [3, 1, 2]),
        ("id", [1, 2] * 50),
        ("year", range(1960, 2020)),
        ("paid", np.random.default_rng(0).choice(10**6, 50, replace=False)),
        ("name", list("abcdefghij")),
        ("city", [f"city {d}" for d in range(40)] * 2),
    ],
)
def test_columns_that_are_not_identifiers_are_kept(name, values) -> None:
    infer(values, name=name)


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    """Two columns to learn, an identifier, and durations, which cannot be learned."""
    random = np.random.default_rng(0)
    names = [f"no. {d}" for d in range(60)]
    frame = pd.DataFrame({"id": names, "a": random.random(60) < 0.5, "b": random.normal(size=60)})
    return frame.assign(when=pd.to_timedelta(np.arange(60), unit="h"))


@pytest.fixture(scope="module", params=["fitted", "loaded"])
def without(request, visits, tmp_path_factory) -> MADE:
    """A model of two columns of four."""
    model = MADE(**SMALL, max_epochs=1, columns={"id": "drop", 3: "drop", 2: "numeric"}).fit(visits)
    model.save(path := tmp_path_factory.mktemp("dropped") / "model")
    return model if request.param == "fitted" else MADE.load(path)


def test_a_column_that_cannot_be_learned_is_refused(visits) -> None:
    with pytest.raises(DataError, match=r"'when'.*leave it out"):
        MADE(**SMALL, max_epochs=0).fit(visits)


def test_a_column_that_is_dropped_is_no_part_of_the_model(without) -> None:
    assert without.n_features_in_ == 2
    assert list(without.feature_names_in_) == ["a", "b"]
    assert list(without.sample(3).columns) == ["a", "b"]


def test_rows_are_asked_about_with_dropped_columns_or_without(without, visits) -> None:
    expected = without.score_samples(visits[["a", "b"]])
    assert np.array_equal(without.score_samples(visits), expected)
    assert np.array_equal(without.score_samples(visits[["a", "b", "when"]]), expected)
    assert list(without.impute(visits).columns) == ["a", "b"]
    assert without.predict_proba(visits[["id", "b"]], target="a").shape == (60, 2)


def test_columns_of_an_array_are_dropped(visits) -> None:
    array = visits.to_numpy()
    model = MADE(**SMALL, max_epochs=0, columns=["drop", "binary", "numeric", "drop"]).fit(array, X_valid=array[:5])
    assert model.model_.schema.names == ("x1", "x2")
    assert np.array_equal(model.score_samples(array), model.score_samples(array[:, 1:3]))
    assert MADE(**SMALL, max_epochs=0, columns={"x0": "drop", 3: "drop"}).fit(array).n_features_in_ == 2
    with pytest.raises(ValueError, match="X has 3 features, but MADE is expecting 2"):
        model.score_samples(array[:, [1, 2, 2]])


def test_columns_to_drop_have_to_be_there_and_not_be_all(visits) -> None:
    with pytest.raises(DataError, match="All 4 columns are dropped"):
        MADE(columns=["drop"] * 4).fit(visits.to_numpy())
    with pytest.raises(ValueError, match="'columns' has 'idd', which is not a column"):
        MADE(columns={"idd": "drop", "id": "drop", "when": "drop"}).fit(visits)


def test_constants_have_probability_one() -> None:
    frame = pd.DataFrame({"text": ["same"] * 40, "number": [3.5] * 40, "whole": [7] * 40, "other": list("ab") * 20})
    model = MADE(**SMALL, max_epochs=3).fit(frame)
    assert [field.kind for field in model.model_.schema.fields] == ["categorical", "ordinal", "ordinal", "categorical"]
    assert model.score_samples(frame[:2], given=["other"]) == pytest.approx([0, 0], abs=0.1)  # but for unseen values
    assert model.score_samples(frame[:1])[0] == pytest.approx(math.log(0.5), abs=0.2)
    assert model.sample(4)[["text", "number", "whole"]].drop_duplicates().to_numpy().tolist() == [["same", 3.5, 7]]
    alone = MADE(**SMALL, max_epochs=2).fit(frame[["whole"]])
    assert alone.score(frame[["whole"]]) == pytest.approx(0, abs=1e-5)


@pytest.fixture(scope="module")
def incomes() -> pd.DataFrame:
    """Incomes that are kept back by some, most of them asked by letter."""
    random = np.random.default_rng(0)
    asked = random.choice(["in person", "by letter", "by phone"], 900)
    income = np.rint(amounts(900))
    income[random.random(900) < np.where(asked == "by letter", 0.6, 0.1)] = NAN
    job = np.where(random.random(900) < 0.2, None, random.choice(["none", "some"], 900))
    return pd.DataFrame({"asked": asked, "income": income, "job": job})


@pytest.fixture(scope="module")
def answers(incomes) -> MADE:
    return MADE(**SMALL, max_epochs=60, missing="category", unseen="error", learning_rate=0.01).fit(incomes)


def test_missing_can_be_a_value_of_its_own(answers) -> None:
    how, amount, work = answers.model_.schema.fields
    assert [how.missing, amount.missing, work.missing] == [False, True, True]
    assert isinstance(amount.column, PointMasses)
    assert work.column == Categorical(3)
    assert answers.classes("job").tolist() == ["none", "some", None]


@pytest.mark.parametrize(("way", "expected"), [("by letter", 0.6), ("by phone", 0.1)])
def test_the_probability_of_a_missing_value_is_learned(answers, way, expected) -> None:
    row = pd.DataFrame({"asked": [way], "income": [NAN], "job": ["none"]})
    assert np.exp(answers.score_samples(row, given=["asked", "job"]))[0] == pytest.approx(expected, abs=0.12)
    assert answers.sample(300, given={"asked": way})["income"].isna().mean() == pytest.approx(expected, abs=0.12)


def test_a_missing_value_is_a_class(answers, incomes) -> None:
    assert answers.predict_proba(incomes, target="job").mean(axis=0)[2] == pytest.approx(0.2, abs=0.05)


def test_a_missing_value_that_is_a_value_is_not_filled_and_may_be_given(answers, incomes) -> None:
    assert answers.impute(incomes)["income"].isna().equals(incomes["income"].isna())
    assert answers.sample(5, given={"income": None})["income"].isna().all()
    assert answers.sample(5, given={"job": None})["job"].isna().all()
    assert np.isfinite(answers.surprise(incomes).to_numpy()).all()


def test_where_training_had_none_a_missing_value_is_not_observed(answers) -> None:
    known = {"income": [3000.0], "job": ["some"]}
    ways = pd.DataFrame({"asked": ["in person", "by letter", "by phone"]}).assign(income=3000.0, job="some")
    marginal = answers.score_samples(pd.DataFrame({"asked": [None], **known}))
    assert marginal[0] > answers.score_samples(ways).max()


def test_finite_lists_of_masks_take_missing_values_that_are_values(incomes) -> None:
    finite = {**SMALL, "masks": 2, "max_epochs": 1}
    with pytest.raises(DataError, match="has a missing value, but only a model with unlimited masks"):
        MADE(**finite).fit(incomes)
    assert np.isfinite(MADE(**finite, missing="category").fit(incomes).score_samples(incomes)).all()


def test_missing_can_be_set_by_column(incomes) -> None:
    only = MADE(**SMALL, max_epochs=0, missing={"job": "category", 1: "unobserved"}).fit(incomes)
    assert [field.missing for field in only.model_.schema.fields] == [False, False, True]
    with pytest.raises(ValueError, match=r"'missing' of .* should be .unobserved. or .category., not"):
        MADE(**SMALL, missing={"job": "no"}).fit(incomes)


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_what_is_missing_survives_containers_and_folders(container, tmp_path) -> None:
    random = np.random.default_rng(0)
    data = {
        "n": [None if x < 0.3 else float(np.rint(100 * x)) for x in random.random(80)],
        "t": [None if x < 0.3 else "a" if x < 0.6 else "b" for x in random.random(80)],
        "d": [
            None if x < 0.3 else pd.Timestamp("2024-01-01") + pd.Timedelta(days=int(99 * x)) for x in random.random(80)
        ],
    }
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[container](data)
    model = MADE(**SMALL, max_epochs=1, missing="category").fit(frame)
    model.save(tmp_path / "model")
    again = MADE.load(tmp_path / "model")
    assert np.array_equal(model.score_samples(frame), again.score_samples(frame))
    schema = model.model_.schema
    codes = schema.encode(Table.of(frame))
    assert not np.isnan(codes).any()
    for back in (schema.decode(codes, Table.of(frame)), schema.fill(Table.of(frame), codes)):
        assert type(back) is type(frame)
        assert np.array_equal(schema.encode(Table.of(back)), codes)
    for each in (model, again):
        table = Table.of(each.sample(60))
        assert all(0 < np.isnan(column.astype(float)).mean() < 1 for column in (table.columns[0], table.columns[2]))
        assert None in table.columns[1]


@pytest.fixture(scope="module")
def cities() -> pd.DataFrame:
    """Two cities that are frequent, and twelve villages that are not."""
    random = np.random.default_rng(0)
    city = random.choice(["Oslo", "Bergen"], 300).astype(object)
    city[:12] = [f"village {d}" for d in range(12)]
    return pd.DataFrame({"city": city, "rich": random.random(300) < 0.5})


@pytest.fixture(scope="module")
def atlas(cities) -> MADE:
    return MADE(**SMALL, max_epochs=30).fit(cities)


def test_text_that_was_never_seen_may_be_refused(cities) -> None:
    strict = MADE(**SMALL, max_epochs=0, unseen="error").fit(cities)
    with pytest.raises(DataError, match=r"'Tromsø' is not among the known values.*unseen='other'"):
        strict.score_samples(pd.DataFrame({"city": ["Tromsø"], "rich": [True]}))


def test_rare_text_is_no_value_of_its_own(atlas) -> None:
    field = atlas.model_.schema.fields[0]
    assert field.values == ("Bergen", "Oslo")
    assert field.other == pytest.approx(0.1 / 302)
    assert atlas.classes("city").tolist() == ["Bergen", "Oslo"]


def test_text_that_was_never_seen_has_the_likelihood_of_all_others(atlas) -> None:
    rows = pd.DataFrame({"city": ["Tromsø", "village 3", OTHER, "Oslo", "Bergen"], "rich": [True] * 5})
    with pytest.warns(UnseenWarning, match="values that training never saw: 3 of 'city'"):
        probability = np.exp(atlas.score_samples(rows, given=["rich"]))
    assert probability[0] == probability[1] == probability[2] == pytest.approx(0.04, abs=0.03)
    assert probability[2:].sum() == pytest.approx(1, abs=1e-5)


def test_text_that_was_never_seen_is_neither_drawn_nor_predicted(atlas, cities) -> None:
    assert set(atlas.sample(500)["city"]) == {"Oslo", "Bergen"}
    assert atlas.predict_proba(cities[20:25], target="city").sum(axis=1) == pytest.approx(1)


def test_text_that_was_never_seen_stays_when_missing_values_are_filled(atlas) -> None:
    with pytest.warns(UnseenWarning):
        assert atlas.impute(pd.DataFrame({"city": ["Tromsø", None], "rich": [True, None]}))["city"][0] == "Tromsø"


def test_the_bucket_is_never_empty() -> None:
    """However long training goes on without a rare value, what was never seen keeps a share."""
    frame = pd.DataFrame({"a": ["x", "y"] * 100, "b": [True, False] * 100})
    model = MADE(hidden_sizes=(32,), max_epochs=150, random_state=0, dtype="float64").fit(frame)
    row = pd.DataFrame({"a": ["z"], "b": [True]})
    with pytest.warns(UnseenWarning):
        assert np.exp(model.score_samples(row, given=["b"]))[0] >= 0.1 / 202
    assert model.predict_proba(row, target="a").sum() == pytest.approx(1)


def test_a_list_of_values_has_a_bucket() -> None:
    field = infer(["S", "M"], ["S", "M", "L"], unseen="other")
    assert (field.values, field.kind) == (("S", "M", "L"), "categorical")
    assert field.column == Categorical(4, field.ordered, 0.1 / 4)


def test_numbers_and_truth_values_have_no_bucket() -> None:
    assert not infer([1, 2, 3] * 20, unseen="other").bucket
    assert infer([True, False], unseen="other").kind == "binary"


def test_where_all_values_are_rare_all_are_kept() -> None:
    assert infer(["a", "b", "c"], unseen="other").values == ("a", "b", "c")
    assert infer(["a", "a", OTHER, "b", "b"], unseen="other").values == ("a", "b")


def test_the_error_for_many_texts_has_a_remedy() -> None:
    random = np.random.default_rng(0)
    city = [f"city {d}" for d in random.geometric(0.002, 20_000)]
    assert len(set(city)) > 1000
    with pytest.raises(DataError, match=r"distinct values, more than 1000; unseen='other' keeps the most frequent"):
        infer(city)
    field = infer(city, unseen="other")
    assert len(field.values) == 998
    assert {f"city {d}" for d in range(1, 300)} <= set(field.values)
    with pytest.raises(DataError, match="300000 texts in 300000 rows are different, so it looks like an identifier"):
        infer([f"row {d}" for d in range(300_000)])


@pytest.mark.parametrize("reserved", [0.0, 0.01, 0.3])
def test_a_reserved_share_is_part_of_one(reserved) -> None:
    kind = Categorical(4, reserved=reserved)
    units = 3 * torch.randn(5, 4, dtype=torch.float64)
    probability = torch.stack([kind.log_prob(units, torch.full((5,), float(k))) for k in range(4)], dim=1).exp()
    assert torch.allclose(probability.sum(1), torch.ones(5, dtype=torch.float64))
    assert (probability[:, 3] >= reserved).all()
    grid = ((torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000).expand(5, -1)
    drawn = kind.draw(units.unsqueeze(1).expand(5, 10_000, 4), grid)
    shown = probability[:, : kind.cardinality]  # without a reserved one, which is never drawn
    shown = shown / shown.sum(1, keepdim=True)
    for k in range(4):
        expected = shown[:, k] if k < kind.cardinality else torch.zeros(5, dtype=torch.float64)
        assert torch.allclose((drawn == k).double().mean(1), expected, atol=2e-4)
    assert torch.equal(kind.mode(units), shown.argmax(1).double())
    with pytest.raises(ValueError, match="'reserved' should be at least 0 and below 1"):
        Categorical(3, reserved=1.0)


def test_a_run_of_an_earlier_version_is_resumed_with_its_own_schema(tmp_path, monkeypatch) -> None:
    """What columns are inferred to be may get better; a run that was begun keeps what it was begun with."""
    rows = pd.DataFrame({"debt": np.where(np.arange(200) % 2, 0, amounts(200))})
    with monkeypatch.context() as before:
        before.setattr("made.tables.infer_schema._points", lambda *_: ())
        MADE(**SMALL, max_epochs=1).fit(rows, resume_from=tmp_path / "run")
    model = MADE(**SMALL, max_epochs=2).fit(rows, resume_from=tmp_path / "run")
    assert model.n_epochs_ == 2
    assert model.model_.schema.fields[0].column.atoms == ()
    assert MADE(**SMALL, max_epochs=0).fit(rows).model_.schema.fields[0].column.atoms == (0,)


@pytest.mark.parametrize("step", [0.25, 0.5, 0.1, 0.05, 0.01, 0.001, 5.0, 25.0])
def test_decimal_grids_are_found(step) -> None:
    counts = np.random.default_rng(0).integers(300, 900, 400)
    values = counts / round(1 / step) if step < 1 else counts * step
    assert numeric(infer(values)).step == step
    assert numeric(infer(values.astype(np.float32))).step == step


TENTHS = np.append(np.random.default_rng(0).integers(0, 90, 400), [16] * 100) / 10


@pytest.mark.parametrize(
    "values",
    [
        TENTHS + 10 - 10,
        [float(f"{each:.15g}") for each in TENTHS.astype(np.float32)],
    ],
    ids=["computed", "single precision written with 15 digits"],
)
def test_grids_are_found_in_spite_of_rounding(values) -> None:
    table = Table.of(np.array(values)[:, None])
    field = Schema.infer(table, unseen="other").fields[0]
    assert numeric(field).step == 0.1
    codes = Schema([field], named=False).encode(table)[:, 0]
    assert (codes == np.round(codes, 1)).all()
    assert np.abs(codes - values).max() < 1e-6
    assert field.column.atoms == (1.6,)
    assert (codes == 1.6).sum() == (TENTHS == 1.6).sum()


def test_tiny_numbers_are_not_multiples_of_a_large_step() -> None:
    assert numeric(infer([1e-9, 3e-9, 1e6])).step == 0


def test_numbers_that_are_mostly_whole_are_on_the_finer_grid() -> None:
    random = np.random.default_rng(0)
    values = random.integers(0, 200, 400) + np.where(random.random(400) < 0.1, 0.5, 0.0)
    assert numeric(infer(values)).step == 0.5


def test_samples_lie_on_a_decimal_grid() -> None:
    prices = np.random.default_rng(0).integers(100, 9999, 300) / 100
    model = MADE(**SMALL, max_epochs=2).fit(pd.DataFrame({"price": prices, "other": prices > 50}))
    drawn = model.sample(50)["price"].to_numpy()
    assert (drawn == np.round(drawn, 2)).all()  # the nearest doubles of decimal fractions


def test_numbers_are_encoded_between_their_quantiles() -> None:
    values = np.random.default_rng(0).normal(0, 1, 4000)
    knots = np.array(numeric(infer(values)).knots)
    assert len(knots) == 17
    assert np.allclose([(values < knot).mean() for knot in knots], np.linspace(0, 1, 17), atol=0.002)


def test_a_few_rows_have_no_knots() -> None:
    assert numeric(infer(np.random.default_rng(0).normal(0, 1, 300))).knots == ()


def test_few_numbers_of_which_one_is_frequent_have_no_list() -> None:
    areas = np.array([0.0] * 2336 + [17.0, 40.0, 112.0, 150.0, 321.0, 405.0, 560.0, 811.0])
    field = infer(areas)
    assert field.kind == "numeric"
    assert field.column.atoms == (0.0,)


@pytest.mark.parametrize("extrapolate", [False, True])
def test_means_lie_within_the_range_of_training_unless_extrapolated(extrapolate) -> None:
    field = infer(amounts(500), extrapolate=extrapolate)
    units = field.column.initial().double()
    units[field.column.components : 2 * field.column.components] += 40.0  # far beyond all values
    most = amounts(500).max()
    mean = field.column.outer(field.column.mean(units)).item()
    summary = field.column.summary(torch.zeros(1, 1).double(), units.reshape(1, 1, -1), ()).mean.item()
    assert (mean > 2 * most, summary > 2 * most) == (extrapolate, extrapolate)
    assert extrapolate or max(mean, summary) <= most * (1 + 1e-9)
