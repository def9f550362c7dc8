"""All missing columns at once: what one column at a time says of each."""

from __future__ import annotations

import pytest
import torch

from made import Binary, Categorical, Columns, Connectivities, Network, Numeric
from made.errors import QuestionError
from made.queries import marginals as module
from made.queries.conditional import predict
from made.queries.ensemble import Ensemble
from made.queries.marginals import marginals

NAN = float("nan")
COLUMNS = Columns([Binary(signed=True), Categorical(3), Numeric(10, 2), Categorical(2)])
EVIDENCE = [[NAN, NAN, NAN, NAN], [NAN, 2, NAN, NAN], [1, NAN, 9.0, NAN], [1, 2, 9.0, NAN], [1, 2, 9.0, 0]]


def shaken(connectivities: Connectivities, columns: Columns = COLUMNS, **options) -> Network:
    network = Network(columns, connectivities, activation="tanh", **options)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape) * 0.3)
        if network.calibration is not None:
            network.eval().calibration.normal_()
    return network.double()


@pytest.mark.parametrize("row", EVIDENCE)
@pytest.mark.parametrize("sizes", [(), (12,), (12, 12), (8, 12)])
@pytest.mark.parametrize("segments", [1, 2, 4])
@pytest.mark.parametrize("reserved", [{}, {"whole_rows": 2}, {"whole_rows": 2, "incomplete_rows": True}])
@pytest.mark.parametrize("calibrate", [False, True])
def test_each_column_is_as_if_it_were_asked_for_alone(row, sizes, segments, reserved, calibrate) -> None:
    family = Connectivities(4, sizes, masks=None, residual=True, **reserved)
    network = shaken(family, direct=True, conditioning=True, calibrate=calibrate)
    ensemble = Ensemble(network, 3, segments=segments)
    found = marginals(ensemble, [row, row])
    assert list(found) == [d for d, value in enumerate(row) if value != value]
    for d, prediction in found.items():
        alone = predict(ensemble, [row, row], d)
        for value in (0.0, 1.0):
            values = torch.tensor(value, dtype=torch.float64)
            assert torch.allclose(prediction.log_prob(values), alone.log_prob(values), atol=1e-12)


def test_one_pass_for_each_mask_answers_all(monkeypatch) -> None:
    passes = []
    monkeypatch.setattr(module, "predict", None)
    for name in ("outputs", "dense_outputs"):
        run = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, run=run, name=name: passes.append(name) or run(*args))
    two_layers = shaken(Connectivities(4, (12, 12), masks=None))
    marginals(Ensemble(two_layers, 3, segments=4), [EVIDENCE[1]])
    assert passes == ["dense_outputs"]
    marginals(Ensemble(two_layers, 3), [EVIDENCE[1]])
    assert passes[1:] == ["outputs"] * 3


def test_a_single_column() -> None:
    network = shaken(Connectivities(1, (4,), masks=None, whole_rows=2), Columns([Categorical(3)]))
    found = marginals(Ensemble(network, 3), [[NAN]])[0].probabilities(3)
    assert torch.allclose(found, predict(Ensemble(network, 3), [[NAN]], 0).probabilities(3))


def test_fixed_orderings_answer_what_comes_next() -> None:
    ensemble = Ensemble(shaken(Connectivities(4, (12,))))
    assert list(marginals(ensemble, [[1, 2, 9.0, NAN]])) == [3]
    with pytest.raises(QuestionError, match="unlimited masks"):
        marginals(ensemble, [[1, 2, NAN, NAN]])


def test_rows_lack_the_same_columns() -> None:
    ensemble = Ensemble(shaken(Connectivities(4, (12,), masks=None)))
    with pytest.raises(ValueError, match="same columns"):
        marginals(ensemble, EVIDENCE[:2])
