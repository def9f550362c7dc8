"""The page of what was measured on tables is that of its results, and the measurements are what they are said to be."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks import tables as benchmark
from benchmarks.binary import references
from benchmarks.filling import FILLERS, OneHot, Score, in_rounds, wins
from benchmarks.measures import (
    Answers,
    calibration_error,
    conditionals,
    geometric_mean,
    intervals,
    likelihood,
    log_loss,
    pinball,
    short,
)
from benchmarks.specialists import Specialists
from benchmarks.synthesis import c2st_area, one_hot
from benchmarks.tables_data import Split, grid, is_discrete, split
from benchmarks.tables_page import PAGE, RESULTS, page
from benchmarks.tables_targets import targets


def frame(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Two dependent columns of text, and a number that follows one of them."""
    rng = np.random.default_rng(seed)
    first = rng.integers(2, size=rows)
    second = np.where(rng.random(rows) < 0.8, first, rng.integers(3, size=rows))
    return pd.DataFrame(
        {
            "first": np.array(["a", "b"], dtype=object)[first],
            "second": np.array(["x", "y", "z"], dtype=object)[second],
            "size": rng.normal(10 * first, 1, rows).round(2),
        }
    )


@pytest.fixture
def parts() -> Split:
    table = frame()
    return Split.from_frames("made up", "seed0-test", *split(table, 0), "first", table)


class Frequencies:
    """A model that answers with frequencies of given rows, and with fixed quantiles and means."""

    def __init__(self, rows: pd.DataFrame, off: float = 0.0) -> None:
        self.rows, self.off = rows, off

    def classes(self, column: str) -> np.ndarray:
        if column == "size":
            raise ValueError("a number")
        return np.array(sorted(self.rows[column].unique()))

    def predict_proba(self, X: pd.DataFrame, target: str) -> np.ndarray:
        table = []
        for _, row in X.iterrows():
            known = {name: value for name, value in row.items() if name != target and pd.notna(value)}
            like = self.rows
            for name, value in known.items():
                like = like[like[name] == value]
            table.append([(like[target] == value).mean() for value in self.classes(target)])
        found = np.array(table)
        found[:, 0] += self.off
        found[:, 1] -= self.off
        return found

    def predict(self, X: pd.DataFrame, target: str) -> np.ndarray:
        return X[target].to_numpy() + self.off

    def predict_quantiles(self, X: pd.DataFrame, target: str, quantiles: Any) -> np.ndarray:
        return np.stack([X[target] - 1, X[target] + 2], axis=1)


def test_the_page_of_the_repository_is_that_of_its_results() -> None:
    old = "docs/tables-measured.md is old: run python -m benchmarks.tables_page"
    assert PAGE.read_text() == page(json.loads(RESULTS.read_text())), old


def test_columns_are_discrete_by_the_rule_of_the_benchmark() -> None:
    assert is_discrete(pd.Series(["a", "b"] * 50))
    assert is_discrete(pd.Series([True, False]))
    assert is_discrete(pd.Series(np.arange(20) / 7))
    assert not is_discrete(pd.Series(np.arange(21) / 7))


@pytest.mark.parametrize(("values", "step"), [([3.0, 7.0], 1), ([1.5, 2.0], 0.5), ([29.85, 56.95], 0.05), ([np.pi], 0)])
def test_the_grid_is_the_largest_step_that_all_values_lie_on(values, step) -> None:
    assert grid(np.array([*values, np.nan])) == step


def test_training_and_test_rows_are_all_rows_once() -> None:
    table = pd.DataFrame({"number": np.arange(101)})
    train, test = split(table, 3)
    assert len(train) == 80
    assert sorted([*train["number"], *test["number"]]) == list(range(101))


def test_losses_by_hand() -> None:
    table, truth = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 1])
    assert log_loss(table, truth) == pytest.approx(-(np.log(0.75) + np.log(0.5)) / 2)
    assert pinball(np.array([[0.0, 1.0]]), np.array([2.0])) == pytest.approx((0.05 * 2 + 0.95 * 1) / 2)
    assert geometric_mean([[0.04, 0.01], [0.09, 0.39]]) == pytest.approx(np.sqrt(2.5 * 0.25))
    assert geometric_mean([]) is None


def test_calibration_is_the_gap_between_confidence_and_accuracy() -> None:
    sure = np.array([[0.8, 0.2]] * 10)
    assert calibration_error(sure, np.array([0] * 8 + [1] * 2)) == pytest.approx(0)
    assert calibration_error(sure, np.array([0] * 5 + [1] * 5)) == pytest.approx(0.3)


def test_answers_that_are_the_held_out_frequencies_have_no_error(parts) -> None:
    found = short(Answers(Frequencies(parts.test), parts), parts, least=10)
    assert found["questions"] > 0
    assert found["made"]["worst"] == pytest.approx(0, abs=1e-5)
    assert found["training rows"]["worst"] > 0


def test_an_error_of_a_short_question_is_what_is_beyond_one_standard_error() -> None:
    rows = pd.DataFrame({"first": ["a", "a", "b", "b"] * 20, "second": ["x", "y"] * 40})
    parts = Split.from_frames("made up", "seed0-test", rows, rows, "first")
    model = SimpleNamespace(
        classes=lambda column: np.array(parts.values(column)),
        predict_proba=lambda X, target: np.tile([0.8, 0.2], (len(X), 1)),
    )
    found = short(Answers(model, parts), parts, least=40)
    assert found["questions"] == 8
    error = 0.3 - np.sqrt(0.25 / 40)
    assert found["made"] == {"mean": pytest.approx(error), "worst": pytest.approx(error)}
    assert found["training rows"]["worst"] == 0
    assert "P(second = x given first = a) = 0.800 for 0.500 (40 rows)" in found["worst_questions"]
    assert short(Answers(model, parts), parts, least=41) == {}


def test_errors_of_numbers_are_in_standard_deviations(parts, tmp_path) -> None:
    theirs = Specialists(parts, folder=tmp_path)
    theirs.mean = lambda column: parts.test[column].to_numpy() + 4.0  # type: ignore[method-assign]
    theirs.proba = lambda column: np.full((len(parts.test), len(parts.values(column))), 0.5)  # type: ignore[method-assign]
    found = conditionals(Answers(Frequencies(parts.test, off=2.0), parts), theirs, parts)
    ours, others = found["columns"]["size"]
    assert ours == pytest.approx(2 / parts.train["size"].std())
    assert others == pytest.approx(2 * ours)
    assert found["rmse"]["better"] == 1


def test_coverage_counts_rows_inside_of_the_interval(parts, tmp_path) -> None:
    theirs = Specialists(parts, folder=tmp_path)
    theirs.quantiles = lambda column: np.tile([-1e6, 5.0], (len(parts.test), 1))  # type: ignore[method-assign]
    found = intervals(Answers(Frequencies(parts.test), parts), theirs, parts)
    assert found["made"]["coverage"] == 1
    assert found["LightGBM"]["coverage"] == pytest.approx((parts.test["size"] <= 5).mean())
    assert found["made"]["pinball"] == pytest.approx((0.05 * 1 + 0.05 * 2) / 2 / parts.train["size"].std())


@pytest.mark.parametrize(
    ("step", "listed", "gain"), [(0.0, False, 0.0), (0.01, False, np.log(100)), (1.0, True, np.log(100))]
)
def test_a_mass_on_a_grid_counts_as_a_density(parts, step, listed, gain) -> None:
    def field(name: str) -> SimpleNamespace:
        column = SimpleNamespace(grid=(0.0, step if name == "size" else 1.0), atoms=())
        return SimpleNamespace(name=name, kind="numeric", listed=listed or name != "size", column=column)

    schema = SimpleNamespace(fields=[field(name) for name in parts.train])
    model = SimpleNamespace(model_=SimpleNamespace(schema=schema), score_samples=lambda rows: np.full(len(rows), -5.0))
    found = likelihood(Answers(model, parts), parts)
    assert found["as scored"] == -5
    assert found["made"] == pytest.approx(-5 + gain)


def test_predictions_of_specialists_are_computed_once(parts, tmp_path) -> None:
    pytest.importorskip("lightgbm", reason="the extra 'bench' is not installed")
    calls = []

    def work() -> np.ndarray:
        calls.append(1)
        return np.arange(3.0)

    for _ in range(2):
        specialists = Specialists(parts, folder=tmp_path)
        assert specialists.kept("mean", "size", work).tolist() == [0, 1, 2]
    assert len(calls) == 1
    other = Split.from_frames("made up", "seed0-test", parts.train[1:], parts.test, "first")
    Specialists(other, folder=tmp_path).kept("mean", "size", work)
    assert len(calls) == 2


def test_a_specialist_learns_the_columns(parts, tmp_path) -> None:
    pytest.importorskip("lightgbm", reason="the extra 'bench' is not installed")
    specialists = Specialists(parts, folder=tmp_path)
    known, truth = parts.truth("first")
    assert (specialists.proba("first").argmax(axis=1)[known] == truth).mean() > 0.9
    assert np.abs(specialists.mean("size") - parts.test["size"]).mean() < 2
    low, high = specialists.quantiles("size").T
    assert (low <= high).all()


@pytest.mark.parametrize("drop_first", [False, True])
def test_one_hot_codes_are_a_table_and_back(drop_first) -> None:
    table = np.array([[0, 1.5, 2], [1, 2.5, 0], [0, 4.0, 1]])
    codes = OneHot(table, [2, 0, 3], drop_first=drop_first)
    there = codes.encode(table)
    assert there.shape == (3, 6 - 2 * drop_first)
    np.testing.assert_allclose(codes.decode(there), table)
    assert np.isnan(codes.encode(np.array([[np.nan, 1.0, 1.0]]))[0, : 2 - drop_first]).all()


def test_only_what_was_hidden_is_scored(parts) -> None:
    hidden = np.zeros(parts.test.shape, dtype=bool)
    hidden[:4, 0], hidden[4, 2] = True, True
    score = Score(parts, hidden, 0)
    filled = score.truth.copy()
    filled[0, 0] = 1 - filled[0, 0]
    filled[5:, :] = -1
    filled[4, 2] += 3
    found = score(filled)
    assert found["accuracy"][0] == 0.75
    assert found["error"][0] == pytest.approx(3 / parts.train["size"].std())
    assert found["accuracy"][1:].std() > 0


def test_rounds_fill_every_missing_value_and_nothing_else(parts) -> None:
    table = np.array([[0, 1, 2.0], [np.nan, 1, 3.0], [1, np.nan, np.nan]])
    filled = in_rounds(table, parts, lambda known, target, asked, d: np.full(len(asked), 7.0), natively=True)
    np.testing.assert_array_equal(filled, [[0, 1, 2], [7, 1, 3], [1, 7, 7]])


def filled(ours: float, best: float, error: float) -> dict[str, Any]:
    others = {name: {"accuracy": best if name == "miceforest" else 0.1, "accuracy_se": error} for name in FILLERS}
    return {"table": "penguins", "filling": {"10%": {"made": {"accuracy": ours}} | others}}


@pytest.mark.parametrize(("ours", "won"), [(0.9, True), (0.79, True), (0.77, False)])
def test_a_cell_is_won_within_one_standard_error_of_the_best(ours, won) -> None:
    assert wins([filled(ours, 0.8, 0.02)]) == [("penguins", "10%", "accuracy", won)]


def test_standard_errors_shrink_with_the_number_of_splits() -> None:
    assert wins([filled(0.785, 0.8, 0.02)])[0][3]
    assert not wins([filled(0.785, 0.8, 0.02)] * 4)[0][3]


def test_rows_of_the_same_distribution_can_hardly_be_distinguished() -> None:
    pytest.importorskip("xgboost", reason="the extra 'bench' is not installed")
    assert c2st_area(frame(600, 1), frame(600, 2), 0) == pytest.approx(0.5, abs=0.06)
    assert c2st_area(frame(600, 1), frame(600, 2).assign(size=20.0), 0) > 0.99


def test_missing_text_is_a_value_of_its_own() -> None:
    like = pd.DataFrame({"kind": ["a", None, "b"], "size": [1.0, np.nan, 2.0]})
    np.testing.assert_array_equal(one_hot(like, like), [[1, 0, 0, 1], [0, 0, 1, np.nan], [0, 1, 0, 2]])


def test_figures_beside_binary_sets_are_those_of_the_repository_and_published_ones() -> None:
    assert references("plants")["mixture of Bernoullis"] == 13.36
    assert references("dna")["best published"] == 79.66
    assert {"mixture of Bernoullis", "ours"} <= references("web").keys()


@pytest.fixture
def content() -> dict[str, Any]:
    """The results of one table, at the limits of the targets."""
    content = json.loads(RESULTS.read_text())
    row = next(row for row in content["tables"] if row["table"] == "credit_data")
    row["conditionals"]["log_loss"]["ratio"] = row["conditionals"]["rmse"]["ratio"] = 1.0
    row["label"]["made"]["auc"], row["label"]["LightGBM"]["auc"] = 0.84, 0.85
    row["conditionals"]["ece"] |= {"made": 0.03, "LightGBM": 0.03}
    row["intervals"]["made"]["coverage"] = 0.88
    row["short"]["made"] = {"mean": 0.004, "worst": 0.05}
    row["fit"]["seconds"], row["seed"] = 60, 0
    row.pop("filling", None)
    return {"machine": content["machine"], "tables": [row]}


def test_targets_are_met_at_their_limits(content) -> None:
    assert [target.what for target in targets(content, {}, ()) if not target.met] == []


@pytest.mark.parametrize(
    ("keys", "value", "what"),
    [
        (("conditionals", "log_loss", "ratio"), 1.01, "log loss"),
        (("conditionals", "rmse", "ratio"), 1.06, "RMSE"),
        (("label", "made", "auc"), 0.83, "AUC"),
        (("short", "made", "worst"), 0.06, "short"),
        (("intervals", "made", "coverage"), 0.93, "coverage"),
        (("fit", "seconds"), 61, "seconds"),
    ],
)
def test_a_missed_target_is_reported(content, keys, value, what) -> None:
    place = content["tables"][0]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (missed,) = (target for target in targets(content, {}, ()) if not target.met)
    assert missed.what.startswith(what)
    assert "**missed**" in page(content)


def test_the_likelihood_is_compared_with_that_before(content) -> None:
    ours = content["tables"][0]["likelihood"]["made"]
    for before, met in ((ours - 0.1, True), (ours + 0.1, False)):
        (target,) = (each for each in targets(content, {"credit_data": before}, ()) if "likelihood" in each.what)
        assert target.met is met


def test_tables_that_are_missing_are_named(content) -> None:
    assert "Not measured yet: penguins, house_votes, attrition, wa_churn, adult, shoppers, " in page(content)


def test_a_run_measures_only_what_is_missing(tmp_path, monkeypatch) -> None:
    asked = []

    def measure(name: str, seed: int, what: list[str], **others: Any) -> dict[str, Any]:
        asked.append((name, seed))
        return {"table": name, "seed": seed}

    monkeypatch.setattr(benchmark, "run", measure)
    words = ["--only", "tables", "--names", "penguins,wa_churn", "--out", str(tmp_path / "results.json")]
    benchmark.keep(
        "tables", {"table": "penguins", "seed": 1, "source": benchmark.source_hash()}, tmp_path / "results.json"
    )
    benchmark.keep("tables", {"table": "penguins", "seed": 2, "source": "another"}, tmp_path / "results.json")
    benchmark.everything(words)
    assert asked == [("penguins", 0), ("penguins", 2), ("penguins", 3), ("penguins", 4), ("wa_churn", 0)]
    benchmark.everything(words)
    assert len(asked) == 5
    rows = json.loads((tmp_path / "results.json").read_text())["tables"]
    assert [(row["table"], row["seed"]) for row in rows] == [("penguins", seed) for seed in range(5)] + [
        ("wa_churn", 0)
    ]


def test_parameters_are_python_literals_or_text() -> None:
    found = benchmark.parameters(["max_epochs=100", "hidden_sizes=(8, 8)", "schedule=cosine"])
    assert found == {"max_epochs": 100, "hidden_sizes": (8, 8), "schedule": "cosine"}


def test_results_are_compared_side_by_side(tmp_path, capsys) -> None:
    for name, value in (("before", -3.0), ("after", -2.5)):
        row = {"table": "penguins", "seed": 0, "part": "valid", "likelihood": {"made": value}}
        (tmp_path / name).write_text(json.dumps([row]))
    benchmark.compare_command([str(tmp_path / "before"), str(tmp_path / "after")])
    assert " ".join(capsys.readouterr().out.split()) == "penguins, seed 0, valid rows log-likelihood -3.0000 -2.5000"
