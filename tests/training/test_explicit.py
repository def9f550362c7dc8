"""Gradients that are written out equal those of autograd."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from made import Binary, Categorical, Columns, Connectivities, Network, Numeric, Ordinal
from made.columns.point_masses import PointMasses
from made.network.explicit import ExplicitPass
from made.queries.evidence import Evidence
from made.training import objective as objectives
from made.training import trainer as trainers
from made.training.config import TrainingConfig
from made.training.objective import Objective
from made.training.trainer import Trainer
from made.training.workers import Workers
from oracle import randomize

COLUMNS = Columns(
    [
        Categorical(3),
        Numeric(3.0, 1.5),
        Binary(),
        PointMasses(Numeric(3.0, 1.5, step=1.0, low=0.0), (0.0, math.inf)),
        Numeric(170.0, 10.0, step=1.0),
        Categorical(4, reserved=0.01),
        Ordinal((0.0, 1.0, 2.0, 5.0), step=1.0),
    ]
)
CONFIG = TrainingConfig(
    segments=7, whole_rows=0.5, incomplete_rows=0.5, nearly_complete=0.5, pairs=1.0, evaluation_masks=3
)


def network(sizes: tuple[int, ...] = (9, 9), columns: Columns = COLUMNS, scale: float = 0.3, **options) -> Network:
    residual = options.pop("residual", True)
    family = Connectivities(len(columns), sizes, masks=None, residual=residual, whole_rows=3)
    return randomize(Network(columns, family, **options), scale=scale).train()


def rows(own: Network, count: int = 40, missing: float = 0.0, prepared: bool = True) -> Evidence:
    generator = torch.Generator().manual_seed(1)
    units = own.columns.initial().double() + 0.3 * torch.randn(count, own.columns.outputs, generator=generator).double()
    noise = torch.rand(count, len(own.columns), generator=generator).double()
    parts = [
        kind.draw(units[:, own.output_units(d)], kind.noise(noise[:, d])) for d, kind in enumerate(own.columns.kinds)
    ]
    values = torch.stack(parts, dim=1)
    observed = torch.rand(values.shape, generator=generator) >= missing if missing else None
    found = Evidence(values) if observed is None else Evidence(values * observed, observed)
    return found.prepared(own) if prepared else found


def both(objective: Objective, data: Evidence, update: int, workers: Workers, of: int) -> list[list[torch.Tensor]]:
    """The loss, what is reported, and all gradients: by autograd and written out."""
    found = []
    share = workers.share(of).rows
    questions = objective.questions(data[share], update, torch.arange(of)[share], of)
    for explicit in (None, objective.explicit):
        objective.network.zero_grad()
        before, objective.explicit = objective.explicit, explicit
        loss = objective.differentiate(questions, update, 0, workers, of)
        objective.explicit = before
        gradients = [parameter.grad.clone() for parameter in objective.network.parameters()]
        told = [] if loss.nll is None else [loss.nll * loss.rows]
        found.append([loss.value, *told, *gradients])
    return found


class Second(Workers):
    """The second of three."""

    rank, count = 1, 3


class Last(Workers):
    """One for whom no row is left."""

    rank, count = 0, 100


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("number_weight", [1.0, 0.3])
@pytest.mark.parametrize("workers", [Workers(), Second(), Last()], ids=["alone", "second", "without rows"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(
    "options",
    [{"direct": True}, {"sizes": (9, 5, 5), "residual": False}, {"sizes": (6,), "direct": True}, {"scale": 8.0}],
    ids=str,
)
def test_losses_and_gradients_are_those_of_autograd(options, missing, workers, number_weight, prepared) -> None:
    own = network(**options)
    data = rows(own, missing=missing, prepared=prepared)
    objective = Objective(own, replace(CONFIG, number_weight=number_weight), data)
    assert objective.explicit is not None
    assert len(objective.pairs) > 0
    kinds = set()
    for update in range(12):
        kinds.add((objective._mask_of_whole_rows(update) is None, update % 4 == 0))
        by_autograd, explicit = both(objective, data, update, workers, len(data))
        assert len(by_autograd) == len(explicit)
        for expected, found in zip(by_autograd, explicit, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)
    assert len(kinds) == 4  # parts and whole rows, with and without pairs


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_input_units_in_advance_or_in_each_update_give_the_same_bits(missing, monkeypatch) -> None:
    """A table whose input units do not fit into the memory for them is trained by the same losses."""
    found = []
    for most, together in ((2**26, 0), (0, 2**23), (0, 0)):
        monkeypatch.setattr(trainers, "PREPARED", most)
        monkeypatch.setattr(objectives, "MOST_PREPARED", together)
        own = network(direct=True)
        data = rows(own, 200, missing, prepared=False)
        trainer = Trainer(own, data[:150], data[150:], replace(CONFIG, batch_size=20, max_epochs=3))
        assert (trainer.data.inputs is None) == (most == 0)
        assert trainer.objective.explicit is not None
        trainer.run()
        found.append([weight.detach().clone() for weight in own.parameters()])
    assert all(map(torch.equal, found[0], found[1]))
    assert all(map(torch.equal, found[0], found[2]))


def test_a_batch_is_prepared_for_a_network_of_few_units_only(monkeypatch) -> None:
    """In wide networks, products take most of the time, and training goes on as before."""
    monkeypatch.setattr(objectives, "MOST_UNITS", COLUMNS.inputs + COLUMNS.outputs - 1)
    own = network()
    assert Objective(own, CONFIG, rows(own, prepared=False)).explicit is None
    assert Objective(own, CONFIG, rows(own)).explicit is not None


def test_memory_is_used_again_without_a_trace() -> None:
    own = network(direct=True)
    data, again = rows(own), network(direct=True)
    config = CONFIG
    objective, fresh = Objective(own, config, data), Objective(again, config, data)
    for update, count in ((0, 40), (1, 40), (2, 7), (3, 40)):
        objective.differentiate(objective.questions(data[:count], update), update, 0)
    fresh.differentiate(fresh.questions(data, 3), 3, 0)
    for found, expected in zip(own.parameters(), again.parameters(), strict=True):
        assert torch.equal(found.grad, expected.grad)


@pytest.mark.parametrize(
    "options", [{"conditioning": True}, {"dropout": 0.1}, {"input_dropout": 0.1}, {"activation": "tanh"}, {"sizes": ()}]
)
def test_other_networks_are_differentiated_by_autograd(options) -> None:
    own = network(**options)
    assert not ExplicitPass.supported(own)
    assert Objective(own, CONFIG, rows(own)).explicit is None


def test_a_kind_without_the_common_form_is_differentiated_by_autograd() -> None:
    class Plain(Categorical):
        form = None

    own = network(columns=Columns([Binary(), Plain(3), Categorical(3)]))
    config = TrainingConfig(segments=3, whole_rows=0.5, evaluation_masks=3)
    assert Objective(own, config, rows(own)).explicit is None
