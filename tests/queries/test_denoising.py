"""Noisy rows made clean: exactly where all rows can be tried, closely where not, and better than leaving them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from made import MADE, Binary, Categorical, Columns, Connectivities, Network, log_prob
from made.errors import QuestionError
from made.queries.denoising import Denoised, Gibbs, denoise
from made.queries.ensemble import Ensemble
from made.queries.random import of_block
from oracle import randomize, worlds

NAN = np.nan
COLUMNS = Columns([Binary(signed=True), Categorical(3), Binary(signed=True), Categorical(2), Categorical(1)])
SIZES = [2, 3, 2, 2, 1]
ERROR = np.array([0.1, 0.3, 0.0, 0.2, 0.5])


def channel(noisy: np.ndarray, states: np.ndarray, error: np.ndarray = ERROR, sizes=SIZES) -> np.ndarray:
    """q(y | x) of every x, entry by entry, as the formula has it; a missing value says nothing."""
    answer = np.ones(len(states))
    for d, y in enumerate(noisy):
        if not np.isnan(y):
            wrong = error[d] / (sizes[d] - 1) if sizes[d] > 1 else 0.0
            answer *= np.where(states[:, d] == y, 1 - error[d] if sizes[d] > 1 else 1.0, wrong)
    return answer


def brute_force(network: Network, noisy: np.ndarray, masks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The most likely row, the most likely value of each entry by itself, and the chance that each entry is wrong."""
    states = worlds(network.columns).numpy()
    posterior = log_prob(Ensemble(network, masks), states).exp().numpy() * channel(noisy, states)
    posterior /= posterior.sum()
    seen = ~np.isnan(noisy)
    totals: dict[tuple[float, ...], float] = {}
    for state, chance in zip(states, posterior, strict=True):
        key = tuple(state[seen])
        totals[key] = totals.get(key, 0) + chance
    best, alone, wrong = (np.full(len(noisy), NAN) for _ in range(3))
    best[seen] = max(totals, key=totals.__getitem__)
    for d in np.flatnonzero(seen):
        marginal = [posterior[states[:, d] == value].sum() for value in range(SIZES[d])]
        alone[d], wrong[d] = np.argmax(marginal), 1 - marginal[int(noisy[d])]
    return best, alone, wrong


@pytest.mark.parametrize("masks", [None, 3])
def test_small_tables_are_cleaned_exactly(masks) -> None:
    """Whatever the masks: only probabilities of whole rows are asked for."""
    network = randomize(Network(COLUMNS, Connectivities(5, (12,), masks=masks), direct=True))
    noisy = worlds(COLUMNS).numpy()
    noisy = np.concatenate([noisy, np.where(np.arange(5) % 2 == 0, NAN, noisy[:5]), np.full((1, 5), NAN)])
    ensemble = Ensemble(network, 4 if masks is None else None)
    most_likely = denoise(ensemble, noisy, ERROR)
    expected = denoise(ensemble, noisy, ERROR, expected=True)
    for row, y in enumerate(noisy):
        best, alone, wrong = brute_force(network, y, ensemble.masks)
        for found, values in ((most_likely, best), (expected, alone)):
            np.testing.assert_array_equal(found.codes[row], values)
            np.testing.assert_allclose(found.wrong[row], wrong, atol=1e-9)
            assert np.array_equal(found.error[row], np.where(np.isnan(y), NAN, 0), equal_nan=True)
            assert found.method == "exact"
    assert (most_likely.codes[:, 2] == noisy[:, 2])[~np.isnan(noisy[:, 2])].all()  # never wrong
    assert most_likely.wrong[:24, 4] == pytest.approx(0, abs=1e-12)  # of one value there is no other


@pytest.fixture(scope="module")
def structured() -> tuple[MADE, np.ndarray]:
    """Eight columns that follow one hidden bit, each wrong with one in twenty, and a model of them."""
    random = np.random.default_rng(0)
    rows = (random.integers(2, size=(3000, 1)) ^ (random.random((3000, 8)) < 0.05)).astype(float)
    few = {"hidden_sizes": (32,), "max_epochs": 10, "evaluation_masks": 4, "schedule": "falling", "whole_rows": 0.0}
    return MADE(**few, random_state=0).fit(rows), rows[:200]


def noise(rows: np.ndarray, error: float) -> np.ndarray:
    return np.where(np.random.default_rng(1).random(rows.shape) < error, 1 - rows, rows)


def pairs() -> Network:
    """Three pairs of columns that depend on each other; conditionals in any order agree with joint probabilities."""
    network = Network(Columns.binary(6, signed=True), Connectivities(6, (), masks=None)).double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        for d in range(6):
            network.get_parameter("V")[d, d ^ 1] = 1.0 + d // 2
    return network


def test_gibbs_sampling_is_exact_within_its_standard_error() -> None:
    noisy = worlds(Columns.binary(6)).numpy()
    noisy[::5, 2] = NAN
    ensemble, error = Ensemble(pairs(), 2), np.array([0.1, 0.3, 0.2, 0.2, 0.4, 0.05])
    exact = denoise(ensemble, noisy, error, expected=True)
    options = {"most_states": 0, "generator": torch.Generator().manual_seed(0)}
    sampled = denoise(ensemble, noisy, error, expected=True, gibbs=Gibbs(8, 60, 10), **options)
    assert (exact.method, sampled.method) == ("exact", "Gibbs sampling")
    away = np.abs(sampled.wrong - exact.wrong)
    assert np.nanmax(away) < 0.1
    assert (away < 3 * sampled.error + 1e-3)[~np.isnan(away)].mean() > 0.95
    assert 0.002 < np.nanmean(sampled.error) < 0.02
    sure = np.abs(exact.wrong - 0.5) > 0.1
    assert (sampled.codes == exact.codes)[sure].all()


def test_no_single_entry_of_a_local_optimum_would_gain() -> None:
    states = worlds(Columns.binary(6)).numpy()
    ensemble, error = Ensemble(pairs(), 2), np.array([0.1, 0.3, 0.2, 0.2, 0.4, 0.05])
    log_p = log_prob(ensemble, states).numpy()
    climbed = denoise(ensemble, states, error, most_states=0)
    assert climbed.method == "local optimum"
    for y, x in zip(states, climbed.codes, strict=True):
        objective = log_p + np.log(channel(y, states, error, [2] * 6))
        beside = (states != x).sum(axis=1) <= 1
        assert objective[(states == x).all(axis=1)].item() > objective[beside].max() - 2e-4


def test_entry_by_entry_is_close_to_exact(structured) -> None:
    """Conditionals of a trained model need not agree with its joint probabilities, which have the last word."""
    model, rows = structured
    noisy, errors = noise(rows, 0.1), np.full(8, 0.1)
    best = denoise(model.model_.ensemble, noisy, errors)
    climbed = denoise(model.model_.ensemble, noisy, errors, most_states=0)
    assert (climbed.codes == best.codes).all(axis=1).mean() > 0.85
    after, before = (
        np.log([channel(y, x[None], errors, [2] * 8)[0] for y, x in zip(noisy, each, strict=True)])
        + model.score_samples(each)
        for each in (climbed.codes, noisy)
    )
    assert (after > before - 1e-4).all()  # never less likely than the row as it was


def test_gibbs_sampling_of_independent_columns_is_exact() -> None:
    """Where nothing depends on anything, conditionals and joint probabilities agree, and there is no chance in them."""
    network = Network(COLUMNS, Connectivities(5, (6,), masks=None)).double()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.copy_(torch.randn(weight.shape, dtype=torch.float64) if name == "c" else torch.zeros_like(weight))
    noisy = worlds(COLUMNS).numpy()
    exact = denoise(Ensemble(network, 2), noisy, ERROR, expected=True)
    sampled = denoise(
        Ensemble(network, 2), noisy, ERROR, expected=True, most_states=0, generator=torch.Generator().manual_seed(0)
    )
    np.testing.assert_allclose(sampled.wrong, exact.wrong, atol=1e-9)
    np.testing.assert_array_equal(sampled.codes, exact.codes)
    assert np.nanmax(sampled.error) < 1e-9
    climbed = denoise(Ensemble(network, 2), noisy, ERROR, most_states=0)
    np.testing.assert_array_equal(climbed.codes, exact.codes)


@pytest.mark.parametrize("most_states", [0, 1024])
@pytest.mark.parametrize("expected", [False, True])
def test_clean_rows_are_nearer_to_the_truth(structured, most_states, expected) -> None:
    model, rows = structured
    noisy = noise(rows, 0.15)
    clean = denoise(
        model.model_.ensemble,
        noisy,
        np.full(8, 0.15),
        expected=expected,
        most_states=most_states,
        generator=torch.Generator().manual_seed(0),
    )
    assert (clean.codes != rows).mean() < 0.6 * (noisy != rows).mean()
    wrong = noisy != rows
    assert clean.wrong[wrong].mean() > 3 * clean.wrong[~wrong].mean()


@pytest.fixture(scope="module")
def mixed() -> tuple[MADE, pd.DataFrame]:
    """Animals: their weights and lengths follow from what they are."""
    random = np.random.default_rng(0)
    dog = random.random(2500) < 0.4
    table = pd.DataFrame(
        {
            "animal": np.where(dog, "dog", "cat"),
            "weight": np.where(dog, random.normal(20, 2, 2500), random.normal(4, 0.5, 2500)).round(2),
            "length": np.where(dog, random.normal(80, 5, 2500), random.normal(45, 3, 2500)).round(),
            "barks": dog,
        }
    )
    return MADE(hidden_sizes=(64,), max_epochs=40, random_state=0).fit(table), table


ANIMALS = pd.DataFrame(
    {
        "animal": ["dog", "cat", "dog", "cat", "dog"],
        "weight": [20.0, 4.0, 4.0, 20.0, None],
        "length": [80.0, 45.0, 80.0, 45.0, 45.0],
        "barks": [True, False, True, False, True],
    }
)


@pytest.fixture(scope="module")
def most_likely(mixed) -> tuple[pd.DataFrame, Denoised]:
    return mixed[0].denoise(ANIMALS, 0.05, return_uncertainty=True)


@pytest.fixture(scope="module")
def expected(mixed) -> tuple[pd.DataFrame, Denoised]:
    return mixed[0].denoise(ANIMALS, 0.05, strategy="mean", return_uncertainty=True)


def test_rows_without_errors_are_kept(most_likely) -> None:
    clean, sure = most_likely
    assert clean.iloc[:2].equals(ANIMALS.iloc[:2])
    assert clean.length.tolist()[:4] == ANIMALS.length.tolist()[:4]
    assert sure.wrong[0].max() < 0.1


def test_wrong_numbers_are_replaced_by_likely_ones(most_likely) -> None:
    clean, sure = most_likely
    assert 12 < clean.weight[2] < 28
    assert 2 < clean.weight[3] < 6
    assert clean.length[4] > 60
    assert sure.wrong[2, 1] > 0.9


def test_missing_values_stay_missing(most_likely) -> None:
    clean, sure = most_likely
    assert pd.isna(clean.weight[4])
    assert np.isnan(sure.wrong[4, 1])


def test_a_local_optimum_has_no_standard_error(most_likely) -> None:
    _, sure = most_likely
    assert sure.method == "local optimum"
    assert np.isnan(sure.error[0]).all()


def test_expected_numbers_are_near_likely_ones(expected) -> None:
    clean, sure = expected
    assert clean.weight[2] == pytest.approx(20, abs=4)
    assert clean.weight[0] == pytest.approx(20, abs=0.5)
    assert clean.animal.tolist()[:3] == ANIMALS.animal.tolist()[:3]
    assert sure.wrong[2, 1] > 0.7


def test_gibbs_sampling_has_standard_errors_of_numbers_only(expected) -> None:
    _, sure = expected
    assert sure.method == "Gibbs sampling"
    assert (sure.error[0] < 0.1).all()
    assert np.isfinite(sure.value_error[:, 2]).all()
    assert np.isnan(sure.value_error[:, 0]).all()


def test_mixed_tables_are_cleaned_better_than_left(mixed) -> None:
    model, table = mixed
    random = np.random.default_rng(1)
    truth = table.head(900)
    noisy = truth.copy()
    wrong = random.random(truth.shape) < 0.1
    for d, name in enumerate(truth.columns):
        values = random.permutation(table[name].to_numpy())[:900]
        if d in (0, 3):
            values = np.where(truth[name] == table[name][0], table[name].unique()[1], table[name][0])
        noisy[name] = truth[name].where(~wrong[:, d], values)
    clean = model.denoise(noisy, 0.1)
    for name in ("animal", "barks"):
        assert (clean[name] != truth[name]).mean() <= 0.5 * (noisy[name] != truth[name]).mean()
    for name in ("weight", "length"):
        assert ((clean[name] - truth[name]) ** 2).mean() < 0.7 * ((noisy[name] - truth[name]) ** 2).mean()


@pytest.mark.parametrize("kind", [float, int, bool])
def test_the_container_of_the_rows_is_kept(structured, kind) -> None:
    model, rows = structured
    noisy = noise(rows, 0.1).astype(kind)
    clean = model.denoise(noisy, 0.1)
    assert clean.dtype == noisy.dtype
    assert np.array_equal(
        clean.astype(float), denoise(model.model_.ensemble, noisy.astype(float), np.full(8, 0.1)).codes
    )
    assert np.array_equal(model.denoise(noisy, 0), noisy)
    unlikely = model.denoise(noisy, 0, column_error={"x3": 0.4, 5: 0.2})
    assert (unlikely != noisy).any(axis=0).nonzero()[0].tolist() == [3, 5]


def test_invalid_denoising_is_refused(structured) -> None:
    model, rows = structured
    for options, error, message in (
        ({"error": 1.0}, QuestionError, "'error' should be a probability"),
        ({"column_error": {"x3": -0.1}}, QuestionError, r"not -0\.1"),
        ({"column_error": {"age": 0.1}}, QuestionError, "there is no column 'age'"),
        ({"strategy": "median"}, ValueError, "'strategy' should be mode or mean"),
    ):
        with pytest.raises(error, match=message):
            model.denoise(rows, **options)
    network = Network(20, Connectivities(20, (8,), masks=2))
    with pytest.raises(QuestionError, match="unlimited masks"):
        denoise(Ensemble(network), np.zeros((1, 20)), np.full(20, 0.1))
    for options in ({"chains": 1}, {"sweeps": 0}, {"burn_in": 30}, {"sweeps": True}):
        with pytest.raises(ValueError, match="should be"):
            Gibbs(**options)


def test_blocks_do_not_change_the_answer(mixed, monkeypatch) -> None:
    model, table = mixed
    whole = model.denoise(table.head(10), 0.2)
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 4)
    assert model.denoise(table.head(10), 0.2).equals(whole)
    generator = torch.Generator().manual_seed(3)
    parts = []
    for number in (1, 0):  # in any order
        rows, random = table[4 * number : 4 * number + 4], of_block(generator, number)
        parts.insert(0, model.denoise(rows, 0.2, strategy="mean", random_state=random))
    again = model.denoise(table[:8], 0.2, strategy="mean", random_state=generator)
    assert pd.concat(parts).equals(again)
