"""An ordering cut into segments: still a distribution, and with as many segments as columns EoNADE's."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from made import MADE, Columns, Connectivities, Connectivity, Ensemble, Network, log_prob, sample
from made.ask.exact import probability
from made.errors import ParameterError
from made.queries.evidence import Evidence
from made.queries.likelihood import log_conditionals
from made.queries.sampling import complete
from made.queries.schedule import PassSchedule
from made.training.config import TrainingConfig
from made.training.objective import Objective
from made.training.questions import give_at_random
from made.training.train import train
from oracle import Dense, blind, networks, randomize, worlds

NAN = float("nan")
COPIES = torch.randint(2, (400, 1), generator=torch.Generator().manual_seed(0)).float().expand(-1, 6)


@given(networks(masks="unlimited"), st.integers(1, 6), st.data())
def test_all_worlds_sum_to_one(network, segments, data) -> None:
    """Whatever is given, and whatever is missing."""
    roles = data.draw(st.tuples(*[st.sampled_from(["asked", "given", "missing"]) for _ in network.columns]))
    given_columns = np.array([role == "given" for role in roles])
    missing = np.array([role == "missing" for role in roles])
    rows = worlds(network.columns)
    assert log_prob(Ensemble(network, 2, segments=segments), rows).exp().sum().item() == pytest.approx(1, abs=1e-9)
    rows[:, missing] = 0
    rows = rows.unique(dim=0)
    rows[:, missing] = NAN
    for asked_last in (True, False):
        log_p = log_prob(Ensemble(network, 2, segments=segments), rows, given=given_columns, asked_last=asked_last)
        for condition in rows[:, given_columns].unique(dim=0) if given_columns.any() else rows[:1, given_columns]:
            same = (rows[:, given_columns] == condition).all(dim=1)
            assert log_p[same].exp().sum().item() == pytest.approx(1, abs=1e-9)


@given(networks(masks="unlimited"))
def test_one_segment_for_each_column_is_eonade(network) -> None:
    """A pass for each conditional, in which every unit sees all columns before; by masks, and by what is given."""
    rows, family = worlds(network.columns), network.connectivities
    ordering, expected = family[1].ordering, torch.zeros(len(rows), dtype=torch.float64)
    for position in range(1, len(ordering) + 1):
        column = int(np.argsort(ordering)[position - 1])
        degrees = tuple(np.full(size, position - 1) for size in family.hidden_sizes)
        factor = Dense(network, Connectivity(ordering, degrees)).log_factors(rows)[:, column]
        expected += factor
        before = torch.from_numpy(ordering < position).expand(rows.shape)
        evidence = Evidence(rows, torch.from_numpy(ordering <= position).expand(rows.shape), before)
        unseen = log_conditionals(network, evidence, blind(family))[:, column]
        assert torch.allclose(unseen, factor, rtol=0, atol=1e-9)
    answer = log_prob(Ensemble(network, [1], segments=len(ordering)), rows)
    assert torch.allclose(answer, expected, rtol=0, atol=1e-9)


@given(networks(masks="unlimited"), st.data())
def test_passes_that_share_what_they_saw_equal_passes_of_their_own(network, data) -> None:
    """Rows that differ in what is given and what is missing, in the orderings of three masks."""
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 100)))
    rows = worlds(network.columns)[torch.randint(len(worlds(network.columns)), (20,), generator=generator)]
    role = torch.randint(3, rows.shape, generator=generator)
    evidence = Evidence.of(network, torch.where(role == 2, NAN, rows), role == 1)
    width, masks = len(network.columns), [0, 1, 4]
    for asked_last in (True, False):
        answer = log_prob(Ensemble(network, masks, segments=width), evidence, asked_last=asked_last, batch_size=7)
        for group in PassSchedule(network.connectivities, masks, width).groups(evidence, asked_last=asked_last):
            some, total = evidence[group.rows], torch.full((len(group.rows),), -np.inf, dtype=torch.float64)
            for number in masks:
                apart = torch.zeros_like(total)
                for connectivity, columns in group.passes(number):
                    factors = log_conditionals(network, some, connectivity)
                    own = np.ones(width, dtype=bool) if columns is None else columns
                    apart += factors.detach()[:, torch.from_numpy(own)].sum(dim=1)
                total = torch.logaddexp(total, apart)
            assert torch.allclose(answer[group.rows], total - np.log(len(masks)), rtol=0, atol=1e-9)


@given(networks(masks="unlimited"), st.integers(2, 5), st.data())
def test_samples_equal_those_of_many_passes(network, segments, data) -> None:
    """The same random numbers give identical rows, from nothing and given some columns."""
    columns = network.columns
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 100)))
    rows = worlds(columns)[torch.randint(len(worlds(columns)), (5,), generator=generator)]
    rows[torch.rand(rows.shape, generator=generator) < 0.6] = NAN
    rows[0] = NAN
    uniform = torch.rand(rows.shape, generator=generator, dtype=torch.float64)
    numbers = torch.arange(5) % 2
    drawn = complete(Ensemble(network, segments=segments), rows, numbers, uniform, asked_last=True, batch_size=3)
    for row, number, noise, result in zip(rows, numbers.tolist(), columns.noise(uniform), drawn, strict=True):
        unknown = row.isnan().numpy()
        filled = row.nan_to_num(0)[None].clone()
        known = torch.from_numpy(~unknown)[None]
        evidence = Evidence(row.nan_to_num(0)[None], None, known if known.any() else None)
        groups = list(PassSchedule(network.connectivities, [number], segments).groups(evidence))
        for connectivity, flags in (each for group in groups for each in group.passes(number)):
            if isinstance(connectivity, int):
                connectivity = network.connectivities[connectivity]
            oracle = Dense(network, connectivity, ~unknown)
            for column in np.argsort(connectivity.ordering):
                if unknown[column] and (flags is None or flags[column]):
                    units = oracle.outputs(filled)[:, columns.output_columns == column]
                    filled[0, column] = columns[column].draw(units, noise[None, column])
        assert torch.equal(result, filled[0])


def test_the_most_likely_row_is_found_in_segments_too() -> None:
    network = randomize(Network(5, Connectivities(5, (20,), masks=None), direct=True))
    best = sample(Ensemble(network, segments=5, masks=8), 1, most_likely=True)
    others = log_prob(Ensemble(network, 8, segments=5), worlds(network.columns))
    assert log_prob(Ensemble(network, 8, segments=5), best).item() >= others.quantile(0.8).item()


def test_what_is_learned_is_the_mean_over_all_orderings() -> None:
    network = randomize(Network(3, Connectivities(3, (8, 8), masks=None), conditioning=True, direct=True), scale=0.7)
    row = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
    exact = 0.0
    for order in itertools.permutations((1, 2, 3)):
        for position in (1, 2, 3):
            degrees = tuple(np.full(8, position - 1) for _ in range(2))
            column = order.index(position)
            exact -= Dense(network, Connectivity(np.array(order), degrees)).log_factors(row)[0, column].item() / 6
    evidence, _ = give_at_random(Evidence(row.expand(20000, -1)), torch.Generator().manual_seed(0))
    losses = (
        -3 / evidence.asked.sum(dim=1) * log_conditionals(network, evidence, blind(network.connectivities)).sum(dim=1)
    )
    error = losses.std().item() / 20000**0.5
    assert losses.mean().item() == pytest.approx(exact, abs=4 * error)


def test_rows_with_missing_are_weighed_by_what_they_have() -> None:
    rows = torch.zeros(1000, 4)
    observed = torch.tensor([True, True, False, True]).expand(1000, -1)
    network = Network(4, Connectivities(4, (8,), masks=None))
    objective = Objective(network, TrainingConfig(segments=4), Evidence(rows, observed))
    parts = objective.questions(Evidence(rows, observed), 0).parts
    evidence = parts.rows
    assert not (evidence.given & ~observed).any()
    asked = (observed & ~evidence.given).sum(dim=1)
    assert set(asked.tolist()) == {1, 2, 3}
    assert torch.equal(parts.scale, 3 / asked)
    assert torch.equal(parts.weights, 3 / asked)


def _for_whole_rows(columns: int, *sizes: int, masks: int = 3, **others) -> Network:
    return Network(columns, Connectivities(columns, sizes, masks=None, whole_rows=masks), conditioning=True, **others)


def test_whole_rows_are_asked_in_one_pass_and_others_in_segments() -> None:
    """Under masks that are made for them; what a row gets does not depend on the others."""
    network = randomize(_for_whole_rows(4, 12, direct=True))
    plain = randomize(Network(4, Connectivities(4, (12,), masks=None), conditioning=True, direct=True))
    plain.load_state_dict(network.state_dict())
    rows = worlds(network.columns)
    assert torch.allclose(log_prob(Ensemble(network, 3, segments=4), rows), log_prob(Ensemble(plain, 3), rows))
    assert log_prob(Ensemble(network, 3, segments=4), rows).exp().sum().item() == pytest.approx(1, abs=1e-9)
    missing = rows.clone()
    missing[::2, 1] = NAN
    answer = log_prob(Ensemble(network, 3, segments=4), missing)
    assert torch.allclose(answer[1::2], log_prob(Ensemble(plain, 3), rows[1::2]), rtol=0, atol=1e-9)
    assert torch.allclose(answer[::2], log_prob(Ensemble(plain, 3, segments=4), missing[::2]), rtol=0, atol=1e-9)
    given_ = log_prob(Ensemble(network, 3, segments=4), rows, given=[0])
    assert torch.allclose(given_, log_prob(Ensemble(plain, 3, segments=4), rows, given=[0]), rtol=0, atol=1e-9)


def test_samples_of_whole_rows_are_from_the_masks_that_score_them() -> None:
    network = randomize(_for_whole_rows(3, 9, direct=True))
    rows = sample(Ensemble(network, 2, segments=3), 20000, generator=0)
    expected = log_prob(Ensemble(network, 2, segments=3), worlds(network.columns)).exp()
    seen = [(rows == world).all(dim=1).double().mean().item() for world in worlds(network.columns)]
    assert seen == pytest.approx(expected.tolist(), abs=0.015)
    known = torch.tensor([[1.0, NAN, NAN]]).expand(20000, -1)
    plain = Network(3, Connectivities(3, (9,), masks=None), conditioning=True, direct=True)
    plain.load_state_dict(network.state_dict())
    ours = sample(Ensemble(network, 2, segments=3), known=known, generator=0)
    assert torch.equal(ours, sample(Ensemble(plain.double(), masks=2, segments=3), known=known, generator=0))


def test_surprise_adds_up_to_the_nll_of_whole_rows() -> None:
    rows = np.random.default_rng(0).integers(2, size=(60, 4)).astype(float)
    model = MADE(whole_rows=0.5, evaluation_masks=1, hidden_sizes=(8,), max_epochs=2, random_state=0).fit(rows)
    rows[::2, 0] = NAN
    assert np.nansum(model.surprise(rows), axis=1) == pytest.approx(-model.score_samples(rows), abs=1e-4)


def test_whole_rows_are_asked_under_the_masks_that_learned_them() -> None:
    """Whatever numbers of masks are asked for; the same for samples, each mask as often as its numbers."""
    network = randomize(_for_whole_rows(3, 9, masks=2, direct=True))
    rows = worlds(network.columns)
    for masks, same in ((16, [0, 1]), ([2, 3], [0, 1]), ([5], [1]), ([0, 1, 2], [0, 0, 1]), ([1, 3], [1])):
        answer = log_prob(Ensemble(network, masks, segments=3), rows)
        alike = [log_prob(Ensemble(network, [number], segments=3), rows).exp() for number in same]
        assert torch.allclose(answer.exp(), torch.stack(alike).mean(dim=0), rtol=0, atol=1e-9)
    few = torch.full((6,), NAN, dtype=torch.float64).reshape(2, 3)
    noise = torch.rand(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    drawn = [
        complete(Ensemble(network, segments=3), few, torch.tensor(numbers), noise, batch_size=10)
        for numbers in ([0, 1], [4, 5])
    ]
    assert torch.equal(*drawn)


def _for_incomplete_rows(columns: int, *sizes: int) -> Network:
    family = Connectivities(columns, sizes, masks=None, whole_rows=3, incomplete_rows=True)
    return randomize(Network(columns, family, conditioning=True, direct=True))


@pytest.mark.parametrize("missing", [[], [1], [0, 3], [0, 1, 2]])
def test_incomplete_rows_are_a_distribution_under_the_masks_of_whole_rows(missing: list[int]) -> None:
    network = _for_incomplete_rows(4, 12)
    rows = worlds(network.columns)
    rows[:, missing] = 0
    rows = rows.unique(dim=0)
    rows[:, missing] = NAN
    answer = log_prob(Ensemble(network, 3, segments=4), rows)
    assert answer.exp().sum().item() == pytest.approx(1, abs=1e-9)
    passes = [log_conditionals(network, rows, number).sum(dim=1).exp() for number in range(3)]
    assert torch.allclose(answer.exp(), torch.stack(passes).mean(dim=0), rtol=0, atol=1e-9)


def test_of_incomplete_rows_what_is_given_is_asked_in_segments() -> None:
    network = _for_incomplete_rows(4, 12)
    plain = Network(4, Connectivities(4, (12,), masks=None), conditioning=True, direct=True).double()
    plain.load_state_dict(network.state_dict())
    rows = worlds(network.columns)
    answers = [log_prob(Ensemble(each, 3, segments=4), rows, given=[1]) for each in (network, plain)]
    assert torch.allclose(*answers, rtol=0, atol=1e-9)


@given(networks(masks="unlimited"))
def test_stored_masks_are_those_that_are_computed(network) -> None:
    """Outputs and gradients; a network that stores no masks is the oracle."""
    family = replace(network.connectivities, whole_rows=2)
    storing = copy.deepcopy(network)
    storing.connectivities = family
    assert storing.stores(1)
    assert not network.stores(1)
    rows = worlds(network.columns)[:50]
    found = [each(rows, 1) for each in (network, storing)]
    assert torch.allclose(*found, rtol=0, atol=1e-9)
    for outputs in found:
        outputs.square().sum().backward()
    for name, weight in network.named_parameters():
        other = storing.get_parameter(name)
        expected = torch.zeros_like(weight) if weight.grad is None else weight.grad
        assert torch.allclose(other.grad, expected, rtol=0, atol=1e-8), name


def test_the_probability_of_all_columns_is_that_of_the_row() -> None:
    """Exact, and by paths, which go through the whole row in one pass, too."""
    rows = np.random.default_rng(0).integers(2, size=(60, 3)).astype(float)
    model = MADE(whole_rows=0.5, evaluation_masks=1, hidden_sizes=(8,), max_epochs=5, random_state=0).fit(rows)
    condition = " and ".join(f"{name} = 1" for name in model.model_.schema.names)
    for most in (0, 100):
        answer = probability(
            Ensemble(model.model_.network, 1, segments=3), model.model_.schema.fields, condition, most_states=most
        )
        assert np.log(answer.probability) == pytest.approx(model.score_samples([[1, 1, 1]]).item(), abs=1e-5)


def test_training_on_whole_rows_alone_learns_one_ordering() -> None:
    """Two equal columns: from whole rows alone the second is learned given the first, but not the other way round."""
    rows = COPIES[:, :2].numpy()

    def learned(share: float) -> tuple[float, float]:
        options = {"whole_rows": share, "max_epochs": 20, "calibrate": False, "random_state": 0}
        model = MADE(ordering="natural", evaluation_masks=1, **options).fit(rows)
        return model.score(rows), model.score_samples(rows, given=[1]).mean()

    whole, backwards = learned(1.0)
    assert whole == pytest.approx(-0.693, abs=0.05)
    assert backwards < -0.3
    whole, backwards = learned(0.5)
    assert whole == pytest.approx(-0.693, abs=0.05)
    assert backwards > -0.1


def test_whole_rows_are_validated_as_they_are_evaluated_at_the_end() -> None:
    """By the exact NLL, but for rows with missing values, of which there is an estimate."""
    rows = COPIES[:, :4].clone()
    network = _for_whole_rows(4, 16, masks=2)
    config = TrainingConfig(max_epochs=3, segments=4, whole_rows=0.5, evaluation_masks=2)
    last = train(network, rows, rows[:50], config)[-1]
    exact = -log_prob(Ensemble(network, 2, segments=4), rows[:50]).double().mean().item()
    assert last.best_nll == pytest.approx(exact, abs=1e-4)
    rows[:20, 1] = NAN
    assert np.isfinite(train(network, rows, rows[:50], config)[-1].best_nll)


def test_whole_rows_need_any_order_and_a_share() -> None:
    with pytest.raises(ValueError, match="'whole_rows' is for unlimited masks"):
        Connectivities(3, (4,), masks=2, whole_rows=1)
    with pytest.raises(ValueError, match="'whole_rows' should be a number from 0 to 1"):
        TrainingConfig(whole_rows=1.5)
    with pytest.raises(ValueError, match="'whole_rows' should be above 0 in the training config"):
        train(Network(3, Connectivities(3, (4,), masks=None)), COPIES[:, :3], None, TrainingConfig(whole_rows=0.5))
    with pytest.raises(ParameterError, match="'whole_rows' is for unlimited masks"):
        MADE(masks=1, whole_rows=0.5).fit(COPIES.numpy())


def test_it_learns_columns_that_are_copies() -> None:
    """Six equal columns, asked in six segments: log p of a row goes from 6 log 2 to log 2 and no lower."""
    network = Network(Columns.binary(6, signed=True), Connectivities(6, (50,), masks=None), conditioning=True)
    config = TrainingConfig(max_epochs=60, batch_size=20, learning_rate=0.02, segments=6, questions=0.0)
    history = train(network, COPIES[:300], COPIES[300:], config)
    assert history[-1].best_nll == pytest.approx(0.693, abs=0.15)  # an estimate
    kept = -log_prob(Ensemble(network, segments=6), COPIES[300:]).mean().item()
    assert kept == pytest.approx(0.693, abs=0.05)


def test_the_estimator_answers_in_segments() -> None:
    rows = COPIES[:200].numpy()
    small = {"hidden_sizes": (30,), "segments": 100, "max_epochs": 30, "learning_rate": 0.02, "whole_rows": 0.0}
    model = MADE(**small, random_state=0).fit(rows)
    expected = log_prob(Ensemble(model.model_.network, 8, segments=6), rows).numpy()
    assert np.allclose(model.score_samples(rows), expected, atol=1e-5)
    drawn = model.sample(50, random_state=0)
    assert (drawn == drawn[:, :1]).mean() > 0.9


@pytest.mark.parametrize(
    ("columns", "parameters", "expected"),
    [
        (6, {}, 6),
        (128, {}, 128),
        (129, {}, 1),
        (6, {"masks": 2}, 1),
        (6, {"resample": "degrees"}, 1),
        (6, {"segments": 2}, 2),
    ],
)
def test_few_columns_have_a_segment_each_by_default(columns, parameters, expected) -> None:
    rows = np.random.default_rng(0).integers(2, size=(40, columns))
    model = MADE(hidden_sizes=(4, 4), max_epochs=0, evaluation_masks=2, random_state=0, **parameters).fit(rows)
    masks = None if "masks" in parameters else 2
    answer = log_prob(Ensemble(model.model_.network, masks, segments=expected), rows[:5]).numpy()
    assert np.allclose(model.score_samples(rows[:5]), answer, atol=1e-5)


def test_random_queries_are_off_where_orderless_training_asks_them() -> None:
    """With a segment for each column, all updates are of one kind, whatever the share of questions."""
    rows = COPIES[:100].numpy()
    each = [
        MADE(hidden_sizes=(8,), max_epochs=2, questions=share, segments=segments, random_state=0).fit(rows).score(rows)
        for segments in (6, 3)
        for share in (0.0, 1.0)
    ]
    assert each[0] == each[1]
    assert each[2] != each[3]


def test_segments_are_for_models_that_can_be_asked_anything() -> None:
    network = Network(3, Connectivities(3, (4,)))
    with pytest.raises(ValueError, match="'segments' above 1 needs a network of unlimited masks"):
        log_prob(Ensemble(network, segments=2), [[0, 1, 1]])
    with pytest.raises(ValueError, match="'segments' should be a whole number, at least 1, not 0"):
        sample(Ensemble(network, segments=0), 1)


@pytest.mark.parametrize("sizes", [(20,), (20, 20)])
def test_all_answers_of_the_estimator_are_in_segments(sizes) -> None:
    """A column's distribution is its likelihood given the others, and surprises add up to that of a row."""
    random = np.random.default_rng(0)
    rows = random.integers(2, size=(100, 5)).astype(float)
    rows[:, 4] = rows[:, 0]
    model = MADE(hidden_sizes=sizes, segments=5, questions=0.0, max_epochs=5, random_state=0, evaluation_masks=3)
    model.fit(rows)
    probabilities = model.predict_proba(rows, target=2)
    expected = np.exp(model.score_samples(rows, given=[0, 1, 3, 4]))
    assert np.allclose(probabilities[np.arange(100), rows[:, 2].astype(int)], expected, atol=1e-5)
    network = model.model_.network
    each = [log_prob(Ensemble(network, [number], segments=5), rows).numpy() for number in range(3)]
    mean = np.average(each, axis=0, weights=network.connectivities.weights)
    assert np.allclose(model.surprise(rows).sum(axis=1), -mean, atol=1e-4)


def test_the_history_has_the_loss_of_whole_rows_only() -> None:
    """Twenty fair coins cost 13.86 nats, whatever share of the updates asks for parts of them."""
    coins = torch.randint(2, (400, 20), generator=torch.Generator().manual_seed(0)).float()
    network = Network(20, Connectivities(20, (5,), masks=None))
    config = TrainingConfig(max_epochs=2, batch_size=20, segments=20, questions=0.5, learning_rate=1e-4)
    history = train(network, coins[:300], coins[300:], config)
    assert history[-1].train_nll == pytest.approx(history[-1].valid_nll, abs=1.0)
