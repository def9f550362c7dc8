"""Table 1: what is fitted, what is counted, and what is said of it; times themselves are not tested."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from made import Connectivities
from made.paper.results_page import complexity_tables
from made.paper.table_complexity import SERIES, TABLE, Sizes, fit_power_law, measure, operations


@given(exponent=st.floats(-3, 3), factor=st.floats(1e-6, 1e6), start=st.integers(1, 50))
def test_a_power_law_is_found_exactly(exponent, factor, start) -> None:
    sizes = start * np.array([1, 2, 3, 7, 20])
    found, error = fit_power_law(sizes, factor * sizes.astype(float) ** exponent)
    assert found == pytest.approx(exponent, abs=1e-9)
    assert error == pytest.approx(0, abs=1e-9)


def test_the_standard_error_is_that_of_many_fits() -> None:
    generator = np.random.default_rng(0)
    sizes = np.array([1, 2, 4, 8, 16, 32])
    fits = np.array(
        [fit_power_law(sizes, sizes**1.5 * np.exp(0.1 * generator.standard_normal(6))) for _ in range(4000)]
    )
    assert fits[:, 0].mean() == pytest.approx(1.5, abs=0.005)
    assert np.sqrt((fits[:, 1] ** 2).mean()) == pytest.approx(fits[:, 0].std(), rel=0.05)


def test_two_sizes_are_too_few() -> None:
    with pytest.raises(ValueError, match="'sizes' should have at least 3 entries for a standard error, not 2"):
        fit_power_law([1, 2], [1, 2])


@given(D=st.integers(1, 9), K=st.integers(1, 9), L=st.integers(1, 4), R=st.integers(1, 4), direct=st.booleans())
def test_operations_are_the_entries_of_the_masks(D, K, L, R, direct) -> None:
    family = Connectivities(D, (K,) * L, masks=R, ordering="random")
    entries = sum(mask.size for connectivity in family for mask in connectivity.masks())
    assert len(list(family)) == R
    assert operations(Sizes(D, K, L, R, direct)) == entries + (R * D * D if direct else 0)


@pytest.mark.parametrize("sizes", [Sizes(60, 40), Sizes(40, 300), Sizes(40, 90, 3), Sizes(200, 30, 2, 3)])
def test_half_of_them_are_masked_whatever_the_sizes(sizes) -> None:
    family = Connectivities(sizes.D, (sizes.K,) * sizes.L, masks=sizes.R, ordering="random")
    ones = sum(int(mask.sum()) for connectivity in family for mask in connectivity.masks())
    assert ones / operations(sizes) == pytest.approx(0.5, abs=0.06)


def test_the_terms_of_the_theory_are_clear() -> None:
    """In the limit, the exponents are the whole numbers of the formulas; at the sizes of the series, close to them."""
    limit = {"K in 1hl": 1, "D in 1hl": 2, "K in 2hl": 2, "D in 2hl": 2, "L": 1, "R in 1hl": 1, "R in 2hl": 1}
    limit |= {"2^K in RBM": 1, "2^K in DARN": 1, "K in NADE": 1, "D in NADE": 1, "R in EoNADE 1hl": 1}
    limit |= {"K in EoNADE 2hl": 2}
    assert [series.name for series in SERIES] == list(limit)
    for series in SERIES:
        theory, _ = fit_power_law(series.grown(), [operations(sizes) for sizes in series.each()])
        assert theory == pytest.approx(limit[series.name], abs=0.25)
        assert [getattr(sizes, series.symbol) for sizes in series.each()] == list(series.sizes)


@pytest.fixture(scope="module")
def measured():
    """The series of a quick measurement, and the lines that were reported."""
    series: list[dict] = []
    lines: list[str] = []
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    measure(series.append, quick=True, report=lines.append)
    assert torch.get_num_threads() == threads
    assert (torch.random.get_rng_state() == state).all()
    return series, lines


def test_what_is_measured_can_be_written(measured) -> None:
    assert json.loads(json.dumps(measured[0], allow_nan=False)) == measured[0]


def test_what_was_measured_before_is_not_measured_again() -> None:
    series: list[dict] = []
    measure(series.append, quick=True, done={each.name for each in SERIES} - {"L", "K in 1hl"})
    assert [each["name"] for each in series] == ["K in 1hl", "L"]


def test_every_row_of_the_table_is_measured(measured) -> None:
    named = [name for _, _, names in TABLE for name in names.split("; ")]
    assert sorted([*named, "L"]) == sorted(series["name"] for series in measured[0])


def test_a_series_varies_one_size(measured) -> None:
    for series in measured[0]:
        assert len(series["sizes"]) == len(series["seconds"]) >= 3
        assert min(series["seconds"]) > 0
        assert set(series["fixed"]) == {"D", "K", "L", "R", "direct", "system"} - {series["symbol"]}


def test_exponents_are_fitted_and_reported(measured) -> None:
    for series, line in zip(measured[0], measured[1], strict=True):
        each = [Sizes(**series["fixed"], **{series["symbol"]: size}) for size in series["sizes"]]
        grown = [2**size for size in series["sizes"]] if "2^" in series["name"] else series["sizes"]
        assert series["theory"] == fit_power_law(grown, list(map(operations, each)))[0]
        assert (series["exponent"], series["stderr"]) == fit_power_law(grown, series["seconds"])
        assert line.startswith(f"{series['name']}: exponent {series['exponent']:.2f} ± {series['stderr']:.2f}, theory")


def test_the_number_of_threads_is_restored_after_an_error() -> None:
    before = torch.get_num_threads()

    def report(line: str) -> None:
        raise KeyboardInterrupt

    try:
        torch.set_num_threads(2)
        with pytest.raises(KeyboardInterrupt):
            measure(lambda series: None, quick=True, report=report)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_page_has_two_tables() -> None:
    series = {"name": "K in 2hl", "symbol": "K", "sizes": [10, 20, 40], "seconds": [0.5, 2.0, 8.0]}
    series |= {"fixed": {"D": 7, "L": 2, "R": 1, "direct": True}, "exponent": 2.0, "stderr": 0.125, "theory": 1.94}
    rows = [{"row": model, "formula": formula, "measured": name} for model, formula, name in TABLE]
    machine = {"processor": "abacus", "cores": 2, "threads": 1, "system": "wood", "python": "3", "torch": "2"}
    page = "\n\n".join(complexity_tables([{"series": series, "machine": machine}, *rows])).splitlines()
    tables = [[cell.strip() for cell in line.strip("|").split("|")] for line in page if line.startswith("|")]
    assert [len(row) for row in tables] == [3] * 11 + [6] * 3
    assert tables[2] == ["RBM 25 CD steps", "`O(min(2^D K, D 2^K))`", "2^K in RBM"]
    assert tables[8] == ["MADE 2hl, 1 ord.", "`O(D K + K^2 + D^2)`", "K in 2hl; D in 2hl"]
    grown = ["K in 2hl", "10 to 40", "D = 7, L = 2, R = 1, direct", "0.5000 to 8.0000", "2.00 ± 0.12", "1.94"]
    assert tables[-1] == grown
    assert page[-1] == "Measured on: abacus, 1 of 2 cores, wood, Python 3, torch 2."
