"""Tied networks: orderings, conditionals, dropout and shifted images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from made.baselines import SYSTEMS
from made.baselines.nade import NADENetwork
from made.baselines.optimization import column_means
from made.baselines.tied import DIRECTIONS, ImageShifts, TiedMADE, scan_ordering
from made.training.config import make_optimizer
from oracle import chi_square
from small_baselines import COLUMNS, TRAIN, VALID, WORLDS, bits, naive


@pytest.mark.parametrize("line", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("orderings", [1, 3])
def test_a_tied_network_with_random_conditioning_sums_to_one(line, orderings) -> None:
    """By a bias for each line, or by U: it sums to one, and draws what it finds likely."""
    model = TiedMADE(8, line=line, orderings=orderings, max_epochs=3, learning_rate=0.05).fit(TRAIN, VALID)
    with torch.no_grad():
        told = model.network_.b_line if orderings == 1 else model.network_.U
        told.normal_(generator=torch.Generator().manual_seed(0))
    p = np.exp(model.log_prob(WORLDS).values)
    assert p.sum() == pytest.approx(1, abs=1e-5)
    assert chi_square(model.sample(20_000, seed=1), p) < 5


def test_dropout_of_tied_units_is_for_training_only() -> None:
    """The same ones for all rows, of all parameters; the others weigh more."""
    network, x = NADENetwork(COLUMNS, 40, dropout=0.3, line=2, directions=DIRECTIONS, seed=1), bits(9, COLUMNS).float()
    directions, ordering = torch.arange(9), torch.arange(COLUMNS)
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(generator=torch.Generator().manual_seed(weight.numel()))
        keep = torch.rand(40, generator=torch.Generator().manual_seed(3)) >= 0.3
        told = network.b + torch.cat([torch.zeros(1, 40), network.b_moved])[directions]
        for share, chosen in ((0.3, keep), (0.0, torch.ones(40, dtype=torch.bool))):
            network.train(share > 0)
            found = network(x, ordering, torch.Generator().manual_seed(3), directions)
            V = network.V[:, chosen] / (1 - share)
            parts = (network.W[:, chosen], told[:, chosen], V, network.c, None, "sigmoid", network.b_line[:, chosen], 2)
            assert torch.allclose(found, naive(x, *parts), atol=1e-4)
    assert 0 < keep.sum() < 40


def test_only_a_network_of_directions_takes_them() -> None:
    with pytest.raises(ValueError, match="'directions' should be None"):
        NADENetwork(COLUMNS, 4)(bits(9, COLUMNS).float(), directions=torch.arange(9))


def test_a_tied_network_trained_on_shifted_images_is_a_distribution_of_unshifted_ones() -> None:
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
        logits = net(x, ordering, directions=directions)
        same = naive(x, net.W, net.b + net.b_moved[3], net.V, net.c, None, "sigmoid")
    assert torch.allclose(logits, same, atol=1e-5)
    assert not torch.allclose(logits, net(x, ordering), atol=0.1)


@pytest.mark.parametrize("standardized", [False, True])
def test_a_tied_network_in_any_ordering_is_its_equations(standardized) -> None:
    network = NADENetwork(COLUMNS, 6, conditioning=True, standardized=standardized, line=2, seed=1)
    network.start(torch.from_numpy(TRAIN).float(), seed=3)
    network.double().eval()
    x, ordering = torch.from_numpy(WORLDS).double(), torch.tensor([3, 0, 4, 1, 2])
    with torch.no_grad():
        network.V.normal_(generator=torch.Generator().manual_seed(2))
        network.U.normal_(generator=torch.Generator().manual_seed(1))
        found = network(x[:, ordering], ordering)
        first, noise = torch.arange(COLUMNS), torch.rand(x.shape, dtype=x.dtype)
        assert torch.equal(network(x), network(x, first))
        assert torch.equal(network.sample(noise), network.sample(noise, first))
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
    """What is not given sums to one, whatever is given."""
    model = TiedMADE(8, line=2, orderings=2, any_order=0.5, standardized=True, max_epochs=5, seed=1).fit(TRAIN, VALID)
    p = np.exp(model.log_prob(WORLDS, given=given).values)
    assert np.array_equal(p, np.exp(model.log_prob(WORLDS, given=set(given)).values))
    for values in itertools.product((0, 1), repeat=len(given)):
        assert p[(WORLDS[:, given] == values).all(axis=1)].sum() == pytest.approx(1, abs=1e-5)


def test_in_an_ordering_the_chain_rule_holds() -> None:
    one = TiedMADE(8, line=2, any_order=0.5, max_epochs=5, seed=1).fit(TRAIN, VALID)
    (ordering,) = one.orderings_
    whole, rest = (one.log_prob(WORLDS, given=ordering[:n].tolist()).values for n in (0, 2))
    first = np.exp(whole - rest)  # p of the first two columns, the same in all worlds that agree there
    for values in itertools.product((0, 1), repeat=2):
        here = first[(WORLDS[:, ordering[:2]] == values).all(axis=1)]
        assert here == pytest.approx(here[0], rel=1e-4)


@pytest.mark.parametrize("wrong", [[5], [1, 1], [-1], [True], [2.0], [[0], [1]]])
def test_given_columns_are_some_of_the_columns(wrong) -> None:
    model = TiedMADE(4, any_order=0.5, max_epochs=1).fit(TRAIN, VALID)
    with pytest.raises(ValueError, match="'given' should be some of the columns 0 to 4"):
        model.log_prob(WORLDS, given=wrong)


def test_given_columns_need_a_model_of_any_order() -> None:
    with pytest.raises(ValueError, match="'given' needs a model with 'any_order' above 0"):
        TiedMADE(4, max_epochs=1).fit(TRAIN, VALID).log_prob(WORLDS, given=[2])


def test_a_tied_network_learns_the_orderings_that_it_is_asked_for() -> None:
    model = TiedMADE(4, orderings=3, any_order=0.5, max_epochs=1, seed=2).fit(TRAIN, VALID)
    generator = torch.Generator().manual_seed(0)
    drawn = [model.next_ordering(generator) for _ in range(2000)]
    for place in model.places_:
        share = sum(torch.equal(each, place) for each in drawn) / len(drawn)
        assert share == pytest.approx(0.5 / 3 + 0.5 / 120, abs=0.03)
    assert np.array_equal(model.orderings_[0][model.places_], model.orderings_)


def test_orderings_are_random_natural_or_scans() -> None:
    model = TiedMADE(4, orderings=3, any_order=0.5, max_epochs=1, seed=2).fit(TRAIN, VALID)
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
def test_invalid_parameters_of_a_tied_network_are_refused(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        TiedMADE(**{"hidden_size": 4, "max_epochs": 1} | wrong).fit(TRAIN, VALID)


def test_a_tied_network_starts_with_independent_columns() -> None:
    network, x = NADENetwork(COLUMNS, 400, standardized=True, seed=1), torch.from_numpy(TRAIN).float()
    x[:, 0] = 0
    network.start(x, seed=2)
    share = (x.sum(dim=0) + 1) / (len(x) + 2)
    assert torch.allclose(network.mean, share)
    assert torch.allclose(network.scale, (share * (1 - share)).sqrt().clamp(min=0.1))
    assert network.scale.min().item() == pytest.approx(0.1)
    assert torch.allclose(network.c, share.logit())
    assert network.W.std().item() == pytest.approx((2 / COLUMNS) ** 0.5, rel=0.05)
    assert not network.V.any()


def test_without_standardized_inputs_only_biases_start_at_the_columns() -> None:
    network, x = NADENetwork(COLUMNS, 4, seed=1), torch.from_numpy(TRAIN).float()
    W = network.W.detach().clone()
    network.start(x, seed=2)
    assert torch.equal(network.W, W)
    assert torch.allclose(network.c, column_means(x).logit())


ASKED = {"activation": "relu", "dropout": 0.5, "input_dropout": 0.2, "standardized": True}


def test_a_tied_network_is_what_was_asked_for_and_its_conditioning_weights_learn_slowly(monkeypatch) -> None:
    seen = {}

    def spy(*arguments):
        seen["optimizer"] = make_optimizer(*arguments)
        return seen["optimizer"]

    monkeypatch.setattr("made.baselines.optimization.make_optimizer", spy)
    model = TiedMADE(4, line=2, any_order=0.5, learning_rate=0.1, weight_decay=0.3, max_epochs=20, seed=3, **ASKED)
    network = model.fit(TRAIN, VALID).network_  # some updates have no unit at all
    assert {name: getattr(network, name) for name in ASKED} == ASKED
    (group,) = (each for each in seen["optimizer"].param_groups if each["params"][0] is network.U)
    assert (group["initial_lr"], group["weight_decay"]) == (pytest.approx(0.1 / COLUMNS**0.5), 0.3)
    assert network.U.any()
    assert torch.allclose(network.mean, column_means(torch.from_numpy(TRAIN[:, model.orderings_[0]]).float()))


def test_a_tied_network_is_restored_from_its_weights() -> None:
    model = TiedMADE(4, any_order=0.5, max_epochs=2, seed=4, **ASKED).fit(TRAIN, VALID)
    again = TiedMADE(4, any_order=0.5, max_epochs=2, seed=4, **ASKED).restore(model.network_.state_dict())
    assert np.array_equal(again.log_prob(WORLDS).values, model.log_prob(WORLDS).values)


def test_the_compared_tied_network_has_the_chosen_parameters() -> None:
    tied = SYSTEMS["tied"].factory(0)
    assert (tied.orderings, tied.activation, tied.standardized) == (16, "relu", True)


ORDER = np.random.default_rng(0).permutation(12)
IMAGES = torch.randint(2, (20, 3, 4), generator=torch.Generator().manual_seed(0)).float()


def test_shifts_move_images_by_one_pixel() -> None:
    """In any ordering of the pixels: as a picture that is rolled, with zeros where it comes in again."""
    shifts, seen = ImageShifts((3, 4), ORDER, share=0.6), set()
    for number in range(1, DIRECTIONS + 1):
        rows = shifts.shift(IMAGES.reshape(20, 12)[:, ORDER], torch.full((20,), number))
        moved = rows[:, np.argsort(ORDER)].reshape(20, 3, 4)
        for down, right in itertools.product((-1, 0, 1), repeat=2):
            expected = torch.roll(IMAGES, (down, right), dims=(1, 2))
            if down:
                expected[:, 0 if down > 0 else -1] = 0
            if right:
                expected[:, :, 0 if right > 0 else -1] = 0
            if torch.equal(moved, expected):
                seen.add((down, right))
    assert len(seen) == DIRECTIONS
    assert (0, 0) not in seen


def test_the_share_of_shifted_images_is_uniform_over_directions() -> None:
    x = IMAGES.reshape(20, 12)[:, ORDER].repeat(500, 1)
    rows, directions = ImageShifts((3, 4), ORDER, share=0.6)(x, torch.Generator().manual_seed(0))
    assert torch.equal(rows[directions == 0], x[directions == 0])
    share = directions.bincount().double() / len(directions)
    assert torch.allclose(share, torch.tensor([0.4] + [0.6 / 8] * 8, dtype=torch.float64), atol=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ImageShifts((3, 3), ORDER, share=0.5), "'image' should have 12 pixels"),
        (lambda: ImageShifts((3, 4), ORDER, share=1.0), "'moved' should be at least 0 and below 1"),
        (lambda: TiedMADE(moved=0.5), "'image' should be the height and width"),
    ],
)
def test_invalid_shifts_are_refused(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()
