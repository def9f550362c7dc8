"""An ordering cut into segments: still a distribution, and with as many segments as columns EoNADE's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from made import MADE, Columns, Connectivities, Connectivity, Network, log_prob, sample
from made.likelihood import _log_means, log_conditionals, passes
from made.question import Question, arrangements
from made.recipe import Recipe
from made.sampling import complete
from made.training import NEXT, _give_at_random, train
from oracle import Dense, networks, randomize, worlds

NAN = float("nan")
COPIES = torch.randint(2, (400, 1), generator=torch.Generator().manual_seed(0)).float().expand(-1, 6)


@given(networks(masks="unlimited"), st.integers(1, 6), st.data())
def test_all_worlds_sum_to_one(network, segments, data) -> None:
    """Whatever is given, and whatever is a hole."""
    roles = data.draw(st.tuples(*[st.sampled_from(["asked", "given", "hole"]) for _ in network.columns]))
    given_columns = np.array([role == "given" for role in roles])
    hole = np.array([role == "hole" for role in roles])
    rows = worlds(network.columns)
    assert log_prob(network, rows, masks=2, segments=segments).exp().sum().item() == pytest.approx(1, abs=1e-9)
    rows[:, hole] = 0
    rows = rows.unique(dim=0)
    rows[:, hole] = NAN
    for asked_last in (True, False):
        log_p = log_prob(network, rows, given=given_columns, masks=2, segments=segments, asked_last=asked_last)
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
        question = Question(rows, torch.from_numpy(ordering <= position).expand(rows.shape), before)
        blind = log_conditionals(network, question, family.blind())[:, column]
        assert torch.allclose(blind, factor, rtol=0, atol=1e-9)
    answer = log_prob(network, rows, masks=[1], segments=len(ordering))
    assert torch.allclose(answer, expected, rtol=0, atol=1e-9)


@given(networks(masks="unlimited"), st.data())
def test_passes_that_share_what_they_saw_equal_passes_of_their_own(network, data) -> None:
    """Rows that differ in what is given and what is a hole, in the orderings of three masks."""
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 100)))
    rows = worlds(network.columns)[torch.randint(len(worlds(network.columns)), (20,), generator=generator)]
    role = torch.randint(3, rows.shape, generator=generator)
    question = Question.ask(network, torch.where(role == 2, NAN, rows), role == 1)
    width, masks = len(network.columns), [0, 1, 4]
    for asked_last in (True, False):
        answer = log_prob(network, question, masks=masks, segments=width, asked_last=asked_last, batch_size=7)
        for which, asked in arrangements(question, asked_last):
            members = [passes(network, number, asked, width) for number in masks]
            with torch.no_grad():
                (apart,) = _log_means(network, question[which], members, [None], 500)
            assert torch.allclose(answer[which], apart, rtol=0, atol=1e-9)


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
    drawn = complete(network, rows, numbers, uniform, asked_last=True, batch_size=3, segments=segments)
    for row, number, noise, result in zip(rows, numbers.tolist(), columns.noise(uniform), drawn, strict=True):
        unknown = row.isnan().numpy()
        filled = row.nan_to_num(0)[None].clone()
        for connectivity, flags in passes(network, number, None if unknown.all() else unknown, segments):
            assert isinstance(connectivity, Connectivity)
            oracle = Dense(network, connectivity, ~unknown)
            for column in np.argsort(connectivity.ordering):
                if unknown[column] and flags is not None and flags[column]:
                    units = oracle.outputs(filled)[:, columns.output_columns == column]
                    filled[0, column] = columns[column].draw(units, noise[None, column])
        assert torch.equal(result, filled[0])


def test_the_most_likely_row_is_found_in_segments_too() -> None:
    network = randomize(Network(5, Connectivities(5, (20,), masks=None), direct=True))
    best = sample(network, 1, most_likely=True, segments=5, masks=8)
    others = log_prob(network, worlds(network.columns), masks=8, segments=5)
    assert log_prob(network, best, masks=8, segments=5).item() >= others.quantile(0.8).item()


def test_what_is_learned_is_the_mean_over_all_orderings() -> None:
    network = randomize(Network(3, Connectivities(3, (8, 8), masks=None), conditioning=True, direct=True), scale=0.7)
    row = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
    exact = 0.0
    for order in itertools.permutations((1, 2, 3)):
        for position in (1, 2, 3):
            degrees = tuple(np.full(8, position - 1) for _ in range(2))
            column = order.index(position)
            exact -= Dense(network, Connectivity(np.array(order), degrees)).log_factors(row)[0, column].item() / 6
    question, weight = _give_at_random(Question(row.expand(20000, -1)), torch.Generator().manual_seed(0))
    losses = -weight * log_conditionals(network, question, network.connectivities.blind()).sum(dim=1)
    error = losses.std().item() / 20000**0.5
    assert losses.mean().item() == pytest.approx(exact, abs=4 * error)


def test_rows_with_holes_are_weighed_by_what_they_have() -> None:
    rows = torch.zeros(1000, 4)
    observed = torch.tensor([True, True, False, True]).expand(1000, -1)
    question, weight = _give_at_random(Question(rows, observed), torch.Generator().manual_seed(0))
    assert question.given is not None
    assert not (question.given & ~observed).any()
    asked = (observed & ~question.given).sum(dim=1)
    assert set(asked.tolist()) == {1, 2, 3}
    assert torch.equal(weight, 3 / asked)


def test_beginnings_are_those_of_the_orderings() -> None:
    """Each size is as likely; with holes, what is given is the beginning of what a row has."""
    orderings = torch.tensor([[0.0, 0.25, 0.5, 0.75], [0.75, 0.5, 0.25, 0.0]])
    observed = torch.tensor([True, False, True, True]).expand(3000, -1)
    question, weight = _give_at_random(
        Question(torch.zeros(3000, 4), observed), torch.Generator().manual_seed(0), 1.0, orderings
    )
    assert question.given is not None
    flags, counts = question.given.unique(dim=0, return_counts=True)
    seen = {"".join(str(int(flag)) for flag in row): int(n) for row, n in zip(flags, counts, strict=True)}
    assert set(seen) == {"0000", "1000", "1010", "0001", "0011"}  # none, or one or two of either end
    assert seen["0000"] == pytest.approx(1000, abs=100)
    assert all(seen[each] == pytest.approx(500, abs=80) for each in ("1000", "1010", "0001", "0011"))
    assert torch.equal(weight, 3 / (3 - question.given.sum(dim=1)))


def test_after_a_beginning_the_next_columns_are_asked_for() -> None:
    """As many as there are, up to NEXT, and weighed up to the whole row."""
    rows, orderings = Question(torch.zeros(500, 3 * NEXT)), torch.arange(3.0 * NEXT).unsqueeze(0) / (3 * NEXT)
    question, weight = _give_at_random(rows, torch.Generator().manual_seed(0), 1.0, orderings)
    assert question.given is not None
    for given_, asked, weighed in zip(question.given, question.asked, weight, strict=True):
        size = int(given_.sum())
        assert given_[:size].all()
        assert asked.nonzero().flatten().tolist() == list(range(size, min(size + NEXT, 3 * NEXT)))
        assert weighed.item() == pytest.approx(3 * NEXT / int(asked.sum()))


def test_a_share_of_rows_are_beginnings() -> None:
    rows, orderings = Question(torch.zeros(2000, 20)), torch.arange(20.0).unsqueeze(0) / 20
    question, _ = _give_at_random(rows, torch.Generator().manual_seed(0), 0.3, orderings)
    assert question.given is not None
    middle = question.given[(question.given.sum(dim=1) > 4) & (question.given.sum(dim=1) < 16)]
    first = middle.int().diff(dim=1).le(0).all(dim=1)  # never given after one that is not
    assert first.double().mean().item() == pytest.approx(0.3, abs=0.05)


def test_what_only_beginnings_teach_is_one_ordering() -> None:
    """Two equal columns: from beginnings alone the second is learned given the first, but not the other way round."""
    rows = COPIES[:, :2].numpy()

    def learned(share: float) -> tuple[float, float]:
        model = MADE(ordering="natural", evaluation_masks=1, beginnings=share, max_epochs=20, random_state=0).fit(rows)
        return model.score(rows), model.score_samples(rows, given=[1]).mean()

    whole, backwards = learned(1.0)
    assert whole == pytest.approx(-0.693, abs=0.05)
    assert backwards < -0.3
    whole, backwards = learned(0.5)
    assert whole == pytest.approx(-0.693, abs=0.05)
    assert backwards > -0.1


def test_beginnings_need_segments_and_a_share() -> None:
    with pytest.raises(ValueError, match="'beginnings' is for models that answer in segments"):
        Recipe(beginnings=0.5)
    with pytest.raises(ValueError, match="'beginnings' should be a number from 0 to 1"):
        Recipe(beginnings=1.5, segments=3)


def test_it_learns_columns_that_are_copies() -> None:
    """Six equal columns, asked in six segments: log p of a row goes from 6 log 2 to log 2 and no lower."""
    network = Network(Columns.binary(6, signed=True), Connectivities(6, (50,), masks=None), conditioning=True)
    recipe = Recipe(max_epochs=60, batch_size=20, learning_rate=0.02, segments=6, questions=0.0)
    history = train(network, COPIES[:300], COPIES[300:], recipe)
    assert history[-1].best_nll == pytest.approx(0.693, abs=0.05)
    kept = -log_prob(network, COPIES[300:], segments=6).mean().item()
    assert kept == pytest.approx(0.693, abs=0.05)


def test_the_estimator_answers_in_segments() -> None:
    rows = COPIES[:200].numpy()
    model = MADE(hidden_sizes=(30,), segments=100, max_epochs=30, random_state=0, learning_rate=0.02).fit(rows)
    expected = log_prob(model.model_.network, rows, masks=16, segments=6).numpy()
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
def test_few_columns_have_a_segment_each_unless_told(columns, parameters, expected) -> None:
    rows = np.random.default_rng(0).integers(2, size=(40, columns))
    model = MADE(hidden_sizes=(4, 4), max_epochs=0, evaluation_masks=2, random_state=0, **parameters).fit(rows)
    masks = None if "masks" in parameters else 2
    answer = log_prob(model.model_.network, rows[:5], masks=masks, segments=expected).numpy()
    assert np.allclose(model.score_samples(rows[:5]), answer, atol=1e-5)


def test_questions_are_none_of_their_own_where_no_unit_is_masked() -> None:
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
    with pytest.raises(ValueError, match="'segments' is for networks of unlimited masks"):
        log_prob(network, [[0, 1, 1]], segments=2)
    with pytest.raises(ValueError, match="'segments' should be a whole number, at least 1, not 0"):
        sample(network, 1, segments=0)


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
    each = [log_prob(network, rows, masks=[number], segments=5).numpy() for number in range(3)]
    assert np.allclose(model.surprise(rows).sum(axis=1), -np.mean(each, axis=0), atol=1e-4)


def test_the_history_has_the_loss_of_whole_rows_only() -> None:
    """Twenty fair coins cost 13.86 nats, whatever share of the updates asks for parts of them."""
    coins = torch.randint(2, (400, 20), generator=torch.Generator().manual_seed(0)).float()
    network = Network(20, Connectivities(20, (5,), masks=None))
    recipe = Recipe(max_epochs=2, batch_size=20, segments=20, questions=0.5, learning_rate=1e-4)
    history = train(network, coins[:300], coins[300:], recipe)
    assert history[-1].train_nll == pytest.approx(history[-1].valid_nll, abs=1.0)
