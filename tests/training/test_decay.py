"""Weight decay that depends on how much of each column the others explain."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from made import Categorical, Columns, Connectivities, Network, Numeric
from made.queries.evidence import Evidence
from made.queries.likelihood import log_likelihood
from made.training.config import TrainingConfig
from made.training.decay import LEAST, AdaptiveDecay
from made.training.state import State
from made.training.trainer import Trainer
from oracle import blind, randomize

CONFIG = TrainingConfig(
    optimizer="adamw",
    learning_rate=0.02,
    weight_decay=0.5,
    adaptive_decay=True,
    segments=4,
    batch_size=50,
    max_epochs=12,
    average=0.9,
)
COLUMNS = Columns([Categorical(2), Categorical(2), Categorical(3), Numeric(0.0, 1.0)])


def rows(count: int = 300, missing: float = 0.0) -> Evidence:
    """Two columns that are the same, and two that are noise."""
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(2, (count, 1), generator=generator)
    third = torch.randint(3, (count, 1), generator=generator)
    values = torch.cat([first, first, third, torch.randn(count, 1, generator=generator)], dim=1).double()
    observed = torch.rand(values.shape, generator=generator) >= missing
    return Evidence(values * observed, observed if missing else None)


def network() -> Network:
    return Network(COLUMNS, Connectivities(4, (16,), masks=None, seed=1), direct=True, seed=1).double()


def trainer(state: State | None = None, **changes) -> Trainer:
    own = network()
    return Trainer(own, rows()[:200], rows()[200:], replace(CONFIG, **changes), state)


def test_columns_that_follow_from_others_are_decayed_less() -> None:
    run = trainer()
    run.run()
    assert run.decay.factors[2:].tolist() == [1, 1]
    assert (run.decay.factors[:2] < 0.3).all()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_factors_are_the_ratio_of_noise_to_signal(missing) -> None:
    own, valid = randomize(network(), scale=1.0).eval(), rows(30, missing)
    decay = AdaptiveDecay(own, 1.0, valid)
    decay.measure()
    for column, kind in enumerate(COLUMNS.kinds):
        known = valid[valid.is_observed[:, column]]
        only = torch.zeros(4, dtype=torch.bool)
        only[column] = True
        others = known.is_observed & ~only
        means = []
        for given in (others, torch.zeros_like(others)):
            asked = replace(known, observed=given | only.expand_as(given), given=given)
            means.append(log_likelihood(own, asked, blind(own.connectivities)).mean().item())
        share = 1 - math.exp(-2 * max(means[0] - means[1], 0))
        share /= 1 - math.exp(2 * means[1]) if kind.listed else 1
        expected = min(max((1 - share) / share, LEAST), 1) if share else 1
        assert decay.factors[column].item() == pytest.approx(expected, abs=1e-9)


def test_before_a_measurement_all_weights_decay_as_by_adamw() -> None:
    runs = [trainer(adaptive_decay=adaptive, max_epochs=1) for adaptive in (True, False)]
    for run in runs:
        run.run()
    for one, other in zip(*(run.network.parameters() for run in runs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_weights_of_a_column_shrink_by_its_factor() -> None:
    run = trainer()
    run.decay.set(torch.tensor([0.1, 0.2, 0.5, 1.0], dtype=torch.float64))
    before = {name: weight.detach().clone() for name, weight in run.parameters.items()}
    before["A"].fill_(1)
    run.parameters["A"].data.fill_(1)
    run.decay.shrink(0.1)
    units = [unit for d in range(4) for unit in [d] * COLUMNS.kinds[d].outputs]
    expected = 1 - 0.1 * CONFIG.weight_decay * run.decay.factors[torch.tensor(units)]
    assert torch.equal(run.parameters["A"], expected.unsqueeze(1).expand_as(before["A"]))
    assert torch.allclose(run.parameters["W1"], before["W1"] * (1 - 0.1 * CONFIG.weight_decay * 0.45))
    assert torch.equal(run.parameters["c"], before["c"])


def test_a_run_is_resumed_with_its_factors() -> None:
    whole, states = trainer(), []

    def remember(update: int) -> None:
        state = whole.snapshot()
        states.append(State.of(state.facts(), {name: each.clone() for name, each in state.tensors.items()}))

    whole.run(tick=remember)
    again = trainer(states[25])  # within the epoch after the first measurement
    assert (again.decay.factors < 1).any()
    again.run()
    for one, other in zip(again.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("factors", [None, [1.0], [0.0, 1.0, 1.0, 1.0], [math.nan, 1.0, 1.0, 1.0]])
def test_a_state_without_sound_factors_is_refused(factors) -> None:
    state = trainer(max_epochs=1).snapshot()
    del state.tensors["decay"]
    if factors is not None:
        state.tensors["decay"] = torch.tensor(factors, dtype=torch.float64)
    with pytest.raises(ValueError, match="no sound factors of the weight decay"):
        trainer(state)


@pytest.mark.parametrize(
    "changes", [{"adaptive_decay": False}, {"weight_decay": 0.0}, {"optimizer": "sgd"}, {"segments": 1}], ids=str
)
def test_other_runs_decay_all_weights_alike(changes) -> None:
    assert trainer().decay is not None
    assert trainer(**changes).decay is None


def test_without_validation_rows_all_weights_decay_alike() -> None:
    assert Trainer(network(), rows(), None, CONFIG).decay is None


def test_a_group_of_exclusive_columns_has_one_factor() -> None:
    generator = torch.Generator().manual_seed(0)
    first, noise = (torch.randint(3, (400,), generator=generator) for _ in range(2))
    table = torch.cat([torch.eye(3)[each] for each in (first, first, noise)], dim=1).double()
    columns = Columns.binary(9, signed=True).exclusive([3, 3, 3], 300)
    own = Network(columns, Connectivities(9, (16,), masks=None, groups=(3, 3, 3)), direct=True, seed=1).double()
    run = Trainer(own, Evidence(table)[:300], Evidence(table)[300:], replace(CONFIG, segments=3))
    run.run()
    assert (run.decay.factors.view(3, 3) == run.decay.factors[::3, None]).all()
    assert (run.decay.factors[:6] < 0.5).all()
    assert (run.decay.factors[6:] == 1).all()
