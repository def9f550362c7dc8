"""What lies between two values is what draws find there, and draws from within it stay there."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from made import Numeric
from made.columns.base import MISSING
from made.columns.choice import choose
from made.columns.point_masses import PointMasses

KINDS = [
    Numeric(170, 10),
    Numeric(170, 10, step=1),
    Numeric(3, 1.5, curve=1.0, low=0.0),
    Numeric(3, 1.5, step=1, curve=1.0, low=0.0),
    Numeric(0.0, 2.0, low=-3.0),
    PointMasses(Numeric(3, 1.5, step=1, low=0), points=(0.0, math.inf)),
    PointMasses(Numeric(3, 1.5, curve=1.0, low=0.0), points=(0.0, 7.5)),
]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_the_mass_of_an_interval_is_the_share_of_draws_in_it(kind) -> None:
    generator = torch.Generator().manual_seed(0)
    units = kind.initial().double() + torch.randn(kind.outputs, generator=generator, dtype=torch.float64) * 0.5
    uniform = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    draws = kind.outer(kind.draw(units.expand(len(uniform), -1), uniform)).clamp(max=MISSING)
    rest = kind.rest if isinstance(kind, PointMasses) else kind
    half = rest.step / 2
    ends = np.quantile(draws[draws < MISSING].numpy(), [0, 0.01, 0.2, 0.5, 0.9]).tolist()
    ends = [-math.inf, *(end - half if not half else math.floor(end) + half for end in ends), MISSING, math.inf]
    total = 0.0
    for low, high in itertools.pairwise(sorted(set(ends))):
        mass = kind.log_interval(units, low, high).exp().item()
        share = ((draws >= low) & (draws < high)).double().mean().item()
        assert mass == pytest.approx(share, abs=1e-3)
        total += mass
        if mass > 1e-3:
            within = kind.draw_interval(units.expand(2000, -1), low, high, (torch.arange(2000) + 0.5) / 2000)
            values = kind.outer(within).clamp(max=MISSING)
            assert ((values >= low - 1e-9) & (values <= high + 1e-9)).all()
            inside = draws[(draws >= low) & (draws < high)]
            for point in np.quantile(inside.numpy(), [0.1, 0.5, 0.9]).tolist():
                found = (values <= point).double().mean().item()
                assert found == pytest.approx((inside <= point).double().mean().item(), abs=5e-3)
    assert total == pytest.approx(1, abs=1e-9)


def test_intervals_are_accurate_in_the_far_tails() -> None:
    kind = Numeric(0.0, 1.0)
    units = kind.initial().double()
    mass = kind.log_interval(units, 1e4, 2e4)
    assert torch.isfinite(mass)
    values = kind.draw_interval(units.expand(1000, -1), 1e4, 2e4, torch.rand(1000, dtype=torch.float64))
    assert ((values >= 1e4) & (values <= 2e4)).all()
    assert kind.log_interval(units, -math.inf, math.inf).item() == pytest.approx(0, abs=1e-12)


def test_points_have_a_probability_of_their_own() -> None:
    kind = PointMasses(Numeric(3, 1.5, curve=1.0, low=0.0), points=(0.0, 7.5))
    units = torch.randn(kind.outputs, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for point in kind.points:
        expected = kind.log_prob(units, kind.inner(torch.tensor(point, dtype=torch.float64)))
        assert kind.log_interval(units, point, math.nextafter(point, math.inf)).item() == pytest.approx(expected.item())
    at = kind.outer(
        kind.draw_interval(units.expand(10, -1), 7.5, math.nextafter(7.5, 8), torch.rand(10, dtype=torch.float64))
    )
    assert (at == 7.5).all()


def test_one_of_several_is_chosen_by_its_weight() -> None:
    uniform = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    weight = torch.tensor([0.2, 0.0, 0.8, 0.0], dtype=torch.float64).log().expand(1000, -1)
    chosen, within = choose(weight, uniform)
    assert chosen.bincount(minlength=4).tolist() == [200, 0, 800, 0]
    assert within[chosen == 2].mean().item() == pytest.approx(0.5, abs=1e-3)
    chosen, _ = choose(weight, torch.ones(1000, dtype=torch.float64))
    assert (chosen == 2).all()
