"""Numbers with points among them: probabilities at the points, a density or probabilities beside them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from made import Binary, Columns, Connectivities, Ensemble, Network, Numeric, log_prob, sample
from made.columns.logistic import TAIL
from made.columns.point_masses import CODE, PointMasses
from made.errors import DataError
from made.training.config import TrainingConfig
from made.training.train import train
from oracle import integral

INF = math.inf
REAL = PointMasses(Numeric(2.0, 0.8, curve=3, low=0), (0.0, 25.0))
ABSENT = PointMasses(Numeric(0.0, 1.0), (INF,))
BOTH = PointMasses(Numeric(10.0, 4.0, low=0), (0.0, 12.5, INF))
STEPS = PointMasses(Numeric(5.0, 3.0, step=1, low=0), (0.0, 7.0))
CURVED = PointMasses(Numeric(2.0, 0.8, step=1, curve=3, low=0), (0.0, 20.0, INF))
KINDS = [REAL, ABSENT, BOTH, STEPS, CURVED]


def random_units(kind: PointMasses) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return kind.initial().double() + 0.5 * torch.randn(kind.outputs, generator=generator, dtype=torch.float64)


def probability(kind: PointMasses, units: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return kind.log_prob(units.expand(*values.shape, -1), kind.inner(values)).exp()


@pytest.mark.parametrize("kind", KINDS)
def test_points_and_the_rest_sum_to_one(kind) -> None:
    units, points = random_units(kind), torch.tensor(kind.points, dtype=torch.float64)
    total = probability(kind, units, points).sum().item()
    assert 0.01 < total < 0.99
    if kind.rest.step:
        values = torch.arange(0.0, 300_000, dtype=torch.float64)
        beside = values[~torch.isin(values, points)]
        assert total + probability(kind, units, beside).sum().item() == pytest.approx(1, abs=1e-5)
        return

    cuts = np.sinh(np.linspace(-14, 14, 200)).clip(min=kind.rest.low)  # none of which is a point
    cuts = np.unique(np.where(cuts == 0, 1e-12, cuts))
    rest = integral(lambda values: probability(kind, units, values), cuts)
    assert total + rest == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow(kind) -> None:
    units = random_units(kind)
    grid = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    codes = kind.draw(units.expand(20_000, -1), grid)
    drawn = kind.outer(codes)
    assert kind.valid(drawn).all()
    assert torch.equal(kind.inner(drawn), codes) or not kind.rest.step  # a point is one, wherever it came from
    for spike in kind.points:
        expected = probability(kind, units, torch.tensor(spike, dtype=torch.float64)).item()
        assert (drawn == spike).double().mean().item() == pytest.approx(expected, abs=3e-4)
    # Kolmogorov and Smirnov: the rest of the draws against the rest's own distribution
    of_rest = drawn[~torch.isin(drawn, torch.tensor(kind.points, dtype=torch.float64))].sort().values
    own = kind.rest.outer(kind.rest.draw(units[kind.count + 1 :].expand(20_000, -1), grid))
    own = own[~torch.isin(own, torch.tensor(kind.points, dtype=torch.float64))].sort().values
    both = torch.cat([of_rest, own]).unique()
    below = [torch.searchsorted(each, both, right=True) / len(each) for each in (of_rest, own)]
    assert (below[0] - below[1]).abs().max().item() < 2e-3
    finite = drawn[drawn.isfinite()]
    if kind.rest.curve:  # what is in a tail of the rest counts as if it were where the tail begins
        ends = own.quantile(torch.tensor([TAIL, 1 - TAIL]).to(own))
        at = torch.isin(finite, torch.tensor(kind.points, dtype=torch.float64))
        finite = torch.where(at, finite, finite.clamp(*ends))
    slack = 0.02 * finite.std().item() + (0.5 if kind.rest.step else 0)
    assert kind.outer(kind.mean(units)).item() == pytest.approx(finite.mean().item(), abs=slack)
    cold = kind.outer(kind.draw(kind.tempered(units, 0.05).expand(20_000, -1), grid))
    assert len(cold.unique()) < len(drawn.unique()) or len(cold.unique()) > 10_000


@pytest.mark.parametrize("kind", KINDS)
def test_inner_and_outer_are_inverse(kind) -> None:
    values = torch.tensor([*kind.points, 1.0, 3.0, 100.0], dtype=torch.float64)
    assert torch.allclose(kind.outer(kind.inner(values)), values, rtol=1e-12)
    codes = kind.inner(values).float()  # in single precision, points are still exact
    assert torch.equal(kind.outer(codes)[: kind.count], values[: kind.count])


@pytest.mark.parametrize("kind", KINDS)
def test_points_have_units_of_their_own_beside_those_of_the_rest(kind) -> None:
    values = torch.tensor([*kind.points, 1.0, 3.0, 100.0], dtype=torch.float64)
    codes = kind.inner(values).float()
    units = kind.encode(codes)
    assert units.shape == (len(values), kind.inputs)
    assert torch.equal(units[: kind.count, : kind.count], torch.eye(kind.count))
    missing = torch.tensor([point == INF for point in kind.points])
    places = kind.rest.encode(kind.rest.inner(values[: kind.count].masked_fill(missing, 0)).float())
    assert torch.equal(units[: kind.count, kind.count :], places.masked_fill(missing.unsqueeze(1), 0))
    without = replace(kind, magnitudes=False).encode(codes)
    assert (without[: kind.count, kind.count :] == 0).all()
    assert (units[kind.count :, : kind.count] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_points_and_numbers_are_valid_and_infinity_only_if_it_is_a_point(kind) -> None:
    assert kind.valid(torch.tensor([*kind.points, 1.0, 3.0, 100.0], dtype=torch.float64)).all()
    assert not kind.valid(torch.tensor([-INF, math.nan])).any()
    assert kind.valid(torch.tensor(INF)) == (INF in kind.points)


def test_neighbours_of_a_point_are_not_the_point() -> None:
    units = random_units(REAL)
    beside = torch.tensor([0.0, 1e-300, 25.0, np.nextafter(25.0, 26)], dtype=torch.float64)
    log_p = REAL.log_prob(units.float().expand(4, -1), REAL.inner(beside).float())
    assert log_p[0] > log_p[1]
    assert log_p[2] > log_p[3]
    assert (REAL.inner(beside) >= CODE).tolist() == [True, False, True, False]


def test_the_mode_is_a_point_if_that_is_as_likely_as_the_rest() -> None:
    units = REAL.initial()
    units[: REAL.count + 1] = torch.tensor([2.1, -9.0, 2.0])
    assert REAL.outer(REAL.mode(units)).item() == 0


def test_the_mode_is_that_of_the_rest_if_most_numbers_are_others() -> None:
    units = REAL.initial()
    units[: REAL.count + 1] = torch.tensor([1.9, -9.0, 2.0])  # almost a half at zero
    mode = REAL.mode(units)
    assert REAL.outer(mode).item() > 0
    everywhere = REAL.inner(torch.linspace(0.01, 200, 20_001, dtype=torch.float64)).float()
    assert REAL.log_prob(units, mode) >= REAL.log_prob(units.expand(20_001, -1), everywhere).max() - 0.5
    # the units of the table do not matter: the same in cents
    cents = PointMasses(Numeric(2.0, 0.8, curve=300, low=0), (0.0, 2500.0))
    assert cents.outer(cents.mode(units)).item() == pytest.approx(100 * REAL.outer(mode).item(), rel=1e-5)


def test_initial_units_are_the_frequencies_of_the_points() -> None:
    values = torch.tensor([0.0] * 6 + [25.0] * 2 + [3.0] * 4, dtype=torch.float64)
    units = REAL.independent(REAL.inner(values))
    shares = units[:3].softmax(dim=0)
    assert shares.tolist() == pytest.approx([7 / 15, 3 / 15, 5 / 15])
    assert torch.equal(units[3:].float(), REAL.rest.initial())


def test_columns_with_points_are_worked_on_together() -> None:
    other = PointMasses(Numeric(0.3, 2.0, curve=1, low=0), (0.0, 1.5))
    columns = Columns([REAL, Binary(), other, STEPS, ABSENT])
    rows = torch.tensor([[0.0, 1, 1.5, 7, INF], [25, 0, 0, 3, 1], [3, 1, 2.5, 0, math.nan]], dtype=torch.float64)
    values, missing = columns.check(rows)
    assert missing.nonzero().tolist() == [[2, 4]]
    back = columns.outer(values)
    assert torch.allclose(back.masked_fill(missing, 0), rows.masked_fill(missing, 0))
    units = torch.randn(3, columns.outputs, dtype=torch.float64)
    alone, coded, start = [], [], 0
    for column, kind in enumerate(columns):
        alone.append(kind.log_prob(units[:, start : start + kind.outputs], values[:, column]))
        coded.append(kind.encode(values[:, column]))
        start += kind.outputs
    assert torch.allclose(columns.log_prob(units, values), torch.stack(alone, dim=1))
    assert torch.equal(columns.encode(values), torch.cat(coded, dim=1))
    with pytest.raises(DataError, match=r"column 0 \('x1'\): inf is not a finite number, nor NaN"):
        columns.check([[INF, 1, 0, 0, 0]])
    with pytest.raises(DataError, match=r"0\.5 is not a number in steps of 1 from 5"):
        columns.check([[0, 1, 0, 0.5, 0]])


def test_gradients_are_finite_at_and_beside_points() -> None:
    for kind in KINDS:
        units = kind.initial().requires_grad_()
        values = kind.inner(torch.tensor([*kind.points, 1.0, 1e6], dtype=torch.float64)).float()
        log_p = kind.log_prob(units.expand(len(values), -1), values)
        assert log_p.isfinite().all()
        (slope,) = torch.autograd.grad(log_p.sum(), units)
        assert slope.isfinite().all()


def test_a_model_learns_the_probability_of_a_point() -> None:
    """Debts of owners and of others: the share of zeros, and the amounts that are not."""
    generator = np.random.default_rng(0)
    owner = generator.random(2400) < 0.5
    debt = np.where(generator.random(2400) < np.where(owner, 0.9, 0.2), 0, np.exp(generator.normal(7, 0.5, 2400)))
    rows = torch.tensor(np.stack([owner, debt], axis=1), dtype=torch.float64)
    columns = Columns([Binary(signed=True), PointMasses(Numeric(2.3, 0.5, curve=200, low=0), (0.0,))])
    network = Network(columns, Connectivities(2, (32,), masks=None), conditioning=True, direct=True)
    train(network, rows[:1800], rows[1800:2100], TrainingConfig(max_epochs=30, learning_rate=0.005, patience=10))
    zero = log_prob(Ensemble(network), [[1.0, 0.0], [0.0, 0.0]], given=[0]).exp()
    assert zero.tolist() == pytest.approx([0.9, 0.2], abs=0.08)
    amount = np.log(debt[debt > 0])
    truth = np.log(2) + 0.45 * (amount.mean() + 0.5 * np.log(2 * np.pi * 0.25) + 0.5)
    truth -= 0.5 * sum(p * np.log(p) + (1 - p) * np.log(1 - p) for p in (0.9, 0.2))
    share = (debt[2100:] > 0).mean()  # what was drawn has more or less of the long part than is expected
    truth += (share - 0.45) * amount.mean()
    assert -log_prob(Ensemble(network), rows[2100:]).mean().item() == pytest.approx(truth, abs=0.15)
    drawn = sample(Ensemble(network), 400, known=[[0.0, math.nan]], generator=0)[:, 1]
    assert (drawn == 0).double().mean().item() == pytest.approx(0.2, abs=0.08)
    assert drawn.min() >= 0
    assert drawn[drawn > 0].log().mean().item() == pytest.approx(7, abs=0.15)


@pytest.mark.parametrize("points", [(), (1.0, 1.0), (math.nan,), (-1.0,), (0.5,)])
def test_arguments_are_checked(points) -> None:
    with pytest.raises(ValueError, match="'points' should"):
        PointMasses(Numeric(3, 1, step=1, low=0), points)
