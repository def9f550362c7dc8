"""One pass: the autoregressive property, the paper's gradient, and no side effects."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given

from made import (
    Binary,
    Categorical,
    Columns,
    Connectivities,
    Connectivity,
    Ensemble,
    Network,
    log_conditionals,
    log_prob,
)
from made.network.layout import SortedLayout
from made.network.masked import ACTIVATIONS
from oracle import Dense, networks, packing, randomize, worlds


def jacobian(network: Network, number: int) -> torch.Tensor:
    """d output_d / d x_d', over columns, at a random point: through the plain and through the sorted pass."""
    jacobians = []
    for packed in (False, True):
        layout = network.layout(number, packed=packed)
        values = layout.arrange(torch.rand(1, len(network.columns), dtype=torch.float64))

        def outputs(point: torch.Tensor, layout=layout) -> torch.Tensor:
            return network.run(layout, point).squeeze(0)

        jacobians.append(torch.autograd.functional.jacobian(outputs, values).squeeze(1))
        order = (
            torch.argsort(torch.from_numpy(layout.connectivity.ordering)) if isinstance(layout, SortedLayout) else None
        )
        if order is not None:
            full = torch.empty_like(jacobians[-1])
            full[order[:, None], order] = jacobians[-1]
            jacobians[-1] = full
    assert torch.equal(jacobians[0] == 0, jacobians[1] == 0)
    return jacobians[1]


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("masks", [1, 4])
def test_jacobian_is_zero_where_forbidden_and_not_where_allowed(depth, masks) -> None:
    """Binary columns and a smooth activation, with enough hidden units for every path."""
    for direct in (False, True):
        family = Connectivities(7, (120,) * depth, masks=masks, ordering="random", residual=depth == 3)
        network = randomize(Network(7, family, activation="tanh", direct=direct, conditioning=True), scale=0.1)
        for number in range(masks):
            ordering = torch.from_numpy(family[number].ordering)
            allowed = ordering[:, None] > ordering[None, :]
            found = jacobian(network, number)
            assert (found[~allowed] == 0).all()
            assert (found[allowed] != 0).all()


def test_described_dependencies_are_those_of_the_jacobian() -> None:
    """With too few units some dependencies are missing, and the description says so."""
    family = Connectivities(6, (3, 3), ordering="random", seed=4)
    network = randomize(Network(6, family, activation="tanh"))
    depends = family[0].dependencies()
    assert torch.equal(jacobian(network, 0) != 0, torch.from_numpy(depends))
    allowed = family[0].ordering[:, None] > family[0].ordering[None, :]
    assert depends.sum() < allowed.sum()
    lines = network.dependencies().splitlines()
    assert len(lines) == 6
    for line, column in zip(lines, np.argsort(family[0].ordering), strict=True):
        for other in range(6):
            assert (f"x{other + 1}" in line.partition("|")[2]) == depends[column, other]


def algorithm_1(network: Network, connectivity: Connectivity, x: torch.Tensor) -> tuple[float, dict[str, torch.Tensor]]:
    """The paper's Algorithm 1, written out for one observation and ReLU: p(x) and the gradients of -log p(x)."""
    state, depth = network.state_dict(), network.depth
    m = [torch.from_numpy(each) for each in (connectivity.ordering, *connectivity.hidden)]
    masks = [(m[layer][:, None] >= m[layer - 1][None, :]).double() for layer in range(1, depth + 1)]
    mask_v = (m[0][:, None] > m[depth][None, :]).double()
    h, a = [x], [None]
    for layer in range(1, depth + 1):
        a.append(state[f"b{layer}"] + (state[f"W{layer}"] * masks[layer - 1]) @ h[layer - 1])
        h.append(a[layer].clamp(min=0))
    x_hat = torch.sigmoid(state["c"] + (state["V"] * mask_v) @ h[depth])
    p = torch.exp((x * x_hat.log() + (1 - x) * (1 - x_hat).log()).sum()).item()
    tmp = x_hat - x
    gradients = {"c": tmp, "V": torch.outer(tmp, h[depth]) * mask_v}
    tmp = (state["V"] * mask_v).T @ tmp
    for layer in range(depth, 0, -1):
        tmp = tmp * (a[layer] > 0)
        gradients[f"b{layer}"] = tmp
        gradients[f"W{layer}"] = torch.outer(tmp, h[layer - 1]) * masks[layer - 1]
        tmp = (state[f"W{layer}"] * masks[layer - 1]).T @ tmp
    return p, gradients


@pytest.mark.parametrize("masks", [1, 3, None])
@pytest.mark.parametrize("sizes", [(11,), (9, 13), (8, 8, 8)])
def test_gradient_is_that_of_algorithm_1(masks, sizes) -> None:
    family = Connectivities(6, sizes, masks=masks, ordering="random", seed=2)
    network = randomize(Network(6, family))
    for number, row in enumerate(worlds(network.columns)[[0, 13, 37, 63]]):
        network.zero_grad()
        log_p = log_conditionals(network, row[None], number).sum()
        (-log_p).backward()
        p, gradients = algorithm_1(network, family[number], row)
        assert log_p.exp().item() == pytest.approx(p, rel=1e-12)
        for name, expected in gradients.items():
            gradient = network.get_parameter(name).grad
            layout = network.layout(number)
            if isinstance(layout, SortedLayout) and name in network.matrices:
                # what is stored beside the corners' connections gets no gradient at all
                gradient = layout.stairs(network.matrices[name]).unpack(gradient)
            assert torch.allclose(gradient, expected, rtol=0, atol=1e-12), name


@given(networks())
def test_a_pass_changes_nothing(network) -> None:
    rows = worlds(network.columns)
    log_prob(Ensemble(network), rows[:1])
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    log_prob(Ensemble(network, None if network.connectivities.masks else 2), rows)
    first = network(rows, 1)
    log_conditionals(network, rows, 0).sum().backward()
    assert torch.equal(network(rows, 1), first)
    for name, parameter in network.named_parameters():
        assert torch.equal(parameter, before[name])


@given(networks())
def test_weights_without_a_connection_do_not_matter(network) -> None:
    """Whatever is written to the parameters, the pass is that of the masked weights."""
    rows = worlds(network.columns)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(0.7)
    for number in range(2):
        expected = Dense(network, network.connectivities[number]).outputs(rows)
        assert torch.allclose(network(rows, number), expected, rtol=0, atol=1e-12)


@given(networks())
def test_state_is_kept_in_full_and_loads_again(network) -> None:
    state = network.state_dict()
    for name in network.matrices:
        assert state[name].shape == network.shapes[name]
    with packing(network.packed):
        other = Network(
            network.columns,
            network.connectivities,
            activation=network.activation,
            direct=network.direct,
            conditioning=network.conditioning,
            calibrate=network.calibration is not None,
        )
    other = other.double().eval()
    other.load_state_dict(state)
    rows = worlds(network.columns)
    assert torch.equal(other(rows, 1), network(rows, 1))
    assert torch.equal(copy.deepcopy(network)(rows, 1), network(rows, 1))
    other.float().load_state_dict(state, assign=True)  # takes the type of what is loaded, too
    assert torch.equal(other(rows, 1), network(rows, 1))
    with pytest.raises(RuntimeError, match="size mismatch for c"):
        other.load_state_dict(state | {"c": torch.zeros(99)})


def test_one_mask_stored_packed_equals_the_same_stored_in_full() -> None:
    """The same seed gives the same weights, whatever the storage; and training keeps them the same."""
    one, many = (Connectivities(30, (60, 60), masks=masks, ordering="random", residual=True) for masks in (1, 2))
    rows = (torch.rand(50, 30) < 0.3).double()
    built = []
    for family, small in ((one, True), (one, False), (many, False)):
        with packing(small):
            network = Network(30, family, direct=True, conditioning=True, activation="softplus").double()
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            (-log_conditionals(network, rows, 0).sum(1).mean()).backward()
            optimizer.step()
        built.append(network)
    packed, *others = built
    assert packed.W1.ndim == 1
    assert sum(parameter.numel() for parameter in packed.parameters()) < sum(p.numel() for p in others[0].parameters())
    for full in others:
        assert full.W1.ndim == 2
        assert torch.allclose(log_prob(Ensemble(packed), rows), log_prob(Ensemble(full, [0]), rows), rtol=0, atol=1e-9)
    states = [network.state_dict() for network in built[:2]]
    for name, weights in states[0].items():
        assert torch.allclose(weights, states[1][name], rtol=0, atol=1e-9)
        assert torch.equal(weights == 0, states[1][name] == 0)


def test_weights_that_are_gathered_or_masked_at_once_give_the_same_outputs_and_gradients(monkeypatch) -> None:
    """Very large matrices are gathered, large ones compared, small ones masked at once."""
    family = Connectivities(40, (90, 90), masks=3, ordering="random", residual=True)
    rows = (torch.rand(50, 40) < 0.3).double()
    found = []
    for large, least in ((False, 0), (True, 2**21), (True, 0)):
        monkeypatch.setattr("made.network.layout.GATHERED", least)
        with packing(large):
            network = randomize(Network(40, family, direct=True, conditioning=True))
        for number in range(3):
            network.zero_grad()
            log_p = log_conditionals(network, rows, number)
            log_p.sum().backward()
            found.append([log_p.detach(), *(parameter.grad for parameter in network.parameters())])
    for each in zip(found[:3], found[3:6], found[6:], strict=True):
        for masked, *others in zip(*each, strict=True):
            for other in others:
                assert torch.allclose(masked, other, rtol=0, atol=1e-10)
                assert torch.equal(masked == 0, other == 0)


def test_every_activation_works_and_an_unknown_one_is_named() -> None:
    rows = worlds(Columns.binary(4))
    for name in ACTIVATIONS:
        for masks in (1, 2):
            network = randomize(Network(4, Connectivities(4, (9, 9), masks=masks, residual=True), activation=name))
            assert torch.allclose(network(rows), Dense(network, network.connectivities[0]).outputs(rows))
    with pytest.raises(ValueError, match=r"'activation' should be one of relu, softplus.*not 'swish'"):
        Network(4, Connectivities(4), activation="swish")


def test_dropout_is_for_training_and_reproducible() -> None:
    network = Network(8, Connectivities(8, (50,), masks=2), dropout=0.5)
    rows = torch.ones(3, 8)

    def train(seed: int) -> torch.Tensor:
        return log_conditionals(network, rows, generator=torch.Generator().manual_seed(seed))

    assert torch.equal(train(1), train(1))
    assert not torch.equal(train(1), train(2))
    assert torch.equal(
        log_prob(Ensemble(network), rows), log_prob(Ensemble(network), rows)
    )  # never in an answer, whatever the mode
    network.eval()
    assert torch.equal(train(1), train(2))
    with pytest.raises(ValueError, match="'dropout'"):
        Network(8, Connectivities(8), dropout=1.0)


@pytest.mark.parametrize("initialization", ["glorot", "orthogonal", "zero-output"])
def test_initialization(initialization) -> None:
    network = Network(20, Connectivities(20, (30,), masks=2), initialization=initialization, seed=3)
    again = Network(20, Connectivities(20, (30,), masks=2), initialization=initialization, seed=3)
    other = Network(20, Connectivities(20, (30,), masks=2), initialization=initialization, seed=4)
    assert torch.equal(network.W1, again.W1)
    assert not torch.equal(network.W1, other.W1)
    assert bool(network.V.any()) == (initialization != "zero-output")
    if initialization == "orthogonal":
        assert torch.allclose(network.W1.T @ network.W1, torch.eye(20), atol=1e-5)
    else:
        bound = (6 / 50) ** 0.5
        assert network.W1.abs().max() <= bound
        assert network.W1.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)


def test_an_unknown_initialization_is_refused() -> None:
    with pytest.raises(ValueError, match="'initialization' should be glorot, orthogonal or zero-output"):
        Network(3, Connectivities(3), initialization="zeros")


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("sizes", [(), (5,), (5, 5)])
@pytest.mark.parametrize("masks", [1, 2, None])
def test_one_and_two_columns_work(columns, sizes, masks) -> None:
    family = Connectivities(columns, sizes, masks=masks, ordering="random")
    network = randomize(Network(columns, family, direct=True, conditioning=True))
    assert log_prob(Ensemble(network), worlds(network.columns)).exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_printing_a_network_describes_it() -> None:
    columns = Columns([Binary(), Categorical(4)])
    family = Connectivities(2, (6, 6), masks=None, residual=True)
    network = Network(columns, family, direct=True, conditioning=True, dropout=0.1, activation="tanh")
    expected = (
        "Network(5-6-6-5, Columns(1 x Binary(signed=False), 1 x Categorical(k=4)), activation=tanh, direct, "
        "conditioning, residual, dropout=0.1, masks=unlimited)"
    )
    assert repr(network) == expected


def test_a_connectivity_that_is_not_the_networks_own_is_refused() -> None:
    network = Network(3, Connectivities(3, (4,)))
    other = Connectivities(3, (4,), ordering="random", seed=5)[0]
    with pytest.raises(ValueError, match="not the one that this network of a single mask"):
        network(torch.zeros(1, 3), other)
    with pytest.raises(ValueError, match="is for 4 columns, but 'columns' has 3"):
        Network(3, Connectivities(4))


def test_dtype_and_device_follow_the_network() -> None:
    network = Network(5, Connectivities(5, (8,)))
    rows = np.array([[0, 1, 0, 1, 1]], dtype=np.uint8)
    assert log_prob(Ensemble(network), rows).dtype == torch.float32
    assert log_prob(Ensemble(network.double()), rows).dtype == torch.float64
    assert log_prob(Ensemble(network.float()), rows).dtype == torch.float32
    on_meta = Network(5, Connectivities(5, (8,), masks=2)).to("meta")
    layout = on_meta.layout(0)
    assert on_meta.run(layout, torch.zeros(4, 5, device="meta")).device.type == "meta"


def test_evaluation_before_training_does_not_break_training() -> None:
    """What is kept from a pass in inference mode must serve a pass that needs gradients."""
    for masks in (1, 2):
        network, other = (Network(5, Connectivities(5, (8,), masks=masks)) for _ in range(2))
        with torch.inference_mode():
            network(torch.zeros(1, 5), 0)
        for each in (network, other):
            log_conditionals(each, torch.zeros(1, 5), 0).sum().backward()
        assert all(torch.equal(a.grad, b.grad) for a, b in zip(network.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("packed", [True, False])
def test_parameters_written_in_place_do_not_leak_through_the_mask(packed) -> None:
    """However parameters are written, what is stored beside the connections counts for nothing."""
    rows = worlds(Columns.binary(4))

    def total(network: Network) -> float:
        return log_prob(Ensemble(network), rows).exp().sum().item()

    with packing(packed):
        network = Network(4, Connectivities(4, (8,), ordering="random")).double()
    assert network.packed == packed
    for _ in range(2):
        for parameter in network.parameters():
            parameter.data.normal_()
        assert total(network) == pytest.approx(1, abs=1e-12)
        other = copy.deepcopy(network)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.normal_()
        assert total(other) == pytest.approx(1, abs=1e-12)
        network.W1 = torch.nn.Parameter(torch.randn_like(network.W1))
        assert total(network) == pytest.approx(1, abs=1e-12)


def test_half_precision_does_not_round_degrees() -> None:
    """600 columns: in bfloat16, degrees above 256 are not exact, and an output would see itself."""
    for masks in (1, None):
        network = Network(600, Connectivities(600, (), masks=masks, resample="degrees")).to(torch.bfloat16)
        with torch.no_grad():
            network.V.fill_(1.0)
        rows = torch.zeros(1, 600)
        changed = rows.clone()
        changed[0, 590] = 1
        assert ((network(rows) != network(changed))[0].nonzero() > 590).all()


def test_numbers_are_checked() -> None:
    network = Network(4, Connectivities(4, (8,), masks=2))
    for _ in range(2):
        with pytest.raises(ValueError, match="at least 0, not -1"):
            network(torch.zeros(1, 4), -1)
        network(torch.zeros(1, 4), 1)
    with pytest.raises(ValueError, match="'given' should be flags"):
        network(torch.zeros(1, 4), given=torch.tensor([[1, 0, 0, 0]]))
    with pytest.raises(ValueError, match="'given' needs a network of unlimited masks"):
        network(torch.zeros(1, 4), given=torch.tensor([[True, False, False, False]]))


@given(networks())
def test_outputs_ignore_their_own_column_and_later_ones(network) -> None:
    """For any architecture: derivatives are exactly zero, and what changes later changes an output by rounding only."""
    rows = worlds(network.columns)
    for number in range(2):
        ordering = network.connectivities[number].ordering
        for packed in (False, True):
            layout = network.layout(number, packed=packed)

            def outputs(values: torch.Tensor, layout=layout) -> torch.Tensor:
                return layout.restore(network.run(layout, layout.arrange(values)), network.depth + 1)

            found = torch.autograd.functional.jacobian(lambda row: outputs(row)[0], rows[:1]).squeeze(1)
            forbidden = ordering[network.columns.output_columns][:, None] <= ordering[None, :]
            assert (found[torch.from_numpy(forbidden)] == 0).all()
            every = outputs(rows)
            for column in range(len(network.columns)):
                before = rows[:, ordering < ordering[column]]
                same = (before[:, None] == before[None]).all(dim=2)
                of_column = every[:, network.columns.output_columns == column]
                differ = (of_column[:, None] - of_column[None]).abs().amax(dim=2)
                assert differ[same].max() < 1e-12


def test_input_dropout_leaves_out_inputs_in_training_only() -> None:
    family = Connectivities(4, (), masks=1)
    network = randomize(Network(4, family, input_dropout=0.5))
    rows = torch.ones(4000, 4, dtype=torch.float64)
    full = network.eval()(rows)
    network.train()
    thinned = network(rows)
    assert torch.equal(thinned[:, 0], full[:, 0])  # the first column sees nothing
    seen = thinned[:, 1].unique()
    assert len(seen) == 2  # its only input is there, twice as strong, or not
    assert torch.allclose(thinned.mean(dim=0), full.mean(dim=0), atol=0.15)
    with pytest.raises(ValueError, match="'input_dropout' should be at least 0 and below 1, not 1"):
        Network(4, family, input_dropout=1)


def test_biases_start_as_those_of_independent_columns() -> None:
    columns = Columns([Binary(), Categorical(3)])
    network = Network(columns, Connectivities(2, (5,)), direct=True)
    rows = torch.tensor([[1.0, 2.0], [1.0, 0.0], [0.0, 2.0]])
    network.start_independent(rows, torch.tensor([[True, True], [True, True], [False, True]]))
    with torch.no_grad():
        network.V.zero_()
    probability = log_conditionals(network, [[1, 2]]).exp()[0]
    assert probability.tolist() == pytest.approx([3 / 4, 3 / 6])
    assert not network.state_dict()["A"].any()


def test_a_copy_in_double_precision_has_the_same_weights_and_leaves_the_network_alone() -> None:
    network = Network(3, Connectivities(3, (5,), masks=None), direct=True, calibrate=True).eval()
    rows = torch.tensor([[1.0, 0.0, 1.0]])
    before = network(rows)
    twin = network.in_double()
    assert twin.in_double() is twin
    assert torch.equal(twin(rows), copy.deepcopy(network).double()(rows))
    with torch.no_grad():
        twin.c.add_(1)
    assert network(rows).dtype == torch.float32
    assert torch.equal(network(rows), before)
