"""Exact answers equal sums over all states by a slow oracle; estimates lie within their errors of them."""

from __future__ import annotations

import itertools
import math
import operator

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fields import make_field
from made import Binary, Ensemble, log_prob, sample
from made.ask.boxes import boxes_of
from made.ask.exact import probability
from made.ask.parser import parse
from made.ask.progressive import Cells
from made.errors import QuestionError
from made.queries.conditional import predict
from oracle import networks
from questions import DISCRETE, FAMILIES, holds, network_of

NAN = float("nan")
MIXED = [
    make_field("a", "binary", ("no", "yes"), dtype="text"),
    make_field("age", "numeric", location=30.0, scale=8.0, step=1.0, dtype="int"),
    make_field("c", "categorical", ("x", "y", "z"), dtype="text"),
    make_field("pay", "numeric", location=10.0, scale=4.0),
    make_field("score", "numeric", location=5.0, scale=2.0, step=1.0, dtype="int"),
]


def states(fields, names) -> list[dict]:
    """Every state of some discrete columns, as codes and as values."""
    chosen = [field for field in fields if field.name in names]
    codes = itertools.product(*(range(len(field.values)) for field in chosen))
    return [{field.name: code for field, code in zip(chosen, each, strict=True)} for each in codes]


def names_in(condition) -> set[str]:
    if condition is None:
        return set()
    parts = getattr(condition, "parts", None) or ((condition.part,) if hasattr(condition, "part") else None)
    return {condition.column} if parts is None else set().union(*map(names_in, parts))


def oracle(network, fields, text, masks=None) -> float:
    """P(A | B) by the evaluation of every state: p(given) p(others | given), or whole rows if orderings are fixed."""
    query = parse(text, fields)
    values = {field.name: field.values for field in fields}
    order = [field.name for field in fields]
    any_order = network.connectivities.any_order
    first = names_in(query.given)
    mentioned = first | names_in(query.asked) if any_order else set(order)
    above = below = 0.0
    every = states(fields, mentioned)
    rows = torch.tensor([[state.get(name, NAN) for name in order] for state in every], dtype=torch.float64)
    if any_order and first and mentioned > first:
        alone = rows.clone()
        alone[:, [name not in first for name in order]] = NAN
        log_p = log_prob(Ensemble(network, masks), alone)
        log_p = log_p + log_prob(
            Ensemble(network, masks), rows, given=[d for d, name in enumerate(order) if name in first]
        )
    else:
        log_p = log_prob(Ensemble(network, masks), rows)
    for state, p in zip(every, log_p.exp().tolist(), strict=True):
        row = {name: values[name][code] for name, code in state.items()}
        if query.given is None or holds(query.given, row):
            below += p
            above += p * holds(query.asked, row)
    return above / below


QUESTIONS = [
    "a = yes",
    "a = yes and b > 0",
    "c in {x, w} or d = true",
    "not (a = yes and c = x) and b != 1",
    "a = yes | b = 2",
    "a = yes and c != y | b >= 1 and d = false",
    "c = x or b = 0 | c in {x, y, z} or a = no",
    "a = yes and b = 1 | a = yes or d = true",
    "d = true | a = no and b = 1 and c = w",
]


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("text", QUESTIONS)
def test_exact_answers_equal_the_sum_over_all_states(family, text) -> None:
    network = network_of(DISCRETE, family)
    masks = 3 if family == "any" else None
    answer = probability(Ensemble(network, masks), DISCRETE, text)
    assert answer.kind == "exact"
    assert answer.standard_error == 0
    assert answer.states > 0
    assert f"{answer.states} state" in answer.how
    assert answer.probability == pytest.approx(oracle(network, DISCRETE, text, masks), abs=1e-10)


COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@settings(max_examples=25)
@given(networks(), st.data())
def test_any_architecture_is_summed(network, data) -> None:
    fields = [
        make_field(
            f"x{d}",
            "binary" if isinstance(kind, Binary) else "categorical",
            tuple(range(2 if isinstance(kind, Binary) else kind.k)),
            dtype="int",
        )
        for d, kind in enumerate(network.columns)
    ]
    comparisons = [
        f"x{d} {sign} {value}"
        for d, sign, value in itertools.product(range(len(fields)), COMPARE, range(3))
        # columns of comparisons that are always or never true are left out of the question, but not by the oracle
        if not network.connectivities.any_order
        or 0 < sum(COMPARE[sign](each, value) for each in fields[d].values) < len(fields[d].values)
    ]
    assume(comparisons)
    atom = st.sampled_from(comparisons)
    text = data.draw(st.builds(lambda a, b, join: f"{a} {join} {b}", atom, atom, st.sampled_from(["and", "or"])))
    condition = data.draw(st.none() | atom)
    text = text if condition is None else f"{text} | {condition}"
    try:
        expected = oracle(network, fields, text)
    except ZeroDivisionError:
        with pytest.raises(QuestionError, match="impossible"):
            probability(Ensemble(network), fields, text)
        return
    assert probability(Ensemble(network), fields, text).probability == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("text", QUESTIONS)
def test_estimates_lie_within_their_errors_of_the_sum(family, text) -> None:
    """Over several seeds: none is more than four standard errors off, and errors are of the right size."""
    network = network_of(DISCRETE, family)
    masks = 3 if family == "any" else None
    truth = oracle(network, DISCRETE, text, masks)
    off = []
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        answer = probability(Ensemble(network, masks), DISCRETE, text, samples=600, most_states=0, generator=generator)
        assert answer.kind == "estimate"
        if answer.standard_error < 1e-9:
            assert answer.probability == pytest.approx(truth, abs=1e-9)
        else:
            off.append((answer.probability - truth) / answer.standard_error)
    assert max(map(abs, off), default=0) < 4, off
    if off:
        assert np.sqrt(np.mean(np.square(off))) < 2, off


def test_standard_errors_are_neither_too_small_nor_far_too_large() -> None:
    network = network_of(MIXED)
    for text in ("age < 28 and pay > 11", "age < 28 and pay > 11 | score > 4", "pay > 11 and score < 4 | score < 6"):
        generator = torch.Generator().manual_seed(0)
        answers = [probability(Ensemble(network, 3), MIXED, text, samples=90, generator=generator) for _ in range(50)]
        spread = np.std([answer.probability for answer in answers])
        error = np.mean([answer.standard_error for answer in answers])
        assert 0.75 * spread < error < 1.35 * spread


def quadrature(network, fields, given, asked, points=201):
    """p of two numeric columns on a grid: values of each, and log p(given) + log p(asked | given)."""
    names = [field.name for field in fields]
    grids = {}
    for field in fields:
        if field.name in given + asked:
            kind = field.column
            if kind.step:
                grids[field.name] = (np.arange(-50, 110) * kind.step, np.ones(160))
            else:
                ends = np.linspace(kind.location - 20 * kind.scale, kind.location + 20 * kind.scale, points + 1)
                ends = ends - ends[points // 2] + 9.5  # so that 9.5 is the end of a part
                grids[field.name] = ((ends[1:] + ends[:-1]) / 2, np.diff(ends))
    mentioned = [name for name in names if name in grids]
    values = np.array(list(itertools.product(*(grids[name][0] for name in mentioned))))
    widths = np.array([math.prod(each) for each in itertools.product(*(grids[name][1] for name in mentioned))])
    rows = np.full((len(values), len(names)), np.nan)
    for index, name in enumerate(mentioned):
        rows[:, names.index(name)] = values[:, index]
    log_p = np.zeros(len(rows))
    if given:
        alone = rows.copy()
        alone[:, [names.index(name) for name in asked]] = np.nan
        log_p += log_prob(Ensemble(network, 2), alone, batch_size=20000).numpy()
    log_p += log_prob(Ensemble(network, 2), rows, given=given or None, batch_size=20000).numpy()
    return {name: values[:, index] for index, name in enumerate(mentioned)}, np.exp(log_p) * widths


def test_ranges_of_several_columns_are_estimated() -> None:
    network = network_of(MIXED, scale=0.2)
    cases = [
        ("age < 28 and score >= 5", [], ["age", "score"], lambda v: (v["age"] < 28) & (v["score"] >= 5), None),
        (
            "age < 28 and score > 5 or age > 40",
            [],
            ["age", "score"],
            lambda v: (v["age"] < 28) & (v["score"] > 5) | (v["age"] > 40),
            None,
        ),
        ("age < 28 | score > 4", ["score"], ["age"], lambda v: v["age"] < 28, lambda v: v["score"] > 4),
        (
            "age < 28 | score in {3, 9} or score > 20",
            ["score"],
            ["age"],
            lambda v: v["age"] < 28,
            lambda v: np.isin(v["score"], (3, 9)) | (v["score"] > 20),
        ),
        (
            "age < 28 and score < 6 | score > 4",
            ["score"],
            ["age"],
            lambda v: (v["age"] < 28) & (v["score"] < 6),
            lambda v: v["score"] > 4,
        ),
        ("age < 28 and pay > 9.5", [], ["age", "pay"], lambda v: (v["age"] < 28) & (v["pay"] > 9.5), None),
    ]
    for text, first, second, is_asked, is_given in cases:
        values, p = quadrature(network, MIXED, first, second)
        assert p.sum() == pytest.approx(1, abs=0.01)
        condition = np.ones(len(p), dtype=bool) if is_given is None else is_given(values)
        truth = p[is_asked(values) & condition].sum() / p[condition].sum()
        for seed in range(3):
            generator = torch.Generator().manual_seed(seed)
            answer = probability(Ensemble(network, 2), MIXED, text, samples=2000, generator=generator)
            assert answer.kind == "estimate"
            assert abs(answer.probability - truth) < 4 * answer.standard_error + 2e-3, text


def test_one_range_is_exact() -> None:
    """The area of the last column's mixture, in each state of the others: against sums over its steps."""
    network = network_of(MIXED, scale=0.3)
    names = [field.name for field in MIXED]
    ages = np.arange(-30_000.0, 30_000.0)

    def mass(known: dict[str, int]) -> np.ndarray:
        row = np.array([[known.get(name, NAN) for name in names]])
        prediction, kind = predict(Ensemble(network, 2), row, 1), network.columns[1]
        values = kind.inner(torch.from_numpy(ages)).expand(len(prediction.units), -1)
        log_p = kind.log_prob(prediction.units.expand(-1, len(ages), -1), values) + prediction.weights
        return log_p.logsumexp(dim=0).exp().numpy()

    answer = probability(Ensemble(network, 2), MIXED, "age < 28 or age in {40, 41}")
    assert answer.kind == "exact"
    assert "integrating 'age'" in answer.how
    inside = (ages < 28) | np.isin(ages, (40, 41))
    assert answer.probability == pytest.approx(mass({})[inside].sum(), abs=1e-6)
    # A range that is given comes last all the same: p(c) P(age | c), for c and for all others.
    answer = probability(Ensemble(network, 2), MIXED, "c = y | age < 28")
    assert (answer.kind, answer.states) == ("exact", 3)
    parts = []
    for code in range(3):
        row = np.array([[NAN, NAN, code, NAN, NAN]])
        parts.append(log_prob(Ensemble(network, 2), row).exp().item() * mass({"c": code})[ages < 28].sum())
    assert answer.probability == pytest.approx(parts[1] / sum(parts), abs=1e-6)
    # One that is asked for, given a value.
    answer = probability(Ensemble(network, 2), MIXED, "age < 28 | c = y")
    assert answer.probability == pytest.approx(mass({"c": 1})[ages < 28].sum(), abs=1e-6)
    # Numbers in steps between limits are states like others.
    answer = probability(Ensemble(network), MIXED, "pay > 11 and 20 <= age < 25 and a = yes")
    assert (answer.kind, answer.states) == ("exact", 5)


def test_a_conditional_is_what_the_model_predicts() -> None:
    """P(c | a, age) is predict's, also when a real number is given: then by its density."""
    network = network_of(MIXED)
    row = np.array([[1.0, 33.0, NAN, 12.5, NAN]])
    expected = predict(Ensemble(network), row, 2).probabilities(3)[0]
    answer = probability(Ensemble(network), MIXED, "c = z | a = yes and age = 33 and pay = 12.5")
    assert answer.probability == pytest.approx(expected[2].item(), abs=1e-9)
    # A single real number, beside a range: its density weighs what is given.
    answer = probability(Ensemble(network), MIXED, "c = z | pay in {12.5, 3.5}")
    rows = np.array([[NAN, NAN, NAN, 12.5, NAN], [NAN, NAN, NAN, 3.5, NAN]])
    densities = log_prob(Ensemble(network), rows).exp().numpy()
    each = predict(Ensemble(network), rows, 2).probabilities(3)[:, 2].numpy()
    assert answer.probability == pytest.approx(np.average(each, weights=densities), abs=1e-9)
    assert probability(Ensemble(network), MIXED, "pay = 12.5").probability == 0
    assert probability(Ensemble(network), MIXED, "pay != 12.5").probability == 1
    assert probability(Ensemble(network), MIXED, "pay = 12.5 | pay = 12.5").probability == 1
    fields = [*MIXED[:4], make_field("rest", "numeric", scale=1.0)]
    network = network_of(fields)
    with pytest.raises(QuestionError, match="densities cannot be compared"):
        probability(Ensemble(network), fields, "a = yes | pay = 3 or rest = 1")


def test_a_density_that_is_given_beside_a_range_is_estimated() -> None:
    network = network_of(MIXED, scale=0.3)
    text = "5 < score < 60 and c = y | pay = 12.5 and 30 < age < 120"
    rows = np.full((89, 5), NAN)
    rows[:, 1], rows[:, 3] = np.arange(31, 120), 12.5
    weight = log_prob(Ensemble(network, 2), rows).exp().numpy()
    rows[:, 2] = 1
    value = np.zeros(len(rows))
    for score in range(6, 60):
        rows[:, 4] = score
        value += log_prob(Ensemble(network, 2), rows, given=["age", "pay"]).exp().numpy()
    truth = (weight * value).sum() / weight.sum()
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        answer = probability(Ensemble(network, 2), MIXED, text, most_states=0, generator=generator)
        assert answer.kind == "estimate"
        assert abs(answer.probability - truth) < 4 * answer.standard_error


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize(
    "text", ["a = yes and c != y", "b > 0 or c = x", "c = w | a = yes", "a = yes | b = 1 or d = true"]
)
def test_a_condition_and_its_negation_add_up_to_one(family, text) -> None:
    network = network_of(DISCRETE, family)
    asked, bar, condition = text.partition(" | ")
    contrary = probability(Ensemble(network), DISCRETE, f"not ({asked}){bar}{condition}").probability
    assert probability(Ensemble(network), DISCRETE, text).probability + contrary == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("text", ["age < 30", "c = x and age < 30", "c = x | age < 30", "age < 30 or a = no | pay > 9"])
def test_a_range_and_its_negation_add_up_to_one(text) -> None:
    network = network_of(MIXED)
    asked, bar, condition = text.partition(" | ")
    both = [probability(Ensemble(network), MIXED, f"{each}{bar}{condition}") for each in (asked, f"not ({asked})")]
    if both[0].kind == "exact":
        assert sum(map(float, both)) == pytest.approx(1, abs=1e-9)
    else:
        assert abs(sum(map(float, both)) - 1) < 4 * math.hypot(*(each.standard_error for each in both))


def test_the_negation_is_evaluated_where_it_has_fewer_states() -> None:
    network = network_of(MIXED, scale=0.3)
    answer = probability(Ensemble(network), MIXED, "age < 20 or age > 25 or pay <= 11 or a = no")
    assert (answer.kind, answer.states) == ("exact", 6)
    assert "for the negation" in answer.how
    contrary = probability(Ensemble(network), MIXED, "20 <= age <= 25 and pay > 11 and a = yes")
    assert float(answer) + float(contrary) == pytest.approx(1, abs=1e-12)
    answer = probability(Ensemble(network, 3), MIXED, "age < 20 or pay <= 11 or score < 2")
    contrary = probability(Ensemble(network, 3), MIXED, "age >= 20 and pay > 11 and score >= 2")
    assert answer.kind == contrary.kind == "estimate"
    assert "for the negation" in answer.how
    assert abs(float(answer) + float(contrary) - 1) < 4 * math.hypot(answer.standard_error, contrary.standard_error)


@pytest.mark.parametrize("family", ["one", "list"])
def test_a_fixed_ordering_draws_the_columns_before_those_asked_for(family) -> None:
    """Ranges anywhere in the orderings: against whole rows that are drawn, and counted."""
    network = network_of(MIXED, family, scale=0.3)
    rows = sample(Ensemble(network), 20_000, generator=0).numpy()
    a, age, c, pay, score = rows.T
    cases = {
        "age < 28 and pay > 9": ((age < 28) & (pay > 9), np.ones(len(rows), dtype=bool)),
        "pay > 9 | age < 28": (pay > 9, age < 28),
        "age < 28 | pay > 9 and c != 'x'": (age < 28, (pay > 9) & (c > 0)),
        "age < 28 and a = yes | score > 5 or age > 25": ((age < 28) & (a == 1), (score > 5) | (age > 25)),
    }
    for text, (asked, condition) in cases.items():
        answer = probability(Ensemble(network), MIXED, text, samples=3000, generator=torch.Generator().manual_seed(0))
        p, count = asked[condition].mean(), condition.sum()
        error = math.hypot(answer.standard_error, math.sqrt(p * (1 - p) / count))
        assert abs(answer.probability - p) < 4 * error, text


def test_impossible_conditions_are_refused() -> None:
    network = network_of(MIXED)
    for text in ("a = yes | age < 20 and age > 30", "a = yes | age = 20.5", "a = yes | not (c in {x, y, z})"):
        with pytest.raises(QuestionError, match="the given condition is impossible"):
            probability(Ensemble(network), MIXED, text)
    answer = probability(Ensemble(network), MIXED, "age < 20 and age > 30 | a = yes")
    assert (answer.probability, answer.kind) == (0.0, "exact")
    assert probability(Ensemble(network), MIXED, "a = yes | a = yes and age < 30").probability == 1
    with pytest.raises(ValueError, match="'samples' should be a whole number, at least 2"):
        probability(Ensemble(network), MIXED, "a = yes", samples=1)


def test_cells_evaluated_together_equal_cells_evaluated_one_by_one() -> None:
    points = make_field("debt", "numeric", location=3.0, scale=1.5, curve=1.0, low=0.0, spikes=(0.0, 7.5), missing=True)
    generator = torch.Generator().manual_seed(0)
    for field in (*MIXED[1:2], MIXED[3], points):
        kind = field.column
        text = " or ".join(f"{i} <= {field.name} < {i + 0.7}" for i in range(40))
        (box,) = boxes_of(parse(text, [field]).asked, [field], [kind])
        cells = Cells(0, kind, [box])
        units = torch.randn(5, kind.outputs, generator=generator, dtype=torch.float64)
        alone = [kind.log_interval(units, low, high) for low, high in box[0]]
        assert cells.log_intervals(units).exp().sum(-1).tolist() == pytest.approx(
            torch.stack(alone).exp().sum(0).tolist()
        )


def test_many_ranges_add_up() -> None:
    network = network_of(MIXED)
    text = " or ".join(f"{i / 100} < pay < {i / 100 + 0.005}" for i in range(3000))
    halves = [f"pay between {a} and {b}" for a, b in ((0, 30), (0, 15), (15, 30))]
    answer = probability(Ensemble(network), MIXED, text)
    assert answer.kind == "exact"
    whole, low, high = (probability(Ensemble(network), MIXED, each).probability for each in halves)
    assert answer.probability == pytest.approx(whole / 2, rel=0.01)  # the density hardly changes within 0.01
    assert low + high == pytest.approx(whole)
    total = sum(
        probability(Ensemble(network), MIXED, f"{i / 100} < pay < {i / 100 + 0.005}").probability
        for i in range(900, 950)
    )
    some = " or ".join(f"{i / 100} < pay < {i / 100 + 0.005}" for i in range(900, 950))
    assert probability(Ensemble(network), MIXED, some).probability == pytest.approx(total, rel=1e-9)


def test_an_estimate_over_too_many_ranges_is_refused() -> None:
    network = network_of(MIXED)
    text = " or ".join(f"{i / 100} < pay < {i / 100 + 0.005}" for i in range(3000))
    with pytest.raises(QuestionError, match=r"fall into 3,000 ranges.*'samples'"):
        probability(Ensemble(network), MIXED, f"({text}) and age > 20", most_states=0)
    assert (
        probability(Ensemble(network), MIXED, f"({text}) and age > 20", most_states=0, samples=200).kind == "estimate"
    )
