"""Weights of rows: a row of weight 2 counts as the row twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from made import MADE, Connectivities, MADEClassifier, Network
from made.errors import DataError
from made.queries.evidence import Evidence
from made.training.pairs import CountedPairs
from made.training.weights import RowWeights

TINY = {"hidden_sizes": (8,), "max_epochs": 3, "evaluation_masks": 2, "random_state": 0, "batch_size": 32}
GENERATOR = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "colour": GENERATOR.choice(["blue", "green", "red"], 120),
        "smoker": GENERATOR.random(120) < 0.3,
        "rooms": GENERATOR.integers(1, 5, 120),
        "height": GENERATOR.normal(170, 8, 120).round(1),
    }
)
FRAME.loc[::7, "height"] = np.nan
FRAME.loc[::11, "colour"] = None
COUNTS = GENERATOR.integers(0, 4, 120)
REPEATED = FRAME.loc[FRAME.index.repeat(COUNTS)].reset_index(drop=True)


def weights_of(estimator: MADE) -> dict[str, torch.Tensor]:
    return estimator.model_.network.state_dict()


def same(one: MADE, other: MADE) -> bool:
    mine, theirs = weights_of(one), weights_of(other)
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize("validation", [None, FRAME.head(20)], ids=["none", "given"])
@pytest.mark.parametrize("more", [{}, {"standardized": True}, {"masks": 1, "columns": {"height": "drop"}}], ids=str)
def test_a_weight_is_a_count(validation, more) -> None:
    """To the bit: the schema, the biases to begin with, the pairs that are counted, and every update."""
    rows, many = FRAME, REPEATED
    if "masks" in more:  # a model of fixed orderings learns from complete rows
        rows, many, validation = (
            each if each is None else each.fillna({"colour": "blue"}) for each in (FRAME, REPEATED, validation)
        )
    made = MADE(**TINY, validation_fraction=0, **more)
    weighted = made.fit(rows, sample_weight=COUNTS, X_valid=validation).model_
    twin = MADE(**TINY, validation_fraction=0, **more).fit(many, X_valid=validation)
    assert weighted.config.columns == twin.model_.config.columns
    assert weighted.config.data.rows == len(REPEATED)
    assert same(made, twin)
    missing = [each.tensors() for each in (weighted.missingness, twin.model_.missingness)]
    assert all(torch.equal(missing[0][name], missing[1][name]) for name in missing[0])
    assert weighted.config.scores["valid_nll"] == twin.model_.config.scores["valid_nll"]


def test_validation_rows_have_weights_too() -> None:
    """Rows are held out, not copies of them: none is in both parts."""
    made = MADE(**TINY, validation_fraction=0.2).fit(FRAME, sample_weight=COUNTS)
    data, held_out = made.model_.config.data, round(0.2 * (COUNTS > 0).sum())
    assert data.rows + data.valid_rows == len(REPEATED)
    assert data.valid_rows > held_out


def test_weights_that_are_not_whole_are_rounded_at_random() -> None:
    weights = RowWeights(np.array([0.1, 0.5, 2.2, 1.2]))
    assert weights.values.mean() == pytest.approx(1)
    found = np.array([np.bincount(weights.order(epoch, 0), minlength=4) for epoch in range(4000)])
    assert (found.sum(axis=1) == weights.rows).all()
    assert (np.abs(found - weights.values) < 1).all()
    assert found.mean(axis=0) == pytest.approx(weights.values, abs=0.03)
    assert np.array_equal(weights.order(3, 0), weights.order(3, 0))


def test_weights_are_learned() -> None:
    rows = np.array([[0.0, 0.0], [1.0, 1.0]]).repeat(100, axis=0)
    made = MADE(**TINY | {"max_epochs": 60}).fit(rows, sample_weight=np.where(rows[:, 0] == 1, 0.9, 0.1))
    assert made.probability("x0 = 1").probability == pytest.approx(0.9, abs=0.03)


def test_weighted_pairs_are_counted() -> None:
    network = Network(3, Connectivities(3, (8,), masks=None))
    rows = torch.randint(2, (50, 3), generator=torch.Generator().manual_seed(0)).float()
    counts = np.random.default_rng(0).integers(1, 4, 50)
    weighted = CountedPairs(network, Evidence(rows), counts.astype(float))
    repeated = CountedPairs(network, Evidence(rows[torch.arange(50).repeat_interleave(torch.from_numpy(counts))]))
    assert torch.equal(weighted.answers, repeated.answers)
    assert not torch.equal(weighted.answers, CountedPairs(network, Evidence(rows)).answers)


@pytest.fixture(scope="module")
def made() -> MADE:
    return MADE(**TINY).fit(FRAME)


def test_a_score_is_weighted(made) -> None:
    assert made.score(FRAME, sample_weight=COUNTS) == pytest.approx(made.score(REPEATED), rel=1e-6)
    assert made.model_.score(FRAME, COUNTS) == pytest.approx(made.score(REPEATED), rel=1e-6)
    assert made.score(FRAME, sample_weight=COUNTS) != pytest.approx(made.score(FRAME), rel=1e-4)


def test_a_run_is_resumed_with_its_own_weights(tmp_path) -> None:
    options = TINY | {"schedule": "constant"}
    half = MADE(**options | {"max_epochs": 1}).fit(FRAME, sample_weight=COUNTS / 2, resume_from=tmp_path / "run")
    assert half.n_epochs_ == 1
    with pytest.raises(DataError, match="was trained on other rows"):
        MADE(**options).fit(FRAME, resume_from=tmp_path / "run")
    resumed = MADE(**options).fit(FRAME, sample_weight=COUNTS / 2, resume_from=tmp_path / "run")
    assert same(resumed, MADE(**options).fit(FRAME, sample_weight=COUNTS / 2))


def test_one_weight_for_all_changes_nothing() -> None:
    plain = MADE(**TINY).fit(FRAME)
    assert same(MADE(**TINY).fit(FRAME, sample_weight=1), plain)
    assert same(MADE(**TINY).fit(FRAME, sample_weight=np.full(120, 0.25)), plain)


def test_estimators_for_one_job_have_weights() -> None:
    X, y = FRAME[["height", "rooms"]], np.where(FRAME["height"] > 170, "tall", "small")
    weights = np.where(y == "tall", 3.0, 1.0)
    first, second = (
        MADEClassifier(MADE(**TINY, validation_fraction=0)).fit(rows, labels, often)
        for rows, labels, often in (
            (X, y, weights),
            (X.loc[X.index.repeat(weights.astype(int))], y.repeat(weights.astype(int)), None),
        )
    )
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((120, 2)), r"should have the shape \(120,\)"),
        (np.ones(3), r"should have the shape \(120,\)"),
        (np.zeros(120), "not all of them zero"),
        (-np.ones(120), "none below zero"),
        (np.full(120, np.nan), "finite"),
        (["a"] * 120, "should be numbers"),
        (np.full(120, 1e9), "give relative weights"),
    ],
)
def test_wrong_weights_are_refused(made, weights, message) -> None:
    with pytest.raises(DataError, match=message):
        MADE(**TINY).fit(FRAME, sample_weight=weights)
    if "relative" not in message:
        with pytest.raises(DataError, match=message):
            made.score(FRAME, sample_weight=weights)
