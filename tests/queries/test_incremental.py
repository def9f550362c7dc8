"""One column at a time: rows that share passes are as if each were alone."""

from __future__ import annotations

import pytest
import torch

from made import Binary, Categorical, Columns, Connectivities, Network, Numeric
from made.queries.evidence import Evidence
from made.queries.incremental import IncrementalPass, complete

COLUMNS = Columns(
    [Categorical(3), Binary(signed=True), Numeric(10, 2), Categorical(3), Binary(signed=True), Numeric(0, 1)]
)


def model(**options) -> Network:
    torch.manual_seed(0)
    network = Network(COLUMNS, Connectivities(6, (12, 12), masks=None, residual=True), activation="tanh", **options)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape) * 0.3)
        if network.calibration is not None:
            network.eval().calibration.normal_()
    return network.double()


def rows_and_positions(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows that lack different columns, and an ordering for each."""
    rows = COLUMNS.check(torch.tensor([[2.0, 1, 9.5, 0, 0, 0.7]]).double().repeat(count, 1))[0]
    rows[torch.rand(count, 6) < 0.6] = torch.nan
    return rows, torch.rand(count, 6).argsort(dim=1)


@pytest.mark.parametrize(
    "options", [{}, {"direct": True}, {"direct": True, "conditioning": True}, {"direct": True, "calibrate": True}]
)
@pytest.mark.parametrize("most_likely", [False, True])
def test_rows_that_share_passes_are_completed_as_if_alone(options, most_likely) -> None:
    network = model(**options)
    rows, positions = rows_and_positions(40)
    uniform = None if most_likely else torch.rand(rows.shape, dtype=torch.float64)
    together = complete(network, rows, positions, uniform)
    for row in range(len(rows)):
        one = slice(row, row + 1)
        alone = complete(network, rows[one], positions[one], None if uniform is None else uniform[one])
        assert torch.allclose(together[one], alone, atol=1e-9)
    assert torch.equal(together[~rows.isnan()], rows[~rows.isnan()])


@pytest.mark.parametrize("conditioning", [False, True])
def test_a_row_is_drawn_from_its_conditionals_in_its_own_order(conditioning) -> None:
    """Each drawn value is the draw of its column, given what was known and what the row's ordering puts before it."""
    network = model(direct=True, conditioning=conditioning)
    rows, positions = rows_and_positions(30)
    uniform = torch.rand(rows.shape, dtype=torch.float64)
    drawn = complete(network, rows, positions, uniform)
    noise = COLUMNS.noise(uniform)
    for row in range(len(rows)):
        missing = rows[row].isnan()
        for d in missing.nonzero().squeeze(1).tolist():
            given = ~missing | (positions[row] < positions[row, d])
            evidence = Evidence(drawn[row : row + 1].where(given, 0.0), None, given.unsqueeze(0))
            units = IncrementalPass(network, evidence).units([d]).squeeze(1)
            assert COLUMNS[d].draw(units, noise[row : row + 1, d]).item() == pytest.approx(drawn[row, d].item())


def test_units_of_several_columns_are_those_of_each() -> None:
    network = model(direct=True)
    rows, _ = rows_and_positions(5)
    state = IncrementalPass(network, Evidence(rows.nan_to_num(0), None, ~rows.isnan()))
    some = torch.tensor([3, 1])
    both = state.units([0, 3], some)
    for place, d in enumerate((0, 3)):
        assert torch.allclose(both[:, place], state.units([d]).squeeze(1)[some])
