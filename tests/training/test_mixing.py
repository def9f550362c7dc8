"""The weights of the masks for whole rows: the maximum of a posterior, and a mixture in every answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from made import MADE, Columns, Connectivities, Ensemble, Network, sample
from made.queries.conditional import predict
from made.queries.evidence import Evidence
from made.queries.incremental import factors
from made.queries.likelihood import log_prob
from made.training.mixing import LEAST, PRIOR, better_by_column, mixture_weights, weigh_masks
from oracle import randomize, structured

COLUMNS, WEIGHTS = 4, (0.7, 0.0, 0.3)
WORLDS = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * COLUMNS).double()


def weighted(weights: tuple[float, ...] = WEIGHTS) -> Network:
    family = Connectivities(COLUMNS, (8,), masks=None, whole_rows=3, incomplete_rows=True, weights=weights)
    return randomize(Network(COLUMNS, family), scale=2.0).double().eval()


def each(network: Network, rows: torch.Tensor = WORLDS) -> torch.Tensor:
    """log p under each mask, (masks, rows)."""
    return torch.stack([log_prob(Ensemble(network, [number]), rows) for number in range(3)])


def test_weights_maximize_the_posterior() -> None:
    log_p = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 40)))
    log_p[1] += 0.7

    def loss(logits: np.ndarray) -> float:
        log_w = torch.from_numpy(logits).log_softmax(dim=0)
        return -((log_p + log_w[:, None]).logsumexp(dim=0).sum() + PRIOR * log_w.sum()).item()

    best = torch.from_numpy(minimize(loss, np.zeros(3)).x).softmax(dim=0)
    np.testing.assert_allclose(mixture_weights(log_p).numpy(), best.numpy(), atol=1e-4)


def test_a_mask_that_fits_the_rows_weighs_most() -> None:
    network = weighted(())
    rows = sample(Ensemble(network, [2]), 3000, generator=0).double()
    weights = weigh_masks(network, Evidence(rows))
    assert sum(weights) == pytest.approx(1)
    assert weights[2] > 0.8
    assert all(weight == 0 or weight >= LEAST for weight in weights)


def test_rows_with_missing_values_do_not_count_without_masks_for_them() -> None:
    network = Network(COLUMNS, Connectivities(COLUMNS, (8,), masks=None, whole_rows=3))
    rows = torch.full((5, COLUMNS), torch.nan)
    assert weigh_masks(network, Evidence.of(network, rows)) == ()


def test_probabilities_are_a_mixture_and_sum_to_one() -> None:
    network = weighted()
    found = log_prob(Ensemble(network, 3), WORLDS)
    expected = (each(network).exp() * torch.tensor(WEIGHTS, dtype=torch.float64)[:, None]).sum(dim=0)
    np.testing.assert_allclose(found.exp().numpy(), expected.numpy(), rtol=1e-9)
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-9)


def test_parts_of_rows_are_mixed_alike() -> None:
    """The probability of one column is the sum over the others."""
    ensemble, hole = Ensemble(weighted(), 3), torch.tensor([[torch.nan, torch.nan, 1.0, torch.nan]]).double()
    (prediction,) = [predict(ensemble, torch.full((1, COLUMNS), torch.nan), 2)]
    assert prediction.probabilities(2)[0, 1].item() == pytest.approx(log_prob(ensemble, hole).exp().item(), abs=1e-9)


def test_masks_without_weight_are_not_drawn() -> None:
    """Frequencies of all worlds against the mixture."""
    ensemble = Ensemble(weighted(), 3)
    drawn = sample(ensemble, 40_000, generator=0)
    counts = torch.bincount((drawn.long() * 2 ** torch.arange(COLUMNS - 1, -1, -1)).sum(dim=1), minlength=16)
    expected = log_prob(ensemble, WORLDS).exp()
    assert (counts / 40_000 - expected).abs().max() < 4 * (expected.max() / 40_000) ** 0.5


def test_a_mask_without_weight_answers_alone() -> None:
    found = log_prob(Ensemble(weighted(), [1]), WORLDS)
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("weights", [(1.0,), (0.5, -0.5, 1.0), (0.0, 0.0, 0.0), (2.0, 0.0, 0.0)])
def test_weights_are_shares(weights) -> None:
    with pytest.raises(ValueError, match="'weights' should be 3 shares"):
        weighted(weights)


def test_a_folder_keeps_the_weights(tmp_path) -> None:
    model = MADE(hidden_sizes=(8,), max_epochs=3, random_state=0).fit(structured(200))
    weights = model.model_.network.connectivities.weights
    assert len(weights) == 8
    model.save(tmp_path / "model")
    again = MADE.load(tmp_path / "model")
    assert again.model_.network.connectivities.weights == weights
    np.testing.assert_array_equal(again.score_samples(structured(50)), model.score_samples(structured(50)))


def test_rows_that_are_drawn_by_column_are_from_the_mean_over_all_orderings() -> None:
    """Frequencies of all worlds against the exact mean over the 24 orderings."""
    network = weighted()
    ensemble = Ensemble(network, 3, segments=COLUMNS, by_column=True)
    drawn = sample(ensemble, 40_000, generator=0)
    counts = torch.bincount((drawn.long() * 2 ** torch.arange(COLUMNS - 1, -1, -1)).sum(dim=1), minlength=16)
    orders = list(permutations(range(COLUMNS)))
    each = [sum(factor for _, factor in factors(network, Evidence(WORLDS), order)).exp() for order in orders]
    expected = torch.stack(each).mean(dim=0)
    assert (counts / 40_000 - expected).abs().max() < 4 * (expected.max() / 40_000) ** 0.5
    assert (expected - log_prob(ensemble, WORLDS).exp()).abs().max() > 0.05  # it is not the distribution of the masks


def test_rows_with_known_values_are_drawn_as_without_it() -> None:
    network, known = weighted(), [[1.0, torch.nan, 0.0, torch.nan]] * 50
    drawn = [
        sample(Ensemble(network, 3, segments=COLUMNS, by_column=flag), known=known, generator=3)
        for flag in (False, True)
    ]
    assert torch.equal(*drawn)


def test_groups_stay_together_when_rows_are_drawn_by_column() -> None:
    columns = Columns.binary(COLUMNS, signed=True).exclusive((3, 1), 100)
    network = randomize(Network(columns, Connectivities(COLUMNS, (8,), masks=None, groups=(3, 1))), scale=1.0).eval()
    drawn = sample(Ensemble(network, 2, segments=2, by_column=True), 500, generator=0)
    assert (drawn[:, :3].sum(dim=1) <= 1).double().mean() > 0.95


def test_only_wanted_columns_are_drawn_by_column() -> None:
    ensemble = Ensemble(weighted(), 3, segments=COLUMNS, by_column=True)
    drawn = sample(ensemble, 5, generator=0, wanted=np.array([True, False, True, True]))
    assert drawn.isnan().any(dim=0).tolist() == [False, True, False, False]


def test_the_likelier_way_to_draw_is_chosen() -> None:
    """Rows from one mask are likelier under the masks, rows from all orderings a column at a time."""
    network = weighted((0.0, 0.0, 1.0))
    ensemble = Ensemble(network, 3, segments=COLUMNS)
    for by_column in (False, True):
        rows = sample(replace(ensemble, by_column=by_column), 2000, generator=0).double()
        assert better_by_column(network, Evidence(rows), seed=0) is by_column


def test_networks_of_fixed_orderings_draw_under_their_masks() -> None:
    with pytest.raises(ValueError, match="'by_column' needs"):
        Ensemble(Network(3, Connectivities(3, (4,))), by_column=True)
