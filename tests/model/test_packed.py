"""Copies of a fitted model hold the bytes of its folder, and are read by the reader that checks a folder."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from made import MADE
from made.errors import ModelError

GENERATOR = np.random.default_rng(0)
FRAME = pd.DataFrame({"colour": GENERATOR.choice(["blue", "green"], 100), "height": GENERATOR.normal(170, 8, 100)})
FRAME.loc[::9, "height"] = np.nan


@pytest.fixture(scope="module")
def fitted():
    return MADE(hidden_sizes=(8,), max_epochs=2, evaluation_masks=2, random_state=0).fit(FRAME)


def through_joblib(estimator, folder):
    joblib.dump(estimator, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


COPIES = {
    "pickle": lambda each, folder: pickle.loads(pickle.dumps(each)),
    "joblib": through_joblib,
    "copy": lambda each, folder: copy.copy(each),
    "deepcopy": lambda each, folder: copy.deepcopy(each),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("face", ["MADE", "Model"])
def test_a_copy_answers_the_same(fitted, face, how, tmp_path) -> None:
    each = fitted if face == "MADE" else fitted.model_
    twin = COPIES[how](each, tmp_path)
    assert type(twin) is type(each)
    assert np.array_equal(twin.score_samples(FRAME), each.score_samples(FRAME))
    assert twin.sample(5, random_state=1).equals(each.sample(5, random_state=1))


def test_a_copy_keeps_the_number_of_masks_and_the_state_of_training(fitted) -> None:
    model = fitted.model_.with_ensemble([1], 1)
    twin = pickle.loads(pickle.dumps(model))
    assert (twin.ensemble.masks, twin.ensemble.segments) == ([1], 1)
    assert twin.state.update == model.state.update
    assert len(twin.history) == 2


def test_a_pickle_of_a_model_is_the_files_of_its_folder(fitted, tmp_path) -> None:
    fitted.save(tmp_path / "model")
    _, (files, *_) = fitted.model_.__reduce__()
    assert files == {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir()}
    assert b"torch" not in pickle.dumps(fitted.model_).replace(files["README.md"], b"")


def test_a_damaged_copy_is_refused_as_a_damaged_folder_is(fitted) -> None:
    unpack, (files, *rest) = fitted.model_.__reduce__()
    damaged = files | {"config.json": files["config.json"].replace(b'"seed": 0', b'"seed": 1')}
    with pytest.raises(ModelError, match="SHA-256 differs"):
        unpack(damaged, *rest)
    with pytest.raises(ModelError, match="a model folder has no file"):
        unpack({"../config.json": b""}, *rest)


def test_a_clone_of_a_fitted_estimator_is_not_fitted(fitted) -> None:
    twin = clone(fitted)
    assert twin.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        twin.score_samples(FRAME)
