"""Questions with one given column, whose answers are counted."""

from __future__ import annotations

import math

import pytest
import torch

from made import (
    Binary,
    Categorical,
    Columns,
    Connectivities,
    Ensemble,
    Evidence,
    Network,
    Numeric,
    TrainingConfig,
    train,
)
from made.network.dense import dense_outputs
from made.queries.conditional import predict
from made.training.pairs import PRIOR, CountedPairs
from oracle import randomize

COLUMNS = [Binary(signed=True), Categorical(3), Numeric(0, 1), Categorical(4)]


def rows(count: int = 200) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    table = torch.rand(count, 4, generator=generator, dtype=torch.double)
    first = (table[:, 0] < 0.4).double()
    second = ((table[:, 1] * 2).floor() + first).clamp(max=2)
    third = ((table[:, 3] * 3).floor() + second).remainder(4)
    table = torch.stack([first, second, table[:, 2], third], dim=1)
    return torch.where(torch.rand(table.shape, generator=generator) < 0.1, math.nan, table)


def network() -> Network:
    family = Connectivities(4, (8, 8), masks=None, residual=True)
    return randomize(Network(COLUMNS, family, direct=True)).double().eval()


@torch.no_grad()
def slow_loss(model: Network, table: torch.Tensor) -> float:
    """The definition, value by value."""
    listed, codes = (0, 1, 3), {0: 2, 1: 3, 3: 4}

    def frequencies(d: int, among: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
        counts = torch.stack([(among & (table[:, d] == k)).sum() for k in range(codes[d])]) + PRIOR * prior
        return counts / counts.sum()

    everybody = torch.ones(len(table), dtype=torch.bool)
    shares = {d: torch.stack([(table[:, d] == k).double().sum() for k in range(codes[d])]) for d in listed}
    shares = {d: share / share.sum() for d, share in shares.items()}
    contexts = [(e, v, shares[e][v]) for e in listed for v in range(codes[e])] + [(None, 0, 1.0)]
    total = 0.0
    for e, v, weight in contexts:
        given = torch.zeros(1, 4, dtype=torch.bool)
        value = torch.zeros(1, 4, dtype=torch.double)
        if e is not None:
            given[0, e], value[0, e] = True, v
        inputs = model.columns.encode(value) * model.columns.per_unit(given)
        units = dense_outputs(model, inputs, given)[:, 0]
        among = everybody if e is None else table[:, e] == v
        for d in listed:
            if d != e:
                log_p = torch.stack(
                    [
                        model.columns[d].log_prob(units[model.output_units(d)], torch.tensor(float(k)).double())
                        for k in range(codes[d])
                    ]
                )
                total -= weight * (frequencies(d, among, shares[d]) * log_p).sum()
    return float(total / (len(listed) + 1))


def test_the_loss_is_the_cross_entropy_of_the_counted_frequencies() -> None:
    model, table = network(), rows()
    counted = CountedPairs(model, Evidence.of(model, table))
    assert counted.loss(0, 100).item() == pytest.approx(slow_loss(model, table), rel=1e-9)


def test_many_contexts_take_turns() -> None:
    model, table = network(), rows()
    counted = CountedPairs(model, Evidence.of(model, table))
    assert len(counted) == 10
    some = [counted.loss(turn, 5).item() for turn in (0, 1)]
    assert sum(some) / 2 == pytest.approx(counted.loss(0, 10).item(), rel=1e-9)
    assert some[0] != pytest.approx(some[1])


def test_one_column_with_a_list_has_no_pairs() -> None:
    model = Network([Binary(), Numeric(0, 1)], Connectivities(2, (4,), masks=None))
    assert len(CountedPairs(model, Evidence.of(model, torch.zeros(5, 2)))) == 0


def test_a_network_learns_the_frequencies_of_pairs() -> None:
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(2, (400, 1), generator=generator).double()
    table = torch.cat([first, (first + (torch.rand(400, 4, generator=generator) < 0.3)).remainder(2)], dim=1)
    model = Network([Binary(signed=True)] * 5, Connectivities(5, (16, 16), masks=None, seed=0)).double()
    config = TrainingConfig(segments=5, questions=0.0, pairs=4.0, max_epochs=150, schedule="cosine")
    train(model, table, None, config)
    given = torch.tensor([[True, False, False, False, False]]).expand(2, 5)
    inputs = model.columns.encode(torch.tensor([[0.0], [1.0]]).double().expand(2, 5)) * given
    found = dense_outputs(model, inputs, given).sigmoid()[1:]
    expected = torch.stack([table[first[:, 0] == value, 1:].mean(dim=0) for value in (0, 1)], dim=1)
    assert torch.allclose(found, expected, rtol=0, atol=0.03)


def test_exclusive_columns_are_coupled() -> None:
    sizes, generator = (3, 1), torch.Generator().manual_seed(0)
    codes = torch.randint(4, (50,), generator=generator)
    rows = torch.cat([torch.eye(4)[codes][:, :3], torch.randint(2, (50, 1), generator=generator)], dim=1).double()
    columns = Columns.binary(4, signed=True).exclusive(sizes, 50)
    network = randomize(Network(columns, Connectivities(4, (8,), masks=None, groups=sizes)))
    pairs, ensemble, total = CountedPairs(network, Evidence(rows)), Ensemble(network, segments=2), 0.0
    for context in range(len(pairs)):
        known = pairs.contexts[context].masked_fill(~pairs.given[context], torch.nan).unsqueeze(0)
        for d in range(4):
            answers = pairs.answers[2 * d : 2 * d + 2, context]
            if not pairs.given[context, d]:
                total -= float(predict(ensemble, known, d).probabilities(2)[0].log() @ answers)
    assert pairs.loss(0, len(pairs)).item() == pytest.approx(total)
