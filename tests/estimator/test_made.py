"""The scikit-learn face: its contract, and that it says what the engine says."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import pickle
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from made import MADE, Ensemble, log_prob
from made.errors import DataError, Diverged, QuestionError
from made.model.folder import Folder, add_files, manifest_text
from made.parameters import PARAMETERS, defaults

NAN = np.nan
SMALL = {"hidden_sizes": (16,), "evaluation_masks": 4, "random_state": 0}
GENERATOR = np.random.default_rng(0)
COLOURS = GENERATOR.choice(["blue", "green", "red"], size=300)
FRAME = pd.DataFrame(
    {
        "colour": COLOURS,
        "smoker": GENERATOR.random(300) < 0.4,
        "rooms": GENERATOR.integers(1, 5, size=300),
        "height": 170 + 10 * (COLOURS == "red") + 4 * GENERATOR.standard_normal(300),
        "age": GENERATOR.integers(18, 90, size=300),
    }
)
FRAME.loc[::7, "height"] = NAN
FRAME.loc[::11, "colour"] = None


SHUFFLED = "it shuffles the weighted rows, and batches depend on their order; tests/training/test_weights.py does not"


@parametrize_with_checks(
    [MADE(hidden_sizes=(8,), max_epochs=2, evaluation_masks=2, calibrate=False)],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": SHUFFLED for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_checks_it(estimator, check) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_parameters_are_declared_once_for_python_and_the_command_line() -> None:
    signature = inspect.signature(MADE.__init__).parameters
    assert all(each.kind is each.KEYWORD_ONLY for name, each in signature.items() if name != "self")
    assert {name: each.default for name, each in signature.items() if name != "self"} == defaults()
    assert list(defaults()) == list(PARAMETERS)
    assert all(f"{name}" in (MADE.__doc__ or "") for name in PARAMETERS)


@pytest.fixture(scope="module")
def binary():
    rows = np.random.default_rng(1).integers(2, size=(100, 1)) ^ (np.random.default_rng(2).random((100, 4)) < 0.2)
    return MADE(**SMALL, max_epochs=30, dtype="float64").fit(rows.astype(float))


def worlds(columns: int) -> np.ndarray:
    return np.array(list(itertools.product([0.0, 1.0], repeat=columns)))


def test_probabilities_sum_to_one_and_are_the_engines(binary) -> None:
    log_p = binary.score_samples(worlds(4))
    assert log_p.dtype == np.float64
    assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-8)
    assert np.allclose(log_p, log_prob(Ensemble(binary.model_.network, 4, segments=4), worlds(4)).numpy())
    assert binary.score(worlds(4)) == pytest.approx(log_p.mean())


def test_marginals_and_conditionals_sum_to_one(binary) -> None:
    marginal = binary.score_samples([[NAN, a, NAN, b] for a, b in worlds(2)])
    assert np.exp(marginal).sum() == pytest.approx(1, abs=1e-8)
    conditional = np.exp(binary.score_samples(worlds(4), given=[1, "x3"])).reshape(2, 2, 2, 2).sum(axis=(0, 2))
    assert conditional == pytest.approx(np.ones((2, 2)), abs=1e-8)


def test_given_columns_have_to_be_there(binary) -> None:
    with pytest.raises(QuestionError, match=r"row 0, column 1 \('x1'\) is given, but its value is NaN"):
        binary.score_samples([[1, NAN, 0, 1]], given=[1])
    with pytest.raises(QuestionError, match="there is no column 'age'"):
        binary.score_samples(worlds(4), given=["age"])


def test_predictions_are_conditionals(binary) -> None:
    rows = np.array([[1, 0, NAN, 1], [NAN, NAN, 1, 0]])
    for target in range(4):
        found = binary.predict_proba(rows, target=target)
        assert found.sum(axis=1) == pytest.approx([1, 1])
        for value in (0, 1):
            asked = rows.copy()
            asked[:, target] = value
            given = [[d for d in range(4) if d != target and not np.isnan(row[d])] for row in rows]
            expected = [binary.score_samples(asked[[i]], given=given[i])[0] for i in range(2)]
            assert found[:, value] == pytest.approx(np.exp(expected))
    assert binary.classes(0).tolist() == [0, 1]


def test_samples_follow_the_probabilities(binary) -> None:
    drawn = binary.sample(20_000, random_state=1)
    counts = np.bincount(drawn.astype(int) @ [8, 4, 2, 1], minlength=16) / 20_000
    assert counts == pytest.approx(np.exp(binary.score_samples(worlds(4))), abs=0.015)


def test_samples_follow_the_conditionals_of_given_values(binary) -> None:
    known = binary.sample(20_000, given={"x1": 1, 3: 0}, random_state=1)
    assert (known[:, [1, 3]] == [1, 0]).all()
    rows = np.array([[a, 1, b, 0] for a, b in worlds(2)])
    expected = np.exp(binary.score_samples(rows, given=[1, 3]))
    assert np.bincount(known[:, [0, 2]].astype(int) @ [2, 1], minlength=4) / 20_000 == pytest.approx(expected, abs=0.02)


def test_samples_are_drawn_for_each_given_row(binary) -> None:
    both = binary.sample(3, given=[[1, NAN, NAN, 0], [0, 0, 0, NAN]], random_state=1)
    assert both.shape == (6, 4)
    assert (both[:3, [0, 3]] == [1, 0]).all()
    assert (both[3:, :3] == 0).all()


def test_samples_are_those_of_the_seed(binary) -> None:
    assert np.array_equal(binary.sample(5), binary.sample(5))
    assert not np.array_equal(binary.sample(50), binary.sample(50, random_state=3))


def test_cold_samples_are_of_fewer_kinds(binary) -> None:
    cold, warm = (binary.sample(2000, temperature=each, random_state=0) for each in (0.05, 1.0))
    assert len(np.unique(cold, axis=0)) < len(np.unique(warm, axis=0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"temperature": 0}, "'temperature' should be above 0"),
        ({"n_samples": 0}, "'n_samples' should be a whole number"),
    ],
)
def test_samples_that_cannot_be_drawn(binary, wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        binary.sample(**wrong)


INCOMPLETE = np.array([[1, NAN, 1, 1], [0, 1, NAN, NAN], [0, 0, 1, 0]])


@pytest.mark.parametrize("strategy", ["sample", "mode", "mean"])
def test_missing_values_are_filled_and_nothing_else_changes(binary, strategy) -> None:
    filled, missing = binary.impute(INCOMPLETE, strategy=strategy), np.isnan(INCOMPLETE)
    assert not np.isnan(filled).any()
    assert np.array_equal(filled[~missing], INCOMPLETE[~missing])


def test_the_mode_is_the_most_likely_value(binary) -> None:
    mode = binary.impute(INCOMPLETE, strategy="mode")
    assert mode[0, 1] == binary.predict_proba(INCOMPLETE, target=1)[0].argmax()
    assert np.array_equal(binary.transform(INCOMPLETE), mode)


def test_imputations_follow_the_conditionals(binary) -> None:
    many = binary.impute(np.tile(INCOMPLETE[:1], (2000, 1)), random_state=0)
    assert many[:, 1].mean() == pytest.approx(binary.predict_proba(INCOMPLETE[:1], target=1)[0, 1], abs=0.04)
    pairs = binary.impute(np.tile(INCOMPLETE[1:2], (4000, 1)), random_state=0)[:, 2:]
    asked = np.array([[0, 1, a, b] for a, b in worlds(2)])
    expected = np.exp(binary.score_samples(asked, given=[0, 1]))
    assert np.bincount(pairs.astype(int) @ [2, 1], minlength=4) / 4000 == pytest.approx(expected, abs=0.06)


def test_there_are_as_many_imputations_as_asked_for(binary) -> None:
    assert binary.impute(INCOMPLETE, n_draws=5).shape == (5, 3, 4)
    with pytest.raises(ValueError, match="has only one result"):
        binary.impute(INCOMPLETE, strategy="mode", n_draws=2)
    with pytest.raises(ValueError, match="'strategy' should be one of"):
        binary.impute(INCOMPLETE, strategy="median")


def test_surprise_is_the_mean_over_masks_of_each_factor(binary) -> None:
    rows = np.array([[1, 0, 1, 1], [0, NAN, 1, 0]])
    surprise = binary.surprise(rows)
    assert np.isnan(surprise[1, 1])
    network = binary.model_.network
    each = [-log_prob(Ensemble(network, [number], segments=4), rows).numpy() for number in range(4)]
    mean = np.average(each, axis=0, weights=network.connectivities.weights)
    assert np.nansum(surprise, axis=1) == pytest.approx(mean)
    assert (np.nansum(surprise, axis=1) >= -binary.score_samples(rows) - 1e-12).all()


@pytest.fixture(scope="module", params=["pandas", "polars", "pyarrow"])
def framed(request, tmp_path_factory):
    """A frame, a model of it, and the same model from its folder."""
    frame = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "pyarrow": pa.Table.from_pandas(FRAME)}[request.param]
    model = MADE(**SMALL, max_epochs=2).fit(frame)
    model.save(path := tmp_path_factory.mktemp("framed") / "model")
    return frame, model, MADE.load(path)


def as_polars(frame) -> pl.DataFrame:
    return pl.from_arrow(frame) if isinstance(frame, pa.Table) else pl.DataFrame(frame)


def test_the_columns_of_a_frame_are_known(framed) -> None:
    _, model, _ = framed
    kinds = [field.kind for field in model.model_.schema.fields]
    assert kinds == ["categorical", "binary", "ordinal", "numeric", "numeric"]
    assert list(model.feature_names_in_) == list(FRAME.columns)
    assert model.classes("colour").tolist() == ["blue", "green", "red"]


@pytest.mark.parametrize("which", [1, 2], ids=["fitted", "loaded"])
def test_samples_are_frames_of_the_same_types(framed, which) -> None:
    drawn = framed[which].sample(7, given={"colour": "red", "age": 40})
    assert type(drawn) is type(framed[0])
    table = as_polars(drawn)
    assert table.columns == list(FRAME.columns)
    assert (table["colour"].to_list(), table["age"].to_list()) == (["red"] * 7, [40] * 7)
    assert table["smoker"].dtype == pl.Boolean
    assert table["rooms"].dtype.is_integer()


def test_a_loaded_model_of_a_frame_without_names_draws_frames(tmp_path) -> None:
    rows = pd.DataFrame({0: np.arange(40) % 2, 1: np.arange(40), 2: ["a", "b"] * 20})
    model = MADE(hidden_sizes=(4,), max_epochs=1, columns={1: "drop"}, random_state=0).fit(rows)
    model.save(tmp_path / "model")
    drawn, again = model.sample(5), MADE.load(tmp_path / "model").sample(5)
    assert (list(again.columns), again.dtypes.tolist()) == ([0, 2], drawn.dtypes.tolist())
    assert again.to_numpy().tolist() == drawn.to_numpy().tolist()


@pytest.mark.parametrize("which", [1, 2], ids=["fitted", "loaded"])
def test_answers_for_a_frame_are_frames(framed, which) -> None:
    frame, model = framed[0], framed[which]
    assert type(model.impute(frame)) is type(model.surprise(frame)) is type(frame)
    assert [type(each) for each in model.impute(frame, n_draws=2)] == [type(frame)] * 2


def test_a_loaded_model_answers_the_same(framed) -> None:
    frame, model, again = framed
    assert np.array_equal(model.score_samples(frame), again.score_samples(frame))
    assert as_polars(model.sample(5)).equals(as_polars(again.sample(5)))


def test_only_columns_with_a_list_of_values_have_probabilities(framed) -> None:
    frame, model, _ = framed
    assert model.predict_proba(frame, target="colour").shape == (300, 3)
    with pytest.raises(QuestionError, match="column 'height' is numeric"):
        model.predict_proba(frame, target="height")


def test_a_target_may_be_absent_from_the_frame() -> None:
    model = MADE(**SMALL, max_epochs=2).fit(FRAME)
    without = model.predict_proba(FRAME.drop(columns="smoker"), target="smoker")
    assert np.array_equal(without, model.predict_proba(FRAME, target="smoker"))
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(FRAME.drop(columns="smoker"))


def test_an_initialized_model_answers_everything() -> None:
    model = MADE(**SMALL, max_epochs=0).fit(FRAME)
    assert model.n_epochs_ == 0
    assert np.isfinite(model.score_samples(FRAME)).all()
    assert np.isfinite(model.score_samples(FRAME[["colour", "smoker", "rooms", "height", "age"]], given=["age"])).all()
    assert len(model.sample(3)) == 3
    assert not model.impute(FRAME).isna().any().any()
    assert model.predict_proba(FRAME, target="rooms").sum(axis=1) == pytest.approx(np.ones(300), abs=1e-5)


@pytest.mark.parametrize("masks", [1, 3])
def test_a_list_of_masks_says_what_it_cannot_answer(masks) -> None:
    rows = np.random.default_rng(0).integers(2, size=(60, 4)).astype(float)
    model = MADE(**SMALL, masks=masks, max_epochs=1, ordering="natural", resample="degrees").fit(rows)
    assert np.exp(model.score_samples(worlds(4))).sum() == pytest.approx(1, abs=1e-5)
    assert np.isfinite(model.score_samples([[1, 0, NAN, NAN]])).all()
    with pytest.raises(QuestionError, match="unlimited masks"):
        model.score_samples([[NAN, 0, 1, 1]])
    with pytest.raises(DataError, match="masks='unlimited'"):
        MADE(**SMALL, masks=masks, max_epochs=1).fit(np.where(rows == rows[0, 0], rows, NAN))


def test_it_works_with_the_tools_of_scikit_learn(tmp_path) -> None:
    rows = np.random.default_rng(0).standard_normal((80, 3))
    rows[:, 1] += rows[:, 0]
    pipeline = make_pipeline(StandardScaler(), MADE(**SMALL, max_epochs=3))
    assert np.isfinite(pipeline.fit(rows).score(rows))
    search = GridSearchCV(MADE(**SMALL, max_epochs=3), {"dropout": [0.0, 0.3]}, cv=2).fit(rows)
    assert search.best_params_["dropout"] in (0.0, 0.3)
    rows[::5, 1] = NAN
    model = clone(MADE(**SMALL, max_epochs=1)).set_output(transform="pandas").fit(rows)
    assert list(model.transform(rows).columns) == ["x0", "x1", "x2"]
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.score_samples(rows), model.score_samples(rows))


def test_wrong_parameters_are_named() -> None:
    for wrong, message in (
        ({"dropout": 2}, "'dropout' should be a number at least 0 and below 1, or 'auto', not 2"),
        ({"masks": "many"}, "'masks' should be a whole number at least 1, or 'unlimited', not 'many'"),
        ({"optimizer": "lion"}, "'optimizer' should be one of adadelta"),
        ({"epsilon": 0}, "'epsilon' should be a number above 0, or None, not 0"),
        ({"learning_rate": 10**400}, "'learning_rate' should be a number above 0, or 'auto', or None"),
        ({"hidden_sizes": (0,)}, "'hidden_sizes' should be a list of whole numbers"),
        ({"columns": "text"}, "kind"),
    ):
        with pytest.raises(ValueError, match=message):
            MADE(**({"max_epochs": 1} | wrong)).fit([[0, 1], [1, 0], [1, 1]])
    with pytest.raises(DataError, match="n_samples=1"):
        MADE().fit([[0, 1]])


def test_what_is_given_is_columns() -> None:
    model = MADE(**SMALL, max_epochs=0).fit(FRAME)
    assert np.array_equal(model.score_samples(FRAME, given="age"), model.score_samples(FRAME, given=[4]))
    with pytest.raises(QuestionError, match="a column is a name or a number"):
        model.score_samples(FRAME, given=[True, False])
    odd = model.surprise(FRAME[::3])
    assert odd.index.equals(FRAME[::3].index)


def test_kinds_by_number_survive_a_save(tmp_path) -> None:
    rows = np.random.default_rng(0).integers(2, size=(40, 3))
    model = MADE(**SMALL, max_epochs=0, columns={1: "numeric"}).fit(rows)
    model.save(tmp_path / "model")
    again = clone(MADE.load(tmp_path / "model")).fit(rows)
    assert [field.kind for field in again.model_.schema.fields] == ["binary", "numeric", "binary"]


def test_a_fit_that_is_refused_leaves_nothing(tmp_path) -> None:
    with pytest.raises(DataError):
        MADE(**SMALL, masks=2).fit([[0, 1], [1, NAN], [0, 0]], resume_from=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_validation_rows_may_have_categories_of_their_own() -> None:
    train, valid = FRAME[FRAME.colour != "red"], FRAME
    model = MADE(**SMALL, max_epochs=1).fit(train, X_valid=valid)
    assert model.classes("colour").tolist() == ["blue", "green", "red"]
    assert model.model_.config.data.valid_rows == 300


def test_diverging_keeps_the_last_good_weights(tmp_path) -> None:
    rows = np.random.default_rng(0).integers(2, size=(60, 4)).astype(float)
    model = MADE(**SMALL, optimizer="sgd", learning_rate=1e37, max_epochs=3)
    with pytest.raises(Diverged, match=r"update \d+ \(epoch \d\)"):
        model.fit(rows, resume_from=tmp_path / "run")
    assert np.exp(model.score_samples(worlds(4))).sum() == pytest.approx(1, abs=1e-5)
    kept = MADE.load(tmp_path / "run")
    assert not kept.model_.finished
    assert np.array_equal(kept.score_samples(worlds(4)), model.score_samples(worlds(4)))


DROPOUT = {**SMALL, "dropout": 0.2, "schedule": "falling"}  # which does not depend on the last epoch


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of six epochs, and its folder."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return MADE(**DROPOUT, max_epochs=6).fit(FRAME, resume_from=folder), folder


@pytest.mark.parametrize("how", ["run", "saved"])
def test_a_run_in_a_folder_goes_on_exactly(whole, tmp_path, how) -> None:
    """Three epochs and then three more, in the folder or from a saved model, are six."""
    half = MADE(**DROPOUT, max_epochs=3).fit(FRAME, resume_from=tmp_path / "run" if how == "run" else None)
    if how == "saved":
        half.save(tmp_path / "run")
    again = MADE(**DROPOUT, max_epochs=6).fit(FRAME, resume_from=tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (whole[1] / "model.safetensors").read_bytes()
    assert (again.n_epochs_, again.valid_nll_) == (6, whole[0].valid_nll_)
    lines = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(6))


def test_a_run_that_was_out_of_time_goes_on(tmp_path) -> None:
    short = MADE(**DROPOUT, max_epochs=3, max_seconds=1e-9).fit(FRAME, resume_from=tmp_path / "run")
    assert short.n_epochs_ == 1  # looked at after each epoch
    assert MADE(**DROPOUT, max_epochs=3).fit(FRAME, resume_from=tmp_path / "run").n_epochs_ == 3


def test_a_finished_run_is_not_trained_again(whole) -> None:
    before = (whole[1] / "manifest.json").read_bytes()
    finished = MADE(**DROPOUT, max_epochs=6).fit(FRAME, resume_from=whole[1])
    assert np.array_equal(finished.score_samples(FRAME), whole[0].score_samples(FRAME))
    assert (whole[1] / "manifest.json").read_bytes() == before


def test_a_run_goes_on_with_its_own_parameters_and_rows_only(whole) -> None:
    with pytest.raises(QuestionError, match=r"was trained with dropout=0\.2, not 0\.3"):
        MADE(**{**DROPOUT, "dropout": 0.3}, max_epochs=6).fit(FRAME, resume_from=whole[1])
    with pytest.raises(DataError, match="was trained on other rows"):
        MADE(**DROPOUT, max_epochs=6).fit(FRAME.iloc[::-1], resume_from=whole[1])


TRAINING = """
import time, types
import numpy as np
import made.training.trainer as trainer
from made import MADE
assert trainer.time is time and trainer.LEAST_SECONDS > 0
trainer.time = types.SimpleNamespace(perf_counter=lambda: 0)  # a checkpoint costs nothing,
trainer.LEAST_SECONDS = 0  # so that each update has one
rows = np.random.default_rng(0).integers(2, size=(300, 1)) ^ (np.random.default_rng(1).random((300, 12)) < 0.1)
model = MADE(hidden_sizes=(16,), batch_size=20, dropout=0.2, random_state=1, {parameters})
model.fit(rows.astype(float), resume_from={folder!r})
"""


def train(forks, folder: Path, parameters: str) -> int:
    """Start a training that writes a checkpoint after each update."""
    code = TRAINING.format(parameters=parameters, folder=str(folder))
    return forks.start(code, stderr=folder.with_suffix(".log"))


@pytest.mark.parametrize("more", ["masks=4, optimizer='adadelta'", "clip=1.0, schedule='cosine'"])
def test_a_run_that_is_killed_anywhere_goes_on_to_the_same_bits(forks, tmp_path, more) -> None:
    """Real kills, at random moments, of which many hit the middle of a write."""
    whole, run, parameters = tmp_path / "whole", tmp_path / "run", f"max_epochs=5, {more}"
    process, begin = train(forks, whole, parameters), time.perf_counter()
    assert forks.wait(process) == 0
    length, kills, status = time.perf_counter() - begin, 0, -9
    generator = np.random.default_rng(0)
    while status == -9 and kills < 100:
        before, child, end = manifest_text(run), train(forks, run, parameters), time.perf_counter() + 60
        # Every third is killed at any moment of its start, the others after some progress.
        while kills % 3 and manifest_text(run) == before and time.perf_counter() < end:
            time.sleep(0.001)
        time.sleep(generator.uniform(0, 0.1) * length)
        with suppress(ProcessLookupError):
            os.kill(child, 9)
        status = forks.wait(child)
        kills += status == -9
        if (run / "manifest.json").exists():
            Folder.open(run)
    assert kills >= 5
    assert status == 0
    assert Folder.open(run).finished
    add_files(run, {})  # a kill after the last manifest leaves files aside, where readers find them
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert not [file.name for file in run.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize("number", [2, 15])
def test_it_can_be_interrupted_and_says_how_to_go_on(forks, tmp_path, number) -> None:
    process = train(forks, tmp_path / "run", "max_epochs=100_000, patience=100_000")
    while not list((tmp_path / "run").glob("checkpoint-*")):
        time.sleep(0.01)
    os.kill(process, number)
    assert forks.wait(process) == 1
    model = MADE.load(tmp_path / "run")
    assert not model.model_.finished
    assert torch.isfinite(model.model_.network.c).all()
    said = (tmp_path / "run.log").read_text()
    assert "Interrupted: training was stopped after" in said
    assert f"Its state is saved: resume it with resume_from='{tmp_path / 'run'}'" in said


GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("format-*")), ids=lambda path: path.name)
def test_old_folders_are_still_read(path) -> None:
    """Written once, by the version that had the format first; what they said then they say now."""
    model = MADE.load(path / "model")
    expected = json.loads((path / "expected.json").read_text())
    rows = pd.DataFrame(expected["rows"]) if model.model_.schema.named else np.array(expected["rows"], dtype=float)
    assert model.score_samples(rows) == pytest.approx(expected["log_prob"], abs=1e-4)
    assert model.model_.config.connectivities.digest() == expected["digest"]


def test_there_are_golden_folders() -> None:
    assert len(list(GOLDEN.glob("format-1-*"))) >= 3
    assert len(list(GOLDEN.glob("format-2-*"))) >= 1


def test_tensorboard_has_the_curves(tmp_path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    MADE(**SMALL, max_epochs=3, tensorboard=str(tmp_path / "curves")).fit(FRAME)
    curves = EventAccumulator(str(tmp_path / "curves")).Reload()
    assert len(curves.Scalars("valid_nll")) == 3


def test_binary_inputs_are_signed_or_not() -> None:
    rows = np.random.default_rng(0).integers(2, size=(50, 3))
    for signed in (True, False):
        model = MADE(hidden_sizes=(4,), max_epochs=1, signed=signed, random_state=0).fit(rows)
        assert model.model_.network.columns[0].signed is signed


def test_binary_inputs_are_standardized(tmp_path) -> None:
    rows = np.random.default_rng(0).random((60, 3)) < [0.1, 0.5, 0.9]
    rows = np.where(np.arange(60)[:, None] % 7 == 3, np.nan, rows)
    small = {"hidden_sizes": (4,), "max_epochs": 2, "validation_fraction": 0, "random_state": 0}
    model = MADE(**small, standardized=True, schedule="falling")
    model.fit(rows, resume_from=tmp_path / "model")
    expected = (np.nansum(rows, axis=0) + 1) / ((~np.isnan(rows)).sum(axis=0) + 2)
    assert [kind.share for kind in model.model_.network.columns] == pytest.approx(expected.tolist())
    every = np.array(list(itertools.product([0, 1], repeat=3)))
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1, abs=1e-5)
    again = MADE.load(tmp_path / "model")
    assert again.model_.network.columns.kinds == model.model_.network.columns.kinds
    assert np.array_equal(again.score_samples(every), model.score_samples(every))
    longer = clone(model).set_params(max_epochs=4).fit(rows, resume_from=tmp_path / "model")
    at_once = clone(longer).fit(rows)
    assert np.array_equal(longer.score_samples(every), at_once.score_samples(every))
