"""Samples with missing values: from every container, after saving and resuming, and on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from command import run, run_json
from made import MADE
from made.errors import QuestionError
from made.io.read import read

RANDOM = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "born": pd.date_range("2000-01-01", periods=150),
        "flag": RANDOM.random(150) < 0.5,
        "count": RANDOM.integers(0, 40, 150),
        "word": RANDOM.choice(["a", "b", "c"], 150),
        "size": RANDOM.normal(size=150),
    }
).convert_dtypes()
TABLE = TABLE.mask(RANDOM.random(TABLE.shape) < 0.2)
SMALL = {"hidden_sizes": (8,), "max_epochs": 1, "evaluation_masks": 2, "random_state": 0}
GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    path = tmp_path_factory.mktemp("missing")
    TABLE.to_csv(path / "rows.csv", index=False)
    MADE(**SMALL).fit(read(path / "rows.csv")).save(path / "model")
    return path


@pytest.mark.parametrize("convert", [lambda table: table, pl.from_pandas, pa.Table.from_pandas])
def test_every_frame_has_missing_values_of_its_own(convert) -> None:
    table = convert(TABLE)
    drawn = MADE(**SMALL).fit(table).sample(200, missing=True)
    assert type(drawn) is type(table)
    frame = drawn if isinstance(drawn, pd.DataFrame) else drawn.to_pandas()
    assert (abs(frame.isna().mean() - 0.2) < 0.15).all()


def test_arrays_have_nan() -> None:
    rows = np.where(RANDOM.random((200, 3)) < 0.3, np.nan, RANDOM.integers(2, size=(200, 3)))
    model = MADE(**SMALL).fit(rows)
    drawn = model.sample(500, missing=True)
    assert (abs(np.isnan(drawn).mean(axis=0) - 0.3) < 0.1).all()
    assert np.array_equal(np.where(np.isnan(drawn), model.sample(500), drawn), model.sample(500))


def test_a_saved_model_draws_the_same(tmp_path) -> None:
    model = MADE(**SMALL).fit(pa.Table.from_pandas(TABLE))
    model.save(tmp_path / "model")
    drawn = model.sample(100, missing=True)
    assert drawn.to_pydict() == MADE.load(tmp_path / "model").sample(100, missing=True).to_pydict()
    assert sum(column.null_count for column in drawn.columns) > 30


def test_what_is_given_stays(home) -> None:
    model = MADE.load(home / "model")
    drawn = model.sample(200, given={"word": "a"}, missing=True).to_pandas()
    assert (drawn["word"] == "a").all()
    assert drawn.isna().any().sum() == 4
    rows = read(home / "rows.csv").slice(0, 100)
    filled, before = model.sample(1, given=rows, missing=True).to_pandas(), rows.to_pandas()
    assert filled[before.notna()].notna().equals(before.notna())


def test_a_resumed_run_learns_the_same(tmp_path) -> None:
    setting = SMALL | {"schedule": "falling"}
    MADE(**setting | {"max_epochs": 4}).fit(TABLE, resume_from=tmp_path / "whole")
    for epochs in (2, 4):
        MADE(**setting | {"max_epochs": epochs}).fit(TABLE, resume_from=tmp_path / "parts")
    assert len({(tmp_path / run / "missing.safetensors").read_bytes() for run in ("whole", "parts")}) == 1


def test_a_folder_without_it_loads_and_says_to_fit_again() -> None:
    model = MADE.load(GOLDEN / "format-2-mixed" / "model")
    assert len(model.sample(3)) == 3
    with pytest.raises(QuestionError, match=r"'missing': .* Fit it again\."):
        model.sample(3, missing=True)


def test_the_command_draws_what_python_draws(home, tmp_path, monkeypatch) -> None:
    """In batches, too."""
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 30)
    run("sample", home / "model", "-n", 100, "--missing", "--seed", 5, "--out", tmp_path / "drawn.parquet")
    drawn = read(tmp_path / "drawn.parquet")
    assert drawn.equals(MADE.load(home / "model").model_.sample(100, missing=True, random_state=5))
    assert sum(column.null_count for column in drawn.columns) > 30
    assert not any(None in row for row in run_json("sample", home / "model", "-n", 50)["rows"])


def test_the_command_says_to_fit_again() -> None:
    result = run("sample", GOLDEN / "format-2-mixed" / "model", "--missing", code=2)
    assert "'--missing': the model has not learned" in result.stderr
