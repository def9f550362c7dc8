"""One pass for a sample equals D passes; frequencies fit exact probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from made import Binary, Categorical, Columns, Connectivities, Ensemble, Network, log_prob, sample
from made.queries.sampling import complete
from oracle import Dense, networks, randomize, worlds

NAN = float("nan")


def sample_by_passes(network: Network, row: torch.Tensor, number: int, uniform: torch.Tensor | None) -> torch.Tensor:
    """The usual way, for one row: D full passes of the dense oracle, a column of the row each."""
    columns, family = network.columns, network.connectivities
    unknown = row.isnan().numpy()
    given_columns = ~unknown if family.any_order and not unknown.all() else np.zeros(len(columns), dtype=bool)
    connectivity = family.draw(number, lowest=0).with_last(unknown) if given_columns.any() else family[number]
    oracle = Dense(network, connectivity, given_columns)
    row = row.nan_to_num(0)[None].clone()
    noise = None if uniform is None else columns.noise(uniform[None])
    for column in np.argsort(connectivity.ordering):
        if unknown[column]:
            units = oracle.outputs(row)[:, columns.output_columns == column]
            kind = columns[column]
            row[0, column] = kind.mode(units) if noise is None else kind.draw(units, noise[:, column])
    return row[0]


@settings(max_examples=60)
@given(network=networks(), data=st.data())
def test_one_pass_equals_many_passes(network, data) -> None:
    """The same random numbers give identical rows, from nothing and given anything that the masks allow."""
    columns, family = network.columns, network.connectivities
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 100)))
    rows = worlds(columns)[torch.randint(len(worlds(columns)), (6,), generator=generator)]
    numbers = torch.randint(3, (6,), generator=generator)
    if family.any_order:
        unknown = torch.rand(rows.shape, generator=generator) < 0.6
    else:  # a prefix of the row's own ordering may be known
        positions = torch.stack([torch.from_numpy(family[number].ordering) for number in numbers.tolist()])
        unknown = positions > torch.randint(len(columns) + 1, (6, 1), generator=generator)
    rows[unknown] = NAN
    uniform = torch.rand(rows.shape, generator=generator, dtype=torch.float64)
    for noise in (uniform, None):
        drawn = complete(Ensemble(network), rows, numbers, noise, asked_last=True, batch_size=4)
        for index in range(6):
            expected = sample_by_passes(
                network, rows[index], int(numbers[index]), None if noise is None else noise[index]
            )
            assert torch.equal(drawn[index], expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_conditionals_on_the_way_equal_those_of_a_pass(dtype, monkeypatch) -> None:
    """Draw a larger network, several ranges of degrees; the output units met on the way are those of one pass."""
    family = Connectivities(90, (700, 700), masks=1, ordering="random", residual=True)
    network = Network(90, family, direct=True, conditioning=True, activation="softplus")
    network = randomize(network, scale=0.03).to(dtype)
    assert len(network.layout(packed=True).cuts) > 3
    met = []
    original = Binary.draw

    def watch(self, units, noise):
        met.append(units.squeeze(-1).clone())
        return original(self, units, noise)

    monkeypatch.setattr(Binary, "draw", watch)
    rows = sample(Ensemble(network), 20, generator=1)
    on_the_way = torch.stack(met, dim=1)
    once = network(rows)[:, np.argsort(family[0].ordering)]
    assert torch.allclose(on_the_way, once, rtol=0, atol=1e-12 if dtype == torch.float64 else 1e-5)


def fits(drawn: torch.Tensor, states: torch.Tensor, probabilities: torch.Tensor) -> bool:
    """A chi-square test that rows were drawn with these probabilities, at a level of one in ten thousand."""
    counts = torch.tensor([(drawn == state).all(dim=1).sum() for state in states], dtype=torch.float64)
    assert counts.sum() == len(drawn)
    expected = probabilities * len(drawn)
    rare = expected < 5
    counts = torch.cat([counts[~rare], counts[rare].sum()[None]])
    expected = torch.cat([expected[~rare], expected[rare].sum()[None]])
    keep = expected > 0
    statistic = ((counts - expected)[keep] ** 2 / expected[keep]).sum().item()
    return statistic < chi2.ppf(1 - 1e-4, max(1, int(keep.sum()) - 1))


COLUMNS = Columns([Binary(), Categorical(3), Binary(), Categorical(2)])


@pytest.mark.parametrize("masks", [1, 3, None])
@pytest.mark.parametrize("sizes", [(), (12,), (12, 12)])
def test_frequencies_fit_the_probabilities(masks, sizes) -> None:
    """Draws from nothing: one mask, and ensembles, whose rows each draw a mask of their own."""
    family = Connectivities(4, sizes, masks=masks, ordering="random", residual=True)
    network = randomize(Network(COLUMNS, family, direct=True, conditioning=True))
    count = None if masks else 3
    states = worlds(COLUMNS)
    drawn = sample(Ensemble(network, count), 20_000, generator=0, batch_size=5000)
    assert fits(drawn, states, log_prob(Ensemble(network, count), states).exp())


@pytest.mark.parametrize("known", [[1, NAN, NAN, NAN], [NAN, 2, NAN, 1], [NAN, NAN, 0, NAN], [0, 1, NAN, 1]])
@pytest.mark.parametrize("asked_last", [True, False])
def test_conditional_draws_fit_the_conditional(known, asked_last) -> None:
    """Any known columns, of a model with unlimited masks: the known stay, the others follow log_prob given them."""
    network = randomize(
        Network(COLUMNS, Connectivities(4, (15, 15), masks=None), direct=True, conditioning=True), seed=1
    )
    known = torch.tensor(known, dtype=torch.float64)
    flags = ~known.isnan()
    states = worlds(COLUMNS)
    states = states[(states[:, flags] == known[flags]).all(dim=1)]
    drawn = sample(Ensemble(network, 4), 20_000, known=known[None], generator=0, asked_last=asked_last, batch_size=5000)
    probabilities = log_prob(Ensemble(network, 4), states, given=flags, asked_last=asked_last).exp()
    assert fits(drawn, states, probabilities)


def test_conditional_draws_of_a_finite_list_weigh_the_masks() -> None:
    """Mask r is taken with the probability that it gives to what is known: then draws are from the ensemble."""
    family = Connectivities(4, (15,), masks=3, resample="degrees")
    network = randomize(Network(COLUMNS, family, direct=True), seed=3, scale=2.0)
    known = torch.tensor([1, 2, NAN, NAN], dtype=torch.float64)
    states = worlds(COLUMNS)
    states = states[(states[:, :2] == known[:2]).all(dim=1)]
    drawn = sample(Ensemble(network), 20_000, known=known[None], generator=0, batch_size=5000)
    assert fits(drawn, states, log_prob(Ensemble(network), states, given=[0, 1]).exp())
    # and not, as one may be tempted to, each mask alike
    equal = torch.stack([log_prob(Ensemble(network, [r]), states, given=[0, 1]).exp() for r in range(3)]).mean(0)
    assert not fits(drawn, states, equal)


def test_rows_may_differ_in_what_is_known() -> None:
    network = randomize(Network(COLUMNS, Connectivities(4, (15,), masks=None), conditioning=True))
    known = worlds(COLUMNS)
    known[torch.rand(known.shape, generator=torch.Generator().manual_seed(0)) < 0.5] = NAN
    drawn = sample(Ensemble(network), known=known, generator=0)
    flags = ~known.isnan()
    assert torch.equal(drawn[flags], known[flags])
    assert not drawn.isnan().any()
    network.columns.check(drawn)


def test_each_row_can_have_its_own_mask() -> None:
    network = randomize(Network(5, Connectivities(5, (12,), masks=4, ordering="random")))
    numbers = [0, 1, 2, 3, 3, 2, 1, 0]
    drawn = sample(Ensemble(network), 8, numbers=numbers, generator=3)
    assert torch.equal(drawn, sample(Ensemble(network), 8, numbers=numbers, generator=3))
    with pytest.raises(ValueError, match="'numbers' should have 8 elements"):
        sample(Ensemble(network), 8, numbers=[0, 1])


def test_most_likely_values() -> None:
    """In one ordering, the greedy row; of the ensemble, the best of them under the ensemble's own likelihood."""
    network = randomize(Network(COLUMNS, Connectivities(4, (15,), masks=3, ordering="random")))
    greedy = torch.stack(
        [sample_by_passes(network, torch.full((4,), NAN, dtype=torch.float64), number, None) for number in range(3)]
    )
    scores = log_prob(Ensemble(network), greedy)
    best = sample(Ensemble(network), most_likely=True)[0]
    assert torch.equal(best, greedy[scores.argmax()])
    assert torch.equal(sample(Ensemble(network), most_likely=True, numbers=[1])[0], greedy[1])
    # a single unknown column: the most likely value there is
    unlimited = randomize(Network(COLUMNS, Connectivities(4, (15,), masks=None), conditioning=True))
    known = torch.tensor([[1, NAN, 0, 1]], dtype=torch.float64)
    choices = torch.tensor([[1, value, 0, 1] for value in range(3)], dtype=torch.float64)
    expected = choices[log_prob(Ensemble(unlimited), choices, given=[0, 2, 3]).argmax()]
    assert torch.equal(sample(Ensemble(unlimited), known=known, most_likely=True)[0], expected)


def test_what_the_masks_do_not_allow_is_refused() -> None:
    network = Network(4, Connectivities(4, (8,), masks=2))
    with pytest.raises(ValueError, match="Remedy"):
        sample(Ensemble(network), known=[[NAN, NAN, NAN, 1]])


@pytest.fixture
def four() -> Ensemble:
    return Ensemble(Network(4, Connectivities(4, (8,), masks=None)))


def test_as_many_rows_as_asked_for(four) -> None:
    assert sample(four).shape == (1, 4)
    assert sample(four, 0).shape == (0, 4)


def test_a_seed_is_that_of_a_generator(four) -> None:
    assert torch.equal(sample(four, 5, generator=7), sample(four, 5, generator=torch.Generator().manual_seed(7)))


def test_what_is_known_stays(four) -> None:
    assert sample(four, 3, known=[[1, NAN, NAN, 0]], generator=0)[:, [0, 3]].tolist() == [[1, 0]] * 3
    assert torch.equal(sample(four, known=[[0, 1, 1, 0]]), torch.tensor([[0.0, 1.0, 1.0, 0.0]]))


@pytest.mark.parametrize(
    ("count", "known", "said"),
    [
        (3, torch.zeros(2, 4), "'count' is 3, but 'known' has 2 rows"),
        (None, [[0, 2, 0, 0]], r"row 0, column 1 \('x2'\): 2 is not 0 or 1"),
        (-1, None, "'count' should be a whole number, at least 0"),
    ],
)
def test_invalid_counts_and_known_rows_are_refused(four, count, known, said) -> None:
    with pytest.raises(ValueError, match=said):
        sample(four, count, known=known)


def test_samples_depend_on_their_own_past() -> None:
    """Two columns that must be equal are equal in every draw."""
    network = Network(2, Connectivities(2, (), masks=1)).double()
    with torch.no_grad():
        network.load_state_dict({"c": torch.tensor([0.0, -50.0]), "V": torch.tensor([[0.0, 0.0], [100.0, 0.0]])})
    drawn = sample(Ensemble(network), 200, generator=0)
    assert (drawn[:, 0] == drawn[:, 1]).all()
    assert 50 < drawn[:, 0].sum() < 150
