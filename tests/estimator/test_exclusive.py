"""A table with one-hot groups: what a user can ask of it agrees with the probabilities of all its rows."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from made import MADE, ModelError
from made.model.manifest import FORMAT, Manifest, Written
from made.model.model import Model

SMALL = {"hidden_sizes": (16,), "max_epochs": 8, "evaluation_masks": 3, "random_state": 0}
NAN = float("nan")


def table(rows: int = 400) -> np.ndarray:
    """Two groups, of three and of two columns; the second follows from the first; and a column by itself."""
    random = np.random.default_rng(0)
    first, alone = random.integers(4, size=rows), random.random(rows) < 0.3
    second = np.where(random.random(rows) < 0.8, first % 3, random.integers(3, size=rows))
    return np.column_stack([np.eye(4)[first][:, 1:], alone, np.eye(3)[second][:, 1:]]).astype(float)


ROWS = table()
WORLDS = np.array(list(product([0.0, 1.0], repeat=6)))


@pytest.fixture(scope="module")
def model() -> MADE:
    return MADE(**SMALL).fit(ROWS)


def test_groups_are_found(model: MADE) -> None:
    config = model.model_.config
    assert config.exclusive == {"sizes": [3, 1, 2], "rows": config.data.rows}
    assert config.parameters["exclusive"] == "auto"
    assert model.model_.network.connectivities.positions == 3


@pytest.mark.parametrize(
    "options",
    [{"exclusive": "none"}, {"masks": 1}, {"masks": 3}, {"columns": ["binary"] * 5 + ["categorical"]}],
    ids=str,
)
def test_there_are_no_groups(options: dict[str, object]) -> None:
    found = MADE(**SMALL | {"max_epochs": 1} | options).fit(ROWS)
    assert found.model_.config.exclusive is None
    assert "exclusive" not in found.model_.config.to_json()


def test_independent_columns_are_in_no_groups() -> None:
    rows = (np.random.default_rng(0).random((300, 5)) < 0.5).astype(float)
    assert MADE(**SMALL | {"max_epochs": 1}).fit(rows).model_.config.exclusive is None


def test_a_single_pair_among_many_columns_is_no_group() -> None:
    random = np.random.default_rng(0)
    pair = np.eye(3)[random.integers(3, size=300)][:, 1:]
    for others, sizes in ((7, [2, *[1] * 7]), (12, None)):
        rows = np.column_stack([pair, random.random((300, others)) < 0.5]).astype(float)
        found = MADE(**SMALL | {"max_epochs": 1}).fit(rows).model_.config.exclusive
        assert (None if found is None else found["sizes"]) == sizes


def test_missing_values_are_no_ones() -> None:
    rows = ROWS.copy()
    rows[np.random.default_rng(1).random(rows.shape) < 0.2] = NAN
    found = MADE(**SMALL).fit(rows)
    assert found.model_.config.exclusive["sizes"] == [3, 1, 2]
    assert np.isfinite(found.score_samples(rows)).all()


def test_all_rows_have_probabilities_that_sum_to_one(model: MADE) -> None:
    p = np.exp(model.score_samples(WORLDS))
    assert p.sum() == pytest.approx(1, abs=1e-5)
    allowed = (WORLDS[:, :3].sum(axis=1) <= 1) & (WORLDS[:, 4:].sum(axis=1) <= 1)
    assert p[allowed].sum() > 0.95


@pytest.mark.parametrize("options", [{}, {"segments": 1, "whole_rows": 0.5}, {"hidden_sizes": (8, 8)}], ids=str)
def test_groups_are_learned_better_than_columns(options: dict[str, object]) -> None:
    train, test = table(600)[:300], table(600)[300:]
    settings = SMALL | {"max_epochs": 30} | options
    grouped, single = (
        MADE(**settings, exclusive=each).fit(train).score_samples(test).mean() for each in ("auto", "none")
    )
    assert grouped > single


def test_a_question_has_the_probability_of_its_rows(model: MADE) -> None:
    asked = model.probability("P(x0 = 1 | x4 = 1)").probability
    found = model.predict_proba(np.array([[NAN, NAN, NAN, NAN, 1.0, NAN]]), target="x0")[0, 1]
    assert asked == pytest.approx(found, abs=1e-5)
    either = model.probability("P(x0 = 1 or x1 = 1 | x3 = 1)").probability
    apart = [model.probability(f"P(x{d} = 1 | x3 = 1)").probability for d in (0, 1)]
    both = model.probability("P(x0 = 1 and x1 = 1 | x3 = 1)").probability
    assert either == pytest.approx(sum(apart) - both, abs=2 / len(ROWS))  # but for a second one


def test_samples_are_exclusive(model: MADE) -> None:
    drawn = model.sample(3000, random_state=1)
    assert (drawn[:, :3].sum(axis=1) > 1).mean() < 0.02
    assert (drawn[:, 4:].sum(axis=1) > 1).mean() < 0.02
    assert np.abs(drawn.mean(axis=0) - ROWS.mean(axis=0)).max() < 0.08


def test_a_group_with_a_one_is_completed_with_zeros(model: MADE) -> None:
    known = np.array([[NAN, 1.0, NAN, NAN, NAN, NAN], [1.0, NAN, NAN, 0.0, 0.0, NAN]])
    for strategy in ("mode", "sample"):
        filled = model.impute(known, strategy=strategy)
        assert (filled[:, :3].sum(axis=1) == 1).all()
        assert (filled[~np.isnan(known)] == known[~np.isnan(known)]).all()


def test_a_second_one_is_odd(model: MADE) -> None:
    row = np.array([[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]])
    assert model.denoise(row, error=0.05)[0, :3].sum() <= 1
    surprise = model.model_.surprise_matrix(row)[0]
    assert surprise[:3].max() > surprise[3:].max()


def test_saving_and_loading_keep_every_answer(model: MADE, tmp_path) -> None:
    model.save(tmp_path / "model")
    loaded = MADE.load(tmp_path / "model")
    assert loaded.get_params()["exclusive"] == "auto"
    some = np.where(np.random.default_rng(0).random(WORLDS.shape) < 0.3, NAN, WORLDS)
    for rows in (WORLDS, some):
        assert (loaded.score_samples(rows) == model.score_samples(rows)).all()
    assert (loaded.sample(20, random_state=3) == model.sample(20, random_state=3)).all()


def test_a_run_is_resumed_exactly(tmp_path) -> None:
    settings = SMALL | {"schedule": "constant"}
    whole = MADE(**settings).fit(ROWS)
    MADE(**settings | {"max_epochs": 3}).fit(ROWS, resume_from=tmp_path / "run")
    resumed = MADE(**settings).fit(ROWS, resume_from=tmp_path / "run")
    assert (resumed.score_samples(WORLDS) == whole.score_samples(WORLDS)).all()


def test_an_updated_model_keeps_its_groups(model: MADE, tmp_path) -> None:
    updated = MADE.of(model.model_).update(table(500)[400:], epochs=1)
    assert updated.model_.config.exclusive == model.model_.config.exclusive
    updated.save(tmp_path / "model")
    loaded = MADE.load(tmp_path / "model")
    assert (loaded.score_samples(WORLDS) == updated.score_samples(WORLDS)).all()


def test_a_view_conditions_on_part_of_a_group(model: MADE, tmp_path) -> None:
    view = model.condition({"x0": 1.0})
    drawn = np.asarray(view.sample(500, random_state=0))
    assert drawn.shape == (500, 5)
    assert (drawn[:, :2].sum(axis=1) > 0).mean() < 0.05
    view.save(tmp_path / "view")
    assert (Model.load(tmp_path / "view").score_samples(drawn) == view.score_samples(drawn)).all()


def test_every_conditional_is_that_of_a_prediction(model: MADE) -> None:
    found = model.conditionals({"x1": 0.0, "x4": 1.0})
    row = np.array([[NAN, 0.0, NAN, NAN, 1.0, NAN]])
    for name in ("x0", "x2", "x3", "x5"):
        assert found.columns[name].probabilities[1] == pytest.approx(
            model.predict_proba(row, target=name)[0, 1], abs=1e-5
        )


@pytest.mark.parametrize(
    "exclusive",
    [
        {"sizes": [3, 3], "rows": 10},
        {"sizes": [3, 1, 1], "rows": 10},
        {"sizes": [1] * 6, "rows": 10},
        {"sizes": [3, 1, 2]},
        {"sizes": [3, 1, 2], "rows": 0},
        {"sizes": [3, True, 2], "rows": 10},
        [3, 1, 2],
        "auto",
    ],
    ids=str,
)
def test_forged_groups_are_refused(model: MADE, exclusive: object, tmp_path) -> None:
    folder = tmp_path / "model"
    model.save(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"exclusive": exclusive}))
    manifest = Manifest.read(folder)
    files = manifest.files | {"config.json": Written.of(folder / "config.json")}
    (folder / "manifest.json").write_bytes(Manifest.of(True, files).text)
    with pytest.raises(ModelError):
        MADE.load(folder)


def test_older_versions_refuse_the_folder(model: MADE, tmp_path) -> None:
    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "manifest.json").read_text())["format"] == FORMAT >= 4
