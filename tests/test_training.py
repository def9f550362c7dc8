"""The loop: it learns, cycles the masks it will be evaluated with, stops early, and can be repeated."""

from __future__ import annotations

import pytest
import torch

from made import Binary, Categorical, Columns, Connectivities, Network, log_prob
from made import training as room
from made.training import train

COPIES = torch.randint(2, (400, 1), generator=torch.Generator().manual_seed(0)).float().expand(-1, 6)


@pytest.mark.parametrize("masks", [1, 4, None])
def test_it_learns_columns_that_are_copies(masks) -> None:
    """Six equal columns: log p of a row goes from 6 log 2 to log 2 and no lower."""
    family = Connectivities(6, (100,), masks=masks, ordering="random")
    network = Network(Columns.binary(6, signed=True), family, direct=True, conditioning=True)
    history = train(network, COPIES[:300], COPIES[300:], max_epochs=100, batch_size=20, learning_rate=0.02)
    assert history[-1].best_nll == pytest.approx(0.693, abs=0.05)
    assert -log_prob(network, COPIES[300:]).mean().item() == pytest.approx(history[-1].best_nll, abs=1e-5)
    assert min(epoch.valid_nll for epoch in history) == history[-1].best_nll


def test_a_list_of_masks_is_that_many_in_training_and_in_evaluation(monkeypatch) -> None:
    family = Connectivities(6, (10,), masks=3, ordering="random")
    network = Network(6, family)
    trained = []
    original = room.log_likelihood

    def watch(network, rows, number, **options):
        trained.append(family[number])
        return original(network, rows, number, **options)

    monkeypatch.setattr(room, "log_likelihood", watch)
    train(network, COPIES, COPIES, batch_size=50, max_epochs=2)
    assert len(trained) == 16
    used = {connectivity.ordering.tobytes() + connectivity.hidden[0].tobytes() for connectivity in trained}
    evaluated = {family[number].ordering.tobytes() + family[number].hidden[0].tobytes() for number in family.numbers()}
    assert used == evaluated
    assert len(used) == 3


def test_each_row_may_have_a_mask_of_its_own() -> None:
    """As the paper also considers; in a finite list too, numbers go on from row to row."""
    network = Network(6, Connectivities(6, (20,), masks=None), direct=True, conditioning=True)
    history = train(
        network, COPIES[:100], COPIES[300:], mask_for="row", batch_size=10, max_epochs=5, learning_rate=0.02
    )
    assert history[-1].valid_nll < history[0].valid_nll < 6 * 0.7
    with pytest.raises(ValueError, match="'mask_for' should be update or row"):
        train(network, COPIES, COPIES, mask_for="batch")


def test_it_stops_early_with_the_best_weights() -> None:
    generator = torch.Generator().manual_seed(1)
    noise = torch.randint(2, (60, 6), generator=generator).float()
    other = torch.randint(2, (60, 6), generator=generator).float()
    network = Network(6, Connectivities(6, (100,)), direct=True)
    history = train(network, noise, other, max_epochs=300, patience=5, learning_rate=0.02)
    assert len(history) < 300
    assert history[-1].valid_nll > history[-1].best_nll
    assert -log_prob(network, other).mean().item() == pytest.approx(history[-1].best_nll, abs=1e-5)


def test_it_can_be_repeated() -> None:
    ends = []
    for _ in range(2):
        network = Network(6, Connectivities(6, (20,), masks=2), dropout=0.3)
        train(network, COPIES, COPIES, max_epochs=3, seed=5)
        ends.append(network.state_dict())
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_what_it_cannot_do_is_said() -> None:
    network = Network(6, Connectivities(6, (20,)))
    with pytest.raises(ValueError, match="should have no NaN"):
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
    train(network, rows[:1500], rows[1500:], max_epochs=60, learning_rate=0.003, patience=60)
    nan = float("nan")
    marginal = log_prob(network, [[nan, value, nan] for value in range(4)]).exp()
    assert marginal.sum().item() == pytest.approx(1, abs=1e-5)
    assert (marginal - 0.25).abs().max() < 0.1  # 0.18 without questions in training
    conditional = log_prob(network, [[nan, value, 1] for value in range(4)], given=[2]).exp()
    assert (conditional - torch.tensor([0, 0, 0.5, 0.5])).abs().max() < 0.1
