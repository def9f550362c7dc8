"""The systems that MADE is compared with: each exact likelihood sums to one, each sampler fits it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from made import Connectivities, Ensemble, Network, log_prob
from made.baselines import SYSTEMS, Density, LogProb
from made.baselines.bernoulli import BernoulliMixture
from made.baselines.blocked_nade import blocked_logits
from made.baselines.eonade import EoNADE, OrderlessNetwork, agnostic_loss, random_parts
from made.baselines.fvsbn import FVSBN
from made.baselines.image_shifts import DIRECTIONS, ImageShifts
from made.baselines.made import MaskSampling, OneMask
from made.baselines.nade import NADE, NADENetwork, sequential_pass
from made.baselines.optimization import column_means
from made.baselines.scikit import Scikit
from made.baselines.tied import TiedMADE, TiedNetwork, scan_ordering
from made.errors import DataError, QuestionError
from made.training.config import make_optimizer
from oracle import chi_square, structured

COLUMNS = 5
WORLDS = np.array(list(itertools.product((0, 1), repeat=COLUMNS)), dtype=np.uint8)
TRAIN, VALID = structured(seed=0), structured(100, seed=1)
TIED = {"orderings": 3, "any_order": 0.5, "line": 2, "standardized": True, "dropout": 0.3, "input_dropout": 0.1}
FAST = {
    "bernoulli": lambda seed=0: BernoulliMixture(1, seed=seed),
    "mixture": lambda seed=0: BernoulliMixture((2, 4), seed=seed),
    "fvsbn": lambda seed=0: FVSBN(max_epochs=5, learning_rate=0.02, seed=seed),
    "nade": lambda seed=0: NADE(12, ordering="random", max_epochs=5, seed=seed),
    "eonade": lambda seed=0: EoNADE((12,), orderings=3, max_epochs=1, learning_rate=0.01, seed=seed),
    "eonade2": lambda seed=0: EoNADE((12, 8), orderings=3, max_epochs=1, learning_rate=0.01, dropout=0.2, seed=seed),
    "made": lambda seed=0: OneMask(hidden_sizes=(12,), max_epochs=5, seed=seed),
    "made-masks": lambda seed=0: MaskSampling(hidden_sizes=(12,), masks=3, max_epochs=5, seed=seed),
    "tied": lambda seed=0: TiedMADE(12, **TIED, max_epochs=5, seed=seed),
}


@pytest.fixture(scope="module", params=list(FAST))
def fitted(request) -> Density:
    return FAST[request.param]().fit(TRAIN, VALID)


def test_every_system_has_a_small_one_here() -> None:
    assert set(FAST) == {name for name, system in SYSTEMS.items() if system.exact}
    for name in FAST:
        assert type(SYSTEMS[name].factory(3)) is type(FAST[name]())
        assert SYSTEMS[name].factory(3).seed == 3  # type: ignore[attr-defined]


def test_an_exact_likelihood_sums_to_one(fitted) -> None:
    answer = fitted.log_prob(WORLDS)
    assert (answer.kind, answer.standard_error) == ("exact", 0.0)
    assert answer.values.dtype == np.float64
    assert np.exp(answer.values).sum() == pytest.approx(1, abs=2e-6)
    assert isinstance(fitted, Density)
    assert fitted.size > 0
    assert fitted.epochs > 0


def test_a_sampler_fits_its_likelihood(fitted) -> None:
    """The frequencies of all states, by the statistic of a chi-square test."""
    count = 20_000
    drawn = fitted.sample(count, seed=5)
    assert drawn.dtype == np.uint8
    assert drawn.shape == (count, COLUMNS)
    assert chi_square(drawn, np.exp(np.asarray(fitted.log_prob(WORLDS)))) < 5
    assert np.array_equal(drawn, fitted.sample(count, seed=5))
    assert not np.array_equal(drawn, fitted.sample(count, seed=6))


@pytest.mark.parametrize("name", list(FAST))
def test_a_seed_makes_the_same_model(name) -> None:
    first, again, other = (FAST[name](seed).fit(TRAIN[:100], VALID).log_prob(WORLDS).values for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert name == "bernoulli" or not np.array_equal(first, other)


def test_what_depends_is_learned() -> None:
    """All but independence, which cannot, find that columns copy each other."""
    test = structured(1000, seed=2)
    alone = FAST["bernoulli"]().fit(TRAIN, VALID).log_prob(test).mean()
    for name in ("mixture", "nade", "eonade", "made", "tied"):
        more = {"max_epochs": 4 if name == "eonade" else 40, "learning_rate": 0.02} if name != "mixture" else {}
        system = FAST[name]()
        if more:
            getattr(system, "training", getattr(system, "parameters", None)).update(more)
        assert system.fit(TRAIN, VALID).log_prob(test).mean() > alone + 0.3, name


def naive(x, W, b, V, c, u, activation, t=None, width=1):
    """NADE as its equations are written, a hidden layer for each column."""
    units = torch.sigmoid if activation == "sigmoid" else torch.relu
    logits = []
    for d in range(x.shape[1]):
        a = b + x[:, :d] @ W[:d]
        if u is not None:
            a = a + u[:d].sum(dim=0)
        if t is not None:
            a = a + t[d // width]
        logits.append(units(a) @ V[d] + c[d])
    return torch.stack(logits, dim=1)


def same_logits_and_gradients(x, shapes, *ways) -> None:
    """Two ways from weights to logits are the same, and so are their gradients."""
    results = []
    for way in ways:
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]
        logits = way(*weights)
        F.binary_cross_entropy_with_logits(logits, x, reduction="sum").backward()
        results.append([logits.detach(), *(each.grad for each in weights)])
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def bits(rows, columns, share=0.5):
    return (torch.rand((rows, columns), generator=torch.Generator().manual_seed(0)) < share).double()


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("of_rows", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_blocked_logits_are_those_of_columns(activation, told, of_rows, width, share) -> None:
    """Whatever the blocks, where rows have no 1, and where they have nothing else."""
    columns = 7
    x, shapes = bits(6, columns, share), ((columns, 4), (6, 4) if of_rows else (4,), (columns, 4), (columns,))
    x = x * torch.arange(1, 7).unsqueeze(1)  # as inputs are of which some are left out
    target = x.clamp(max=1)

    def fast(W, b, V, c, t=None):
        return blocked_logits(x, W, b, V, c, t, activation=activation, width=width)

    def slow(W, b, V, c, t=None):
        return naive(x, W, b, V, c, None, activation, t, width)

    if told:
        shapes = (*shapes, (-(-columns // width), 4))
    same_logits_and_gradients(target, shapes, fast, slow)
    weights = [torch.randn(s, dtype=torch.float64) for s in shapes]
    with torch.no_grad():
        assert torch.allclose(fast(*weights), slow(*weights), rtol=0, atol=1e-12)


def test_the_gradient_of_nade_is_that_of_small_differences() -> None:
    x, shapes = bits(3, 4), ((4, 3), (3,), (4, 3), (4,), (2, 3))
    weights = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    assert torch.autograd.gradcheck(lambda *w: blocked_logits(x, *w, activation="sigmoid", width=2), weights)


@pytest.mark.parametrize("line", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("orderings", [1, 3])
def test_a_tied_network_is_told_how_far_it_is(line, orderings) -> None:
    """By a bias for each line, or by U: it sums to one, and draws what it finds likely."""
    model = TiedMADE(8, line=line, orderings=orderings, max_epochs=3, learning_rate=0.05).fit(TRAIN, VALID)
    with torch.no_grad():
        told = model.network_.b_line if orderings == 1 else model.network_.U
        told.normal_(generator=torch.Generator().manual_seed(0))
    p = np.exp(model.log_prob(WORLDS).values)
    assert p.sum() == pytest.approx(1, abs=1e-5)
    assert chi_square(model.sample(20_000, seed=1), p) < 5
    for wrong in (-1, 2.0):
        with pytest.raises(ValueError, match="'line' should be a whole number, at least 0"):
            TiedMADE(8, line=wrong).fit(TRAIN, VALID)


def test_nade_in_an_ordering_that_is_told() -> None:
    order = [3, 0, 4, 1, 2]
    model = NADE(6, ordering=order, max_epochs=2).fit(TRAIN, VALID)
    same = NADE(6, max_epochs=2).fit(TRAIN[:, order], VALID[:, order])
    assert np.array_equal(model.log_prob(WORLDS).values, same.log_prob(WORLDS[:, order]).values)
    with pytest.raises(ValueError, match="'ordering' should have each of the columns 0 to 4 once"):
        NADE(6, ordering=[0, 1, 2, 3, 3]).fit(TRAIN, VALID)
    with pytest.raises(ValueError, match="'ordering' should be natural, random"):
        NADE(6, ordering="walk").fit(TRAIN, VALID)
    with pytest.raises(ValueError, match="'input_dropout' should be at least 0"):
        NADE(6, input_dropout=1.0).fit(TRAIN, VALID)
    with pytest.raises(ValueError, match="'activation' should be one of sigmoid, relu"):
        NADE(6, activation="softplus").fit(TRAIN, VALID)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize("mask", [False, True])
def test_one_column_after_the_other_is_nade(activation, mask) -> None:
    x, shapes = bits(7, COLUMNS), ((COLUMNS, 4), (4,), (COLUMNS, 4), (COLUMNS,), (COLUMNS, 4))
    *weights, u = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    u = u if mask else None
    values, logits = sequential_pass(*weights, u, activation=activation, values=x)
    assert torch.equal(values, x)
    assert torch.allclose(logits, naive(x, *weights, u, activation), rtol=0, atol=1e-12)


def test_nade_leaves_out_units_in_training_only() -> None:
    network, x = NADENetwork(COLUMNS, 40, dropout=0.3, seed=1), bits(9, COLUMNS).float()
    keep = torch.rand(40, generator=torch.Generator().manual_seed(3)) >= 0.3
    with torch.no_grad():
        network.b.normal_(generator=torch.Generator().manual_seed(0))
        for share, chosen in ((0.3, keep), (0.0, torch.ones(40, dtype=torch.bool))):
            network.train(share > 0)
            V = network.V[:, chosen] / (1 - share)
            parts = (network.W[:, chosen], network.b[chosen], V, network.c, None, "sigmoid")
            assert torch.allclose(network(x, torch.Generator().manual_seed(3)), naive(x, *parts), atol=1e-4)


def test_a_tied_network_leaves_out_units_in_training_only() -> None:
    """The same ones for all rows, of all parameters; the others weigh more."""
    network, x = TiedNetwork(COLUMNS, 40, dropout=0.3, line=2, directions=DIRECTIONS, seed=1), bits(9, COLUMNS).float()
    directions, ordering = torch.arange(9), torch.arange(COLUMNS)
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(generator=torch.Generator().manual_seed(weight.numel()))
        keep = torch.rand(40, generator=torch.Generator().manual_seed(3)) >= 0.3
        told = network.b + torch.cat([torch.zeros(1, 40), network.b_moved])[directions]
        for share, chosen in ((0.3, keep), (0.0, torch.ones(40, dtype=torch.bool))):
            network.train(share > 0)
            found = network.in_ordering(x, ordering, torch.Generator().manual_seed(3), directions)
            V = network.V[:, chosen] / (1 - share)
            parts = (network.W[:, chosen], told[:, chosen], V, network.c, None, "sigmoid", network.b_line[:, chosen], 2)
            assert torch.allclose(found, naive(x, *parts), atol=1e-4)
    assert 0 < keep.sum() < 40
    with pytest.raises(ValueError, match="'directions' should be None"):
        TiedNetwork(COLUMNS, 4).in_ordering(x, ordering, directions=directions)


def test_nade_leaves_out_inputs_in_training_only() -> None:
    network = NADENetwork(COLUMNS, 6, input_dropout=0.5, seed=1)
    plain = NADENetwork(COLUMNS, 6, seed=1)
    x = torch.from_numpy(WORLDS).float().repeat(500, 1)
    assert torch.equal(network.eval()(x), plain(x))
    with torch.no_grad():
        network.V.fill_(1), plain.V.fill_(1)
        network.W.mul_(1e-3), plain.W.mul_(1e-3)  # so small that logits are linear in the inputs
        noisy, expected = network.train()(x, torch.Generator().manual_seed(0)), plain(x)
    assert not torch.equal(noisy, expected)
    assert torch.equal(noisy[:, 0], expected[:, 0])
    assert torch.allclose(noisy.reshape(500, -1).mean(dim=0), expected[:32].reshape(-1), atol=3e-4)


def test_moves_are_those_of_images() -> None:
    """In any ordering of the pixels: as a picture that is rolled, with zeros where it comes in again."""
    generator = torch.Generator().manual_seed(0)
    order, images = np.random.default_rng(0).permutation(12), torch.randint(2, (20, 3, 4), generator=generator).float()
    shifts, seen = ImageShifts((3, 4), order, share=0.6), set()
    for number in range(1, DIRECTIONS + 1):
        rows = shifts.shift(images.reshape(20, 12)[:, order], torch.full((20,), number))
        moved = rows[:, np.argsort(order)].reshape(20, 3, 4)
        for down, right in itertools.product((-1, 0, 1), repeat=2):
            expected = torch.roll(images, (down, right), dims=(1, 2))
            if down:
                expected[:, 0 if down > 0 else -1] = 0
            if right:
                expected[:, :, 0 if right > 0 else -1] = 0
            if torch.equal(moved, expected):
                seen.add((down, right))
    assert len(seen) == DIRECTIONS
    assert (0, 0) not in seen
    x = images.reshape(20, 12)[:, order].repeat(500, 1)
    rows, directions = shifts(x, generator)
    assert torch.equal(rows[directions == 0], x[directions == 0])
    share = directions.bincount().double() / len(directions)
    assert torch.allclose(share, torch.tensor([0.4] + [0.6 / 8] * 8, dtype=torch.float64), atol=0.02)
    with pytest.raises(ValueError, match="'image' should have 12 pixels"):
        ImageShifts((3, 3), order, share=0.5)
    with pytest.raises(ValueError, match="'moved' should be at least 0 and below 1"):
        ImageShifts((3, 4), order, share=1.0)
    with pytest.raises(ValueError, match="'image' should be the height and width"):
        TiedMADE(moved=0.5)


def test_a_tied_network_that_learns_from_moved_rows_is_a_distribution_of_the_others() -> None:
    """Rows 10000 and 01000: 00100, which the second becomes when it is moved, is not taken for likely."""
    rows = np.repeat(np.eye(COLUMNS, dtype=np.uint8)[:2], 200, axis=0)
    model = TiedMADE(16, moved=0.5, image=(1, COLUMNS), max_epochs=60, learning_rate=0.05)
    p = np.exp(model.fit(rows, rows).log_prob(WORLDS).values)
    assert p.sum() == pytest.approx(1, abs=1e-5)
    assert p[WORLDS[:, 2] == 1].sum() < 0.02
    assert -model.log_prob(rows).mean() < np.log(2) + 0.05
    x, directions = torch.from_numpy(WORLDS).float(), torch.full((len(WORLDS),), 4)
    with torch.no_grad():
        net, ordering = model.network_, torch.arange(COLUMNS)
        logits = net.in_ordering(x, ordering, directions=directions)
        same = naive(x, net.W, net.b + net.b_moved[3], net.V, net.c, None, "sigmoid")
    assert torch.allclose(logits, same, atol=1e-5)
    assert not torch.allclose(logits, net.in_ordering(x, ordering), atol=0.1)


@pytest.mark.parametrize("standardized", [False, True])
def test_a_tied_network_in_any_ordering_is_its_equations(standardized) -> None:
    network = TiedNetwork(COLUMNS, 6, conditioning=True, standardized=standardized, line=2, seed=1)
    network.start(torch.from_numpy(TRAIN).float(), seed=3)
    network.double().eval()
    x, ordering = torch.from_numpy(WORLDS).double(), torch.tensor([3, 0, 4, 1, 2])
    with torch.no_grad():
        network.V.normal_(generator=torch.Generator().manual_seed(2))
        network.U.normal_(generator=torch.Generator().manual_seed(1))
        found = network.in_ordering(x, ordering)
        first, noise = torch.arange(COLUMNS), torch.rand(x.shape, dtype=x.dtype)
        assert torch.equal(network(x), network.in_ordering(x, first))
        assert torch.equal(network.sample(noise), network.sample_in_ordering(noise, first))
        inputs = (x - network.mean) / network.scale if standardized else x
        for place, column in enumerate(ordering.tolist()):
            a = network.b.expand(len(x), -1)
            for before, other in enumerate(ordering[:place].tolist()):
                a = a + inputs[:, [other]] * network.W[other]
                if before // 2 < place // 2:
                    a = a + network.U[other]
                elif standardized:  # in the same block the network is not told, and takes a 0 for the mean
                    a = a + network.mean[other] / network.scale[other] * network.W[other]
            expected = torch.sigmoid(a) @ network.V[column] + network.c[column]
            assert torch.allclose(found[:, place], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("given", [[2], [4, 0], [0, 1, 2, 3]])
def test_a_tied_network_of_any_order_answers_any_question(given) -> None:
    """What is not given sums to one, whatever is given; in each ordering the product of both parts is the whole."""
    model = TiedMADE(8, line=2, orderings=2, any_order=0.5, standardized=True, max_epochs=5, seed=1).fit(TRAIN, VALID)
    p = np.exp(model.log_prob(WORLDS, given=given).values)
    assert np.array_equal(p, np.exp(model.log_prob(WORLDS, given=set(given)).values))
    for values in itertools.product((0, 1), repeat=len(given)):
        assert p[(WORLDS[:, given] == values).all(axis=1)].sum() == pytest.approx(1, abs=1e-5)
    one = TiedMADE(8, line=2, any_order=0.5, max_epochs=5, seed=1).fit(TRAIN, VALID)
    (ordering,) = one.orderings_
    whole, rest = (one.log_prob(WORLDS, given=ordering[:n].tolist()).values for n in (0, 2))
    first = np.exp(whole - rest)  # p of the first two columns, the same in all worlds that agree there
    for values in itertools.product((0, 1), repeat=2):
        here = first[(WORLDS[:, ordering[:2]] == values).all(axis=1)]
        assert here == pytest.approx(here[0], rel=1e-4)
    for wrong in ([5], [1, 1], [-1], [True], [2.0], [[0], [1]]):
        with pytest.raises(ValueError, match="'given' should be some of the columns 0 to 4"):
            model.log_prob(WORLDS, given=wrong)
    with pytest.raises(ValueError, match="'given' needs a model with 'any_order' above 0"):
        TiedMADE(4, max_epochs=1).fit(TRAIN, VALID).log_prob(WORLDS, given=given)


def test_a_tied_network_learns_the_orderings_that_it_is_asked_for() -> None:
    model = TiedMADE(4, orderings=3, any_order=0.5, max_epochs=1, seed=2).fit(TRAIN, VALID)
    generator = torch.Generator().manual_seed(0)
    drawn = [model.next_ordering(generator) for _ in range(2000)]
    for place in model.places_:
        share = sum(torch.equal(each, place) for each in drawn) / len(drawn)
        assert share == pytest.approx(0.5 / 3 + 0.5 / 120, abs=0.03)
    assert np.array_equal(model.orderings_[0][model.places_], model.orderings_)
    alone = TiedMADE(4, max_epochs=1, seed=2).fit(TRAIN, VALID)
    assert np.array_equal(alone.orderings_, model.orderings_[:1])
    assert alone.network_.U is None
    assert TiedMADE(4, ordering="natural", max_epochs=1).fit(TRAIN, VALID).orderings_.tolist() == [[0, 1, 2, 3, 4]]
    assert len({tuple(scan_ordering((3, 2), number)) for number in range(8)}) == 8
    pixels = TiedMADE(4, ordering="walk", image=(1, COLUMNS), max_epochs=1, seed=2).fit(TRAIN, VALID)
    assert pixels.orderings_.tolist() == [[4, 3, 2, 1, 0]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(({name: value}, f"'{name}' should be a whole number") for name in ("hidden_size", "orderings", "line", "seed")
          for value in (-1, 1.5, True)),
        ({"any_order": -0.1}, "'any_order' should be a share"),
        ({"any_order": 1.1}, "'any_order' should be a share"),
        ({"ordering": "up"}, "'ordering' should be random, walk or natural"),
        ({"ordering": "natural", "orderings": 2}, "'orderings' should be at most 1"),
        ({"ordering": "walk", "orderings": 4, "image": (1, COLUMNS)}, "'orderings' should be at most 2"),
        ({"ordering": "walk", "image": (2, 2)}, "'image' should have 5 pixels"),
        ({"ordering": "walk", "image": (1, COLUMNS, 1)}, "'image' should be a height and a width"),
    ],
)  # fmt: skip
def test_what_a_tied_network_cannot_be_is_said(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        TiedMADE(**{"hidden_size": 4, "max_epochs": 1} | wrong).fit(TRAIN, VALID)


def test_a_tied_network_begins_with_independent_columns() -> None:
    network, x = TiedNetwork(COLUMNS, 400, standardized=True, seed=1), torch.from_numpy(TRAIN).float()
    x[:, 0] = 0
    network.start(x, seed=2)
    share = (x.sum(dim=0) + 1) / (len(x) + 2)
    assert torch.allclose(network.mean, share)
    assert torch.allclose(network.scale, (share * (1 - share)).sqrt().clamp(min=0.1))
    assert network.scale.min().item() == pytest.approx(0.1)
    assert torch.allclose(network.c, share.logit())
    assert network.W.std().item() == pytest.approx((2 / COLUMNS) ** 0.5, rel=0.05)
    assert not network.V.any()
    plain = TiedNetwork(COLUMNS, 4, seed=1)
    W = plain.W.detach().clone()
    plain.start(x, seed=2)
    assert torch.equal(plain.W, W)
    assert torch.allclose(plain.c, share.logit())


def test_a_tied_network_is_what_was_asked_for_and_its_conditioning_weights_learn_slowly(monkeypatch) -> None:
    seen = {}

    def spy(*arguments):
        seen["optimizer"] = make_optimizer(*arguments)
        return seen["optimizer"]

    monkeypatch.setattr("made.baselines.optimization.make_optimizer", spy)
    asked = {"activation": "relu", "dropout": 0.5, "input_dropout": 0.2, "standardized": True}
    model = TiedMADE(4, line=2, any_order=0.5, learning_rate=0.1, weight_decay=0.3, max_epochs=20, seed=3, **asked)
    network = model.fit(TRAIN, VALID).network_  # some updates have no unit at all
    assert {name: getattr(network, name) for name in asked} == asked
    (group,) = (each for each in seen["optimizer"].param_groups if each["params"][0] is network.U)
    assert (group["initial_lr"], group["weight_decay"]) == (pytest.approx(0.1 / COLUMNS**0.5), 0.3)
    assert network.U.any()
    assert torch.allclose(network.mean, column_means(torch.from_numpy(TRAIN[:, model.orderings_[0]]).float()))
    network.dropout, x = 0.0, torch.ones(1, COLUMNS)
    logits = [network.train().in_ordering(x, model.places_[0], torch.Generator().manual_seed(n)) for n in range(9)]
    assert len({tuple(each[0].tolist()) for each in logits}) > 1  # inputs that are left out
    other = TiedMADE(4, any_order=0.5, max_epochs=2, seed=4, **asked).fit(TRAIN, VALID)
    assert not np.array_equal(other.orderings_, model.orderings_)
    again = TiedMADE(4, any_order=0.5, max_epochs=2, seed=4, **asked).restore(other.network_.state_dict())
    assert np.array_equal(again.log_prob(WORLDS).values, other.log_prob(WORLDS).values)
    tied = SYSTEMS["tied"].factory(0)
    assert (tied.orderings, tied.activation, tied.standardized) == (16, "relu", True)


def test_nade_is_its_equations() -> None:
    network = NADENetwork(COLUMNS, 6, seed=1).double().eval()
    x = torch.from_numpy(WORLDS).double()
    with torch.no_grad():
        expected = naive(x, network.W, network.b, network.V, network.c, None, network.activation)
        assert torch.allclose(network(x), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [(6,), (6, 4)])
def test_eonade_in_an_ordering_is_what_it_says_of_each_column_given_those_before(sizes) -> None:
    """D passes, each with what comes before as given, against the fast way."""
    network = OrderlessNetwork(COLUMNS, sizes, seed=1).double().eval()
    network.start(torch.from_numpy(TRAIN).double())
    x, generator = torch.from_numpy(WORLDS).double(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
        ordering = torch.tensor([3, 0, 4, 1, 2])
        expected = torch.zeros(len(x), dtype=torch.float64)
        for position, column in enumerate(ordering.tolist()):
            given = torch.zeros_like(x)
            given[:, ordering[:position]] = 1
            logits = network(x, given)[:, column]
            expected -= F.binary_cross_entropy_with_logits(logits, x[:, column], reduction="none")
        assert torch.allclose(network.log_prob(x, ordering), expected, rtol=0, atol=1e-9)


def test_eonade_is_the_engine_with_a_segment_for_each_column() -> None:
    """The engine's any-order network with conditioning weights, told the same weights, gives the same likelihood."""
    family = Connectivities(COLUMNS, (6,), masks=None)
    engine = Network(COLUMNS, family, activation="relu", conditioning=True).double()
    orderless = OrderlessNetwork(COLUMNS, (6,), activation="relu", seed=1).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in orderless.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
        mean = next((buffer for name, buffer in orderless.named_buffers()), torch.zeros(COLUMNS))
        engine.load_state_dict(
            {
                "W1": orderless.W.t(),
                "U1": (orderless.U - mean[:, None] * orderless.W).t(),
                "U2": torch.zeros(engine.shapes["U2"]),
                "V": orderless.V,
                "b1": orderless.b,
                "c": orderless.c,
            }
        )
    x = torch.from_numpy(WORLDS).double()
    for number in (0, 3):
        ordering = torch.from_numpy(family[number].ordering.argsort())
        answer = log_prob(Ensemble(engine, [number], segments=COLUMNS), x)
        with torch.no_grad():
            assert torch.allclose(orderless.log_prob(x, ordering), answer, rtol=0, atol=1e-9)


def test_what_eonade_learns_from_is_the_mean_over_orderings() -> None:
    """The loss over all parts, each size as likely and each part of a size, is the mean NLL of all orderings."""
    network = OrderlessNetwork(3, (4,), seed=2).double().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64))
        x = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
        orders = [torch.tensor(order) for order in itertools.permutations(range(3))]
        expected = -torch.stack([network.log_prob(x, order) for order in orders]).mean()
        total = 0.0
        for size in range(3):
            parts = list(itertools.combinations(range(3), size))
            for part in parts:
                given = torch.zeros_like(x)
                given[0, list(part)] = 1
                total += agnostic_loss(network, x, given).item() * 3 / (3 - size) / len(parts) / 3
    assert total == pytest.approx(expected.item(), abs=1e-9)
    given, weight = random_parts(x.repeat(3000, 1), torch.Generator().manual_seed(0))
    sizes = given.sum(dim=1)
    assert torch.allclose(weight, (3 / (3 - sizes)).to(weight.dtype))
    assert torch.bincount(sizes.long(), minlength=3).tolist() == pytest.approx([1000] * 3, abs=100)
    assert given.mean(dim=0).tolist() == pytest.approx([1 / 3] * 3, abs=0.05)


def test_rows_that_are_not_binary_are_refused(fitted) -> None:
    for rows, said in (
        ([[0, 1, 2, 0, 0]], "row 0, column 2: 2 is not 0 or 1"),
        ([[0, 1, np.nan, 0, 0]], "row 0, column 2: NaN, but this model needs complete rows"),
        ([[0, 1]], r"shape \(rows, 5\), not \(1, 2\)"),
        (np.zeros((0, COLUMNS)), "at least one row"),
        ([["a"] * COLUMNS], "should be numbers"),
    ):
        with pytest.raises(DataError, match=said):
            fitted.log_prob(rows)
    with pytest.raises(DataError, match="'valid' should have the shape"):
        type(fitted)().fit(TRAIN, VALID[:, :3])
    with pytest.raises(ValueError, match="'n' should be a whole number, at least 1"):
        fitted.sample(0)


@pytest.mark.parametrize("name", list(FAST))
def test_time_that_is_over_ends_training(name) -> None:
    """With no time at all, what there is still answers, and sums to one."""
    system = FAST[name]().fit(TRAIN, VALID, seconds=1e-9)
    assert np.exp(np.asarray(system.log_prob(WORLDS))).sum() == pytest.approx(1, abs=2e-6)


def test_what_has_learned_nothing_says_so() -> None:
    with pytest.raises(ValueError, match="call 'fit' first"):
        NADE().log_prob(WORLDS)


def test_the_mixture_takes_what_validation_rows_prefer() -> None:
    model = BernoulliMixture((1, 4), seed=0).fit(TRAIN, VALID)
    assert len(model.prior_) == 4
    assert model.log_prob(VALID).mean() > BernoulliMixture(1).fit(TRAIN, VALID).log_prob(VALID).mean()
    rows = np.zeros((30, 3), dtype=np.uint8)  # a column that is always 0 is not impossible otherwise
    assert np.isfinite(np.asarray(BernoulliMixture((1, 2)).fit(rows, rows).log_prob([[1, 1, 1]]))).all()


def test_logistic_autoregression_takes_what_validation_rows_prefer() -> None:
    """Of the ways to train, but what it is told counts for all of them."""
    none, much = {"learning_rate": 0.05}, {"learning_rate": 1e-6}
    better, worse, both = (
        FVSBN(tries=tries, max_epochs=20).fit(TRAIN, VALID) for tries in ([none], [much], [much, none])
    )
    assert np.array_equal(np.asarray(both.log_prob(WORLDS)), np.asarray(better.log_prob(WORLDS)))
    assert better.log_prob(VALID).mean() > worse.log_prob(VALID).mean()
    told = FVSBN(tries=[much, none], max_epochs=20, learning_rate=1e-6).fit(TRAIN, VALID)
    assert np.array_equal(np.asarray(told.log_prob(WORLDS)), np.asarray(worse.log_prob(WORLDS)))
    assert better.size == COLUMNS * (COLUMNS - 1) // 2 + COLUMNS
    with pytest.raises(ValueError, match="'tries' should have at least one"):
        FVSBN(tries=[])


class Counts:
    """An estimator of scikit-learn's kind: frequencies, one more of each."""

    def fit(self, X):
        self.counts_ = np.bincount(X @ (1 << np.arange(COLUMNS)[::-1]), minlength=len(WORLDS)) + 1
        return self

    def score_samples(self, X):
        return np.log(self.counts_ / self.counts_.sum())[X @ (1 << np.arange(COLUMNS)[::-1])]


def test_anything_with_score_samples_can_be_entered() -> None:
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import KernelDensity
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = Scikit(Counts()).fit(TRAIN, VALID)
    assert np.exp(np.asarray(model.log_prob(WORLDS))).sum() == pytest.approx(1)
    assert (model.size, model.continuous) == (len(WORLDS), False)
    with pytest.raises(QuestionError, match="Counts cannot sample"):
        model.sample(3)
    with pytest.raises(QuestionError, match="object has no fit"):
        Scikit(object())
    density = Scikit(KernelDensity()).fit(TRAIN, VALID)
    assert density.continuous
    assert density.sample(4).shape == (4, COLUMNS)
    assert Scikit(make_pipeline(StandardScaler(), KernelDensity())).continuous
    assert Scikit(Counts(), continuous=True).continuous
    assert not Scikit(KernelDensity(), continuous=False).continuous
    mixture = Scikit(GaussianMixture(2, random_state=0)).fit(TRAIN, VALID)
    assert np.array_equal(mixture.sample(50, seed=1), mixture.sample(50, seed=1))
    assert not np.array_equal(mixture.sample(50, seed=1), mixture.sample(50, seed=2))


def test_an_answer_is_an_array_that_knows_how_it_is_known() -> None:
    answer = LogProb(np.log([0.5, 0.25]), "bound", 0.1)
    assert answer.mean() == pytest.approx(np.log([0.5, 0.25]).mean())
    assert np.allclose(np.exp(answer), [0.5, 0.25])
    assert (len(answer), answer.kind, answer.standard_error) == (2, "bound", 0.1)
