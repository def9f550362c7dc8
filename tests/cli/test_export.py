"""`made export`."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from command import run, run_json
from people import fitted_people, people
from portable import evaluate, feed

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "model"
    fitted_people().save(folder)
    return folder


def test_it_writes_log_p_of_a_row(folder, tmp_path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    said = run("export", folder, "--onnx", tmp_path / "m.onnx").stdout
    assert "log p of a row; one input for each of 7 columns." in said
    found = evaluate(tmp_path / "m.onnx", feed(people()))["log_prob"]
    np.testing.assert_allclose(found, fitted_people().score_samples(people()), rtol=1e-5)


def test_it_describes_the_file_in_json(folder, tmp_path) -> None:
    found = run_json("export", folder, "--onnx", tmp_path / "m.onnx", "--column", "wage", "--quantiles", "0.5")
    assert (found["column"], found["quantiles"]) == ("wage", [0.5])
    assert found["bytes"] == (tmp_path / "m.onnx").stat().st_size


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--column", "wages"], "there is no column 'wages'"), (["--quantiles", "5"], "'--quantiles' should be probab")],
)
def test_a_wrong_option_is_refused(folder, tmp_path, options, said) -> None:
    assert said in run("export", folder, "--onnx", tmp_path / "m.onnx", *options, code=2).stderr
    assert not (tmp_path / "m.onnx").exists()


def test_it_says_which_package_it_needs(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    for name in [name for name in sys.modules if name.startswith("made.export")]:
        monkeypatch.delitem(sys.modules, name)
    assert "pip install 'made[onnx]'" in run("export", folder, "--onnx", tmp_path / "m.onnx", code=2).stderr
