"""Numbers: densities that integrate to one in the data's own units, integers whose probabilities sum to one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from made import Binary, Columns, Connectivities, Ensemble, Network, Numeric, log_prob, sample
from made.columns.logistic import TAIL
from made.errors import DataError
from made.training.config import TrainingConfig
from made.training.train import train
from oracle import integral


def random_units(kind, *shape) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return kind.initial().double() + torch.randn(*shape, kind.outputs, generator=generator, dtype=torch.float64)


AMOUNT = Numeric(3.1, 1.1, curve=128, low=0)
PROFIT = Numeric(0.2, 0.8, curve=50, center=-20)


@pytest.mark.parametrize(
    "kind", [Numeric(0, 1), Numeric(170, 12.5), Numeric(-3e6, 2e4, components=1), Numeric(1, 2, low=0), AMOUNT, PROFIT]
)
def test_a_density_integrates_to_one(kind) -> None:
    units = random_units(kind)

    def density(values):
        return kind.log_prob(units.expand(len(values), -1), kind.inner(values)).exp()

    far = np.geomspace(200, 200_000, 40)  # the widest logistics are that wide
    cuts = np.concatenate([-far[::-1], np.linspace(-200, 200, 201)[1:-1], far])
    if kind.curve:  # on a curved scale, they are not wide, but a unit is many times as long as another
        cuts = kind.center + kind.curve * np.sinh(np.linspace(-250, 250, 1200))
    else:
        cuts = cuts * kind.scale + kind.location
    cuts = np.unique(cuts.clip(min=kind.low))
    assert integral(density, cuts) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("kind", [AMOUNT, PROFIT, Numeric(5, 2, step=1, low=0), Numeric(3.1, 1.1, 1, curve=9, low=0)])
def test_inner_and_outer_are_inverse(kind) -> None:
    values = torch.tensor([0.0, 1, 2, 17, 1000, 123_456], dtype=torch.float64)
    assert kind.valid(values).all()
    assert torch.allclose(kind.outer(kind.inner(values)), values, rtol=1e-12)
    single = kind.outer(kind.inner(values).float())  # a network's own precision
    assert torch.equal(single, values) if kind.step else torch.allclose(single, values, rtol=1e-4, atol=1e-3)
    if math.isfinite(kind.low):
        assert (kind.outer(torch.tensor([-50.0, -1e6])) == 0).all()
    assert kind.outer(torch.tensor([1e9, -1e9])).isfinite().all()


def test_nothing_is_below_the_least_value() -> None:
    """Whatever the units are: components far below the bound have tails above it, and these are what is left."""
    generator = torch.Generator().manual_seed(0)
    for kind in (AMOUNT, Numeric(5, 2, low=0), Numeric(5, 2, step=1, low=0), Numeric(3.1, 1.1, 1, curve=9, low=0)):
        for dtype in (torch.float32, torch.float64):
            units = kind.initial().to(dtype) - 30 * torch.rand(2000, kind.outputs, generator=generator, dtype=dtype)
            drawn = kind.draw(units, torch.rand(2000, generator=generator, dtype=dtype))
            assert kind.valid(kind.outer(drawn)).all()
            assert kind.log_prob(units, drawn).isfinite().all()
            for found in (kind.mode(units), kind.mean(units)):
                assert (kind.outer(found) >= 0).all()


@pytest.mark.parametrize(
    "kind",
    [
        Numeric(40, 13, step=1),
        Numeric(0, 0.3, step=1),
        Numeric(1000, 900, step=50),
        Numeric(3, 2, step=1, low=0),
        Numeric(1.5, 0.2, step=1, curve=2, low=0),
        Numeric(1.5, 0.2, step=5, curve=20, center=100, low=50),
        Numeric(0.5, 0.2, step=1, curve=30, center=-7),
    ],
)
def test_the_probabilities_of_integers_sum_to_one(kind) -> None:
    units = random_units(kind)
    origin = kind.center if kind.curve else kind.location
    values = origin + kind.step * torch.arange(-150_000, 150_001, dtype=torch.float64)
    assert kind.valid(values).all()
    probabilities = kind.log_prob(units.expand(len(values), -1), kind.inner(values)).exp()
    assert 0 < probabilities[values < kind.low].sum().item() < 1e-9 or not math.isfinite(kind.low)
    half = kind.step / 2
    beyond = [(-math.inf, values[0].item() - half), (values[-1].item() + half, math.inf)]
    tails = sum(kind.log_interval(units, *ends).exp().item() for ends in beyond)
    assert probabilities.sum().item() + tails == pytest.approx(1, abs=1e-9)
    assert not kind.valid(values[:1] + kind.step / 2).item()
    near = values[110_000:190_001]
    single = kind.log_prob(units.float().expand(len(near), -1), kind.inner(near).float()).exp()
    assert single.double().sum().item() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    "kind",
    [
        Numeric(5, 2),
        Numeric(5, 2, step=1),
        Numeric(2, 2, low=0),
        Numeric(2, 2, step=1, low=0),
        Numeric(1, 0.4, curve=3, low=0),
        Numeric(1, 0.4, step=1, curve=3, low=0),
        Numeric(0.05, 0.1, curve=20, center=2),
    ],
)
def test_draws_follow_the_density(kind) -> None:
    """Uniform numbers on a grid: the share of draws up to a value is the integral of the density up to it."""
    units = random_units(kind)
    grid = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    drawn = kind.outer(kind.draw(units.expand(20_000, -1), grid)).sort().values
    least = max(-60.0, kind.low)
    fine = torch.linspace(least, 60, 240_001, dtype=torch.float64)
    if kind.step:
        fine = torch.arange(least, 61.0, dtype=torch.float64)
        below = kind.log_prob(units.expand(len(fine), -1), kind.inner(fine)).exp().cumsum(0)
    else:
        below = torch.cumulative_trapezoid(kind.log_prob(units.expand(len(fine), -1), kind.inner(fine)).exp(), fine)
        fine = fine[1:]
    for x, expected in zip(fine[:: len(fine) // 50], below[:: len(fine) // 50], strict=True):
        assert (drawn <= x).double().mean().item() == pytest.approx(expected.item(), abs=3e-3)
    densest = fine[kind.log_prob(units.expand(len(fine), -1), kind.inner(fine)).argmax()]
    mode = kind.mode(units)
    assert kind.log_prob(units, mode) >= kind.log_prob(units, kind.inner(densest)) - 0.5
    # on a curved scale, what is in a tail counts as if it were where the tail begins, to within a node of the integral
    inside = drawn.clamp(*drawn.quantile(torch.tensor([TAIL, 1 - TAIL]).to(drawn))) if kind.curve else drawn
    slack = (0.5 if kind.step else 0.02) + (0.03 * inside.std().item() if kind.curve else 0)
    assert kind.outer(kind.mean(units)).item() == pytest.approx(inside.mean().item(), abs=slack)
    cold = kind.outer(kind.draw(kind.tempered(units, 0.1).expand(20_000, -1), grid))
    assert cold.std() < drawn.std()


def test_log_probabilities_are_accurate_in_the_far_tails() -> None:
    for kind in (Numeric(0, 1), Numeric(0, 1, step=1)):
        units = kind.initial().requires_grad_()
        values = torch.tensor([0.0, 1e4, -1e7])
        value = kind.log_prob(units.expand(3, -1), values)
        double = kind.log_prob(units.double().expand(3, -1), values.double())
        assert torch.allclose(value.double(), double, rtol=1e-4)
        (slope,) = torch.autograd.grad(value.sum(), units)
        assert slope.isfinite().all()


def test_an_outlier_costs_tens_of_nats() -> None:
    kind = Numeric(0, 1)
    units = kind.initial()
    units[-kind.components :] = -6  # as narrow as can be
    for value, most in ((10.0, 15), (100.0, 20), (1e4, 35)):
        assert -kind.log_prob(units, torch.tensor(value)).item() < most


def test_a_value_that_repeats_does_not_make_a_density_infinite() -> None:
    kind = Numeric(0, 1)
    units = torch.zeros(kind.outputs)
    units[-kind.components :] = -100
    assert kind.log_prob(units, torch.tensor(0.0)).item() < 7


def test_columns_of_numbers_are_worked_on_together() -> None:
    columns = Columns([Numeric(0, 1), Binary(), Numeric(100, 5), Numeric(10, 3, step=1)])
    rows = torch.tensor([[0.3, 1.0, 97.0, 12.0], [-1.0, 0.0, 110.5, 3.0]], dtype=torch.float64)
    assert str(columns) == "Columns(3 x Numeric, 1 x Binary(signed=False))"
    values, missing = columns.check(rows)
    assert missing is None
    assert torch.allclose(columns.outer(values), rows)
    units = torch.randn(2, columns.outputs, dtype=torch.float64)
    alone, start = [], 0
    for column, kind in enumerate(columns):
        alone.append(kind.log_prob(units[:, start : start + kind.outputs], values[:, column]))
        start += kind.outputs
    assert torch.allclose(columns.log_prob(units, values), torch.stack(alone, dim=1))
    with pytest.raises(DataError, match="inf is not a finite number"):
        columns.check([[float("inf"), 1, 0, 0]])
    with pytest.raises(DataError, match=r"row 0, column 3 \('x4'\): 0.5 is not a number in steps of 1 from 10"):
        columns.check([[0, 1, 0, 0.5]])


def test_a_model_learns_a_density_in_the_units_of_the_data() -> None:
    """A column of numbers that depends on a coin: the likelihood approaches the truth, and so do the samples."""
    generator = torch.Generator().manual_seed(0)
    coin = torch.randint(2, (3000,), generator=generator).double()
    height = 160 + 20 * coin + 4 * torch.randn(3000, generator=generator, dtype=torch.float64)
    rows = torch.stack([coin, height], dim=1)
    truth = np.log(2) + 0.5 * np.log(2 * np.pi * 16) + 0.5
    columns = Columns([Binary(signed=True), Numeric(170, 10)])
    network = Network(columns, Connectivities(2, (50,), masks=None), conditioning=True, direct=True)
    train(network, rows[:2000], rows[2000:2500], TrainingConfig(max_epochs=15, learning_rate=0.01, patience=10))
    assert -log_prob(Ensemble(network), rows[2500:]).mean().item() == pytest.approx(truth, abs=0.12)
    tall = sample(Ensemble(network), 500, known=[[1, float("nan")]], generator=0)
    assert tall.dtype == torch.float64
    assert tall[:, 1].mean().item() == pytest.approx(180, abs=1.5)
    assert tall[:, 1].std().item() == pytest.approx(4, abs=1)
    grid = torch.linspace(100, 250, 3001, dtype=torch.float64)
    table = torch.stack([torch.ones(3001, dtype=torch.float64), grid], dim=1)
    density = log_prob(Ensemble(network.double()), table, given=[0]).exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scale": 0.0}, "'scale' should be a finite number"),
        ({"scale": float("nan")}, "'scale' should be a finite number"),
        ({"step": -1.0}, "'step' should be a finite number, at least 0"),
        ({"components": 0}, "'components' should be at least 1"),
        ({"curve": -1.0}, "'curve' should be a finite number, at least 0"),
        ({"center": float("inf")}, "'center' should be a finite number"),
        ({"low": float("nan")}, "'low' should be a number, or -inf"),
        ({"low": 0.5, "step": 1.0}, "'low' should be on the grid with a step of 1, not 0.5"),
        ({"step": 1e300}, "'step' should be 1e-30 to 1e\\+30 where values have a step"),
        ({"step": 1e20}, "'step' should be 1e-12 to 1e\\+15 times the scale near the middle"),
        ({"step": 1.0, "scale": 1e300}, "'scale' should be 1e-30 to"),
        ({"step": 1.0, "scale": 1e-320}, "'scale' should be 1e-30 to"),
        ({"step": 1.0, "curve": 1e300}, "'step' should be 1e-12 to"),
        ({"step": 1.0, "curve": 1.0, "location": 500.0}, "'step' should be 1e-12 to"),
    ],
)
def test_arguments_are_checked(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        Numeric(**({"location": 0.0, "scale": 1.0} | wrong))


def test_a_small_wide_component_does_not_carry_the_mean_away() -> None:
    """A hundredth of the mixture is so wide on the curved scale that its own mean is far from everything."""
    kind = Numeric(0, 1, curve=1)
    weights, means, scales = kind.initial().unflatten(0, (3, kind.components)).clone()
    weights[:] = -30.0
    weights[:2] = torch.tensor([0.99, 0.01]).log()
    means[:2], scales[:2] = 0.5, torch.tensor([-2.0, 1.5])
    found = kind.outer(kind.mean(torch.cat([weights, means, scales]))).item()
    assert found == pytest.approx(math.sinh(0.5), abs=0.05)


@pytest.mark.parametrize("step", [0.0, 1.0])
@pytest.mark.parametrize("low", [-math.inf, 0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_finite_number_costs_more_than_tens_of_nats(step, low, dtype) -> None:
    """A column of 0 to 40: what is far away, or below a bound, is odd, but not infinitely so."""
    kind = Numeric(20, 12, step=step, low=low)
    values = torch.tensor([-1.0, -1e9, 1e6, 1e9, 1e12], dtype=torch.float64)
    cost = -kind.log_prob(kind.initial().to(dtype).expand(len(values), -1), kind.inner(values).to(dtype))
    assert cost.isfinite().all()
    assert (cost < 100).all()


def test_an_outlier_has_a_negligible_gradient() -> None:
    """The gradient of an outlier, which no mixture can reach, does not disturb the units."""
    kind = Numeric(20, 12, step=1)
    units = kind.initial().requires_grad_()
    kind.log_prob(units, kind.inner(torch.tensor(1e12)).float()).backward()
    assert units.grad is not None
    assert units.grad.abs().max() < 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_far_out_on_a_curved_scale_have_a_probability(dtype) -> None:
    kind = Numeric(3.1, 1.1, step=1, curve=9, low=0)
    values = torch.tensor([1e6, 1e7, 2e14, 1e15, 1e17], dtype=torch.float64)
    units = kind.initial().to(dtype).expand(len(values), -1)
    log_p = kind.log_prob(units, kind.inner(values).to(dtype))
    assert log_p.isfinite().all()
    assert (log_p.diff() < 0).all()
    # about as much as the density of the same column without steps
    smooth = Numeric(3.1, 1.1, curve=9, low=0)
    assert torch.allclose(log_p, smooth.log_prob(units, smooth.inner(values).to(dtype)), rtol=1e-3)
