"""A target y, which is one more column of the model."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from made import MADE
from made.errors import DataError, QuestionError
from made.tables.table import with_target

SMALL = {"hidden_sizes": (16,), "evaluation_masks": 2, "max_epochs": 20, "random_state": 0}
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 2))
Y = (X[:, 0] > 0).astype(int) + (X[:, 0] > 1)
LABELS = np.array(["low", "mid", "high"])[Y]


@pytest.fixture(scope="module")
def model() -> MADE:
    return MADE(**SMALL).fit(X, LABELS)


def test_predict_needs_a_target() -> None:
    model = MADE(**{**SMALL, "max_epochs": 0}).fit(X)
    for ask in (model.predict, model.predict_quantiles):
        with pytest.raises(QuestionError, match=r"there is no target: name a column.*or give 'y' to fit"):
            ask(X)
    assert not hasattr(model, "classes_")


def test_y_is_predicted(model) -> None:
    assert model.target_ == "x2"
    assert model.n_features_in_ == 2
    assert model.classes_.tolist() == ["high", "low", "mid"]
    found = model.predict_proba(X)
    assert found.shape == (300, 3)
    assert model.predict(X).tolist() == model.classes_[found.argmax(axis=1)].tolist()
    assert (model.predict(X) == LABELS).mean() > 0.8


def test_rows_may_have_the_target_or_not(model) -> None:
    both = with_target(X, LABELS)
    joint, marginal = model.score_samples(both), model.score_samples(X)
    log_p = np.log(model.predict_proba(X)[np.arange(300), np.searchsorted(model.classes_, LABELS)])
    assert np.corrcoef(joint - marginal, log_p)[0, 1] > 0.5  # not one: these are of different orderings
    assert model.score(X, LABELS) == pytest.approx(joint.mean(), abs=1e-5)
    assert model.score(X) == pytest.approx(marginal.mean(), abs=1e-5)
    with pytest.raises(DataError, match="X has 1 features, but MADE is expecting 2"):
        model.score_samples(X[:, :1])


def test_what_comes_back_has_the_columns_that_went_in(model) -> None:
    missing = X.copy()
    missing[::3, 0] = np.nan
    assert model.transform(missing).shape == (300, 2)
    assert model.surprise(X).shape == (300, 2)
    assert model.denoise(X[:5]).shape == (5, 2)
    filled, sure = model.impute(missing, return_uncertainty=True)
    assert filled.shape == sure.low.shape == (300, 2)
    assert model.sample(4).shape == (4, 3)  # new rows have a target, too


def test_a_saved_model_keeps_its_target(model, tmp_path) -> None:
    model.save(tmp_path / "model")
    again = MADE.load(tmp_path / "model")
    assert again.target_ == "x2"
    assert again.n_features_in_ == 2
    assert again.predict(X[:9]).tolist() == model.predict(X[:9]).tolist()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_frames(make) -> None:
    frame = make({"a": X[:, 0], "y": X[:, 1]})
    model = MADE(**{**SMALL, "max_epochs": 1}).fit(frame, LABELS)
    assert model.target_ == "target"  # "y" is taken
    assert list(model.feature_names_in_) == ["a", "y"]
    assert len(model.predict(frame)) == 300
    assert list(getattr(model.sample(2), "columns" if make is not pa.table else "column_names")) == ["a", "y", "target"]


def test_a_series_is_known_by_its_name_and_taken_by_place() -> None:
    y = pd.Series(LABELS, index=np.arange(300)[::-1], name="height")
    joined = with_target(pd.DataFrame(X, columns=["a", "b"]), y)
    assert joined.columns.tolist() == ["a", "b", "height"]
    assert joined["height"].tolist() == LABELS.tolist()


@pytest.mark.parametrize("y", [Y[:-1], np.stack([Y, Y], axis=1), pd.DataFrame({"a": Y, "b": Y})])
def test_invalid_targets_are_refused(y) -> None:
    with pytest.raises(DataError, match=r"inconsistent numbers of samples|should be one column"):
        MADE(**SMALL).fit(X, y)


def test_tensors_and_one_column_frames() -> None:
    assert with_target(torch.tensor(X), torch.tensor(Y)).shape == (300, 3)
    assert with_target(X, pd.DataFrame({"a": Y})).shape == (300, 3)


def test_a_number_is_a_target_too() -> None:
    model = MADE(**SMALL).fit(X[:, :1], X[:, 0] * 3 + 1)
    assert np.corrcoef(model.predict(X[:, :1]), X[:, 0])[0, 1] > 0.9
    assert not hasattr(model, "classes_")


def test_pipelines_predict_y() -> None:
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), MADE(**SMALL)).fit(X, LABELS)
    assert (pipeline.predict(X) == LABELS).mean() > 0.8


def test_cross_validation_survives_a_count_that_a_fold_lacks() -> None:
    visits = np.arange(90) % 5
    visits[7] = 40
    rows = np.column_stack([visits, X[:90, 0]])
    with pytest.warns(UserWarning, match="never saw"):
        scores = cross_val_score(make_pipeline(SimpleImputer(), MADE(**SMALL)), rows, LABELS[:90], cv=3)
    assert np.isfinite(scores).all()
