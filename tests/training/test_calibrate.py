"""Calibration on validation rows: answers that are too sure become less so, and the model keeps what was found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from made import MADE, Binary, Columns, Connectivities, Ensemble, Network, Numeric
from made.network.calibration import adjustments
from made.network.dense import dense_outputs
from made.queries.evidence import Evidence
from made.queries.likelihood import log_prob
from made.training.calibrate import calibrate
from made.training.config import TrainingConfig
from oracle import randomize, structured

COLUMNS = 5
CONFIG = TrainingConfig(segments=COLUMNS)


@pytest.fixture(scope="module")
def fitted() -> MADE:
    return MADE(hidden_sizes=(16,), max_epochs=15, random_state=0).fit(structured())


def copies(strength: float) -> Network:
    """A network whose last two columns are the first two, with log odds of +-strength, and whose others are fair."""
    columns = [Binary(signed=True)] * COLUMNS
    network = Network(columns, Connectivities(COLUMNS, (), masks=None), calibrate=True)
    with torch.no_grad():
        network.V.zero_()
        for copy, original in ((3, 0), (4, 1)):
            network.V[copy, original] = network.V[original, copy] = strength
    return network.eval()


def rows_of_copies(flipped: float, count: int = 4000) -> Evidence:
    random = np.random.default_rng(0)
    rows = (random.random((count, COLUMNS)) < 0.5).astype(np.float64)
    rows[:, 3:] = np.abs(rows[:, :2] - (random.random((count, 2)) < flipped))
    return Evidence.of(copies(1.0), rows)


def log_odds(network: Network) -> float:
    """Of the first copy, given that its original is 1, and given all others."""
    x, given = torch.tensor([[1.0, 1, 1, 0, 1]]), torch.tensor([[True, True, True, False, True]])
    return dense_outputs(network, x, given)[3].item()


@pytest.mark.parametrize("strength", [1.0, 6.0])
def test_answers_get_as_sure_as_the_rows_are(strength) -> None:
    flipped = 0.05
    network = copies(strength)
    before = log_odds(network)
    calibrate(network, rows_of_copies(flipped), CONFIG)
    wanted = np.log((1 - flipped) / flipped)
    assert abs(log_odds(network) - wanted) < 0.4 * abs(before - wanted)


def test_rows_without_an_observed_entry_change_nothing() -> None:
    network = copies(2.0)
    calibrate(network, Evidence.of(network, np.full((3, COLUMNS), np.nan)), CONFIG)
    assert not network.calibration.any()


def test_the_same_rows_give_the_same_bits() -> None:
    first, second = copies(3.0), copies(3.0)
    for network in (first, second):
        calibrate(network, rows_of_copies(0.1, 300), CONFIG)
    assert torch.equal(first.calibration, second.calibration)


def test_where_nothing_is_seen_nothing_is_scaled() -> None:
    scale, shift = adjustments(torch.randn(4, 4), torch.zeros(4), columns=4)
    assert scale.tolist() == [1] * 4
    assert shift.tolist() == [0] * 4


def test_intervals_get_as_wide_as_the_rows_are() -> None:
    network = Network([Numeric(0.0, 1.0)] * 2, Connectivities(2, (), masks=None), calibrate=True)
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(2000, 2))).float()
    with torch.no_grad():
        network.V.zero_()
        network.c -= 2 * network.columns.log_widths  # narrow peaks
    calibrate(network, Evidence(rows), TrainingConfig(segments=2))
    _, shift = adjustments(network.calibration, torch.tensor([1, 1]), columns=2)
    np.testing.assert_allclose(shift.numpy(), 2, atol=0.7)
    x, given = network.columns.encode(rows[:1]), torch.tensor([[True, False]])
    units, unconditional = dense_outputs(network, x, given), dense_outputs(network, x * 0, ~given & given)
    changed = (units - unconditional).abs().squeeze(1)[network.columns[0].outputs :]
    assert (changed > 1).tolist() == (network.columns.log_widths[: network.columns[0].outputs] > 0).tolist()


def test_a_network_in_training_is_not_calibrated() -> None:
    network = copies(2.0)
    before = log_odds(network)
    network.calibration.fill_(0.5)
    assert log_odds(network) != pytest.approx(before)
    assert log_odds(network.train()) == pytest.approx(before)


def test_only_any_order_networks_can_be_calibrated() -> None:
    with pytest.raises(ValueError, match="'calibrate' needs unlimited masks"):
        Network(3, Connectivities(3, (4,)), calibrate=True)


def test_a_fitted_model_is_calibrated(fitted) -> None:
    assert fitted.model_.network.calibration.any()


def test_calibration_raises_the_likelihood_of_columns_given_the_others() -> None:
    rows, valid = structured(100), structured(400, seed=1)
    options = {"hidden_sizes": (64,), "max_epochs": 60, "learning_rate": 0.01, "weight_decay": 0.0, "random_state": 0}
    plain, calibrated = (MADE(calibrate=each, **options).fit(rows, X_valid=valid) for each in (False, True))
    last = [
        np.mean([model.score_samples(valid, given=[e for e in range(5) if e != d]) for d in range(5)])
        for model in (plain, calibrated)
    ]
    assert last[1] > last[0]


def test_a_folder_keeps_the_calibration(fitted, tmp_path) -> None:
    fitted.save(tmp_path / "model")
    again = MADE.load(tmp_path / "model")
    np.testing.assert_array_equal(again.score_samples(structured()), fitted.score_samples(structured()))


@pytest.mark.parametrize("options", [{"calibrate": False}, {"masks": 2}])
def test_other_models_have_no_calibration(options) -> None:
    model = MADE(hidden_sizes=(4,), max_epochs=1, random_state=0, **options).fit(structured(50))
    assert "calibration" not in model.model_.network.state_dict()


def test_without_validation_rows_nothing_is_scaled() -> None:
    model = MADE(hidden_sizes=(4,), max_epochs=1, validation_fraction=0.0, random_state=0).fit(structured(50))
    assert not model.model_.network.calibration.any()


def test_groups_of_exclusive_columns_are_calibrated_before_they_are_coupled() -> None:
    sizes, generator = (3, 2), torch.Generator().manual_seed(0)
    columns = Columns.binary(COLUMNS, signed=True).exclusive(sizes, 100)
    family = Connectivities(COLUMNS, (8,), masks=None, groups=sizes)
    network = randomize(Network(columns, family, calibrate=True), scale=2.0).eval()
    network.calibration.zero_()
    codes = torch.randint(3, (400, 2), generator=generator)
    rows = torch.cat([torch.eye(4)[codes[:, 0]][:, :3], torch.eye(3)[codes[:, 1]][:, :2]], dim=1).double()
    ensemble, given = Ensemble(network, segments=2), torch.arange(COLUMNS) < 3
    before = log_prob(ensemble, rows, given=given).mean()
    calibrate(network, Evidence(rows), TrainingConfig(segments=2))
    assert log_prob(ensemble, rows, given=given).mean() > before + 0.5
    worlds = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * COLUMNS).double()
    assert log_prob(ensemble, worlds).exp().sum().item() == pytest.approx(1, abs=1e-9)
