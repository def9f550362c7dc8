"""Every likelihood sums to one, and equals that of a slow, dense oracle."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from made import (
    MADE,
    Binary,
    Categorical,
    Columns,
    Connectivities,
    Network,
    log_conditionals,
    log_likelihood,
    log_prob,
    mean_and_interval,
)
from made.errors import QuestionError
from made.hints import for_command_line
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.queries.likelihood import surprise
from oracle import Dense, networks, randomize, worlds

NAN = float("nan")


def split(columns: Columns, roles: tuple[str, ...]) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """All worlds of the columns, those of missing values NaN; and the flags of given and of missing columns."""
    given_columns = np.array([role == "given" for role in roles])
    missing = np.array([role == "missing" for role in roles])
    rows = worlds(columns)
    rows[:, missing] = 0
    rows = rows.unique(dim=0)
    rows[:, missing] = NAN
    return rows, given_columns, missing


@given(networks())
def test_all_worlds_sum_to_one(network) -> None:
    """For each mask, and for the ensemble, whose probability is the mean of theirs."""
    rows = worlds(network.columns)
    each = []
    for number in network.connectivities.numbers(None if network.connectivities.masks else 3):
        log_p = log_conditionals(network, rows, number).sum(1)
        assert log_p.exp().sum().item() == pytest.approx(1, abs=1e-9)
        dense = Dense(network, network.connectivities[number]).log_factors(rows)
        assert torch.allclose(log_conditionals(network, rows, number), dense, rtol=0, atol=1e-9)
        each.append(log_p)
    ensemble = log_prob(Ensemble(network, None if network.connectivities.masks else len(each)), rows)
    assert torch.allclose(ensemble, torch.stack(each).exp().mean(0).log(), rtol=0, atol=1e-9)
    assert ensemble.exp().sum().item() == pytest.approx(1, abs=1e-9)


def test_fourteen_columns_sum_to_one() -> None:
    for masks in (1, 4, None):
        family = Connectivities(14, (30, 30), masks=masks, ordering="random", residual=True)
        network = randomize(Network(14, family, direct=True, conditioning=True), scale=0.5)
        assert log_prob(Ensemble(network), worlds(network.columns)).exp().sum().item() == pytest.approx(1, abs=1e-9)


def test_without_masks_the_autoencoder_is_no_distribution() -> None:
    """Section 2 of the paper: the same network without masks does not sum to 1."""
    network = randomize(Network(5, Connectivities(5, (20,))))
    full = {name: torch.randn(network.shapes[name], dtype=torch.float64) for name in ("W1", "V")}
    oracle = Dense(network, network.connectivities[0], masked=False, weights=full)
    total = oracle.log_factors(worlds(network.columns)).sum(1).exp().sum().item()
    assert abs(total - 1) > 0.1
    oracle.masked = True
    total = oracle.log_factors(worlds(network.columns)).sum(1).exp().sum().item()
    assert total == pytest.approx(1, abs=1e-9)


@settings(max_examples=60)
@given(network=networks("unlimited", kinds=4), data=st.data())
def test_marginals_and_conditionals_sum_to_one_and_equal_the_oracle(network, data) -> None:
    """For any split into given, asked and missing columns; the oracle's ordering is (given, asked, missing)."""
    columns = network.columns
    roles = tuple(data.draw(st.sampled_from(["given", "asked", "missing"])) for _ in columns)
    rows, given_columns, missing = split(columns, roles)
    flags = torch.from_numpy(given_columns)
    answer = log_prob(Ensemble(network, 2), rows, given=flags)
    for row in rows:
        same = (rows[:, flags] == row[flags]).all(dim=1)
        assert answer[same].exp().sum().item() == pytest.approx(1, abs=1e-9)

    # Enumerate p(given, asked, missing) with the oracle, and marginalise and divide by hand.
    everything = worlds(columns)
    asked = ~given_columns & ~missing
    expected = torch.zeros(len(rows), dtype=torch.float64)
    for number in range(2):
        connectivity = network.connectivities[number]
        if given_columns.any():  # units of degree 0 see what is given, and what is asked for comes last
            connectivity = network.connectivities.draw(number, lowest=0).with_last(asked)
        factors = Dense(network, connectivity, given_columns, missing).log_factors(everything)
        # The missing values come last: give them any distribution, here a uniform one; the given come first, likewise.
        joint = factors[:, torch.from_numpy(asked)].sum(1).exp()
        for index, row in enumerate(rows):
            observed = ~row.isnan()
            match = (everything[:, observed] == row[observed]).all(dim=1)
            same_given = (everything[:, flags] == row[flags]).all(dim=1)
            expected[index] += joint[match].sum() / joint[same_given].sum() / 2
    assert torch.allclose(answer.exp(), expected, rtol=0, atol=1e-9)


def test_every_marginal_and_every_conditional_sums_to_one() -> None:
    """All 81 ways in which four columns can be given, asked for or left out."""
    columns = Columns([Binary(), Categorical(3), Binary(), Categorical(2)])
    family = Connectivities(4, (12, 12), masks=None, residual=True)
    network = randomize(Network(columns, family, direct=True, conditioning=True))
    for roles in itertools.product(["given", "asked", "missing"], repeat=4):
        rows, given_columns, _ = split(columns, roles)
        flags = torch.from_numpy(given_columns)
        p = log_prob(Ensemble(network, 3), rows, given=flags).exp()
        conditions = max(1, math.prod(len(rows[:, d].unique()) for d in np.flatnonzero(given_columns)))
        assert p.sum().item() == pytest.approx(conditions, abs=1e-9)


def test_rows_with_different_questions_are_answered_in_one_call() -> None:
    columns = Columns([Binary(), Categorical(3), Binary(), Binary(), Categorical(2)])
    network = randomize(Network(columns, Connectivities(5, (20, 20), masks=None), conditioning=True, direct=True))
    generator = torch.Generator().manual_seed(0)
    rows = worlds(columns)[torch.randint(48, (40,), generator=generator)]
    role = torch.randint(3, rows.shape, generator=generator)
    rows[role == 2] = NAN
    ensemble = Ensemble(network, 4)
    for asked_last in (True, False):
        together = log_prob(ensemble, rows, given=role == 1, asked_last=asked_last)
        alone = [log_prob(ensemble, rows[[i]], given=role[[i]] == 1, asked_last=asked_last) for i in range(40)]
        assert torch.allclose(together, torch.cat(alone), rtol=0, atol=1e-12)
        small = log_prob(ensemble, rows, given=role == 1, asked_last=asked_last, batch_size=3)
        assert torch.allclose(together, small, rtol=0, atol=1e-12)


@pytest.mark.parametrize("masks", [1, 3, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_answers_do_not_depend_on_the_batch(masks, dtype) -> None:
    family = Connectivities(20, (300, 300), masks=masks, ordering="random")
    network = randomize(Network(20, family, direct=True), scale=0.05).to(dtype)
    rows = (torch.rand(1200, 20) < 0.5).to(dtype)
    whole = log_prob(Ensemble(network, None if masks else 2), rows)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-4
    for size in (7, 64, 1200):
        parts = [
            log_prob(Ensemble(network, None if masks else 2), rows[i : i + 100], batch_size=size)
            for i in range(0, 1200, 100)
        ]
        assert torch.allclose(torch.cat(parts), whole, rtol=0, atol=tolerance)
    assert whole.dtype == dtype


def test_missing_values_last_are_marginalised_by_a_finite_list() -> None:
    """A finite list answers what its orderings allow, and then exactly: p(given, asked) / p(given) of the ensemble."""
    family = Connectivities(5, (30,), masks=4, resample="degrees")
    network = randomize(Network(5, family, direct=True, conditioning=True))
    everything = worlds(network.columns)
    p = log_prob(Ensemble(network), everything).exp()
    for observed, conditioned in itertools.combinations_with_replacement(range(6), 2):
        conditioned, observed = observed, conditioned
        rows = everything.clone()
        rows[:, observed:] = NAN
        answer = log_prob(Ensemble(network), rows, given=list(range(conditioned))).exp()
        for index, row in enumerate(everything):
            joint = p[(everything[:, :observed] == row[:observed]).all(1)].sum()
            condition = p[(everything[:, :conditioned] == row[:conditioned]).all(1)].sum()
            assert answer[index].item() == pytest.approx((joint / condition).item(), abs=1e-12)


@pytest.mark.parametrize(
    "family",
    [
        Connectivities(4, (8,), masks=1),
        Connectivities(4, (8,), masks=3, ordering="random"),
        Connectivities(4, (8,), masks=None, resample="degrees"),
    ],
)
def test_what_the_masks_do_not_allow_is_refused_with_the_remedy(family) -> None:
    order = np.argsort(family[0].ordering)
    names = np.array(["first", "second", "third", "fourth"])[family[0].ordering - 1]
    network = Network(Columns([Binary()] * 4, names.tolist()), family)
    with pytest.raises(
        ValueError, match=r"row 0, 'fourth' is given but 'first', which comes before.*Remedy.*masks='unlimited'"
    ):
        log_prob(Ensemble(network), torch.zeros(2, 4), given=[int(order[3])])
    rows = torch.zeros(2, 4)
    rows[1, order[0]] = NAN
    with pytest.raises(ValueError, match="row 1, 'fourth' is observed but 'first', which comes before"):
        log_prob(Ensemble(network), rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1, 2], [0, 1, 3]], r"row 1, column 2 \('color'\): 3 is not a whole number from 0 to 2"),
        ([[0, 2, 0]], r"row 0, column 1 \('b'\): 2 is not 0 or 1"),
        ([[0.5, 0, 0]], r"row 0, column 0 \('a'\): 0.5 is not 0 or 1"),
        ([[float("inf"), 0, 0]], r"row 0, column 0 \('a'\): inf is not 0 or 1"),
        ([[0, 0, float("-inf")]], r"row 0, column 2 \('color'\): -inf is not"),
        ([[0, 0, 1.5]], r"row 0, column 2 \('color'\): 1.5 is not"),
        ([[0, 0]], r"'rows' should have the shape \(rows, 3\), not \(1, 2\)"),
        ([0, 0, 0], r"'rows' should have the shape \(rows, 3\), not \(3,\)"),
        (torch.zeros(1, 3, dtype=torch.complex64), "real numbers"),
    ],
)
def test_bad_rows_are_named(rows, message) -> None:
    columns = Columns([Binary(), Binary(), Categorical(3)], names=["a", "b", "color"])
    network = Network(columns, Connectivities(3, (4,)))
    for ask, model in ((log_prob, Ensemble(network)), (log_conditionals, network)):
        with pytest.raises(ValueError, match=message):
            ask(model, rows)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([4], "column names or numbers from 0 to 2"),
        ([-1], "column names or numbers from 0 to 2"),
        ([0.5], "column names or numbers from 0 to 2"),
        ([1, 0, 0], "'given' has a column number twice.*use True and False"),
        (["y"], "'given' names 'y', but the columns are x1, x2, x3"),
        (np.array([True, False]), "should have 3 flags"),
        ([1], r"row 1, column 1 \('x2'\) is given, but its value is NaN"),
    ],
)
def test_bad_givens_are_named(chosen, message) -> None:
    network = Network(3, Connectivities(3, (4,), masks=None))
    with pytest.raises(ValueError, match=message):
        log_prob(Ensemble(network), [[0, 0, 0], [0, NAN, 1]], given=chosen)


def test_masks_to_average_are_checked() -> None:
    network = Network(3, Connectivities(3, (4,), masks=4))
    with pytest.raises(ValueError, match="'masks' is 5, but this model has a list of 4"):
        log_prob(Ensemble(network, 5), [[0, 0, 0]])
    with pytest.raises(ValueError, match="at least one mask"):
        log_prob(Ensemble(network, []), [[0, 0, 0]])
    one = log_prob(Ensemble(network, [2]), [[0, 1, 0]])
    assert torch.allclose(one, log_conditionals(network, [[0, 1, 0]], 2).sum(1))


def test_the_probability_of_nothing_is_one() -> None:
    network = Network(3, Connectivities(3, (4,), masks=None))
    assert log_prob(Ensemble(network), [[0, 1, 1]], given=[0, 1, 2]).item() == pytest.approx(0, abs=1e-12)
    assert log_prob(Ensemble(network), [[NAN, NAN, NAN]]).item() == pytest.approx(0, abs=1e-12)
    assert log_prob(Ensemble(network), torch.zeros(0, 3)).shape == (0,)


def test_a_mask_for_each_row_is_a_pass_for_each_mask() -> None:
    """Masks per training example, as the paper also considers: values and gradients."""
    family = Connectivities(6, (10, 10), masks=None, ordering="random")
    network = randomize(Network(6, family, conditioning=True, direct=True))
    rows = (torch.rand(9, 6) < 0.5).double()
    numbers = [5, 0, 5, 7, 1, 2, 0, 3, 4]
    together = log_conditionals(network, rows, numbers)
    for index, number in enumerate(numbers):
        assert torch.allclose(together[index], log_conditionals(network, rows[[index]], number)[0], rtol=0, atol=1e-12)
    together.sum().backward()
    gradients = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    for index, number in enumerate(numbers):
        log_conditionals(network, rows[[index]], number).sum().backward()
    for gradient, parameter in zip(gradients, network.parameters(), strict=True):
        assert torch.allclose(gradient, parameter.grad, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="9 whole numbers, one for each row"):
        log_conditionals(network, rows, [1, 2])


def test_memory_does_not_grow_with_the_number_of_masks() -> None:
    """The ensemble is streamed: no tensor in the computation has an axis of the number of masks."""
    network = Network(4, Connectivities(4, (6,), masks=None))
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    with Watch():
        log_prob(Ensemble(network, 2), torch.zeros(10, 4))
    few, largest = largest, 0
    with Watch():
        log_prob(Ensemble(network, 200), torch.zeros(10, 4))
    assert largest == few


def test_answers_to_different_questions_need_not_agree() -> None:
    """A warning that the documentation gives: a conditional is not the quotient of two marginals."""
    network = randomize(Network(3, Connectivities(3, (20,), masks=None), conditioning=True))
    row = torch.tensor([[1.0, 0.0, 1.0]])
    conditional = log_prob(Ensemble(network), row, given=[0])
    quotient = log_prob(Ensemble(network), row) - log_prob(Ensemble(network), [[1, NAN, NAN]])
    assert not torch.allclose(conditional, quotient, atol=1e-3)


def test_mean_and_interval() -> None:
    mean, half = mean_and_interval(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert mean == 2.5
    assert half == pytest.approx(1.96 * np.std([1, 2, 3, 4], ddof=1) / 2)


def test_conditionals_of_a_fixed_ordering_lose_no_digits() -> None:
    """In float32, with hundreds of unlikely columns given, what is asked still sums to one."""
    network = Network(300, Connectivities(300))
    with torch.no_grad():
        network.c.fill_(-20.0)
        network.c[-1] = 1e-3
    rows = torch.ones(2, 300)
    rows[1, -1] = 0
    assert log_prob(Ensemble(network), rows, given=list(range(299))).exp().sum().item() == pytest.approx(1, abs=1e-6)
    many = Network(300, Connectivities(300, masks=2, resample="degrees"))
    many.load_state_dict(network.state_dict())
    assert log_prob(Ensemble(many), rows, given=list(range(299))).exp().sum().item() == pytest.approx(1, abs=1e-6)


def test_one_mask_at_a_time_is_asked_only_what_it_allows() -> None:
    network = randomize(Network(4, Connectivities(4, (8,), masks=2, resample="degrees")))
    rows = worlds(network.columns)
    for number in range(2):
        one = log_conditionals(network, rows, number, given=[0, 1]).sum(1)
        assert torch.allclose(one, log_prob(Ensemble(network, [number]), rows, given=[0, 1]), rtol=0, atol=1e-12)
    for function in (log_conditionals, log_likelihood):
        with pytest.raises(ValueError, match="Remedy"):
            function(network, [[NAN, 1, 0, 1]])
        with pytest.raises(ValueError, match=r"row 1, .*Remedy"):
            function(network, [[0, 1, 0, 1], [NAN, 1, 0, 1]], [0, 1])
    with pytest.raises(ValueError, match="part of the evidence already"):
        log_prob(Ensemble(network), Evidence.of(network, rows), given=[0])


def test_columns_may_be_given_by_name_or_flags() -> None:
    network = randomize(Network(Columns.binary(3, ["a", "b", "c"]), Connectivities(3, (8,), masks=None)))
    rows = worlds(network.columns)
    expected = log_prob(Ensemble(network), rows, given=[0, 2])
    for same in (["a", "c"], np.array([0, 2], dtype=np.uint16), [True, False, True], torch.tensor([0, 2])):
        assert torch.equal(log_prob(Ensemble(network), rows, given=same), expected)


def test_rows_of_many_types_are_taken() -> None:
    network = randomize(Network(3, Connectivities(3, (8,))))
    expected = log_prob(Ensemble(network), [[0, 1, 1], [1, 0, 0]])
    array = np.array([[0, 1, 1], [1, 0, 0]])
    locked = array.astype(float)
    locked.flags.writeable = False
    for same in (array, array[::-1][::-1], array.astype(bool), array.astype(">f8"), locked, torch.tensor(array)):
        assert torch.equal(log_prob(Ensemble(network), same), expected)
    with pytest.raises(ValueError, match="'rows' should be numbers"):
        log_prob(Ensemble(network), [["yes", "no", "no"]])
    with pytest.raises(ValueError, match="'rows' should be numbers"):
        log_prob(Ensemble(network), [[None, 1, 0]])
    with pytest.raises(ValueError, match="1 is not 0 or 1"):
        log_prob(Ensemble(network.float()), [[1 + 1e-9, 0, 0]])
    for size in (0, -1):
        with pytest.raises(ValueError, match="'batch_size' should be at least 1"):
            log_prob(Ensemble(network), array, batch_size=size)


def test_mixed_columns_can_be_trained_after_inference_mode() -> None:
    network, other = (Network([Binary(), Categorical(3)], Connectivities(2, (8,))) for _ in range(2))
    with torch.inference_mode():
        log_prob(Ensemble(network), [[1, 2]])
    for each in (network, other):
        log_likelihood(each, [[1, 2]]).sum().backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(network.parameters(), other.parameters(), strict=True))


def test_the_remedy_for_fixed_orderings_is_in_the_words_of_the_reader() -> None:
    """Parameters that `MADE` accepts; on the command line, options of `made fit`."""
    ensemble = Ensemble(Network(3, Connectivities(3, (4,), masks=2, ordering="random")))
    rows = [[NAN, 1, NAN]]
    with pytest.raises(QuestionError, match=r"\(masks='unlimited', resample='both'\)"):
        log_prob(ensemble, rows)
    with for_command_line(), pytest.raises(QuestionError, match=r"\(--masks unlimited --resample both\)"):
        log_prob(ensemble, rows)
    accepted = MADE(masks="unlimited", resample="both", hidden_sizes=(4,), max_epochs=0).fit(np.eye(3))
    assert np.isfinite(accepted.score_samples(rows)).all()


@given(networks())
def test_surprise_is_the_mean_over_masks_of_the_factors_of_the_oracle(network) -> None:
    rows, masks = worlds(network.columns), [0, 1, 2]
    expected = [-Dense(network, network.connectivities[number]).log_factors(rows).detach() for number in masks]
    found = surprise(Ensemble(network, masks), rows.numpy())
    np.testing.assert_allclose(found, torch.stack(expected).mean(dim=0).numpy(), rtol=0, atol=1e-9)


@given(networks("unlimited"), st.integers(1, 5))
def test_the_surprise_of_a_row_is_the_mean_nll_of_its_observed_entries(network, segments) -> None:
    rows = worlds(network.columns)
    rows[::2, 0] = NAN
    each = [log_prob(Ensemble(network, [number], segments), rows) for number in (0, 1, 5)]
    found = surprise(Ensemble(network, [0, 1, 5], segments), rows.numpy())
    assert np.array_equal(np.isnan(found), np.isnan(rows.numpy()))
    np.testing.assert_allclose(np.nansum(found, axis=1), -torch.stack(each).mean(dim=0).numpy(), rtol=0, atol=1e-8)


def test_blocks_do_not_change_surprise(monkeypatch) -> None:
    network = randomize(Network(4, Connectivities(4, (8, 8), masks=None)))
    rows = worlds(network.columns).numpy()
    whole = surprise(Ensemble(network, 3), rows)
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 5)
    assert surprise(Ensemble(network, 3), rows) == pytest.approx(whole, abs=1e-12)
