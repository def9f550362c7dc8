"""Training a fitted model on new rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from made import MADE
from made.errors import QuestionError, UnseenWarning
from made.model.update import updated

TINY = {"hidden_sizes": (32,), "max_epochs": 60, "evaluation_masks": 4, "random_state": 0}


def rows(count: int, shift: float, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    x = generator.normal(shift, 1, count)
    frame = {"x": x, "y": x + generator.normal(0, 0.3, count), "kind": np.where(x > shift, "high", "low")}
    return pd.DataFrame(frame).mask(generator.random((count, 3)) < 0.05)


OLD, NEW, OLD_TEST, NEW_TEST = rows(400, 0, 0), rows(200, 3, 1), rows(200, 0, 2), rows(200, 3, 3)


@pytest.fixture(scope="module")
def made() -> MADE:
    return MADE(**TINY).fit(OLD)


def test_new_rows_are_learned_and_old_ones_are_not_forgotten(made) -> None:
    before, codes = made.model_, made.model_.codes(NEW)
    with_replay, without = (updated(before, codes, replay=each) for each in (True, False))
    assert with_replay.score(NEW_TEST) > before.score(NEW_TEST) + 1
    assert without.score(OLD_TEST) < before.score(OLD_TEST) - 1
    assert with_replay.score(OLD_TEST) > without.score(OLD_TEST) + 0.7


def test_rows_of_the_same_distribution_do_not_make_the_model_worse(made) -> None:
    before = made.model_
    after = updated(before, before.codes(rows(60, 0, 5)), epochs=40)
    assert after.score(OLD_TEST) > before.score(OLD_TEST) - 0.1


def test_the_model_before_does_not_change(made) -> None:
    weights = {name: each.clone() for name, each in made.model_.network.state_dict().items()}
    after = updated(made.model_, made.model_.codes(NEW), epochs=1)
    assert all(torch.equal(weights[name], each) for name, each in made.model_.network.state_dict().items())
    assert any(not torch.equal(weights[name], each) for name, each in after.network.state_dict().items())
    assert after.config.data.rows == made.model_.config.data.rows + 200
    assert after.config.data.sha256 != made.model_.config.data.sha256


def test_an_updated_model_is_a_model(made, tmp_path) -> None:
    model = updated(made.model_, made.model_.codes(NEW), epochs=2)
    model.save(tmp_path / "model")
    again = MADE.load(tmp_path / "model")
    assert np.array_equal(again.score_samples(NEW_TEST), model.score_samples(NEW_TEST))
    assert again.n_epochs_ == 2
    assert model.sample(200, missing=True).isna().any().any()


def test_an_update_is_deterministic(made) -> None:
    first, second = (updated(made.model_, made.model_.codes(NEW), epochs=2) for _ in range(2))
    assert np.array_equal(first.score_samples(NEW_TEST), second.score_samples(NEW_TEST))


def test_partial_fit_is_fit_and_then_update() -> None:
    short = TINY | {"max_epochs": 2}
    one = MADE(**short).partial_fit(OLD).partial_fit(NEW)
    other = MADE(**short).fit(OLD).update(NEW)
    assert np.array_equal(one.score_samples(OLD_TEST), other.score_samples(OLD_TEST))


def test_new_categories_are_others(made) -> None:
    twin = MADE.of(made.model_)
    odd = NEW.assign(kind="odd")
    with pytest.warns(UnseenWarning, match="200 of 'kind'"):
        twin.update(odd)
    assert twin.classes("kind").tolist() == ["high", "low"]
    with pytest.warns(UnseenWarning):
        after, before = twin.score(odd), made.score(odd)
    assert after > before + 3


def test_weights_and_targets() -> None:
    X, y = OLD.drop(columns="kind"), OLD["kind"].fillna("low")
    made = MADE(**TINY | {"max_epochs": 2}).fit(X, y)
    weights = np.arange(200) % 2
    twice = MADE.of(made.model_).update(NEW[["x", "y"]], NEW["kind"].fillna("low"), weights, epochs=1)
    half = MADE.of(made.model_).update(NEW[["x", "y"]][1::2], NEW["kind"].fillna("low")[1::2], epochs=1)
    assert np.array_equal(twice.score_samples(NEW[["x", "y"]]), half.score_samples(NEW[["x", "y"]]))
    assert twice.target_ == "kind"


def test_invalid_updates_are_refused(made) -> None:
    with pytest.raises(NotFittedError):
        MADE().update(NEW)
    with pytest.raises(ValueError, match="'epochs' should be a whole number"):
        made.update(NEW, epochs=0)
    with pytest.raises(QuestionError, match="a view of a model cannot be trained"):
        MADE.of(made.marginal(["x", "y"])).update(NEW[["x", "y"]])
