"""The loop: it learns, cycles the masks it will be evaluated with, stops early, and can be repeated."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from made import Binary, Categorical, Columns, Connectivities, Ensemble, Network, log_prob
from made.errors import DataError, Diverged
from made.training import objective
from made.training.config import TrainingConfig
from made.training.state import State
from made.training.train import train
from made.training.trainer import Trainer
from oracle import packing

COPIES = torch.randint(2, (400, 1), generator=torch.Generator().manual_seed(0)).float().expand(-1, 6)


@pytest.mark.parametrize("masks", [1, 4, None])
def test_it_learns_columns_that_are_copies(masks) -> None:
    """Six equal columns: log p of a row goes from 6 log 2 to log 2 and no lower."""
    family = Connectivities(6, (100,), masks=masks, ordering="random")
    network = Network(Columns.binary(6, signed=True), family, direct=True, conditioning=True)
    history = train(
        network, COPIES[:300], COPIES[300:], TrainingConfig(max_epochs=35, batch_size=20, learning_rate=0.02)
    )
    assert history[-1].best_nll == pytest.approx(0.693, abs=0.05)
    kept = -log_prob(Ensemble(network), COPIES[300:]).mean().item()
    assert kept == pytest.approx(history[-1].best_nll, abs=1e-5 if masks else 0.05)  # unlimited: by more masks
    assert min(epoch.valid_nll for epoch in history) == history[-1].best_nll


def test_a_list_of_masks_is_that_many_in_training_and_in_evaluation(monkeypatch) -> None:
    family = Connectivities(6, (10,), masks=3, ordering="random")
    network = Network(6, family)
    trained = []
    original = objective.log_likelihood

    def watch(network, rows, number, **options):
        trained.append(family[number])
        return original(network, rows, number, **options)

    monkeypatch.setattr(objective, "log_likelihood", watch)
    train(network, COPIES, COPIES, TrainingConfig(batch_size=50, max_epochs=2))
    assert len(trained) == 16
    used = {connectivity.ordering.tobytes() + connectivity.hidden[0].tobytes() for connectivity in trained}
    evaluated = {family[number].ordering.tobytes() + family[number].hidden[0].tobytes() for number in family.numbers()}
    assert used == evaluated
    assert len(used) == 3


def test_each_row_may_have_a_mask_of_its_own() -> None:
    """As the paper also considers; in a finite list too, numbers go on from row to row."""
    network = Network(6, Connectivities(6, (20,), masks=None), direct=True, conditioning=True)
    history = train(
        network,
        COPIES[:100],
        COPIES[300:],
        TrainingConfig(mask_for="row", batch_size=10, max_epochs=5, learning_rate=0.02),
    )
    assert history[-1].valid_nll < history[0].valid_nll < 6 * 0.7
    with pytest.raises(ValueError, match="'mask_for' should be one of update, row"):
        train(network, COPIES, COPIES, TrainingConfig(mask_for="batch"))


def test_it_stops_early_with_the_best_weights() -> None:
    generator = torch.Generator().manual_seed(1)
    noise = torch.randint(2, (60, 6), generator=generator).float()
    other = torch.randint(2, (60, 6), generator=generator).float()
    network = Network(6, Connectivities(6, (100,)), direct=True)
    history = train(network, noise, other, TrainingConfig(max_epochs=300, patience=5, learning_rate=0.02))
    assert len(history) < 300
    assert history[-1].valid_nll > history[-1].best_nll
    assert -log_prob(Ensemble(network), other).mean().item() == pytest.approx(history[-1].best_nll, abs=1e-5)


def test_it_stops_when_its_time_is_over(monkeypatch) -> None:
    """By a clock of its own; the learning rate falls with the time that is left."""
    now = iter(range(100_000))
    monkeypatch.setattr("made.training.trainer.time.perf_counter", lambda: next(now) / 4)
    network = Network(6, Connectivities(6, (20,)), direct=True)
    history = train(
        network, COPIES, COPIES, TrainingConfig(max_epochs=300, batch_size=100, max_seconds=6, schedule="linear")
    )
    assert 1 < len(history) < 20
    assert history[-2].seconds < 6 <= history[-1].seconds
    assert history[-1].learning_rate < history[1].learning_rate < history[0].learning_rate <= 0.004
    with pytest.raises(ValueError, match="'max_seconds' should be a number above 0, or None"):
        TrainingConfig(max_seconds=0)


def test_it_can_be_repeated() -> None:
    ends = []
    for _ in range(2):
        network = Network(6, Connectivities(6, (20,), masks=2), dropout=0.3)
        train(network, COPIES, COPIES, TrainingConfig(max_epochs=3, seed=5))
        ends.append(network.state_dict())
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_what_it_cannot_do_is_said() -> None:
    network = Network(6, Connectivities(6, (20,)))
    with pytest.raises(ValueError, match="has a missing value, but only a model"):
        train(network, [[float("nan")] * 6], COPIES)
    with pytest.raises(ValueError, match="at least one row"):
        train(network, torch.zeros(0, 6), COPIES)


def test_an_any_order_model_learns_to_answer_questions() -> None:
    """A marginal of the model is that of the data, and so is a conditional, because it was asked such in training."""
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(4, (2000,), generator=generator)
    second = (first + torch.randint(2, (2000,), generator=generator)) % 4
    rows = torch.stack([first, second, (second > 1).long()], dim=1).float()
    network = Network(
        [Categorical(4), Categorical(4), Binary()], Connectivities(3, (64,), masks=None), conditioning=True
    )
    train(network, rows[:1500], rows[1500:], TrainingConfig(max_epochs=60, learning_rate=0.003, patience=60))
    nan = float("nan")
    marginal = log_prob(Ensemble(network), [[nan, value, nan] for value in range(4)]).exp()
    assert marginal.sum().item() == pytest.approx(1, abs=1e-5)
    assert (marginal - 0.25).abs().max() < 0.1  # 0.18 without questions in training
    conditional = log_prob(Ensemble(network), [[nan, value, 1] for value in range(4)], given=[2]).exp()
    assert (conditional - torch.tensor([0, 0, 0.5, 0.5])).abs().max() < 0.1


def weights(network) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


@pytest.mark.parametrize("optimizer", ["adadelta", "adagrad", "adam", "adamw", "sgd"])
@pytest.mark.parametrize("masks", [1, 3, None])
def test_a_run_goes_on_exactly_from_any_update(optimizer, masks) -> None:
    """Stopped after any number of updates, in the middle of an epoch too: the same bits, and the same history."""
    config = TrainingConfig(
        optimizer=optimizer,
        learning_rate=0.05,
        schedule="cosine",
        weight_decay=0.01,
        clip=1.0,
        average=0.9,
        batch_size=30,
        max_epochs=4,
        seed=3,
    )

    def start(state=None) -> Trainer:
        family = Connectivities(6, (20, 20), masks=masks, ordering="random")
        network = Network(6, family, direct=True, conditioning=True, dropout=0.2)
        return Trainer(network, COPIES[:100], COPIES[300:], config, state)

    whole = start()
    states, facts = [], []

    def remember(update: int) -> None:
        state = whole.snapshot()
        states.append({name: value.clone() for name, value in state.tensors.items()})
        facts.append(json.dumps(state.facts()))

    whole.run(tick=remember)
    nll = whole.choose()
    assert len(states) == 16
    for stop in (0, 2, 5, 15):
        again = start(State.of(json.loads(facts[stop]), states[stop]))
        again.run()
        assert again.choose() == nll
        assert [epoch.valid_nll for epoch in again.state.history] == [e.valid_nll for e in whole.state.history]
        # NaN where every update of an epoch had questions
        assert np.array_equal(*([e.train_nll for e in run.state.history] for run in (again, whole)), equal_nan=True)
        ours, theirs = weights(again.network), weights(whole.network)
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("optimizer", ["adadelta", "adagrad", "adam", "sgd"])
def test_a_run_of_packed_weights_goes_on_with_weights_stored_in_full(optimizer) -> None:
    """Earlier versions packed the weights of small networks, too; nothing else changes."""
    config = TrainingConfig(optimizer=optimizer, learning_rate=0.05, average=0.9, batch_size=50, max_epochs=4)

    def start(packed: bool, state: State | None = None) -> Trainer:
        with packing(packed):
            network = Network(6, Connectivities(6, (20, 20), ordering="random"), direct=True).double()
        assert (network.W1.ndim == 1) == packed
        return Trainer(network, COPIES[:100], COPIES[300:], config, state)

    whole, states = start(True), []
    whole.run(tick=lambda update: states.append(whole.snapshot().copy()))
    again = start(False, states[4])
    again.run()
    assert again.choose() == pytest.approx(whole.choose(), abs=1e-9)
    ours, theirs = weights(again.network), weights(whole.network)
    assert all(torch.allclose(ours[name], theirs[name], rtol=0, atol=1e-9) for name in theirs)


def test_the_state_of_another_network_is_refused() -> None:
    one = Trainer(Network(6, Connectivities(6, (20,))), COPIES, COPIES, TrainingConfig())
    with pytest.raises(ValueError, match="belongs to another network"):
        Trainer(Network(6, Connectivities(6, (21,))), COPIES, COPIES, TrainingConfig(), one.snapshot())


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_what_is_not_finite_ends_training_at_once(where, monkeypatch) -> None:
    """The step is named, no bad number reaches the weights, and the best epoch's are kept."""
    network = Network(6, Connectivities(6, (20,)))
    trainer = Trainer(network, COPIES, COPIES, TrainingConfig(batch_size=100, max_epochs=10))
    original = objective.log_likelihood

    def break_at(network, rows, mask, **options):
        value = original(network, rows, mask, **options)
        if trainer.state.update == 9:
            # The root of 0 has a value, but no slope.
            return value + (torch.nan if where == "loss" else (0 * value).sqrt())
        return value

    monkeypatch.setattr(objective, "log_likelihood", break_at)
    kept = []
    with pytest.raises(Diverged, match=rf"update 9 \(epoch 2\): the {where} is not finite; the weights of epoch 1"):
        trainer.run(tick=kept.append)
    assert len(kept) == 9
    assert len(trainer.state.history) == 2
    nll = trainer.state.history[-1].best_nll
    assert -log_prob(Ensemble(network), COPIES).mean().item() == pytest.approx(nll, abs=1e-6)


def test_a_learning_rate_that_is_far_too_high_keeps_the_weights_it_began_with() -> None:
    network = Network(6, Connectivities(6, (20,)), direct=True)
    before = weights(network)
    with pytest.raises(Diverged, match="the weights it began with are kept"):
        train(network, COPIES, COPIES, TrainingConfig(optimizer="sgd", learning_rate=1e38, batch_size=10))
    after = weights(network)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_gradient_is_clipped_and_weights_are_averaged() -> None:
    """One step of SGD of a clipped gradient is as long as told; the average is what is validated and kept."""
    network = Network(6, Connectivities(6, (20,)), direct=True).double()
    before = [value.detach().clone() for value in network.parameters()]
    trainer = Trainer(
        network,
        COPIES,
        None,
        TrainingConfig(optimizer="sgd", momentum=0.0, learning_rate=1.0, clip=1e-3, batch_size=400, max_epochs=1),
    )
    trainer.run()
    moved = sum(((a - b) ** 2).sum() for a, b in zip(before, network.parameters(), strict=True)).sqrt().item()
    assert moved == pytest.approx(1e-3, rel=1e-4)
    network = Network(6, Connectivities(6, (20,)), direct=True)
    trainer = Trainer(network, COPIES, COPIES, TrainingConfig(average=0.9, batch_size=50, max_epochs=3))
    by_hand = {name: value.detach().clone() for name, value in network.named_parameters()}

    def follow(update: int) -> None:
        decay = min(0.9, update / (9 + update))
        for name, value in network.named_parameters():
            by_hand[name].lerp_(value.detach(), 1 - decay)

    trainer.run(tick=follow)
    trainer.choose()
    for name, value in network.named_parameters():
        assert torch.allclose(value, by_hand[name], atol=1e-6)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_the_learning_rate_follows_its_schedule(schedule) -> None:
    network = Network(6, Connectivities(6, (5,)))
    history = train(
        network, COPIES, COPIES, TrainingConfig(schedule=schedule, learning_rate=0.5, batch_size=100, max_epochs=5)
    )
    share = [(4 * epoch + 3) / 20 for epoch in range(5)]
    expected = {
        "constant": [0.5] * 5,
        "linear": [0.5 * (1 - part) for part in share],
        "cosine": [0.25 * (1 + math.cos(math.pi * part)) for part in share],
    }
    assert [epoch.learning_rate for epoch in history] == pytest.approx(expected[schedule])


@pytest.mark.parametrize("masks", [None, 8])
def test_many_masks_choose_among_the_best_epochs(masks) -> None:
    network = Network(6, Connectivities(6, (30,), masks=masks), conditioning=True)
    config = TrainingConfig(validation_masks=1, evaluation_masks=8, max_epochs=8, batch_size=50, learning_rate=0.05)
    trainer = Trainer(network, COPIES[:200], COPIES[300:], config)
    trainer.run()
    assert len(trainer.best) == 3
    assert [nll for nll, _ in trainer.state.finalists] == sorted(epoch.valid_nll for epoch in trainer.state.history)[:3]
    trainer._load(trainer.best[0])
    network.eval()
    assert trainer.state.finalists[0][0] == pytest.approx(-log_prob(Ensemble(network, [0]), COPIES[300:]).mean().item())
    nll = trainer.choose()
    assert nll == pytest.approx(-log_prob(Ensemble(network, 8), COPIES[300:]).mean().item(), abs=1e-6)
    for number in range(3):
        trainer._load(trainer.best[number])
        assert -log_prob(Ensemble(network, 8), COPIES[300:]).mean().item() >= nll - 1e-6


def test_rows_with_missing_are_learned_from() -> None:
    """Half of all entries missing, each row another half: the copies are found all the same."""
    rows = COPIES.clone()
    rows[torch.rand(rows.shape, generator=torch.Generator().manual_seed(0)) < 0.5] = float("nan")
    rows[0] = float("nan")
    network = Network(Columns.binary(6, signed=True), Connectivities(6, (100,), masks=None), conditioning=True)
    train(network, rows[:300], rows[300:], TrainingConfig(max_epochs=60, batch_size=20, learning_rate=0.01))
    assert -log_prob(Ensemble(network), COPIES[300:]).mean().item() < 1.0
    with pytest.raises(DataError, match="masks='unlimited'"):
        train(Network(6, Connectivities(6, (20,), masks=4)), rows, COPIES)


def test_without_validation_rows_the_last_weights_are_kept() -> None:
    network = Network(6, Connectivities(6, (20,)))
    history = train(network, COPIES, None, TrainingConfig(max_epochs=2))
    assert len(history) == 2
    assert math.isnan(history[-1].valid_nll)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"optimizer": "lion"}, "'optimizer' should be one of adadelta, adagrad, adam, adamw, sgd, not 'lion'"),
        ({"epsilon": 0.0}, "'epsilon' should be a number above 0, or None, not 0.0"),
        ({"average": 1.0}, "'average' should be a number at least 0 and below 1"),
        ({"batch_size": 0}, "'batch_size' should be a whole number at least 1"),
        ({"learning_rate": float("nan")}, "'learning_rate' should be a number above 0"),
        ({"schedule": "steps"}, "'schedule' should be one of constant, falling, linear, cosine"),
        ({"optimizer": "adagrad", "momentum": 0.5}, "'momentum' is not supported by optimizer='adagrad'"),
        ({"optimizer": "sgd", "epsilon": 0.5}, "'epsilon' is not supported by optimizer='sgd'"),
    ],
)
def test_config_is_checked(wrong, message) -> None:
    with pytest.raises(ValueError, match=message):
        train(Network(6, Connectivities(6, (5,))), COPIES, COPIES, TrainingConfig(**wrong))


@pytest.mark.parametrize(("optimizer", "root"), [("adamw", True), ("adam", True), ("adadelta", False), ("sgd", False)])
def test_conditioning_weights_learn_more_slowly_by_the_adams(optimizer, root) -> None:
    network = Network(6, Connectivities(6, (16, 25), masks=None), conditioning=True)
    trainer = Trainer(network, COPIES, None, TrainingConfig(optimizer=optimizer, learning_rate=0.1, max_epochs=1))
    rates = {id(weight): group["lr"] for group in trainer.optimizer.param_groups for weight in group["params"]}
    found = {name: rates[id(weight)] for name, weight in network.named_parameters()}
    slower = {"U1": 6**0.5, "U2": 4, "U3": 5} if root else {}
    assert found == pytest.approx({name: 0.1 / slower.get(name, 1) for name in found})
