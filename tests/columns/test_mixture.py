"""Quantiles and moments of mixtures of points and logistics, against a grid of draws and against known values."""

from __future__ import annotations

import math

import pytest
import torch

from made import Column, Numeric
from made.columns import base
from made.columns.point_masses import PointMasses

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
KINDS = [
    Numeric(170.0, 10.0),
    Numeric(170.0, 10.0, step=0.01),
    Numeric(20.0, 5.0, step=1.0, low=0.0),
    Numeric(2.0, 0.5, curve=2.0, low=0.0),
    Numeric(5.0, 1.5, step=1.0, curve=10.0, low=0.0),
    PointMasses(Numeric(10.0, 4.0, low=0.0), (12.5, 0.0, math.inf)),
    PointMasses(Numeric(8.0, 3.0, step=1.0, low=0.0), (0.0, 12.0)),
]


@pytest.mark.parametrize("masks", [1, 3])
@pytest.mark.parametrize("narrower", [0.0, 4.0])
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_summaries_are_those_of_many_draws(kind, narrower, masks, monkeypatch) -> None:
    generator = torch.Generator().manual_seed(0)
    units = kind.initial().double() + 0.7 * torch.randn(masks, 10, kind.outputs, generator=generator)
    units[..., -8:] -= narrower * torch.rand(masks, 10, 1, generator=generator)
    log_weights = torch.randn(masks, 10, generator=generator, dtype=torch.float64).log_softmax(dim=0)
    found = kind.summary(log_weights, units, LEVELS)
    monkeypatch.setattr(base, "POINTS", 30_000)
    expected = Column.summary(kind, log_weights, units, LEVELS)
    spread = expected.standard_deviation
    assert ((found.mean - expected.mean).abs() < 5e-3 * spread).all()
    assert torch.allclose(found.standard_deviation, spread, rtol=0.05)
    assert ((found.quantiles - expected.quantiles).abs() <= kind.grid[1] + 0.01 * spread).all()


def two_narrow(kind: Numeric, share: float, places: tuple[float, float]) -> torch.Tensor:
    """Output units of two components so narrow that they are points. Shape: (masks, rows, outputs)."""
    units = torch.full((3, kind.components), -40.0, dtype=torch.float64)
    units[1] = 0.0
    units[0, :2] = torch.tensor([share, 1 - share]).logit()[0] * torch.tensor([0.5, -0.5])
    units[1, :2] = torch.tensor(places)
    return units.flatten().expand(1, 1, -1)


def test_a_gap_between_two_peaks_is_bridged() -> None:
    kind, certain = Numeric(0.0, 1.0), torch.zeros(1, 1)
    units = two_narrow(kind, 0.3, (-2.0, 5.0))
    found = kind.summary(certain, units, (0.1, 0.29, 0.31, 0.9))
    assert found.quantiles.flatten().tolist() == pytest.approx([-2, -2, 5, 5], abs=0.02)
    assert found.mean.item() == pytest.approx(0.3 * -2 + 0.7 * 5, abs=2e-3)
    assert found.standard_deviation.item() == pytest.approx(7 * math.sqrt(0.3 * 0.7), abs=2e-3)


def test_a_peak_within_a_step_has_the_value_of_the_step() -> None:
    kind, certain = Numeric(0.0, 100.0, step=1.0), torch.zeros(1, 1)  # the least scale is a tenth of a step
    above = torch.tensor(-3.0).sigmoid().item()  # the share of a peak at 3.2 above 3.5
    for places, mean in (((0.032, 0.032), 3 + above), ((0.032, 20.002), (3 + 2000) / 2 + above)):
        found = kind.summary(certain, two_narrow(kind, 0.5, places), (0.25,))
        assert found.quantiles.item() == 3
        assert found.mean.item() == pytest.approx(mean, rel=1e-3)


def test_quantiles_leave_out_what_is_missing_and_the_far_tails() -> None:
    kind, certain = PointMasses(Numeric(10.0, 1.0), (0.0, math.inf)), torch.zeros(1, 1)
    rest = kind.rest.initial().double()
    for missing in (0.0, 50.0):
        units = torch.cat([torch.tensor([0.0, missing, 0.0]), rest]).expand(1, 1, -1)
        found = kind.summary(certain, units, (0.0, 0.49, 0.51, 1.0)).quantiles.flatten()
        assert found[:2].tolist() == [0, 0]
        assert 0 < found[2] < found[3] < 1000
    assert torch.equal(found[3], kind.quantiles(certain, units, (1 - base.LEAST_LEVEL,)).squeeze())


def test_a_level_that_is_reached_exactly_is_reached() -> None:
    kind = PointMasses(Numeric(10.0, 1.0), (1.0, 0.0))
    units = torch.cat([torch.tensor([0.0, 0.0, -800.0]), kind.rest.initial()]).expand(1, 1, -1)
    assert kind.quantiles(torch.zeros(1, 1), units, (0.25, 0.5, 0.75)).flatten().tolist() == [0, 0, 1]


def test_a_component_entirely_below_the_least_value_counts_for_nothing() -> None:
    kind = Numeric(2.6, 1.4, step=1.0, curve=1.0, low=0.0)
    units = kind.initial().double()
    units[kind.components - 1] = -5.0
    expected = kind.summary(torch.zeros(1, 1).double(), units.reshape(1, 1, -1), (0.5,))
    units[2 * kind.components - 1], units[3 * kind.components - 1] = -40.0, -6.0  # far below, and narrow
    found = kind.summary(torch.zeros(1, 1).double(), units.reshape(1, 1, -1), (0.5,))
    assert found.quantiles.item() == expected.quantiles.item()
    assert found.mean.item() == pytest.approx(expected.mean.item(), rel=0.02)
