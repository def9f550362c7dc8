"""The contract of a column kind, for every registered kind and for the Poisson of docs/columns.md."""

from __future__ import annotations

import json
import math
from functools import cache

import pytest
import torch
from torch import Tensor

from made import Binary, Categorical, Column, Numeric
from made.columns.ordinal import Ordinal
from made.columns.point_masses import PointMasses
from made.columns.registry import find_kind, kind_names
from made.columns.unseen import Unseen
from poisson import poisson

LISTED = [
    Binary(signed=True),
    Binary(share=0.3),
    Binary(zero=-0.25),
    Binary(signed=True, unseen=Unseen((0.0, 1.0), 1.0, 1e-3)),
    Categorical(4),
    Categorical(3, ordered=True),
    Categorical(4, reserved=0.05),
    Ordinal((0.0, 1.0, 2.0, 5.0), 1.0, 1e-3),
    Ordinal((0.5, 1.5, 2.0), share=0.0),
]
GRID = [
    Numeric(170.0, 10.0, step=1.0),
    Numeric(20.0, 5.0, step=1.0, low=0.0),
    Numeric(3.0, 0.7, step=1.0, curve=2.0, low=0.0),
    PointMasses(Numeric(8.0, 3.0, step=1.0, low=0.0), (0.0, 12.0)),
    poisson()(scale=3.0),
]
REAL = [
    Numeric(170.0, 10.0),
    Numeric(170.0, 10.0, knots=(150.0, 170.0, 190.0), cuts=(160.0, 181.5)),
    Numeric(20.0, 5.0, low=0.0),
    Numeric(2.0, 0.5, curve=2.0, low=0.0),
    PointMasses(Numeric(10.0, 4.0, low=0.0), (0.0, 12.5)),
]
EVERY = [*LISTED, *GRID, *REAL]
NUMBERS = [kind for kind in EVERY if kind.quantitative]


def units_of(kind: Column) -> Tensor:
    """Output units as training might leave them. Shape: (outputs)."""
    generator = torch.Generator().manual_seed(1)
    return kind.initial().double() + 0.4 * torch.randn(kind.outputs, generator=generator, dtype=torch.float64)


def points_of(kind: Column) -> Tensor:
    """All values that matter, of the table: every listed value, or a range that has all but a millionth."""
    low = kind.support[0]
    if kind.listed:
        return torch.arange(kind.codes, dtype=torch.float64)
    origin, spacing = kind.grid
    if spacing:
        first = low + spacing / 2 if math.isfinite(low) else origin - 1500
        return torch.arange(first, origin + 3000, spacing, dtype=torch.float64)
    return torch.linspace(max(low, -300.0), 700.0, 40_001, dtype=torch.float64)


@cache
def probabilities(kind: Column) -> tuple[Tensor, Tensor]:
    """Values of the table and their probabilities, by summation, or by the midpoint rule beside atoms."""
    values, units = points_of(kind), units_of(kind)
    if not kind.grid[1]:
        width, values = values.diff(), (values[1:] + values[:-1]) / 2
        p = kind.log_prob(units.expand(len(values), -1), kind.inner(values)).exp() * width
        atoms = torch.tensor(kind.atoms, dtype=torch.float64)
        at = kind.log_prob(units.expand(len(atoms), -1), kind.inner(atoms)).exp()
        values, order = torch.cat([values, atoms]).sort()
        return values, torch.cat([p, at])[order]
    return values, kind.log_prob(units.expand(len(values), -1), kind.inner(values)).exp()


def intervals(kind: Column) -> list[tuple[float, float]]:
    """Intervals between two edges of the grid, at quantiles of the distribution."""
    values, p = probabilities(kind)
    below = p.cumsum(0)
    places = [values[(below < share).sum().clamp(max=len(values) - 1)].item() for share in (0.1, 0.4, 0.9)]
    if kind.grid[1]:
        edges = [place - kind.grid[1] / 2 for place in places]
    else:  # between two cells of the midpoint rule
        start, end, cells = points_of(kind)[0].item(), points_of(kind)[-1].item(), len(points_of(kind)) - 1
        edges = [start + (end - start) / cells * round((place - start) * cells / (end - start)) for place in places]
    least, most = kind.support
    pairs = [(edges[0], edges[2]), (edges[1], most), (least, edges[1]), (least, most)]
    return [(low, high) for low, high in pairs if ((values >= low) & (values < high)).any()]


def tolerance(kind: Column) -> float:
    """The error of summation: on a curved scale, tails reach beyond the range."""
    return 1e-3 if getattr(kind, "curve", 0.0) else 5e-5


def test_every_registered_kind_is_in_the_list() -> None:
    assert {kind.kind for kind in EVERY} == set(kind_names())


@pytest.mark.parametrize("kind", EVERY, ids=repr)
def test_probabilities_sum_to_one(kind) -> None:
    unseen = kind.share if isinstance(kind, Ordinal) else kind.unseen.share if getattr(kind, "unseen", None) else 0.0
    assert probabilities(kind)[1].sum().item() == pytest.approx(1 - unseen, abs=tolerance(kind))


@pytest.mark.parametrize("kind", EVERY, ids=repr)
def test_intervals_are_sums(kind) -> None:
    values, p = probabilities(kind)
    for low, high in intervals(kind):
        expected = p[(values >= low) & (values < high)].sum().item()
        assert kind.log_interval(units_of(kind), low, high).exp().item() == pytest.approx(
            expected, abs=2 * tolerance(kind)
        )


@pytest.mark.parametrize("kind", EVERY, ids=repr)
def test_intervals_broadcast(kind) -> None:
    pairs = intervals(kind)
    low, high = (torch.tensor(each, dtype=torch.float64) for each in zip(*pairs, strict=True))
    together = kind.log_interval(units_of(kind).unsqueeze(0), low, high)
    alone = [kind.log_interval(units_of(kind), *pair).item() for pair in pairs]
    assert together.tolist() == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("kind", EVERY, ids=repr)
def test_draws_follow_the_cdf(kind) -> None:
    uniform = torch.rand(5_000, generator=torch.Generator().manual_seed(2), dtype=torch.float64).clamp(min=1e-12)
    drawn = kind.outer(kind.draw(units_of(kind).expand(len(uniform), -1), kind.noise(uniform)))
    values, p = probabilities(kind)
    if kind.listed:
        values, p = values[: kind.cardinality], p[: kind.cardinality]
    for low, high in intervals(kind):
        share = (p[(values >= low) & (values < high)].sum() / p.sum()).item()
        found = ((drawn >= low) & (drawn < high)).double().mean().item()
        assert found == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / len(uniform)) + 1e-3)


@pytest.mark.parametrize("kind", EVERY, ids=repr)
def test_draws_from_an_interval_follow_the_truncated_cdf(kind) -> None:
    uniform = torch.rand(5_000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    values, p = probabilities(kind)
    for low, high in intervals(kind):
        drawn = kind.outer(kind.draw_interval(units_of(kind).expand(len(uniform), -1), low, high, uniform))
        assert ((drawn >= low - 1e-9) & (drawn <= high)).all()
        inside = (values >= low) & (values < high)
        middle = values[inside][(p[inside].cumsum(0) < p[inside].sum() / 2).sum()]
        share = (p[inside & (values <= middle)].sum() / p[inside].sum()).item()
        found = (drawn <= middle + 1e-9).double().mean().item()
        assert found == pytest.approx(share, abs=4 * math.sqrt(0.25 / len(uniform)) + 1e-3)


@pytest.mark.parametrize("kind", EVERY, ids=repr)
def test_the_mode_has_the_highest_likelihood(kind) -> None:
    units, values = units_of(kind), points_of(kind)
    values = values[: kind.cardinality] if kind.listed else values[::10] if not kind.grid[1] else values
    values = torch.cat([values, torch.tensor(kind.atoms, dtype=torch.float64)])
    heights = kind.height(units.expand(len(values), -1), kind.inner(values))
    # The mode of a mixture of logistics is taken among those of its components.
    slack = 0.1 if kind.kind == "numeric" else 1e-9
    assert kind.height(units, kind.mode(units)).item() >= heights.max().item() - slack


@pytest.mark.parametrize("kind", NUMBERS, ids=repr)
def test_the_mean_is_the_expectation(kind) -> None:
    values, p = probabilities(kind)
    if kind.listed:
        values = torch.tensor(kind.values, dtype=torch.float64)
    curved = getattr(getattr(kind, "rest", kind), "curve", 0.0)
    if curved:  # the mean is winsorized
        below = p.cumsum(0)
        low, high = (values[(below < share).sum()] for share in (0.025, 0.975))
        values = values.clamp(low, high)
    expected = (p * values).sum() / p.sum()
    deviation = ((p * (values - expected) ** 2).sum() / p.sum()).sqrt()
    mean = kind.mean(units_of(kind))
    found = kind.numbers_of(mean) if kind.listed else getattr(kind, "rest", kind).outer(mean)
    rounding = 0.5 if kind.grid[1] and not kind.listed else 0.0  # outer rounds to the grid
    assert found.item() == pytest.approx(expected.item(), abs=rounding + (0.1 if curved else 0.01) * deviation.item())


@pytest.mark.parametrize("kind", NUMBERS, ids=repr)
def test_quantiles_invert_the_cdf(kind) -> None:
    values, p = probabilities(kind)
    levels = torch.tensor([0.05, 0.3, 0.5, 0.9], dtype=torch.float64)
    units = units_of(kind).expand(len(levels), -1)
    found = kind.outer(kind.quantile(units, levels))
    assert (kind.cdf(units, found) >= levels - 1e-9).all()
    for value, level in zip(found.tolist(), levels.tolist(), strict=True):
        assert p[values < value - 1e-3].sum().item() <= level + 1e-3


@pytest.mark.parametrize("kind", [*GRID, *REAL], ids=repr)
def test_summaries_are_those_of_the_mixture_over_masks(kind) -> None:
    """Quantiles invert P(X <= x); mean and standard deviation are of values clipped at the quantiles 0.5 and 99.5 %."""
    weights = torch.tensor([0.3, 0.7], dtype=torch.float64)
    masks = torch.stack([units_of(kind), units_of(kind).flip(0) + 0.5 * kind.initial()]).unsqueeze(1)
    values = probabilities(kind)[0]
    width = (points_of(kind)[1] - points_of(kind)[0]) if not kind.grid[1] else 1.0
    width = torch.where(torch.isin(values, torch.tensor(kind.atoms, dtype=torch.float64)), 1.0, width)
    units = masks.expand(2, len(values), -1)
    log_p = kind.log_prob(units, kind.inner(values).expand(2, -1))
    p = (weights.unsqueeze(1) * log_p.exp()).sum(dim=0) * width
    levels = (0.005, 0.05, 0.3, 0.5, 0.9, 0.995)
    found = kind.summary(weights.log().unsqueeze(1), masks, levels)
    quantiles, slack = found.quantiles.squeeze(1), 2 * tolerance(kind) + (2e-3 if kind.kind == "poisson" else 0.0)
    for value, level in zip(quantiles, levels, strict=True):
        cell = 0.0 if kind.grid[1] else p[(values - value).abs() < 0.1].max().item()
        assert p[values <= value + 1e-9].sum().item() >= level - slack - cell
        assert p[values < value - 1e-9].sum().item() <= level + slack + cell
    clipped = torch.cat([values.clamp(quantiles[0], quantiles[-1]), quantiles[-1:]])
    p = torch.cat([p, (1 - p.sum(0, keepdim=True)).clamp(min=0)])  # beyond the range
    mean = (p * clipped).sum()
    deviation = (p * (clipped - mean) ** 2).sum().sqrt()
    close = 2e-3 if kind.kind == "numeric" else 0.03
    assert (found.mean - mean).abs().item() <= close * deviation.item()
    assert found.standard_deviation.item() == pytest.approx(deviation.item(), rel=5 * close)
    assert torch.allclose(kind.quantiles(weights.log().unsqueeze(1), masks, levels), found.quantiles)
    if kind.grid[1]:
        assert ((quantiles - kind.grid[0]) / kind.grid[1]).frac().eq(0).all()


@pytest.mark.parametrize("kind", EVERY, ids=repr)
def test_config_json_keeps_the_kind(kind) -> None:
    other = getattr(kind, "reserved", 0.0) or (kind.share if isinstance(kind, Ordinal) else 0.0)
    other = other or getattr(getattr(kind, "unseen", None), "share", 0.0)
    values = getattr(kind, "values", tuple(range(kind.cardinality)))
    settings = json.loads(json.dumps(kind.to_json(), allow_nan=False))
    assert find_kind(kind.kind).from_json(settings, values, False, other) == kind


@pytest.mark.parametrize("kind", EVERY, ids=repr)
def test_input_units_are_finite(kind) -> None:
    values = points_of(kind)[::100]
    assert kind.valid(values).all()
    units = kind.encode(kind.inner(values))
    assert units.shape == (len(values), kind.inputs)
    assert units.isfinite().all()
    assert not kind.valid(torch.tensor([math.nan])).any()
