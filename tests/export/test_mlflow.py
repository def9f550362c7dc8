"""The recipe of docs/mlflow.md, executed where MLflow is installed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from made import MADE

PAGE = Path(__file__).parents[2] / "docs" / "mlflow.md"


@pytest.mark.filterwarnings("ignore")  # those of MLflow itself
def test_the_recipe_answers_as_the_model_does(tmp_path, monkeypatch) -> None:
    pytest.importorskip("mlflow", reason="MLflow is not installed: make test-mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    code, recipe = re.findall(r"```py\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (tmp_path / "made_model.py").write_text(code)
    found: dict[str, object] = {}
    exec(compile(recipe, str(PAGE), "exec"), found)
    model, rows = MADE.load("model"), found["rows"]
    np.testing.assert_array_equal(found["log_p"]["log_prob"], model.score_samples(rows))
    np.testing.assert_array_equal(found["jobs"]["job"], model.predict(rows, target="job"))
    assert found["filled"].isna().sum().sum() == 0
    assert not list(tmp_path.rglob("*.pkl"))
    with pytest.raises(ValueError, match="'answer' should be"):
        found["loaded"].predict(rows, params={"answer": "nothing"})
