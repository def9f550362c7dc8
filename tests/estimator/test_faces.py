"""The estimators for one job: scikit-learn's own checks, and its tools, as a new user would try them."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from made import MADE, MADEClassifier, MADEImputer, MADEOutlierDetector, MADERegressor
from made.errors import DataError, ParameterError, QuestionError

pytestmark = pytest.mark.filterwarnings("ignore:values that training never saw")

TINY = MADE(hidden_sizes=(8,), max_epochs=2, evaluation_masks=2, calibrate=False)
LEARNING = MADE(hidden_sizes=(16,), max_epochs=12, learning_rate=0.02, evaluation_masks=2, validation_fraction=0)
FAST = MADE(hidden_sizes=(16,), max_epochs=30, evaluation_masks=2, random_state=0)
FACES = [MADEImputer, MADEOutlierDetector, MADEClassifier, MADERegressor]

GENERATOR = np.random.default_rng(0)
HEIGHT = GENERATOR.normal(170, 8, 200)
FRAME = pd.DataFrame(
    {
        "colour": np.where(HEIGHT > 172, "red", GENERATOR.choice(["blue", "green"], 200)),
        "rooms": GENERATOR.integers(1, 5, 200),
        "height": HEIGHT,
        "weight": HEIGHT - 100 + GENERATOR.normal(0, 3, 200),
    }
)
FRAME.loc[::7, "height"] = np.nan
FRAME.loc[::11, "colour"] = None
FRAME.loc[3, "rooms"] = 17  # in one fold only
FRAME.loc[5, "colour"] = "violet"
LABEL = pd.Series(np.where(HEIGHT > 170, "tall", "small"), name="size")


def expected_failures(estimator) -> dict[str, str]:
    if isinstance(estimator, MADEImputer | MADEOutlierDetector):
        return {}
    reason = "it shuffles the weighted rows, and batches depend on their order; tests/training/test_weights.py does not"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [MADEImputer(TINY), MADEOutlierDetector(TINY), MADEClassifier(LEARNING), MADERegressor(LEARNING)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks_it(estimator, check) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return clone(FAST).fit(FRAME)


@pytest.mark.parametrize("face", [MADEClassifier, MADERegressor])
def test_cross_validation_of_a_frame_with_text_missing_and_unseen_values(face) -> None:
    y = LABEL if face is MADEClassifier else FRAME["weight"]
    found = cross_val_score(face(FAST), FRAME.drop(columns="weight"), y, cv=4, error_score="raise")
    assert np.isfinite(found).all()
    assert found.mean() > 0.5


def test_cross_validation_of_a_distribution() -> None:
    (train, test), _ = folds = list(KFold(2).split(FRAME))
    for y in (None, LABEL):
        found = cross_val_score(FAST, FRAME, y, cv=folds, error_score="raise")
        parts = [None if y is None else y.iloc[rows] for rows in (train, test)]
        assert found[0] == clone(FAST).fit(FRAME.iloc[train], parts[0]).score(FRAME.iloc[test], parts[1])


def test_cross_validation_of_iris() -> None:
    assert cross_val_score(MADEClassifier(FAST), *load_iris(return_X_y=True), cv=3).mean() > 0.8


def test_a_class_of_one_fold_only_does_not_give_nan() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    with pytest.warns(UserWarning, match="least populated class"):
        found = cross_val_score(MADEClassifier(FAST), X, y.where(y.index > 0, 7), cv=StratifiedKFold(3))
    assert np.isfinite(found).all()


def test_a_regressor_learns_diabetes() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    regressor = MADERegressor(FAST).fit(X[:300], y[:300])
    assert regressor.score(X[300:], y[300:]) > 0.3
    mean, deviation = regressor.predict(X[300:], return_std=True)
    low, middle, high = regressor.predict_quantiles(X[300:]).T
    assert (low < middle).all()
    assert (middle < high).all()
    assert np.abs(mean - middle).mean() < deviation.mean()
    assert 0.8 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 0.98


def test_an_imputer_in_a_pipeline_in_a_grid_search() -> None:
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), make_column_selector(dtype_include="number")),
            ("text", OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ]
    )
    imputer = MADEImputer(FAST).set_output(transform="pandas")
    pipeline = make_pipeline(imputer, columns, LogisticRegression())
    grid = {"madeimputer__strategy": ["mean", "mode"], "madeimputer__model__max_epochs": [2]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(FRAME, LABEL)
    assert search.best_score_ > 0.8


def test_a_grid_has_parameters_of_the_default_model() -> None:
    X, y = load_iris(return_X_y=True)
    grid = {"model__max_epochs": [1, 20], "model__hidden_sizes": [(16,)], "model__evaluation_masks": [2]}
    search = GridSearchCV(MADEClassifier(random_state=0), grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["model__max_epochs"] == 20
    assert search.best_estimator_.made_.hidden_sizes == (16,)


def test_faces_in_a_column_transformer() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    columns = ColumnTransformer([("sepal", MADEImputer(FAST), [0, 1]), ("petal", MADEImputer(FAST), [2, 3])])
    assert cross_val_score(make_pipeline(columns, MADEClassifier(FAST)), X, y, cv=2).min() > 0.6


@pytest.mark.parametrize("strategy", ["mean", "mode", "sample"])
def test_an_imputer_fills_what_is_missing(fitted, strategy) -> None:
    filled = MADEImputer(fitted, strategy=strategy, random_state=0).transform(FRAME)
    assert not filled.isna().any().any()
    seen = FRAME.notna()
    assert filled.where(seen).equals(FRAME)
    assert filled.equals(fitted.impute(FRAME, strategy=strategy, random_state=0))


def test_the_names_of_what_is_filled(fitted) -> None:
    imputer = MADEImputer(fitted).set_output(transform="polars")
    assert imputer.get_feature_names_out().tolist() == list(FRAME.columns)
    assert isinstance(imputer.transform(FRAME), pl.DataFrame)


def test_multiple_imputation_draws_anew(fitted) -> None:
    several = MADEImputer(fitted, random_state=0).impute(FRAME, n_draws=3)
    heights = np.array([each["height"] for each in several])
    missing = FRAME["height"].isna().to_numpy()
    assert (np.ptp(heights[:, missing], axis=0) > 0).all()
    assert (np.ptp(heights[:, ~missing], axis=0) == 0).all()


def test_multiple_imputation_of_one_draw_is_one_table(fitted) -> None:
    (table,) = MADEImputer(fitted, random_state=0).impute(FRAME, n_draws=1)
    assert table.equals(fitted.impute(FRAME, random_state=0))
    rows = np.array([[1.0, np.nan], [2.0, 3.0]] * 10)
    assert MADEImputer(TINY).fit(rows).impute(rows, n_draws=1).shape == (1, 20, 2)


def test_outliers_are_the_least_likely_rows_and_have_reasons(fitted) -> None:
    complete = FRAME.dropna()
    detector = MADEOutlierDetector(fitted, contamination=0.05).fit(complete)
    assert detector.score_samples(complete) == pytest.approx(fitted.score_samples(complete).astype(float))
    assert (detector.predict(complete) == -1).mean() == pytest.approx(0.05, abs=0.01)
    odd = complete.head(1).assign(weight=20.0)
    assert detector.predict(odd) == [-1]
    reasons = detector.reasons(odd)
    assert list(reasons.columns) == list(FRAME.columns)
    assert reasons.iloc[0].idxmax() == "weight"
    assert np.isnan(detector.reasons(odd.assign(height=np.nan))["height"]).all()


def test_a_missing_value_counts_as_a_usual_one(fitted) -> None:
    """Or rows would be the likelier the less is known of them."""
    detector = MADEOutlierDetector(fitted).fit(FRAME)
    complete = FRAME.dropna()
    less = detector.score_samples(complete.assign(weight=np.nan)).mean()
    assert less == pytest.approx(detector.score_samples(complete).mean(), abs=1)
    assert less < fitted.score_samples(complete.assign(weight=np.nan)).mean() - 2


def test_any_column_of_one_model_is_a_target(fitted) -> None:
    proba = MADEClassifier(fitted, target="colour").predict_proba(FRAME)
    assert np.array_equal(proba, fitted.predict_proba(FRAME, target="colour"))
    classifier = MADEClassifier(fitted.model_, target="colour")
    assert classifier.classes_.tolist() == fitted.classes("colour").tolist()
    assert set(classifier.predict(FRAME.drop(columns="colour"))) <= set(classifier.classes_)
    regressor = MADERegressor(fitted.model_, target="weight")
    assert np.array_equal(regressor.predict(FRAME), fitted.predict(FRAME, target="weight"))
    rooms, spread = MADERegressor(fitted, target="rooms").predict(FRAME, return_std=True)
    assert 1 < rooms.mean() < 5
    assert (spread > 0).all()


def test_a_fitted_model_is_not_trained_in_cross_validation(fitted) -> None:
    X = FRAME.drop(columns="weight")
    regressor = MADERegressor(fitted, target="weight")
    inside = clone(regressor).fit(X, FRAME["weight"])
    assert inside.made_.model_ is fitted.model_
    assert np.array_equal(inside.predict(X), regressor.predict(X))
    assert cross_val_score(regressor, X, FRAME["weight"], cv=3, error_score="raise").min() > 0.3


def test_a_clone_does_not_share_parameters_with_a_fitted_model(fitted) -> None:
    before = fitted.evaluation_masks
    clone(MADEImputer(fitted)).set_params(model__evaluation_masks=1)
    assert fitted.evaluation_masks == before


def test_a_target_of_the_table_needs_no_y() -> None:
    classifier = MADEClassifier(FAST, target="colour").fit(FRAME)
    assert classifier.predict(FRAME.head(3)).shape == (3,)
    with pytest.raises(QuestionError, match="'height' is numeric"):
        MADEClassifier(TINY, target="height").fit(FRAME)
    with pytest.raises(QuestionError, match="column 'colour' has no numbers: MADEClassifier predicts it"):
        MADERegressor(TINY, target="colour").fit(FRAME)


@pytest.mark.parametrize(
    ("labels", "kind"), [([True, False], "b"), ([3.0, 1.0], "f"), (["b", "a"], "U"), ([10, -3], "i")]
)
def test_classes_are_those_of_y(labels, kind) -> None:
    X = GENERATOR.normal(size=(40, 2))
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    classifier = MADEClassifier(TINY).fit(X, y)
    assert classifier.classes_.tolist() == sorted(labels)
    assert classifier.predict(X).dtype.kind == kind
    assert classifier.predict_log_proba(X) == pytest.approx(np.log(classifier.predict_proba(X)))


def test_a_class_of_a_single_row_is_a_class() -> None:
    y = np.array(["a", "b"] * 19 + ["once", "twice"])
    assert MADEClassifier(TINY).fit(GENERATOR.normal(size=(40, 2)), y).classes_.tolist() == ["a", "b", "once", "twice"]


@pytest.mark.parametrize("columns", ["auto", {"colour": "categorical"}, {0: "categorical"}, ["auto"] * 4])
def test_kinds_of_columns_are_those_of_x(columns) -> None:
    model = clone(TINY).set_params(columns=columns)
    fields = MADERegressor(model).fit(FRAME, HEIGHT.round() > 170).made_.model_.schema.fields
    assert [fields[0].kind, fields[-1].name] == ["categorical", "y"]
    assert not fields[-1].listed


@pytest.mark.parametrize("face", FACES)
def test_copies_of_a_face_answer_the_same(fitted, face, tmp_path) -> None:
    target = {"target": "colour" if face is MADEClassifier else "weight"}
    each = face(fitted, **(target if issubclass(face, (MADEClassifier, MADERegressor)) else {}))
    if face is MADEOutlierDetector:
        each.fit(FRAME)
    for twin in (pickle.loads(pickle.dumps(each)), copy.deepcopy(each), clone(each).fit(FRAME)):
        if face is MADEImputer:
            assert twin.transform(FRAME).equals(each.transform(FRAME))
        else:
            assert np.array_equal(twin.predict(FRAME), each.predict(FRAME))


@pytest.mark.parametrize("face", FACES)
def test_what_is_not_fitted_says_so(face) -> None:
    unfitted = face(TINY)
    with pytest.raises(NotFittedError, match=r"not fitted|no threshold"):
        (unfitted.transform if face is MADEImputer else unfitted.predict)(FRAME)
    assert not hasattr(unfitted, "n_features_in_")


def test_dates_are_no_numbers() -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=200), name="day")
    for y in (days, days.to_numpy()):
        with pytest.raises(DataError, match=r"'y' should be numbers, not dates: MADE\(\)\.fit\(X, y\) predicts them"):
            MADERegressor(TINY).fit(FRAME, y)
    with pytest.raises(QuestionError, match=r"'day' has dates, not numbers: MADE\.predict predicts it"):
        MADERegressor(TINY, target="day").fit(FRAME.assign(day=days))
    dated = clone(TINY).fit(FRAME, days)
    assert pd.to_datetime(dated.predict(FRAME.head(2))).year.tolist() == [2024, 2024]


def test_a_target_that_is_no_column_is_refused_before_training() -> None:
    untrained = clone(TINY).set_params(max_epochs=10**6, patience=10**6)
    for face in (MADEClassifier, MADERegressor):
        with pytest.raises(QuestionError, match="'target' is 'color', which is no column of X"):
            face(untrained, target="color").fit(FRAME)


def test_a_grid_may_have_fitted_models(fitted) -> None:
    X, y = FRAME.drop(columns="weight"), FRAME["weight"]
    grid = {"model": [fitted.model_, fitted.model_.with_ensemble(1, 1)]}
    search = GridSearchCV(MADERegressor(target="weight"), grid, cv=2, error_score="raise").fit(X, y)
    chosen = search.best_params_["model"]
    assert np.array_equal(search.predict(X), chosen.predict(X, "weight"))
    assert len(search.best_estimator_.made_.model_.history) == len(fitted.model_.history)


def test_a_threshold_needs_rows(fitted) -> None:
    with pytest.raises(NotFittedError, match="has no threshold yet: call 'fit'"):
        MADEOutlierDetector(fitted).predict(FRAME)


def test_wrong_arguments_are_named(fitted) -> None:
    with pytest.raises(ParameterError, match=r"'model' should be a made\.MADE"):
        MADEImputer(LogisticRegression()).fit(FRAME)
    with pytest.raises(ParameterError, match="'strategy' should be one of mean, mode, sample, not 'median'"):
        MADEImputer(TINY, strategy="median").fit(FRAME)
    with pytest.raises(ParameterError, match="'contamination' should be a number above 0"):
        MADEOutlierDetector(TINY, contamination=0.7).fit(FRAME)
    with pytest.raises(ParameterError, match="'target' is 'colour', and fit got y"):
        MADEClassifier(TINY, target="colour").fit(FRAME, LABEL)
    with pytest.raises(DataError, match="'y' should be numbers: MADEClassifier"):
        MADERegressor(TINY).fit(FRAME, LABEL)
    with pytest.raises(DataError, match="y contains NaN"):
        MADEClassifier(TINY).fit(FRAME, FRAME["colour"])
    with pytest.raises(QuestionError, match="there is no target"):
        MADEClassifier(fitted).predict(FRAME)
    for face in (MADEClassifier, MADERegressor):
        remedy = rf"{face.__name__}\(model, target='weight'\)"
        with pytest.raises(QuestionError, match=rf"the fitted model has none.* {remedy}"):
            face(fitted).fit(FRAME.drop(columns="weight"), FRAME["weight"])


def with_useless(rows: int = 120) -> pd.DataFrame:
    """Rows of which a fold lacks every value of a column, another column is empty, and one nearly an identifier."""
    frame = FRAME.head(rows).assign(late=np.where(np.arange(rows) < rows * 2 / 3, np.nan, HEIGHT[:rows]), empty=np.nan)
    return frame.assign(name=[f"name {max(each, 20)}" for each in range(rows)])


@pytest.mark.filterwarnings("ignore:columns without a value:UserWarning", "ignore:columns that look:UserWarning")
@pytest.mark.parametrize("face", FACES)
def test_a_fold_without_a_value_of_a_column_does_not_give_nan(face) -> None:
    frame, columns = with_useless(), {"name": "categorical"}
    y = frame.pop("weight") if face is MADERegressor else LABEL.head(len(frame))
    estimator = face(clone(TINY).set_params(columns=columns))
    if face is MADEImputer:
        estimator = make_pipeline(estimator, OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    y, scoring = (np.ones(len(frame)), "accuracy") if face is MADEOutlierDetector else (y, None)
    assert np.isfinite(cross_val_score(estimator, frame, y, cv=KFold(3), scoring=scoring, error_score="raise")).all()


@pytest.mark.parametrize("columns", ["auto", {"colour": "categorical"}, ["auto"] * 7, {6: "auto"}])
def test_columns_that_say_nothing_are_left_out_with_a_warning(columns) -> None:
    frame = with_useless().assign(name=[f"name {each}" for each in range(120)])
    model = clone(TINY).set_params(columns=columns)
    with (
        pytest.warns(UserWarning, match="columns without a value are left out: 'empty'"),
        pytest.warns(UserWarning, match=r"left out: 'name'\. .* MADE\(columns={'name': 'categorical'}\)"),
    ):
        classifier = MADEClassifier(model).fit(frame, LABEL.head(120))
    known = ["colour", "rooms", "height", "weight", "late"]
    assert list(classifier.feature_names_in_) == known
    assert np.array_equal(classifier.predict(frame), classifier.predict(frame[known]))
    with pytest.raises(DataError, match=r"'empty'.*no observed value"):
        MADEClassifier(model, target="empty").fit(frame)
    with pytest.raises(DataError, match=r"'empty'.*no observed value"):
        MADEClassifier(model, target=0).fit(frame)  # the number would be that of another column


def test_an_imputer_leaves_out_columns_without_a_value_and_keeps_identifiers() -> None:
    frame = with_useless().assign(name=[f"name {each}" for each in range(120)])
    frame.loc[3, "name"] = None
    with pytest.warns(UserWarning, match="columns without a value are left out: 'empty'"):
        imputer = MADEImputer(TINY).fit(frame)
    filled = imputer.transform(frame)
    assert list(filled.columns) == [name for name in frame if name != "empty"]
    assert not filled.isna().any().any()
    assert list(imputer.get_feature_names_out(list(frame))) == list(filled.columns)
    rows = frame[["height", "empty"]].to_numpy()
    with pytest.warns(UserWarning, match="columns without a value are left out: 'x1'"):
        assert MADEImputer(TINY).fit(rows).transform(rows).shape == (120, 1)


@pytest.mark.filterwarnings("ignore:columns without a value:UserWarning")
@pytest.mark.parametrize("estimator", [MADEImputer(TINY), clone(TINY).set_params(columns={"empty": "drop"})])
def test_names_without_columns_that_are_left_out(estimator) -> None:
    frame = with_useless()[["height", "empty", "rooms"]]
    columns = ColumnTransformer([("some", estimator, list(frame))]).set_output(transform="pandas")
    assert list(columns.fit_transform(frame)) == ["some__height", "some__rooms"]


@pytest.mark.parametrize("target", [None, LABEL])
def test_a_model_with_a_target_answers_with_and_without_columns_that_are_left_out(target) -> None:
    model = clone(TINY).set_params(columns={"rooms": "drop"}).fit(FRAME, target)
    without = FRAME.drop(columns="rooms")
    assert list(model.feature_names_in_) == list(without.columns)
    assert np.array_equal(model.score_samples(FRAME), model.score_samples(without))
    assert np.isfinite(model.score(FRAME, target))
    assert list(model.impute(FRAME).columns) == list(without.columns)
