"""What updates ask of their rows."""

from __future__ import annotations

import math

import torch

from made import Binary, Columns, Connectivities, Ensemble, Network, Numeric
from made.network.dropout import BatchGenerator
from made.queries.evidence import Evidence
from made.queries.likelihood import log_conditionals, log_likelihood, log_prob
from made.training.config import TrainingConfig
from made.training.objective import Objective
from made.training.questions import PARTLY, Groups, give_at_random, hide_at_random, query_at_random
from oracle import blind, randomize

GENERATOR = torch.Generator()


def evidence(rows: int = 4000, columns: int = 5) -> Evidence:
    GENERATOR.manual_seed(0)
    return Evidence(torch.randint(2, (rows, columns), generator=GENERATOR).double())


def test_the_number_of_given_entries_is_uniform() -> None:
    asked, _ = give_at_random(evidence(), GENERATOR)
    counts = asked.given.sum(dim=1).bincount(minlength=6) / 4000
    assert torch.allclose(counts, torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2, 0.0]), atol=0.03)


def test_one_to_three_entries_of_nearly_complete_rows_are_asked_for() -> None:
    asked, nearly = give_at_random(evidence(), GENERATOR, 0.75)
    assert abs(nearly.double().mean() - 0.75) < 0.03
    counts = asked.asked[nearly].sum(dim=1).bincount(minlength=6) / nearly.sum()
    assert torch.allclose(counts, torch.tensor([0, 1 / 3, 1 / 3, 1 / 3, 0, 0]), atol=0.03)
    counts = asked.asked[~nearly].sum(dim=1).bincount(minlength=6) / (~nearly).sum()
    assert torch.allclose(counts, torch.tensor([0.0, 0.2, 0.2, 0.2, 0.2, 0.2]), atol=0.05)


def test_all_columns_are_given_equally_often() -> None:
    asked, _ = give_at_random(evidence(), GENERATOR)
    assert torch.allclose(asked.given.double().mean(dim=0), torch.full((5,), 0.4, dtype=torch.double), atol=0.03)


def test_missing_values_are_neither_given_nor_asked_for() -> None:
    rows = evidence()
    observed = torch.rand(rows.values.shape, generator=GENERATOR) < 0.6
    for share in (0.0, 0.5):
        asked, _ = give_at_random(rows.asking(observed, None), GENERATOR, share)
        assert not (asked.given & ~observed).any()
        assert asked.asked.any(dim=1)[observed.any(dim=1)].all()


def test_entries_of_a_share_of_the_rows_are_hidden() -> None:
    hidden = hide_at_random(evidence(), 0.5, GENERATOR)
    assert abs(hidden.observed.all(dim=1).double().mean() - (0.5 + 0.5 / 6)) < 0.03
    assert hide_at_random(evidence(), 0.0, GENERATOR).observed.all()


def test_the_loss_of_parts_is_that_of_a_pass_in_which_no_column_sees_another() -> None:
    network = randomize(
        Network(5, Connectivities(5, (8, 8), masks=None, residual=True), conditioning=True, direct=True)
    )
    objective = Objective(network.eval(), TrainingConfig(segments=5, questions=0.0), evidence(40))
    questions = objective.questions(evidence(40).prepared(network), 0)
    plain = Evidence(questions.rows.values, None, questions.parts.rows.given)
    log_p = log_likelihood(network, plain, blind(network.connectivities))
    weight = 5 / plain.asked.sum(dim=1).double()
    assert torch.allclose(objective(questions, 0, 0).value, -(weight * log_p).mean(), rtol=0, atol=1e-9)


def test_the_reported_nll_leaves_out_nearly_complete_rows() -> None:
    network = randomize(Network(5, Connectivities(5, (8, 8), masks=None), direct=True))
    config = TrainingConfig(segments=5, questions=0.0, nearly_complete=0.5)
    objective = Objective(network.eval(), config, evidence(400))
    questions = objective.questions(evidence(400), 0)
    counted = questions.parts.scale > 0
    assert 0.3 < counted.double().mean() < 0.7
    asked = questions.parts.asked.sum(dim=1)
    assert torch.allclose(questions.parts.scale[counted], 5 / asked[counted])
    plain = Evidence(questions.rows.values, None, questions.parts.rows.given)
    nll = -log_likelihood(network, plain, blind(network.connectivities)) * 5 / asked
    assert torch.allclose(objective(questions, 0, 0).nll, nll[counted].mean(), rtol=0, atol=1e-9)


def test_a_batch_of_nearly_complete_rows_reports_no_nll() -> None:
    network = Network(5, Connectivities(5, (8,), masks=None)).double()
    objective = Objective(network, TrainingConfig(segments=5, questions=0.0, nearly_complete=1.0), evidence(3))
    loss = objective(objective.questions(evidence(3), 0), 0, 0)
    assert loss.nll is None
    assert loss.value.isfinite()


def test_numbers_count_less_in_the_loss_but_not_in_what_is_reported() -> None:
    columns = [Numeric(0.5, 0.5), *([Binary()] * 4)]
    network = randomize(Network(columns, Connectivities(5, (8,), masks=None), direct=True)).eval()
    plain, weighted = (
        Objective(network, TrainingConfig(segments=5, questions=0.0, number_weight=weight), evidence(40))
        for weight in (1.0, 0.25)
    )
    questions = plain.questions(evidence(40), 0)
    whole, less = (objective(questions, 0, 0) for objective in (plain, weighted))
    only = Evidence(questions.rows.values, None, questions.parts.rows.given)
    factors = log_conditionals(network, only, blind(network.connectivities))[:, 0]
    of_numbers = -(questions.parts.weights * factors).mean()
    assert torch.allclose(less.value, whole.value - 0.75 * of_numbers, rtol=0, atol=1e-9)
    assert less.nll == whole.nll


def test_tables_of_numbers_alone_are_not_weighted() -> None:
    network = Network([Numeric(0.5, 0.5)] * 5, Connectivities(5, (8,), masks=None))
    objective = Objective(network, TrainingConfig(segments=5, number_weight=0.25), evidence(40))
    assert objective.shares is None


SIZES = (3, 1, 2)


def grouped(seed: int = 0, **options) -> Network:
    family = Connectivities(6, (8, 8), masks=None, residual=True, groups=SIZES, **options)
    return randomize(Network(Columns.binary(6, signed=True).exclusive(SIZES, 50), family, direct=True), seed)


def exclusive_rows(rows: int = 4000) -> Evidence:
    GENERATOR.manual_seed(0)
    codes = torch.randint(6, (3, rows), generator=GENERATOR)
    parts = [torch.eye(6)[each][:, :size] for each, size in zip(codes, SIZES, strict=True)]
    return Evidence(torch.cat(parts, dim=1).double())


def test_the_number_of_given_groups_is_uniform_and_groups_stay_together() -> None:
    asked, _ = give_at_random(exclusive_rows(), GENERATOR, groups=Groups(SIZES, torch.empty(0)))
    given = asked.given.split(list(SIZES), dim=1)
    assert all((part == part[:, :1]).all() for part in given)
    counts = sum(part[:, 0].long() for part in given).bincount(minlength=4) / 4000
    assert torch.allclose(counts, torch.tensor([1 / 3, 1 / 3, 1 / 3, 0]), atol=0.03)


def test_parts_of_groups_are_given_in_some_rows() -> None:
    groups = Groups(SIZES, torch.empty(0))
    asked, nearly = give_at_random(exclusive_rows(), GENERATOR, 0.5, groups=groups)
    part = asked.given[:, :3].any(dim=1) & ~asked.given[:, :3].all(dim=1)
    assert 0.05 < part.double().mean() < PARTLY
    assert not (part & ~nearly).any()
    assert asked.asked.any(dim=1).all()
    for questions in (query_at_random, lambda *rest: hide_at_random(rest[0], 1.0, *rest[1:])):
        observed = questions(exclusive_rows(), GENERATOR, groups).observed[:, :3]
        apart = (observed.any(dim=1) & ~observed.all(dim=1)).double().mean()
        assert 0.05 < apart < PARTLY


def test_the_mean_over_orderings_of_groups_is_estimated() -> None:
    network = grouped().eval()
    rows = exclusive_rows(3)
    objective = Objective(network, TrainingConfig(segments=3, nearly_complete=0.5), rows)
    many = rows[torch.arange(3).repeat(4000)]
    exact = sum(
        -log_prob(Ensemble(network, masks=[number], segments=3), rows).mean().item()
        for number in distinct_orderings(network)
    ) / math.factorial(3)
    assert abs(objective.mean_over_orderings(many, 1) / 12_000 - exact) < 0.05


def distinct_orderings(network: Network) -> list[int]:
    found: dict[tuple[int, ...], int] = {}
    for number in range(100):
        found.setdefault(tuple(network.connectivities[number].ordering.tolist()), number)
    assert len(found) == math.factorial(3)
    return list(found.values())


def test_the_loss_of_groups_is_the_likelihood_of_what_is_asked() -> None:
    network, rows = grouped(), exclusive_rows(200)
    objective = Objective(network, TrainingConfig(segments=3, nearly_complete=0.5, batch_size=200), rows)
    parts = objective.questions(rows, 0).parts
    loss = objective(objective.questions(rows, 0), 0, 0)
    exact = -log_likelihood(network, parts.rows, blind(network.connectivities))
    assert torch.allclose(loss.value, (exact * parts.weights).mean(), rtol=1e-9)


def test_a_worker_draws_the_questions_of_groups_that_the_whole_batch_has() -> None:
    rows, groups, some = exclusive_rows(), Groups(SIZES, torch.empty(0)), slice(1000, 1800)
    for questions in (
        lambda part, generator: give_at_random(part, generator, 0.5, groups=groups)[0],
        lambda part, generator: query_at_random(part, generator, groups),
        lambda part, generator: hide_at_random(part, generator=generator, share=0.5, groups=groups),
    ):
        whole, worker = BatchGenerator(), BatchGenerator()
        worker.rows, worker.of = some, len(rows)
        for generator in (whole, worker):
            generator.manual_seed(1)
        expected, found = questions(rows, whole)[some], questions(rows[some], worker)
        assert (found.is_observed == expected.is_observed).all()
        assert (found.asked == expected.asked).all()
