"""Values, units and likelihoods of each kind of column."""

from __future__ import annotations

import pytest
import torch

from made import Binary, Categorical, Column, Columns, Connectivities, Ensemble, Network, log_prob, sample


@pytest.mark.parametrize(
    "kind", [Binary(), Binary(signed=True), Binary(share=0.3), Binary(zero=-0.2), Categorical(1), Categorical(4)]
)
def test_values_sum_to_one_and_draws_follow(kind) -> None:
    units = torch.randn(3, kind.outputs, dtype=torch.float64)
    values = torch.arange(2 if isinstance(kind, Binary) else kind.k, dtype=torch.float64)
    probabilities = torch.stack([kind.log_prob(units, value.expand(3)) for value in values], dim=-1).exp()
    assert torch.allclose(probabilities.sum(-1), torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-12)
    assert torch.equal(kind.mode(units), probabilities.argmax(-1).double())
    # uniform numbers on a grid: the share of each value is its probability
    grid = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    drawn = kind.draw(units[:1].expand(10_000, -1), kind.noise(grid))
    for value, probability in zip(values, probabilities[0], strict=True):
        assert (drawn == value).double().mean().item() == pytest.approx(probability.item(), abs=2e-4)
    assert kind.encode(values).shape == (len(values), kind.inputs)
    assert len(kind.encode(values).unique(dim=0)) == len(values)
    assert kind.valid(values).all()
    for wrong in (-1.0, 0.5, len(values) + 1.0, float("inf"), float("-inf"), float("nan")):
        assert not kind.valid(torch.tensor([wrong])).item()


def test_a_draw_never_leaves_the_categories() -> None:
    units = torch.full((1, 7), 1e-8)
    assert Categorical(7).draw(units, torch.tensor([1 - 2**-24])).item() == 6
    assert Categorical(7).draw(units, torch.tensor([0.0])).item() == 0


def test_signed_binary_tells_zero_from_a_missing_value() -> None:
    """A zero and a missing value are one to a network without conditioning weights, unless the zero is coded as -1."""
    assert Binary(signed=True).encode(torch.tensor([0.0, 1.0])).squeeze(-1).tolist() == [-1, 1]
    for signed in (False, True):
        network = Network(Columns.binary(2, signed=signed), Connectivities(2, (8,), masks=None), activation="tanh")
        zero, missing = network(torch.tensor([[0.0, 1.0], [float("nan"), 1.0]]))
        assert torch.equal(zero, missing) == (not signed)


def test_standardized_binary_has_mean_0_and_variance_1() -> None:
    shares = [0.25, 0.5, 0.8]
    columns = Columns([Binary(share=share) for share in shares])
    for dtype in (torch.float32, torch.float64):
        both = columns.encode(torch.tensor([[0.0] * 3, [1.0] * 3], dtype=dtype))
        assert both.dtype == dtype
        alone = [kind.encode(torch.tensor([0.0, 1.0], dtype=dtype)) for kind in columns]
        assert torch.equal(both, torch.cat(alone, dim=1))
        weights = torch.tensor([[1 - share for share in shares], shares], dtype=dtype)
        assert torch.allclose((weights * both).sum(dim=0), torch.zeros(3, dtype=dtype), atol=1e-6)
        assert torch.allclose((weights * both**2).sum(dim=0), torch.ones(3, dtype=dtype))
    assert Binary(share=1e-6).encode(torch.tensor(1.0)).item() < 11  # rare ones have a limit
    assert str(Binary(share=0.25)) == "Binary(share=0.25)"
    for wrong in ({"share": 0.0}, {"share": 1.0}, {"share": float("nan")}, {"share": 0.5, "signed": True}):
        with pytest.raises(ValueError, match="share"):
            Binary(**wrong)


def test_columns_are_worked_on_by_kind_in_any_order() -> None:
    columns = Columns([Categorical(3), Binary(), Categorical(2), Binary(), Categorical(3)])
    values = torch.tensor([[2.0, 1.0, 0.0, 0.0, 1.0]])
    assert columns.encode(values).tolist() == [[0, 0, 1, 1, 1, 0, 0, 0, 1, 0]]
    units = torch.randn(1, columns.outputs)
    one_by_one, start = [], 0
    for column, kind in enumerate(columns):
        part = units[:, start : start + kind.outputs]
        one_by_one.append(kind.log_prob(part, values[:, column]))
        start += kind.outputs
    assert torch.allclose(columns.log_prob(units, values), torch.stack(one_by_one, dim=1))


def test_names_and_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="'names' should have 2 elements, not 1"):
        Columns([Binary(), Binary()], ["a"])
    with pytest.raises(ValueError, match="at least one column"):
        Columns([])
    with pytest.raises(ValueError, match="'k' should be a whole number, at least 1, not 0"):
        Categorical(0)


def test_a_new_kind_works_without_changes_to_the_network() -> None:
    """A numeric column with a normal density: three lines of mathematics, and the engine takes it."""

    class Normal(Column):
        inputs, outputs, allowed = 1, 2, "a number"

        def valid(self, values):
            return values.isfinite()

        def encode(self, values):
            return values.unsqueeze(-1)

        def log_prob(self, units, values):
            return torch.distributions.Normal(units[..., 0], units[..., 1].exp()).log_prob(values)

        def draw(self, units, noise):
            return units[..., 0] + units[..., 1].exp() * noise

        def mode(self, units):
            return units[..., 0]

        def noise(self, uniform):
            return torch.special.ndtri(uniform)

    columns = Columns([Normal(), Binary(), Normal()])
    network = Network(columns, Connectivities(3, (16,), masks=None), direct=True, conditioning=True).double()
    rows = sample(Ensemble(network), 200, generator=0)
    assert rows[:, 0].std() > 0.1
    assert set(rows[:, 1].tolist()) == {0.0, 1.0}
    grid = torch.linspace(-12, 12, 2001, dtype=torch.float64)
    table = torch.tensor([[0.3, 1.0, 0.0]], dtype=torch.float64).repeat(2001, 1)
    table[:, 2] = grid
    density = log_prob(Ensemble(network), table, given=[0, 1]).exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_values_of_a_binary_column_are_valid_if_each_is(dtype) -> None:
    inf, nan = float("inf"), float("nan")
    near = torch.nextafter(torch.ones(2, dtype=dtype), torch.tensor([0, 2], dtype=dtype)).tolist()
    assert Binary().all_valid(torch.tensor([[0.0, 1.0], [-0.0, 1.0]], dtype=dtype))
    assert Binary().all_valid(torch.empty(0, 2, dtype=dtype))
    for wrong in (nan, inf, -inf, -1.0, 0.5, 2.0, 1e30, -1e30, 1e-30, *near):
        values = torch.tensor([[0.0, 1.0], [wrong, 1.0]], dtype=dtype)
        assert not Binary().valid(values).all()
        assert not Binary().all_valid(values)
