"""What has a fitted model: whatever takes a model takes any of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from made import MADE, MADEClassifier, MADEImputer, ModelError
from made.estimator import model_of
from made.report.measure import measure
from made.report.privacy import privacy

ROWS = np.random.default_rng(0).integers(0, 3, (100, 3)).astype(float)


@pytest.fixture(scope="module")
def fitted() -> MADE:
    return MADE(hidden_sizes=(8,), max_epochs=1, random_state=0).fit(ROWS)


def test_the_model_of_an_estimator_is_its_own(fitted, tmp_path) -> None:
    model = fitted.model_
    for source in (fitted, model, MADEImputer(fitted), MADEClassifier(model, target=0), MADEImputer(fitted).fit(ROWS)):
        assert model_of(source) is model
    fitted.save(tmp_path / "model")
    for folder in (tmp_path / "model", str(tmp_path / "model")):
        assert np.array_equal(model_of(folder).score_samples(ROWS), model.score_samples(ROWS))


def test_what_has_no_model_says_so(tmp_path) -> None:
    for unfitted in (MADE(), MADEImputer(), MADEClassifier(MADE())):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            model_of(unfitted)
    with pytest.raises((ModelError, FileNotFoundError)):
        model_of(tmp_path)


def test_reports_and_privacy_are_of_an_estimator_as_of_its_model(fitted) -> None:
    assert privacy(fitted, ROWS[:50], ROWS[50:]) == privacy(fitted.model_, ROWS[:50], ROWS[50:])
    assert measure(fitted, ROWS).likelihood == measure(fitted.model_, ROWS).likelihood


def test_graphs_are_of_an_estimator_of_one_job(fitted, tmp_path) -> None:
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    from made.export import to_onnx

    assert to_onnx(MADEClassifier(fitted, target=0), tmp_path / "m.onnx", column=0)["column"] == "x0"
    with pytest.raises(NotFittedError):
        to_onnx(MADE(), tmp_path / "n.onnx")
