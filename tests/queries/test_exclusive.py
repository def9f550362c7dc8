"""Exclusive groups of binary columns: every query agrees with sums over all rows, and with an oracle by the softmax."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from made import Connectivities, Ensemble, Network
from made.columns.group import Columns
from made.queries.conditional import predict
from made.queries.evidence import Evidence
from made.queries.likelihood import log_conditionals, log_prob, surprise
from made.queries.marginals import marginals
from made.queries.sampling import complete, sample

SIZES, ROWS = (3, 1, 2), 20
WIDTH = sum(SIZES)
WORLDS = torch.tensor(list(product([0.0, 1.0], repeat=WIDTH)), dtype=torch.float64)
NAN = float("nan")


def make_network(hidden: tuple[int, ...] = (8, 8), seed: int = 0, rows: int = ROWS, **options: Any) -> Network:
    family = {name: options.pop(name) for name in ("ordering", "whole_rows", "incomplete_rows") if name in options}
    connectivities = Connectivities(WIDTH, hidden, masks=None, residual=True, seed=seed, groups=SIZES, **family)
    columns = Columns.binary(WIDTH, signed=True).exclusive(SIZES, rows)
    network = Network(columns, connectivities, direct=True, **options).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) * 0.7)
        if network.calibration is not None:
            network.calibration.copy_(torch.randn(network.calibration.shape, generator=generator).double() / 2)
    return network


NETWORKS = {
    "two layers": {},
    "no hidden layer": {"hidden": ()},
    "one layer": {"hidden": (8,)},
    "conditioning": {"conditioning": True},
    "calibrated": {"calibrate": True},
    "natural": {"ordering": "natural"},
    "whole rows": {"whole_rows": 2, "incomplete_rows": True},
    "complete rows": {"whole_rows": 2},
}
SEGMENTS = [1, 2, 3]


@pytest.fixture(params=list(NETWORKS))
def network(request: pytest.FixtureRequest) -> Network:
    return make_network(**NETWORKS[request.param])


def raw_logits(network: Network, row: Tensor, asked: Tensor, given: Tensor) -> Tensor:
    """The output units of the natural ordering of groups, before they are coupled, by masks over columns alone.

    Only for a network without a hidden layer: z = c + V x, of the columns before the group, and the given ones.
    """
    number = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    before = (number.unsqueeze(1) > number) & asked | given
    return network.c.detach() + (network.V.detach() * before.double()) @ (
        network.columns.encode(row.unsqueeze(0))[0] * (asked | given)
    )


def softmax_oracle(network: Network, row: Tensor, asked: Tensor, given: Tensor) -> float:
    """log p(asked | given) under the natural ordering, by softmaxes over the choices that the given columns leave."""
    z, total, start, rare = raw_logits(network, row, asked, given), 0.0, 0, 1 / (5 * (ROWS + 2))
    for size in SIZES:
        own = range(start, start + size)
        start += size
        if size == 1:
            (d,) = own
            total += float(torch.nn.functional.logsigmoid((2 * row[d] - 1) * z[d])) if asked[d] else 0.0
            continue
        choices = {None: 0.0} | {d: float(z[d]) for d in own if not given[d]}
        ones = [d for d in own if asked[d] and row[d] == 1]
        later = [d for d in own if asked[d]]
        if any(given[d] and row[d] == 1 for d in own):
            total += sum(np.log(rare) if row[d] == 1 else np.log1p(-rare) for d in later)
            continue
        norm = np.logaddexp.reduce(list(choices.values()))
        if ones:
            total += choices[ones[0]] - norm
            total += sum(np.log(rare) if row[d] == 1 else np.log1p(-rare) for d in later if d > ones[0])
        else:  # none of those asked for: another one, or none
            total += np.logaddexp.reduce([z_d for d, z_d in choices.items() if d is None or not asked[d]]) - norm
    return total


@pytest.mark.parametrize("segments", SEGMENTS)
def test_without_hidden_layers_it_is_a_softmax_of_each_group(segments: int) -> None:
    network = make_network(hidden=(), ordering="natural")
    ensemble = Ensemble(network, masks=[0], segments=segments)
    generator = torch.Generator().manual_seed(1)
    for _ in range(40):
        row = (torch.rand(WIDTH, generator=generator) < 0.4).double()
        role = torch.randint(3, (WIDTH,), generator=generator)
        asked, given = role == 0, role == 1
        rows = row.masked_fill(~(asked | given), NAN).unsqueeze(0)
        # The asked groups come last: those before them are given or missing, so that the order does not matter...
        answer = log_prob(ensemble, rows, given=given.unsqueeze(0))
        number = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
        assert (number[asked].diff() >= 0).all()  # ... and they are in natural order
        assert answer.item() == pytest.approx(softmax_oracle(network, row, asked, given), abs=1e-9)


@pytest.mark.parametrize("segments", SEGMENTS)
def test_probabilities_of_all_rows_sum_to_one(network: Network, segments: int) -> None:
    ensemble = Ensemble(network, masks=3, segments=segments)
    assert log_prob(ensemble, WORLDS).exp().sum().item() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("segments", SEGMENTS)
def test_probabilities_given_some_columns_sum_to_one(network: Network, segments: int) -> None:
    ensemble = Ensemble(network, masks=2, segments=segments)
    generator = torch.Generator().manual_seed(2)
    for asked_last in (True, False):
        for _ in range(12):
            role = torch.randint(3, (WIDTH,), generator=generator)
            asked, given = role == 0, role == 1
            known = WORLDS[torch.randint(len(WORLDS), (1,), generator=generator)].squeeze(0)
            states = torch.tensor(list(product([0.0, 1.0], repeat=int(asked.sum()))), dtype=torch.float64)
            rows = known.masked_fill(~given, NAN).repeat(len(states), 1)
            rows[:, asked] = states.reshape(len(states), -1)
            flags = given.expand(len(rows), -1)
            total = log_prob(ensemble, rows, given=flags, asked_last=asked_last).exp().sum().item()
            assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("segments", SEGMENTS)
def test_surprise_adds_up_to_the_likelihood(network: Network, segments: int) -> None:
    ensemble = Ensemble(network, masks=[0], segments=segments)
    rows = WORLDS.clone()
    rows[::3, 1], rows[::5, 4] = NAN, NAN
    total = -np.nansum(surprise(ensemble, rows.numpy()), axis=1)
    np.testing.assert_allclose(total, log_prob(ensemble, rows).numpy(), atol=1e-9)


def test_missing_values_are_summed_out_within_a_group() -> None:
    network = make_network(rows=10**12)  # a second one hardly has a probability
    ensemble = Ensemble(network, masks=[0])
    number = np.repeat(np.arange(len(SIZES)), SIZES)
    last = network.connectivities[0].ordering.max()
    group = np.flatnonzero(network.connectivities[0].ordering == last)
    assert len(set(number[group])) == 1
    d = int(group[0])  # nothing comes after its group, so that only the coupling sums it out
    rows = WORLDS[WORLDS[:, d] == 0].clone()
    both = torch.stack([rows, rows.index_fill(1, torch.tensor([d]), 1.0)])
    ones = rows[:, group].sum(dim=1)
    exact = torch.stack([log_prob(ensemble, each) for each in both]).logsumexp(dim=0)
    rows[:, d] = NAN
    found = log_prob(ensemble, rows)
    np.testing.assert_allclose(found[ones == 0], exact[ones == 0], atol=1e-9)


@pytest.mark.parametrize("segments", SEGMENTS)
def test_predictions_marginals_and_likelihoods_agree(network: Network, segments: int) -> None:
    ensemble = Ensemble(network, masks=2, segments=segments)
    generator = torch.Generator().manual_seed(3)
    for _ in range(8):
        known = torch.rand(WIDTH, generator=generator) < 0.5
        row = WORLDS[torch.randint(len(WORLDS), (1,), generator=generator)]
        rows = row.masked_fill(~known, NAN)
        together = marginals(ensemble, rows)
        for d in (~known).nonzero().flatten().tolist():
            one = row.clone()
            one[:, ~known] = NAN
            one[:, d] = 1
            alone = predict(ensemble, rows, d)
            exact = log_prob(ensemble, one, given=known.unsqueeze(0) if known.any() else None).exp().item()
            assert alone.probabilities(2)[0, 1].item() == pytest.approx(exact, abs=1e-9)
            assert together[d].probabilities(2)[0, 1].item() == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("segments", SEGMENTS)
@pytest.mark.parametrize("known", [(), (1,), (0, 4), (3,)])
def test_samples_have_the_probabilities_of_the_likelihood(
    network: Network, segments: int, known: tuple[int, ...]
) -> None:
    ensemble = Ensemble(network, masks=2, segments=segments)
    count = 40_000
    row = torch.full((1, WIDTH), NAN, dtype=torch.float64)
    row[:, list(known)] = torch.tensor([float(d == 0) for d in known], dtype=torch.float64)
    drawn = sample(ensemble, count, known=row, generator=0)
    allowed = (WORLDS[:, list(known)] == row[:, list(known)]).all(dim=1)
    exact = torch.zeros(len(WORLDS), dtype=torch.float64)
    exact[allowed] = log_prob(ensemble, WORLDS[allowed], given=list(known) if known else None).exp()
    codes = (drawn * 2 ** torch.arange(WIDTH - 1, -1, -1)).sum(dim=1).long()
    frequency = codes.bincount(minlength=len(WORLDS)) / count
    away = (frequency - exact).abs() / (exact * (1 - exact) / count).sqrt().clamp(min=1e-4)
    assert away.max() < 5


def test_columns_that_are_not_wanted_are_summed_out() -> None:
    for segments in SEGMENTS:
        ensemble = Ensemble(make_network(calibrate=True), masks=[1], segments=segments)
        wanted = np.array([True, False, True, False, True, False])
        drawn = sample(ensemble, 40_000, generator=1, wanted=wanted)
        assert drawn[:, ~wanted].isnan().all()
        states = torch.tensor(list(product([0.0, 1.0], repeat=3)), dtype=torch.float64)
        rows = torch.full((8, WIDTH), NAN, dtype=torch.float64)
        rows[:, wanted] = states
        exact = log_prob(ensemble, rows).exp()
        codes = (drawn[:, wanted] * torch.tensor([4, 2, 1])).sum(dim=1).long()
        assert (codes.bincount(minlength=8) / 40_000 - exact).abs().max() < 0.012


def test_the_most_likely_values_are_chosen_in_turn() -> None:
    for segments in SEGMENTS:
        ensemble = Ensemble(make_network(), masks=[2], segments=segments)
        rows = torch.full((1, WIDTH), NAN, dtype=torch.float64)
        filled = sample(ensemble, known=rows, most_likely=True)
        factors = surprise(ensemble, filled.numpy())
        assert (factors < np.log(2) + 1e-9).all()


def test_temperature_sharpens_each_conditional() -> None:
    ensemble = Ensemble(make_network(), masks=[0], segments=3)
    cold = sample(ensemble, 300, temperature=1e-3, generator=0)
    likely = sample(ensemble, 1, most_likely=True)
    assert (cold == likely).all()


def test_single_and_double_precision_agree() -> None:
    network = make_network()
    twin = make_network().float()
    for segments in SEGMENTS:
        double, single = (log_prob(Ensemble(each, masks=2, segments=segments), WORLDS) for each in (network, twin))
        np.testing.assert_allclose(single.numpy(), double.numpy(), atol=2e-5)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_large_logits_stay_finite(scale: float) -> None:
    network = make_network(hidden=()).float()
    with torch.no_grad():
        network.c.mul_(scale)
    log_p = log_prob(Ensemble(network, masks=1), WORLDS)
    assert log_p.isfinite().all()
    assert log_p.exp().sum().item() == pytest.approx(1, abs=1e-4)


def test_rows_packed_and_in_their_own_order_agree() -> None:
    network = make_network()
    rows = WORLDS.repeat(20, 1)
    for number in range(3):
        few, many = (log_prob(Ensemble(network, masks=[number]), each) for each in (WORLDS, rows))
        np.testing.assert_allclose(many.reshape(20, -1).numpy(), few.expand(20, -1).numpy(), atol=1e-9)
    factors = log_conditionals(network, Evidence.of(network, WORLDS), 1)
    np.testing.assert_allclose(factors.sum(1).detach(), log_prob(Ensemble(network, masks=[1]), WORLDS), atol=1e-9)


def test_completion_keeps_what_is_known() -> None:
    network = make_network()
    generator = torch.Generator().manual_seed(4)
    rows = WORLDS.repeat(4, 1)
    rows = rows.masked_fill(torch.rand(rows.shape, generator=generator) < 0.5, NAN)
    for segments in SEGMENTS:
        noise = torch.rand(rows.shape, generator=generator, dtype=torch.float64)
        numbers = torch.arange(len(rows)) % 3
        filled = complete(Ensemble(network, masks=3, segments=segments), rows, numbers, noise)
        assert not filled.isnan().any()
        assert (filled == rows)[~rows.isnan()].all()


@pytest.mark.parametrize("groups", [None, (2, 1, 3)])
def test_columns_and_orderings_have_the_same_groups(groups: tuple[int, ...] | None) -> None:
    with pytest.raises(ValueError, match="the same exclusive groups"):
        Network(Columns.binary(WIDTH).exclusive(SIZES, ROWS), Connectivities(WIDTH, masks=None, groups=groups))
    with pytest.raises(ValueError, match="the same exclusive groups"):
        Network(Columns.binary(WIDTH), Connectivities(WIDTH, masks=None, groups=SIZES))
