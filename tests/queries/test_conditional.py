"""The distribution of one entry: what the likelihood says of each of its values, one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from made import Binary, Categorical, Columns, Connectivities, Network, Numeric, log_prob
from made.errors import QuestionError
from made.queries.conditional import Prediction, forecast, predict
from made.queries.ensemble import Ensemble

NAN = float("nan")
COLUMNS = Columns([Binary(signed=True), Categorical(3), Numeric(10, 2), Categorical(2)])
ROWS = torch.tensor([[1, 2, 9.0, 0], [NAN, 0, 11.5, NAN], [0, NAN, NAN, 1], [NAN, NAN, NAN, NAN]], dtype=torch.float64)


def model(strength=0.3, **family) -> Network:
    network = Network(COLUMNS, Connectivities(4, (30,), **family), direct=True, conditioning=True, activation="tanh")
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape) * strength)
    return network.double()


@pytest.mark.parametrize("column", [0, 1, 3])
def test_probabilities_are_those_of_the_likelihood(column) -> None:
    network = model(masks=None)
    count = 2 if column == 0 else COLUMNS[column].k
    found = predict(Ensemble(network, 5), ROWS, column).probabilities(count)
    for value in range(count):
        rows = ROWS.clone()
        rows[:, column] = value
        given = ~ROWS.isnan()
        given[:, column] = False
        assert torch.allclose(found[:, value], log_prob(Ensemble(network, 5), rows, given=given).exp(), atol=1e-12)
    assert torch.allclose(found.sum(1), torch.ones(4, dtype=torch.float64))


def test_a_list_of_masks_weighs_them_by_what_they_give_to_the_known() -> None:
    network = model(masks=3, resample="degrees")  # natural ordering: the last column can be asked for
    rows = ROWS[:1].clone()
    found = predict(Ensemble(network), rows, 3).probabilities(2)
    for value in range(2):
        rows[:, 3] = value
        assert torch.allclose(found[:, value], log_prob(Ensemble(network), rows, given=[0, 1, 2]).exp(), atol=1e-12)
    with pytest.raises(QuestionError, match="unlimited masks"):
        predict(Ensemble(network), rows, 1)


def test_the_order_of_the_rows_changes_no_digit_of_a_probability() -> None:
    network, random = model(strength=0.5, masks=None).float(), np.random.default_rng(0)
    codes = np.column_stack([random.integers(0, 2, 60), random.integers(0, 3, 60), random.normal(10, 2, 60)])
    codes = np.column_stack([codes, np.full(60, NAN)])
    found, order = forecast(Ensemble(network, 5), codes, 3).probabilities, random.permutation(60)
    assert np.array_equal(found[order], forecast(Ensemble(network, 5), codes[order], 3).probabilities)
    one_by_one = [forecast(Ensemble(network, 5), codes[[row]], 3).probabilities for row in range(60)]
    assert np.array_equal(found, np.concatenate(one_by_one))
    assert np.array_equal(found, found.astype(np.float32))


def density_on(prediction: Prediction, grid: torch.Tensor) -> torch.Tensor:
    """The density of a mixture at many values at once, (values, rows)."""
    shape = prediction.weights.shape
    parts = []
    for values in grid.split(5000):
        units = prediction.units.expand(len(values), *prediction.units.shape)
        log_p = prediction.kind.log_prob(units, values[:, None, None].expand(-1, *shape))
        parts.append((prediction.weights + log_p).logsumexp(dim=1).exp())
    return torch.cat(parts)


def test_mean_and_mode_of_numbers() -> None:
    network = model(masks=None, strength=0.05)
    prediction = predict(Ensemble(network, 4), ROWS, 2)
    z = torch.linspace(-60, 60, 60_001, dtype=torch.float64)
    density = density_on(prediction, z)
    # In the units of the data, a step of z is two.
    assert torch.allclose(2 * torch.trapezoid(density, z, dim=0), torch.ones(4, dtype=torch.float64), atol=1e-4)
    mean = 2 * torch.trapezoid(density * z.unsqueeze(1), z, dim=0)
    assert torch.allclose(prediction.mean(), mean, atol=1e-3)
    assert (prediction.log_prob(prediction.mode()) > density.max(dim=0).values.log() - 0.2).all()


@pytest.mark.parametrize("family", [{"masks": None}, {"masks": 3, "resample": "degrees"}])
def test_summaries_are_those_of_the_density(family) -> None:
    """Mean, spread and quantiles, in the units of the table, are those of the density on a fine grid."""
    network = model(strength=0.05, **family)
    rows = ROWS if family["masks"] is None else ROWS[:1]
    column = 2
    if family["masks"] is not None:  # natural ordering: what comes after is missing
        rows = rows.clone()
        rows[:, 3] = NAN
    prediction = predict(Ensemble(network, 4 if family["masks"] is None else None), rows, column)
    levels = (0.05, 0.25, 0.5, 0.95)
    found = prediction.summary(levels)
    z = torch.linspace(-40, 40, 80_001, dtype=torch.float64)
    density = density_on(prediction, z)
    below = torch.cumulative_trapezoid(density, z, dim=0) * 2
    values = COLUMNS[column].outer(z[1:])
    for index, level in enumerate(levels):
        reached = below.gather(0, (values.unsqueeze(1) < found.quantiles[index]).sum(dim=0, keepdim=True)).squeeze(0)
        assert torch.allclose(reached, torch.full_like(reached, level), atol=0.01)
    share = density * 2 * (z[1] - z[0])
    centre = (share * COLUMNS[column].outer(z).unsqueeze(1)).sum(dim=0)
    spread = ((share * (COLUMNS[column].outer(z).unsqueeze(1) - centre) ** 2).sum(dim=0)).sqrt()
    assert torch.allclose(found.mean, centre, atol=0.05)
    # What lies far out, less than one in a thousand, is left out.
    assert torch.allclose(found.standard_deviation, spread, rtol=0.1)


def test_quantiles_of_integers_are_integers() -> None:
    columns = Columns([Categorical(3), Binary(signed=True), Numeric(10, 3, step=1)])
    network = Network(columns, Connectivities(3, (12,), masks=None), activation="tanh").double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape, dtype=torch.float64) * 0.3)
    prediction = predict(Ensemble(network, 3), [[0, 1, 12], [NAN, NAN, NAN]], 2)
    quantiles = prediction.summary().quantiles
    assert torch.equal(quantiles, quantiles.round())
    assert torch.equal(quantiles, prediction.quantiles((0.05, 0.5, 0.95)))
    assert (quantiles[0] < quantiles[1]).all()
    assert (quantiles[1] < quantiles[2]).all()
    assert predict(Ensemble(network), torch.empty(0, 3), 2).summary().quantiles.shape == (3, 0)


@pytest.mark.parametrize("sizes", [(), (12,), (12, 12)])
@pytest.mark.parametrize("segments", [1, 4])
def test_one_pass_is_enough_where_masks_agree(sizes, segments) -> None:
    """With one hidden layer, or a segment for each column, all masks say the same of one column given others; with a
    segment for each column, also given nothing."""
    network = Network(COLUMNS, Connectivities(4, sizes, masks=None), direct=True, conditioning=True, activation="tanh")
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape) * 0.3)
    network = network.double()
    some = len(sizes) == 1 or (len(sizes) == 2 and segments > 1)
    for rows, alike in ((ROWS[:3], some), (ROWS, len(sizes) > 0 and segments > 1)):
        found = predict(Ensemble(network, 5, segments=segments), rows, 1)
        assert len(found.units) == (1 if alike else 5)
        given = ~rows.isnan()
        given[:, 1] = False
        for value in range(3):
            asked = rows.clone()
            asked[:, 1] = value
            expected = log_prob(Ensemble(network, 5, segments=segments), asked, given=given)
            assert torch.allclose(found.log_prob(torch.tensor(float(value))), expected, atol=1e-12)


def test_draws_follow_the_prediction() -> None:
    network = model(masks=None)
    prediction = predict(Ensemble(network, 5), ROWS[3:].expand(20_000, -1), 1)
    uniform = torch.rand(2, 20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shares = torch.bincount(prediction.draw(uniform).long(), minlength=3) / 20_000
    assert torch.allclose(shares.double(), prediction.probabilities(3)[0], atol=0.015)


def test_a_forecast_has_what_the_kind_has() -> None:
    ensemble, codes = Ensemble(model(masks=None), 4), ROWS.numpy()
    for column, count in ((1, 3), (2, 0)):
        found = forecast(ensemble, codes, column)
        prediction = predict(Ensemble(ensemble.network, 4), codes, column)
        assert found.probabilities.shape == (4, count)
        assert np.isnan(found.log_prob).tolist() == np.isnan(codes[:, column]).tolist()
        assert np.isnan(found.mean).all() == (count > 0)
        if count:
            assert found.probabilities == pytest.approx(prediction.probabilities(3).numpy())
            assert found.log_prob[0] == pytest.approx(np.log(found.probabilities[0, 2]))
        else:
            assert found.quantiles == pytest.approx(prediction.summary().quantiles.numpy().T)
            assert (found.quantiles[:, 0] < found.mean).all()
            assert (found.mean < found.quantiles[:, 2]).all()
